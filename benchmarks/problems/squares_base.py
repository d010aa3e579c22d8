"""What a square system of this collection is, and how one is defined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import casadi as ca

Bound = float | Sequence[float]
Residuals = Callable[[Any], Any]


@dataclass(frozen=True)
class Square:
    """g(x) = 0 with as many equations as unknowns, within lbx ≤ x ≤ ubx.

    Attributes:
        name: short name with the number of unknowns behind it.
        x0: standard start.
        source: where the equations stand.
        build: makes x, f = 0, g and the lists lbx, ubx, lbg, ubg; new symbols at every call.
    """

    name: str
    x0: tuple[float, ...]
    source: str
    build: Callable[[], dict[str, Any]] = field(repr=False)


def square(
    name: str,
    residuals: Residuals,
    x0: Sequence[float],
    *,
    source: str,
    lbx: Bound = -inf,
    ubx: Bound = inf,
    symbol: Any = ca.SX,
) -> Square:
    """Return the system residuals(x) = 0, x a column of ``symbol`` (SX or MX)."""
    start = tuple(float(value) for value in x0)
    n = len(start)

    def build() -> dict[str, Any]:
        x = symbol.sym("x", n)
        return {
            "x": x,
            "f": symbol(0),
            "g": residuals(x),
            "lbx": spread(lbx, n),
            "ubx": spread(ubx, n),
            "lbg": [0.0] * n,
            "ubg": [0.0] * n,
        }

    return Square(f"{name}-{n}", start, source, build)


def spread(bound: Bound, n: int) -> list[float]:
    """A bound for each unknown."""
    return [float(bound)] * n if isinstance(bound, (int, float)) else [float(b) for b in bound]


def of_list(residuals: Callable[[list[Any]], Sequence[Any]]) -> Residuals:
    """Residuals of the list of unknowns as residuals of the column."""
    return lambda x: ca.vertcat(*residuals(ca.vertsplit(x)))
