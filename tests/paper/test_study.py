"""The population study: its instances, its verdicts, its record on disk, its tables."""

import csv
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems.rank_deficient import KINDS, make_rank_deficient

from casadi_hybrid import InputError, Solver
from casadi_hybrid.cli import main
from casadi_hybrid.paper.experiment.fitted import SEEDS
from casadi_hybrid.paper.study import Plan, Settings, Unfinished, Unit, run_study, run_unit, write
from casadi_hybrid.paper.study import trial as module
from casadi_hybrid.paper.study.figure import draw
from casadi_hybrid.paper.study.tables import Block, summarize
from casadi_hybrid.paper.study.trial import succeeded
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.problem.point.residuals import Residuals
from casadi_hybrid.solver.methods import METHODS

PLAN = Plan(shapes=((3, 5), (5, 3)), conditions=(1.0, 1e3), radii=(1.0,), seeds=2)
SETTINGS = Settings(("auto", "closed-form"), budget=30)


def evaluate(instance, x, multipliers=None):
    oracle = Oracle(instance.problem.functions, np.zeros(0))
    lam = instance.multipliers_star if multipliers is None else multipliers
    return oracle.second(np.asarray(x, dtype=float), lam)


def singular(B):
    return np.linalg.svd(B, compute_uv=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study that was never interrupted, with its files."""
    folder = tmp_path_factory.mktemp("study")
    done = run_study(PLAN, SETTINGS, folder, workers=1, progress=False)
    return done, folder, write(done, folder)


# Instances that lose rank at the solution.


@st.composite
def deficient(draw):
    n, m = draw(st.integers(2, 7)), draw(st.integers(2, 7))
    rank = draw(st.integers(1, min(n, m) - 1))
    kinds = [kind for kind in KINDS if kind != "crossing" or (m - rank == 1 and n - rank >= 2)]
    kind = draw(st.sampled_from(kinds))
    condition = draw(st.sampled_from([1.0, 10.0, 1e4]))
    seed = draw(st.integers(0, 2000))
    return make_rank_deficient(condition, seed, n=n, m=m, rank=rank, kind=kind), rank, kind


@given(deficient())
def test_the_constructed_point_is_a_kkt_point_with_the_rank_and_condition_asked_for(case):
    instance, rank, _ = case
    at = evaluate(instance, instance.x_star)
    sigma = singular(at.B)
    np.testing.assert_allclose(at.B, instance.B_star, atol=1e-14)
    assert np.count_nonzero(sigma > 1e-12) == rank
    expected = instance.condition if rank > 1 else 1.0
    assert sigma[0] / sigma[rank - 1] == pytest.approx(expected, rel=1e-9)
    assert np.abs(at.h).max() <= 1e-14
    assert np.abs(at.gradient + at.B.T @ instance.multipliers_star).max() <= 1e-13
    kernel = np.linalg.svd(instance.B_star)[2][rank:].T
    assert np.linalg.eigvalsh(kernel.T @ at.hessian @ kernel)[0] >= 0.5 - 1e-9
    assert np.linalg.norm(instance.x0 - instance.x_star) == pytest.approx(1.0)


@given(deficient(), st.integers(0, 100))
def test_each_kind_is_what_it_says_away_from_the_solution(case, seed):
    instance, rank, kind = case
    u = np.random.default_rng(seed).standard_normal(instance.x_star.size)
    at = evaluate(instance, instance.x_star + u)
    if kind == "dependent":
        assert singular(at.B)[rank:].max(initial=0.0) <= 1e-10 * singular(at.B)[0]
        return
    assert np.count_nonzero(singular(at.B) > 1e-9) > rank
    # The rows N are those no regular row has a part in: Nᵀh = q is exactly quadratic.
    N = np.linalg.svd(instance.B_star)[0][:, rank:]
    half, full = N.T @ evaluate(instance, instance.x_star + 0.5 * u).h, N.T @ at.h
    np.testing.assert_allclose(full, 4.0 * half, rtol=1e-9, atol=1e-12)
    if kind == "isolated":
        assert np.linalg.norm(at.h) >= 0.25 * (u @ u) * (1 - 1e-9)  # λ_min(Q) ≥ ½
    else:
        kernel = np.linalg.svd(instance.B_star)[2][rank:].T
        zero = np.zeros(instance.multipliers_star.size)
        bent = evaluate(instance, instance.x_star, N[:, 0]).hessian
        bent = kernel.T @ (bent - evaluate(instance, instance.x_star, zero).hessian) @ kernel
        values = np.linalg.eigvalsh(bent)
        assert values[0] < -0.4
        assert values[-1] > 0.4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"condition": 0.5}, "condition"),
        ({"seed": -1}, "seed"),
        ({"rank": 3}, "below min"),
        ({"rank": 0}, "rank"),
        ({"m": 1}, "m must"),
        ({"kind": "some"}, "kind"),
        ({"kind": "crossing", "n": 3, "m": 5}, "crossing"),
    ],
)
def test_impossible_instances_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        make_rank_deficient(**{"condition": 2.0, "seed": 0, **options})


# Verdicts.


@pytest.mark.parametrize("rule", ["auto", "whitened"])
def test_for_m_above_n_success_is_the_first_hit_of_the_solution(rule):
    unit = Unit(3, 5, 1.0, 13.0, 1003)
    (trial,) = run_unit(Settings((rule,)), unit)
    instance = unit.instance()
    # Under the default method multipliers are a warm start.
    multipliers = None if rule == "auto" else instance.multipliers0
    solver = Solver(instance.problem, rule, max_iter=60, tol=1e-15)
    result = solver.solve(instance.x0, lam_g0=multipliers, history=True)
    errors = np.linalg.norm(result.history.x - instance.x_star, axis=1)
    assert trial.success
    assert trial.iterations == result.history.t[np.flatnonzero(errors <= 1e-3)[0]] > 0
    assert trial.distance <= 1e-3


def test_a_hit_one_step_after_the_budget_is_a_failure():
    unit = Unit(3, 5, 1.0, 13.0, 1003)
    (trial,) = run_unit(Settings(("auto",)), unit)
    (short,) = run_unit(Settings(("auto",), budget=trial.iterations - 1), unit)
    (enough,) = run_unit(Settings(("auto",), budget=trial.iterations), unit)
    assert enough.success
    assert not short.success
    assert (short.stop, short.iterations) == ("ITERATION_LIMIT", trial.iterations - 1)


def kkt_residuals(instance, x):
    """‖h‖_∞, and ‖∇f + J_hᵀλ‖_∞ with λ of least squares."""
    at = evaluate(instance, x)
    multipliers, *_ = np.linalg.lstsq(at.B.T, -at.gradient, rcond=1e-9)
    return np.abs(at.h).max(), np.abs(at.gradient + at.B.T @ multipliers).max()


def test_with_a_kernel_success_is_a_kkt_point_by_residuals_of_the_problem():
    unit = Unit(5, 3, 1.0, 100.0, 1001)
    (trial,) = run_unit(Settings(("auto",)), unit)
    instance = unit.instance()
    result = Solver(instance.problem, "auto", tol=1e-8).solve(instance.x0)
    feasibility, stationarity = kkt_residuals(instance, result.x)
    assert trial.success
    assert trial.iterations == result.iterations
    assert max(feasibility, stationarity) <= 1e-8
    # Its iterates are looked at, in Python; those of the solver are the engine's.
    assert trial.feasibility == pytest.approx(feasibility, rel=0, abs=1e-14)


@pytest.mark.parametrize(
    ("kind", "rule"), [*((kind, "auto") for kind in KINDS), ("dependent", "whitened")]
)
def test_where_rank_is_lost_the_end_is_a_kkt_point_of_multipliers_that_are_fitted(kind, rule):
    """Where h is quadratic, ‖h‖ = 1e-8 places x within 1e-4 only, hence the weaker second bound."""
    instance = make_rank_deficient(100.0, 1001, kind=kind)
    tolerances = {"tol": 1e-8, "tol_stationarity": 1e-6 / np.sqrt(5)}
    options = {"kernel_floor": 0.1, "max_iter": 3000} if rule == "whitened" else {}
    result = Solver(instance.problem, rule, **tolerances, **options).solve(instance.x0)
    feasibility, stationarity = kkt_residuals(instance, result.x)
    assert result.stop.name == "CONVERGED"
    assert feasibility <= 1e-8
    assert stationarity <= 1e-6


@pytest.mark.parametrize(
    ("n", "m", "hit", "residuals", "expected"),
    [
        (5, 3, None, (1e-8, 1e-8), True),
        (5, 3, 3, (1.1e-8, 0.0), False),
        (5, 3, 3, (0.0, 1.1e-8), False),
        (5, 3, None, (np.nan, 0.0), False),
        (3, 5, 0, (1.0, 1.0), True),
        (3, 3, None, (0.0, 0.0), False),
    ],
)
def test_the_verdict_takes_both_residuals_or_the_hit(n, m, hit, residuals, expected):
    assert succeeded(Unit(n, m, 1.0, 1.0, 0), hit, Residuals(*residuals)) is expected


def test_a_rule_that_does_not_apply_fails_with_its_status():
    (unit,) = Plan(((3, 5),), (1e3,), (1.0,), seeds=1).units()
    (trial,) = run_unit(Settings(("closed-form",)), unit)
    assert not trial.success
    assert (trial.stop, trial.point) == ("DESIGN_INFEASIBLE", "NOT_CONVERGED")


def test_a_start_outside_the_domain_is_a_failure_without_residuals(monkeypatch):
    instance = Unit(5, 3, 1.0, 1.0, 1000).instance()

    def undefined(self, x):
        raise module.EvaluationError("f", "", np.nan)

    result = Solver(instance.problem, "auto").solve(instance.x0)
    monkeypatch.setattr(module.Oracle, "first", undefined)
    residuals = module._residuals(result, instance)
    assert np.isnan([residuals.feasibility, residuals.stationarity]).all()


# The record on disk.


def counting(monkeypatch):
    ran = []

    def run(settings, unit):
        ran.append(unit)
        return run_unit(settings, unit)

    monkeypatch.setattr("casadi_hybrid.paper.study.population.run_unit", run)
    return ran


def copy_record(folder, target):
    target.mkdir(exist_ok=True)
    (target / "study.sqlite").write_bytes((folder / "study.sqlite").read_bytes())


def test_a_larger_plan_adds_to_the_record(finished, tmp_path, monkeypatch):
    done, folder, _ = finished
    copy_record(folder, tmp_path)
    ran = counting(monkeypatch)
    assert run_study(PLAN, SETTINGS, tmp_path, workers=1, progress=False).units == done.units
    assert ran == []
    assert (tmp_path / "runs.csv").read_bytes() == (folder / "runs.csv").read_bytes()
    larger = Plan(PLAN.shapes, PLAN.conditions, PLAN.radii, seeds=3)
    run_study(larger, SETTINGS, tmp_path, workers=1, progress=False)
    assert [unit.seed for unit in ran] == [PLAN.first_seed + 2] * 4


def test_other_code_is_not_mixed_in(finished, tmp_path, monkeypatch):
    _, folder, _ = finished
    copy_record(folder, tmp_path)
    monkeypatch.setattr("casadi_hybrid.utils.record.record.code_digest", lambda: "0" * 16)
    with pytest.raises(InputError, match="code"):
        run_study(PLAN, SETTINGS, tmp_path, workers=1, progress=False)


def test_a_rule_that_raises_is_a_failed_trial_and_the_others_go_on(tmp_path, monkeypatch):
    whole = module._run

    def run(rule, *others):
        if rule == "closed-form":
            raise ZeroDivisionError("no\nluck")
        return whole(rule, *others)

    monkeypatch.setattr(module, "_run", run)
    plan = Plan(((3, 5),), (1.0,), (1.0,), seeds=1)
    done = run_study(plan, SETTINGS, tmp_path, workers=1, progress=False)
    ((good, bad),) = done.units.values()
    assert good.success
    assert not bad.success
    assert (bad.stop, bad.error) == ("RAISED", "ZeroDivisionError: luck")
    assert "failures of closed-form: RAISED/NONE 1" in str(done)
    ((_, again),) = run_study(plan, SETTINGS, tmp_path, workers=1, progress=False).units.values()
    assert again.error == bad.error


def test_an_instance_that_cannot_be_made_is_a_failed_trial_of_every_rule(monkeypatch):
    monkeypatch.setattr(module, "make_instance", lambda *given, **more: 1 // 0)
    trials = run_unit(SETTINGS, Unit(3, 5, 1.0, 1.0, 1000))
    assert [trial.stop for trial in trials] == ["RAISED", "RAISED"]


def test_the_trials_do_not_depend_on_the_number_of_processes(finished, tmp_path):
    done, _, _ = finished
    two = run_study(PLAN, SETTINGS, tmp_path, workers=2, progress=False)
    assert two.units == done.units
    assert list(two.units) == list(done.units)


# Tables, figure, command.


def recount(rows):
    """The table's numbers from the raw lines of runs.csv, without the package's code."""
    groups = {}
    for row in rows:
        key = tuple(row[name] for name in ("n", "m", "radius", "condition", "rule"))
        groups.setdefault(key, []).append(row)
    out = {}
    for key, group in groups.items():
        hits = sorted(int(row["iterations"]) for row in group if row["success"] == "True")
        k = len(hits)
        median = None if not k else (hits[(k - 1) // 2] + hits[k // 2]) / 2
        out[key] = (len(group), k, median)
    return out


def test_the_table_equals_a_recount_of_the_raw_rows(finished):
    done, folder, (table, _) = finished
    with (folder / "runs.csv").open(newline="") as file:
        counted = recount(csv.DictReader(file))
    cells = done.to_dict()["cells"]
    assert len(cells) == len(counted) == 8
    text = table.read_text()
    for cell in cells:
        key = tuple(str(cell[k]) for k in ("n", "m", "radius", "condition", "rule"))
        runs_, successes, median = counted[key]
        assert (cell["runs"], cell["successes"], cell["median_iterations"]) == counted[key]
        assert sum(cell["failures"].values()) == runs_ - successes
        block = text.split(f"n = {cell['n']}, m = {cell['m']}, start radius 1: 2 runs a cell\n")[1]
        line = next(r for r in block.splitlines() if r.split()[0] == f"{cell['condition']:g}")
        shown = re.findall(r"([\d.]+)% +(\S+) \(n= *(\d+)\)", line)
        percent, middle, n = shown[SETTINGS.rules.index(cell["rule"])]
        assert float(percent) == pytest.approx(100 * successes / runs_, rel=1e-2)
        assert middle == ("–" if median is None else f"{median:g}")
        assert int(n) == successes


def test_the_caption_defines_every_success_it_counts(finished):
    done, _, _ = finished
    assert "‖x_t − x*‖₂ ≤ 0.001" in str(done)
    assert "a KKT point, ‖h‖_∞ ≤ 1e-08" in str(done)


def test_the_figure_draws_the_cells(finished):
    done, _, (_, picture) = finished
    summary = summarize(done.units)
    assert list(summary) == [Block(3, 5, 1.0), Block(5, 3, 1.0)]
    fig = draw(summary)
    for row, levels in enumerate(summary.values()):
        success, iterations = fig.axes[2 * row], fig.axes[2 * row + 1]
        for number, rule in enumerate(SETTINGS.rules):
            cells = [levels[c][rule] for c in (1.0, 1e3)]
            drawn = success.lines[number].get_ydata()
            assert list(drawn) == [100.0 * c.successes / c.runs for c in cells]
            medians = [c.median_iterations or np.nan for c in cells]
            np.testing.assert_array_equal(iterations.lines[number].get_ydata(), medians)
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(("blocks", "panels"), [(1, 2), (5, 10), (7, 14)])
def test_the_figure_has_a_pair_of_panels_for_each_block(finished, blocks, panels):
    done, _, _ = finished
    levels = next(iter(summarize(done.units).values()))
    fig = draw({Block(3 + i, 5, 1.0): levels for i in range(blocks)})
    assert fig.get_suptitle().startswith("2 instances a point")
    shown = [ax for ax in fig.axes if ax.get_visible()]
    assert len(shown) == panels
    across = 2 if blocks == 1 else 4
    assert sum(bool(ax.get_xlabel()) for ax in shown) == across


def command(folder, *more):
    arguments = ["study", "--shapes", "3x5", "5x3", "--conditions", "1", "1e3", "--radii", "1"]
    arguments += ["--seeds", "2", "--rules", "auto", "closed-form", "--budget", "30"]
    return main([*arguments, "--output", str(folder), "--workers", "1", *more])


def test_the_command_prints_json_with_settings_cells_and_files(finished, tmp_path, capsys):
    done, folder, _ = finished
    copy_record(folder, tmp_path)
    assert command(tmp_path, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == {"settings", "caption", "cells", "files"}
    assert set(printed["settings"]) == {
        "study", "software", "code", "rules", "budget", "hit", "tol",
        "kernel_floor",
    }  # fmt: skip
    assert printed["cells"] == json.loads(json.dumps(done.to_dict()["cells"]))
    assert set(printed["cells"][0]) == {
        "n", "m", "radius", "condition", "rule",
        "runs", "successes", "median_iterations", "failures",
    }  # fmt: skip
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [".lock", "runs.csv", "study.png", "study.sqlite", "table.txt"]


def test_the_command_prints_the_table_it_writes(finished, tmp_path, capsys):
    done, folder, _ = finished
    copy_record(folder, tmp_path)
    assert command(tmp_path, "--figures", "svg") == 0
    assert capsys.readouterr().out.startswith(str(done))
    assert (tmp_path / "study.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert (tmp_path / "table.txt").read_text() == f"{done}\n"


def test_the_command_refuses_to_mix_and_fresh_replaces(finished, tmp_path, capsys):
    _, folder, _ = finished
    copy_record(folder, tmp_path)
    more = ("--budget", "2", "--seeds", "1", "--conditions", "1", "--shapes", "3x5")
    assert command(tmp_path, *more) == 2
    assert "--fresh" in capsys.readouterr().err
    assert command(tmp_path, *more, "--fresh") == 0
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--seeds", "0"), "seeds"),
        (("--first-seed", "-1"), "first_seed"),
        (("--conditions", "0.5"), "condition"),
        (("--radii", "0"), "radius"),
        (("--shapes", "0x5"), "n of a shape"),
        (("--rules", "autos"), "did you mean 'auto'"),
        (("--rules", "given-theta"), "theta"),
        (("--rules", "auto", "auto"), "twice"),
        (("--budget", "0"), "budget"),
        (("--workers", "0"), "workers"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_written(tmp_path, capsys, more, message):
    assert command(tmp_path / "none", *more) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_a_shape_is_written_as_two_numbers(tmp_path):
    with pytest.raises(SystemExit):
        command(tmp_path, "--shapes", "35")


def test_the_study_begins_at_draws_that_no_fit_has_seen():
    """Constants were chosen on numbers below 100, and the class draws from 1000κ + number."""
    plan = Plan()
    drawn = {round(1000 * u.condition) + u.seed for u in plan.units()}
    fitted = {1000 * level + seed for level in range(1, 10_001) for seed in range(100)}
    assert len(drawn) == plan.seeds * len(plan.conditions)
    assert not drawn & fitted
    assert set(SEEDS) < set(range(100))


def test_the_command_line_has_the_defaults_of_the_plan_and_names_them(monkeypatch, capsys):
    def run(plan, settings, folder, **options):
        assert (plan, settings) == (Plan(), Settings())
        raise Unfinished(None, 0, 1)

    monkeypatch.setattr("casadi_hybrid.paper.study.run_study", run)
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["study"]) == 130
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["study", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    plan = Plan()
    for name in (
        " ".join(f"{n}x{m}" for n, m in plan.shapes), " ".join(map(str, plan.radii)),
        f"instances of each (default {plan.seeds})", f"the first ({plan.first_seed};",
        f"methods (default: {' '.join(Settings().rules)})",
        f"iterations a run (default {Settings().budget})",
    ):  # fmt: skip
        assert name in said
    conditions = re.search(r"of J at x\* \(default: ([^)]*)\)", said)[1].split()
    assert tuple(map(float, conditions)) == plan.conditions
    assert set(Settings().rules) <= set(METHODS)
