"""The general rules for every shape and rank of B.

Target curvature, least norms, refusals, and invariance under rotated variables and constraints.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import null_space, orth
from support.cases.rule_parts import at

from casadi_hybrid.paper import rules
from casadi_hybrid.paper.rules import DesignRule, LocalModel
from casadi_hybrid.utils.errors import NotAugmentableError

Array = Any
norm = np.linalg.norm
eig = np.linalg.eigvalsh
FREE = 1e300  # a norm budget that no model meets

CANCELLATIONS = {
    "full": rules.FullCancellation(),
    "negative": rules.NegativeCancellation(),
    "floor": rules.FloorCancellation(),
    "least norm": rules.LeastNormCancellation(),
    "partial 0": rules.PartialCancellation(0.0),
    "partial 0.3": rules.PartialCancellation(0.3),
    "partial 1": rules.PartialCancellation(1.0),
}
WHITENED = rules.WhitenedRule(replace(rules.WhitenedRule().inner, M_max=FREE))


class Model(NamedTuple):
    """H, B and the bases of range(Bᵀ) and ker B, from SciPy."""

    H: Array
    B: Array
    Y: Array
    Z: Array

    @property
    def kernel(self) -> Array:
        """Eigenvalues of H_zz."""
        return eig(self.Z.T @ self.H @ self.Z)

    def reachable(self, delta: float) -> float:
        """min(δ, ½λ_min(H_zz)): no M changes the curvature on ker B."""
        return min([delta, *(0.5 * self.kernel)])

    def schur(self, delta: float) -> Array:
        """S for the target δ, from its definition."""
        Hyy, Hyz = self.Y.T @ self.H @ self.Y, self.Y.T @ self.H @ self.Z
        inner = self.Z.T @ self.H @ self.Z - self.reachable(delta) * np.eye(self.Z.shape[1])
        return Hyy - Hyz @ np.linalg.solve(inner, Hyz.T)


def random_model(seed: int, n: int, m: int, r: int, condition: float, kernel: float) -> Model:
    """rank B = r with singular values from 1 to 1/condition; λ_min(H_zz) = kernel."""
    rng = np.random.default_rng([seed, n, m, r])
    U, V = (np.linalg.qr(rng.normal(size=(size, r)))[0] for size in (m, n))
    B = (U * condition ** -np.linspace(0, 1, r)) @ V.T
    G = rng.normal(size=(n, n)) * 10 ** rng.uniform(-1, 1)
    H, Y, Z = G + G.T, orth(B.T, rcond=1e-9), null_space(B, rcond=1e-9)
    if r < n:
        H = H + (kernel - eig(Z.T @ H @ Z)[0]) * Z @ Z.T
    return Model(H, B, Y, Z)


# (n, m, rank of B), and with a kernel of B.
numbers = st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(1, 5))
shapes = numbers.map(lambda s: (s[0], s[1], min(s)))
wide = numbers.map(lambda s: (s[0] + 1, s[1], min(s)))
seeds = st.integers(0, 100_000)
conditions = st.sampled_from([1.0, 10.0, 300.0])
models = st.builds(
    lambda seed, shape, condition, kernel: random_model(seed, *shape, condition, kernel),
    seeds,
    shapes,
    conditions,
    st.sampled_from([0.05, 1.0, 8.0]),
)
deltas = st.sampled_from([0.02, 0.35, 3.0])
names = st.sampled_from(sorted(CANCELLATIONS))


def fixed_metric(m: int) -> Any:
    G = np.random.default_rng(m).normal(size=(m, m))
    return rules.FixedMetric(G @ G.T / m + 0.2 * np.eye(m))


METRICS = [lambda m: rules.IdentityMetric(), lambda m: rules.GramMetric(), fixed_metric]


@given(models, deltas, names, st.sampled_from(METRICS), st.booleans())
def test_target_curvature_is_reached(model, delta, name, metric, optimistic):
    """A_M ⪰ min(δ, ½λ_min(H_zz)) I whenever H_zz ≻ 0."""
    rule = DesignRule(
        CANCELLATIONS[name],
        metric=metric(len(model.B)),
        strength=rules.TargetCurvature(delta),
        split=rules.PureOptimistic() if optimistic else rules.PureAugmented(),
        M_max=FREE,
    )
    d = rule.decide(at(model.H, model.B), 0)
    rounding = 1e-13 * (norm(model.H, 2) + norm(model.B, 2) ** 2 * norm(d.M, 2))
    smallest = eig(model.H + model.B.T @ d.M @ model.B)[0]
    assert smallest >= model.reachable(delta) * (1 - 1e-8) - rounding
    assert d.min_eig_A == pytest.approx(smallest, rel=1e-6, abs=rounding)
    assert min(d.eta_x, d.eta_d) > 0


@given(models, deltas)
def test_less_strength_misses_the_target(model: Model, delta: float) -> None:
    """The bound is met with equality on range(Bᵀ), for the rule's own α."""
    local = LocalModel(model.H, model.B)
    for metric in METRICS:
        R = metric(len(model.B)).matrix(local)
        C, deficit = rules.FullCancellation().cancel(local, delta)
        alpha = rules.TargetCurvature(delta).alpha(local, R, deficit)
        for part in (1.0, 0.9):
            added = model.B.T @ (C + part * alpha * R) @ model.B
            S = model.schur(delta) + model.Y.T @ added @ model.Y
            assert eig(S)[0] == pytest.approx(part * delta, rel=1e-5)


