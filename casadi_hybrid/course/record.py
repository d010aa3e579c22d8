"""What one iteration of a nonlinear program shows to a callback, the log and the statistics."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from casadi_hybrid.basics.arrays import largest
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.course.history import Course
from casadi_hybrid.course.rows import LISTED, held, lists_of, take
from casadi_hybrid.law import State
from casadi_hybrid.point.kkt import met_far_out
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.stopping import Progress


@dataclass(frozen=True, eq=False)
class IterationRecord:
    """One iterate, in the user's units. The arrays are copies.

    Attributes:
        iter: steps taken, from 0. Another attempt from another start goes on counting, and its
            start, which is no step, has no record.
        obj: f(x).
        inf_pr: largest violation of a bound on x or g.
        inf_du: ‖∇f + J_gᵀλ_g + λ_x‖_∞.
        compl: largest |λ|·(distance to its bound).
        mu: barrier parameter ν (of the scaled problem).
        d_norm: ‖x − x of the record before‖_∞, of another attempt's start where one began; 0 in
            the first.
        alpha_pr, alpha_du: the parts of the last Newton step that (x, slacks) and the multipliers
            of bounds took; 1 for a jump, NaN where the violation alone is being reduced, 0 in the
            first.
        regularization_size: the last shift σ of the Hessian that was needed, 0 if none ever was.
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
    """Turns each progress of a solve into a record, hands it on, and remembers its numbers.

    One per call of a solver: nothing is shared between threads.

    Args:
        bounds: of the solve.
        callback: called with every record; it stops the solve by returning True.
        log: print every so many iterations; 0 prints nothing.
        divergence: ‖x‖_∞ and −f beyond which the solve is given up.
    """

    bounds: Bounds
    callback: Callable[[IterationRecord], bool | None] | None = None
    log: int = 0
    divergence: float = np.inf
    _rows: list[tuple[Any, ...]] = field(default_factory=list)
    _times: list[float] = field(default_factory=list)
    x_before: Vector | None = None
    _stop: bool = False
    _began: float = field(default_factory=time.perf_counter)
    _log: IterationLog | None = None
    _shown: IterationRecord | None = None

    def observe(
        self, progress: Progress, multipliers: Callable[[State], tuple[Vector, Vector]]
    ) -> None:
        """Record the iterate, log it and ask the callback; multipliers gives (lam_x, lam_g).

        Steps on an active set count, but only their end is an iterate, and where they lead nowhere
        none is: the iterate before is recorded again for each of them, with steps of length zero.
        """
        if self._is_restart(progress):
            return
        self.hold(progress.t - 1)
        row = self._row(progress)
        if not self.log and self.callback is None:
            self._show(row, None)
            return
        lam_x, lam_g = multipliers(progress.state)
        carry = progress.state.carry
        self._shown = IterationRecord(
            **dict(zip(LISTED, row, strict=True)),
            restoration=carry.restoration is not None,
            x=progress.state.x.copy(),
            g=carry.at.raw_g.copy(),
            lam_x=lam_x.copy(),
            lam_g=lam_g.copy(),
            elapsed=0.0,
        )
        self._show(row, self._shown)

    def hold(self, until: int) -> None:
        """Record the last iterate again for the steps since then, as far as step ``until``."""
        while self._rows and self._rows[-1][0] < until:
            self._show(held(self._rows[-1]), self._shown)

    @property
    def silent(self) -> bool:
        """Whether nobody is told of an iterate before the solve has ended."""
        return self.callback is None and not self.log

    def jump(self, row: tuple[Any, ...], until: int | None) -> None:
        """Record an iterate by its numbers in the order of :data:`LISTED`.

        The one before is recorded again for the steps as far as ``until``.
        """
        if until is not None:
            self.hold(until)
        self._show(row, None)

    def now(self) -> float:
        """Seconds since the first use."""
        return time.perf_counter() - self._began

    def take(self, rows: Sequence[Sequence[float]], before: int, began: float) -> None:
        """Record iterates of one attempt by their numbers, :data:`LISTED` and the seconds.

        Args:
            rows: their numbers, the steps and the seconds counted in the attempt.
            before: steps taken in earlier attempts.
            began: :meth:`now` at the attempt's start.
        """
        take(rows, self._rows, self._times, before, began)

    def drop(self, since: int) -> None:
        """Forget the iterates from step ``since`` on, which will be seen again."""
        while self._rows and self._rows[-1][0] >= since:
            self._rows.pop()
            self._times.pop()

    def _show(self, row: tuple[Any, ...], record: IterationRecord | None) -> None:
        """Keep the row; log and hand on the record with its numbers."""
        self._rows.append(row)
        elapsed = time.perf_counter() - self._began
        self._times.append(elapsed)
        if record is None:
            return
        record = replace(record, **dict(zip(LISTED, row, strict=True)), elapsed=elapsed)
        if self.log:
            self._log = self._log or IterationLog(every=self.log)
            self._log(record)
        if self.callback is not None:
            self._stop = self.callback(record) is True or self._stop

    def test(self, progress: Progress) -> StopReason | None:
        """Stop where the callback has asked for it, or where the iterates have gone to infinity."""
        if self._stop:
            return StopReason.STOPPED_BY_USER
        at = progress.state.carry.at
        low = at.raw_f < -self.divergence
        if low and met_far_out(self.bounds, at.x, at.raw_g, at.raw_J):
            return StopReason.UNBOUNDED
        return StopReason.DIVERGED if at.reach > self.divergence else None

    @property
    def lists(self) -> dict[str, list[Any]]:
        """The numbers of all iterates by the names of :data:`LISTED`."""
        return lists_of(self._rows)

    def course(self) -> Course:
        """The residuals of all iterates as arrays."""
        table = np.array(self._rows, float).reshape(-1, len(LISTED)).T
        t, f, feasibility, stationarity, complementarity, nu, *_, shift = table
        return Course(
            t=t.astype(np.intp), f=f, feasibility=feasibility, stationarity=stationarity,
            complementarity=complementarity, nu=nu, shift=shift, elapsed=np.array(self._times),
        )  # fmt: skip

    def _column(self, name: str) -> list[Any]:
        k = LISTED.index(name)
        return [row[k] for row in self._rows]

    def _is_restart(self, progress: Progress) -> bool:
        """Whether this is the start of another attempt, after iterates of those before."""
        if progress.state.t:
            return False
        self.x_before = progress.state.x
        return bool(self._rows) and progress.t == self._rows[-1][0]

    def _row(self, progress: Progress) -> tuple[Any, ...]:
        """The numbers of :data:`LISTED`."""
        state, residuals = progress.state, progress.residuals
        moved = 0.0 if self.x_before is None else largest(state.x - self.x_before)
        self.x_before = state.x
        carry = state.carry
        alpha_pr = alpha_du = 1.0 if self._rows else 0.0
        if carry.restoration is not None:
            alpha_pr = alpha_du = np.nan
        elif carry.taken is not None and carry.taken[0] is carry.at:
            _, alpha_pr, alpha_du = carry.taken
        return (
            progress.t,
            carry.at.raw_f,
            residuals.feasibility,
            residuals.stationarity,
            residuals.complementarity,
            nu_of(progress),
            moved,
            alpha_pr,
            alpha_du,
            carry.shift,
        )


