r"""Feedback law around a plant: stepped by a controller, run with noise, and linearized.

With the plant's sensitivity B and measurements ĥ_t = h(u_t) + ε_t, cov ε_t = R, every law here is
z_{t+1} = A z_t + G ε_t near its fixed point u*, with u_t − u* = U z_t. A disturbance that adds w_t
to h after step t, cov w_t = W, moves the fixed point: z_{t+1} = A z_t + G ε_t + F w_t. The rate is
the spectral radius of A. The stationary covariance Σ of z solves the discrete Lyapunov equation
Σ = AΣAᵀ + GRGᵀ + FWFᵀ; the covariance of the inputs is UΣUᵀ, that of h is BUΣUᵀBᵀ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from casadi_hybrid.control.model.noise import covariance, root
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import (
    Matrix,
    Vector,
    as_matrix,
    as_vector,
    count,
    has_method,
    is_callable,
    real_array,
)


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """Linear closed loop z_{t+1} = A z_t + G ε_t + F w_t, u_t − u* = U z_t.

    Attributes:
        A, G, F, U: k×k, k×m, k×m and n×k.
    """

    A: Matrix
    G: Matrix
    F: Matrix
    U: Matrix

    @property
    def rate(self) -> float:
        """Spectral radius of A: the asymptotic factor of an error in a step."""
        return float(np.abs(np.linalg.eigvals(self.A)).max())


@dataclass(frozen=True, eq=False)
class Prediction:
    """Long-run behaviour of a closed loop.

    Attributes:
        rate: spectral radius of the closed loop.
        inputs: stationary covariance of the inputs about their fixed point, which a drift moves,
            n×n.
        errors: stationary covariance of the true constraints h(u), m×m, without sensor noise.
    """

    rate: float
    inputs: Matrix
    errors: Matrix


class FeedbackLaw(Protocol):
    """Law that a :class:`FeedbackController` steps. States have the attribute ``u``."""

    @property
    def sensitivity(self) -> Matrix:
        """B, m×n: the sensitivity that the law was designed with."""

    def start(self, u0: Matrix) -> Any:
        """The state before the first measurement; ``u0`` is (n,) or has one column a run, n×k."""

    def advance(self, state: Any, measured: Matrix) -> Any:
        """The state after one measurement, (m,) or m×k."""

    def closed_loop(self, sensitivity: Matrix) -> ClosedLoop:
        """The law around a plant of the given sensitivity."""


def predict(
    law: FeedbackLaw, noise: Any, sensitivity: Any = None, *, drift: Any = 0.0
) -> Prediction:
    """Return the rate and the stationary covariances of a law around a plant.

    Args:
        law: the law.
        noise: R, the covariance of the measurements of h, m×m, or m variances.
        sensitivity: ∂h/∂u of the plant at the fixed point; the law's by default.
        drift: W, the covariance of the disturbances of h in a step, as ``noise``; a random walk.

    Raises:
        InputError: for arguments of a wrong shape, and for an unstable loop, which has no
            stationary covariance.
    """
    B = law.sensitivity
    m, n = B.shape
    if sensitivity is not None:
        B = as_matrix(sensitivity, (m, n), "sensitivity")
    R, W = covariance(noise, m), covariance(drift, m, "drift")
    loop = law.closed_loop(B)
    rate = loop.rate
    if not rate < 1.0:
        raise InputError(
            f"the closed loop has the spectral radius {rate:.6g}, so its covariance grows without "
            "bound; design for a slower rate, or with a sensitivity nearer to the plant's"
        )
    state = solve_discrete_lyapunov(loop.A, loop.G @ R @ loop.G.T + loop.F @ W @ loop.F.T)
    # The solver's Σ is symmetric but for rounding.
    inputs = loop.U @ (state + state.T) @ loop.U.T / 2
    return Prediction(rate, inputs, B @ inputs @ B.T)


class FeedbackController:
    """Steps a feedback law: ``u = controller.step(measured)``.

    Apply ``controller.u``, wait until the plant has settled, measure h, call :meth:`step`, apply
    its result, and so on. Only :attr:`state` changes.

    Args:
        law: a :class:`HybridFeedback` or another :class:`FeedbackLaw`.
        u0: the first inputs, (n,); or n×k, one column each for k runs that are stepped at once.

    Attributes:
        law: as given.
        state: memory of the controller.

    Raises:
        InputError: for a law without these methods, for ``u0`` of a wrong shape or not finite.
    """

    def __init__(self, law: FeedbackLaw, u0: Any) -> None:
        for method in ("start", "advance", "closed_loop"):
            has_method(law, "law", method)
        self.law = law
        self.state: Any = None
        self.reset(u0)

    @property
    def u(self) -> Vector:
        """The inputs to apply now: a fresh array, (n,) or n×k."""
        return np.array(self.state.u)

    def step(self, measured: Any) -> Vector:
        """Take a measurement of h at the applied inputs, return the next inputs.

        Args:
            measured: ĥ_t, (m,); or m×k if ``u0`` had k columns.

        Raises:
            InputError: for a wrong shape, NaN or Inf; the state is then as it was.
        """
        m = len(self.law.sensitivity)
        h = as_columns(measured, m, "measured", self.state.u.shape[1:])
        self.state = self.law.advance(self.state, h)
        return self.u

    def reset(self, u0: Any) -> None:
        """Start again at ``u0``.

        Raises:
            InputError: for ``u0`` of a wrong shape or not finite.
        """
        self.state = self.law.start(as_columns(u0, self.law.sensitivity.shape[1], "u0"))


@dataclass(frozen=True, eq=False)
class Measured:
    """Measured effect of noise on a loop.

    Attributes:
        mean: of the inputs, (n,).
        inputs: covariance of the inputs, n×n; under a drift it grows with the time.
        errors: covariance of the true constraints h(u), m×m.
        first: the inputs of the first run from t = 0 on, one row a step.
    """

    mean: Vector
    inputs: Matrix
    errors: Matrix
    first: Matrix


def measure(
    law: FeedbackLaw,
    plant: Callable[[Vector], Vector],
    u0: Any,
    noise: Any,
    *,
    drift: Any = 0.0,
    steps: int = 1000,
    settle: int = 200,
    runs: int = 200,
    seed: int = 0,
) -> Measured:
    """Run a law around a plant with Gaussian noise and return statistics.

    Args:
        law: the law.
        plant: h(u), n×k to m×k: one column a run.
        u0: the inputs at the start of every run; its fixed point saves settling.
        noise: R, the covariance of the measurements, m×m, or m variances.
        drift: W, the covariance of the disturbances of h in a step, as ``noise``.
        steps: steps of each run that count.
        settle: steps before them, which do not.
        runs: number of runs, which are stepped at once.
        seed: of the noise; every law has the same noise for the same seed.

    Raises:
        InputError: for arguments of a wrong shape or kind, and when the plant returns NaN.
    """
    is_callable(plant, "plant")
    m, n = law.sensitivity.shape
    total = count(settle, "settle") + count(steps, "steps", at_least=2)
    k = count(runs, "runs", at_least=1)
    L, walk = root(covariance(noise, m)), root(covariance(drift, m, "drift"))
    # One generator in a fixed order: every law meets the same noise.
    draw = np.random.default_rng(seed).standard_normal
    controller = FeedbackController(law, np.tile(as_vector(u0, n, "u0")[:, None], k))
    disturbance = np.zeros((m, k))
    inputs, errors = np.empty((total, n, k)), np.empty((total, m, k))
    for t in range(total):
        inputs[t] = controller.u
        errors[t] = as_columns(plant(inputs[t]), m, "what plant returned", (k,)) + disturbance
        controller.step(errors[t] + L @ draw((m, k)))
        if walk.any():
            disturbance += walk @ draw((m, k))
    # All steps of all runs are samples of one stationary distribution.
    u = inputs[settle:].swapaxes(0, 1).reshape(n, -1)
    h = errors[settle:].swapaxes(0, 1).reshape(m, -1)
    covariances = np.cov(u).reshape(n, n), np.cov(h).reshape(m, m)
    return Measured(u.mean(axis=1), *covariances, inputs[:, :, 0].copy())


def as_columns(value: Any, size: int, name: str, runs: tuple[int, ...] | None = None) -> Vector:
    """Return finite numbers: ``(size,)``, or size×k with one column a run (``runs``)."""
    array = np.array(real_array(value, name))
    if array.ndim not in (1, 2) or len(array) != size or runs not in (None, array.shape[1:]):
        needed = f"({size},), or ({size}, k) for k runs," if runs is None else f"{(size, *runs)}"
        raise InputError(f"{name} has shape {array.shape} but {needed} is needed")
    if not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))
        where = ", ".join(map(str, bad[0]))
        raise InputError(
            f"{name}[{where}] is {array[tuple(bad[0])]}; finite numbers are needed. Where a sensor "
            "gave nothing, leave the step out and hold the inputs"
        )
    return array
