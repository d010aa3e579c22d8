r"""The paper's law around a plant whose constraints are measured.

.. math::

    \mu_{t+1} &= \mu_t + D ĥ_t + C_{opt} ĥ_t - C_{opt} ĥ_{t-1} \\
    u_{t+1} &= u_t - P [∇f(u_t) + B^T (\mu_{t+1} + C_{aug} h̃_t)]

ĥ_t = h(u_t) + ε_t is measured. h̃_t is the augmented channel's "exact current residual" of the
paper's appendix, which a plant with unknown disturbances does not offer. The law takes the model's
increments instead: h̃_t = ĥ_0 + h_m(u_t) − h_m(u_0). A constant error of h̃ goes into μ and is gone
in the long run, as it is μ that integrates the measured residual. So with the right sensitivity
the splits share one noise-free trajectory; two things they do not share:

* a disturbance that moves after the start is seen by D and C_opt only;
* where the model's sensitivity is wrong, C_aug acts on the model's and C_opt on the plant's.

The noise of ĥ_0 stays in h̃ until μ has taken it up, as long as the answer to a step takes. Where
h(u_0) is known better, from the mean of some measurements, give it as ``first``.

With ``reads="sensors"`` the augmented channel reads ĥ_t too. Then every split is the same, noise
and all: the paper's theorem "Additivity under shared oracle noise".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from casadi_hybrid.control.feedback.closed_loop import ClosedLoop, as_columns
from casadi_hybrid.control.feedback.design import FeedbackDesign
from casadi_hybrid.paper.law import State, advance, apply
from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import Matrix, Vector, as_vector, is_callable, one_of

Reads = Literal["model", "sensors"]


@dataclass(frozen=True, slots=True)
class HybridState:
    """State of the law.

    Attributes:
        law: the state of the one update law: u_t, μ_t, C_opt ĥ_{t−1}, the effective dual.
        offset: ĥ_0 − h_m(u_0), once there was a measurement.
    """

    law: State
    offset: Vector | None = None

    @property
    def u(self) -> Vector:
        """u_t, the inputs to apply."""
        return self.law.x


@dataclass(frozen=True, eq=False)
class HybridFeedback:
    """A design with an objective and a model: the law that a controller steps.

    Args:
        design: M, split and steps.
        preferred: u_r of the objective ½(u − u_r)ᵀH(u − u_r), n numbers; zero where left out.
        gradient: ∇f in place of that objective: takes and returns (n,), or n×k in a batch.
        model: h_m(u), (n,) to (m,), or n×k to m×k; B u where left out. Only its increments count.
        reads: what the augmented channel reads, ``"model"`` or ``"sensors"``.
        first: h(u_0) in place of the first measurement in h̃, m numbers.

    Raises:
        InputError: for a wrong length, for both ``preferred`` and ``gradient``, for another word.
    """

    design: FeedbackDesign
    preferred: Any = None
    gradient: Callable[[Vector], Vector] | None = None
    model: Callable[[Vector], Vector] | None = None
    reads: Reads = "model"
    first: Any = None

    def __post_init__(self) -> None:
        one_of(self.reads, "reads", get_args(Reads))
        for name in ("gradient", "model"):
            if getattr(self, name) is not None:
                is_callable(getattr(self, name), name)
        if self.preferred is not None and self.gradient is not None:
            raise InputError("preferred and gradient both state the objective; give one of them")
        for name, size in zip(("first", "preferred"), self.sensitivity.shape, strict=True):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_vector(getattr(self, name), size, name))

    @property
    def sensitivity(self) -> Matrix:
        """B, m×n: the sensitivity that the law was designed with."""
        return self.design.geometry.B

    def slope(self, u: Vector) -> Vector:
        """∇f(u)."""
        return objective_gradient(self.design.geometry.H, self.preferred, self.gradient, u)

    def start(self, u0: Vector) -> HybridState:
        """Return the state before the first measurement.

        π_0 is the multiplier that fits ∇f(u_0) + Bᵀπ = 0 best, the same for every split.
        """
        B = self.sensitivity
        slope = self.slope(u0)
        pi = np.asarray(-np.linalg.solve(B @ B.T, B @ slope), dtype=np.float64)
        return HybridState(State(u0, pi, np.zeros_like(pi), pi))

    def advance(self, state: HybridState, measured: Vector) -> HybridState:
        """Take one step of the law with a measurement ĥ_t, (m,) or m×k."""
        B, u = self.sensitivity, state.u
        exact, offset = measured, state.offset
        if self.reads == "model":
            modelled = B @ u
            if self.model is not None:
                modelled = as_columns(self.model(u), len(B), "what model returned", u.shape[1:])
            if offset is None:
                known = measured if self.first is None else _column(self.first, u)
                offset = known - modelled
            exact = modelled + offset
        at = Evaluation(u, np.nan, self.slope(u), exact, B, None, measured)
        law = advance(state.law, at, self.design.correction, state.law.memory)
        return HybridState(law, offset)

    def closed_loop(self, sensitivity: Matrix) -> ClosedLoop:
        """Return the law around a plant of the given sensitivity; z = (u − u*, π − π*).

        π_t = μ_t − C_opt ĥ_{t−1} is the memory-free multiplier. A ``model`` is taken to have the
        sensitivity of the design, the objective its Hessian.
        """
        B, H = self.sensitivity, self.design.geometry.H
        made = self.design.correction
        m, n = B.shape
        drive: Matrix = apply(made.eta_d, np.eye(m))
        primal: Matrix = apply(made.eta_x, np.eye(n))
        heard = drive + made.C_opt
        computed = made.C_aug @ B
        if self.reads == "sensors":
            heard, computed = heard + made.C_aug, np.zeros_like(B)
        bent = H + B.T @ (heard @ sensitivity + computed)
        A = np.block([[np.eye(n) - primal @ bent, -primal @ B.T], [drive @ sensitivity, np.eye(m)]])
        G = np.vstack((-primal @ B.T @ heard, drive))
        # The augmented channel's h̃ at the fixed point moves with it where it is the model's.
        E, moved = self.design.geometry.lift, self.design.geometry.moved(sensitivity)
        kept = made.C_aug if self.reads == "model" else np.zeros((m, m))
        F = np.vstack((E @ moved, -(E.T @ H @ E + kept) @ moved))
        return ClosedLoop(A, G, F, np.eye(n, n + m))


def objective_gradient(
    H: Matrix, preferred: Vector | None, gradient: Callable[[Vector], Vector] | None, u: Vector
) -> Vector:
    """Return ∇f(u): of the given function, or H(u − u_r)."""
    if gradient is not None:
        return as_columns(gradient(u), len(u), "what gradient returned", u.shape[1:])
    if preferred is not None:
        u = u - _column(preferred, u)
    return np.asarray(H @ u)


def _column(vector: Vector, like: Vector) -> Vector:
    """Return the vector so that it is added to every column of inputs."""
    return vector if like.ndim == 1 else vector[:, None]
