"""How a problem of Schittkowski's second collection is written down.

The conventions are those of :mod:`problems.hs_base`. A problem whose objective is a sum of squares
f = Σ rᵢ² is written as its residuals r, so that the same formula also gives the system r(x) = 0.

Sources: formulas, starts and optima are those of Schittkowski's own test programs (edition of
2011; a public copy is github.com/jacobwilliams/schittkowski-test-problems). Where the programs
scale an objective or shorten a sum that the book has in full, the book is followed as transcribed
in NLSProblems.jl, and the note says so. x* has more digits than published where the published ones
leave a gradient above 1e-3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import casadi as ca

from problems.hs_base import NLP, Formula, hs
from problems.systems_base import System, define

BOOK = (
    "K. Schittkowski, More Test Examples for Nonlinear Programming Codes, Lecture Notes in "
    "Economics and Mathematical Systems 282, Springer, 1987, problem {}"
)
Residuals = Callable[..., Sequence[Any]]


@dataclass(frozen=True)
class Squares(NLP):
    """min Σ rᵢ(x)² within bounds, which is also the system r(x) = 0.

    Attributes:
        residuals: takes the n scalar symbols, returns the residuals.
    """

    residuals: Residuals = field(default=tuple, repr=False)


def tp(number: int, **published: Any) -> Callable[[Formula], NLP]:
    """Make the decorated formula the problem with this number; see :func:`problems.hs_base.hs`."""

    def make(formula: Formula) -> NLP:
        entry = hs(number, source=BOOK.format(number), **published)(formula)
        return replace(entry, name=f"TP{number}")

    return make


def squares(number: int, **published: Any) -> Callable[[Residuals], Squares]:
    """Make the decorated residuals the problem min Σ rᵢ² with this number."""

    def make(residuals: Residuals) -> Squares:
        entry = tp(number, **published)(lambda *x: (ca.sumsqr(ca.vertcat(*residuals(*x))), ()))
        same = {item.name: getattr(entry, item.name) for item in fields(NLP)}
        return Squares(**same, residuals=residuals)

    return make


def system_of(entry: Squares) -> System:
    """Return r(x) = 0 without the bounds; it is consistent where the least Σ rᵢ² is 0.

    Bounds can only raise the least value, so ``known_norm2`` is given for consistent systems alone.
    """
    symbols = ca.vertsplit(ca.SX.sym("x", len(entry.x0)))
    consistent = entry.f_star == 0
    return define(
        f"{entry.name}E",
        len(entry.residuals(*symbols)),
        lambda x: entry.residuals(*x),
        entry.x0,
        source=entry.source,
        consistent=consistent,
        minimizer=entry.x_star if consistent else None,
        note="The residuals of a least-squares problem as equations, without its bounds.",
    )
