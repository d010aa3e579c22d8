"""Terms of an optimal control problem: costs, constraints, soft limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.control.model.signals import Array
from casadi_hybrid.utils.errors import InputError

AT = ("points", "ends", "inside", "intervals")
SAME = 1e-9
"""Part of an interval by which times may differ and still be the same."""
SOFT = "soft limits"
"""Name of the price of soft limits among the costs of a solution."""


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
    """Price of a violation s ≥ 0 of a limit: linear·s + quadratic·s², one s an entry and point.

    A sum over all points at which the limit holds, no integral: a mesh or method with more of them
    makes it dearer. Where ``linear`` is above the multipliers that the hard limit would have, the
    limit holds whenever it can.

    Attributes:
        linear, quadratic: weights.
        most: the largest violation.
        scaled: whether all three are of s divided by the scale of its entry.

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
        """Return a price as it may be given: one of these, a linear weight, or None."""
        if price is None or isinstance(price, Soft):
            return price
        try:
            if isinstance(price, bool):
                raise TypeError  # says no price
            return cls(linear=float(price))
        except (TypeError, ValueError):
            raise InputError(
                f"{what} must be a Soft(…), a positive linear weight or None, got {price!r}"
            ) from None


@dataclass(frozen=True)
class Constraint:
    """lower ≤ expression ≤ upper at the start, at the end or along the path.

    Attributes:
        name: of it.
        place: ``start``, ``path`` or ``end``.
        expression: a column.
        lower, upper, scale: one an entry.
        soft: the price of a violation; None for a hard limit.
        at: of a path: ``inside``, at the grid points, at the points of a collocation and the
            ``inner`` points of the method, and at the end of an interval where held controls make
            a second value; at all grid ``points`` 0 … N alone; or at both ``ends`` of each interval
            (with the control that is held on it); or once for each of the ``intervals``, at its
            beginning. That of an algebraic state's own limits: where it is among the ``unknowns``.
        unit: of the expression, for messages.
        less: whether a limit that is an expression has been subtracted, so that zero limits it.
        of: the quantity whose declared limits it softens; empty for a constraint of its own.
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
        """Name in reports: the quantity whose limits it softens, else its own."""
        return self.of or self.name
