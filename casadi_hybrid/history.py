"""What happened, iteration by iteration, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.law import Correction
from casadi_hybrid.rules.design import Design
from casadi_hybrid.stopping import Progress

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class History:
    """One row an iterate, t = 0 … T; ``corrections[t]`` is what the step from x_t used.

    Attributes:
        x: (T+1)×n.
        mu, multipliers, effective_multipliers: (T+1)×m; μ_t, π_t and ν_t.
        f, feasibility, stationarity, elapsed: T+1 numbers each; elapsed in seconds.
        corrections: T corrections; None for methods without one.
    """

    x: Array
    mu: Array
    multipliers: Array
    effective_multipliers: Array
    f: Array
    feasibility: Array
    stationarity: Array
    elapsed: Array
    corrections: tuple[Correction | None, ...]

    def design(self, name: str) -> Array:
        """One field of the recorded designs as an array of T numbers, NaN where there is none.

        Args:
            name: ``"eta_x"``, ``"eta_d"``, ``"alpha"``, ``"theta"``, ``"a_x"``, ``"a_d"``,
                ``"min_eig_A"`` or ``"norm_M"``.
        """
        values = [getattr(c, name, np.nan) for c in self.corrections]
        return np.array([v if np.ndim(v) == 0 else np.nan for v in values], dtype=np.float64)

    @property
    def active(self) -> tuple[str, ...]:
        """Which restriction limited η_x at each step (empty text where no rule decided)."""
        return tuple(c.active if isinstance(c, Design) else "" for c in self.corrections)


@dataclass
class Recorder:
    """Collects the rows of a :class:`History`."""

    rows: list[Progress] = field(default_factory=list)

    def __call__(self, progress: Progress) -> None:
        """Take one row."""
        self.rows.append(progress)

    def history(self) -> History:
        """Return what was collected."""
        rows = self.rows

        def column(values: list[float]) -> Array:
            return np.array(values, dtype=np.float64)

        return History(
            x=np.array([r.state.x for r in rows]),
            mu=np.array([r.state.mu for r in rows]),
            multipliers=np.array([r.state.multipliers for r in rows]),
            effective_multipliers=np.array([r.state.effective for r in rows]),
            f=column([r.at.f for r in rows]),
            feasibility=column([r.residuals.feasibility for r in rows]),
            stationarity=column([r.residuals.stationarity for r in rows]),
            elapsed=column([r.elapsed for r in rows]),
            corrections=tuple(r.correction for r in rows[1:]),
        )
