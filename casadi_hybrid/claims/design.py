r"""What the closed-form rule decides: θ, the steps, the weights, and the growth of the correction.

Zhao, "Matrix-Valued Optimism is Matrix-Valued Augmentation", sections "Closed-Form Hybrid
Correction Design" and "Failure under ill-conditioning", appendices "Step-Size Design Constraints"
and "Local Spectral Margin". Every claim asks the package's own rule for designs on random local
models (H, B) and holds them against formulas that are written here once more, with the paper's
constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from casadi_hybrid.basics.inputs import Matrix, count
from casadi_hybrid.claims.record import DIFFERENT, Claim
from casadi_hybrid.rules import (
    ClippedSplit,
    ClosedFormSplit,
    Design,
    DesignRule,
    FixedMetric,
    FullCancellation,
    GivenSplit,
    LocalModel,
    OptimalSplit,
    Split,
    StepRule,
    least_restriction,
)

# The paper, "Implementation constants".
DELTA, KAPPA = 0.35, StepRule(0.08, 0.20, 8.0)
CONDITIONS = (1.0, 2.0, 3.0, 5.0, 8.0, 13.0)
# Not one, so that a square of ‖B‖ that is missing shows.
NORM_B = 1.7
# Cancellation of H loses cond(B)² of the sixteen digits.
ROUNDED = 1e-9
# What the optimum of problem (P) is known to.
CERTIFIED = 1e-4


@dataclass(frozen=True, eq=False)
class LocalCase:
    """A random local model: H symmetric, B with a norm and a condition level, a metric R ≻ 0.

    Where rank B < n, the model lifts the curvature of H on ker B to at least ½.
    """

    model: LocalModel
    R: Matrix

    def design(self, split: Split | None = None, *, plain: bool = False) -> Design:
        """The rule's design with its own constants, without a norm budget; R = I if plain."""
        R = np.eye(self.model.m) if plain else self.R
        chosen = ClosedFormSplit() if split is None else split
        rule = DesignRule(metric=FixedMetric(R), split=chosen, M_max=1e12, kernel_floor=0.5)
        return rule.design(self.model)


def local_cases(n: int, m: int, models: int = 12, seed: int = 0) -> Iterator[LocalCase]:
    """Draw local models of n variables and m constraints, the paper's condition levels in turn.

    Raises:
        InputError: for a number below 1.
    """
    for name, value in (("n", n), ("m", m), ("models", models)):
        count(value, name, at_least=1)
    rng = np.random.default_rng((seed, n, m))
    r = min(n, m)
    for k in range(models):
        U = np.linalg.qr(rng.standard_normal((m, r)))[0]
        V = np.linalg.qr(rng.standard_normal((n, r)))[0]
        B = NORM_B * (U * CONDITIONS[k % len(CONDITIONS)] ** -np.linspace(0.0, 1.0, r)) @ V.T
        S, W = rng.standard_normal((n, n)), rng.standard_normal((m, m))
        yield LocalCase(LocalModel(S + S.T, B, 0.5), W @ W.T / m + 0.1 * np.eye(m))


def theta_balances(
    n: int = 3, m: int = 5, models: int = 12, seed: int = 0, *, tolerance: float = ROUNDED
) -> Claim:
    """The closed-form θ makes S1 and S3 equal, and no other θ allows a larger η_x.

    Full cancellation, R ≠ I, so n ≤ m. Deviations: balance, |S1/S3 − 1|; better, the relative gain
    of the best of θ = 0, 0.05, …, 1.
    """
    balance = better = 0.0
    for case in local_cases(n, m, models, seed):
        design = case.design()
        s1, s3 = _limits(case.model, design)
        balance = max(balance, abs(s1 / s3 - 1))
        tried = [_numbers(case.design(GivenSplit(theta)))[0] for theta in np.linspace(0, 1, 21)]
        better = max(better, max(tried) / _numbers(design)[0] - 1)
    measured = (("balance", balance), ("better", better))
    return Claim("θ makes S1 and S3 equal", _case(n, m, models), measured, tolerance)


