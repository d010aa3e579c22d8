"""Terms of an optimal control problem: costs, constraints, soft limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.control.model.signals import Array
from casadi_hybrid.utils.errors import InputError

AT = ("points", "ends", "inside", "intervals")
# Difference of equal times, in intervals.
SAME = 1e-9
# Name of the penalty of soft limits among the costs of a solution.
SOFT = "soft limits"


@dataclass(frozen=True)
class Cost:
    """A named cost: ∫ integral dt + Σ_{k<N} sum(k) + start(0) + end(N), scalar expressions."""

    name: str
    integral: Any = 0
    sum: Any = 0
    start: Any = 0
    end: Any = 0


@dataclass(frozen=True)
class Soft:
    """Penalty of a violation s ≥ 0 of a limit: linear·s + quadratic·s², one s an entry and point.

    The penalty is a sum over all points at which the limit holds, no integral: it grows with their
    number. If ``linear`` exceeds the multipliers of the hard limit, the penalty is exact: the limit
    holds if a feasible point exists.

    Attributes:
        linear, quadratic: weights.
        most: the largest violation.
        scaled: True if all three are of s divided by the scale of its entry.

    Source: E. C. Kerrigan, J. M. Maciejowski, "Soft constraints and exact penalty functions in
    model predictive control", UKACC Control 2000.
    """

    linear: float = 0.0
    quadratic: float = 0.0
    most: float = np.inf
    scaled: bool = False

    def __post_init__(self) -> None:
        if not (self.linear >= 0 and self.quadratic >= 0 and self.linear + self.quadratic > 0):
            raise InputError(
                "a soft limit takes weights linear >= 0 and quadratic >= 0, not both 0; got "
                f"{self.linear!r} and {self.quadratic!r}"
            )
        if not self.most > 0:
            raise InputError(f"most must be a positive number, got {self.most!r}")

    @classmethod
    def of(cls, price: Any, what: str) -> Soft | None:
        """Return a penalty from a :class:`Soft`, a linear weight, or None."""
        if price is None or isinstance(price, Soft):
            return price
        try:
            if isinstance(price, bool):
                raise TypeError  # True is no weight
            return cls(linear=float(price))
        except (TypeError, ValueError):
            raise InputError(
                f"{what} must be a Soft(…), a positive linear weight or None, got {price!r}"
            ) from None


@dataclass(frozen=True)
class Constraint:
    """lower ≤ expression ≤ upper at the start, at the end or along the path.

    Attributes:
        name: of the constraint.
        place: ``start``, ``path`` or ``end``.
        expression: a column.
        lower, upper, scale: one an entry.
        soft: the penalty of a violation; None for a hard limit.
        at: points of a path. ``inside``: the grid points, the points of a collocation, the
            ``inner`` points of the method, and the end of an interval if held controls make a
            second value there. ``points``: the grid points 0 … N alone. ``ends``: both ends of each
            interval, with its held control. ``intervals``: the beginning of each interval.
            ``unknowns``, for limits of an algebraic state: the points at which it is an unknown.
        unit: of the expression, for messages.
        less: True if a limit that is an expression has been subtracted, so that zero limits it.
        of: the quantity whose declared limits the constraint softens; empty for others.
    """

    name: str
    place: str
    expression: Any
    lower: Array
    upper: Array
    scale: Array
    soft: Soft | None = None
    at: str = "inside"
    unit: str = ""
    less: bool = False
    of: str = ""

    @property
    def quantity(self) -> str:
        """Name in reports: the quantity with softened limits, else the constraint's name."""
        return self.of or self.name
