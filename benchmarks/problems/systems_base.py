"""What a system of nonlinear equations is in this collection, and how one is defined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import casadi as ca

from casadi_hybrid import Problem

Point = tuple[float, ...]
Residuals = Callable[[list[Any]], Sequence[Any]]


@dataclass(frozen=True)
class System:
    """h(x) = 0 with m equations in n unknowns, m > n, and what is published about it.

    Attributes:
        name: short name: the collection, the number there, the author.
        n, m: unknowns and equations.
        consistent: whether a point with h = 0 exists (to rounding, where the note says so).
        known_norm2: published least sum of squares ‖h‖₂², None where no publication gives it.
        x0: standard starting point.
        source: the publication the formula and the data come from, or "own".
        build: makes the :class:`~casadi_hybrid.Problem` with f = 0 and h the residuals.
        starts: every published starting point, ``x0`` first.
        start_norms: published ‖h‖₂ at the first of ``starts``, as many as were published.
        minimizer: a published point that attains ``known_norm2`` (or h = 0), where one is.
        digits: significant digits of ``known_norm2``; the last one may be cut, not rounded.
        note: misprints, other minima, and what could not be confirmed.
    """

    name: str
    n: int
    m: int
    consistent: bool
    known_norm2: float | None
    x0: Point
    source: str
    build: Callable[[], Problem] = field(repr=False)
    starts: tuple[Point, ...] = ()
    start_norms: tuple[float, ...] = ()
    minimizer: Point | None = None
    digits: int = 6
    note: str = ""


def define(
    name: str,
    m: int,
    residuals: Residuals,
    x0: Sequence[float],
    *,
    source: str,
    consistent: bool,
    known_norm2: float | None = None,
    starts: Sequence[Sequence[float]] = (),
    scales: Sequence[float] = (),
    start_norms: Sequence[float] = (),
    minimizer: Sequence[float] | None = None,
    digits: int = 6,
    note: str = "",
) -> System:
    """Return the system with residuals ``residuals(x)``, x the list of scalar symbols.

    ``starts`` are further starting points; ``scales`` adds the multiples of x0 of Moré, Garbow &
    Hillstrom. A multiple of x0 = 0 is the vector with that number in every entry, as in the
    MINPACK test drivers. A consistent system has known_norm2 = 0 unless it is given.
    """
    first = tuple(float(value) for value in x0)
    multiples = [
        tuple(scale * value for value in first) if any(first) else (float(scale),) * len(first)
        for scale in scales
    ]
    others = [tuple(float(value) for value in start) for start in starts]
    return System(
        name=name,
        n=len(first),
        m=m,
        consistent=consistent,
        known_norm2=0.0 if consistent and known_norm2 is None else known_norm2,
        x0=first,
        source=source,
        build=partial(assemble, name, len(first), residuals),
        starts=(first, *multiples, *others),
        start_norms=tuple(start_norms),
        minimizer=None if minimizer is None else tuple(float(value) for value in minimizer),
        digits=digits,
        note=note,
    )


def assemble(name: str, n: int, residuals: Residuals) -> Problem:
    """Return the problem min 0 subject to residuals(x) = 0."""
    x = ca.SX.sym("x", n)
    return Problem(x=x, f=0, h=ca.vertcat(*residuals(ca.vertsplit(x))), name=name)