def step_rule(
    n: int = 3, m: int = 5, models: int = 12, seed: int = 0, *, tolerance: float = ROUNDED
) -> Claim:
    """The steps keep S1–S3, make S2 an equality, and no admissible steps have a larger margin.

    For the closed-form θ, θ = 0.3 and θ = 1. Deviations: over, the relative excess over S1 and S3;
    product, |η_xη_d‖B‖²/κ_p − 1|; better, the relative gain of the best of 61×61 pairs of steps.
    """
    over = product = better = 0.0
    factors = np.geomspace(1e-2, 1e2, 61)
    for case in local_cases(n, m, models, seed):
        beta = _norm(case.model.B) ** 2
        for split in (ClosedFormSplit(), GivenSplit(0.3), GivenSplit(1.0)):
            d = case.design(split)
            eta_x, eta_d = _numbers(d)
            s1, s3 = _limits(case.model, d)
            over = max(over, eta_x / s1 - 1, eta_x / s3 - 1)
            product = max(product, abs(eta_x * eta_d * beta / KAPPA.kappa_p - 1))
            X, D = eta_x * factors[:, None], eta_d * factors[None, :]
            kept = _norm(d.C_opt) <= KAPPA.kappa_omega * D
            allowed = (s1 >= X) & (beta * X * D <= KAPPA.kappa_p) & kept
            most = float(np.minimum(d.a_x * X, d.a_d * D)[allowed].max(initial=0.0))
            better = max(better, most / min(d.a_x * eta_x, d.a_d * eta_d) - 1)
    measured = (("over", over), ("product", product), ("better", better))
    return Claim("Steps: best margin under S1-S3", _case(n, m, models), measured, tolerance)


def weights(
    n: int = 3, m: int = 5, models: int = 12, seed: int = 0, *, tolerance: float = ROUNDED
) -> Claim:
    """τ = min{a_x η_x, a_d η_d} is a lower bound of the rate to first order, for any R, n and m.

    With A = A_M the rate η_x α_M(r), r = η_d/η_x, is that of λ²x + λAx + rBᵀBx = 0. A complex λ
    has −Re λ = ½xᴴAx ≥ a_x. For a real −λ < λ_min(A) the dual part of its vector gives
    −λ = r μᵀB(A + λI)⁻¹Bᵀμ/μᵀμ ≥ r λ⁺_min(BA⁻¹Bᵀ) = a_d r. For R = I, full cancellation and full
    column rank all modes share BᵀB's vectors, and the rate is at most 2τ.

    Deviations over r a_d/a_x from 1e-3 to 1e3: below, 1 − rate/τ; curvature, |λ_min(A_M)/δ − 1|
    (without a kernel of B); twice, rate/(2τ) − 1 for R = I (n ≤ m).
    """
    below = twice = curvature = 0.0
    for case in local_cases(n, m, models, seed):
        below = max(below, *(1 - ratio for ratio in _rate_over_margin(case, case.design())))
        if n <= m:
            plain = case.design(plain=True)
            twice = max(twice, *(0.5 * ratio - 1 for ratio in _rate_over_margin(case, plain)))
            curvature = max(curvature, abs(plain.min_eig_A / DELTA - 1))
    measured: tuple[tuple[str, float], ...] = (("below", below),)
    if n <= m:
        measured += (("twice", twice), ("curvature", curvature))
    return Claim("Weights: τ ≤ rate, R = I: ≤ 2τ", _case(n, m, models), measured, tolerance)


def weights_of_other_metrics() -> Claim:
    """Counter-example: for R ≠ I the rate can be far more than 2τ.

    A_M = 0.35 diag(1, 100) and B = diag(1, ⅓)Qᵀ, Q a rotation by 45°: the slow direction of A_M is
    not the weak one of B. Deviation: max rate/(2τ) − 1 over r.
    """
    Q = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2.0)
    B = np.diag([1.0, 1.0 / 3.0]) @ Q.T
    inverse = np.linalg.inv(B)
    R = inverse.T @ np.diag([1.0, 100.0]) @ inverse
    case = LocalCase(LocalModel(np.zeros((2, 2)), B), 0.5 * (R + R.T))
    measured = (("twice", 0.5 * max(_rate_over_margin(case, case.design())) - 1),)
    return Claim("Weights: rate ≤ 2τ, R ≠ I", "n=2 m=2", measured, DIFFERENT, True)


def growth(
    n: int = 3, m: int = 5, models: int = 12, seed: int = 0, *, tolerance: float = ROUNDED
) -> Claim:
    """‖C_can‖ ≤ ‖H‖‖B†‖², attained for H = I and for H = −vvᵀ with v the weakest direction of B.

    Full column rank, so n ≤ m. Deviations: over, max ‖C_can‖/(‖H‖‖B†‖²) − 1; attained, the largest
    distance of that ratio from 1 for the two H; square, the distance of the exponent of κ_B in
    ‖C_can‖ from 2 for H = I, over the condition levels.
    """
    over = attained = 0.0
    sizes: dict[float, float] = {}
    for k, case in enumerate(local_cases(n, m, models, seed)):
        B = case.model.B
        pinv = _norm(case.model.pinv) ** 2
        weakest = np.linalg.svd(B)[2][-1]
        over = max(over, _cancelled(case.model.H, B) / (_norm(case.model.H) * pinv) - 1)
        sizes[CONDITIONS[k % len(CONDITIONS)]] = _cancelled(np.eye(n), B)
        for ratio in (_cancelled(np.eye(n), B), _cancelled(-np.outer(weakest, weakest), B)):
            attained = max(attained, abs(ratio / pinv - 1))
    measured: tuple[tuple[str, float], ...] = (("over", over), ("attained", attained))
    if len(sizes) > 1 and n > 1:
        exponent = np.polyfit(np.log(list(sizes)), np.log(list(sizes.values())), 1)[0]
        measured += (("square", abs(float(exponent) - 2)),)
    return Claim("Growth ‖C_can‖ ≤ ‖H‖‖B†‖²", _case(n, m, models), measured, tolerance)


