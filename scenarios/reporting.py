"""The command line of a scenario, its table, its files and its exit code."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import TOL, Check, Reference, Run
from matplotlib.figure import Figure

from casadi_hybrid import Problem
from casadi_hybrid.plotting import save


def parser(name: str, summary: str) -> argparse.ArgumentParser:
    """Return the options that every scenario takes."""
    made = argparse.ArgumentParser(prog=name, description=summary)
    made.add_argument("--output", type=Path, default=Path("output") / name, metavar="DIR")
    made.add_argument("--json", action="store_true", help="print JSON only")
    made.add_argument("--short", action="store_true", help="a small problem and a small budget")
    made.add_argument(
        "--max-iter", type=_positive, metavar="N", help="iteration budget of every method"
    )
    return made


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a positive number")
    return value


COLUMNS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("method", "method", str),
    ("stopped", "stopped", str),
    ("objective", "objective", "{:.8g}".format),
    ("feasibility", "|h|", "{:.1e}".format),
    ("stationarity", "|grad L|", "{:.1e}".format),
    ("iterations", "iter", str),
    ("seconds", "time (s)", "{:.3f}".format),
    ("accepted", "verdict", lambda accepted: "accepted" if accepted else "rejected"),
)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as one aligned table: text to the left, numbers to the right."""
    cells = [[head for _, head, _ in COLUMNS]]
    cells += [[show(row[key]) for key, _, show in COLUMNS] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(COLUMNS))]
    left = {0, 1, len(COLUMNS) - 1}
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
    name: str,
    problem: Problem,
    runs: Sequence[Run],
    reference: Reference,
    *,
    checks: Sequence[Check] = (),
    facts: Mapping[str, Any] | None = None,
    figures: Mapping[str, Figure] | None = None,
) -> int:
    """Write figures and ``report.json``, print the outcome and return the exit code."""
    rows = [*(run.row() for run in runs), reference.row]
    failed = [run for run in runs if run.method.required and not run.report.accepted]
    broken = [check for check in checks if not check.passed]
    files = [
        str(save(figure, arguments.output / f"{title}.png"))
        for title, figure in (figures or {}).items()
    ]
    data = {
        "scenario": name,
        "short": arguments.short,
        "accepted": not failed and not broken,
        "problem": {"name": problem.name, "n": problem.n, "m": problem.m},
        "tolerance": TOL,
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "default"),
        "methods": rows,
        "checks": [{**vars(check), "passed": check.passed} for check in checks],
        "facts": dict(facts or {}),
        "reports": {run.method.label: run.report.to_dict() for run in runs if run.method.required},
        "files": [*files, str(arguments.output / "report.json")],
    }
    text = json.dumps(_plain(data), allow_nan=False)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "report.json").write_text(text + "\n", encoding="utf-8")
    if arguments.json:
        print(text)
    else:
        _print(data, rows, runs, failed, checks)
    return 0 if data["accepted"] else 1


def _print(
    data: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    runs: Sequence[Run],
    failed: Sequence[Run],
    checks: Sequence[Check],
) -> None:
    problem = data["problem"]
    print(f"{problem['name']}: {problem['n']} variables, {problem['m']} constraints, ", end="")
    print(f"tolerance {TOL:.0e} on |h| and |grad L| (largest entry, unscaled)\n")
    print(table(rows))
    print(f"\nBLAS threads: {data['blas_threads']} (OPENBLAS_NUM_THREADS).", end=" ")
    print("Where a solve did not converge, the row shows its iterate with the least residual.")
    for row in rows:
        if row["detail"]:
            print(f"\n{row['method']}: {row['detail']}")
    print()
    for key, value in data["facts"].items():
        print(f"{key}: {value:.6g}" if isinstance(value, float) else f"{key}: {value}")
    for check in checks:
        verdict = "ok" if check.passed else "FAILED"
        print(f"{check.name}: {check.value:.2e} (limit {check.limit:.0e}) {verdict}")
    shown = failed or [run for run in runs if run.method.required][:1]
    for run in shown:
        print(f"\nverdict on {run.method.label}\n{run.report}")
    print("\nwritten: " + ", ".join(data["files"]))


def _plain(value: Any) -> Any:
    """Return the value for JSON, which has no NaN and no infinity."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value
