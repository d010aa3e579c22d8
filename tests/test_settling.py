"""Crossing is not settling: the columns, verdicts and explanations of the reproduction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import hypergeom

from casadi_hybrid.paper import experiment, make_instance, printed, verdicts
from casadi_hybrid.paper import reproduce as reproduction
from casadi_hybrid.paper.cells import cell_of, summarize
from casadi_hybrid.paper.differences import (
    contradictions,
    count_chance,
    differences,
    median_chance,
    readings,
)
from casadi_hybrid.paper.experiment import (
    ALL_METHODS,
    PAPER_METHODS,
    PaperMethod,
    Run,
    run_method,
)
from casadi_hybrid.paper.fitted import SEEDS, fitted_constants, printed_constants
from casadi_hybrid.paper.growth import growth
from casadi_hybrid.paper.tables import partial_table, settling_table, text_tables
from casadi_hybrid.solver import Solver

METHODS = {method.key: method for method in PAPER_METHODS}
KEYS = [method.key for method in ALL_METHODS]


def run(
    method: str = "closed-w",
    condition: float = 8.0,
    seed: int = 0,
    *,
    below: tuple[range, ...] = (),
    longest: float | None = None,
    over_budget: bool = False,
    failure: str = "",
) -> Run:
    """A run that is below 1e-3 for the given steps alone."""
    errors = np.full(201, 0.1)
    for steps in below:
        errors[list(steps)] = 5e-4
    hits = [int(steps[0]) for steps in below]
    hit = min(hits) if hits else None
    ended = "DESIGN_INFEASIBLE" if over_budget else "ITERATION_LIMIT"
    return Run(
        method, condition, seed, (hit, hit, None), 50.0, ended, errors, errors, errors, errors,
        90 if over_budget else 200, over_budget, longest, failure,
    )  # fmt: skip


def every_run(hits: dict[str, int | None], conditions=(8.0, 13.0), seeds=range(5)) -> list[Run]:
    """Every method on every instance, crossing for good at the given step."""
    return [
        run(key, c, seed, below=() if hits.get(key) is None else (range(hits[key], 201),))
        for key in KEYS
        for c in conditions
        for seed in seeds
    ]


def test_still_below_and_never_left_are_read_off_the_whole_trajectory() -> None:
    passing = run(below=(range(50, 60),), longest=1e-9)
    returning = run(below=(range(50, 60), range(150, 201)), longest=0.2)
    staying = run(below=(range(50, 201),), longest=1e-9)
    broken = run(below=(range(50, 201),), over_budget=True)
    assert [r.hit for r in (passing, returning, staying, broken)] == [50] * 4
    assert [r.at_end for r in (passing, returning, staying, broken)] == [False, True, True, False]
    assert [r.stays for r in (passing, returning, staying, broken)] == [False, False, True, False]
    assert [r.arrives for r in (passing, returning, staying, broken)] == [True, False, True, False]
    cell = cell_of([passing, returning, staying, broken, run()])
    assert (cell.runs, cell.successes, cell.below_at_200, cell.never_left) == (5, 4, 2, 1)
    assert (cell.followed, cell.below_at_1500, cell.over_budget) == (3, 2, 1)


def test_a_real_run_that_crosses_leaves_and_arrives() -> None:
    """Condition 5: by a second run of the solver with its own record."""
    instance = make_instance(5, 3)
    found = run_method(METHODS["closed-w"], instance, follow=True)
    options = METHODS["closed-w"].options
    solver = Solver(instance.problem, "closed-form", tol=1e-300, max_iter=200, **options)
    history = solver.solve(instance.x0, lam_g0=instance.multipliers0, history=True).history
    errors = np.linalg.norm(history.x - instance.x_star, axis=1)
    assert found.errors == pytest.approx(errors, rel=1e-6, abs=1e-9)
    assert found.feasibility == pytest.approx(np.linalg.norm(history.h, axis=1), rel=1e-6, abs=1e-9)
    assert found.hit == int(np.argmax(errors <= 1e-3))
    assert (errors[found.hit :] > 1e-3).any()
    assert not found.stays
    assert found.arrives
    assert found.longest <= 1e-9
    assert 200 < found.steps < experiment.LONG
    assert found.norm_M == pytest.approx(history.design("norm_M").max())


def test_stationarity_is_with_the_papers_dual() -> None:
    """‖∇f + J_hᵀμ_t‖₂ with μ_t and with ν_t, from CasADi's functions of the graph."""
    import casadi as ca

    instance = make_instance(2, 1)
    found = run_method(METHODS["closed-w"], instance)
    problem = instance.problem
    gradient = ca.Function("g", [problem.x], [ca.gradient(problem.f, problem.x)])
    jacobian = ca.Function("J", [problem.x], [ca.jacobian(problem.h, problem.x)])
    solver = Solver(problem, "closed-form", tol=1e-300, max_iter=30, **METHODS["closed-w"].options)
    history = solver.solve(instance.x0, lam_g0=instance.multipliers0, history=True).history
    for t in (0, 7, 30):
        x = history.x[t]
        for series, dual in (
            (found.stationarity, history.mu[t]),
            (found.effective, history.effective_multipliers[t]),
        ):
            slope = gradient(x).full().ravel() + jacobian(x).full().T @ dual
            assert series[t] == pytest.approx(np.linalg.norm(slope), rel=1e-9)


