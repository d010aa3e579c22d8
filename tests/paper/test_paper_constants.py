"""The numbers that the paper prints, typed here once more.

Those of a design follow from the paper's formulas by hand for B = 2I and H = hI, where everything
commutes.
"""

import numpy as np
import pytest
from support.problems.verdicts import read

from casadi_hybrid import DesignError, Solver
from casadi_hybrid.paper import rules
from casadi_hybrid.paper.claims import Setup
from casadi_hybrid.paper.claims.noise import memory_noise, shared_noise
from casadi_hybrid.paper.experiment import CONDITIONS, make_instance, printed
from casadi_hybrid.paper.experiment.experiment import (
    PAPER_METHODS,
    THRESHOLDS,
    PaperMethod,
    run_method,
)
from casadi_hybrid.paper.experiment.tables import summarize
from casadi_hybrid.paper.rules import DesignRule, LocalModel, StepRule
from casadi_hybrid.problem.graph.functions import Evaluation

METHODS = {method.key: method for method in PAPER_METHODS}


def test_printed_numbers_are_the_papers() -> None:
    """Tables 1, 2 and 3, typed once more in ``data/paper_tables.json``; a dash is null."""
    here = (printed.SUCCESS, printed.HITS, printed.NORM_M)
    for table, typed in zip(here, read("paper_tables").values(), strict=True):
        levels = {key: {str(c): n for c, n in row.items()} for key, row in table.items()}
        assert levels == typed


def test_default_rule_by_hand() -> None:
    """δ = 0.35, κ = (0.08, 0.20, 8), weighted: B = 2I, H = −3I, so M = (3 + δ)/4 I."""
    B, H = 2 * np.eye(3), -3 * np.eye(3)
    d = DesignRule().design(LocalModel(H, B))
    assert d.alpha == pytest.approx(0.35 / 4)
    assert pytest.approx((3 + 0.35) / 4 * np.eye(3)) == d.M
    assert d.min_eig_A == pytest.approx(0.35)
    theta = 0.08 / (0.08 + 0.20 * 8)
    assert d.theta == pytest.approx(theta)
    assert pytest.approx((0.75 + theta * 0.35 / 4) * np.eye(3)) == d.C_aug
    assert pytest.approx((1 - theta) * 0.35 / 4 * np.eye(3)) == d.C_opt
    assert d.a_x == pytest.approx(0.35 / 2)
    assert d.a_d == pytest.approx(4 / 0.35)
    balance = np.sqrt(d.a_d * 0.20 / (d.a_x * 4))
    s1, s3 = 0.08 / (theta * 0.35), 0.20 * 8 / ((1 - theta) * 0.35)
    assert s1 == pytest.approx(s3)
    assert d.eta_x == pytest.approx(min(balance, s1))
    assert d.eta_d == pytest.approx(0.20 / (4 * d.eta_x))


def test_default_norm_budget_is_300() -> None:
    DesignRule().design(LocalModel(-299.6 * np.eye(2), np.eye(2)))
    with pytest.raises(DesignError, match=r"300\.1"):
        DesignRule().design(LocalModel(-299.71 * np.eye(2), np.eye(2)))


def test_grid_order_decides_among_equals() -> None:
    """The weighted margin does not depend on α: of equals the largest α and the least θ are taken.

    H = 0 and B = 2I: S1 and S3 stay slack for small θ, so many candidates are equal.
    """
    model = LocalModel(np.zeros((3, 3)), 2 * np.eye(3))
    loose = StepRule(kappa_x=1e3, kappa_p=0.2, kappa_omega=1e3)
    d = DesignRule(split=rules.GridSplit(), steps=loose).design(model)
    assert d.alpha == pytest.approx(4 * 0.35 / 4)
    assert d.theta == 0.0
    strengths, thetas = rules.GridSplit().strengths, rules.GridSplit().thetas
    assert strengths == (4.0, 2.0, 1.0)
    assert thetas == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


def test_s1_of_an_unused_channel() -> None:
    """C_aug = 0: S1 is left out, or kept as it is printed, η_x ≤ κ_x/‖H‖."""
    model, pure = LocalModel(-3 * np.eye(3), 2 * np.eye(3)), rules.PureOptimistic()
    used = DesignRule(split=pure).design(model)
    kept = DesignRule(split=pure, steps=StepRule(s1="printed")).design(model)
    assert (used.active, kept.active) == ("S3", "S1")
    assert used.eta_x == pytest.approx(0.20 * 8 / (4 * (3 + 0.35) / 4))
    assert kept.eta_x == pytest.approx(0.08 / 3)
    closed = {DesignRule(steps=StepRule(s1=s1)).design(model).eta_x for s1 in ("used", "printed")}
    assert len(closed) == 1


