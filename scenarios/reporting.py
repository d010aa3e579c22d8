"""The command line of a scenario, its table, its files and its exit code."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.output.files import add_figures, writable
from casadi_hybrid.utils.output.plotting import save
from casadi_hybrid.verify import Rejection, Report

TOL = 1e-6
"""Tolerance on every KKT residual, unscaled, of every method and of the verdict."""


@dataclass(frozen=True)
class Answer:
    """What a solver has found, judged; the scenario fails when a required one is not accepted.

    ``stopped`` is the solver's own word, ``more`` is for the row of the table. The solution is that
    of an optimal control problem, or the result of a method for equations, which has a course.
    """

    label: str
    report: Report = field(repr=False)
    stopped: str
    iterations: int
    seconds: float
    required: bool = False
    solution: Any = field(default=None, repr=False)
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)
    course: Any = field(default=None, repr=False)

    def row(self) -> dict[str, Any]:
        """Return the row of the table as plain values; its residuals are the verifier's.

        *undecided* is a KKT point whose second order could be neither proved nor refuted.
        """
        report, verdict = self.report, "accepted" if self.report.accepted else "rejected"
        if set(report.categories) == {Rejection.UNDECIDED}:
            verdict = "undecided"
        measures = {"feasibility": report.feasibility, "stationarity": report.stationarity}
        return {
            "method": self.label,
            "stopped": self.stopped,
            "objective": report.f,
            **{key: measure.value if measure else np.nan for key, measure in measures.items()},
            "iterations": self.iterations,
            "seconds": self.seconds,
            "accepted": report.accepted,
            "verdict": verdict,
            **self.more,
        }


@dataclass(frozen=True)
class Check:
    """A number of the scenario that has to stay below a limit."""

    name: str
    value: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether the value is within its limit (NaN is not)."""
        return bool(self.value <= self.limit)


def no_worse_than(ours: Answer, reference: Answer) -> Check:
    """The check that our objective is the reference's or better, relative to its size.

    A reference that is not accepted itself sets no bar.
    """
    excess = (ours.report.f - reference.report.f) / max(1.0, abs(reference.report.f))
    value = excess if reference.report.accepted else -np.inf
    return Check(f"objective above that of {reference.label}, relative", value, 1e-6)


def parser(name: str, summary: str) -> argparse.ArgumentParser:
    """Return the options that every scenario takes."""

    def folder(text: str) -> Path:
        try:  # before there is anything to lose
            return writable(Path(text))
        except InputError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    made = argparse.ArgumentParser(prog=name, description=summary)
    made.set_defaults(name=name, summary=summary)
    made.add_argument("--output", type=folder, default=f"output/{name}", metavar="DIR")
    made.add_argument("--json", action="store_true", help="print JSON only")
    made.add_argument("--verbose", action="store_true", help="print every check and verdict")
    add_figures(made)
    made.add_argument("--short", action="store_true", help="a small problem and a small budget")
    return made


Column = tuple[str, str, Callable[[Any], str]]

