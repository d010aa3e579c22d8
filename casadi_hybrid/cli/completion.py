"""``casadi-hybrid completion``: what bash, zsh and fish need to complete commands and options."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass
from typing import Any

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.cli.running import scenario_folder, scenario_summaries

_WHERE = {
    "bash": "~/.local/share/bash-completion/completions/casadi-hybrid",
    "zsh": "a folder of $fpath, as _casadi-hybrid",
    "fish": "~/.config/fish/completions/casadi-hybrid.fish",
}


def add_arguments(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "completion",
        help="completion of commands, options and scenarios for a shell",
        description="Print the completion for a shell. For this session: "
        "eval \"$(casadi-hybrid completion bash)\", or … fish | source; for all, write it to "
        + "; ".join(f"{where} ({shell})" for shell, where in _WHERE.items()) + ".",
    )  # fmt: skip
    parser.add_argument("shell", choices=tuple(_WHERE), help="which shell")


@dataclass(frozen=True)
class Command:
    """A command's words.

    Attributes:
        help: its line in the list.
        options: option → its help.
        words: what its argument may be.
        values: option → what its value may be.
    """

    help: str
    options: dict[str, str]
    words: tuple[str, ...]
    values: dict[str, tuple[str, ...]]


def run(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print the completion of what a parser takes; 0."""
    found = commands_of(parser)
    print({"bash": bash, "zsh": zsh, "fish": fish}[arguments.shell](found), end="")
    return 0


def commands_of(parser: argparse.ArgumentParser) -> dict[str, Command]:
    """Read the commands of a parser."""
    (action,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
    found = {}
    for name, command in action.choices.items():
        options: dict[str, str] = {}
        values: dict[str, tuple[str, ...]] = {}
        words: tuple[str, ...] = ()
        for one in command._actions:
            choices = tuple(map(str, one.choices or ()))
            if not one.option_strings:
                words = choices
            for option in one.option_strings:
                options[option] = (one.help or "").replace("%%", "%")
                if choices:
                    values[option] = choices
        if name == "run":
            words = _scenarios()
        found[name] = Command(helps.get(name, ""), options, words, values)
    return found


def bash(commands: dict[str, Command]) -> str:
    """The completion for bash."""
    cases = []
    for name, command in commands.items():
        values = "".join(
            f"      {option}) words={_quoted(words)};;\n"
            for option, words in command.values.items()
        )
        words = _quoted((*command.options, *command.words))
        cases.append(
            f"    {name})\n      words={words}\n"
            + (f'      case "$before" in\n{values}      esac\n' if values else "")
            + "      ;;\n"
        )
    first = _quoted(("--help", "--version", *commands))
    return (
        "_casadi_hybrid() {\n"
        '  local now="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words\n'
        f'  if [ "$COMP_CWORD" -eq 1 ]; then words={first}\n'
        '  else case "${COMP_WORDS[1]}" in\n' + "".join(cases) + "  esac; fi\n"
        '  COMPREPLY=($(compgen -W "$words" -- "$now"))\n'
        "}\n"
        "complete -o default -F _casadi_hybrid casadi-hybrid\n"
    )


def zsh(commands: dict[str, Command]) -> str:
    """The completion for zsh, which runs that of bash."""
    return (
        "#compdef casadi-hybrid\n"
        "autoload -Uz compinit bashcompinit\n"
        "(( $+functions[compdef] )) || compinit\n"
        "bashcompinit\n" + bash(commands)
    )


def fish(commands: dict[str, Command]) -> str:
    """The completion for fish, with the help of every option."""
    lines = ["complete -c casadi-hybrid -n __fish_use_subcommand -f -l help -l version"]
    for name, command in commands.items():
        lines.append(f"complete -c casadi-hybrid -n __fish_use_subcommand -f -a {name} "
                     f"-d {shlex.quote(command.help)}")  # fmt: skip
        seen = f'complete -c casadi-hybrid -n "__fish_seen_subcommand_from {name}"'
        if command.words:
            lines.append(f"{seen} -f -a {_quoted(command.words)}")
        for option, text in command.options.items():
            kind = "-l" if option.startswith("--") else "-s"
            values = command.values.get(option)
            given = f" -x -a {_quoted(values)}" if values else ""
            lines.append(f"{seen} {kind} {option.lstrip('-')}{given} -d {shlex.quote(text)}")
    return "\n".join(lines) + "\n"


def _scenarios() -> tuple[str, ...]:
    try:
        return tuple(scenario_summaries(scenario_folder()))
    except InputError:
        return ()


def _quoted(words: Any) -> str:
    return shlex.quote(" ".join(words))
