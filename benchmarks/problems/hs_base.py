"""How a Hock–Schittkowski problem is written down in this collection.

The book states every problem as min f(x) subject to g_i(x) ≥ 0, h_j(x) = 0 and bounds. Here the
same data are rows lbg ≤ g ≤ ubg and bounds lbx ≤ x ≤ ubx, what ``casadi.nlpsol`` takes; the
multipliers of L = f + lamᵀg are then those ``nlpsol`` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from types import ModuleType
from typing import Any

import casadi as ca

Point = tuple[float, ...]
Row = tuple[Any, float, float]
Formula = Callable[..., tuple[Any, Sequence[Row]]]
Bound = float | Sequence[float]

BOOK = (
    "W. Hock & K. Schittkowski, Test Examples for Nonlinear Programming Codes, Lecture Notes in "
    "Economics and Mathematical Systems 187, Springer, 1981, problem {}"
)


@dataclass(frozen=True)
class NLP:
    """min f(x) subject to lbg ≤ g(x) ≤ ubg, lbx ≤ x ≤ ubx, and what the book says about it.

    Attributes:
        name: "HS" and the number in the book.
        number: the number in the book.
        x0: standard start.
        f_star: published least value, corrected where the note says so.
        source: the book and the problem.
        build: makes ``x`` (SX column), ``f`` (SX scalar), ``g`` (SX column, may be empty) and the
            lists of floats ``lbx``, ``ubx``, ``lbg``, ``ubg``; new symbols at every call.
        x_star: published minimizer, None where the book gives none.
        note: misprints and what is right, other minima, what could not be confirmed.
        f0: published f(x0), None where it could not be confirmed.
        feasible: whether the book calls x0 feasible, None where it could not be confirmed.
    """

    name: str
    number: int
    x0: Point
    f_star: float
    source: str
    build: Callable[[], dict[str, Any]] = field(repr=False)
    x_star: Point | None
    note: str = ""
    f0: float | None = None
    feasible: bool | None = None


def hs(
    number: int,
    *,
    x0: Sequence[float],
    f_star: float,
    x_star: Sequence[float] | None = None,
    lbx: Bound = -inf,
    ubx: Bound = inf,
    note: str = "",
    f0: float | None = None,
    feasible: bool | None = None,
    source: str | None = None,
) -> Callable[[Formula], NLP]:
    """Make the decorated formula the problem with this number.

    The formula takes the n scalar symbols x1, …, xn (n is the length of x0; ``*x`` for all of
    them, x[0] first) and returns f and the rows (expression, lb, ub), see :func:`ge`, :func:`le`
    and :func:`eq`. A bound that is one number holds for every variable. The source is the book
    unless another is given.

    Raises:
        ValueError: when x_star or the bounds do not have one entry per variable.
    """
    n = len(x0)
    bounds = {"lbx": _column(number, "lbx", lbx, n), "ubx": _column(number, "ubx", ubx, n)}
    star = None if x_star is None else _column(number, "x_star", x_star, n)

    def make(formula: Formula) -> NLP:
        return NLP(
            name=f"HS{number}",
            number=number,
            x0=_column(number, "x0", x0, n),
            f_star=float(f_star),
            source=BOOK.format(number) if source is None else source,
            build=partial(assemble, formula, bounds),
            x_star=star,
            note=note,
            f0=f0,
            feasible=feasible,
        )

    return make


def ge(expression: Any, level: float = 0.0) -> Row:
    """Return the row expression ≥ level."""
    return expression, level, inf


def le(expression: Any, level: float = 0.0) -> Row:
    """Return the row expression ≤ level."""
    return expression, -inf, level


def eq(expression: Any, level: float = 0.0) -> Row:
    """Return the row expression = level."""
    return expression, level, level


def assemble(formula: Formula, bounds: dict[str, Point]) -> dict[str, Any]:
    """Return the problem of a formula as ``casadi.nlpsol`` takes it, with bounds beside it."""
    x = ca.SX.sym("x", len(bounds["lbx"]))
    f, rows = formula(*ca.vertsplit(x))
    return {
        "x": x,
        "f": ca.SX(f),
        "g": ca.vertcat(ca.SX(0, 1), *(row[0] for row in rows)),
        "lbx": list(bounds["lbx"]),
        "ubx": list(bounds["ubx"]),
        "lbg": [float(row[1]) for row in rows],
        "ubg": [float(row[2]) for row in rows],
    }


def problems_of(module: ModuleType) -> tuple[NLP, ...]:
    """Return the problems a module defines, by number."""
    found = (entry for entry in vars(module).values() if isinstance(entry, NLP))
    return tuple(sorted(found, key=lambda entry: entry.number))


def _column(number: int, what: str, value: Bound, n: int) -> Point:
    entries = value if isinstance(value, Sequence) else (value,) * n
    if len(entries) != n:
        raise ValueError(f"{what} of HS{number} has {len(entries)} entries; x0 has {n}.")
    return tuple(float(entry) for entry in entries)
