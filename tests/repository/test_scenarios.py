"""The scenarios run, say the truth about their answers, and fail when an answer is wrong."""

import json
import os
import sys
from importlib import import_module
from pathlib import Path

import gallery
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.cases.watched import ended
from support.paths import ROOT

from casadi_hybrid import Solver
from casadi_hybrid.utils.output.plotting import figure
from casadi_hybrid.verify import verify

FOLDER = ROOT / "scenarios"
NAMES = sorted(gallery.scenarios())


@pytest.fixture
def no_pictures(monkeypatch):
    """Drawing takes most of a short run, and one test has looked at the files."""
    monkeypatch.setattr(import_module("reporting"), "save", lambda figure, path: path)


@pytest.fixture(scope="module", params=NAMES)
def outcome(request, tmp_path_factory):
    """The short form, run as the plain script that it is."""
    folder = tmp_path_factory.mktemp(request.param)
    command = [sys.executable, str(FOLDER / f"{request.param}.py")]
    command += ["--short", "--json", "--output", str(folder / "made")]
    # Small dense matrices: more BLAS threads only wait for each other on a busy machine.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return request.param, ended(command, cwd=folder, env=environment), folder


def test_script_exits_with_zero_and_prints_json_only(outcome):
    name, done, _ = outcome
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["scenario"] == name
    assert data["short"] is True
    assert data["accepted"] is True
    assert data["problem"]["m"] > 0
    assert data["blas_threads"] == "1"


def test_what_is_required_is_accepted_and_within_tolerance(outcome):
    data = json.loads(outcome[1].stdout)
    assert data["reports"]
    assert any("IPOPT" in row["method"] for row in data["methods"])
    rows = {row["method"]: row for row in data["methods"]}
    for method, report in data["reports"].items():
        assert report["accepted"]
        row = rows[method]
        if "feasibility" in row:
            worst = max(row["feasibility"], row["stationarity"], row.get("complementarity", 0.0))
            assert row["accepted"]
            assert worst <= data["tolerance"]
    assert all(check["passed"] for check in data["checks"])


def test_what_our_solver_comes_to_has_not_drifted(outcome):
    """Verdicts, costs and iterations are kept; scatter from machine to machine is allowed."""
    known = json.loads((gallery.DOCS / "gallery" / gallery.SHORT).read_text(encoding="utf-8"))
    assert sorted(known) == NAMES
    assert gallery.drift(known[outcome[0]], gallery.outcome(json.loads(outcome[1].stdout))) == []


def test_files_are_where_the_report_says(outcome):
    _, done, folder = outcome
    data = json.loads(done.stdout)
    made = {str(path) for path in (folder / "made").iterdir()}
    assert made == set(data["files"])
    assert json.loads((folder / "made" / "report.json").read_text(encoding="utf-8")) == data
    for path in made:
        if path.endswith(".png"):
            assert Path(path).read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in folder.iterdir()] == ["made"]


def test_figures_in_the_format_that_is_asked_for(tmp_path, capsys):
    reporting = import_module("reporting")
    arguments = reporting.parser("any", "").parse_args(["--output", str(tmp_path), "--figures=pdf"])
    assert reporting.finish(arguments, (1, 1), [], figures={"empty": figure()[0]}) == 0
    assert (tmp_path / "empty.pdf").read_bytes().startswith(b"%PDF")
    assert "empty.pdf" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        reporting.parser("any", "").parse_args(["--figures", "bmp"])
    assert "invalid choice: 'bmp'" in capsys.readouterr().err


@pytest.mark.usefixtures("no_pictures")
def test_a_budget_that_is_too_small_fails_and_says_why(tmp_path, capsys, monkeypatch):
    few = {"max_iter": 2}
    monkeypatch.setattr("common.Solver", lambda *a, **options: Solver(*a, **options | few))
    code = import_module("pendulum").main(["--short", "--output", str(tmp_path)])
    text = capsys.readouterr().out
    assert code == 1
    assert "rejected" in text
    assert "REJECTED" in text
    assert "ITERATION_LIMIT" in text


