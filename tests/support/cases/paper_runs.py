"""Runs and cells of the paper's experiment, built by hand."""

from collections.abc import Mapping

import numpy as np

from casadi_hybrid.paper.claims import suite
from casadi_hybrid.paper.experiment import make_instance
from casadi_hybrid.paper.experiment.experiment import ALL_METHODS, Run
from casadi_hybrid.paper.experiment.tables import Cell, Summary

KEYS = [method.key for method in ALL_METHODS]


def run(
    method: str = "closed-w",
    condition: float = 8.0,
    seed: int = 0,
    *,
    below: tuple[range, ...] = (),
    longest: float | None = None,
    over_budget: bool = False,
    failure: str = "",
) -> Run:
    """A run that is below 1e-3 for the given steps alone; the norm budget ends one at step 90."""
    errors = np.full(201, 0.1)
    for steps in below:
        errors[list(steps)] = 5e-4
    hits = [int(steps[0]) for steps in below]
    hit = min(hits) if hits else None
    ended = "DESIGN_INFEASIBLE" if over_budget else "ITERATION_LIMIT"
    series = [scale * errors for scale in (1.0, 2.0, 3.0, 4.0)]
    steps = 90 if over_budget else 200
    hitting = (hit, hit, None)
    return Run(
        method, condition, seed, hitting, 50.0, ended, *series, steps, over_budget, longest, failure
    )


def every_run(hits: Mapping[str, int | None], conditions=(8.0, 13.0), seeds=range(5)) -> list[Run]:
    """Every method on every instance, crossing for good at the given step."""
    return [
        run(key, c, seed, below=() if hits.get(key) is None else (range(hits[key], 201),))
        for key in KEYS
        for c in conditions
        for seed in seeds
    ]


def cells(
    levels: tuple[float, ...], methods: Mapping[str, tuple[int, float]], ended: tuple[int, ...] = ()
) -> Summary:
    """Ten runs a cell, of which so many cross, all at one step; ``ended``: seeds, of closed-w."""
    summary: Summary = {}
    for key in KEYS:
        count, step = methods.get(key, (0, 0.0))
        over = ended if key == "closed-w" else ()
        cell = Cell(10, dict.fromkeys(range(count), step), norms=(50.0,), over_budget=over)
        summary[key] = dict.fromkeys(levels, cell)
    return summary


def made(n, m, seed=0, iterations=200):
    """An instance, what the claims take of it, a random correction, and the generator."""
    rng = np.random.default_rng((seed, n, m))
    instance = make_instance(2.0, seed, n=n, m=m)
    return instance, suite.setup_of(instance, rng, iterations), suite.random_correction(m, rng), rng
