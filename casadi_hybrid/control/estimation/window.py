"""Problem of a window, whose control is the disturbance, and the data of its grid points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.estimation.arrival import Place
from casadi_hybrid.control.estimation.estimator import Estimator
from casadi_hybrid.control.model.model import Model
from casadi_hybrid.control.model.signals import Array
from casadi_hybrid.control.model.steps import plain_step, symbols_of
from casadi_hybrid.control.solution.ocp import OptimalControl
from casadi_hybrid.control.transcription.methods import MultipleShooting

DISTURBANCE = "unknown disturbance"
ACTIVE = "interval is active"
MEASURED = "measurement"
WHITENING = "whitening of the measurement"
MEAN = "mean at arrival"
FACTOR = "whitening at arrival"
# Suffix of a control's name for the reference with its value over an interval.
HELD = " held"


class Memory:
    """Data at the grid points 0 … N of a window; the last point is now."""

    def __init__(self, N: int, noise: Array, u0: Array) -> None:
        self.N = N
        self._noise = noise
        # A column a point; NaN for lost and for future measurements.
        self.y = np.full((noise.shape[0], N + 1), np.nan)
        # The control before each point.
        self.before = np.tile(u0[:, None], (1, N + 1))
        self.steps = 0
        self.time = 0.0
        self._read: tuple[Array, ...] = ()

    @property
    def active(self) -> int:
        """Number of intervals that lie after the first step."""
        return min(max(self.steps - 1, 0), self.N)

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
        references = {}
        # The control after the last point is not known yet: the last one is kept.
        after = np.hstack((self.before[:, 1:], self.before[:, -1:]))
        for name, where in model.places("control").items():
            references[name], references[name + HELD] = self.before[where], after[where]
        active = np.arange(self.N + 1) >= self.N - self.active
        references[ACTIVE] = active.astype(float)[None, :]
        references[MEASURED] = np.nan_to_num(self.y)
        # W by columns, WᵀW being the inverse covariance of the finite entries; zeros elsewhere.
        finite = np.isfinite(self.y).T
        both = finite[:, :, None] & finite[:, None, :]
        # The covariance of the finite entries alone: a lost one is marginalized, not set to zero.
        covariances = np.where(both, self._noise, np.eye(len(self.y)))
        weights = np.where(both, np.linalg.inv(np.linalg.cholesky(covariances)), 0.0)
        references[WHITENING] = weights.swapaxes(1, 2).reshape(self.N + 1, -1).T
        return references

    def keep(self, ocp: OptimalControl, x: Array, p: Array) -> None:
        """Read the trajectories of a point of the window's program."""
        X, Z, _, _, P, T, *_ = (part.full() for part in ocp.transcriptions[""].trajectories(x, p))
        self._read = (X, Z, P, T.ravel())

    def place(self, j: int, model: Model) -> Place:
        """Return a grid point with its last estimate."""
        X, Z, P, T = self._read
        own = P[: model.size("parameter"), j]
        after = self.before[:, min(j + 1, self.N)]
        return Place(X[:, j], Z[:, j], own, self.before[:, j], after, float(T[j]), self.y[:, j])


@dataclass(frozen=True)
class Disturbed:
    """x⁺ = x + a (F(x, u, p, t) + G ω − x): the model's step with a disturbance, where a = 1."""

    model: Model
    inner: Any
    root: Array
    graphs: Any

    def function(self, window: Model, integrand: ca.Function) -> ca.Function:
        """Return the step of the window's model."""
        model, kind = self.model, self.graphs
        n, own, nu = (model.size(part) for part in ("state", "parameter", "control"))
        x, z, w, _, p, t, dt = symbols = symbols_of(window, integrand, kind)
        held, active = p[own + nu : own + 2 * nu], p[own + 2 * nu]
        after = plain_step(self.inner, model).call([x, z, held, held, p[:own], t, dt])[0]
        # G = `root`: G ω has the covariance Q if ω has the identity.
        noise = ca.mtimes(ca.DM(self.root), w) if w.numel() else ca.DM.zeros(n)
        # a = 0 before the first measurement: the state is kept, and the arrival term acts on it.
        return ca.Function("step", symbols, [x + active * (after + noise - x), kind(0, 1)])


def window_problem(
    estimator: Estimator, intervals: int, root: Array, solver: Any
) -> OptimalControl:
    """Return the problem of an estimator's window; see :class:`MHE` for its cost."""
    model, sensors, free = estimator.model, estimator.sensors, estimator.unknowns
    # The window's controls are the disturbances. A control of the model is a reference with its
    # value before a grid point, for the sensors, and another with the value after it.
    window = model.given_controls()  # the step is Disturbed's; its rates are not used
    for name, s in model.signals["control"].items():
        window.reference(name + HELD, 0.0, s.size, unit=s.unit)
    window.reference(ACTIVE, 1.0)
    if root.shape[1]:
        window.control(DISTURBANCE, root.shape[1])
    disturbed: Any = Disturbed(model, estimator.scheme, root, estimator.scheme.graphs)
    grid: dict[str, Any] = {"duration": intervals * estimator.period, "intervals": intervals}
    method, name = MultipleShooting(disturbed), f"window of {model.name}"
    ocp = OptimalControl(window, **grid, solver=solver, method=method, name=name)
    for name, unknown in free.items():
        limits = {"lower": unknown.lower, "upper": unknown.upper}
        ocp.free(name, **limits, scale=unknown.scale, guess=unknown.guess)
    y = ocp.reference(MEASURED, 0.0, sensors.size)
    weight = ocp.reference(WHITENING, 0.0, sensors.size**2)
    error = y - sensors.function(*model.arguments)
    # ½‖W(y − h)‖² with WᵀW = R⁻¹; a lost measurement has W = 0.
    fit = 0.5 * ca.sumsqr(ca.mtimes(ca.reshape(weight, sensors.size, sensors.size), error))
    # Σ over 0 … N: `sum` takes the first N points, `end` the last.
    ocp.minimize("measurements", sum=fit, end=fit)
    if root.shape[1]:
        ocp.minimize("disturbance", sum=0.5 * ca.sumsqr(window.symbol(DISTURBANCE)))
    unknown = ca.vertcat(window.stacked("state"), *(window.symbol(name) for name in free))
    size = unknown.numel()
    mean = ocp.parameter(MEAN, np.zeros(size))
    factor = ca.reshape(ocp.parameter(FACTOR, np.zeros(size**2)), size, size)
    ocp.minimize("arrival", start=0.5 * ca.sumsqr(ca.mtimes(factor, unknown - mean)))
    return ocp
