r"""A feedback law around a plant, linearized: its rate, and the covariance that noise leaves.

With the plant's sensitivity B and measurements ĥ_t = h(u_t) + ε_t, cov ε_t = R, every law of this
room is z_{t+1} = A z_t + G ε_t near its fixed point u*, with u_t − u* = U z_t. A disturbance that
adds w_t to h after step t, cov w_t = W, moves the fixed point: z_{t+1} = A z_t + G ε_t + F w_t. The
rate is the spectral radius of A, and the stationary covariance Σ of z solves the discrete Lyapunov
equation Σ = AΣAᵀ + GRGᵀ + FWFᵀ; that of the inputs is UΣUᵀ, that of h is BUΣUᵀBᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from casadi_hybrid.basics.calls import checked_call
from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Matrix, Vector, as_matrix, real_array
from casadi_hybrid.control.feedback.geometry import covariance


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """z_{t+1} = A z_t + G ε_t + F w_t, u_t − u* = U z_t.

    Attributes:
        A, G, F, U: k×k, k×m, k×m and n×k.
    """

    A: Matrix
    G: Matrix
    F: Matrix
    U: Matrix

    @property
    def rate(self) -> float:
        """Spectral radius of A: the factor by which an error shrinks in a step, in the long run."""
        return float(np.abs(np.linalg.eigvals(self.A)).max())


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a closed loop does in the long run.

    Attributes:
        rate: spectral radius of the closed loop.
        inputs: stationary covariance of the inputs about their fixed point, which a drift moves,
            n×n.
        errors: stationary covariance of the true constraints h(u), m×m; the sensors' own noise is
            not in it.
    """

    rate: float
    inputs: Matrix
    errors: Matrix


class FeedbackLaw(Protocol):
    """A law that a :class:`FeedbackController` steps. States have the attribute ``u``."""

    @property
    def sensitivity(self) -> Matrix:
        """B, m×n: the sensitivity that the law was designed with."""

    def start(self, u0: Matrix) -> Any:
        """The state before the first measurement; ``u0`` is (n,) or has one column a run, n×k."""

    def advance(self, state: Any, measured: Matrix) -> Any:
        """The state after one measurement, (m,) or m×k."""

    def closed_loop(self, sensitivity: Matrix) -> ClosedLoop:
        """The law around a plant of the given sensitivity."""


@checked_call
def predict(
    law: FeedbackLaw, noise: Any, sensitivity: Any = None, *, drift: Any = 0.0
) -> Prediction:
    """Return the rate and the stationary covariances of a law around a plant.

    Args:
        law: the law.
        noise: R, the covariance of the measurements of h, m×m, or m variances.
        sensitivity: ∂h/∂u of the plant at the fixed point; the law's own where it is left out.
        drift: W, the covariance of what disturbances add to h in a step, as ``noise``; a walk.

    Raises:
        InputError: for arguments of a wrong shape, and when the loop is not stable: it has no
            stationary covariance then.
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
    inputs = loop.U @ (state + state.T) @ loop.U.T / 2
    return Prediction(rate, inputs, B @ inputs @ B.T)


def as_columns(value: Any, size: int, name: str, runs: tuple[int, ...] | None = None) -> Vector:
    """Return finite numbers: ``(size,)``, or size×k with one column a run.

    ``runs`` is ``()`` for one run, ``(k,)`` for k of them; either where it is left out.
    """
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
