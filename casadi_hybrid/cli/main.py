"""Entry of the command line: choice of the command, one-line errors, exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from casadi_hybrid.cli.parser import make_parser
from casadi_hybrid.utils.errors import InputError, suggest
from casadi_hybrid.utils.output.text import clock


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    The codes are 0 success, 1 a failed check, 2 wrong input, 130 Ctrl-C; ``verify`` has more.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # files on Windows accept no Greek letters
    parser = make_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions
        import argcomplete  # noqa: PLC0415 - an extra

        argcomplete.autocomplete(parser)
    words, commands = sys.argv[1:] if argv is None else argv, parser.commands.choices
    first = next((word for word in words if word[:1] != "-"), None)
    if first is not None and first not in commands:
        parser.error(f"there is no command {first!r}{suggest(first, commands)}")
    arguments, rest = parser.parse_known_args(words)
    command = arguments.command
    if rest and command != "run":
        commands.get(command, parser).error(f"unrecognized arguments: {' '.join(rest)}")
    if command is None:
        print(parser.format_help(), end="")
        return 0
    arguments.rest = rest  # options of the scenario
    try:
        # Work on several processes has a bar of its own.
        with clock("" if hasattr(arguments, "workers") else command):
            return int(arguments.run(arguments))
    except (InputError, OSError) as error:
        print(f"casadi-hybrid: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("casadi-hybrid: interrupted", file=sys.stderr)
        return 130
