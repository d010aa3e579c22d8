r"""Claims on the closed-form rule: the correction, θ, the steps, the weights, and their limits.

Zhao, "Matrix-Valued Optimism is Matrix-Valued Augmentation", sections "Closed-Form Hybrid
Correction Design" and "Failure under ill-conditioning", appendices "Proof of the Closed-Form Design
Guarantee", "Step-Size Design Constraints" and "Local Spectral Margin". The designs of the
package's rule are compared with the paper's formulas, written here once more. A claim on a
:class:`LocalCase` has the arguments (n, m, models, seed) of :func:`local_cases`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps

import numpy as np

from casadi_hybrid.paper import rules
from casadi_hybrid.paper.claims.claim import Measured, claim, counterexample
from casadi_hybrid.paper.experiment import CONDITIONS
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import Matrix, Vector

# The paper, "Implementation constants".
DELTA, KAPPA = 0.35, rules.StepRule(0.08, 0.20, 8.0)
FREE = 1e12
# Not one: a missing square of ‖B‖ then makes a difference.
NORM_B = 1.7
# Cancellation of H loses cond(B)² of the sixteen digits.
ROUNDED = 1e-9
# Accuracy of the optimum of problem (P).
CERTIFIED = 1e-4


@dataclass(frozen=True, eq=False)
class LocalCase:
    """H symmetric, B with a condition level, R ≻ 0; on ker B H is lifted to at least ½."""

    model: rules.LocalModel
    condition: float
    R: Matrix

    def design(self, split: rules.Split | None = None, *, plain: bool = False) -> rules.Design:
        """Return the rule's design by default, without a norm budget; R = I if plain."""
        metric = rules.IdentityMetric() if plain else rules.FixedMetric(self.R)
        rule = rules.DesignRule(metric=metric, split=split or rules.ClosedFormSplit(), M_max=FREE)
        return rule.design(self.model)


def local_cases(n: int, m: int, models: int = 12, seed: int = 0) -> Iterator[LocalCase]:
    """Yield random local models of n variables, m constraints, at the paper's condition levels."""
    rng = np.random.default_rng((seed, n, m))
    r = min(n, m)
    for k in range(models):
        condition = CONDITIONS[k % len(CONDITIONS)]
        U = np.linalg.qr(rng.standard_normal((m, r)))[0]
        V = np.linalg.qr(rng.standard_normal((n, r)))[0]
        # Singular values from NORM_B to NORM_B/condition in equal ratios.
        B = NORM_B * (U * condition ** -np.linspace(0.0, 1.0, r)) @ V.T
        S, W = rng.standard_normal((n, n)), rng.standard_normal((m, m))
        R = W @ W.T / m + 0.1 * np.eye(m)
        yield LocalCase(rules.LocalModel(S + S.T, B, 0.5), condition, R)


def over_models(
    measure: Callable[[LocalCase], dict[str, float]],
) -> Callable[[int, int, int, int], Measured]:
    """Measure the largest of each deviation over :func:`local_cases`, at least 0."""

    @wraps(measure)
    def measured(n: int = 3, m: int = 5, models: int = 12, seed: int = 0) -> Measured:
        rows = [measure(case) for case in local_cases(n, m, models, seed)]
        largest = {name: float(np.max([0.0, *(row[name] for row in rows)])) for name in rows[0]}
        return f"n={n} m={m} {models} models", largest

    return measured


