"""Facts about a solve that explain it: what is violated, and where the iterates run away.

Like those of :mod:`~casadi_hybrid.result.explain.dependence` and
:mod:`~casadi_hybrid.result.explain.scaling`, each is computed from the arrays of an
:class:`~casadi_hybrid.result.answer.Answer` when it is asked for; a solve pays for none of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.result.answer import Answer

_LOW = 1e10  # f below minus this many times its size at the start falls apparently without bound
_AT_MOST = 6  # names in a sentence


@dataclass(frozen=True, slots=True)
class Violation:
    """One bound that the point violates.

    Attributes:
        kind, index, name: ``"g"`` or ``"x"``, the entry, and its name.
        value: of the entry.
        lower, upper: its bounds.
        excess: negative below the lower bound, positive above the upper.
    """

    kind: str
    index: int
    name: str
    value: float
    lower: float
    upper: float
    excess: float

    def __str__(self) -> str:
        size = f"{abs(self.excess):.3g}"
        if self.lower == self.upper:
            off = f" (off by {size})" if self.lower else ""
            return f"{self.name} should be {self.lower + 0.0:.6g}, is {self.value:.6g}{off}"
        low = self.excess < 0
        side, bound = ("below its lower", self.lower) if low else ("above its upper", self.upper)
        return f"{self.name} = {self.value:.6g}, {side} bound {bound:.6g} by {size}"


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


def fixed_variables(result: Answer) -> tuple[str, ...]:
    """Names of the variables whose bounds are equal."""
    fixed = np.flatnonzero(result.bounds.lbx == result.bounds.ubx)
    return tuple(result.variable_names[i] for i in fixed)


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
