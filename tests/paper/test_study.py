"""The population study: its verdicts, its record on disk, its tables and its command."""

import csv
import json
import re
import statistics

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import EvaluationError, InputError, Problem, Solver
from casadi_hybrid.cli import main
from casadi_hybrid.paper.experiment.fitted import SEEDS
from casadi_hybrid.paper.study import Plan, Settings, Unfinished, Unit, run_study, run_unit, write
from casadi_hybrid.paper.study import trial as module
from casadi_hybrid.paper.study.figure import draw
from casadi_hybrid.paper.study.tables import Block, summarize
from casadi_hybrid.paper.study.trial import succeeded
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.problem.point.residuals import Residuals

PLAN = Plan(shapes=((3, 5), (5, 3)), conditions=(1.0, 1e3), radii=(1.0,), seeds=2)
SETTINGS = Settings(("auto", "closed-form"), budget=30)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study that was never interrupted, with its files."""
    folder = tmp_path_factory.mktemp("study")
    done = run_study(PLAN, SETTINGS, folder, workers=1, progress=False)
    return done, folder, write(done, folder)


@pytest.mark.parametrize("rule", ["auto", "whitened"])
def test_success_is_first_hit_within_budget(rule):
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
    (short,) = run_unit(Settings((rule,), budget=trial.iterations - 1), unit)
    (enough,) = run_unit(Settings((rule,), budget=trial.iterations), unit)
    assert enough.success
    assert not short.success
    assert (short.stop, short.iterations) == ("ITERATION_LIMIT", trial.iterations - 1)


def kkt_residuals(problem, x):
    """‖h‖_∞, and ‖∇f + J_hᵀλ‖_∞ with λ of least squares."""
    f, h = problem.f, problem.h
    parts = [h, ca.gradient(f, problem.x), ca.jacobian(h, problem.x)]
    residual, gradient, B = (part.full() for part in ca.Function("at", [problem.x], parts)(x))
    multipliers = np.linalg.lstsq(B.T, -gradient, rcond=1e-9)[0]
    return np.abs(residual).max(), np.abs(gradient + B.T @ multipliers).max()


def test_success_with_kernel_is_a_kkt_point():
    unit = Unit(5, 3, 1.0, 100.0, 1001)
    (trial,) = run_unit(Settings(("auto",)), unit)
    instance = unit.instance()
    result = Solver(instance.problem, "auto", tol=1e-8).solve(instance.x0)
    feasibility, stationarity = kkt_residuals(instance.problem, result.x)
    assert trial.success
    assert trial.iterations == result.iterations
    assert max(feasibility, stationarity) <= 1e-8
    # Its iterates are looked at, in Python; those of the solver are the engine's.
    assert trial.feasibility == pytest.approx(feasibility, rel=0, abs=1e-14)


@pytest.mark.parametrize("rule", ["auto", "whitened"])
def test_solve_ends_where_rank_is_lost(rule):
    """Three functions of two numbers g: J_h has rank 2 everywhere, and condition 100."""
    rng = np.random.default_rng(2)
    W, U = (np.linalg.qr(rng.standard_normal((size, size)))[0] for size in (5, 3))
    x = ca.SX.sym("x", 5)
    g = ca.DM([1, 0.01]) * ca.mtimes(W[:, :2].T, x) + 0.2 * x[:2] * x[1:3]
    h = ca.mtimes(U, ca.vertcat(g, (g[0] - 0.7 * g[1]) ** 2))
    problem = Problem(x=x, f=ca.sumsqr(x - 0.1) + 0.1 * ca.sum1(ca.sin(x) * x[::-1]), h=h)
    tolerances = {"tol": 1e-8, "tol_stationarity": 1e-6 / np.sqrt(5)}
    options = {"kernel_floor": 0.1, "max_iter": 3000} if rule == "whitened" else {}
    result = Solver(problem, rule, **tolerances, **options).solve(rng.standard_normal(5) / 4)
    feasibility, stationarity = kkt_residuals(problem, result.x)
    assert result.stop.name == "CONVERGED"
    assert feasibility <= 1e-8
    assert stationarity <= 1e-6


def test_verdict_takes_residuals_or_hit():
    for n, m, hit, residuals, expected in (
        (5, 3, None, (1e-8, 1e-8), True),
        (5, 3, 3, (1.1e-8, 0.0), False),
        (5, 3, 3, (0.0, 1.1e-8), False),
        (5, 3, None, (np.nan, 0.0), False),
        (3, 5, 0, (1.0, 1.0), True),
        (3, 3, None, (0.0, 0.0), False),
    ):
        assert succeeded(Unit(n, m, 1.0, 1.0, 0), hit, Residuals(*residuals)) is expected


def test_undefined_point_fails_without_residuals(monkeypatch):
    """The residuals are evaluated anew, here by functions that are not defined."""

    def undefined(self, x):
        raise EvaluationError("f", "", np.nan)

    monkeypatch.setattr(Oracle, "first", undefined)
    (trial,) = run_unit(Settings(("auto",)), Unit(5, 3, 1.0, 1.0, 1000))
    assert not trial.success
    assert (trial.stop, trial.point) == ("CONVERGED", "KKT_POINT")
    assert np.isnan([trial.feasibility, trial.stationarity]).all()


def copy_record(folder, target):
    target.mkdir(exist_ok=True)
    (target / "study.sqlite").write_bytes((folder / "study.sqlite").read_bytes())


def test_larger_plan_adds_to_the_record(finished, tmp_path, monkeypatch):
    """A finished unit is not run again, and what other code has computed is refused."""
    done, folder, _ = finished
    copy_record(folder, tmp_path)
    ran = []

    def run(settings, unit):
        ran.append(unit)
        return run_unit(settings, unit)

    monkeypatch.setattr("casadi_hybrid.paper.study.population.run_unit", run)
    assert run_study(PLAN, SETTINGS, tmp_path, workers=1, progress=False).units == done.units
    assert ran == []
    assert (tmp_path / "runs.csv").read_bytes() == (folder / "runs.csv").read_bytes()
    larger = Plan(PLAN.shapes, PLAN.conditions, PLAN.radii, seeds=3)
    run_study(larger, SETTINGS, tmp_path, workers=1, progress=False)
    assert [unit.seed for unit in ran] == [PLAN.first_seed + 2] * 4
    monkeypatch.setattr("casadi_hybrid.utils.record.record.code_digest", lambda: "0" * 16)
    with pytest.raises(InputError, match="code"):
        run_study(PLAN, SETTINGS, tmp_path, workers=1, progress=False)


def test_raising_rule_fails_alone(tmp_path, monkeypatch):
    """And is not run again from the record; an instance that cannot be made fails every rule."""

    def failing(problem, rule, **options):
        if rule == "closed-form":
            raise ZeroDivisionError("no\nluck")
        return Solver(problem, rule, **options)

    monkeypatch.setattr(module, "Solver", failing)
    plan = Plan(((3, 5),), (1.0,), (1.0,), seeds=1)
    done = run_study(plan, SETTINGS, tmp_path, workers=1, progress=False)
    ((good, bad),) = done.units.values()
    assert good.success
    assert not bad.success
    assert (bad.stop, bad.error) == ("RAISED", "ZeroDivisionError: luck")
    assert "RAISED" in str(done)
    ((_, again),) = run_study(plan, SETTINGS, tmp_path, workers=1, progress=False).units.values()
    assert again.error == bad.error
    monkeypatch.setattr(module, "make_instance", lambda *given, **more: 1 // 0)
    trials = run_unit(SETTINGS, Unit(3, 5, 1.0, 1.0, 1000))
    assert [trial.stop for trial in trials] == ["RAISED", "RAISED"]


def test_trials_do_not_depend_on_processes(finished, tmp_path):
    two = run_study(PLAN, SETTINGS, tmp_path, workers=2, progress=False)
    assert list(two.units.items()) == list(finished[0].units.items())


def test_table_equals_recount_of_raw_rows(finished):
    done, folder, (table, _) = finished
    with (folder / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    cells = done.to_dict()["cells"]
    assert len(cells) == len(rows) / 2 == 8
    text = table.read_text()
    for cell in cells:
        names = ("n", "m", "radius", "condition", "rule")
        group = [row for row in rows if all(row[name] == str(cell[name]) for name in names)]
        hits = [int(row["iterations"]) for row in group if row["success"] == "True"]
        median = statistics.median(hits) if hits else None
        counted = (len(group), len(hits), median)
        assert (cell["runs"], cell["successes"], cell["median_iterations"]) == counted
        assert sum(cell["failures"].values()) == len(group) - len(hits)
        block = text.split(f"n = {cell['n']}, m = {cell['m']}, start radius 1")[1]
        line = next(r for r in block.splitlines() if r.split()[:1] == [f"{cell['condition']:g}"])
        shown = re.findall(r"([\d.]+)% +(\S+) \(n= *(\d+)\)", line)
        percent, middle, n = shown[SETTINGS.rules.index(cell["rule"])]
        assert (float(percent), int(n)) == (100 * len(hits) / len(group), len(hits))
        assert middle == ("–" if median is None else f"{median:g}")


def test_figure_draws_the_cells(finished):
    done, _, (_, picture) = finished
    summary = summarize(done.units)
    assert list(summary) == [Block(3, 5, 1.0), Block(5, 3, 1.0)]
    fig = draw(summary)
    for levels, success, iterations in zip(
        summary.values(), fig.axes[::2], fig.axes[1::2], strict=True
    ):
        for number, rule in enumerate(SETTINGS.rules):
            cells = [levels[c][rule] for c in (1.0, 1e3)]
            shares = [100.0 * c.successes / c.runs for c in cells]
            medians = [c.median_iterations or np.nan for c in cells]
            assert list(success.lines[number].get_ydata()) == shares
            np.testing.assert_array_equal(iterations.lines[number].get_ydata(), medians)
    assert picture.stat().st_size > 10_000
    for blocks in (1, 7):  # two panels each
        fig = draw({Block(3 + i, 5, 1.0): levels for i in range(blocks)})
        assert sum(ax.get_visible() for ax in fig.axes) == 2 * blocks


def command(folder, *more):
    arguments = ["study", "--shapes", "3x5", "5x3", "--conditions", "1", "1e3", "--radii", "1"]
    arguments += ["--seeds", "2", "--rules", "auto", "closed-form", "--budget", "30"]
    return main([*arguments, "--output", str(folder), "--workers", "1", *more])


def test_command_prints_results_and_writes_files(finished, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    done, folder, _ = finished
    copy_record(folder, tmp_path)
    assert command(tmp_path, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert {"settings", "caption", "cells", "files"} <= set(printed)
    assert printed["cells"] == json.loads(json.dumps(done.to_dict()["cells"]))
    names = {"runs.csv", "study.png", "study.sqlite", "table.txt"}
    assert names <= {path.name for path in tmp_path.iterdir()}
    assert command(tmp_path, "--figures", "svg") == 0
    assert capsys.readouterr().out.startswith(str(done))
    assert (tmp_path / "study.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert (tmp_path / "table.txt").read_text() == f"{done}\n"
    # Other settings mix with nothing, and replace the record if asked to.
    more = ("--budget", "2", "--seeds", "1", "--conditions", "1", "--shapes", "3x5")
    assert command(tmp_path, *more) == 2
    assert "--fresh" in capsys.readouterr().err
    assert command(tmp_path, *more, "--fresh") == 0
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 3


# Wrong arguments, and the name that the message has to contain.
WRONG = {
    "--seeds 0": "seeds",
    "--first-seed -1": "first_seed",
    "--conditions 0.5": "condition",
    "--radii 0": "radius",
    "--shapes 0x5": "shape",
    "--rules autos": "'auto'",
    "--rules given-theta": "theta",
    "--rules auto auto": "auto",
    "--budget 0": "budget",
    "--workers 0": "workers",
}


@pytest.mark.parametrize("more", WRONG)
def test_wrong_input_is_refused_before_writing(tmp_path, capsys, more):
    assert command(tmp_path / "none", *more.split()) == 2
    assert WRONG[more] in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    with pytest.raises(SystemExit):
        command(tmp_path, "--shapes", "35")


def test_study_draws_what_no_fit_saw():
    """Constants were chosen on numbers below 100, and the class draws from 1000κ + number."""
    plan = Plan()
    drawn = {divmod(round(1000 * unit.condition) + unit.seed, 1000) for unit in plan.units()}
    assert len(drawn) == plan.seeds * len(plan.conditions)
    assert min(number for _, number in drawn) >= 100 > max(SEEDS)


def test_command_has_the_defaults_of_the_plan(monkeypatch):
    asked = []

    def run(plan, settings, folder, **options):
        asked.append((plan, settings))
        raise Unfinished(None, 0, 1)

    monkeypatch.setattr("casadi_hybrid.paper.study.run_study", run)
    assert main(["study"]) == 130
    assert asked == [(Plan(), Settings())]