@pytest.mark.usefixtures("no_pictures")
def test_a_run_says_first_what_it_is_and_at_last_what_it_came_to(tmp_path, capsys):
    scenario = import_module("van_der_pol")
    assert scenario.main(["--short", "--output", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"van_der_pol: {scenario.SUMMARY}"
    verdict, written, advice = lines[-3:]
    assert verdict == (
        "Accepted: the verifier accepts, at the program's points, the answer of hybrid."
    )
    assert written.startswith("Written: ")
    assert str(tmp_path / "trajectory.png") in written
    assert "casadi-hybrid new mine --from van_der_pol" in advice
    assert "(limit 0.001) ok" not in "\n".join(lines)
    assert scenario.main(["--short", "--output", str(tmp_path), "--verbose"]) == 0
    assert "(limit 0.001) ok" in capsys.readouterr().out


def test_a_limit_is_printed_as_it_is(tmp_path, capsys):
    reporting = import_module("reporting")
    arguments = reporting.parser("any", "").parse_args(["--verbose", "--output", str(tmp_path)])
    checks = [reporting.Check("ratio", 1.25, 1.1), reporting.Check("gap", 0.0, 1e-6)]
    assert reporting.finish(arguments, (1, 1), [], checks=checks) == 1
    out = capsys.readouterr().out
    assert "ratio: 1.25 (limit 1.1) FAILED" in out
    assert "gap: 0 (limit 1e-06) ok" in out
    assert "FAILED: ratio is above its limit." in out


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(("name", "module"), [("pendulum", "common"), ("cartpole", "solving")])
def test_an_answer_that_is_off_by_a_little_fails(name, module, tmp_path, capsys, monkeypatch):
    scenario = import_module(name)

    def moved(problem, answer, **options):
        x = np.array(answer["x"] if isinstance(answer, dict) else getattr(answer, "x", answer))
        return verify(problem, x + 1e-4, **options)

    monkeypatch.setattr(import_module(module), "verify", moved)
    assert scenario.main(["--short", "--json", "--output", str(tmp_path)]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["accepted"] is False
    assert not any(row["accepted"] for row in data["methods"])


def test_table_is_aligned():
    reporting = import_module("reporting")
    numbers = ("objective", "feasibility", "stationarity", "iterations", "seconds")
    words = {"method": "short", "stopped": "A", "point": "B", "verdict": "accepted", "detail": "C"}
    row = dict.fromkeys(numbers, 1.0) | words | {"accepted": True, "required": True}
    other = row | {"method": "a much longer label", "objective": -1.23456789e-10}
    lines = reporting.table([row, other | {"verdict": "rejected"}]).splitlines()
    assert len(lines) == 4
    starts = [i for i, char in enumerate(lines[1]) if char == "-" and lines[1][i - 1] != "-"]
    for line in (lines[0], *lines[2:]):
        assert all(line[i - 1] == " " for i in starts[1:])
    assert lines[2].endswith("accepted")
    assert lines[3].endswith("rejected")


def test_check_does_not_pass_on_nan():
    reporting = import_module("reporting")
    assert reporting.Check("a", 1.0, 1.0).passed
    assert not reporting.Check("a", 1.1, 1.0).passed
    assert not reporting.Check("a", float("nan"), 1.0).passed


def test_metric_rule_adds_the_same_curvature_in_every_row_direction():
    rule = import_module("common").row_space_rule(alpha=7.0, eta_x=0.1, eta_d=2.0, theta=0.3)
    ocp = import_module("pendulum").swing_up(6)
    functions = import_module("common").equations(ocp).functions
    numbers = ocp.numbers({"theta": 0.2})
    from casadi_hybrid.problem.oracle import Oracle

    at = Oracle(functions, numbers.p).first(numbers.x0)
    made = rule.decide(at, 0)
    projector = np.linalg.pinv(at.B) @ at.B
    np.testing.assert_allclose(at.B.T @ made.M @ at.B, 7.0 * projector, atol=1e-10)
    np.testing.assert_allclose(made.C_aug, 0.3 * made.M, rtol=1e-12)
    np.testing.assert_allclose(at.B.T @ made.eta_d @ at.B, 2.0 * projector, atol=1e-10)


# The pendulum.


def test_defects_are_the_equation_of_motion():
    ocp = import_module("pendulum").swing_up(40, 1.0)
    problem = import_module("common").equations(ocp)
    weight = {"mass": 1.2, "length": 0.4, "gravity": 9.5}
    torque = 2.0 * np.sin(np.arange(40))
    states = [np.array([0.3, 0.0])]
    for u in torque:

        def exact(_, s, u=u):
            pull = 1.2 * 9.5 * 0.4 * np.sin(s[0])
            return [s[1], (u - pull - 0.1 * s[1]) / (1.2 * 0.4**2)]

        done = solve_ivp(exact, (0, 0.025), states[-1], rtol=1e-11, atol=1e-12)
        states.append(done.y[:, -1])
    guess = dict(zip(("theta", "omega"), np.array(states).T, strict=True)) | {"u": torque}
    numbers = ocp.numbers({"theta": 0.3}, guess=guess, **weight)
    h = problem.functions.residual(numbers.x0, numbers.p).full().ravel()
    names = problem.constraint_names
    dynamics = np.array([name.startswith("dynamics") for name in names])
    assert dynamics.sum() == 80
    assert np.abs(h[dynamics]).max() < 1e-6  # the error of one Runge–Kutta step
    assert [name.split("[")[0] for name in names if not name.startswith("dynamics")] == [
        f"{place} {state}" for place in ("initial", "final") for state in ("theta", "omega")
    ]
    np.testing.assert_allclose(h[~dynamics][:2], 0.0, atol=1e-14)
    ends = (states[-1] - [np.pi, 0.0]) / [np.pi, 2 * np.pi]
    np.testing.assert_allclose(h[~dynamics][2:], ends, atol=1e-14)
    found = import_module("common").named(ocp, numbers.x0)
    np.testing.assert_allclose(found["u"], torque)
    np.testing.assert_allclose(found["theta"], np.array(states)[:, 0])


def test_splits_share_one_trajectory_and_the_paper_rule_says_why_it_stops(outcome):
    name, done, _ = outcome
    if name != "pendulum":
        pytest.skip("a claim about the pendulum")
    data = json.loads(done.stdout)
    rows = {row["method"]: row for row in data["methods"]}
    splits = [row for label, row in rows.items() if label.startswith("hybrid: metric")]
    assert len(splits) == 3
    assert len({row["iterations"] for row in splits}) == 1
    checks = {check["name"]: check["value"] for check in data["checks"]}
    assert checks["largest difference of x_t between the three splits"] < 1e-12
    closed = rows["hybrid: closed form"]
    assert closed["stopped"] == "DESIGN_INFEASIBLE"
    assert closed["detail"]
    # A short transfer cannot do without a torque above gravity's.
    facts = data["facts"]
    assert facts["largest torque (N·m)"] > facts["torque of gravity m g l (N·m)"]
    assert facts["distance to IPOPT's point"] < 1e-5


def test_rows_of_equations_are_in_the_units_asked_for():
    module, common = import_module("hydraulic_servo"), import_module("common")
    ocp = module.servo(3)
    x = ocp.numbers().x0 + 0.1
    rows = {}
    for unit in (1.0, 1e6):
        problem = common.equations(ocp, {"s": 1.0, "v": 1.0, "p": unit})
        h = problem.functions.residual(x, ocp.program.p).full().ravel()
        rows[unit] = dict(zip(problem.constraint_names, h, strict=True))
    assert rows[1.0].keys() == rows[1e6].keys()
    scaled = {name for name in rows[1.0] if rows[1.0][name] != rows[1e6][name]}
    pressure = {name for name in rows[1.0] if name.split("[")[0] in ("initial p", "final p")}
    pressure |= {f"dynamics[{3 * k + 2}]" for k in range(3)}
    assert scaled == pressure
    for name in pressure:
        assert rows[1.0][name] == pytest.approx(1e6 * rows[1e6][name])
    assert rows[1.0]["initial s"] == pytest.approx(0.1 * 0.2)  # metres
