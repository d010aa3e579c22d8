"""Facts about a solve: violations, directions of divergence, bad scaling.

Each is computed from the arrays of a finished :class:`~casadi_hybrid.solver.record.answer.Answer`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from casadi_hybrid.problem.graph.expressions import Label
from casadi_hybrid.problem.point.linearization import Linearization
from casadi_hybrid.problem.rounding import violations
from casadi_hybrid.solver.record.answer import Answer
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.linear_algebra.sparse import general

Index = NDArray[np.intp]

_LOW = 1e10  # decrease of f relative to its size at the start that is apparently without bound
_AT_MOST = 6  # names in a sentence
_SPREAD = 1e6  # ratio of sizes that is bad scaling
_ADVICE = {
    "the largest derivatives of the constraints": "divide each such constraint and its bounds by "
    "its size",
    "the largest derivatives by the variables": "measure each such variable in a unit near its "
    "usual size",
    "the derivatives of f": "measure the variables in units in which f is equally sensitive to "
    "them",
    "the entries of x": "measure them in units in which they are near one",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One bound that the point violates; ``excess`` is negative below, positive above."""

    name: str
    value: float
    lower: float
    upper: float
    excess: float

    def __str__(self) -> str:
        name, value, lower, upper = physical(self.name, self.value, self.lower, self.upper)
        # In a difference of two values the origin cancels.
        _, size = physical(self.name, abs(self.excess), digits=3, zero=0.0)
        if self.lower == self.upper:
            off = "" if float(lower.split()[0]) == 0.0 else f" (off by {size})"
            return f"{name} should be {lower}, is {value}{off}"
        side, bound = ("below its lower", lower) if self.excess < 0 else ("above its upper", upper)
        return f"{name} = {value}, {side} bound {bound} by {size}"


def physical(name: str, *numbers: float, digits: int = 6, zero: float = 1.0) -> list[str]:
    """Return the bare name of a label, and numbers in its unit; ``zero`` weighs its origin."""
    label = name if isinstance(name, Label) else Label(name)
    values = (number * label.scale + zero * label.origin for number in numbers)
    return [label.bare, *(f"{value:.{digits}g} {label.unit}".rstrip() for value in values)]


def stacked(result: Answer) -> tuple[tuple[str, ...], Vector, Vector, Vector]:
    """Return names, values, lower and upper bounds of the rows of g and then of x."""
    b = result.bounds
    names = (*result.constraint_names, *result.variable_names)
    return names, np.append(result.g, result.x), np.append(b.lbg, b.lbx), np.append(b.ubg, b.ubx)


def worst_violations(result: Answer, *, at_most: int = 5) -> tuple[Violation, ...]:
    """Return the bounds violated by more than the tolerance, the worst first."""
    names, values, lower, upper = stacked(result)
    excess = violations(values, lower, upper)
    order = np.argsort(-np.abs(excess), kind="stable")[:at_most]
    return tuple(
        Violation(names[i], *(float(v[i]) for v in (values, lower, upper, excess)))
        for i in order
        if abs(excess[i]) > result.tolerances.feasibility
    )


@dataclass(frozen=True, slots=True)
class Ray:
    """The direction of diverging iterates."""

    direction: Vector  # of the last step, largest entry ±1
    slope: float  # ∇f(x)ᵀdirection
    moving: tuple[tuple[str, float], ...]  # the variables that move most

    def __str__(self) -> str:
        along = ", ".join(f"{name} by {entry:+.3g}" for name, entry in self.moving)
        return f"per unit of the ray {along}; f changes by {self.slope:.3g}"


def last_direction(result: Answer) -> Ray | None:
    """Return the direction of the last step and the slope of f along it; None without a step."""
    if result.step is None or result.end is None:
        return None
    d = result.step / np.abs(result.step).max()
    order = [int(i) for i in np.argsort(-np.abs(d), kind="stable")[:_AT_MOST] if abs(d[i]) > 1e-3]
    moving = tuple((result.variable_names[i], float(d[i])) for i in order)
    return Ray(d, float(result.end.gradient @ d), moving)


def fall(result: Answer) -> float | None:
    """Return f at a feasible point if it is below −1e10·max(1, |f(x0)|), else None."""
    f, violation = np.array([result.f]), np.array([result.residuals.feasibility])
    first = 0.0
    course = result.history
    if course is not None and course.f.size:
        first = float(course.f[0])
        f, violation = np.append(f, course.f), np.append(violation, course.feasibility)
    # Rounding of f explains a violation of this size, at most 1e-2.
    rounding = np.minimum(1e-12 * np.abs(f), 1e-2)
    feasible = violation <= np.maximum(result.tolerances.feasibility, rounding)
    low = feasible & (f < -_LOW * max(1.0, abs(first)))
    if not low.any():
        return None
    # The returned point, else the recorded iterate with the least f.
    return float(f[0] if low[0] else f[low].min())


