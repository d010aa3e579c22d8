"""The command line: ``casadi-hybrid run <scenario>``, ``study``, ``doctor``, …"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from casadi_hybrid import __version__, embedded
from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.formats import add_figures
from casadi_hybrid.benchmark import command as benchmark
from casadi_hybrid.scripts import new, running


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 a check failed, 2 wrong input."""
    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    if rest and arguments.command != "run":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        if arguments.command == "run":
            return running.run(arguments, rest)
        command = {
            "reproduce": _reproduce,
            "study": _study,
            "claims": _claims,
            "doctor": _doctor,
            "benchmark": benchmark.run,
            "export": embedded.run,
            "new": new.run,
        }
        return command[arguments.command](arguments)
    except (InputError, OSError) as error:
        print(f"casadi-hybrid: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("casadi-hybrid: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="casadi-hybrid", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    running.add_arguments(commands)
    new.add_arguments(commands)

    reproduce = commands.add_parser(
        "reproduce",
        help="the paper's tables beside the printed ones",
        description="Run the paper's experiment and print its tables beside the printed ones, "
        "what they do not show (who stays below 1e-3, who arrives), and what was fitted.",
    )
    reproduce.add_argument(
        "--instances",
        type=int,
        default=50,
        metavar="N",
        help="problems per level, the five fitted seeds among them (default 50)",
    )
    reproduce.add_argument(
        "--shape",
        type=int,
        nargs=2,
        default=(3, 5),
        metavar=("N", "M"),
        help="variables and constraints (default: the paper's 3 5)",
    )
    reproduce.add_argument("--workers", type=int, metavar="W", help="processes (default: cores)")
    reproduce.add_argument(
        "--output", type=Path, default=Path("output/reproduce"), metavar="DIR", help="for files"
    )
    add_figures(reproduce)
    reproduce.add_argument("--json", action="store_true", help="print the tables as JSON")

    _add_study(commands)

    claims = commands.add_parser(
        "claims",
        help="the paper's theorems, checked by running them",
        description="Run every theorem's claim and the counter-example to each hypothesis.",
    )
    claims.add_argument("--json", action="store_true", help="print the claims as JSON")
    benchmark.add_arguments(commands)

    doctor = commands.add_parser(
        "doctor",
        help="what this machine has: versions, compiler, cache, engine, and whether it works",
        description="Print versions, processor, compiler, cache and engine, test the engine and "
        "the solver. The exit code is 1 where something that is there does not work.",
    )
    doctor.add_argument("--json", action="store_true", help="print what was found as JSON")

    embedded.add_arguments(commands)
    return parser


def _add_study(commands: Any) -> None:
    study = commands.add_parser(
        "study",
        help="a population study: shape × condition × start radius × seeds × rules",
        description="Run rules on instances of many shapes and condition numbers; write one "
        "table and one figure. A study that was cut short goes on where it stopped.",
    )
    study.add_argument(
        "--shapes",
        type=_shape,
        nargs="+",
        default=[(3, 5), (5, 3), (8, 5), (20, 12)],
        metavar="NxM",
        help="variables x constraints (default: 3x5 5x3 8x5 20x12)",
    )
    study.add_argument(
        "--conditions",
        type=float,
        nargs="+",
        default=[1, 2, 3, 5, 8, 13, 30, 100, 1e3, 1e4],
        metavar="K",
        help="condition numbers of the Jacobian at x* (default: 1 2 3 5 8 13 30 100 1e3 1e4)",
    )
    study.add_argument(
        "--radii",
        type=float,
        nargs="+",
        default=[0.1, 1.0],
        metavar="R",
        help="distances of the start from x* (default: 0.1 1.0)",
    )
    study.add_argument(
        "--seeds", type=int, default=50, metavar="N", help="instances of each (default 50)"
    )
    study.add_argument(
        "--first-seed", type=int, default=1000, metavar="S", help="number of the first (1000)"
    )
    study.add_argument(
        "--rules",
        nargs="+",
        default=["auto", "whitened", "closed-form", "matrix-lookahead", "matrix-memory"],
        metavar="RULE",
        help="names of methods (default: auto whitened closed-form matrix-lookahead matrix-memory)",
    )
    study.add_argument(
        "--rank-deficient",
        action="store_true",
        help="instances whose Jacobian loses rank at the solution",
    )
    study.add_argument(
        "--budget", type=int, default=500, metavar="ITER", help="iterations a run (default 500)"
    )
    study.add_argument(
        "--output", type=Path, default=Path("output/study"), metavar="DIR", help="for files"
    )
    study.add_argument("--workers", type=int, metavar="W", help="processes (default: cores)")
    add_figures(study)
    study.add_argument("--fresh", action="store_true", help="forget what DIR holds and start over")
    study.add_argument("--json", action="store_true", help="print the table as JSON")


def _shape(text: str) -> tuple[int, int]:
    n, _, m = text.partition("x")
    if not (n.isdecimal() and m.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no shape; write NxM, such as 5x3")
    return int(n), int(m)


def _study(arguments: argparse.Namespace) -> int:
    from casadi_hybrid.study import Plan, Settings, run_study, write  # noqa: PLC0415

    if arguments.workers is not None and arguments.workers < 1:
        raise InputError(f"--workers must be at least 1, got {arguments.workers}")
    plan = Plan(
        tuple(arguments.shapes),
        tuple(arguments.conditions),
        tuple(arguments.radii),
        arguments.seeds,
        arguments.first_seed,
    )
    settings = Settings(tuple(arguments.rules), arguments.budget, arguments.rank_deficient)
    population = run_study(
        plan, settings, arguments.output, workers=arguments.workers, fresh=arguments.fresh
    )
    paths = write(population, arguments.output, arguments.figures)
    if arguments.json:
        print(json.dumps({**population.to_dict(), "files": [str(path) for path in paths]}))
    else:
        print(population)
        print("\nwritten: " + ", ".join(str(path) for path in paths))
    return 0


def _reproduce(arguments: argparse.Namespace) -> int:
    from casadi_hybrid.paper.files import write  # noqa: PLC0415
    from casadi_hybrid.paper.reproduce import reproduce  # noqa: PLC0415

    if arguments.instances < 1:
        raise InputError(f"--instances must be at least 1, got {arguments.instances}")
    if min(arguments.shape) < 1:
        raise InputError(f"--shape needs two positive numbers, got {arguments.shape}")
    if arguments.workers is not None and arguments.workers < 1:
        raise InputError(f"--workers must be at least 1, got {arguments.workers}")
    result = reproduce(arguments.instances, shape=tuple(arguments.shape), workers=arguments.workers)
    paths = write(result, arguments.output, arguments.figures)
    if arguments.json:
        print(json.dumps({**result.to_dict(), "files": [str(path) for path in paths]}))
    else:
        print(result)
        print("\nwritten: " + ", ".join(str(path) for path in paths))
    return 0


def _claims(arguments: argparse.Namespace) -> int:
    from casadi_hybrid.claims import check_all, table  # noqa: PLC0415

    claims = check_all()
    if arguments.json:
        print(json.dumps([claim.to_dict() for claim in claims]))
    else:
        print(table(claims))
    return 0 if all(claim.held for claim in claims) else 1


def _doctor(arguments: argparse.Namespace) -> int:
    from casadi_hybrid.doctor import examine  # noqa: PLC0415

    found = examine()
    print(json.dumps(found.to_dict()) if arguments.json else found)
    return 1 if found.broken else 0


if __name__ == "__main__":
    sys.exit(main())
