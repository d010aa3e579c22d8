"""The entry of the command line: which command, its errors in a line each, its exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import Any

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.benchmark import command as benchmark
from casadi_hybrid.cli import checks, completion, embedded, new, running, studies, verifying
from casadi_hybrid.cli.parser import make_parser

_COMMANDS: dict[str, Callable[[Any], int]] = {
    "reproduce": studies.reproduce,
    "study": studies.study,
    "claims": checks.claims,
    "doctor": checks.doctor,
    "verify": verifying.run,
    "benchmark": benchmark.run,
    "export": embedded.run,
    "new": new.run,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 is done, 1 a check that failed, 2 wrong input, 130 Ctrl-C; ``verify`` has more, see its help.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a file on Windows takes no Greek
    parser = make_parser()
    arguments, rest = parser.parse_known_args(argv)
    if arguments.command is None:
        if rest:
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        print(parser.format_help(), end="")
        return 0
    if rest and arguments.command != "run":
        own = parser.commands.choices[arguments.command]
        own.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        if arguments.command == "run":
            return running.run(arguments, rest)
        if arguments.command == "completion":
            return completion.run(arguments, parser)
        return _COMMANDS[arguments.command](arguments)
    except (InputError, OSError) as error:
        print(f"casadi-hybrid: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("casadi-hybrid: interrupted", file=sys.stderr)
        return 130
