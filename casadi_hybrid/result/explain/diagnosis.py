"""Facts about a solve that explain it: violations, where iterates run away, bad scaling, and names.

Each is computed from the arrays of an :class:`~casadi_hybrid.result.answer.Answer` when it is asked
for; a solve pays for none of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.sparse import general
from casadi_hybrid.problem.expressions import Label
from casadi_hybrid.result.answer import Answer

_LOW = 1e10  # f below minus this many times its size at the start falls apparently without bound
_AT_MOST = 6  # names in a sentence
_SPREAD = 1e6  # sizes further apart than this are bad scaling


@dataclass(frozen=True, slots=True)
class Violation:
    """One bound that the point violates; ``excess`` is negative below, positive above."""

    kind: str
    index: int
    name: str
    value: float
    lower: float
    upper: float
    excess: float

    def __str__(self) -> str:
        name, value, lower, upper = physical(self.name, self.value, self.lower, self.upper)
        _, size = physical(self.name, abs(self.excess), digits=3, zero=0.0)
        if self.lower == self.upper:
            off = "" if float(lower.split()[0]) == 0.0 else f" (off by {size})"
            return f"{name} should be {lower}, is {value}{off}"
        side, bound = ("below its lower", lower) if self.excess < 0 else ("above its upper", upper)
        return f"{name} = {value}, {side} bound {bound} by {size}"


def physical(name: str, *numbers: float, digits: int = 6, zero: float = 1.0) -> list[str]:
    """Return the bare name of a label, and numbers in its unit.

    ``zero`` is the weight of the label's origin, which a difference does not have.
    """
    label = name if isinstance(name, Label) else Label(name)
    values = (number * label.scale + zero * label.origin for number in numbers)
    return [label.bare, *(f"{value:.{digits}g} {label.unit}".rstrip() for value in values)]


def worst_violations(result: Answer, *, at_most: int = 5) -> tuple[Violation, ...]:
    """The bounds violated by more than the tolerance, the worst first."""
    b = result.bounds
    found: list[Violation] = []
    of_x, of_g = result.violations()
    for kind, names, values, excess, lower, upper in (
        ("g", result.constraint_names, result.g, of_g, b.lbg, b.ubg),
        ("x", result.variable_names, result.x, of_x, b.lbx, b.ubx),
    ):
        for i in map(int, np.flatnonzero(np.abs(excess) > result.tolerances.feasibility)):
            numbers = (float(v[i]) for v in (values, lower, upper, excess))
            found.append(Violation(kind, i, names[i], *numbers))
    found.sort(key=lambda one: -abs(one.excess))
    return tuple(found[:at_most])


@dataclass(frozen=True, slots=True)
class Ray:
    """The direction in which the iterates run away.

    Attributes:
        direction: of the last step, largest entry ±1.
        slope: ∇f(x)ᵀdirection.
        moving: (name, entry) of the variables that move most.
    """

    direction: Vector
    slope: float
    moving: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        along = ", ".join(f"{name} by {entry:+.3g}" for name, entry in self.moving)
        return f"per unit of the ray {along}; f changes by {self.slope:.3g}"


def last_direction(result: Answer) -> Ray | None:
    """The direction of the last step and the slope of f along it; None without a step."""
    if result.step is None or result.end is None:
        return None
    d = result.step / np.abs(result.step).max()
    order = [int(i) for i in np.argsort(-np.abs(d), kind="stable")[:_AT_MOST] if abs(d[i]) > 1e-3]
    moving = tuple((result.variable_names[i], float(d[i])) for i in order)
    return Ray(d, float(result.end.gradient @ d), moving)


def fall(result: Answer) -> float | None:
    """f at a feasible point where it lies below −1e10·max(1, |f(x0)|); None where it never did.

    It is that of the returned point, or else the least of all iterates, where they were recorded.
    Far out a violation counts as rounding up to 1e-12·|f|, and up to 1e-2 at most.
    """
    f, violation = np.array([result.f]), np.array([result.residuals.feasibility])
    first = 0.0
    course = result.history
    if course is not None and course.f.size:
        first = float(course.f[0])
        f, violation = np.append(f, course.f), np.append(violation, course.feasibility)
    rounding = np.minimum(1e-12 * np.abs(f), 1e-2)
    feasible = violation <= np.maximum(result.tolerances.feasibility, rounding)
    low = feasible & (f < -_LOW * max(1.0, abs(first)))
    if not low.any():
        return None
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
    """Where rows, or derivatives by variables, differ in size by more than 1e6.

    A size is the larger of those at the start and at the returned point, so that a derivative
    that vanishes at one of them does not count. Nor do rows without a bound and fixed variables.
    """
    points = [at for at in (result.start, result.end) if at is not None]
    if not points:
        return ()
    b = result.bounds
    free = np.flatnonzero(b.lbx < b.ubx)
    bounded = np.flatnonzero(np.isfinite(b.lbg) | np.isfinite(b.ubg))
    blocks = [abs(sp.csr_array(general(at.J)))[bounded][:, free] for at in points]
    of_f = np.max([np.abs(at.gradient[free]) for at in points], axis=0)
    of_rows = np.max([_maxima(J, 1) for J in blocks], axis=0)
    of_columns = np.max([of_f, *(_maxima(J, 0) for J in blocks)], axis=0)
    rows = [result.constraint_names[i] for i in bounded]
    columns = [result.variable_names[i] for i in free]
    kinds = [
        ("the largest derivatives of the constraints", of_rows, rows,
         "divide each such constraint and its bounds by its size"),
        ("the largest derivatives by the variables", of_columns, columns,
         "measure each such variable in a unit near its usual size"),
        ("the derivatives of f", of_f, columns,
         "measure the variables in units in which f is equally sensitive to them"),
    ]  # fmt: skip
    size = np.max([np.abs(at.x[free]) for at in points], axis=0)
    if size.max(initial=0.0) > _SPREAD:
        # (entries near zero are zeros found to rounding)
        advice = "measure them in units in which they are near one"
        kinds.append(("the entries of x", np.where(size > 1e-9, size, 0.0), columns, advice))
    found = []
    for what, sizes, names, advice in kinds:
        seen = np.flatnonzero(sizes > 0.0)
        if seen.size and sizes[seen].max() > _SPREAD * sizes[seen].min():
            ends = (seen[pick(sizes[seen])] for pick in (np.argmin, np.argmax))
            low, high = ((names[i], float(sizes[i])) for i in ends)
            found.append(Spread(what, low, high, advice))
    return tuple(found)


def constant_constraints(result: Answer) -> tuple[str, ...]:
    """Names of the bounded rows with no derivative by a free variable, at the start and the end."""
    b = result.bounds
    constant = np.isfinite(b.lbg) | np.isfinite(b.ubg)
    for at in (result.start, result.end):
        if at is not None:
            J = sp.csr_array(general(at.J))[:, np.flatnonzero(b.lbx < b.ubx)]
            constant &= _maxima(abs(J), 1) == 0.0
    return tuple(result.constraint_names[i] for i in np.flatnonzero(constant))


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
    said: list[str] = []
    k = 0
    while k < len(names):
        last, step = k, 0
        while last + 1 < len(names):
            by = _step(numbered[last], numbered[last + 1])
            if by <= 0 or (step and by != step):
                break
            last, step = last + 1, by
        if last - k < (2 if step == 1 else 3):
            said.append(names[k])
            k += 1
            continue
        dots = " … " if step == 1 else f", {names[k + 1]}, …, "
        said.append(f"{names[k]}{dots}{names[last]}")
        k = last + 1
    if len(said) <= _AT_MOST:
        return ", ".join(said)
    if all(_step(a, b) > 0 for a, b in pairwise(numbered)):
        return f"some of {names[0]} … {names[-1]}"
    return f"{', '.join(said[:_AT_MOST])} and {len(said) - _AT_MOST} more"


def _step(here: re.Match[str] | None, then: re.Match[str] | None) -> int:
    """How much the number of one name is above that of another; 0 where they have none."""
    if here is None or then is None or here.group(1, 3) != then.group(1, 3):
        return 0
    return int(then[2]) - int(here[2])
