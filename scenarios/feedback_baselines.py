r"""The usual feedback laws, each with the gains of the least predicted variance at a rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Matrix, Vector, as_vector
from casadi_hybrid.control.feedback.closed_loop import ClosedLoop, predict
from casadi_hybrid.control.feedback.geometry import Geometry, below_one, geometry
from casadi_hybrid.control.feedback.hybrid import objective_gradient


@dataclass(frozen=True, slots=True)
class GainState:
    """Where a baseline stands: the inputs u, and the filtered measurement where there is one."""

    u: Vector
    filtered: Vector | None = None


@dataclass(frozen=True, eq=False)
class _Baseline:
    """A law whose state is its inputs."""

    geometry: Geometry

    @property
    def sensitivity(self) -> Matrix:
        """B, m×n: the sensitivity that the law was designed with."""
        return self.geometry.B

    def start(self, u0: Vector) -> GainState:
        """Return the state before the first measurement."""
        return GainState(u0)


@dataclass(frozen=True, eq=False)
class IntegralFeedback(_Baseline):
    """u_{t+1} = u_t − κ E f_{t+1}, f_{t+1} = φ f_t + (1 − φ) ĥ_t, along the cheapest lift E.

    Started at the optimum for other set points or disturbances it stays at optima; inputs in ker B
    do not move. Without a filter, φ = 0, its one pole is 1 − κ, its variance κ/(2 − κ) that of the
    sensor, so the best gain for a rate ρ is κ = 1 − ρ. With one, two gains place two poles a
    constraint; by the argument of :func:`design` both at ρ are best: φ = ρ², κ = (1 − ρ)/(1 + ρ).
    """

    gain: float
    memory: float

    @classmethod
    def tuned(
        cls, sensitivity: Any, hessian: Any, rate: float, *, filtered: bool = False
    ) -> IntegralFeedback:
        """Return the law of the least variance with the spectral radius ``rate``.

        Raises:
            InputError: for bad arguments, as :func:`design` has them.
        """
        rho = below_one(rate)
        gain, memory = ((1 - rho) / (1 + rho), rho**2) if filtered else (1 - rho, 0.0)
        return cls(geometry(sensitivity, hessian), gain, memory)

    def advance(self, state: GainState, measured: Vector) -> GainState:
        """Take one step with a measurement, (m,) or m×k; the first one fills the filter."""
        old = measured if state.filtered is None else state.filtered
        filtered = self.memory * old + (1 - self.memory) * measured
        return GainState(state.u - self.gain * self.geometry.lift @ filtered, filtered)

    def closed_loop(self, sensitivity: Matrix) -> ClosedLoop:
        """Return the loop in z = (y, f), u − u* = E y: the m coordinates that the law moves.

        The inputs in ker B are held where they started, so they are no part of the rate.
        """
        E, one = self.geometry.lift, np.eye(len(sensitivity))
        kept, taken = self.memory * one, (1 - self.memory) * one
        seen = taken @ sensitivity @ E
        A = np.block([[one - self.gain * seen, -self.gain * kept], [seen, kept]])
        G = np.vstack((-self.gain * taken, taken))
        F = np.vstack((self.geometry.moved(sensitivity), np.zeros_like(one)))
        return ClosedLoop(A, G, F, np.hstack((E, np.zeros_like(E))))


@dataclass(frozen=True, eq=False)
class GradientFeedback(_Baseline):
    """Projected gradient feedback optimization with measured constraints.

    u_{t+1} = u_t − α B† ĥ_t − η N Nᵀ ∇f(u_t): along ker B a gradient step on the objective, across
    it a step of Gauss and Newton on the measured constraints, so neither biases the other.

    Attributes:
        geometry: B, H and what follows from them.
        gain: α.
        step: η.
        preferred: of the objective, as in :class:`HybridFeedback`.
    """

    gain: float
    step: float
    preferred: Vector | None = None

    @classmethod
    def tuned(
        cls, sensitivity: Any, hessian: Any, noise: Any, rate: float, *, preferred: Any = None
    ) -> GradientFeedback:
        """Return the law of the least variance of the inputs with a spectral radius ≤ ``rate``.

        α = 1 − ρ; η is the best of those with |1 − ηλ| ≤ ρ for every curvature λ along ker B.

        Raises:
            InputError: for bad arguments, as :func:`design` has them, and when no η does it.
        """
        rho = below_one(rate)
        of = geometry(sensitivity, hessian)
        if preferred is not None:
            preferred = as_vector(preferred, of.B.shape[1], "preferred")

        def law(step: float) -> GradientFeedback:
            return cls(of, 1 - rho, step, preferred)

        if not of.inside.size:
            return law(0.0)
        curvatures = np.linalg.eigvalsh(of.inside)
        low, high = (1 - rho) / curvatures[0], (1 + rho) / curvatures[-1]
        if low > high:
            raise InputError(
                f"rate {rho:.6g} is out of reach of one gradient step: the curvatures along ker B "
                f"go from {curvatures[0]:.3g} to {curvatures[-1]:.3g}; ask for "
                f"{(curvatures[-1] - curvatures[0]) / (curvatures[-1] + curvatures[0]):.6g} or more"
            )

        def spread(step: float) -> float:
            return float(np.trace(predict(law(step), noise).inputs))

        found = minimize_scalar(spread, bounds=(low, high), method="bounded")
        # A bounded search never tries its ends.
        return law(min((low, high, float(found.x)), key=spread))

    def advance(self, state: GainState, measured: Vector) -> GainState:
        """Take one step with a measurement, (m,) or m×k."""
        of, u = self.geometry, state.u
        slope = objective_gradient(of.H, self.preferred, None, u)
        along = of.kernel @ (of.kernel.T @ slope)
        return GainState(u - self.gain * of.least_norm @ measured - self.step * along)

    def closed_loop(self, sensitivity: Matrix) -> ClosedLoop:
        """Return the law around a plant of the given sensitivity; z = u − u*."""
        of = self.geometry
        G = -self.gain * of.least_norm
        A = np.eye(len(of.H)) + G @ sensitivity - self.step * of.kernel @ of.kernel.T @ of.H
        return ClosedLoop(A, G, of.lift @ of.moved(sensitivity), np.eye(len(A)))
