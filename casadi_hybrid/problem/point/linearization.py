"""First derivatives of a problem at a point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from casadi_hybrid.utils.inputs import Vector


@dataclass(frozen=True, slots=True)
class Linearization:
    """Unscaled first derivatives at one point."""

    x: Vector
    gradient: Vector  # ∇f(x), n numbers
    J: Any  # J_g(x), m×n, dense or Sparse
