"""What the look-ahead iteration carries besides (x, π), and when it changes its mode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from casadi_hybrid.basics.arrays import changed
from casadi_hybrid.iterations.rules.spectra import Jacobian

# Steps in which ‖h‖ has to halve, and the part of ‖h‖ a step must promise not to count.
_PATIENCE, _PROMISING = 6, 0.5
# In the reduction of the violation: steps in which ‖h‖ has to fall by a ten-thousandth.
_LONG_PATIENCE, _HARDLY = 12, 1e-4
_RAISE = 10.0  # ν⁺ = 10ν
_DEEP = 0.1  # what a reduction that patience has ended for has to leave of ‖h‖


@dataclass(frozen=True)
class Safeguards:
    """What the iteration carries besides (x, π).

    Attributes:
        radius: Δ.
        penalty: ν of the exact penalty f + ν‖h‖₂.
        jacobian: B at x with its decomposition.
        patience: steps left in which ‖h‖ has to fall below ``mark``.
        mark: half of ‖h‖ when the patience was last renewed.
        promised: part of ‖h‖ that the linear model of the last step removed.
        error: least KKT error for which a step was accepted.
        raised: whether ν was already raised for want of progress since then.
        goal: ‖h‖ at which the reduction of the violation ends; None while it is not under way.
        reach: its own trust-region radius, in units of ‖h‖; None before its first step.
        escapes, saddles: how often a stationary violation, and a KKT point with negative
            curvature, were left.
    """

    radius: float
    penalty: float
    jacobian: Jacobian
    patience: int = _PATIENCE
    mark: float = np.inf
    promised: float = 0.0
    error: float = np.inf
    raised: bool = False
    goal: float | None = None
    reach: float | None = None
    escapes: int = 0
    saddles: int = 0

    def watched(self, h_norm: float, tol: float) -> Safeguards:
        """Raise ν, then turn to the violation alone, where ‖h‖ does not halve in six steps.

        The exact penalty has minimizers with h ≠ 0 while ν is too small, and a ratio test alone
        would settle there. Steps whose model removes most of ‖h‖ do not count: what is left
        then is the curvature of h along a long step, and a larger ν would only shorten the steps.
        """
        if h_norm <= max(self.mark, tol):
            return changed(self, patience=_PATIENCE, mark=0.5 * h_norm, raised=False)
        if self.promised > _PROMISING:
            return self
        if self.patience > 0:
            return changed(self, patience=self.patience - 1)
        if not self.raised and self.jacobian.rank < self.jacobian.n:
            return changed(self, penalty=_RAISE * self.penalty, patience=_PATIENCE, raised=True)
        return self.reducing(_DEEP * h_norm)

    def reducing(self, goal: float) -> Safeguards:
        """Turn to the violation alone until ‖h‖ ≤ goal, or go on with it."""
        return changed(self, goal=goal, mark=np.inf if self.goal is None else self.mark)

    def slowed(self, h_norm: float) -> Safeguards:
        """Count the steps of the reduction in which ‖h‖ hardly moves."""
        if h_norm <= (1.0 - _HARDLY) * self.mark:
            return changed(self, mark=h_norm, patience=_LONG_PATIENCE)
        return changed(self, patience=self.patience - 1)
