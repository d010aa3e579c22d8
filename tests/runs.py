"""Histories of runs without tolerance, as long as they were to be."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from casadi_hybrid.point.residuals import Residuals


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
