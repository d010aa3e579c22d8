"""Partial cancellation with a chosen share, and its own balance of S1 and S3."""

from itertools import pairwise

import numpy as np
import pytest

from casadi_hybrid import InputError
from casadi_hybrid.paper.experiment import make_instance
from casadi_hybrid.paper.rules import (
    BalancedSplit,
    BoundedShare,
    ClosedFormSplit,
    DesignRule,
    FullCancellation,
    LeastShare,
    LocalModel,
    PartialCancellation,
    TargetCurvature,
)
from casadi_hybrid.paper.rules.parts import Undivided
from casadi_hybrid.problem.oracle import Oracle

DELTA = 0.35
SCAN = np.linspace(0.0, 1.0, 401)


def model(condition: float, seed: int, m: int = 5) -> LocalModel:
    instance = make_instance(condition, seed, n=3, m=m)
    oracle = Oracle(instance.problem.functions, np.zeros(0))
    at = oracle.second(instance.x0, instance.multipliers0)
    return LocalModel(at.hessian, at.B)


def norm(local: LocalModel, gamma: float) -> float:
    """‖γC_can + α(γ)I‖₂ by the pieces that take γ as a number."""
    C, deficit = PartialCancellation(gamma).cancel(local, DELTA)
    alpha = TargetCurvature(DELTA).alpha(local, np.eye(local.m), deficit)
    return float(np.linalg.norm(C + alpha * np.eye(local.m), 2))


CASES = [(1, 0), (2, 3), (5, 0), (5, 2), (8, 1), (13, 4)]


@pytest.mark.parametrize(("condition", "seed"), CASES)
def test_the_least_share_has_the_least_norm(condition: float, seed: int) -> None:
    local = model(condition, seed)
    gamma = LeastShare().share(local, DELTA)
    best = min(norm(local, g) for g in SCAN)
    assert norm(local, gamma) <= best * (1 + 1e-9)
    C, deficit = LeastShare().cancel(local, DELTA)
    expected = PartialCancellation(gamma).cancel(local, DELTA)
    assert pytest.approx(expected.C, abs=1e-9) == C
    assert deficit == pytest.approx(expected.deficit)


@pytest.mark.parametrize(("condition", "seed"), CASES)
@pytest.mark.parametrize("of_the_way", [0.0, 0.3, 0.9, 1.5])
def test_the_bounded_share_is_the_largest_within_the_bound(condition, seed, of_the_way):
    local = model(condition, seed)
    norms = np.array([norm(local, g) for g in SCAN])
    limit = norms.min() * 0.9 + of_the_way * (norms[-1] - norms.min() * 0.9)
    gamma = BoundedShare(limit).share(local, DELTA)
    allowed = SCAN[norms <= limit]
    if allowed.size:
        assert norm(local, gamma) <= limit * (1 + 1e-9)
        assert gamma >= allowed[-1] - 1e-9
        assert gamma <= min(1.0, allowed[-1] + SCAN[1])
    else:
        assert norm(local, gamma) <= norms.min() * (1 + 1e-9)


def test_a_bound_is_met_by_less_than_full_cancellation_somewhere() -> None:
    """Where the weakest direction of B bends upwards (seen at some of these) γ < 1 is smaller."""
    shares = [LeastShare().share(model(5, seed), DELTA) for seed in range(12)]
    assert min(shares) < 0.9
    assert max(shares) == 1.0


@pytest.mark.parametrize(("condition", "seed"), CASES)
def test_the_balance_is_the_papers_under_full_cancellation(condition: float, seed: int) -> None:
    local = model(condition, seed)
    kappa = DesignRule().steps
    C, deficit = FullCancellation().cancel(local, DELTA)
    alpha = TargetCurvature(DELTA).alpha(local, np.eye(5), deficit)
    (ours,) = BalancedSplit().candidates(Undivided(local, C, alpha, np.eye(5), kappa))
    (papers,) = ClosedFormSplit().candidates(Undivided(local, C, alpha, np.eye(5), kappa))
    assert ours.theta == pytest.approx(papers.theta, abs=1e-8)


@pytest.mark.parametrize(("condition", "seed"), CASES)
@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.8])
def test_the_balance_allows_the_largest_primal_step(condition, seed, gamma):
    local = model(condition, seed)
    kappa = DesignRule().steps
    C, deficit = PartialCancellation(gamma).cancel(local, DELTA)
    alpha = TargetCurvature(DELTA).alpha(local, np.eye(5), deficit)

    def allowed(theta: float) -> float:
        primal = np.linalg.norm(local.H + local.B.T @ (C + theta * alpha * np.eye(5)) @ local.B, 2)
        memory = (1 - theta) * alpha * np.linalg.norm(local.B, 2) ** 2
        s3 = kappa.kappa_p * kappa.kappa_omega / memory if memory else np.inf
        return float(min(kappa.kappa_x / primal, s3))

    (found,) = BalancedSplit().candidates(Undivided(local, C, alpha, np.eye(5), kappa))
    assert found.C_aug + found.C_opt == pytest.approx(C + alpha * np.eye(5))
    assert allowed(found.theta) >= max(map(allowed, SCAN)) * (1 - 1e-7)


def test_the_rule_reaches_the_target_with_every_share() -> None:
    local = model(5, 2)
    designs = [
        DesignRule(cancellation=part, split=BalancedSplit()).design(local)
        for part in (PartialCancellation(0.5), LeastShare(), BoundedShare(30.0))
    ]
    assert all(design.min_eig_A >= DELTA - 1e-9 for design in designs)


def test_with_fewer_constraints_than_variables() -> None:
    instance = make_instance(3, 1, n=3, m=2)
    oracle = Oracle(instance.problem.functions, np.zeros(0))
    at = oracle.second(instance.x_star, instance.multipliers_star)
    local = LocalModel(at.hessian, at.B)
    design = DesignRule(cancellation=LeastShare(), split=BalancedSplit()).design(local)
    assert design.min_eig_A > 0
    assert all(a <= b * (1 + 1e-9) for a, b in pairwise((design.norm_M, norm(local, 1.0))))


def test_a_limit_must_be_positive() -> None:
    with pytest.raises(InputError, match="limit"):
        BoundedShare(0.0)
