r"""The usual feedback laws, each with the gains of the least predicted variance at a rate."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from casadi_hybrid.control.feedback import ClosedLoop, predict
from casadi_hybrid.control.feedback.geometry import Geometry, geometry


@dataclass(frozen=True)
class Inputs:
    """Where a law stands: the inputs u, and the filtered measurement once there is one."""

    u: np.ndarray
    filtered: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class LinearFeedback:
    """u_{t+1} = u_t − K f_{t+1} − P H (u_t − u_r),  f_{t+1} = φ f_t + (1 − φ) ĥ_t.

    Attributes:
        geometry: B, H and what follows from them.
        gain: K, n×m.
        slide: P, n×n, along ker B; zero for inputs that stay there as they are.
        memory: φ of the filter; zero for none.
        preferred: u_r.
    """

    geometry: Geometry
    gain: np.ndarray
    slide: np.ndarray
    memory: float = 0.0
    preferred: Any = 0.0

    @property
    def sensitivity(self) -> np.ndarray:
        """B, m×n: the sensitivity that the law was designed with."""
        return self.geometry.B

    def start(self, u0: np.ndarray) -> Inputs:
        """Return the state before the first measurement."""
        return Inputs(u0)

    def advance(self, state: Inputs, measured: np.ndarray) -> Inputs:
        """Take one step with a measurement, (m,) or m×k; the first one fills the filter."""
        old = measured if state.filtered is None else state.filtered
        filtered = self.memory * old + (1 - self.memory) * measured
        slope = self.geometry.H @ (state.u.T - self.preferred).T
        return Inputs(state.u - self.gain @ filtered - self.slide @ slope, filtered)

    def closed_loop(self, sensitivity: np.ndarray) -> ClosedLoop:
        """Return the loop in z = (y, f), u − u* = U y.

        Inputs that stay along ker B as they were at the start are no part of the rate, so y are
        then the m coordinates that the law moves, U = E; else the n of the inputs.
        """
        of, one = self.geometry, np.eye(len(sensitivity))
        U, read = (np.eye(len(of.H)),) * 2 if self.slide.any() else (of.lift, of.B)
        kept, taken = self.memory * one, (1 - self.memory) * one
        pull, seen = read @ self.gain, taken @ sensitivity @ U
        alone = read @ (U - self.slide @ of.H @ U)
        A = np.block([[alone - pull @ seen, -pull @ kept], [seen, kept]])
        F = np.vstack((read @ of.lift @ of.moved(sensitivity), 0 * one))
        return ClosedLoop(A, np.vstack((-pull @ taken, taken)), F, np.hstack((U, 0 * of.lift)))


def integral(B: Any, H: Any, rate: float, *, filtered: bool = False) -> LinearFeedback:
    """Return integral feedback along the cheapest lift, K = κ E, with the spectral radius ``rate``.

    Started at the optimum for other set points or disturbances it stays at optima. Without a
    filter its one pole is 1 − κ, its variance κ/(2 − κ) that of the sensor, so the best gain for a
    rate ρ is κ = 1 − ρ. With one, two gains place two poles a constraint; by the argument of
    :func:`casadi_hybrid.control.feedback.design` both at ρ are best: φ = ρ², κ = (1 − ρ)/(1 + ρ).
    """
    of = geometry(B, H)
    gain, memory = ((1 - rate) / (1 + rate), rate**2) if filtered else (1 - rate, 0.0)
    return LinearFeedback(of, gain * of.lift, np.zeros_like(of.H), memory)


def gradient(B: Any, H: Any, gain: float, step: float, preferred: Any = 0.0) -> LinearFeedback:
    """Return projected gradient feedback optimization with measured constraints.

    u_{t+1} = u_t − α B† ĥ_t − η N Nᵀ ∇f(u_t): along ker B a gradient step on the objective, across
    it a step of Gauss and Newton on the measured constraints, so neither biases the other.
    """
    of = geometry(B, H)
    slide = step * of.kernel @ of.kernel.T
    return LinearFeedback(of, gain * of.least_norm, slide, preferred=preferred)


def tuned_gradient(B: Any, H: Any, noise: Any, rate: float, preferred: Any = 0.0) -> LinearFeedback:
    """Return that of the least variance of the inputs with a spectral radius ≤ ``rate``.

    α = 1 − ρ; η is the best of those with |1 − ηλ| ≤ ρ for every curvature λ along ker B.
    """
    curvatures = np.linalg.eigvalsh(geometry(B, H).inside)
    ends = (1 - rate) / curvatures[0], (1 + rate) / curvatures[-1]

    def law(step: float) -> LinearFeedback:
        return gradient(B, H, 1 - rate, step, preferred)

    def spread(step: float) -> float:
        return float(np.trace(predict(law(step), noise).inputs))

    found = minimize_scalar(spread, bounds=ends, method="bounded")
    return law(min((*ends, found.x), key=spread))  # a bounded search never tries its ends
