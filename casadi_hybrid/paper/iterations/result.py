"""Result, history and log of an iteration, with the dual variables of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from casadi_hybrid.paper.iterations.stopping import IterationProgress
from casadi_hybrid.paper.law import Correction
from casadi_hybrid.paper.rules.design import Design
from casadi_hybrid.solver.record.history import Array, History, Recorder
from casadi_hybrid.solver.result import Result
from casadi_hybrid.utils.errors import InputError, suggest
from casadi_hybrid.utils.inputs import Vector

_COLUMNS = {"feas": 9, "stat": 9, "|dx|": 9, "eta_x": 9, "eta_d": 9, "||M||": 9, "limit": 8}


@dataclass(frozen=True, eq=False, kw_only=True)
class IterationResult(Result):
    """The result of an iteration: the iterate with the least KKT merit.

    ``lam_g`` is π, the memory-free multipliers, the same for every split. At a solution lam_g, μ
    and ν agree.

    Attributes:
        mu: μ, the paper's dual variable at x, which depends on the split.
        effective_multipliers: ν, the paper's effective dual.
    """

    for_bounds: ClassVar[bool] = False

    mu: Vector
    effective_multipliers: Vector


@dataclass(frozen=True, eq=False, kw_only=True)
class IterationHistory(History):
    """One row an iterate, t = 0 … T; ``corrections[t]`` is the correction of the step from row t.

    Attributes:
        mu, effective_multipliers: (T+1)×m; μ_t and ν_t. ``multipliers`` are π_t.
        corrections: T corrections; None for methods without one.
    """

    mu: Array
    effective_multipliers: Array
    corrections: tuple[Correction | None, ...]

    def design(self, name: str) -> Array:
        """One field of the recorded designs as an array of T numbers, NaN without a design.

        Args:
            name: ``"eta_x"``, ``"eta_d"``, ``"alpha"``, ``"theta"``, ``"a_x"``, ``"a_d"``,
                ``"min_eig_A"`` or ``"norm_M"``.
        """
        known = {item.name for item in fields(Design)}
        if name not in known:
            raise InputError(f"unknown field {name!r} of a design{suggest(name, known)}")
        values = [getattr(c, name, np.nan) for c in self.corrections]
        return np.array([v if np.ndim(v) == 0 else np.nan for v in values], dtype=np.float64)

    @property
    def active(self) -> tuple[str, ...]:
        """Restriction that limited η_x at each step (empty text without a design)."""
        return tuple(c.active if isinstance(c, Design) else "" for c in self.corrections)

    def further(self) -> Mapping[str, Array]:
        """Steps and strength of the designed corrections; empty without a design."""
        if not any(np.isfinite(self.design("alpha"))):
            return {}
        names = {"step η_x": "eta_x", "step η_d": "eta_d", "‖M‖₂": "norm_M"}
        return {label: self.design(name) for label, name in names.items()}


class IterationRecorder(Recorder):
    """Collects the rows of an :class:`IterationHistory`."""

    def __init__(self) -> None:
        super().__init__()
        self._corrections: list[Correction | None] = []

    def see(self, progress: IterationProgress) -> None:
        """Take one row."""
        state = progress.state
        self.take(progress, mu=state.mu, effective_multipliers=state.effective)
        self._corrections.append(progress.correction)

    def history(self) -> IterationHistory:
        """Return the collected rows."""
        # Row t has the correction that led to it; the history is by the step that leaves t.
        return IterationHistory(**self.columns(), corrections=tuple(self._corrections[1:]))


class IterationLog:
    """Prints one line every ``every`` iterations and repeats the header every 20 lines."""

    def __init__(self, every: int) -> None:
        self._every, self._lines = every, 0
        self._x: Vector | None = None

    def see(self, progress: IterationProgress) -> None:
        """Print the line of this iterate if one is due."""
        correction, residuals = progress.correction, progress.residuals
        step = np.nan if self._x is None else float(np.linalg.norm(progress.x - self._x))
        self._x = progress.x
        if progress.t % self._every:
            return
        if self._lines % 20 == 0:
            names = (f"{name:>{width}}" for name, width in _COLUMNS.items())
            print(f"{'iter':>6} {'objective':>14}", *names, flush=True)
        self._lines += 1
        # ‖h‖_∞, ‖∇f + J_hᵀλ‖_∞, ‖x_t − x_{t−1}‖₂; the design is of the step that led here.
        values = [residuals.feasibility, residuals.stationarity, step]
        for name in ("eta_x", "eta_d", "norm_M"):
            value = getattr(correction, name, np.nan)
            values.append(value if np.ndim(value) == 0 else float(np.linalg.norm(value, 2)))
        cells = [f"{v:9.2e}" if np.isfinite(v) else f"{'-':>9}" for v in values]
        limit = correction.active if isinstance(correction, Design) else "-"
        print(f"{progress.t:6d} {progress.f:14.6e}", *cells, f"{limit:>8}", flush=True)