def optimal_split(
    n: int = 3, m: int = 5, models: int = 12, seed: int = 0, *, tolerance: float = CERTIFIED
) -> Claim:
    """Problem (P), R = I, full column rank: no C_opt whatever allows a larger margin.

    Deviation: gain, by how much the margin could be larger, at most, than the closed form's; the
    optimum is known by the gap of the barrier method that solves (P).
    """
    gain = 0.0
    for case in local_cases(n, m, models, seed):
        d = case.design(plain=True)
        gain = max(gain, _bound(case.model, d) / _margin(d) - 1)
    case_text = _case(n, m, models)
    return Claim("Problem (P), R = I: closed form best", case_text, (("gain", gain),), tolerance)


def optimal_split_of_other_metrics(
    n: int = 3, m: int = 5, models: int = 12, seed: int = 0
) -> Claim:
    """Counter-example: for R ≠ I, problem (P) has better splits than the closed form.

    Deviations: share, part of the models where the best margin is more than 1 % larger; best, the
    largest relative gain in the margin; clip, the same for αR with its eigenvalues cut off, which
    needs no optimization.
    """
    gains, clipped = problem_p(n, m, models, seed)
    share = sum(gain > 0.01 for gain in gains) / len(gains)
    measured = (("share", share), ("best", max(gains)), ("clip", max(clipped)))
    return Claim("Problem (P), R ≠ I", _case(n, m, models), measured, DIFFERENT, True)


def problem_p(
    n: int = 3, m: int = 5, models: int = 100, seed: int = 0
) -> tuple[Sequence[float], Sequence[float]]:
    """The relative gains in the margin of the best split, and of the clipped one, for R ≠ I."""
    gains, clipped = [], []
    for case in local_cases(n, m, models, seed):
        closed = _margin(case.design())
        gains.append(_margin(case.design(OptimalSplit())) / closed - 1)
        clipped.append(_margin(case.design(ClippedSplit())) / closed - 1)
    return gains, clipped


def _limits(model: LocalModel, design: Design) -> tuple[float, float]:
    """What S1 and, with S2, S3 allow η_x, from the paper's formulas and constants."""
    beta = _norm(model.B) ** 2
    kept = _norm(design.C_opt) * beta
    s1 = KAPPA.kappa_x / _norm(model.curvature(design.C_aug))
    s3 = KAPPA.kappa_p * KAPPA.kappa_omega / kept if kept else np.inf
    return s1, s3


def _numbers(design: Design) -> tuple[float, float]:
    return float(np.asarray(design.eta_x)), float(np.asarray(design.eta_d))


def _margin(design: Design) -> float:
    eta_x, eta_d = _numbers(design)
    return min(design.a_x * eta_x, design.a_d * eta_d)


def _bound(model: LocalModel, design: Design) -> float:
    """No split of the design's M has a larger margin than this."""
    least = least_restriction(model, design.M, KAPPA).least
    balance = np.sqrt(design.a_d * KAPPA.kappa_p / design.a_x) / model.norm_B
    eta_x = min(balance, 1.0 / least)
    eta_d = KAPPA.kappa_p / (eta_x * model.norm_B**2)
    return float(min(design.a_x * eta_x, design.a_d * eta_d))


def _rate_over_margin(case: LocalCase, design: Design) -> list[float]:
    """α_M(r)/min{a_x, a_d r} over r; on x-space × range(B), as x sees no more of μ."""
    model = case.model
    A = model.curvature(design.M)
    B = model.jacobian.U.T @ model.B
    ratios = []
    for s in np.geomspace(1e-3, 1e3, 25):
        r = s * design.a_x / design.a_d
        S = np.block([[-A, -B.T], [r * B, np.zeros((len(B), len(B)))]])
        rate = -float(np.linalg.eigvals(S).real.max())
        ratios.append(rate / min(design.a_x, design.a_d * r))
    return ratios


def _norm(A: Matrix) -> float:
    return float(np.linalg.norm(A, 2))


def _cancelled(H: Matrix, B: Matrix) -> float:
    return _norm(FullCancellation().cancel(LocalModel(H, B), DELTA).C)


def _case(n: int, m: int, models: int) -> str:
    return f"n={n} m={m} {models} models"