@claim("Target curvature H+BᵀMB ⪰ δI")
def target_curvature(H: Matrix, B: Matrix, delta: float, R: Matrix | None = None) -> Measured:
    """Theorem: H + BᵀMB ⪰ δI with M = C_can + αR, and C_aug + C_opt = M for every θ.

    Deviations, relative to max(1, ‖H‖₂ + ‖B‖₂²‖M‖₂): short, max{0, δ − λ_min(H + BᵀMB)}; least,
    |λ_min(H + BᵀMB) − δ|; cancel, ‖H + BᵀC_can B‖. Relative to max(1, ‖M‖₂): sum,
    ‖C_aug + C_opt − M‖ over θ = 0, 0.3, 1 and the closed-form θ. R = I by default.

    Raises:
        InputError: if rank B < n, or R is not symmetric positive definite.
    """
    model = rules.LocalModel(H, B)
    if model.rank < model.n:
        raise InputError(
            f"B has rank {model.rank} < n = {model.n}; the theorem assumes full column rank, and "
            "no M changes the curvature on ker B"
        )
    R = np.eye(model.m) if R is None else R
    metric, strength = rules.FixedMetric(R), rules.TargetCurvature(delta)
    rule = rules.DesignRule(metric=metric, strength=strength, M_max=FREE)
    splits = *map(rules.GivenSplit, (0.0, 0.3, 1.0)), rule.split
    designs = [replace(rule, split=split).design(model) for split in splits]
    C_can = rules.FullCancellation().cancel(model, delta).C
    M = C_can + designs[0].alpha * R
    sums = [_norm(design.M - M) for design in designs]
    scale = max(1.0, _norm(H) + _norm(B) ** 2 * _norm(M))
    smallest = _smallest_eigenvalue(H + B.T @ M @ B)
    return f"n={model.n} m={model.m} δ={delta:g} ‖M‖={_norm(M):.3g}", {
        "short": max(0.0, delta - smallest) / scale,
        "least": abs(smallest - delta) / scale,
        "cancel": _norm(H + B.T @ C_can @ B) / scale,
        "sum": max(sums) / max(1.0, _norm(M)),
    }


@counterexample("Target curvature, rank B < n")
def unreachable_curvature(H: Matrix, B: Matrix, delta: float) -> Measured:
    """Counter-example: without full column rank no M lifts H on ker B.

    For z ∈ ker B, zᵀ(H + BᵀMB)z = zᵀHz for any M. Deviations: δ − λ_min(H + BᵀMB) for
    M = −B†ᵀHB† + α(BBᵀ)⁺ with α = 1, 100, 10,000.
    """
    model = rules.LocalModel(H, B)
    missing = {}
    for alpha in (1.0, 1e2, 1e4):
        M = model.pinv.T @ (alpha * np.eye(model.n) - H) @ model.pinv
        missing[f"α={alpha:g}"] = delta - _smallest_eigenvalue(H + B.T @ M @ B)
    return f"n={model.n} m={model.m} δ={delta:g} rank={model.rank}", missing


@claim("θ makes S1 and S3 equal", ROUNDED)
@over_models
def theta_balances(case: LocalCase) -> dict[str, float]:
    """The closed-form θ makes S1 and S3 equal, and no other θ allows a larger η_x; R ≠ I, n ≤ m.

    Deviations: balance, |S1/S3 − 1|; better, the relative gain of the best of θ = 0, 0.05, …, 1.
    """
    design = case.design()
    s1, s3 = _limits(case.model, design)
    tried = [_eta(case.design(rules.GivenSplit(theta)))[0] for theta in np.linspace(0, 1, 21)]
    return {"balance": abs(s1 / s3 - 1), "better": max(tried) / _eta(design)[0] - 1}


@claim("Steps: best margin under S1-S3", ROUNDED)
@over_models
def step_rule(case: LocalCase) -> dict[str, float]:
    """The steps keep S1–S3, make S2 an equality, and no admissible steps have a larger margin.

    For the closed-form θ, θ = 0.3 and θ = 1. Deviations: over, the relative excess over S1 and S3;
    product, |η_xη_d‖B‖²/κ_p − 1|; better, the relative gain of the best of 61×61 pairs of steps.
    """
    beta, factors = _norm(case.model.B) ** 2, np.geomspace(1e-2, 1e2, 61)
    rows = []
    for split in (rules.ClosedFormSplit(), rules.GivenSplit(0.3), rules.GivenSplit(1.0)):
        d = case.design(split)
        (eta_x, eta_d), (s1, s3) = _eta(d), _limits(case.model, d)
        X, D = eta_x * factors[:, None], eta_d * factors[None, :]
        # S1, S2 and S3 on the grid of steps.
        allowed = (s1 >= X) & (beta * X * D <= KAPPA.kappa_p)
        allowed &= _norm(d.C_opt) <= KAPPA.kappa_omega * D
        best = float(np.minimum(d.a_x * X, d.a_d * D)[allowed].max(initial=0.0))
        product = abs(eta_x * eta_d * beta / KAPPA.kappa_p - 1)
        rows.append((eta_x / min(s1, s3) - 1, product, best / _margin(d) - 1))
    return dict(zip(("over", "product", "better"), np.max(rows, axis=0), strict=True))


