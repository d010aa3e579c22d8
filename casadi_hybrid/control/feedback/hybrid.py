r"""Update law of the paper around a plant whose constraints are measured.

.. math::

    \mu_{t+1} &= \mu_t + D ĥ_t + C_{opt} ĥ_t - C_{opt} ĥ_{t-1} \\
    u_{t+1} &= u_t - P [∇f(u_t) + B^T (\mu_{t+1} + C_{aug} h̃_t)]

ĥ_t = h(u_t) + ε_t is measured. h̃_t is the augmented channel's "exact current residual" of the
paper's appendix, which is unknown for a plant with disturbances. The law takes the model's
increments instead: h̃_t = ĥ_0 + h_m(u_t) − h_m(u_0). A constant error of h̃ goes into μ and vanishes
in the long run, as μ integrates the measured residual. So with the right sensitivity the splits
share one noise-free trajectory. They differ in two respects:

* a disturbance that moves after the start acts on D and C_opt only;
* if the model's sensitivity is wrong, C_aug acts on the model's and C_opt on the plant's.

The noise of ĥ_0 stays in h̃ until μ has taken it up, as long as a step response lasts. If h(u_0) is
known better, from the mean of some measurements, give it as ``first``.

With ``reads="sensors"`` the augmented channel reads ĥ_t too. Then every split is the same, noise
included: the paper's theorem "Additivity under shared oracle noise".
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
        law: state of the update law: u_t, μ_t, C_opt ĥ_{t−1}, the effective dual.
        offset: ĥ_0 − h_m(u_0); None before the first measurement.
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
        preferred: u_r of the objective ½(u − u_r)ᵀH(u − u_r), (n,); zero by default.
        gradient: ∇f in place of that objective: takes and returns (n,), or n×k in a batch.
        model: h_m(u), (n,) to (m,), or n×k to m×k; B u by default. Only its increments count.
        reads: source of the augmented channel, ``"model"`` or ``"sensors"``.
        first: h(u_0) in place of the first measurement in h̃, (m,).

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
        """Return ∇f(u): by the given function, or H(u − u_r)."""
        if self.gradient is not None:
            return as_columns(self.gradient(u), len(u), "what gradient returned", u.shape[1:])
        if self.preferred is not None:
            u = u - _column(self.preferred, u)
        return np.asarray(self.design.geometry.H @ u)

    def start(self, u0: Vector) -> HybridState:
        """Return the state before the first measurement.

        π_0 is the multiplier that fits ∇f(u_0) + Bᵀπ = 0 best, the same for every split.
        """
        B = self.sensitivity
        slope = self.slope(u0)
        # Least squares: min ‖∇f + Bᵀπ‖, the same for every split.
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
                # h̃_t = ĥ_0 + h_m(u_t) − h_m(u_0): the offset is ĥ_0 − h_m(u_0), taken once.
                offset = (measured if self.first is None else _column(self.first, u)) - modelled
            exact = modelled + offset
        at = Evaluation(u, np.nan, self.slope(u), exact, B, None, measured)
        law = advance(state.law, at, self.design.correction, state.law.memory)
        return HybridState(law, offset)

    def closed_loop(self, sensitivity: Matrix) -> ClosedLoop:
        """Return the law around a plant of the given sensitivity; z = (u − u*, π − π*).

        π_t = μ_t − C_opt ĥ_{t−1} is the memory-free multiplier. A ``model`` is taken to have the
        sensitivity of the design, the objective its Hessian.
        """
        B, H, E = self.sensitivity, self.design.geometry.H, self.design.geometry.lift
        correction = self.design.correction
        m, n = B.shape
        D: Matrix = apply(correction.eta_d, np.eye(m))
        P: Matrix = apply(correction.eta_x, np.eye(n))
        # Corrections of the measured and of the modelled constraints.
        measured, modelled = D + correction.C_opt, correction.C_aug
        if self.reads == "sensors":
            measured, modelled = measured + modelled, np.zeros((m, m))
        # The plant moves the measured constraints, the model's B the others.
        curvature = H + B.T @ (measured @ sensitivity + modelled @ B)
        # The law linearized at the fixed point, rows u and π; the memory drops out of z by using π.
        A = np.block([[np.eye(n) - P @ curvature, -P @ B.T], [D @ sensitivity, np.eye(m)]])
        G = np.vstack((-P @ B.T @ measured, D))
        # The model's h̃ moves with the fixed point.
        moved = self.design.geometry.moved(sensitivity)
        F = np.vstack((E @ moved, -(E.T @ H @ E + modelled) @ moved))
        return ClosedLoop(A, G, F, np.eye(n, n + m))


def _column(vector: Vector, like: Vector) -> Vector:
    """Return the vector in a shape that adds to every column of inputs."""
    return vector if like.ndim == 1 else vector[:, None]