def test_a_run_that_has_not_crossed_ends_at_200() -> None:
    found = run_method(METHODS["eg"], make_instance(5, 0), follow=True)
    assert found.steps == 200
    assert found.stop == "ITERATION_LIMIT"
    assert np.isnan(found.longest)
    assert not found.arrives


def test_the_columns_stand_beside_the_papers() -> None:
    runs = [
        replace(r, longest=0.5)
        for r in every_run({"closed-w": 50}, conditions=(8.0,))
        if r.seed or r.method != "closed-w"
    ]
    runs.append(run(below=(range(50, 60),), longest=1e-9))
    text = settling_table(summarize(runs, SEEDS), compare=True)
    (line,) = [line for line in text.splitlines() if line.startswith("Closed Hyb. W")]
    shown = [column.strip() for column in line.split("  ") if column.strip()]
    assert shown[1:] == ["8", "0", "5 of 5", "4 of 5", "4 of 5", "1 of 5"]


def test_a_failed_computation_is_a_cell_that_says_so() -> None:
    broken = PaperMethod("closed-w", "broken", "closed-form", {"margin": "no such margin"})
    failed = run_method(broken, make_instance(2, 0))
    assert "margin" in failed.failure
    runs = [r for r in every_run({}) if (r.method, r.condition, r.seed) != ("closed-w", 8.0, 0)]
    summary = summarize([*runs, replace(failed, condition=8.0)], SEEDS)
    for text, count in (
        (text_tables(summary, compare=True), 3),
        (settling_table(summary, compare=True), 4),
        (partial_table(summary), 1),
    ):
        assert text.count("FAILS") == count
    judged = verdicts.verdicts([*runs, replace(failed, condition=8.0)], summary, ())
    assert [v.verdict for v in judged].count("FAILS") == len(judged)
    assert any("margin" in figure for figure in judged[0].figures)
    found = differences(runs, summary, None, ())
    failing = [line for line in found if "FAILS" in line]
    assert len(failing) == 2  # its count and its median
    assert all(line.startswith("Closed Hyb. W at 8") for line in failing)


@pytest.mark.parametrize(
    ("weighted", "unit", "expected"),
    [(40, 60, verdicts.HOLDS), (60, 40, verdicts.REFUTED), (50, 50, verdicts.REFUTED)],
)
def test_the_verdict_on_weighting_follows_the_runs(weighted, unit, expected) -> None:
    runs = every_run({"closed-w": weighted, "closed-u": unit})
    assert verdicts.weighting(runs)[0] == expected


def test_the_verdict_on_weighting_in_part_and_without_runs() -> None:
    mixed = every_run({"closed-w": 40, "closed-u": 60}, (8.0,))
    mixed += every_run({"closed-w": 60, "closed-u": 40}, (13.0,))
    verdict, figures = verdicts.weighting(mixed)
    assert verdict == verdicts.IN_PART
    assert "weighted is faster" in figures[0]
    assert "unit is faster" in figures[1]
    assert verdicts.weighting(every_run({}))[0] == verdicts.SILENT


def test_the_verdict_on_the_norm_budget_follows_what_ended_the_runs() -> None:
    def judged(ended: int) -> tuple[str, list[str]]:
        runs = [run("closed-w", c, s, over_budget=s < ended) for c in (8.0, 13.0) for s in range(5)]
        return verdicts.norm_budget(summarize(runs, SEEDS))

    assert judged(0)[0] == verdicts.REFUTED
    assert judged(4)[0] == verdicts.HOLDS
    assert "ended 4 run(s)" in judged(4)[1][0]


def test_the_budget_is_told_from_other_ends() -> None:
    """Condition 13, instance 2: the first ‖M‖ is beyond 300; at condition 5 none is."""
    beyond = run_method(METHODS["closed-w"], make_instance(13, 2))
    assert beyond.over_budget
    assert beyond.steps == 0
    assert beyond.errors == pytest.approx(np.full(201, 0.5))  # it never left its start
    assert np.isfinite(beyond.stationarity).all()
    assert not run_method(METHODS["closed-w"], make_instance(5, 3)).over_budget


