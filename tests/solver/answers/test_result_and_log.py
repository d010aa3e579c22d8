"""What a person reads: the result, its history and the iteration log."""

import dataclasses
import pickle
import re
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.judges import paper_by_hand as by_hand

from casadi_hybrid import EvaluationError, History, InputError, Problem, Result, Solver

STEPS = 25


@pytest.fixture(scope="module")
def problem() -> Problem:
    x = ca.SX.sym("x", 3)
    h = {"plane": ca.sum1(x) - 1, "curve": ca.vertcat(x[0] * x[1], x[2] ** 2) - 0.1}
    return Problem(x=x, f=ca.sumsqr(x), h=h, name="small")


@pytest.fixture(scope="module")
def designed() -> Result:
    problem, x0, lam = by_hand.instance(3.0, 0)
    solver = Solver(Problem(**problem.symbolic()), "closed-form", tol=1e-300, max_iter=STEPS)
    return solver.solve(x0, lam_g0=lam, history=True)


def test_nothing_can_be_changed(designed: Result) -> None:
    arrays = ("x", "lam_x", "mu", "effective_multipliers", "g", "lam_g")
    for array in (*(getattr(designed, name) for name in arrays), designed.history.x):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        designed.x = np.zeros(3)
    with pytest.raises(AttributeError):
        designed.success = True


def test_the_result_describes_its_point(designed: Result) -> None:
    """f, h, residuals and λ belong to x: recomputed from the formulas of the problem."""
    problem, x0, _ = by_hand.instance(3.0, 0)
    x, lam = designed.x, designed.lam_g
    assert designed.f == pytest.approx(problem.f(x))
    assert designed.g == pytest.approx(problem.h(x), abs=1e-15)
    residual = problem.gradient(x) + problem.jacobian(x).T @ lam
    assert designed.residuals.feasibility == pytest.approx(np.abs(problem.h(x)).max())
    assert designed.residuals.stationarity == pytest.approx(np.abs(residual).max())
    assert designed.method == "closed-form"
    assert designed.iterations == STEPS
    assert dict(designed.evaluations) == {"residual": 0, "first": 0, "second": STEPS + 1}
    assert designed.x0.tolist() == x0.tolist()
    assert 0 < designed.elapsed < 60


def test_no_history_unless_asked(problem: Problem) -> None:
    assert Solver(problem, "gda", max_iter=1).solve(0.5).history is None


@pytest.mark.parametrize("method", ["auto", "closed-form", "gda"])
def test_print_is_compact(problem: Problem, method: str) -> None:
    options = {"eta_x": 0.1} if method == "gda" else {}
    solver = Solver(problem, method, max_iter=3, **options)
    text = str(solver.solve([0.3, 0.3, 0.4], history=True))
    lines = text.split("\n")
    assert 8 <= len(lines) <= 12
    labels = [re.match(r"[a-z]+ +", line).group() for line in lines]
    assert {len(label) for label in labels} == {13}  # values start in one column
    assert [label.strip() for label in labels][:8] == [
        "problem", "method", "stopped", "point", "objective", "feasibility", "stationarity",
        "iterations",
    ]  # fmt: skip
    assert max(map(len, lines)) < 200
    assert "array" not in text
    assert "small  (n = 3, m = 3)" in lines[0]


def test_print_names_both_statuses_and_the_worst_constraint(problem: Problem) -> None:
    result = Solver(problem, "gda", max_iter=0).solve([0.5, 0.5, 2.0])
    text = str(result)
    assert "largest at curve[1]" in text
    result = Solver(problem, "gda", max_iter=0).solve([-3.0, 2.0, 0.5])
    text = str(result)
    assert "[ITERATION_LIMIT]" in text
    assert "[NOT_CONVERGED]" in text
    assert "the iteration limit was reached" in text
    assert "6.10e+00  (tolerance 1e-08; largest at curve[0])" in text  # −6.1
    assert "(1 first evaluations, " in text


@pytest.mark.parametrize("method", ["auto", "closed-form", "pdhg"])
def test_results_and_errors_can_travel(problem: Problem, method: str) -> None:
    result = Solver(problem, method, max_iter=4).solve([0.3, 0.3, 0.4], history=True)
    copy = pickle.loads(pickle.dumps(result))
    assert str(copy) == str(result)
    assert copy.stop is result.stop
    assert np.array_equal(copy.history.x, result.history.x)
    error = pickle.loads(pickle.dumps(EvaluationError("the objective f", "x_0", np.nan)))
    assert (error.function, error.entry) == ("the objective f", "x_0")


def test_rows_belong_together(designed: Result) -> None:
    problem = by_hand.instance(3.0, 0)[0]
    history = designed.history
    assert isinstance(history, History)
    assert history.x.shape == (STEPS + 1, 3)
    assert history.mu.shape == history.effective_multipliers.shape == (STEPS + 1, 5)
    assert history.elapsed.shape == (STEPS + 1,)
    assert (np.diff(history.elapsed) >= 0).all()
    for x, f, pi, feasibility, stationarity in zip(
        history.x, history.f, history.multipliers, history.feasibility, history.stationarity,
        strict=True,
    ):  # fmt: skip
        assert f == pytest.approx(problem.f(x))
        assert feasibility == pytest.approx(np.abs(problem.h(x)).max())
        residual = problem.gradient(x) + problem.jacobian(x).T @ pi
        assert stationarity == pytest.approx(np.abs(residual).max())


