"""``casadi-hybrid completion``: what bash, zsh and fish need to complete commands and options."""

from __future__ import annotations

import argparse
import shlex
from functools import partial
from typing import Any, NamedTuple

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
    parser.set_defaults(run=partial(run, commands))


class Command(NamedTuple):
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


def run(commands: Any, arguments: argparse.Namespace) -> int:
    """Print the completion of what the commands take; 0."""
    write = {"bash": bash, "zsh": zsh, "fish": fish}[arguments.shell]
    print(write(commands_of(commands)), end="")
    return 0


def commands_of(commands: Any) -> dict[str, Command]:
    """Read the commands of a parser."""
    found = {}
    for choice in commands._choices_actions:
        words = _scenarios() if choice.dest == "run" else ()
        command = found[choice.dest] = Command(choice.help, {}, words, {})
        for one in commands.choices[choice.dest]._actions:
            choices = tuple(map(str, one.choices or ()))
            for option in one.option_strings:
                command.options[option] = (one.help or "").replace("%%", "%")
                if choices:
                    command.values[option] = choices
            if choices and not one.option_strings:
                found[choice.dest] = command._replace(words=choices)
    return found


def bash(commands: dict[str, Command]) -> str:
    """The completion for bash."""
    cases = []
    for name, command in commands.items():
        cases.append(f"    {name}) words={_quoted((*command.options, *command.words))}")
        if command.values:
            values = command.values.items()
            chosen = (f"        {option}) words={_quoted(words)};;" for option, words in values)
            cases += ['      case "$before" in', *chosen, "      esac"]
        cases.append("      ;;")
    lines = [
        "_casadi_hybrid() {",
        '  local now="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words',
        f'  if [ "$COMP_CWORD" -eq 1 ]; then words={_quoted(("--help", "--version", *commands))}',
        '  else case "${COMP_WORDS[1]}" in',
        *cases,
        "  esac; fi",
        '  COMPREPLY=($(compgen -W "$words" -- "$now"))',
        "}",
        "complete -o default -F _casadi_hybrid casadi-hybrid",
    ]
    return "\n".join(lines) + "\n"


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
