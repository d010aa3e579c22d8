"""Algorithm 1 on one page, and the method that runs the same by exchangeable parts."""

from typing import Any

import numpy as np
import pytest

from casadi_hybrid import InputError, Solver
from casadi_hybrid.paper import rules
from casadi_hybrid.paper.experiment.generator import make_instance
from casadi_hybrid.paper.rules import DesignRule, algorithm_1
from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle

# Of the design and of Algorithm 1: the same names.
CHOSEN = ("C_aug", "C_opt", "eta_x", "eta_d", "alpha", "theta", "a_x", "a_d")
# The paper's levels with its shape, and other shapes of full column rank.
CASES = [(3, 5, condition, seed) for condition in (1, 2, 3, 5, 8, 13) for seed in range(2)]
CASES += [(n, m, 3.0, 0) for n, m in ((1, 1), (1, 4), (2, 2), (4, 4), (4, 7), (6, 9))]


def close(got: Any, wanted: Any) -> bool:
    """Agreement to 1e-9 of the larger array: C_can loses cond(B)² of the digits."""
    size = max(np.abs(wanted).max(), 1e-6)
    return float(np.abs(np.asarray(got) - wanted).max()) <= 1e-9 * size


@pytest.mark.parametrize(("n", "m", "condition", "seed"), CASES)
@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_method_is_the_page(n: int, m: int, condition: float, seed: int, shift: float) -> None:
    """x_t, μ_t and the design, step by step along the run of the method from x_{−1}."""
    one = make_instance(condition, seed, n=n, m=m)
    oracle = Oracle(one.problem.functions, np.zeros(0))
    x_prev = one.x0 + shift
    solver = Solver(one.problem, "algorithm-1", tol=1e-300, max_iter=25, divergence=1e2, M_max=1e9)
    given = x_prev if shift else None
    history = solver.solve(one.x0, lam_g0=one.multipliers0, x_prev=given, history=True).history
    xs, mus = history.x, history.mu
    assert np.array_equal(mus[0], one.multipliers0)
    h, B = oracle.first(x_prev).h, np.zeros((m, m))
    C_opt = algorithm_1(oracle.second(one.x0, one.multipliers0), one.multipliers0, h, B).C_opt
    steps = zip(xs, mus, history.corrections, xs[1:], mus[1:], strict=False)
    for x, mu, design, x_next, mu_next in steps:
        at = oracle.second(x, mu)
        page = algorithm_1(at, mu, h, C_opt)
        for name in CHOSEN:
            assert close(getattr(design, name), getattr(page, name)), name
        assert close(x_next, page.x)
        assert close(mu_next, page.mu)
        h, C_opt = at.h, page.C_opt
    assert len(xs) > 2


@pytest.mark.parametrize("seed", range(10))
def test_rule_is_the_page_for_any_metric(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    m = n + int(rng.integers(0, 4))
    H, B, W = (rng.standard_normal(size) for size in ((n, n), (m, n), (m, m)))
    H, R = H + H.T, W @ W.T / m + 0.2 * np.eye(m)
    names = ("delta", "kappa_x", "kappa_p", "kappa_omega")
    numbers = {name: float(rng.uniform(0.05, 4)) for name in names}
    x, g, h = rng.standard_normal(n), rng.standard_normal(n), rng.standard_normal(m)
    page = algorithm_1(Evaluation(x, 0.0, g, h, B, H, h), h, h, R, R, **numbers)
    strength = rules.TargetCurvature(numbers.pop("delta"))
    steps, metric = rules.StepRule(**numbers), rules.FixedMetric(R)
    rule = DesignRule(rules.FullCancellation(), metric, strength, steps=steps, M_max=1e12)
    design = rule.design(rules.LocalModel(H, B))
    for name in CHOSEN:
        assert close(getattr(design, name), getattr(page, name)), name


def test_method_has_no_options_of_its_page() -> None:
    problem = make_instance(3, 4).problem
    for option in ("hessian_at", "dual_start", "memory", "s1"):
        with pytest.raises(InputError, match=option):
            Solver(problem, "algorithm-1", **{option: "printed"})
