"""Rules that follow the user: constant channels and steps, or a schedule of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from casadi_hybrid.basics.inputs import Matrix, as_matrix, positive
from casadi_hybrid.law import Correction
from casadi_hybrid.problem.functions import Evaluation


@dataclass(frozen=True, eq=False)
class ConstantRule:
    """ALG(C, Ω) of the paper: constant matrices and constant steps.

    Args:
        C: augmented channel, m×m, or a number c for cI.
        Omega: optimistic channel, m×m, or a number ω for ωI.
        eta_x: primal step η_x > 0, or a primal metric P, n×n.
        eta_d: dual step η_d > 0, or a dual metric D, m×m.
    """

    C: Any = 0.0
    Omega: Any = 0.0
    eta_x: Any = 0.01
    eta_d: Any = 0.01

    needs_hessian = False

    def __post_init__(self) -> None:
        for name in ("eta_x", "eta_d"):
            if np.ndim(getattr(self, name)) == 0:
                positive(getattr(self, name), name)

    def decide(self, at: Evaluation, t: int) -> Correction:
        """Return the constant correction, checked against the shape of B."""
        return _checked(self, *at.B.shape)


@lru_cache(maxsize=16)
def _checked(rule: ConstantRule, m: int, n: int) -> Correction:
    """The correction of a rule for one shape, checked once: a check costs as much as a step."""

    def step(name: str, size: int) -> float | Matrix:
        value = getattr(rule, name)
        return float(value) if np.ndim(value) == 0 else as_matrix(value, (size, size), name)

    return Correction(
        as_matrix(rule.C, (m, m), "C"),
        as_matrix(rule.Omega, (m, m), "Omega"),
        step("eta_x", n),
        step("eta_d", m),
    )


@dataclass(frozen=True)
class ScheduleRule:
    """A correction of its own for each iteration: ``schedule(at, t)`` for t = 0, 1, 2, ….

    Args:
        schedule: receives the problem's functions at x_t and the iteration t. The trajectory is
            independent of the split as long as M_t and the steps depend on split-invariant data.
        needs_hessian: whether ``at.hessian`` is needed.
    """

    schedule: Callable[[Evaluation, int], Correction]
    needs_hessian: bool = False

    def decide(self, at: Evaluation, t: int) -> Correction:
        """Return the correction of iteration t."""
        return self.schedule(at, t)
