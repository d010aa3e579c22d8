"""Parser of all commands, with examples of each."""

from __future__ import annotations

import argparse
from typing import Any

from casadi_hybrid import __version__
from casadi_hybrid.cli import doctor, embedded, new, running, studies, verifying

EXAMPLES: dict[str, tuple[str, ...]] = {
    "run": ("run", "run cartpole", "run pendulum --output figures"),
    "new": ("new swing --ocp", "new plan --nlp --force", "new mine --from cartpole"),
    "reproduce": (
        "reproduce --instances 5",
        "reproduce --instances 50 --workers 4 --output output/paper",
        "reproduce --shape 3 3 --json",
    ),
    "study": (
        "study --shapes 3x5 5x3 --conditions 2 100 --seeds 20",
        "study --rules auto whitened --budget 200 --table parquet --output output/wide",
        "study --cluster local --workers 4",
        "study --cluster tcp://192.168.0.10:8786",
    ),
    "verify": ("verify rocket.py", "verify rocket.py:plan --method closed-form", "verify hs71.nl"),
    "claims": ("claims", "claims --json"),
    "doctor": ("doctor", "doctor --json"),
    "export": ("export rocket.py:plan --out c", "export rocket.py --out c --warm-only"),
}
# Commands in the order of the help.
GROUPS = {
    "use": ("run", "new", "export"),
    "check": ("verify",),
    "the paper": ("reproduce", "study", "claims"),
    "this machine": ("doctor",),
}


class Formatter(argparse.HelpFormatter):
    """Formatter that keeps the lines of the examples and fills all other text."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            return "\n".join(indent + line for line in text.splitlines())
        return super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """Parser of all commands; its help lists them by groups."""

    commands: Any

    def format_help(self) -> str:
        """Return the help, with the commands of a group below its name."""
        summary = {action.dest: action.help for action in self.commands._choices_actions}
        width = max(map(len, summary))
        rows = [f"{self.format_usage()}\n{self.description}\n"]
        for group, names in GROUPS.items():
            rows += [f"{group}:", *(f"  {name:<{width}}  {summary[name]}" for name in names), ""]
        options = "options: --version; --help, also of every command: casadi-hybrid run --help"
        return "\n".join([*rows, options, "", f"{self.epilog}\n"])


def make_parser() -> Parser:
    """Return the parser; each command adds its own options."""
    parser = Parser(
        prog="casadi-hybrid",
        description="Constrained optimization for control on CasADi graphs, from the command line.",
        epilog="examples:\n  casadi-hybrid run van_der_pol\n  casadi-hybrid new mine --ocp\n"
        "  casadi-hybrid verify mine.py",
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.commands = commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", parser_class=argparse.ArgumentParser
    )
    for part in (running, new, verifying, studies, doctor, embedded):
        part.add_arguments(commands)
    for name, lines in EXAMPLES.items():
        command = commands.choices[name]
        command.formatter_class = Formatter
        command.epilog = "\n".join(["examples:", *(f"  casadi-hybrid {line}" for line in lines)])
    return parser
