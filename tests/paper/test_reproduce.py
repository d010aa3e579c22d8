"""The reproduction: its claims on the five instances, its tables, its files."""

import csv
import json

import numpy as np
import pytest

from casadi_hybrid.cli import main
from casadi_hybrid.paper.experiment import CONDITIONS, experiment, make_instance, printed
from casadi_hybrid.paper.experiment.experiment import ALL_METHODS, run_method
from casadi_hybrid.paper.experiment.fitted import SEEDS
from casadi_hybrid.paper.experiment.reproduce import reproduce
from casadi_hybrid.paper.experiment.tables import summarize
from casadi_hybrid.paper.experiment.verdicts import ended, hit_over

METHODS = {method.key: method for method in ALL_METHODS}
WELL_CONDITIONED = (1, 2, 3, 5)


@pytest.fixture(scope="module")
def runs():
    """The five instances, the methods of the claims; the grid only where a claim is made."""
    keys = ("closed-w", "closed-u", "ogda", "eg", "lin-al", "grid-w")
    return [
        run_method(METHODS[key], make_instance(condition, seed))
        for condition in CONDITIONS
        for seed in range(5)
        for key in keys
        if key != "grid-w" or condition in WELL_CONDITIONED
    ]


@pytest.fixture(scope="module")
def summary(runs):
    return summarize(runs, SEEDS)


@pytest.mark.parametrize("condition", WELL_CONDITIONED)
@pytest.mark.parametrize("key", ["closed-w", "grid-w"])
def test_hits_and_successes_are_the_papers(summary, key, condition):
    cell = summary[key][condition]
    assert cell.median_hit == pytest.approx(printed.HITS[key][condition], rel=0.25)
    assert abs(cell.successes - printed.SUCCESS[key][condition]) <= 1


def test_failing_baselines_fail_here_too(summary):
    for key in ("ogda", "eg", "lin-al"):
        assert not any(summary[key][c].successes for c in CONDITIONS), key


@pytest.mark.parametrize(("key", "condition"), [("aug-w", 2), ("aug-w", 5), ("opt-w", 8)])
def test_hybrid_crosses_where_endpoints_do_not(runs, key, condition):
    """The augmented endpoint fails from level 2 on, the optimistic one at higher levels."""
    hybrid = {r.seed: r for r in runs if (r.method, r.condition) == ("closed-w", condition)}
    for seed in (0, 1):
        assert run_method(METHODS[key], make_instance(condition, seed)).hit is None
        assert hybrid[seed].hit is not None


def test_pdhg_is_fastest_at_level_1(summary):
    hits = [run_method(METHODS["pdhg"], make_instance(1, seed)).hit for seed in range(5)]
    assert max(hits) < 0.5 * min(summary[k][1].median_hit for k in ("closed-w", "grid-w"))


def test_crossing_runs_need_not_stay(runs):
    """Closed form at 5, 8 and 13: most cross by the paper's count, none is below from there on."""
    hard = [r for r in runs if r.method == "closed-w" and r.condition >= 5]
    assert sum(r.hit is not None for r in hard) >= 8
    assert not any(r.stays for r in hard)


def test_weighting_and_norm_budget_from_runs(summary):
    """At level 3 unit margins are faster; the budget ends no run at 8 and some at 13."""
    weighted, unit = summary["closed-w"], summary["closed-u"]
    assert hit_over(weighted[1], unit[1]) < 1 < hit_over(weighted[3], unit[3])
    assert not weighted[8].over_budget
    assert len(weighted[13].over_budget) >= 2
    assert ended(weighted[13]) > 0


@pytest.mark.parametrize("condition", [5, 8, 13])
def test_weighted_is_unit_where_limits_bind(runs, condition):
    """The print has 71 and 75, 112 and 86, 160 and a dash."""
    by_key = {(r.method, r.condition, r.seed): r for r in runs}
    for seed in range(5):
        weighted, unit = (by_key[key, condition, seed] for key in ("closed-w", "closed-u"))
        np.testing.assert_allclose(weighted.errors, unit.errors, rtol=1e-9, atol=1e-12)
        assert weighted.hit == unit.hit


@pytest.mark.slow
def test_norms_of_the_population_are_the_papers():
    population = [
        run_method(METHODS["closed-u"], make_instance(c, seed))
        for c in WELL_CONDITIONED
        for seed in range(5, 50)
    ]
    for condition, cell in summarize(population, range(5, 50))["closed-u"].items():
        expected = printed.NORM_M["closed-u"][int(condition)]
        assert cell.median_norm_M == pytest.approx(expected, rel=0.15)


def test_command_writes_and_prints_everything(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(experiment, "FOLLOWED", 0)  # 200 steps each are enough for files
    arguments = ["reproduce", "--instances", "1", "--workers", "1", "--output", str(tmp_path)]
    assert main([*arguments, "--json", "--figures", "pdf"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["population"] is None
    cell = answer["fitted"]["closed-w"]["2"]
    assert cell["runs"] == 1
    assert cell["paper_median_hit"] == 36
    names = {"runs.csv", "residuals.csv", "tables.txt", "trajectories.pdf", "levels.pdf"}
    assert names <= {path.name for path in tmp_path.iterdir()}
    with (tmp_path / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(ALL_METHODS) * len(CONDITIONS)
    row = next(r for r in rows if (r["method"], r["condition"]) == ("closed-w", "2"))
    assert int(row["hit_0.001"]) == cell["median_hit"]
    assert row["failure"] == ""
    assert "[paper]" in (tmp_path / "tables.txt").read_text()


def test_result_does_not_depend_on_processes():
    alone, together = (reproduce(1, conditions=(2,), workers=n, progress=False) for n in (1, 2))
    for a, b in zip(alone.runs, together.runs, strict=True):
        assert (a.method, a.hits, a.stop) == (b.method, b.hits, b.stop)
        np.testing.assert_array_equal(a.errors, b.errors)
    assert "[" not in str(reproduce(1, conditions=(2,), shape=(3, 3), workers=1, progress=False))
