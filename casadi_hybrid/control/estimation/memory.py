"""What the estimator remembers of a window: measurements, controls, the trajectories last found."""

from __future__ import annotations

from typing import Any

import numpy as np

from casadi_hybrid.control.estimation.arrival import Place
from casadi_hybrid.control.estimation.window import ACTIVE, MEASURED, WHITENING, held
from casadi_hybrid.control.model import Model
from casadi_hybrid.control.ocp import OptimalControl
from casadi_hybrid.control.signals import Array


class Memory:
    """The data at the grid points 0 … N of a window; the last point is now.

    Attributes:
        y: measured, a column a point; NaN for what was lost or is not there yet.
        before: the control before each point, u0 before the first step.
        steps, time: number of steps so far, and now.
    """

    def __init__(self, N: int, noise: Array, u0: Array) -> None:
        self.N = N
        self._noise = noise
        self.y = np.full((noise.shape[0], N + 1), np.nan)
        self.before = np.tile(u0[:, None], (1, N + 1))
        self.steps = 0
        self.time = 0.0
        self._read: tuple[Array, ...] = ()
        self._weights: dict[bytes, Array] = {}

    @property
    def active(self) -> int:
        """Number of intervals that lie after the first step."""
        return min(max(self.steps - 1, 0), self.N)

    @property
    def full(self) -> bool:
        """Whether the next shift leaves a measurement behind."""
        return self.steps > self.N

    def advance(self, u: Array | None, time: float) -> None:
        """Move on by one period, over which the control was u; None for the one before."""
        if self.steps:
            self.y = np.hstack((self.y[:, 1:], np.full((self.y.shape[0], 1), np.nan)))
            last = self.before[:, -1] if u is None else u
            self.before = np.hstack((self.before[:, 1:], last[:, None]))
        elif u is not None:
            self.before = np.tile(u[:, None], (1, self.N + 1))
        self.steps += 1
        self.time = time

    def note(self, y: Array, delay: int) -> None:
        """Keep a measurement of so many periods ago."""
        if delay < self.steps:
            self.y = self.y.copy()
            self.y[:, self.N - delay] = y

    def references(self, model: Model) -> dict[str, Array]:
        """Return the references of the window's problem by name."""
        found = {}
        after = np.hstack((self.before[:, 1:], self.before[:, -1:]))
        for name, where in model.places("control").items():
            found[name], found[held(name)] = self.before[where], after[where]
        found[ACTIVE] = (np.arange(self.N + 1) >= self.N - self.active).astype(float)[None, :]
        found[MEASURED] = np.nan_to_num(self.y)
        found[WHITENING] = np.array([self._whitening(there) for there in np.isfinite(self.y).T]).T
        return found

    def keep(self, ocp: OptimalControl, x: Array, p: Array) -> None:
        """Read the trajectories of a point of the window's program."""
        X, Z, _, _, P, T, *_ = (part.full() for part in ocp.laid.trajectories(x, p))
        self._read = (X, Z, P, T.ravel())

    def place(self, j: int, model: Model) -> Place:
        """Return a grid point with what was last found there."""
        X, Z, P, T = self._read
        z = Z[:, j] if Z.shape[0] else np.zeros(0)
        own = P[: model.size("parameter"), j]
        after = self.before[:, min(j + 1, self.N)]
        return Place(X[:, j], z, own, self.before[:, j], after, float(T[j]), self.y[:, j])

    def _whitening(self, there: Any) -> Array:
        """W, WᵀW being the inverse covariance of what is there, zeros for the rest, by columns.

        The same few sensors are there again and again.
        """
        key = there.tobytes()
        if key not in self._weights:
            weight = np.zeros((there.size, there.size))
            at = np.ix_(there, there)
            if there.any():
                weight[at] = np.linalg.inv(np.linalg.cholesky(self._noise[at]))
            self._weights[key] = weight.ravel(order="F")
        return self._weights[key]
