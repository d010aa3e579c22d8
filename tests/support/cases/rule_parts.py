"""Parts of a design rule as a user would write them, and histories of full length."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from casadi_hybrid.paper.rules import LocalModel
from casadi_hybrid.paper.rules.cancellations import Cancelled
from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.problem.point.residuals import Residuals
from casadi_hybrid.utils.inputs import Matrix


def at(H: Matrix, B: Matrix) -> Evaluation:
    """The evaluation that a rule reads: of H and B alone."""
    m, n = B.shape
    lost = np.full(m, np.nan)
    return Evaluation(np.full(n, np.nan), np.nan, np.full(n, np.nan), lost, B, H, lost)


class NoCancellation:
    """C_can = 0: only the residual metric corrects."""

    def cancel(self, model: LocalModel, delta: float) -> Cancelled:
        return Cancelled(np.zeros((model.m, model.m)), delta)


@dataclass(frozen=True)
class GivenStrength:
    """A fixed α, for any curvature."""

    value: float
    delta: float = 1e-3

    def alpha(self, model: LocalModel, R: Matrix, deficit: float) -> float:
        return self.value


def whole(result: Any, steps: int) -> Any:
    """x_t, π_t and μ_t for t = 0 … steps; a run that is exactly at the solution stays there."""
    run = result.history
    missing = steps + 1 - len(run.x)
    if not missing:
        return run
    assert result.residuals == Residuals(0.0, 0.0)
    names = ("x", "multipliers", "mu")
    pads = {n: np.concatenate((v := getattr(run, n), np.repeat(v[-1:], missing, 0))) for n in names}
    return SimpleNamespace(**pads)