def test_optimistic_method_fails_with_printed_s1() -> None:
    """The paper's five successes at condition level 2 need S1 left out."""
    for s1, crosses in (("used", 3), ("printed", 0)):
        hits = 0
        for i in (make_instance(2, seed) for seed in range(3)):
            solver = Solver(i.problem, "pure-optimistic", s1=s1, max_iter=80, tol=1e-300)
            history = solver.solve(i.x0, lam_g0=i.multipliers0, history=True).history
            hits += np.linalg.norm(history.x - i.x_star, axis=1).min() <= 1e-3
        assert abs(hits - crosses) <= (s1 == "printed")


def test_budget_and_pdhg_are_as_printed() -> None:
    """Median hits of PDHG within a quarter at levels 2 and 3, and one that takes 150 to 200."""
    instances = [make_instance(condition, seed) for condition in (2, 3) for seed in range(5)]
    runs = [run_method(METHODS["pdhg"], instance) for instance in instances]
    for condition, cell in summarize(runs, range(5))["pdhg"].items():
        assert cell.successes == 5
        assert cell.median_hit == pytest.approx(printed.HITS["pdhg"][int(condition)], rel=0.25)
    assert all(run.errors.size == 201 for run in runs)
    late = run_method(METHODS["pdhg"], make_instance(8, 3)).hits[1]
    assert late is not None
    assert 150 < late <= 200


def test_each_noise_reaches_its_part() -> None:
    """ξ the gradient, ζ both readings of h, ε what the dual channel reads, and nothing else."""
    instance = make_instance(2, 0)
    setup = Setup(instance.problem, instance.x0, instance.multipliers0, iterations=5)
    zero = np.zeros(5)
    at = Evaluation(np.zeros(3), 0.0, np.zeros(3), zero, np.zeros((5, 3)), None, zero)
    shared = [shared_noise(setup, 0)(t, at) for t in (2, 3)]
    for noisy in shared:
        assert np.array_equal(noisy.h, noisy.measured)
        for part in (noisy.gradient, noisy.h):
            assert np.abs(part).min() > 1e-5
            assert np.abs(part).max() > 1e-3
    assert not np.isclose(shared[0].gradient, shared[1].gradient).any()
    assert not np.isclose(shared[0].h, shared[1].h).any()
    of_memory = memory_noise(setup, [1, 4], 0)(2, at)
    assert not of_memory.h.any()
    assert not of_memory.gradient.any()
    assert np.flatnonzero(of_memory.measured).tolist() == [1, 4]
    assert np.abs(of_memory.measured).max() > 1e-3
    # ε_−1 is what a start may be matched without.
    assert memory_noise(setup, [1], 0)(-1, at).measured[1] != 0
    assert not memory_noise(setup, [1], 0, at_start=False)(-1, at).measured.any()


def test_levels_and_thresholds_are_the_papers() -> None:
    """And each threshold has its own first hitting time."""
    assert CONDITIONS == (1, 2, 3, 5, 8, 13)
    assert THRESHOLDS == (1e-2, 1e-3, 1e-4)
    run = run_method(METHODS["pdhg"], make_instance(2, 0))
    assert run.hits == tuple(int(np.argmax(run.errors <= e)) for e in THRESHOLDS)
    assert 0 < run.hits[0] < run.hits[1]


def test_diverging_run_failed() -> None:
    """The paper counts a run as failed where its iterates diverge; this one has no hit."""
    wild = PaperMethod("gda", "GDA", "gda", {"eta_x": 50.0, "eta_d": 50.0})
    run = run_method(wild, make_instance(2, 0))
    assert run.hits == (None, None, None)
    assert run.stop in {"DIVERGED", "EVALUATION_ERROR"}
    assert not run.failure
    assert not run.at_end


def test_methods_are_the_papers_twelve() -> None:
    """Four designs with either margin and four baselines."""
    designs = [f"{name}-{margin}" for name in ("aug", "opt", "grid", "closed") for margin in "wu"]
    assert list(METHODS) == [*designs, "ogda", "eg", "pdhg", "lin-al"]