@claim("Weights: τ ≤ rate, R = I: ≤ 2τ", ROUNDED)
@over_models
def weights(case: LocalCase) -> dict[str, float]:
    """τ = min{a_x η_x, a_d η_d} is a lower bound of the rate to first order, for any R, n and m.

    With A = A_M the rate η_x α_M(r), r = η_d/η_x, is that of λ²x + λAx + rBᵀBx = 0. A complex λ
    has −Re λ = ½xᴴAx ≥ a_x. For a real −λ < λ_min(A) the dual part of its vector gives
    −λ = r μᵀB(A + λI)⁻¹Bᵀμ/μᵀμ ≥ r λ⁺_min(BA⁻¹Bᵀ) = a_d r. For R = I, full cancellation and full
    column rank all modes share BᵀB's vectors, and the rate is at most 2τ.

    Deviations over r a_d/a_x from 1e-3 to 1e3: below, 1 − rate/τ; curvature, |λ_min(A_M)/δ − 1|
    (without a kernel of B); twice, rate/(2τ) − 1 for R = I (n ≤ m).
    """
    deviations = {"below": 1 - min(_rate_over_margin(case, case.design()))}
    if case.model.n <= case.model.m:
        plain = case.design(plain=True)
        deviations["twice"] = 0.5 * max(_rate_over_margin(case, plain)) - 1
        deviations["curvature"] = abs(plain.min_eig_A / DELTA - 1)
    return deviations


@counterexample("Weights: rate ≤ 2τ, R ≠ I")
def weights_of_other_metrics() -> Measured:
    """Counter-example: for R ≠ I the rate can be far more than 2τ.

    A_M = 0.35 diag(1, 100), B = diag(1, ⅓)Qᵀ, Q a rotation by 45°. Deviation: max rate/(2τ) − 1.
    """
    # R = B⁻ᵀ diag(1, 100) B⁻¹ makes BᵀRB = diag(1, 100), not aligned with BᵀB.
    Q = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2.0)
    B = np.diag([1.0, 1.0 / 3.0]) @ Q.T
    inverse = np.linalg.inv(B)
    R = inverse.T @ np.diag([1.0, 100.0]) @ inverse
    case = LocalCase(rules.LocalModel(np.zeros((2, 2)), B), 3.0, 0.5 * (R + R.T))
    return "n=2 m=2", {"twice": 0.5 * max(_rate_over_margin(case, case.design())) - 1}


@claim("Growth ‖C_can‖ ≤ ‖H‖‖B†‖²", ROUNDED)
def cancellation_norm(n: int = 3, m: int = 5, models: int = 12, seed: int = 0) -> Measured:
    """‖C_can‖ ≤ ‖H‖‖B†‖², attained for H = I and for H = −vvᵀ with v the weakest direction of B.

    For n ≤ m. Deviations: over, max ‖C_can‖/(‖H‖‖B†‖²) − 1; attained, the largest distance of this
    ratio from 1 for the two H; square, |exponent of κ_B in ‖C_can‖ − 2| for H = I.
    """
    over, attained = [0.0], [0.0]
    sizes: dict[float, float] = {}
    for case in local_cases(n, m, models, seed):
        H, B, pinv = case.model.H, case.model.B, _norm(case.model.pinv) ** 2
        weakest = np.linalg.svd(B)[2][-1]
        sizes[case.condition] = _cancelled(np.eye(n), B)
        over.append(_cancelled(H, B) / (_norm(H) * pinv) - 1)
        for size in (sizes[case.condition], _cancelled(-np.outer(weakest, weakest), B)):
            attained.append(abs(size / pinv - 1))
    deviations = {"over": max(over), "attained": max(attained)}
    if len(sizes) > 1 and n > 1:
        # ‖C_can‖ ∝ κ_B²: the slope in logarithms.
        exponent = np.polyfit(np.log(list(sizes)), np.log(list(sizes.values())), 1)[0]
        deviations["square"] = abs(float(exponent) - 2)
    return f"n={n} m={m} {models} models", deviations


