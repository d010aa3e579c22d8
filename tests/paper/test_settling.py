"""Crossing is not settling: the record of a run, and the fitted constants."""

from dataclasses import replace
from itertools import product

import casadi as ca
import numpy as np
import pytest
from scipy.stats import hypergeom
from support.cases.paper_runs import KEYS, every_run, run

from casadi_hybrid.paper.experiment import CONDITIONS, experiment, make_instance, tables
from casadi_hybrid.paper.experiment import reproduce as reproduction
from casadi_hybrid.paper.experiment.experiment import ALL_METHODS, PaperMethod, Run, run_method
from casadi_hybrid.paper.experiment.fitted import SEEDS, fitted_constants, printed_constants
from casadi_hybrid.paper.experiment.verdicts import verdicts
from casadi_hybrid.solver.solver import Solver

METHODS = {method.key: method for method in ALL_METHODS}


def test_settling_is_read_off_the_trajectory() -> None:
    passing = run(below=(range(50, 60),), longest=1e-9)
    returning = run(below=(range(50, 60), range(150, 201)), longest=0.2)
    staying = run(below=(range(50, 201),), longest=1e-9)
    broken = run(below=(range(50, 201),), over_budget=True)
    group = (passing, returning, staying, broken)
    assert [r.hit for r in group] == [50] * 4
    assert [r.at_end for r in group] == [False, True, True, False]
    assert [r.stays for r in group] == [False, False, True, False]
    assert [r.arrives for r in group] == [True, False, True, False]
    cell = tables.cell_of([replace(r, seed=seed) for seed, r in enumerate((*group, run()))])
    assert (cell.runs, cell.successes, cell.below_at_200, cell.never_left) == (5, 4, 2, 1)
    assert (cell.followed, cell.below_at_1500, len(cell.over_budget)) == (3, 2, 1)


def recorded(instance):
    """The history of the weighted closed form."""
    options = METHODS["closed-w"].options
    solver = Solver(instance.problem, "closed-form", tol=1e-300, max_iter=200, **options)
    return solver.solve(instance.x0, lam_g0=instance.multipliers0, history=True).history


def test_real_run_crosses_leaves_and_arrives() -> None:
    """Condition 5, against a second run of the solver with its own record."""
    instance = make_instance(5, 3)
    paper_run = run_method(METHODS["closed-w"], instance, follow=True)
    history = recorded(instance)
    errors = np.linalg.norm(history.x - instance.x_star, axis=1)
    residuals = np.linalg.norm(history.h, axis=1)
    assert paper_run.errors == pytest.approx(errors, rel=1e-6, abs=1e-9)
    assert paper_run.feasibility == pytest.approx(residuals, rel=1e-6, abs=1e-9)
    assert paper_run.hit == int(np.argmax(errors <= 1e-3))
    assert (errors[paper_run.hit :] > 1e-3).any()
    assert not paper_run.stays
    assert paper_run.arrives
    assert paper_run.longest <= 1e-9
    assert 200 < paper_run.steps < experiment.LONG
    norms = history.design("norm_M")
    assert paper_run.norm_M == pytest.approx(norms.max())
    assert norms.max() > 1.01 * norms[-1]


def test_stationarity_is_with_the_papers_dual() -> None:
    """‖∇f + J_hᵀμ_t‖₂ with μ_t and with ν_t, from CasADi's functions of the graph."""
    instance = make_instance(2, 1)
    paper_run, history = run_method(METHODS["closed-w"], instance), recorded(instance)
    x, f, h = instance.problem.x, instance.problem.f, instance.problem.h
    slopes = ca.Function("slopes", [x], [ca.gradient(f, x), ca.jacobian(h, x)])
    for t in (0, 7, 30):
        gradient, J = (part.full() for part in slopes(history.x[t]))
        for series, duals in (
            (paper_run.stationarity, history.mu),
            (paper_run.effective, history.effective_multipliers),
        ):
            expected = np.linalg.norm(gradient.ravel() + J.T @ duals[t])
            assert series[t] == pytest.approx(expected, rel=1e-9)


