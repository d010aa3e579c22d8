"""Records of the iterates of a solve for the callback, the log and the statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.result.history import Course
from casadi_hybrid.result.view import View

# Kept per iteration for stats()["iterations"]; a name of CasADi has CasADi's meaning.
LISTED = (
    "iter", "obj", "inf_pr", "inf_du", "compl", "mu", "d_norm", "alpha_pr", "alpha_du",
    "regularization_size",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class IterationRecord:
    """One iterate, in the user's units. The arrays are copies.

    Attributes:
        iter: steps taken, from 0. A restart goes on counting, and its start has no record.
        obj: f(x).
        inf_pr: largest violation of a bound on x or g.
        inf_du: ‖∇f + J_gᵀλ_g + λ_x‖_∞.
        compl: largest |λ|·(distance to its bound).
        mu: barrier parameter ν (of the scaled problem).
        d_norm: ‖x − x of the record before‖_∞, after a restart from its start; 0 in the first.
        alpha_pr, alpha_du: step lengths of (x, slacks) and of the multipliers of bounds; 1 for a
            jump, NaN in restoration, 0 in the first.
        regularization_size: the last shift σ of the Hessian, 0 before the first.
        restoration: whether the violation alone is being reduced.
        x, g, lam_x, lam_g: the iterate, g(x) and the multipliers.
        elapsed: seconds since the start of the solve.
    """

    iter: int
    obj: float
    inf_pr: float
    inf_du: float
    compl: float
    mu: float
    d_norm: float
    alpha_pr: float
    alpha_du: float
    regularization_size: float
    restoration: bool
    x: Vector
    g: Vector
    lam_x: Vector
    lam_g: Vector
    elapsed: float


@dataclass
class Watch:
    """Observer of one solve: it records each iterate, logs it and calls the callback.

    Each call of a solver has its own: nothing is shared between threads.

    Args:
        callback: called with every record; it stops the solve by returning True.
        log: print every so many iterations; 0 prints nothing.

    Attributes:
        stop: whether the callback has asked to end the solve.
    """

    callback: Callable[[IterationRecord], bool | None] | None = None
    log: int = 0
    stop: bool = False
    _rows: list[tuple[Any, ...]] = field(default_factory=list)
    _times: list[float] = field(default_factory=list)
    _log: IterationLog | None = None
    _view: View | None = None

    @property
    def silent(self) -> bool:
        """True without a callback and a log: no iterate is shown before the solve has ended."""
        return self.callback is None and not self.log

    def see(self, view: View) -> bool:
        """Record an iterate, log it and call the callback; return its wish to end the solve.

        Steps on an active set count, but only their end is an iterate, and none if they fail: the
        iterate before is recorded again for each of them, with steps of length zero.
        """
        t, *numbers, elapsed = view.row
        self.hold(int(t) - 1, elapsed)
        self._view = view
        self._show((int(t), *numbers), elapsed)
        return self.stop

    def hold(self, until: int, elapsed: float | None = None) -> None:
        """Repeat the last iterate for every step since then up to ``until``."""
        while self._rows and self._rows[-1][0] < until:
            t = self._rows[-1][0] + 1
            row = {**self._last, "iter": t, "d_norm": 0.0, "alpha_pr": 0.0, "alpha_du": 0.0}
            self._show(tuple(row.values()), self._times[-1] if elapsed is None else elapsed)

    def take(self, rows: Sequence[Sequence[float]]) -> None:
        """Record rows of :data:`LISTED` and seconds without showing them."""
        for t, *numbers, elapsed in rows:
            self.hold(int(t) - 1, elapsed)
            self._show((int(t), *numbers), elapsed)

    def _show(self, row: tuple[Any, ...], elapsed: float) -> None:
        """Keep the row; log and hand on the record with its numbers."""
        self._rows.append(row)
        self._times.append(elapsed)
        if self._view is None or self.silent:
            return
        _, *arrays, restoring = self._view
        vectors: dict[str, Any] = dict(zip(("x", "g", "lam_x", "lam_g"), arrays, strict=True))
        record = IterationRecord(**self._last, restoration=restoring, **vectors, elapsed=elapsed)
        if self.log:
            self._log = self._log or IterationLog(every=self.log)
            self._log(record)
        if self.callback is not None and not self.stop:
            self.stop = self.callback(record) is True

    @property
    def _last(self) -> dict[str, Any]:
        return dict(zip(LISTED, self._rows[-1], strict=True))

    @property
    def lists(self) -> dict[str, list[Any]]:
        """Values of all iterates by the names of :data:`LISTED`."""
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(LISTED)
        return {name: list(column) for name, column in zip(LISTED, columns, strict=True)}

    def course(self) -> Course:
        """Return the residuals of all iterates as arrays."""
        table = np.array(self._rows, float).reshape(-1, len(LISTED)).T
        t, f, feasibility, stationarity, complementarity, nu, *_, shift = table
        return Course(
            t=t.astype(np.intp), f=f, feasibility=feasibility, stationarity=stationarity,
            complementarity=complementarity, nu=nu, shift=shift, elapsed=np.array(self._times),
        )  # fmt: skip


LEGEND = (
    "iter: steps; objective: f(x); inf_pr: largest violation of a bound on x or g;",
    "inf_du: |grad f + J'lam_g + lam_x|; compl: largest |lam|*(distance to its bound);",
    "mu: barrier parameter; |dx|: last step; shift: last shift of the Hessian;",
    "r: the violation alone is being reduced (restoration). All but mu in your units, max norms.",
)
HEADER = f"{'iter':>5}  {'objective':>15}" + "".join(
    f" {name:>9}" for name in ("inf_pr", "inf_du", "compl", "mu", "|dx|", "shift")
)


@dataclass
class IterationLog:
    """Printer of a line every ``every`` records, of a legend first, a header every 20 lines."""

    every: int = 1
    _lines: int = 0

    def __call__(self, record: IterationRecord) -> None:
        """Print the line of this record if it is due."""
        if record.iter % self.every:
            return
        lines = list(LEGEND) if self._lines == 0 else []
        if self._lines % 20 == 0:
            lines.append(HEADER)
        self._lines += 1
        shift = record.regularization_size or np.nan
        numbers = (record.inf_pr, record.inf_du, record.compl, record.mu, record.d_norm, shift)
        cells = [f"{record.iter:5d}{'r' if record.restoration else ' '}", f"{record.obj:15.7e}"]
        cells += [f"{v:9.2e}" if np.isfinite(v) else f"{'-':>9}" for v in numbers]
        print(*lines, " ".join(cells), sep="\n", flush=True)
