"""Target curvature, the local Jacobian, the margin formula and the stiffness example."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from casadi_hybrid import claims
from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.claims import suite
from casadi_hybrid.claims.trajectories import rule_for
from casadi_hybrid.iterations import Hybrid
from casadi_hybrid.paper import make_instance

SHAPES = suite.SHAPES


def setup(n, m, seed=0, iterations=200):
    rng = np.random.default_rng((seed, n, m))
    instance = make_instance(2.0, seed, n=n, m=m)
    return instance, suite.trial_of(instance, rng, iterations), suite.random_correction(m, rng), rng


@pytest.mark.parametrize(("n", "m"), [(4, 4), (3, 5), (2, 9)])
def test_target_curvature_on_random_models(n, m):
    for seed in range(10):
        rng = np.random.default_rng((seed, n, m))
        S, W = rng.standard_normal((n, n)), rng.standard_normal((m, m))
        B = rng.standard_normal((m, n))
        for R in (None, W @ W.T + np.eye(m)):
            claim = claims.target_curvature(S + S.T, B, rng.uniform(0.01, 3), R)
            assert claim.held, str(claim)


def test_target_curvature_needs_full_column_rank_and_a_metric():
    with pytest.raises(InputError, match="rank 1 < n = 2"):
        claims.target_curvature(np.eye(2), np.ones((3, 2)), 0.35)
    with pytest.raises(InputError, match="positive definite"):
        claims.target_curvature(np.eye(2), np.eye(2), 0.35, -np.eye(2))
    # Positive curvature on the kernel: nothing to counter, and the record says so.
    assert not claims.unreachable_curvature(np.eye(2), np.ones((1, 2)), 0.35).held


@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_the_gap_is_the_rate_of_the_law(n, m):
    instance, trial, M, rng = setup(n, m)
    point = replace(trial, x0=instance.x_star, dual=instance.multipliers_star)
    functions = instance.problem.functions
    H = np.asarray(functions.second(point.x0, point.dual, [])[4].full())
    gap = claims.local_gap(H, instance.B_star, M, suite.ETA_X, suite.ETA_D)
    near = replace(point, x0=point.x0 + 1e-5 * rng.standard_normal(n), iterations=600)
    run = claims.follow(near, Hybrid(rule_for(near, (M, 0 * M))))
    error = np.linalg.norm(run.x - instance.x_star, axis=1)
    # A line through the logarithms averages out the turning of complex pairs; close pairs of
    # eigenvalues leave a few percent.
    late = np.flatnonzero(error[150:] > 1e-12) + 150
    slope = np.polyfit(late, np.log(error[late]), 1)[0]
    assert late.size > 100
    assert 1 - np.exp(slope) == pytest.approx(gap, rel=0.05)


def test_a_tall_jacobian_has_unit_eigenvalues_that_x_never_meets():
    instance, _, M, _ = setup(3, 5)
    J = claims.local_jacobian(np.eye(3), instance.B_star, M, 0.03, 0.5)
    values = np.linalg.eigvals(J)
    assert np.sum(np.abs(values - 1) < 1e-12) == 2
    assert abs(claims.spectral_gap(J)) < 1e-12
    assert claims.local_gap(np.eye(3), instance.B_star, M, 0.03, 0.5) > 0.01


def test_every_split_has_the_same_jacobian():
    instance, trial, M, rng = setup(4, 4)
    point = replace(trial, x0=instance.x_star, dual=instance.multipliers_star)
    W = rng.standard_normal(M.shape)
    first = claims.law_jacobian(point, M, 0 * M)
    assert np.abs(claims.law_jacobian(point, W, M - W) - first).max() < 1e-10
    with pytest.raises(InputError, match="variables"):
        claims.law_jacobian(point, M, M, "mu")
    with pytest.raises(InputError, match="must be numbers"):
        claims.law_jacobian(replace(point, eta_d=np.eye(4)), M, M)


def test_a_mode_is_the_two_by_two_jacobian():
    rng = np.random.default_rng(0)
    for _ in range(300):
        a, b = rng.normal(size=2)
        eta_x, eta_d = 10 ** rng.uniform(-3, 0.5, 2)
        J = claims.local_jacobian(np.array([[a]]), np.array([[b]]), np.zeros((1, 1)), eta_x, eta_d)
        gap = claims.mode_gap(a, b, eta_x, eta_d)
        assert gap == pytest.approx(claims.spectral_gap(J), rel=1e-9, abs=1e-7)
        assert (gap > 0) == (eta_x * a > 0 and eta_x * a + 0.5 * eta_x * eta_d * b * b < 2)


def test_the_rate_is_the_slow_eigenvalue():
    for a, b, r in np.random.default_rng(0).uniform(0.1, 3, (200, 3)):
        S = np.array([[-a, -b], [r * b, 0.0]])
        rate = -np.linalg.eigvals(S).real.max()
        assert claims.margin_rate(a, b, r) == pytest.approx(rate, rel=1e-7)
        formula = claims.margin_formula(a, b, 1.0, r)
        assert formula * (1 - 1e-12) <= claims.margin_rate(a, b, r) <= 2 * formula * (1 + 1e-12)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_the_expansion_of_the_spectral_radius_of_matrices(n):
    """J_AL = I + η_x S_M(r) + O(η_x²), so ρ = 1 − η_x α_M(r) + O(η_x²) where S_M(r) is Hurwitz."""
    rng = np.random.default_rng(n)
    G, B = rng.standard_normal((n, n)), rng.standard_normal((n, n))
    H, M, r = G + G.T, 40.0 * np.eye(n), 0.7
    M = M - np.linalg.pinv(B).T @ H @ np.linalg.pinv(B)  # A_M = 40 BᵀB
    A = H + B.T @ M @ B
    S = np.block([[-A, -B.T], [r * B, np.zeros((n, n))]])
    alpha = -np.linalg.eigvals(S).real.max()
    assert alpha > 0
    left, off = [], []
    steps = 1e-3 / np.linalg.norm(A, 2) * np.array([1.0, 0.1])
    for eta in steps:
        J = claims.local_jacobian(H, B, M, eta, r * eta)
        left.append(np.abs(J - np.eye(2 * n) - eta * S).max())
        off.append(abs(claims.spectral_gap(J) - eta * alpha))
    assert left[0] > 50 * left[1] > 0  # of second order
    assert off[0] <= 0.01 * steps[0] * alpha


@pytest.mark.parametrize(("a", "b"), [(0.3, 0.02), (7.96, 1000.0)])
def test_margin_claims_on_other_modes(a, b):
    for check in (
        claims.margin_bounds,
        claims.margin_equality,
        claims.margin_expansion,
        claims.margin_double_root,
    ):
        assert check(a, b).held


def test_stiffness_example():
    found = claims.stiffness_example()
    assert 0.9e-6 < found.scalar_gap < 1e-6
    assert 1.9e-3 < found.matrix_gap < 2.0e-3
    B, H = np.diag([1000.0, 1.0]), -np.eye(2)
    # The closed form of two modes is the 4×4 Jacobian of the paper at both optima.
    C = np.diag([8.96e-6, 8.96])
    J = claims.local_jacobian(H, B, C, found.matrix_eta_x, found.matrix_eta_d)
    assert claims.spectral_gap(J) == pytest.approx(found.matrix_gap, rel=1e-6)
    J = claims.local_jacobian(
        H, B, found.scalar_c * np.eye(2), found.scalar_eta_x, found.scalar_eta_d
    )
    assert claims.spectral_gap(J) == pytest.approx(found.scalar_gap, rel=1e-3)


def test_no_finer_grid_changes_the_stiffness_example():
    fine = claims.stiffness_example(np.logspace(-8, 0, 801), np.array([1.0, 10.0, 1e2, 1e3, 1e6]))
    assert fine.scalar_gap < 1e-6
    assert 1.95e-3 < fine.matrix_gap < 2.01e-3
    coarse = claims.stiffness_example(np.logspace(-8, 0, 9))
    assert not claims.stiffness(coarse).held