COLUMNS: tuple[Column, ...] = (
    ("method", "method", str),
    ("stopped", "stopped", str),
    ("objective", "objective", "{:.8g}".format),
    ("feasibility", "feasib.", "{:.1e}".format),
    ("stationarity", "station.", "{:.1e}".format),
    ("complementarity", "complem.", "{:.1e}".format),
    ("iterations", "iter", str),
    ("seconds", "time (s)", "{:.3f}".format),
    ("first", "first (s)", "{:.2f}".format),
    ("build", "build (s)", "{:.2f}".format),
    ("verdict", "verdict", str),
)


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column] = COLUMNS) -> str:
    """Return the rows as one aligned table: text to the left, numbers to the right.

    Columns that no row has are left out.
    """
    columns = [column for column in columns if any(column[0] in row for row in rows)]
    lines = [[head for _, head, _ in columns]]
    lines += [[show(row[key]) if key in row else "" for key, _, show in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    sides = ["<" if key in ("method", "stopped", "verdict") else ">" for key, _, _ in columns]
    shape = "  ".join(f"{{:{side}{width}}}" for side, width in zip(sides, widths, strict=True))
    return "\n".join(shape.format(*line).rstrip() for line in lines)


def finish(
    arguments: argparse.Namespace,
    size: tuple[int, int],
    answers: Sequence[Any],
    *,
    checks: Sequence[Check] = (),
    facts: Mapping[str, Any] | None = None,
    figures: Mapping[str, Figure] | None = None,
    films: Mapping[str, Callable[[Path], Path]] | None = None,
    columns: Sequence[Column] = COLUMNS,
    tables: Mapping[str, str] | None = None,
) -> int:
    """Write figures and ``report.json``, print the outcome and return the exit code.

    ``size`` are the numbers of unknowns and of constraints, answers those of :class:`Answer` or of
    :class:`closed_loop.Solves`. The scenario fails when one that is required is not accepted or a
    check is not passed. Lists and dictionaries among the facts go to the file only; figures and
    films, which write an animation to a path and are not called in the short form, have the names
    of their files, further tables, as :func:`table` makes them and shown before the main one,
    their titles.
    """
    drawings: dict[str, Callable[[Path], Path]] = {
        f"{title}.{arguments.figures}": partial(save, figure)
        for title, figure in (figures or {}).items()
    }
    if not arguments.short:
        drawings |= {f"{title}.gif": write for title, write in (films or {}).items()}
    rows = [answer.row() for answer in answers]
    reports = {answer.label: answer.report for answer in answers if answer.required}
    wrong = [f"the answer of {label} is rejected" for label, report in reports.items()
             if not report.accepted]  # fmt: skip
    wrong += [f"{check.name} is above its limit" for check in checks if not check.passed]
    data = {
        "scenario": arguments.name,
        "summary": arguments.summary,
        "short": arguments.short,
        "accepted": not wrong,
        "problem": {"name": arguments.name, "n": size[0], "m": size[1]},
        "tolerance": TOL,
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "default"),
        "methods": rows,
        "tables": {**(tables or {}), "": table(rows, columns)},
        "checks": [{**vars(check), "passed": check.passed} for check in checks],
        "facts": dict(facts or {}),
        "reports": {label: report.to_dict() for label, report in reports.items()},
        "files": [str(arguments.output / title) for title in (*drawings, "report.json")],
    }
    # JSON has no NaN and no infinity.
    text = json.dumps(data, default=np.generic.item)
    text = json.dumps(json.loads(text, parse_constant=lambda name: None))
    (arguments.output / "report.json").write_text(text + "\n", encoding="utf-8")
    for title, write in drawings.items():
        write(arguments.output / title)
    if arguments.json:
        print(text)
    else:
        _print(data, reports, wrong, verbose=arguments.verbose)
    return 1 if wrong else 0


def fact(key: str, value: Any) -> str:
    return f"{key}: {value:.6g}" if isinstance(value, float) else f"{key}: {value}"


def progress(text: str) -> None:
    """Say on the error stream, where it disturbs no table, what is being worked on."""
    print(text, file=sys.stderr, flush=True)


def _print(
    data: Mapping[str, Any], reports: Mapping[str, Report], wrong: Sequence[str], *, verbose: bool
) -> None:
    """The problem in a line, the tables, and at the end what they come to and where to go on."""
    name, problem, checks = data["scenario"], data["problem"], data["checks"]
    print(f"{name}: {data['summary']}")
    print(f"{problem['n']} unknowns, {problem['m']} constraints, tolerance {TOL:.0e}\n")
    for title, shown in data["tables"].items():
        print(f"{title}:\n\n{shown}\n" if title else f"{shown}\n")
    for key, value in data["facts"].items():
        if not isinstance(value, list | dict):
            print(fact(key, value))
    for check in (check for check in checks if verbose or not check["passed"]):
        verdict = "ok" if check["passed"] else "FAILED"
        print(f"{check['name']}: {check['value']:.3g} (limit {check['limit']:g}) {verdict}")
    for label, report in reports.items():
        if verbose or not report.accepted:
            print(f"\nverdict on {label}\n{report}")
    good = "Accepted: the verifier accepts, at the program's points, the answer of "
    print(f"\nFAILED: {'; '.join(wrong)}." if wrong else f"\n{good}{', '.join(reports)}.")
    print(f"Written: {', '.join(data['files'])}")
    print(f"Next: casadi-hybrid new mine --from {name}, a copy to change; --verbose tells more")