def test_failed_computation_is_told_in_its_cell() -> None:
    broken = PaperMethod("closed-w", "broken", "closed-form", {"margin": "no such margin"})
    failed = run_method(broken, make_instance(2, 0))
    assert "margin" in failed.failure
    runs = [r for r in every_run({}) if (r.method, r.condition, r.seed) != ("closed-w", 8.0, 0)]
    summary = tables.summarize([*runs, replace(failed, condition=8.0)], SEEDS)
    assert tables.text_tables(summary, compare=True).count("FAILS") == 7  # tables with closed-w
    failing = [row for row in verdicts(summary, {}) if row.here.outcome == "FAILS"]
    assert {"OGDA", "Pure", "‖C_c"} & {row.statement[:4] for row in failing} == set()
    assert len(failing) >= 5
    assert all("margin" in row.note for row in failing)


def test_budget_is_told_from_other_ends() -> None:
    """Condition 13, instance 2: the first ‖M‖ is beyond 300; at condition 5 none is."""
    beyond = run_method(METHODS["closed-w"], make_instance(13, 2))
    assert beyond.over_budget
    assert beyond.steps == 0
    assert beyond.errors == pytest.approx(np.full(201, 0.5))  # it never left its start
    assert np.isfinite(beyond.stationarity).all()
    assert not run_method(METHODS["closed-w"], make_instance(5, 3)).over_budget
    # Nor of a run that crosses nowhere, and is not followed beyond its 200 steps.
    failing = run_method(METHODS["eg"], make_instance(5, 0), follow=True)
    assert (failing.steps, failing.stop) == (200, "ITERATION_LIMIT")
    assert np.isnan(failing.longest)
    assert not failing.arrives


def test_chances_are_hypergeometric() -> None:
    for successes, says in ((40, 0), (40, 4), (3, 2), (0, 0)):
        chances = hypergeom(45, successes, 5).pmf(range(6))
        expected = chances[chances <= chances[says] * (1 + 1e-9)].sum()
        assert tables.count_chance(says, successes, 45) == pytest.approx(expected, abs=1e-12)
    assert tables.median_chance(50.0, [50.0] * 9) == 1.0
    assert tables.median_chance(90.0, [50.0] * 9) == 0.0


def test_population_excludes_the_fitted_seeds(monkeypatch) -> None:
    def quick(key: tuple[float, int, int, int]) -> list[Run]:
        below = (range(50, 201),) if key[1] < 5 else ()
        return [run(k, key[0], key[1], below=below, longest=1e-9) for k in KEYS]

    monkeypatch.setattr(reproduction, "run_instance", quick)
    study = reproduction.reproduce(7, conditions=(8, 13), workers=1, progress=False)
    for cells, expected in ((study.population, (2, 0)), (study.fitted, (5, 5))):
        counts = {(cell.runs, cell.successes) for cell in cells["closed-w"].values()}
        assert counts == {expected}
    assert study.to_dict()["fitted_seeds"] == [0, 1, 2, 3, 4]


def test_open_constants_are_listed() -> None:
    values = {*fitted_constants().values()}
    assert {"200", "0.2", "0.5", "4, 2, 1", "0.05, 20"} <= values
    assert printed_constants()["M_max"] == "300"


@pytest.mark.slow
def test_ogda_and_extragradient_fail_for_all_steps() -> None:
    """On the fitted seeds: OGDA never crosses, extragradient in 3 of 240 runs."""
    hits = {"ogda": 0, "extragradient": 0}
    for condition, seed, key in product(CONDITIONS, SEEDS, hits):
        for eta in (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0):
            method = PaperMethod(key, key, key, {"eta": eta})
            hits[key] += run_method(method, make_instance(condition, seed)).hit is not None
    assert hits == {"ogda": 0, "extragradient": 3}


def test_linearized_al_lacks_the_multiplier_step() -> None:
    """At level 2 the fitted one crosses never, with σ = c it does every time."""
    for seed in SEEDS:
        instance = make_instance(2, seed)
        for key, crosses in (("lin-al", False), ("lin-al-10", True), ("lin-al-20", True)):
            assert (run_method(METHODS[key], instance).hit is not None) is crosses
    assert METHODS["lin-al-10"].options == {"penalty": 10, "dual_step": 10}