def test_contradictions_are_read_off_the_printed_tables(monkeypatch) -> None:
    found = contradictions()
    assert len(found) == 8
    for start in ("Grid Hyb. W at 8", "Grid Hyb. W at 13", "PDHG at 5", "PDHG at 8", "PDHG at 13"):
        assert any(line.startswith(f"{start}:") for line in found)
    assert any("81.16" in line and "300" in line for line in found)
    monkeypatch.setitem(printed.HITS, "pdhg", {**printed.HITS["pdhg"], 5: None})
    assert not any(line.startswith("PDHG at 5:") for line in contradictions())


def test_chances_are_those_of_drawing_without_replacement() -> None:
    for successes, says in ((40, 0), (40, 4), (3, 2), (0, 0)):
        chances = hypergeom(45, successes, 5).pmf(range(6))
        expected = chances[chances <= chances[says] * (1 + 1e-9)].sum()
        assert count_chance(says, successes, 45) == pytest.approx(expected, abs=1e-12)
    assert median_chance(50.0, [50.0] * 9) == 1.0
    assert median_chance(90.0, [50.0] * 9) == 0.0


def test_differing_cells_are_explained_by_the_population() -> None:
    crossing = every_run({"closed-w": 50}, conditions=(8.0,), seeds=range(25))
    runs = [
        replace(r, errors=run(below=(range(50, 60),)).errors) if r.method == "closed-w" else r
        for r in crossing
    ]
    others = range(5, 25)
    fitted = summarize(runs, SEEDS)
    found = differences(runs, fitted, summarize(runs, others), others)
    (line,) = [line for line in found if line.startswith("Closed Hyb. W at 8, crossed 5 [0]")]
    assert "do not explain the print" in line
    assert "are below at 200" in line.split(";")[-1]
    assert readings(fitted)[0].endswith("off by 7 of 40")
    assert readings(fitted)[1].endswith("off by 2 of 40")


def test_the_population_leaves_the_fitted_seeds_out(monkeypatch) -> None:
    def quick(key: tuple[float, int, int, int]) -> list[Run]:
        below = (range(50, 201),) if key[1] < 5 else ()
        return [run(k, key[0], key[1], below=below, longest=1e-9) for k in KEYS]

    monkeypatch.setattr(reproduction, "run_instance", quick)
    made = reproduction.reproduce(7, conditions=(8, 13), workers=1, progress=False)
    assert {c.runs for c in made.population["closed-w"].values()} == {2}
    assert {c.successes for c in made.population["closed-w"].values()} == {0}
    assert {c.successes for c in made.fitted["closed-w"].values()} == {5}
    first = str(made).splitlines()[:9]
    assert "need not stay" in first[0]
    assert " 8:  5 of 7 cross;  5 are still below at step 200" in first[2]
    assert made.to_dict()["fitted_seeds"] == [0, 1, 2, 3, 4]


def test_every_constant_that_is_open_in_the_paper_is_listed() -> None:
    values = dict(fitted_constants())
    assert values["iteration budget"] == "200"
    assert values["ε_nl, strength of the nonlinear part of h"] == "0.2"
    assert (values["‖x₀ − x*‖"], values["‖μ₀ − μ*‖"]) == ("0.5", "0.2")
    assert values["grid: α / α_t, in this order"] == "4, 2, 1"
    assert values["grid: θ"] == "11 from 0 to 1"
    assert values["PDHG: τ, σ"] == "0.05, 20"
    assert dict(printed_constants())["M_max"] == "300"


def test_norms_at_the_solution_keep_the_papers_bound() -> None:
    (row,) = growth((5.0,), range(4), (3, 5))
    assert row.cancellation <= row.bound * (1 + 1e-12)
    assert row.ratio <= 1 + 1e-12
    assert row.least <= row.partial * (1 + 1e-9) <= row.closed * (1 + 2e-9)
    assert 0.0 <= row.share <= 1.0


def test_the_search_is_kept_with_its_result() -> None:
    """The file beside the script has a line for each of its settings."""
    from pathlib import Path

    import paper_search

    lines = Path(paper_search.__file__).with_suffix(".txt").read_text("utf-8").splitlines()[2:]
    names = [line.split("  ")[0].strip() for line in lines]
    assert names[1:-1] == [setting.name for setting in paper_search.settings()]
    assert names[-1].startswith("budget = ")


def test_the_search_holds_cells_against_print() -> None:
    import paper_search

    runs = every_run({"closed-w": 112}, conditions=(8.0,))
    cells = {("closed-w", 8.0): cell_of([r for r in runs if r.method == "closed-w"])}
    found = paper_search.score(cells)
    assert (found.counts, found.of) == (5, 5)
    assert found.hits == 0.0
    assert np.isnan(found.norms)
    later = paper_search.within(runs[0], 150)
    assert later.hits == runs[0].hits
    assert paper_search.within(run(below=(range(112, 201),)), 100).hit is None
