"""The design rule against the mathematics it states, on random local models (H, B)."""

import contextlib
import re
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cases.rule_parts import GivenStrength, NoCancellation, at

from casadi_hybrid import DesignError, PointStatus, Problem, Solver, StopReason
from casadi_hybrid.paper import rules
from casadi_hybrid.paper.rules import DesignRule

Array = Any
norm = np.linalg.norm
eig = np.linalg.eigvalsh


def local_model(seed: int, n: int, m: int, condition: float) -> tuple[Array, Array, Array]:
    """A random symmetric H, a full-rank B of the given condition, and a metric R ≻ 0."""
    rng = np.random.default_rng([seed, n, m])
    G = rng.normal(size=(n, n))
    r = min(n, m)
    U = np.linalg.qr(rng.normal(size=(m, r)))[0]
    V = np.linalg.qr(rng.normal(size=(n, r)))[0]
    B = rng.uniform(0.3, 3) * (U * condition ** -np.linspace(0, 1, r)) @ V.T
    F = rng.normal(size=(m, m))
    return G + G.T, B, F @ F.T / m + 0.3 * np.eye(m)


tall = st.tuples(st.integers(1, 4), st.integers(0, 3)).map(lambda s: (s[0], s[0] + s[1]))
seeds = st.integers(0, 10_000)
conditions = st.sampled_from([1.0, 2.0, 7.0, 30.0])
splits = st.sampled_from(
    [rules.PureAugmented(), rules.PureOptimistic(), rules.ClosedFormSplit(), rules.GridSplit()]
    + [rules.GivenSplit(theta) for theta in (0.0, 0.25, 1.0)]
)
margins = st.sampled_from(["weighted", "unit"])
kappas = st.tuples(*[st.sampled_from([0.02, 0.2, 1.0, 8.0])] * 3)
FREE = 1e12  # a norm budget that no model here meets


@given(seeds, tall, conditions, splits, margins, kappas, st.booleans())
def test_every_design_keeps_s1_s2_s3(seed, shape, condition, split, margin, kappa, plain):
    H, B, R = local_model(seed, *shape, condition)
    metric = rules.IdentityMetric() if plain else rules.FixedMetric(R)
    R = np.eye(len(B)) if plain else R
    rule = DesignRule(metric=metric, split=split, steps=rules.StepRule(*kappa, margin), M_max=FREE)
    d = rule.decide(at(H, B), 0)
    kappa_x, kappa_p, kappa_omega = kappa
    near = 1 + 1e-9
    s1 = d.eta_x * norm(H + B.T @ d.C_aug @ B, 2) / kappa_x if d.C_aug.any() else 0.0
    s2 = d.eta_x * d.eta_d * norm(B, 2) ** 2 / kappa_p
    s3 = norm(d.C_opt, 2) / (kappa_omega * d.eta_d)
    assert max(s1, s2, s3) <= near
    assert s2 == pytest.approx(1)
    ratio = d.a_x * d.eta_x / (d.a_d * d.eta_d)
    assert ratio <= near  # η_x never exceeds the balance
    assert {"S1": s1, "S3": s3, "balance": ratio}[d.active] == pytest.approx(1, rel=1e-9)
    # M = C_can + αR and the weights, from their definitions.
    pinv = np.linalg.pinv(B)
    M = -pinv.T @ H @ pinv + d.alpha * R
    scale = norm(M, 2)
    assert pytest.approx(M, abs=1e-9 * scale) == d.M
    assert d.norm_M == pytest.approx(norm(d.M, 2))
    assert d.C_aug == pytest.approx(d.C_aug.T, abs=1e-12 * scale)
    A = d.alpha * B.T @ R @ B  # = H + BᵀMB, without its cancellation
    assert d.min_eig_A == pytest.approx(eig(A)[0], rel=1e-6)
    if margin == "weighted":
        assert d.a_x == pytest.approx(eig(A)[0] / 2, rel=1e-6)
        nonzero = eig(B @ np.linalg.inv(A) @ B.T)[len(B) - len(H) :]
        assert d.a_d == pytest.approx(nonzero[0], rel=1e-6)
    else:
        assert (d.a_x, d.a_d) == (1, 1)