@claim("Problem (P), R = I: closed form best", CERTIFIED)
@over_models
def optimal_split(case: LocalCase) -> dict[str, float]:
    """Problem (P), R = I, full column rank: no C_opt allows a larger margin.

    Deviation: gain, an upper bound of the relative gain in the margin by the barrier method's gap.
    """
    d, norm_B = case.design(plain=True), case.model.norm_B
    balance = np.sqrt(d.a_d * KAPPA.kappa_p / d.a_x) / norm_B
    # The second value is a lower bound of s, so 1/s is an upper bound of any split's η_x.
    eta_x = min(balance, 1.0 / rules.least_restriction(case.model, d.M, KAPPA)[1])
    best = min(d.a_x * eta_x, d.a_d * KAPPA.kappa_p / (eta_x * norm_B**2))
    return {"gain": best / _margin(d) - 1}


@counterexample("Problem (P), R ≠ I")
def optimal_split_of_other_metrics(
    n: int = 3, m: int = 5, models: int = 12, seed: int = 0
) -> Measured:
    """Counter-example: for R ≠ I, problem (P) has better splits than the closed form.

    Deviations: share, part of the models whose best margin is more than 1 % larger; best, the
    largest relative gain in the margin; clip, the same for αR with its eigenvalues cut off.
    """
    gains, clipped = problem_p(n, m, models, seed)
    return f"n={n} m={m} {models} models", {
        "share": float(np.mean(gains > 0.01)),
        "best": float(np.max(gains)),
        "clip": float(np.max(clipped)),
    }


def problem_p(n: int = 3, m: int = 5, models: int = 100, seed: int = 0) -> tuple[Vector, Vector]:
    """Return relative gains in the margin of the best and of the clipped split, for R ≠ I."""
    splits = rules.ClosedFormSplit(), rules.OptimalSplit(), rules.ClippedSplit()
    cases = local_cases(n, m, models, seed)
    closed, best, clipped = np.array([[_margin(c.design(s)) for s in splits] for c in cases]).T
    return best / closed - 1, clipped / closed - 1


def _limits(model: rules.LocalModel, design: rules.Design) -> tuple[float, float]:
    """Return the largest η_x by S1 and, with S2, S3, from the paper's formulas and constants."""
    memory = _norm(design.C_opt) * _norm(model.B) ** 2
    s1 = KAPPA.kappa_x / _norm(model.curvature(design.C_aug))
    return s1, KAPPA.kappa_p * KAPPA.kappa_omega / memory if memory else np.inf


def _eta(design: rules.Design) -> tuple[float, float]:
    return float(np.asarray(design.eta_x)), float(np.asarray(design.eta_d))


def _margin(design: rules.Design) -> float:
    eta_x, eta_d = _eta(design)
    return min(design.a_x * eta_x, design.a_d * eta_d)


def _rate_over_margin(case: LocalCase, design: rules.Design) -> list[float]:
    """Return α_M(r)/min{a_x, a_d r} over r, on x-space × range(B): Bᵀμ depends on no more."""
    A, B = case.model.curvature(design.M), case.model.jacobian.U.T @ case.model.B
    ratios = []
    for s in np.geomspace(1e-3, 1e3, 25):
        r = s * design.a_x / design.a_d
        # S_M(r): the flow dx/dt = −A_M x − Bᵀπ, dπ/dt = r B x, the law's limit of small steps.
        S = np.block([[-A, -B.T], [r * B, np.zeros((len(B), len(B)))]])
        ratios.append(-float(np.linalg.eigvals(S).real.max()) / min(design.a_x, design.a_d * r))
    return ratios


def _norm(A: Matrix) -> float:
    return float(np.linalg.norm(A, 2))


def _smallest_eigenvalue(A: Matrix) -> float:
    return float(np.linalg.eigvalsh(0.5 * (A + A.T))[0])


def _cancelled(H: Matrix, B: Matrix) -> float:
    return _norm(rules.FullCancellation().cancel(rules.LocalModel(H, B), DELTA).C)
