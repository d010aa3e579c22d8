"""Target curvature, the local Jacobian, the margin formula and the stiffness example."""

from dataclasses import replace

import numpy as np
import pytest
from support.cases.paper_runs import made

from casadi_hybrid.paper.claims import design, spectra, suite
from casadi_hybrid.paper.claims.claim import follow
from casadi_hybrid.paper.claims.trajectories import rule_for
from casadi_hybrid.paper.iterations import Hybrid
from casadi_hybrid.utils.errors import InputError

SHAPES = suite.SHAPES


def test_target_curvature_needs_rank_and_metric():
    with pytest.raises(InputError, match="rank 1"):
        design.target_curvature(np.eye(2), np.ones((3, 2)), 0.35)
    with pytest.raises(InputError, match="positive definite"):
        design.target_curvature(np.eye(2), np.eye(2), 0.35, -np.eye(2))
    # Positive curvature on the kernel: nothing to counter, and the record says so.
    assert not design.unreachable_curvature(np.eye(2), np.ones((1, 2)), 0.35).held


@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_gap_is_the_rate_of_the_law(n, m):
    instance, setup, M, rng = made(n, m)
    point = replace(setup, x0=instance.x_star, dual=instance.multipliers_star)
    functions = instance.problem.functions
    H = np.asarray(functions.second(point.x0, point.dual, [])[4].full())
    gap = spectra.local_gap(H, instance.B_star, M, suite.ETA_X, suite.ETA_D)
    near = replace(point, x0=point.x0 + 1e-5 * rng.standard_normal(n), iterations=600)
    run = follow(near, Hybrid(rule_for(near, (M, 0 * M))))
    error = np.linalg.norm(run.x - instance.x_star, axis=1)
    # A line through the logarithms averages out the turning of complex pairs; close pairs of
    # eigenvalues leave a few percent.
    late = np.flatnonzero(error[150:] > 1e-12) + 150
    slope = np.polyfit(late, np.log(error[late]), 1)[0]
    assert late.size > 100
    assert 1 - np.exp(slope) == pytest.approx(gap, rel=0.05)


def test_tall_jacobian_has_unit_eigenvalues():
    instance, _, M, _ = made(3, 5)
    arguments = (np.eye(3), instance.B_star, M, 0.03, 0.5)
    J = spectra.local_jacobian(*arguments)
    assert np.sum(np.abs(np.linalg.eigvals(J) - 1) < 1e-12) == 2
    assert abs(spectra.spectral_gap(J)) < 1e-12
    assert spectra.local_gap(*arguments) > 0.01


def test_every_split_has_the_same_jacobian():
    instance, setup, M, rng = made(4, 4)
    point = replace(setup, x0=instance.x_star, dual=instance.multipliers_star)
    W = rng.standard_normal(M.shape)
    first = spectra.law_jacobian(point, M, 0 * M)
    assert np.abs(spectra.law_jacobian(point, W, M - W) - first).max() < 1e-10
    with pytest.raises(InputError, match="variables"):
        spectra.law_jacobian(point, M, M, "mu")
    with pytest.raises(InputError):
        spectra.law_jacobian(replace(point, eta_d=np.eye(4)), M, M)


def test_mode_is_the_two_by_two_jacobian():
    rng = np.random.default_rng(0)
    for _ in range(300):
        a, b = rng.normal(size=2)
        eta_x, eta_d = 10 ** rng.uniform(-3, 0.5, 2)
        J = spectra.local_jacobian(np.array([[a]]), np.array([[b]]), np.zeros((1, 1)), eta_x, eta_d)
        gap = spectra.mode_gap(a, b, eta_x, eta_d)
        assert gap == pytest.approx(spectra.spectral_gap(J), rel=1e-9, abs=1e-7)
        assert (gap > 0) == (eta_x * a > 0 and eta_x * a + 0.5 * eta_x * eta_d * b * b < 2)


def test_rate_is_the_slow_eigenvalue():
    for a, b, r in np.random.default_rng(0).uniform(0.1, 3, (200, 3)):
        S = np.array([[-a, -b], [r * b, 0.0]])
        rate = -np.linalg.eigvals(S).real.max()
        assert spectra.margin_rate(a, b, r) == pytest.approx(rate, rel=1e-7)
        formula = spectra.margin_formula(a, b, 1.0, r)
        assert formula * (1 - 1e-12) <= spectra.margin_rate(a, b, r) <= 2 * formula * (1 + 1e-12)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_spectral_radius_expands_for_matrices(n):
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
        J = spectra.local_jacobian(H, B, M, eta, r * eta)
        left.append(np.abs(J - np.eye(2 * n) - eta * S).max())
        off.append(abs(spectra.spectral_gap(J) - eta * alpha))
    assert left[0] > 50 * left[1] > 0  # of second order
    assert off[0] <= 0.01 * steps[0] * alpha


@pytest.mark.parametrize(("a", "b"), [(0.3, 0.02), (7.96, 1000.0)])
@pytest.mark.parametrize("part", ["bounds", "equality", "expansion", "double_root"])
def test_margin_claims_on_other_modes(part, a, b):
    assert getattr(spectra, f"margin_{part}")(a, b).held


def test_stiffness_example():
    scalar, matrix = spectra.stiffness_example()
    assert 0.9e-6 < scalar.gap < 1e-6
    assert 1.9e-3 < matrix.gap < 2.0e-3
    # The closed form of two modes is the 4×4 Jacobian of the paper at both optima.
    B, H = np.diag([1000.0, 1.0]), -np.eye(2)
    for found, C, rel in ((matrix, np.diag([8.96e-6, 8.96]), 1e-6), (scalar, np.eye(2), 1e-3)):
        J = spectra.local_jacobian(H, B, found.c * C, found.eta_x, found.eta_d)
        assert spectra.spectral_gap(J) == pytest.approx(found.gap, rel=rel)


def test_finer_grid_keeps_the_stiffness_example():
    strengths = np.array([1.0, 10.0, 1e2, 1e3, 1e6])
    scalar, matrix = spectra.stiffness_example(np.logspace(-8, 0, 801), strengths)
    assert scalar.gap < 1e-6
    assert 1.95e-3 < matrix.gap < 2.01e-3
    assert not spectra.stiffness(np.logspace(-8, 0, 9)).held