@given(models, deltas)
def test_no_smaller_matrix_reaches_the_target(model: Model, delta: float) -> None:
    """min ½‖M‖² s.t. S + YᵀBᵀMBY ⪰ δI: M = BYΛYᵀBᵀ with Λ ⪰ 0, Λ·(slack) = 0 is sufficient."""
    C, deficit = rules.LeastNormCancellation().cancel(LocalModel(model.H, model.B), delta)
    assert deficit == 0
    S, BY = model.schur(delta), model.B @ model.Y
    slack = S + BY.T @ C @ BY - delta * np.eye(len(S))
    lift = np.linalg.pinv(BY)
    dual = lift @ C @ lift.T
    assert pytest.approx(C.T, abs=1e-12 * (1 + norm(C))) == C
    assert pytest.approx(BY @ dual @ BY.T, abs=1e-9 * (1 + norm(C))) == C
    rounding = 1e-12 * (1 + norm(S) + norm(BY, 2) ** 2 * norm(C))
    assert eig(slack)[0] >= -rounding
    assert eig(dual)[0] >= -1e-9 * (1 + norm(dual))
    assert abs(np.trace(dual @ slack)) <= rounding * (1 + norm(dual))


@given(seeds, wide, conditions, st.sampled_from([0.0, -1e-3, -7.0]), names)
def test_curvature_on_the_kernel_is_refused(seed, shape, condition, kernel, name):
    model = random_model(seed, *shape, condition, kernel - 1e-9)
    for rule in (DesignRule(CANCELLATIONS[name], M_max=FREE), rules.WhitenedRule()):
        with pytest.raises(NotAugmentableError) as caught:
            rule.decide(at(model.H, model.B), 0)
        direction = caught.value.direction
        scale = 1e-12 * (1 + norm(model.H, 2))
        assert norm(direction) == pytest.approx(1)
        assert norm(model.B @ direction) <= 1e-12
        assert direction @ model.H @ direction == pytest.approx(caught.value.curvature, abs=scale)
        assert caught.value.curvature == pytest.approx(model.kernel[0], abs=scale)
        assert caught.value.curvature <= 0
        assert f"entry {np.abs(direction).argmax()} of x" in str(caught.value)


