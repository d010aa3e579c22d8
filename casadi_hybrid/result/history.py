"""The recorded iterations of a solve, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.errors import InputError, suggest
from casadi_hybrid.iterations.law import Correction
from casadi_hybrid.iterations.stopping import Progress

if TYPE_CHECKING:
    from casadi_hybrid.iterations.rules.design import Design

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Course:
    """Objective and residuals of every iterate, for plots of convergence.

    Attributes:
        t: iteration numbers.
        f, feasibility, stationarity: objective and unscaled residuals, one an iterate.
        elapsed: seconds since the start.
        complementarity: the third residual under the default method, else None.
        nu: the barrier parameter ν (of the scaled problem) under the default method; 0 of a
            solution that SQP has found.
        shift: the last shift of the Hessian under the default method, 0 before the first.
    """

    t: NDArray[np.intp]
    f: Array
    feasibility: Array
    stationarity: Array
    elapsed: Array
    complementarity: Array | None = None
    nu: Array | None = None
    shift: Array | None = None

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)


@dataclass(frozen=True, eq=False, kw_only=True)
class History(Course):
    """Every iterate, one row each; the step from row t used ``corrections[t]``.

    The methods for equations have t = 0 … T. The default method may take several steps from one
    row to the next, and go on from another start.

    Attributes:
        x: (T+1)×n.
        mu, multipliers, effective_multipliers: (T+1)×m; μ_t, π_t and ν_t.
        h: (T+1)×m, the constraint values.
        lam_x: (T+1)×n, the multipliers of the bounds on x; None for methods for equations.
        corrections: T corrections; None for methods without one.
    """

    x: Array
    mu: Array
    multipliers: Array
    effective_multipliers: Array
    h: Array
    corrections: tuple[Correction | None, ...]
    lam_x: Array | None = None

    def design(self, name: str) -> Array:
        """Return one field of the recorded designs, an array of T values, NaN without a design.

        Args:
            name: ``"eta_x"``, ``"eta_d"``, ``"alpha"``, ``"theta"``, ``"a_x"``, ``"a_d"``,
                ``"min_eig_A"`` or ``"norm_M"``.
        """
        known = {item.name for item in fields(_design())}
        if name not in known:
            raise InputError(f"unknown field {name!r} of a design{suggest(name, known)}")
        values = [getattr(c, name, np.nan) for c in self.corrections]
        return np.array([v if np.ndim(v) == 0 else np.nan for v in values], dtype=np.float64)

    @property
    def active(self) -> tuple[str, ...]:
        """Restriction that limited η_x at each step, an empty text without a rule."""
        design = _design()
        return tuple(c.active if isinstance(c, design) else "" for c in self.corrections)


def _design() -> type[Design]:
    import casadi_hybrid.iterations.rules.design as home  # noqa: PLC0415 - of the paper's family alone

    return home.Design


@dataclass
class Recorder:
    """Observer that collects the rows of a :class:`History`, without Jacobian and Hessian."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, progress: Progress, **of_default: Any) -> None:
        """Record one row; the default method adds ``lam_x``, ``nu`` and ``shift``."""
        state, residuals = progress.state, progress.residuals
        row = {
            "t": progress.t, "x": state.x, "mu": state.mu, "multipliers": state.multipliers,
            "effective_multipliers": state.effective, "h": progress.g, "f": progress.f,
            "feasibility": residuals.feasibility, "stationarity": residuals.stationarity,
            "elapsed": progress.elapsed, "corrections": progress.correction, **of_default,
        }  # fmt: skip
        if of_default:
            row["complementarity"] = residuals.complementarity
        self.rows.append(row)

    def hold(self, until: int) -> None:
        """Repeat the last row for every step since then up to ``until``."""
        while self.rows and self.rows[-1]["t"] < until:
            self.rows.append({**self.rows[-1], "t": self.rows[-1]["t"] + 1})

    def history(self) -> History:
        """Return the collected rows."""
        columns: dict[str, Any] = {name: [row[name] for row in self.rows] for name in self.rows[0]}
        corrections = tuple(columns.pop("corrections")[1:])
        arrays = {name: np.array(column) for name, column in columns.items()}
        return History(**arrays, corrections=corrections)
