"""The files of a reproduction: runs.csv, residuals.csv, tables.txt and the figures."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from casadi_hybrid.paper.experiment import BUDGET, THRESHOLDS, Run
from casadi_hybrid.paper.figures import draw
from casadi_hybrid.paper.reproduce import Reproduction

EVERY = 10
"""Steps between two rows of residuals.csv."""


def write(reproduction: Reproduction, folder: Path, form: str = "png") -> list[Path]:
    """Write runs.csv, residuals.csv, tables.txt and the figures, in that format.

    Return what was written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table, courses, text = (folder / name for name in ("runs.csv", "residuals.csv", "tables.txt"))
    write_runs(reproduction.runs, table)
    write_residuals(reproduction.runs, courses)
    text.write_text(f"{reproduction}\n", encoding="utf-8")
    return [table, courses, text, *draw(reproduction, folder, form)]


def write_runs(runs: Iterable[Run], path: Path) -> None:
    """One line a run; residuals are the paper's, ‖h‖₂ and ‖∇f + J_hᵀμ‖₂, at the hit and at 200."""
    ends = ["max_norm_M", "below_at_200", "never_left", "distance_200", "distance_1500"]
    residuals = [f"{name}_{at}" for name in ("feasibility", "stationarity") for at in ("hit", 200)]
    hits = [f"hit_{threshold:g}" for threshold in THRESHOLDS]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        head = ["method", "condition", "seed", *hits, *ends, *residuals, "stop", "failure"]
        writer.writerow(head)
        for r in sorted(runs, key=lambda r: (r.method, r.condition, r.seed)):
            times = ["" if hit is None else hit for hit in r.hits]
            last = (r.errors[-1], np.nan if r.longest is None else r.longest)
            at = [
                np.nan if t is None else series[t]
                for series in (r.feasibility, r.stationarity)
                for t in (r.hit, -1)
            ]
            name = [r.method, f"{r.condition:g}", r.seed, *times, _number(r.norm_M)]
            ending = [int(r.at_end), int(r.stays), *map(_number, last), *map(_number, at)]
            writer.writerow([*name, *ending, r.stop, r.failure])


def write_residuals(runs: Sequence[Run], path: Path) -> None:
    """Medians over the instances along the runs, every tenth step, by method and level."""
    groups: dict[tuple[str, float], list[Run]] = {}
    for run in runs:
        if not run.failure:
            groups.setdefault((run.method, run.condition), []).append(run)
    names = ("distance", "feasibility", "stationarity_mu", "stationarity_nu")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["method", "condition", "instances", "t", *names])
        for (method, condition), group in groups.items():
            series = [
                [getattr(run, name) for run in group]
                for name in ("errors", "feasibility", "stationarity", "effective")
            ]
            medians = np.median(np.array(series), axis=1)
            for t in range(0, BUDGET + 1, EVERY):
                values = [_number(value) for value in medians[:, t]]
                writer.writerow([method, f"{condition:g}", len(group), t, *values])


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.6g}"
