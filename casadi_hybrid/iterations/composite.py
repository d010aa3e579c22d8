"""The composite step d = d_y + d_z of the look-ahead iteration, and how its trials are measured."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from casadi_hybrid.basics.arrays import anywhere, norm
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.iterations.rules.spectra import Jacobian, LocalModel
from casadi_hybrid.iterations.trust_region import oriented, trust_region_step
from casadi_hybrid.iterations.violation import damped_gauss_newton, evaluate_or_none
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle

_EPS = float(np.finfo(float).eps)
# Share of the radius the normal step may use, so that the tangential step keeps room.
_NORMAL_SHARE = 0.8
_UNLIMITED = 1e100
_CLEAR, _NOISE = 8.0 * _EPS, 10.0 * _EPS


@dataclass(frozen=True, slots=True)
class CompositeStep:
    """d = d_y + d_z with the multipliers λ, σ of the radius."""

    d: Vector
    normal_damping: float
    tangential_damping: float

    @property
    def is_newton(self) -> bool:
        """Whether nothing was damped: the Newton–KKT step."""
        return self.normal_damping == 0.0 and self.tangential_damping == 0.0


def composite_step(model: LocalModel, at: Evaluation, radius: float) -> CompositeStep:
    """Return d = d_y + d_z with ‖d_y‖ ≤ 0.8Δ and ‖d‖ ≤ Δ.

    d_y = −Y(Σ² + λ)⁻¹ΣUᵀh and d_z = −Z(H_zz + σI)⁻¹(g_z + H_zy d_y). With λ = σ = 0 this is the
    Newton–KKT step for the multipliers at which H was evaluated.
    """
    d_y, damping = damped_gauss_newton(model.jacobian, at.h, _NORMAL_SHARE * radius)
    values, directions = model.kernel
    if values.size and values[0] < 0.0:
        directions = oriented(directions, values)
    room = sqrt(max(radius**2 - float(d_y.dot(d_y)), 0.0))
    force = model.H.dot(d_y)
    slope = directions.T @ (at.gradient + force)
    # What is rounding of larger numbers must not pull the step along a direction that is flat.
    slope = _beyond(slope, _CLEAR * (norm(at.gradient) + norm(force)))
    values = _beyond(values, _CLEAR * norm(model.H))
    z, lift = trust_region_step(values, slope, room)
    return CompositeStep(d_y + directions @ z, damping, lift)


def _beyond(numbers: Vector, noise: float) -> Vector:
    """The numbers, zero where they are no larger than the noise."""
    small = np.abs(numbers) <= noise
    return np.where(small, 0.0, numbers) if anywhere(small) else numbers


def newton_step(model: LocalModel, at: Evaluation) -> tuple[CompositeStep, float]:
    """The undamped step, and the least Δ at which it is that of Δ; 0 where none is Newton–KKT."""
    step = composite_step(model, at, _UNLIMITED)
    normal = norm(model.jacobian.Y.T @ step.d) / _NORMAL_SHARE
    return step, max(norm(step.d), normal) if step.is_newton else 0.0


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial step d, the functions at x + d (None outside their domain), and its ratio."""

    d: Vector
    new: Evaluation | None
    ratio: float


@dataclass(frozen=True, slots=True)
class Merit:
    """f + ν‖h‖₂ at one point, with the decrease that the model of a step predicts."""

    origin: Evaluation
    penalty: float
    predicted: float

    def measure(self, oracle: Oracle, d: Vector) -> Tried:
        """Evaluate x + d; the ratio is actual/predicted decrease, −∞ where undefined."""
        new = evaluate_or_none(oracle, self.origin.x + d)
        if new is None:
            return Tried(d, None, -np.inf)
        h_old, h_new = norm(self.origin.h), norm(new.h)
        actual = self.origin.f - new.f + self.penalty * (h_old - h_new)
        # Near a solution both decreases drown in rounding; equal noise on both means accept.
        noise = _NOISE * (abs(self.origin.f) + self.penalty * h_old)
        return Tried(d, new, (actual + noise) / (self.predicted + noise))


def kkt_error(at: Evaluation, jacobian: Jacobian) -> float:
    """max(‖h‖, ‖∇f + Bᵀλ‖) with the least-squares λ."""
    slope = at.gradient + at.B.T @ jacobian.least_squares_multipliers(at.gradient)
    return max(norm(at.h), norm(slope))