@given(seeds, tall, conditions, kappas, st.booleans())
def test_closed_form_theta_makes_s1_s3_equal(seed, shape, condition, kappa, plain):
    H, B, R = local_model(seed, *shape, condition)
    metric = rules.IdentityMetric() if plain else rules.FixedMetric(R)
    d = DesignRule(metric=metric, steps=rules.StepRule(*kappa), M_max=FREE).decide(at(H, B), 0)
    R = np.eye(len(B)) if plain else R
    assert 0 < d.theta < 1
    assert pytest.approx((1 - d.theta) * d.alpha * R, rel=1e-12) == d.C_opt
    left = H + B.T @ d.C_aug @ B  # what S1 sees of the augmented channel
    assert pytest.approx(d.theta * d.alpha * B.T @ R @ B, abs=1e-10 * norm(d.M, 2)) == left
    kappa_x, kappa_p, kappa_omega = kappa
    # ‖H + BᵀC_aug B‖ in exact arithmetic: H is cancelled.
    s1 = kappa_x / (d.theta * d.alpha * norm(B.T @ R @ B, 2))
    s3 = kappa_p * kappa_omega / (norm(d.C_opt, 2) * norm(B, 2) ** 2)
    assert s1 == pytest.approx(s3, rel=1e-10)


@settings(max_examples=6)
@given(seeds, tall, conditions, margins)
def test_grid_beats_each_of_its_candidates(seed, shape, condition, margin):
    H, B, _ = local_model(seed, *shape, condition)
    grid = DesignRule(split=rules.GridSplit(), steps=rules.StepRule(margin=margin), M_max=FREE)
    best = grid.decide(at(H, B), 0)
    value = min(best.a_x * best.eta_x, best.a_d * best.eta_d)
    base = 0.35 / eig(B.T @ B)[0]
    for factor in (1.0, 2.0, 4.0):
        for theta in np.linspace(0, 1, 11):
            rule = DesignRule(
                strength=GivenStrength(factor * base),
                split=rules.GivenSplit(theta),
                steps=rules.StepRule(margin=margin),
                M_max=FREE,
            )
            one = rule.decide(at(H, B), 0)
            assert min(one.a_x * one.eta_x, one.a_d * one.eta_d) <= value * (1 + 2e-9)
    assert best.alpha / base == pytest.approx(round(best.alpha / base))


def test_norm_budget_chooses_the_strength() -> None:
    """C_can ⪰ 0: ‖M‖ grows with α, and the grid takes the largest one within the budget."""
    H, B, _ = local_model(3, 3, 5, 2.0)
    H, base = -H @ H, 0.35 / eig(B.T @ B)[0]
    norms = {}
    for factor in (4.0, 2.0, 1.0):
        rule = DesignRule(strength=GivenStrength(factor * base), M_max=FREE)
        norms[factor] = rule.decide(at(H, B), 0).norm_M
    assert norms[1.0] < norms[2.0] < norms[4.0]
    for factor, M_max in ((4.0, FREE), (2.0, 0.999 * norms[4.0]), (1.0, 0.999 * norms[2.0])):
        d = DesignRule(split=rules.GridSplit(), M_max=M_max).decide(at(H, B), 0)
        assert d.alpha == pytest.approx(factor * base)
        assert d.norm_M <= M_max
    # Where the least strength needs more, every split says how much.
    pure = rules.PureAugmented(), rules.PureOptimistic()
    for split in (rules.ClosedFormSplit(), *pure, rules.GridSplit()):
        with pytest.raises(DesignError, match=re.escape(f"{norms[1.0]:.4g}")):
            DesignRule(split=split, M_max=0.99 * norms[1.0]).decide(at(H, B), 0)


def test_penalty_must_outweigh_the_curvature() -> None:
    """Without cancellation M = αI alone lifts H on range(Bᵀ)."""
    rule = DesignRule(cancellation=NoCancellation(), strength=GivenStrength(10.0))
    B = np.array([[1.0, 0.0]])
    with pytest.raises(DesignError, match="eigenvalue -1"):
        rule.decide(at(np.diag([-11.0, 2.0]), B), 0)
    assert rule.decide(at(np.diag([-9.0, 2.0]), B), 0).min_eig_A == pytest.approx(1)


@pytest.mark.parametrize(("scale", "M_max"), [(1e-3, 300.0), (1e-200, 300.0), (1.0, 0.1)])
def test_solve_without_a_design_ends(scale: float, M_max: float) -> None:
    x = ca.SX.sym("x", 2)
    problem = Problem(x=x, f=ca.sumsqr(x), h=scale * (x - 1))
    result = Solver(problem, "closed-form", M_max=M_max).solve([0.5, 0.3])
    assert result.stop is StopReason.DESIGN_INFEASIBLE
    assert result.point is not PointStatus.UNDEFINED
    assert result.iterations == 0
    assert result.x.tolist() == [0.5, 0.3]


def test_extreme_jacobian_has_finite_steps_or_none() -> None:
    rule = DesignRule(cancellation=NoCancellation(), strength=GivenStrength(1.0))
    for size in (0.0, 1e155):
        with contextlib.suppress(DesignError):
            design = rule.decide(at(np.eye(1), np.full((2, 1), size)), 0)
            assert np.isfinite([design.eta_x, design.eta_d]).all()