@given(seeds, wide, conditions, st.sampled_from([0.0, -1e-3, -7.0]), deltas, names)
def test_kernel_floor_convexifies(seed, shape, condition, kernel, delta, name):
    """A = H + BᵀMB + Z(H_zz₊ − H_zz)Zᵀ ⪰ min(δ, ½λ_min(H_zz₊)) I, and M is finite."""
    model = random_model(seed, *shape, condition, kernel)
    floor, strength = 0.6, rules.TargetCurvature(delta)
    rule = DesignRule(CANCELLATIONS[name], strength=strength, M_max=FREE, kernel_floor=floor)
    d = rule.decide(at(model.H, model.B), 0)
    e, W = np.linalg.eigh(model.Z.T @ model.H @ model.Z)
    lift = model.Z @ (W * (np.maximum(e, floor) - e)) @ W.T @ model.Z.T
    A = model.H + model.B.T @ d.M @ model.B + lift
    rounding = 1e-13 * (norm(model.H, 2) + norm(model.B, 2) ** 2 * norm(d.M, 2))
    assert eig(A)[0] >= min(delta, 0.5 * floor) * (1 - 1e-8) - rounding
    assert d.min_eig_A == pytest.approx(eig(A)[0], rel=1e-6, abs=rounding)
    local = LocalModel(model.H, model.B, kernel_floor=floor)
    assert pytest.approx(lift, abs=1e-11 * (1 + norm(model.H))) == local.convexification
    # A floor below the curvature that is there changes nothing.
    convex = at(model.H + lift, model.B)
    plain, low = (DesignRule(M_max=FREE, kernel_floor=f).decide(convex, 0) for f in (None, 1e-3))
    assert np.array_equal(plain.M, low.M)
    assert plain.eta_x == low.eta_x


def orthogonal(seed: int, size: int) -> Array:
    return np.linalg.qr(np.random.default_rng([seed, size]).normal(size=(size, size)))[0]


well = st.builds(lambda seed, shape: random_model(seed, *shape, 10.0, 1.0), seeds, shapes)


@given(well, seeds, names, st.booleans())
def test_rotations_keep_the_design(model, seed, name, grid):
    """x = Qx′: H′ = QᵀHQ, B′ = BQ, M′ = M; h = Qh′: B′ = QᵀB, M′ = QᵀMQ; and the same steps."""
    split = rules.GridSplit() if grid else rules.ClosedFormSplit()
    rule = DesignRule(CANCELLATIONS[name], split=split, M_max=FREE)
    plain = rule.decide(at(model.H, model.B), 0)
    Q = orthogonal(seed, len(model.H))
    of_x = rule.decide(at(Q.T @ model.H @ Q, model.B @ Q), 0)
    scale = 1e-8 * (1 + norm(plain.M))
    assert pytest.approx(plain.C_aug, abs=scale) == of_x.C_aug
    assert pytest.approx(plain.C_opt, abs=scale) == of_x.C_opt
    Q = orthogonal(seed, len(model.B))
    of_h = rule.decide(at(model.H, Q.T @ model.B), 0)
    assert pytest.approx(Q.T @ plain.M @ Q, abs=scale) == of_h.M
    for rotated in (of_x, of_h):
        for field in ("alpha", "theta", "a_x", "a_d", "min_eig_A", "norm_M", "eta_x"):
            expected = pytest.approx(getattr(plain, field), rel=1e-6, nan_ok=True)
            assert getattr(rotated, field) == expected, field
        # S1 and S3 may be equal, and then the last bit decides.
        assert (rotated.active == "balance") == (plain.active == "balance")


@given(models)
def test_whitened_rule_is_its_formula(model: Model) -> None:
    """C = TC′T, D = η_d T² with T = (BBᵀ)^{+½} and the inner design for (H, TB)."""
    e, W = np.linalg.eigh(model.B @ model.B.T)
    root = np.divide(1, np.sqrt(np.maximum(e, 0)), out=0 * e, where=e > 1e-12 * e[-1])
    T = (W * root) @ W.T
    design = WHITENED.decide(at(model.H, model.B), 0)
    inner = WHITENED.inner.decide(at(model.H, T @ model.B), 0)
    assert norm(T @ model.B, 2) == pytest.approx(1, rel=1e-6)
    for matrix, expected in (
        (design.C_aug, T @ inner.C_aug @ T),
        (design.C_opt, T @ inner.C_opt @ T),
        (design.eta_d, inner.eta_d * T @ T),
    ):
        assert matrix == pytest.approx(expected, abs=1e-6 * (1 + norm(expected)))
    assert design.eta_x == pytest.approx(inner.eta_x, rel=1e-6)
    assert design.norm_M == pytest.approx(norm(design.M, 2), rel=1e-9)