def nu_of(progress: Progress) -> float:
    """ν of an iterate of the default method, 0 after a step on an active set."""
    carry = progress.state.carry
    return 0.0 if carry.crossed is carry.at else float(carry.nu)


LEGEND = (
    "iter: steps; objective: f(x); inf_pr: largest violation of a bound on x or g;",
    "inf_du: |grad f + J'lam_g + lam_x|; compl: largest |lam|*(distance to its bound);",
    "mu: barrier parameter; |dx|: last step; shift: last shift of the Hessian;",
    "r: the violation alone is being reduced (restoration). All but mu in your units, max norms.",
)
_WIDTHS = {"inf_pr": 9, "inf_du": 9, "compl": 9, "mu": 9, "|dx|": 9, "shift": 9}
HEADER = " ".join(
    [f"{'iter':>5} ", f"{'objective':>15}", *(f"{name:>{w}}" for name, w in _WIDTHS.items())]
)


def _write(line: str) -> None:
    print(line, file=sys.stdout, flush=True)


@dataclass
class IterationLog:
    """Prints an aligned line every ``every`` records; first a legend, the header every 20 lines."""

    every: int = 1
    write: Callable[[str], None] = _write
    _lines: int = 0

    def __call__(self, record: IterationRecord) -> None:
        """Print the line of this record where one is due."""
        if record.iter % self.every:
            return
        if self._lines == 0:
            for line in LEGEND:
                self.write(line)
        if self._lines % 20 == 0:
            self.write(HEADER)
        self._lines += 1
        numbers = (record.inf_pr, record.inf_du, record.compl, record.mu, record.d_norm)
        cells = [f"{record.iter:5d}{'r' if record.restoration else ' '}", f"{record.obj:15.7e}"]
        cells += [f"{v:9.2e}" if np.isfinite(v) else f"{'-':>9}" for v in numbers]
        shift = record.regularization_size
        cells.append(f"{shift:9.2e}" if shift else f"{'-':>9}")
        self.write(" ".join(cells))
