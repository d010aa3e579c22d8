"""Records of iterates, for a callback, the log and the statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.core.binding.view import View
from casadi_hybrid.solver.record.history import Course
from casadi_hybrid.utils.inputs import Matrix, Vector

_OF_POINT = "iter", "obj", "inf_pr", "inf_du", "compl", "mu"
# Values of an iterate in stats()["iterations"], under CasADi's names where it has them.
LISTED = (*_OF_POINT, "d_norm", "alpha_pr", "alpha_du", "regularization_size")
# Columns of the row of an iterate: its step, the lengths of the last step, and the seconds.
_T, _LENGTHS, _ELAPSED = 0, slice(6, 9), 10


@dataclass(frozen=True, eq=False)
class IterationRecord:
    """One iterate, in the user's units. The arrays are copies.

    Attributes:
        iter: steps taken, from 0. A phase from another start goes on counting; its start, which is
            no step, has no record.
        obj: f(x).
        inf_pr: largest violation of a bound on x or g.
        inf_du: ‖∇f + J_gᵀλ_g + λ_x‖_∞.
        compl: largest |λ|·(distance to its bound).
        mu: barrier parameter ν (of the scaled problem).
        d_norm: ‖x − x of the previous record‖_∞, of the start if a phase began; 0 in the first.
        alpha_pr, alpha_du: step lengths of (x, slacks) and of the multipliers of bounds; 1 for a
            jump, NaN during restoration, 0 in the first.
        regularization_size: the last nonzero shift σ of the Hessian, 0 if none was needed.
        restoration: True while the violation alone is being reduced.
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


class Watch:
    """Shows the iterates of a running solve: to a callback as records, and in a log."""

    def __init__(
        self, callback: Callable[[IterationRecord], bool | None] | None = None, log: int = 0
    ) -> None:
        self._callback, self._log = callback, IterationLog(log) if log else None
        self._view: View | None = None
        self._row: list[float] = []
        self._stopped = False

    def see(self, view: View) -> bool:
        """Show an iterate; return True if the callback stops the solve."""
        self.hold(int(view.row[_T]) - 1, view.row[_ELAPSED])
        self._view = view
        self._show(view.row)
        return self._stopped

    def hold(self, until: int, elapsed: float | None = None) -> None:
        """Show the last iterate again for the steps since then, up to step ``until``."""
        # Steps on an active set count, but only their end is an iterate, if any. The previous
        # iterate stands for each of them, with a step of length zero.
        while self._row and self._row[_T] < until:
            row = [*self._row]
            row[_T] += 1
            row[_LENGTHS] = 0.0, 0.0, 0.0
            if elapsed is not None:
                row[_ELAPSED] = elapsed
            self._show(row)

    def _show(self, row: list[float]) -> None:
        self._row, view = row, self._view
        assert view is not None
        arrays = view.x, view.g, view.lam_x, view.lam_g
        values: Any = (*row[1 : len(LISTED)], view.restoring, *arrays, row[_ELAPSED])
        record = IterationRecord(int(row[_T]), *values)
        if self._log is not None:
            self._log(record)
        if self._callback is not None and not self._stopped:
            # True alone stops: a callback that returns some other value goes on.
            self._stopped = self._callback(record) is True


def each_step(rows: Matrix, steps: int) -> Matrix:
    """Return a row for each of the ``steps``: the iterates, repeated as :class:`Watch` does."""
    t = rows[:, _T]
    # bytes instead of all(): this stands in every stats() and every result.
    regular = b"\0" not in (t[1:] - t[:-1] == 1.0).tobytes()
    if not t.size or (regular and t[-1] == steps):
        return rows
    # Rows from each iterate to the next; the last one stays to the end.
    counts = np.maximum(np.diff(t, append=steps + 1.0), 1.0).astype(int)
    table = np.repeat(rows, counts, axis=0)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    since = np.arange(len(table)) - first
    table[:, _T] += since
    table[since > 0, _LENGTHS] = 0.0
    # The seconds of a step without an iterate are those at the next iterate.
    later = np.append(rows[1:, _ELAPSED], rows[-1, _ELAPSED])
    table[since > 0, _ELAPSED] = np.repeat(later, counts)[since > 0]
    return table


def listed(table: Matrix) -> dict[str, list[Any]]:
    """Values of all steps by the names of :data:`LISTED`."""
    lists: dict[str, list[Any]] = dict(zip(LISTED, table.T.tolist(), strict=False))
    lists["iter"] = table[:, _T].astype(int).tolist()
    return lists


def course_of(table: Matrix) -> Course:
    """Course of a solve from the table of its steps."""
    t, f, feasibility, stationarity, complementarity, nu, *_, shift, elapsed = table.T.copy()
    return Course(
        t=t.astype(np.intp),
        f=f,
        feasibility=feasibility,
        stationarity=stationarity,
        complementarity=complementarity,
        nu=nu,
        shift=shift,
        elapsed=elapsed,
    )


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
    """Prints a line every ``every`` iterations, a legend first, a header every 20 lines."""

    every: int = 1
    _lines: int = 0

    def __call__(self, record: IterationRecord) -> None:
        """Print the line of this record if one is due."""
        if record.iter % self.every:
            return
        lines = list(LEGEND) if self._lines == 0 else []
        if self._lines % 20 == 0:
            lines.append(HEADER)
        self._lines += 1
        # NaN is printed as a dash.
        shift = record.regularization_size or np.nan
        numbers = (record.inf_pr, record.inf_du, record.compl, record.mu, record.d_norm, shift)
        cells = [f"{record.iter:5d}{'r' if record.restoration else ' '}", f"{record.obj:15.7e}"]
        cells += [f"{v:9.2e}" if np.isfinite(v) else f"{'-':>9}" for v in numbers]
        print(*lines, " ".join(cells), sep="\n", flush=True)