@given(models, names)
def test_matrix_steps_are_their_formulas(model: Model, name: str) -> None:
    """P = A_M⁻¹ and D = (BPBᵀ)⁺ on range(B), with H_zz lifted to δ where it is below."""
    delta = 0.1
    rule = rules.MatrixRule(CANCELLATIONS[name], delta=delta, optimistic_share=0.25)
    c = rule.decide(at(model.H, model.B), 0)
    local = LocalModel(model.H, model.B, kernel_floor=delta)
    A = local.curvature(c.M)
    assert c.eta_x @ A == pytest.approx(np.eye(len(A)), abs=1e-8 * np.linalg.cond(A))
    U = orth(model.B, rcond=1e-9)
    core = U.T @ model.B @ c.eta_x @ model.B.T @ U
    expected = U @ np.linalg.inv(core) @ U.T
    assert c.eta_d == pytest.approx(expected, rel=1e-6, abs=1e-6 * norm(expected))
    assert pytest.approx(0.25 * c.M, abs=1e-14 * (1 + norm(c.M))) == c.C_opt
    floor = min([delta, *(0.5 * np.maximum(model.kernel, delta))])
    rounding = 1e-13 * (norm(model.H, 2) + norm(model.B, 2) ** 2 * norm(c.M, 2))
    assert eig(A)[0] >= floor - rounding


@given(well, deltas)
def test_spectra_equal_numpys(model: Model, delta: float) -> None:
    n, m, r = len(model.H), len(model.B), model.Y.shape[1]
    G = np.random.default_rng(n + m).normal(size=(n, n))
    A = G @ G.T + np.eye(n)
    local = LocalModel(model.H, model.B)
    assert local.rank == r
    assert local.norm_B == pytest.approx(norm(model.B, 2))
    assert local.pinv == pytest.approx(np.linalg.pinv(model.B, rcond=1e-10), abs=1e-10)
    dual = eig(model.B @ np.linalg.inv(A) @ model.B.T)
    assert local.smallest_dual_curvature(A) == pytest.approx(dual[m - r], rel=1e-8)
    assert local.kernel[0] == pytest.approx(model.kernel, abs=1e-10)
    S = model.schur(delta)
    assert eig(local.schur(delta)) == pytest.approx(eig(S), abs=1e-9)
    R = rules.GramMetric().matrix(local)
    assert pytest.approx(model.Y @ model.Y.T, abs=1e-9) == model.B.T @ R @ model.B
    assert local.metric_curvature(R) == pytest.approx(1)


# Remainder of an eigenvalue e of the Schur complement.
LEFT = {
    "full": lambda e, delta: 0 * e,
    "negative": lambda e, delta: np.maximum(e, 0),
    "floor": np.maximum,
    "partial 0.3": lambda e, delta: 0.7 * e,
    "partial 0": lambda e, delta: e,
}


@given(well, deltas, st.sampled_from(sorted(LEFT)))
def test_cancellation_leaves_its_spectrum(model: Model, delta: float, name: str) -> None:
    """And the least C with its BᵀCB, in both norms: C = B⁺ᵀ(BᵀCB)B⁺."""
    C, deficit = CANCELLATIONS[name].cancel(LocalModel(model.H, model.B), delta)
    S, BY = model.schur(delta), model.B @ model.Y
    left, (e, W) = S + BY.T @ C @ BY, np.linalg.eigh(S)
    scale = 1e-10 * (1 + norm(S, 2))
    assert pytest.approx((W * LEFT[name](e, delta)) @ W.T, abs=scale) == left
    # The deficit is what is missing to δ, no more and no less than the docstrings say.
    lowest = max(0.0, -eig(S)[0])
    told = {"floor": 0.0, "partial 0.3": delta + 0.7 * lowest, "partial 0": delta + lowest}
    assert deficit == pytest.approx(told.get(name, delta), abs=scale)
    assert deficit >= max(0.0, delta - eig(left)[0]) - scale
    pinv = np.linalg.pinv(model.B, rcond=1e-10)
    assert pytest.approx(pinv.T @ (model.B.T @ C @ model.B) @ pinv, abs=1e-9 * (1 + norm(C))) == C
