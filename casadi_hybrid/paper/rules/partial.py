r"""Partial cancellation with a share γ_t chosen at every iterate, and its split.

The paper leaves :math:`C_{can}^{(\gamma)} = -\gamma_t B^{\dagger T} H B^\dagger` open. With S, T
and the deficit of :mod:`casadi_hybrid.paper.rules.cancellations` and ℓ = max(0, −e_min(S)),
the strength that still reaches δ is α(γ) = (δ + (1 − γ)ℓ)/λ_min(BᵀRB), so

.. math:: M(\gamma) = \gamma C_{can} + \alpha(\gamma) R

is affine in γ and ‖M(γ)‖₂ convex: bisection finds both shares below. A smaller γ need not make M
smaller: if H has negative curvature in the weakest direction of B, α grows as γ falls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from casadi_hybrid.paper.rules.cancellations import Cancelled, PartialCancellation
from casadi_hybrid.paper.rules.parts import Candidate, IdentityMetric, Metric, Undivided
from casadi_hybrid.paper.rules.spectra import LocalModel, symmetric_eigen, symmetric_norm
from casadi_hybrid.utils.inputs import Matrix, positive

# γ and θ to 1e-10: below, slopes are rounding.
HALVINGS = 34


class _Share:
    limit: float
    metric: Metric

    def share(self, model: LocalModel, delta: float) -> float:
        """Return γ_t."""
        none = PartialCancellation(0.0).cancel(model, delta)
        full = PartialCancellation(1.0).cancel(model, delta)
        R = self.metric.matrix(model)
        weakest = model.metric_curvature(R) if model.rank else 0.0
        unit = R / weakest if weakest > 0 else np.zeros_like(R)  # else the strength refuses R
        # M(γ) = start + γ·slope.
        # γ = 0 has C_can = 0.
        start = none.deficit * unit
        slope = full.C + full.deficit * unit - start

        def within(gamma: float) -> bool:
            return symmetric_norm(start + gamma * slope) <= self.limit

        if within(1.0):
            return 1.0
        # ‖M(γ)‖ falls up to its minimum and then rises.
        least = bisect(lambda gamma: _norm_and_slope(start, slope, gamma)[1] < 0.0)
        return bisect(within, least) if within(least) else least

    def cancel(self, model: LocalModel, delta: float) -> Cancelled:
        """Return C_can."""
        return PartialCancellation(self.share(model, delta)).cancel(model, delta)


@dataclass(frozen=True)
class LeastShare(_Share):
    """T = −γ_t S with the γ_t ∈ [0, 1] that makes ‖M‖₂ least, for the R of the rule in ``metric``.

    Deficit δ + (1 − γ_t)ℓ.
    """

    metric: Metric = field(default_factory=IdentityMetric)
    limit: float = field(default=-np.inf, init=False, repr=False)


@dataclass(frozen=True)
class BoundedShare(_Share):
    """T = −γ_t S with the largest γ_t ∈ [0, 1] for which ‖M‖₂ ≤ ``limit``, for R in ``metric``.

    If no γ meets the bound, γ_t makes ‖M‖₂ least; the rule's M_max then decides.
    """

    limit: float
    metric: Metric = field(default_factory=IdentityMetric)

    def __post_init__(self) -> None:
        positive(self.limit, "limit")


@dataclass(frozen=True, slots=True)
class BalancedSplit:
    """The θ at which S1 and S3 allow the largest η_x, for any cancellation.

    S1 allows κ_x/‖K + θαBᵀRB‖ with K = H + BᵀC_canB, S3 allows κ_pκ_ω/((1 − θ)α‖R‖‖B‖²). The larger
    of the two reciprocals is convex in θ; for K = 0 its minimum is at the paper's θ.
    """

    def candidates(self, of: Undivided) -> Iterator[Candidate]:
        """Yield the one candidate."""
        B, R, kappa = of.model.B, of.R, of.kappa
        K = of.model.curvature(of.C_can)
        added = of.alpha * (B.T @ R @ B)
        memory = kappa.kappa_x * of.alpha * symmetric_norm(R) * of.model.norm_B**2
        product = kappa.kappa_p * kappa.kappa_omega

        def falling(theta: float) -> bool:
            # Left of the least maximum: S3 restricts more, or S1's norm still falls.
            curvature, slope = _norm_and_slope(K, added, theta)
            return memory * (1.0 - theta) > product * curvature or slope < 0.0

        yield of.divided(bisect(falling))


def _norm_and_slope(A: Matrix, D: Matrix, s: float) -> tuple[float, float]:
    """Return ‖A + sD‖₂ and a subgradient of it at s, for symmetric A and D."""
    e, V = symmetric_eigen(A + s * D)
    upper = e[-1] >= -e[0]
    v = V[:, -1] if upper else V[:, 0]
    # The eigenvector of the extreme eigenvalue: d/ds vᵀ(A + sD)v = vᵀDv.
    slope = float(v @ D @ v)
    return (float(e[-1]), slope) if upper else (-float(e[0]), -slope)


def bisect(below: Callable[[float], bool], low: float = 0.0, high: float = 1.0) -> float:
    """Return the largest s in [low, high] with ``below(s)``, true first and then false."""
    if below(high):
        return high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if below(middle):
            low = middle
        else:
            high = middle
    return low