def test_designs_as_arrays(designed: Result) -> None:
    history = designed.history
    fields = ["eta_x", "eta_d", "alpha", "theta", "a_x", "a_d", "min_eig_A", "norm_M"]
    for name in fields:
        values = history.design(name)
        assert values.shape == (STEPS,)
        assert values.tolist() == [getattr(design, name) for design in history.corrections]
        assert (values > 0).all()
    assert set(history.active) <= {"balance", "S1", "S3"}
    assert len(history.active) == STEPS
    with pytest.raises(InputError, match="eta_z"):
        history.design("eta_z")


def test_methods_without_a_design(problem: Problem) -> None:
    gda = Solver(problem, "gda", max_iter=3).solve(0.5, history=True).history
    assert gda.corrections == (None, None, None)
    assert np.isnan(gda.design("eta_x")).all()
    assert gda.active == ("", "", "")
    options = {"eta_x": 0.1 * np.eye(3), "eta_d": 0.2, "max_iter": 3}
    constant = Solver(problem, "constant", **options).solve(0.5, history=True).history
    assert constant.design("eta_d").tolist() == [0.2] * 3
    assert np.isnan(constant.design("eta_x")).all()  # a matrix is not one number


def test_the_history_of_zero_steps(problem: Problem) -> None:
    history = Solver(problem, "closed-form", max_iter=0).solve(0.5, history=True).history
    assert history.x.shape == (1, 3)
    assert history.corrections == ()
    assert history.design("eta_x").shape == (0,)


def logged(capsys: pytest.CaptureFixture[str], solver: Solver, log: Any, **start: Any) -> list[str]:
    capsys.readouterr()
    solver.solve(log=log, **start)
    return capsys.readouterr().out.splitlines()


def test_no_log_unless_asked(capsys: pytest.CaptureFixture[str], problem: Problem) -> None:
    for log in (False, 0):
        assert logged(capsys, Solver(problem, "auto"), log, x0=0.3) == []


@pytest.mark.parametrize("method", ["closed-form", "constant", "gda", "matrix-memory"])
def test_the_log_is_aligned(capsys, problem, method):
    lines = logged(capsys, Solver(problem, method, max_iter=12), True, x0=[0.3, 0.3, 0.4])
    header, rows = lines[0], lines[1:]
    assert len({len(line) for line in lines}) == 1
    ends = [match.end() for match in re.finditer(r"\S+", header)]
    for number, row in enumerate(rows):
        assert [match.end() for match in re.finditer(r"\S+", row)] == ends
        assert int(row.split()[0]) == number
    assert len(header) < 100  # fits a terminal
    names = header.split()
    assert names[:4] == ["iter", "objective", "feas", "stat"]
    assert rows[0].split()[4:] == ["-"] * 5  # no step led to the start


def test_the_log_stays_aligned_for_extreme_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    x = ca.SX.sym("x", 2)
    problem = Problem(x=x, f=-1e100 * ca.sumsqr(x), h=1e-100 * x)
    options = {"eta_x": 1e3, "max_iter": 1, "divergence": 1e300}
    lines = logged(capsys, Solver(problem, "constant", **options), True, x0=[1e5, -1e10])
    assert len({len(line) for line in lines}) == 1
    assert all(len(line.split()) == 9 for line in lines)


def test_the_log_tells_the_truth(capsys: pytest.CaptureFixture[str]) -> None:
    problem, x0, lam = by_hand.instance(3.0, 0)
    solver = Solver(Problem(**problem.symbolic()), "closed-form", tol=1e-300, max_iter=30)
    lines = logged(capsys, solver, True, x0=x0, lam_g0=lam)
    history = solver.solve(x0, lam_g0=lam, history=True).history
    rows = [line.split() for line in lines if "objective" not in line]
    assert len(rows) == 31
    steps = np.linalg.norm(np.diff(history.x, axis=0), axis=1)
    for t, row in enumerate(rows):
        assert float(row[1]) == pytest.approx(history.f[t], rel=1e-6)
        assert float(row[2]) == pytest.approx(history.feasibility[t], rel=1e-2)
        assert float(row[3]) == pytest.approx(history.stationarity[t], rel=1e-2)
        if t:
            assert float(row[4]) == pytest.approx(steps[t - 1], rel=1e-2)
            for column, name in ((5, "eta_x"), (6, "eta_d"), (7, "norm_M")):
                assert float(row[column]) == pytest.approx(history.design(name)[t - 1], rel=1e-2)
            assert row[8] == history.active[t - 1]


def test_the_log_in_steps_and_with_repeated_headers(capsys, problem):
    solver = Solver(problem, "gda", max_iter=50, eta_x=1e-3, eta_d=1e-3)
    lines = logged(capsys, solver, 10, x0=0.5)
    assert [line.split()[0] for line in lines] == ["iter", "0", "10", "20", "30", "40", "50"]
    lines = logged(capsys, solver, 1, x0=0.5)
    headers = [i for i, line in enumerate(lines) if line == lines[0]]
    assert headers == [0, 21, 42]
    assert len(lines) == 51 + 3
