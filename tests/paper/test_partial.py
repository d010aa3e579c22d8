"""Partial cancellation with a chosen share, and its balance of S1 and S3."""

import numpy as np
import pytest

from casadi_hybrid import InputError
from casadi_hybrid.paper import rules
from casadi_hybrid.paper.experiment import make_instance
from casadi_hybrid.paper.rules import DesignRule, LocalModel
from casadi_hybrid.paper.rules.parts import Undivided
from casadi_hybrid.problem.oracle import Oracle

DELTA = 0.35
KAPPA = DesignRule().steps
SCAN = np.linspace(0.0, 1.0, 401)


def model(condition: float, seed: int, m: int = 5) -> LocalModel:
    instance = make_instance(condition, seed, n=3, m=m)
    oracle = Oracle(instance.problem.functions, np.zeros(0))
    x, mu = instance.x0, instance.multipliers0
    if m < 3:  # on a kernel of B the curvature is positive at x* alone
        x, mu = instance.x_star, instance.multipliers_star
    at = oracle.second(x, mu)
    return LocalModel(at.hessian, at.B)


def norm(local: LocalModel, gamma: float) -> float:
    """‖γC_can + α(γ)I‖₂ by the pieces that take γ as a number."""
    C, deficit = rules.PartialCancellation(gamma).cancel(local, DELTA)
    alpha = rules.TargetCurvature(DELTA).alpha(local, np.eye(local.m), deficit)
    return float(np.linalg.norm(C + alpha * np.eye(local.m), 2))


CASES = [(1, 0), (2, 3), (5, 0), (5, 2), (8, 1), (13, 4)]


@pytest.mark.parametrize(("condition", "seed"), CASES)
def test_least_share_has_the_least_norm(condition: float, seed: int) -> None:
    local = model(condition, seed)
    gamma = rules.LeastShare().share(local, DELTA)
    best = min(norm(local, g) for g in SCAN)
    assert norm(local, gamma) <= best * (1 + 1e-9)
    C, deficit = rules.LeastShare().cancel(local, DELTA)
    expected = rules.PartialCancellation(gamma).cancel(local, DELTA)
    assert pytest.approx(expected.C, abs=1e-9) == C
    assert deficit == pytest.approx(expected.deficit)


@pytest.mark.parametrize(("condition", "seed"), CASES)
@pytest.mark.parametrize("of_the_way", [0.0, 0.3, 0.9, 1.5])
def test_bounded_share_is_the_largest_allowed(condition, seed, of_the_way):
    local = model(condition, seed)
    norms = np.array([norm(local, g) for g in SCAN])
    limit = norms.min() * 0.9 + of_the_way * (norms[-1] - norms.min() * 0.9)
    gamma = rules.BoundedShare(limit).share(local, DELTA)
    allowed = SCAN[norms <= limit]
    if allowed.size:
        assert norm(local, gamma) <= limit * (1 + 1e-9)
        assert gamma >= allowed[-1] - 1e-9
        assert gamma <= min(1.0, allowed[-1] + SCAN[1])
    else:
        assert norm(local, gamma) <= norms.min() * (1 + 1e-9)


@pytest.mark.parametrize(("condition", "seed"), CASES)
@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.8, 1.0])
def test_balance_allows_the_largest_primal_step(condition, seed, gamma):
    local = model(condition, seed)
    C, deficit = rules.PartialCancellation(gamma).cancel(local, DELTA)
    alpha = rules.TargetCurvature(DELTA).alpha(local, np.eye(5), deficit)
    parts = Undivided(local, C, alpha, np.eye(5), KAPPA)

    def allowed(theta: float) -> float:
        primal = np.linalg.norm(local.H + local.B.T @ (C + theta * alpha * np.eye(5)) @ local.B, 2)
        memory = (1 - theta) * alpha * np.linalg.norm(local.B, 2) ** 2
        s3 = KAPPA.kappa_p * KAPPA.kappa_omega / memory if memory else np.inf
        return float(min(KAPPA.kappa_x / primal, s3))

    (balanced,) = rules.BalancedSplit().candidates(parts)
    assert balanced.C_aug + balanced.C_opt == pytest.approx(C + alpha * np.eye(5))
    assert allowed(balanced.theta) >= max(map(allowed, SCAN)) * (1 - 1e-7)
    if gamma == 1.0:
        (papers,) = rules.ClosedFormSplit().candidates(parts)
        assert balanced.theta == pytest.approx(papers.theta, abs=1e-8)


def test_every_share_reaches_the_target() -> None:
    """Also with fewer constraints than variables, as far as the curvature of ker B allows."""
    balanced = rules.BalancedSplit()
    for part in (rules.PartialCancellation(0.5), rules.LeastShare(), rules.BoundedShare(30.0)):
        design = DesignRule(cancellation=part, split=balanced).design(model(5, 2))
        assert design.min_eig_A >= DELTA - 1e-9
    wide = model(3, 1, m=2)
    design = DesignRule(cancellation=rules.LeastShare(), split=balanced).design(wide)
    assert design.min_eig_A > 0
    assert design.norm_M <= norm(wide, 1.0) * (1 + 1e-9)
    with pytest.raises(InputError, match="limit"):
        rules.BoundedShare(0.0)
