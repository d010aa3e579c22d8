"""First derivatives of a problem at a point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from casadi_hybrid.utils.inputs import Vector


@dataclass(frozen=True, slots=True)
class Linearization:
    """Unscaled first derivatives at one point.

    Attributes:
        x: the point.
        gradient: ∇f(x), n numbers.
        J: J_g(x), m×n, dense or :class:`~casadi_hybrid.utils.linear_algebra.sparse.Sparse`.
    """

    x: Vector
    gradient: Vector
    J: Any