@dataclass(frozen=True, slots=True)
class Spread:
    """Sizes that lie too far apart, by name; zeros do not count."""

    what: str
    smallest: tuple[str, float]
    largest: tuple[str, float]
    advice: str

    def __str__(self) -> str:
        (low, least), (high, most) = self.smallest, self.largest
        return f"{self.what} range from {least:.1e} ({low}) to {most:.1e} ({high}); {self.advice}"


def bad_scales(result: Answer) -> tuple[Spread, ...]:
    """Return the kinds of derivatives whose sizes differ by more than 1e6."""
    points, bounded, free, blocks = _derivatives(result)
    if not points:
        return ()
    # The larger size of start and end: a derivative that vanishes at one of them does not count.
    of_f = np.max([np.abs(point.gradient[free]) for point in points], axis=0)
    of_rows = np.max([_maxima(J, 1) for J in blocks], axis=0)
    of_columns = np.max([of_f, *(_maxima(J, 0) for J in blocks)], axis=0)
    rows = [result.constraint_names[i] for i in bounded]
    columns = [result.variable_names[i] for i in free]
    size = np.max([np.abs(point.x[free]) for point in points], axis=0)
    if size.max(initial=0.0) <= _SPREAD:
        size[:] = 0.0
    kinds = {
        "the largest derivatives of the constraints": (of_rows, rows),
        "the largest derivatives by the variables": (of_columns, columns),
        "the derivatives of f": (of_f, columns),
        "the entries of x": (np.where(size > 1e-9, size, 0.0), columns),  # smaller: rounded zeros
    }
    spreads = []
    for what, (sizes, names) in kinds.items():
        nonzero = np.flatnonzero(sizes > 0.0)
        # A division, since a product could overflow.
        if nonzero.size and sizes[nonzero].max() / _SPREAD > sizes[nonzero].min():
            ends = (nonzero[pick(sizes[nonzero])] for pick in (np.argmin, np.argmax))
            low, high = ((names[i], float(sizes[i])) for i in ends)
            spreads.append(Spread(what, low, high, _ADVICE[what]))
    return tuple(spreads)


def constant_constraints(result: Answer) -> tuple[str, ...]:
    """Return the bounded rows with no derivative by a free variable, at the start and the end."""
    _, bounded, _, blocks = _derivatives(result)
    constant = np.ones(bounded.size, bool)
    for J in blocks:
        constant &= _maxima(J, 1) == 0.0
    return tuple(result.constraint_names[i] for i in bounded[constant])


def _derivatives(result: Answer) -> tuple[list[Linearization], Index, Index, list[Any]]:
    """Return start and end if defined, the bounded rows, the free variables, and |J| of both."""
    points = [point for point in (result.start, result.end) if point is not None]
    b = result.bounds
    bounded = np.flatnonzero(np.isfinite(b.lbg) | np.isfinite(b.ubg))
    free = np.flatnonzero(b.lbx < b.ubx)
    blocks = [abs(sp.csr_array(general(point.J)))[bounded][:, free] for point in points]
    return points, bounded, free, blocks


def _maxima(A: Any, axis: int) -> Vector:
    """Largest entries of a nonnegative sparse matrix by row (axis 1) or by column (axis 0)."""
    if not all(A.shape):
        return np.zeros(A.shape[1 - axis])
    return np.asarray(A.max(axis=axis).toarray()).ravel()


def listed(names: Sequence[str]) -> str:
    """``a, b and 3 more``."""
    more = f" and {len(names) - _AT_MOST} more" if len(names) > _AT_MOST else ""
    return ", ".join(names[:_AT_MOST]) + more


def runs(names: Sequence[str]) -> str:
    """Names in short: ``u[0] … u[19]`` in a row, ``u[0], u[3], …, u[57]`` in equal steps."""
    numbered = [re.fullmatch(r"(.*\[(?:\d+, )?|.*?)(\d+)(\].*|)", name) for name in names]
    groups: list[str] = []
    k = 0
    while k < len(names):
        last, step = k, 0
        while last + 1 < len(names):
            by = _step(numbered[last], numbered[last + 1])
            if by <= 0 or (step and by != step):
                break
            last, step = last + 1, by
        if last - k < (2 if step == 1 else 3):
            groups.append(names[k])
            k += 1
            continue
        dots = " … " if step == 1 else f", {names[k + 1]}, …, "
        groups.append(f"{names[k]}{dots}{names[last]}")
        k = last + 1
    if len(groups) <= _AT_MOST:
        return ", ".join(groups)
    if all(_step(a, b) > 0 for a, b in pairwise(numbered)):
        return f"some of {names[0]} … {names[-1]}"
    return f"{', '.join(groups[:_AT_MOST])} and {len(groups) - _AT_MOST} more"


def _step(first: re.Match[str] | None, second: re.Match[str] | None) -> int:
    """Return the difference of the numbers in two names that are alike else, or 0."""
    if first is None or second is None or first.group(1, 3) != second.group(1, 3):
        return 0
    return int(second[2]) - int(first[2])
