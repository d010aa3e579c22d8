"""The command line of a scenario, its table, its files and its exit code."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.formats import add_figures
from casadi_hybrid.basics.record.folder import writable
from casadi_hybrid.plotting import save
from casadi_hybrid.verify import Rejection, Report

TOL = 1e-6
"""Tolerance on every KKT residual, unscaled, of every method and of the verdict."""


def word(report: Report) -> str:
    """Return the verdict of a verifier's report as a word of the table.

    *undecided* is a KKT point whose second order could be neither proved nor refuted.
    """
    if report.accepted:
        return "accepted"
    return "undecided" if set(report.categories) == {Rejection.UNDECIDED} else "rejected"


def row_of(
    label: str, report: Report, stopped: str, iterations: int, seconds: float, **more: Any
) -> dict[str, Any]:
    """Return the row of an answer as plain values; its residuals are the verifier's."""
    measures = {"feasibility": report.feasibility, "stationarity": report.stationarity}
    return {
        "method": label,
        "stopped": stopped,
        "objective": report.f,
        **{key: measure.value if measure else np.nan for key, measure in measures.items()},
        "iterations": iterations,
        "seconds": seconds,
        "accepted": report.accepted,
        "verdict": word(report),
        **more,
    }


def no_worse_than(ours: Any, reference: Any) -> Check:
    """The check that our objective is the reference's or better, relative to its size.

    A reference that is not accepted itself sets no bar.
    """
    excess = (ours.report.f - reference.report.f) / max(1.0, abs(reference.report.f))
    value = excess if reference.report.accepted else -np.inf
    return Check(f"objective above that of {reference.label}, relative", value, 1e-6)


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


def parser(name: str, summary: str, *, budget: bool = False) -> argparse.ArgumentParser:
    """Return the options that every scenario takes, and ``--max-iter`` where it has a budget."""
    made = argparse.ArgumentParser(prog=name, description=summary)
    made.set_defaults(name=name, summary=summary)
    made.add_argument("--output", type=_folder, default=f"output/{name}", metavar="DIR")
    made.add_argument("--json", action="store_true", help="print JSON only")
    made.add_argument(
        "--verbose", action="store_true", help="print every number, check and verdict in full"
    )
    add_figures(made)
    made.add_argument("--short", action="store_true", help="a small problem and a small budget")
    if budget:
        made.add_argument(
            "--max-iter", type=_positive, metavar="N", help="iteration budget of every method"
        )
    return made


