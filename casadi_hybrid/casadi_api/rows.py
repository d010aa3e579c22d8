"""Many solves as rows of numbers: what the engine reads, and the run of each where asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.casadi_api.run import Run
from casadi_hybrid.casadi_api.runner import Runner
from casadi_hybrid.engine.batch import Rows
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.result.result import Result

_FINITE = ("x0", "p", "lam_x0", "lam_g0")


class Runs(Sequence[Run]):
    """The runs of a batch, each looked at where it is asked for."""

    def __init__(
        self,
        runner: Runner,
        rows: Rows,
        places: Any,
        others: Mapping[int, Run],
        called: tuple[str, str],
    ) -> None:
        self._runner, self._rows = runner, rows
        self._places_in, self._places_out = places
        self._called = called
        self._made: dict[int, Run] = dict(others)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, k: Any) -> Any:
        k = range(len(self))[k]
        found = self._made.get(k)
        if found is None:
            numbers, solved = self._rows.numbers[k], self._rows.solved(k, self._places_out)
            problem, limits = self._runner.problem, self._runner.options.limits
            found = self._made[k] = Run(
                problem, limits, numbers, self._places_in, solved,
                rows=self._rows.seen(k), functions=self._called,
            )  # fmt: skip
        return found


def numbers_in_rows(
    given: Mapping[str, Any],
    columns: Mapping[str, Vector],
    warm: Sequence[Result | None],
    start: Numbers,
    places: Mapping[str, slice],
) -> Vector:
    """The numbers of all solves, a row each; ``start`` has those of what has no columns."""
    found = np.empty((len(warm), max(place.stop for place in places.values())))
    every = np.arange(len(warm))
    for name in given:
        place = places[name]
        if name in columns:
            found[:, place] = columns[name].T[every % columns[name].shape[1]]
            continue
        found[:, place] = getattr(start.bounds if name[:2] in ("lb", "ub") else start, name)
        if given[name] is None and name in ("x0", "lam_x0", "lam_g0"):
            label = {"x0": "x", "lam_x0": "lam_x", "lam_g0": "lam_g"}[name]
            for k, known in enumerate(warm):
                if known is not None:
                    found[k, place] = getattr(known, label)
    return found


def doubtful(numbers: Vector, places: Mapping[str, slice]) -> NDArray[np.intp]:
    """The solves with numbers that are not finite, or bounds that leave nothing between them."""
    bad = np.zeros(len(numbers), dtype=bool)
    for name in _FINITE:
        bad |= ~np.isfinite(numbers[:, places[name]]).all(axis=1)
    for kind in "xg":
        lower, upper = numbers[:, places[f"lb{kind}"]], numbers[:, places[f"ub{kind}"]]
        sound = (lower <= upper) & (lower < np.inf) & (upper > -np.inf)
        bad |= ~sound.all(axis=1)
    return np.flatnonzero(bad)


def sides_of(warm: Sequence[Result | None], n: int, m: int) -> tuple[Any, Any]:
    """The working sets to try first: a row of each solve, and which solves have one."""
    sides = np.zeros((len(warm), n + m), dtype=np.int8)
    there = np.zeros(len(warm), dtype=np.int8)
    for k, known in enumerate(warm):
        if known is not None and known.success:
            there[k] = 1
            sides[k, :n], sides[k, n:] = known.working_set.x, known.working_set.g
    return sides, there
