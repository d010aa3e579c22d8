"""An aligned iteration log."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from casadi_hybrid.paper.iterations.stopping import IterationProgress
from casadi_hybrid.paper.rules.design import Design

COLUMNS = (
    ("iter", 6),
    ("objective", 14),
    ("feas", 9),
    ("stat", 9),
    ("|dx|", 9),
    ("eta_x", 9),
    ("eta_d", 9),
    ("||M||", 9),
    ("limit", 8),
)
HEADER = " ".join(f"{name:>{width}}" for name, width in COLUMNS)


def _write(line: str) -> None:
    print(line, file=sys.stdout, flush=True)


@dataclass
class IterationLog:
    """Prints one line every ``every`` iterations and repeats the header every 20 lines.

    feas = ‖h‖_∞, stat = ‖∇f + J_hᵀλ‖_∞, |dx| = ‖x_t − x_{t−1}‖₂; η_x, η_d, ‖M‖ and what limited
    η_x belong to the step that led to the line.
    """

    every: int = 1
    write: Callable[[str], None] = _write
    _lines: int = 0
    _x: Any = field(default=None, repr=False)

    def __call__(self, progress: IterationProgress) -> None:
        """Print the line of this iterate where one is due."""
        state, correction = progress.state, progress.correction
        moved = np.nan if self._x is None else float(np.linalg.norm(state.x - self._x))
        self._x = state.x
        if state.t % self.every:
            return
        if self._lines % 20 == 0:
            self.write(HEADER)
        self._lines += 1
        numbers = [progress.residuals.feasibility, progress.residuals.stationarity, moved]
        for name in ("eta_x", "eta_d", "norm_M"):
            value = getattr(correction, name, np.nan)
            numbers.append(value if np.ndim(value) == 0 else float(np.linalg.norm(value, 2)))
        cells = [f"{state.t:6d}", f"{progress.at.f:14.6e}"]
        cells += [f"{v:9.2e}" if np.isfinite(v) else f"{'-':>9}" for v in numbers]
        cells.append(f"{correction.active if isinstance(correction, Design) else '-':>8}")
        self.write(" ".join(cells))
