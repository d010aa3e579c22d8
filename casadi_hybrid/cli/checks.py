"""``casadi-hybrid claims`` and ``doctor``."""

from __future__ import annotations

import argparse
import json
from typing import Any


def add_arguments(commands: Any) -> None:
    """Add the subcommands."""
    claims = commands.add_parser(
        "claims",
        help="the paper's theorems, checked by running them",
        description="Run every theorem's claim and the counter-example to each hypothesis.",
    )
    claims.add_argument(
        "--seed", type=int, default=0, metavar="S", help="of instances, matrices and noise (0)"
    )
    claims.add_argument(
        "--iterations", type=int, default=200, metavar="T", help="steps of every trajectory (200)"
    )
    claims.add_argument(
        "--models", type=int, default=6, metavar="K", help="local models of each design claim (6)"
    )
    claims.add_argument("--json", action="store_true", help="print the claims as JSON")
    doctor = commands.add_parser(
        "doctor",
        help="what this machine has: versions, compiler, cache, engine, and whether it works",
        description="Print versions, processor, compiler, cache and engine, test the engine and "
        "the solver. The exit code is 1 where something that is there does not work.",
    )
    doctor.add_argument("--json", action="store_true", help="print what was found as JSON")


def claims(arguments: argparse.Namespace) -> int:
    """Run the claims; 1 where one does not hold."""
    from casadi_hybrid.claims import check_all, table  # noqa: PLC0415 - only for this command

    found = check_all(arguments.seed, arguments.iterations, arguments.models)
    if arguments.json:
        print(json.dumps([claim.to_dict() for claim in found]))
    else:
        print(table(found))
    return 0 if all(claim.held for claim in found) else 1


def doctor(arguments: argparse.Namespace) -> int:
    """Say what the machine has; 1 where something that is there does not work."""
    from casadi_hybrid.cli.doctor import examine  # noqa: PLC0415 - only for this command

    found = examine()
    print(json.dumps(found.to_dict()) if arguments.json else found)
    return 1 if found.broken else 0