def _folder(text: str) -> Path:
    """A folder that can be written to, tried before there is anything to lose."""
    try:
        return writable(Path(text))
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a positive number")
    return value


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
    cells = [[head for _, head, _ in columns]]
    cells += [[show(row[key]) if key in row else "" for key, _, show in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    left = {i for i, (key, _, _) in enumerate(columns) if key in ("method", "stopped", "verdict")}
    lines = [
        "  ".join(
            text.ljust(width) if i in left else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def finish(
    arguments: argparse.Namespace,
    size: tuple[int, int],
    rows: Sequence[Mapping[str, Any]],
    reports: Mapping[str, Report],
    *,
    checks: Sequence[Check] = (),
    facts: Mapping[str, Any] | None = None,
    figures: Mapping[str, Figure] | None = None,
    films: Mapping[str, Callable[[Path], Path]] | None = None,
    columns: Sequence[Column] = COLUMNS,
    tables: Mapping[str, str] | None = None,
) -> int:
    """Write figures and ``report.json``, print the outcome and return the exit code.

    Where a file cannot be written, the tables are printed all the same and the exit code is 2.
    ``size`` are the numbers of unknowns and of constraints. The scenario fails when one of the
    reports, by method, is not accepted or a check is not passed. Lists and dictionaries among the
    facts go to the file only; figures and films, which write an animation to a path and are not
    called in the short form, have the names of their files, further tables, as :func:`table` makes
    them and shown before the main one, their titles.
    """
    failed = {label: report for label, report in reports.items() if not report.accepted}
    broken = [check for check in checks if not check.passed]
    drawings: dict[str, Callable[[Path], Path]] = {
        f"{title}.{arguments.figures}": partial(save, figure)
        for title, figure in (figures or {}).items()
    }
    if not arguments.short:
        drawings |= {f"{title}.gif": write for title, write in (films or {}).items()}
    written, failures = [], []
    for title, write in drawings.items():
        try:
            written.append(str(write(arguments.output / title)))
        except OSError as error:
            failures.append(str(error))
    data = {
        "scenario": arguments.name,
        "summary": arguments.summary,
        "short": arguments.short,
        "accepted": not failed and not broken,
        "problem": {"name": arguments.name, "n": size[0], "m": size[1]},
        "tolerance": TOL,
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "default"),
        "methods": list(rows),
        "tables": {**(tables or {}), "": table(rows, columns)},
        "checks": [{**vars(check), "passed": check.passed} for check in checks],
        "facts": dict(facts or {}),
        "reports": {label: report.to_dict() for label, report in reports.items()},
        "files": [*written, str(arguments.output / "report.json")],
    }
    text = json.dumps(_plain(data), allow_nan=False)
    try:
        (arguments.output / "report.json").write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        failures.append(str(error))
    if arguments.json:
        print(text)
    else:
        _print(data, reports, checks, verbose=arguments.verbose)
    for failure in failures:
        print(f"not written: {failure}", file=sys.stderr)
    if failures:
        return 2
    return 0 if data["accepted"] else 1


def fact(key: str, value: Any) -> str:
    """Return a fact as it is printed."""
    return f"{key}: {value:.6g}" if isinstance(value, float) else f"{key}: {value}"


def progress(text: str) -> None:
    """Say on the error stream, where it disturbs no table, what is being worked on."""
    print(text, file=sys.stderr, flush=True)


def _print(
    data: Mapping[str, Any],
    reports: Mapping[str, Report],
    checks: Sequence[Check],
    *,
    verbose: bool,
) -> None:
    """The problem in a line, the tables, and at the end what they come to and where to go on."""
    name, problem = data["scenario"], data["problem"]
    print(f"{name}: {data['summary']}")
    print(f"{problem['n']} unknowns, {problem['m']} constraints, tolerance {TOL:.0e}\n")
    for title, shown in data["tables"].items():
        print(f"{title}:\n\n{shown}\n" if title else shown)
    print()
    for key, value in data["facts"].items():
        if not isinstance(value, list | dict):
            print(fact(key, value))
    if verbose:
        print(f"BLAS threads: {data['blas_threads']} (OPENBLAS_NUM_THREADS)")
    for row in data["methods"]:
        if row.get("detail") and verbose:
            print(f"\n{row['method']}: {row['detail']}\n")
    for check in checks:
        if verbose or not check.passed:
            verdict = "ok" if check.passed else "FAILED"
            print(f"{check.name}: {check.value:.3g} (limit {check.limit:g}) {verdict}")
    for label, report in reports.items():
        if verbose or not report.accepted:
            print(f"\nverdict on {label}\n{report}")
    print(f"\n{_sentence(reports, checks)}")
    pictures = [file for file in data["files"] if not file.endswith(".json")]
    print(f"Written: {', '.join(pictures or data['files'])}")
    print(f"Next: casadi-hybrid new mine --from {name}, a copy to change"
          + ("" if verbose else "; --verbose for all numbers"))  # fmt: skip


def _sentence(reports: Mapping[str, Report], checks: Sequence[Check]) -> str:
    """What the run comes to."""
    wrong = [f"the answer of {label} is rejected" for label, report in reports.items()
             if not report.accepted]  # fmt: skip
    wrong += [f"{check.name} is above its limit" for check in checks if not check.passed]
    if wrong:
        return f"FAILED: {'; '.join(wrong)}."
    first, *others = reports or [""]
    more = f" and {len(others)} more" if others else ""
    judged = f"the verifier accepts the answer of {first}{more}" if first else ""
    kept = f"{len(checks)} of {len(checks)} checks hold" if checks else ""
    at = " at the program's points" if first else ""
    return f"Accepted{at}: {', and '.join(filter(None, (judged, kept)))}."


def _plain(value: Any) -> Any:
    """Return the value for JSON, which has no NaN and no infinity."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value
