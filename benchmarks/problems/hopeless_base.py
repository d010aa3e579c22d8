"""What a trap of this collection is, and how one is defined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import casadi as ca
import numpy as np

from problems.squares import Bound, spread

Row = tuple[Any, float, float]
Model = Callable[[Any], tuple[Any, Sequence[Row]]]
GOOD = {"solvable": ("solved",), "infeasible": ("verdict",), "unbounded": ("verdict",)}


@dataclass(frozen=True)
class Trap:
    """A problem with a known truth, cheap to evaluate and hard to judge.

    Attributes:
        name: short name.
        x0: start.
        truth: "solvable", "infeasible" or "unbounded".
        known: the truth and its reason in a few words.
        good: the judged kinds that are right here: "solved", "verdict" (the solver says what is
            true), "honest" (it says that it failed, where there is nothing better to say).
        f_star: least value, None where none is known.
        build: makes x, f, g and the lists lbx, ubx, lbg, ubg; new symbols at every call.
        note: source or model.
    """

    name: str
    x0: tuple[float, ...]
    truth: str
    known: str
    good: tuple[str, ...]
    f_star: float | None
    build: Callable[[], dict[str, Any]] = field(repr=False)
    note: str = ""


def trap(
    name: str,
    model: Model,
    x0: Sequence[float],
    truth: str,
    known: str,
    *,
    good: Sequence[str] = (),
    f_star: float | None = None,
    lbx: Bound = -inf,
    ubx: Bound = inf,
    symbol: Any = ca.SX,
) -> Trap:
    """Return the problem ``model(x) -> (f, rows)``; a row is a column between two numbers."""
    start = tuple(float(value) for value in x0)
    n = len(start)

    def build() -> dict[str, Any]:
        x = symbol.sym("x", n)
        f, rows = model(x)
        blocks = [(symbol(g), low, high) for g, low, high in rows]
        return {
            "x": x,
            "f": f,
            "g": ca.vertcat(*(ca.vec(g) for g, _, _ in blocks)) if blocks else symbol(0, 1),
            "lbx": spread(lbx, n),
            "ubx": spread(ubx, n),
            "lbg": [low for g, low, _ in blocks for _ in range(g.numel())],
            "ubg": [high for g, _, high in blocks for _ in range(g.numel())],
        }

    return Trap(name, start, truth, known, tuple(good) or GOOD[truth], f_star, build)


def both_ways(h: Any) -> list[Row]:
    """The equation h = 0 as h ≤ 0 and h ≥ 0."""
    return [(h, -inf, 0.0), (h, 0.0, inf)]


def unit(n: int, *places: tuple[int, float]) -> np.ndarray:
    """A vector of zeros but for these entries."""
    vector = np.zeros(n)
    for place, value in places:
        vector[place] = value
    return vector
