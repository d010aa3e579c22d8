r"""Design of M, its split and both steps for the least predicted variance at a rate.

The plant is h(u) ≈ h₀ + B u with an unknown h₀, the objective has the Hessian H, and the sensors
give ĥ = h(u) + ε, cov ε = R. With the cheapest lift E (BE = I, NᵀHE = 0, N a basis of ker B) and

    C = 0 where EᵀHE ≻ 0, else the paper's cancellation and a metric, C = −EᵀHE + κ(BBᵀ)⁻¹,
    K = EᵀHE + C ≻ 0,

the design for the rate ρ is

    P = (1 − ρ)(H + BᵀCB)⁻¹,    D = (1 − ρ)K,    M = C + ρK.

**Why these.** H + BᵀCB has no coupling between ker B and the range of E. The inputs in ker B
shrink by 1 − η_x in a step, and for any η_x, η_d times these metrics and any correction C + cK each
of the m loops of the constraints has the same poles, λ₁λ₂ = 1 − η_x(1 + c) and (1 − λ₁)(1 − λ₂) =
η_xη_d. Where the noise enters through η_d alone, it reaches h through

    −(1 − λ₁)(1 − λ₂) z / ((z − λ₁)(z − λ₂)),

whose variance among all poles with |λ| ≤ ρ is least at λ₁ = λ₂ = ρ: (1 − ρ)(1 + ρ²)/(1 + ρ)³ times
the sensor's. In the limit ρ → 1 it is half the variance of a single pole at ρ. Any η_x within
1 − ρ ≤ η_x ≤ 1 + ρ has this variance; the smallest is the least sensitive to an error in ∇f. (At
η_x = 1 − ρ² no correction beyond C would be needed, and the split would not matter.)

**The split.** C_opt = M(I − P_n), P_n the projector on the noisy directions, so C_opt P_n = 0 and
the noise passes neither through the memory nor, as the augmented channel reads the model, through
C_aug: by the paper's theorem "Hybrid–Aug-Lag equivalence under partial residual-memory noise"
the inputs are those of full augmentation. With C = 0, the split with everything in the memory is
integral feedback: its zero cancels one of the two poles, and its variance is (1 − ρ)/(1 + ρ).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from scipy.linalg import eigh

from casadi_hybrid.control.feedback.geometry import Geometry, below_one, geometry
from casadi_hybrid.control.model.noise import ROUNDING, covariance
from casadi_hybrid.paper.law import Correction
from casadi_hybrid.utils.inputs import Matrix, as_vector, one_of, positive

SplitName = Literal["designed", "augmentation", "memory"]


@dataclass(frozen=True, eq=False)
class FeedbackDesign:
    """Design: M, its split, both steps, and the data that they were made for.

    Attributes:
        geometry: B, H and their lift.
        noise: R, the covariance of the measurements, m×m.
        rate: ρ, the spectral radius of the closed loop.
        noisy: P_n, m×m, the projector on the directions with noise.
        correction: C_aug and C_opt (m×m), the steps P (n×n) and D (m×m), as the law takes them.
        cancellation: C, m×m; zero where the least cost is convex in the constraints.
    """

    geometry: Geometry
    noise: Matrix
    rate: float
    noisy: Matrix
    correction: Correction
    cancellation: Matrix

    @property
    def M(self) -> Matrix:
        """The total correction C_aug + C_opt, m×m."""
        return self.correction.M

    @cached_property
    def projected(self) -> Matrix:
        """C_opt P_n: zero in the designed split."""
        return np.asarray(self.correction.C_opt @ self.noisy)

    def with_split(self, split: SplitName | Matrix) -> FeedbackDesign:
        """Return the same M and steps with another split.

        Args:
            split: ``"designed"``, C_opt = M(I − P_n); ``"augmentation"``, C_opt = 0;
                ``"memory"``, C_opt = M; or m shares s, C_opt = M diag(s).

        Raises:
            InputError: for another word, and another number of shares.
        """
        eye = np.eye(len(self.noise))
        if isinstance(split, str):
            one_of(split, "split", get_args(SplitName))
            share = {"designed": eye - self.noisy, "augmentation": 0 * eye, "memory": eye}[split]
        else:
            share = np.diag(as_vector(split, len(eye), "split"))
        memory = self.M @ share
        correction = replace(self.correction, C_aug=self.M - memory, C_opt=memory)
        return replace(self, correction=correction)


def design(
    sensitivity: Any,
    hessian: Any,
    noise: Any,
    rate: float,
    *,
    split: SplitName = "designed",
    quiet: float = 0.0,
) -> FeedbackDesign:
    """Return M, its split and both steps for the least predicted variance at a rate.

    The formulas stand at the head of this module.

    Args:
        sensitivity: B = ∂h/∂u in the steady state, m×n, of full row rank.
        hessian: H of the objective, n×n; positive definite on ker B, of any sign elsewhere. A
            number c stands for c·I.
        noise: R, the covariance of the measurements of h, m×m, or m variances; may be singular.
        rate: 0 < ρ < 1, the spectral radius of the closed loop.
        split: see :meth:`FeedbackDesign.with_split`.
        quiet: standard deviation, in the units of h, up to which a direction counts as clean.

    Raises:
        InputError: for B without full row rank, H or R that is not symmetric, H not positive on
            ker B, R with a negative eigenvalue, a rate outside (0, 1) or another split.
    """
    one_of(split, "split", get_args(SplitName))
    rho = below_one(rate)
    floor = positive(quiet, "quiet", allow_zero=True) ** 2
    plant = geometry(sensitivity, hessian)
    m, E, N = len(plant.B), plant.lift, plant.kernel
    R = covariance(noise, m)
    values, vectors = np.linalg.eigh(R)
    # Directions whose variance is above `quiet`² and above rounding.
    loud = vectors[:, values > max(floor, ROUNDING * values[-1])]
    C = _cancellation(plant)
    K = E.T @ plant.H @ E + C
    # E and N split (H + BᵀCB)⁻¹ into two blocks.
    primal = E @ np.linalg.solve(K, E.T)
    if N.size:
        primal = primal + N @ np.linalg.solve(plant.inside, N.T)
    # All of M in the augmented channel; with_split moves a share into the memory.
    correction = Correction(C + rho * K, np.zeros((m, m)), (1 - rho) * primal, (1 - rho) * K)
    return FeedbackDesign(plant, R, rho, loud @ loud.T, correction, C).with_split(split)


def _cancellation(plant: Geometry) -> Matrix:
    """Return C: zero if the least cost is convex in the constraints, else a C that makes it so."""
    Q = plant.lift.T @ plant.H @ plant.lift
    metric = np.linalg.inv(plant.B @ plant.B.T)
    # Generalized eigenvalues: the curvature in the metric of the least norm.
    curvatures = eigh(Q, metric, eigvals_only=True)
    if curvatures[0] > 1e-6 * np.abs(curvatures).max() > 0:
        return np.zeros_like(Q)
    # κ is the mean curvature along ker B, or the largest one of the lift if ker B = 0.
    inside = float(np.trace(plant.inside)) / len(plant.inside) if plant.inside.size else 0.0
    scale = inside or float(np.abs(curvatures).max()) or 1.0
    return scale * metric - Q
