"""The result of the paper's methods, its history and the iteration log."""

import pickle
import re
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.judges import paper_by_hand as by_hand

from casadi_hybrid import EvaluationError, InputError, Problem, Result, Solver

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


def test_history_rows_belong_together(designed: Result) -> None:
    """f, h, residuals and λ belong to x, by the formulas; the last row is the result."""
    problem, x0, _ = by_hand.instance(3.0, 0)
    history = designed.history
    for t, (x, pi) in enumerate(zip(history.x, history.multipliers, strict=True)):
        assert history.f[t] == pytest.approx(problem.f(x))
        assert history.feasibility[t] == pytest.approx(np.abs(problem.h(x)).max())
        residual = problem.gradient(x) + problem.jacobian(x).T @ pi
        assert history.stationarity[t] == pytest.approx(np.abs(residual).max())
    assert designed.g == pytest.approx(problem.h(x), abs=1e-15)
    assert (designed.x == x).all()
    assert (designed.lam_g == pi).all()
    end = (designed.f, designed.residuals.feasibility, designed.residuals.stationarity)
    assert end == pytest.approx((history.f[-1], history.feasibility[-1], history.stationarity[-1]))
    assert (designed.method, designed.iterations) == ("closed-form", STEPS)
    assert dict(designed.evaluations) == {"residual": 0, "first": 0, "second": STEPS + 1}
    assert designed.x0.tolist() == x0.tolist()
    assert history.mu.shape == history.effective_multipliers.shape == (STEPS + 1, 5)
    assert (np.diff(history.elapsed) >= 0).all()
    for name in ("x", "lam_x", "mu", "effective_multipliers", "g", "lam_g"):
        assert not getattr(designed, name).flags.writeable
    for name in ("x", "success"):
        with pytest.raises(AttributeError):
            setattr(designed, name, True)


def test_designs_are_arrays(designed: Result) -> None:
    history = designed.history
    for name in ("eta_x", "eta_d", "alpha", "theta", "a_x", "a_d", "min_eig_A", "norm_M"):
        values = history.design(name)
        assert values.tolist() == [getattr(design, name) for design in history.corrections]
        assert (values > 0).all()
    assert set(history.active) <= {"balance", "S1", "S3"}
    assert len(history.active) == len(values) == STEPS
    with pytest.raises(InputError, match="eta_z"):
        history.design("eta_z")


@pytest.mark.parametrize("method", ["auto", "closed-form", "pdhg"])
def test_result_is_printed_and_pickled(problem: Problem, method: str) -> None:
    result = Solver(problem, method, max_iter=4).solve([0.3, 0.3, 0.4], history=True)
    labels = [re.match(r"[a-z]+ +", line).group() for line in str(result).split("\n")]
    assert len({len(label) for label in labels}) == 1  # values start in one column
    assert result.stop.name in str(result)
    assert result.point.name in str(result)
    copy = pickle.loads(pickle.dumps(result))
    assert str(copy) == str(result)
    assert copy.stop is result.stop
    assert np.array_equal(copy.history.x, result.history.x)
    error = pickle.loads(pickle.dumps(EvaluationError("the objective f", "x_0", np.nan)))
    assert (error.function, error.entry) == ("the objective f", "x_0")


def test_print_names_the_worst_constraint(problem: Problem) -> None:
    for x0, worst in (([0.5, 0.5, 2.0], "curve[1]"), ([-3.0, 2.0, 0.5], "curve[0]")):
        result = Solver(problem, "gda", max_iter=0).solve(x0)
        assert result.worst() == worst
        assert worst in str(result)
        assert result.history is None  # unless asked


def test_methods_without_a_design(problem: Problem) -> None:
    result = Solver(problem, "gda", max_iter=3).solve(0.5, history=True)
    assert dict(result.evaluations) == {"residual": 0, "first": 4, "second": 0}
    gda = result.history
    assert (gda.corrections, gda.active) == ((None,) * 3, ("",) * 3)
    assert np.isnan(gda.design("eta_x")).all()
    options = {"eta_x": 0.1 * np.eye(3), "eta_d": 0.2, "max_iter": 3}
    constant = Solver(problem, "constant", **options).solve(0.5, history=True).history
    assert constant.design("eta_d").tolist() == [0.2] * 3
    assert np.isnan(constant.design("eta_x")).all()  # a matrix is not one number
    none = Solver(problem, "closed-form", max_iter=0).solve(0.5, history=True).history
    assert (none.x.shape, none.corrections, none.design("eta_x").shape) == ((1, 3), (), (0,))


def logged(capsys: pytest.CaptureFixture[str], solver: Solver, log: Any, **start: Any) -> list[str]:
    capsys.readouterr()
    solver.solve(log=log, **start)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("method", ["closed-form", "constant", "gda", "matrix-memory"])
def test_log_is_aligned(capsys, problem, method):
    lines = logged(capsys, Solver(problem, method, max_iter=12), True, x0=[0.3, 0.3, 0.4])
    ends = [match.end() for match in re.finditer(r"\S+", lines[0])]
    for number, row in enumerate(lines[1:]):
        assert [match.end() for match in re.finditer(r"\S+", row)] == ends
        assert int(row.split()[0]) == number


def test_log_equals_the_history(capsys: pytest.CaptureFixture[str]) -> None:
    problem, x0, lam = by_hand.instance(3.0, 0)
    solver = Solver(Problem(**problem.symbolic()), "closed-form", tol=1e-300, max_iter=30)
    lines = logged(capsys, solver, True, x0=x0, lam_g0=lam)
    history = solver.solve(x0, lam_g0=lam, history=True).history
    rows = [line.split() for line in lines if "objective" not in line]
    assert len(rows) == 31
    near = {"rel": 1e-2, "abs": 1e-12}
    steps = np.linalg.norm(np.diff(history.x, axis=0), axis=1)
    designs = np.array([steps, *(history.design(name) for name in ("eta_x", "eta_d", "norm_M"))]).T
    for t, row in enumerate(rows):
        assert float(row[1]) == pytest.approx(history.f[t], rel=1e-6)
        residuals = [history.feasibility[t], history.stationarity[t]]
        assert [float(cell) for cell in row[2:4]] == pytest.approx(residuals, **near)
        if t:
            assert [float(cell) for cell in row[4:8]] == pytest.approx(designs[t - 1], **near)
            assert row[8] == history.active[t - 1]


def test_log_has_steps_and_repeated_headers(capsys, problem):
    solver = Solver(problem, "gda", max_iter=50, eta_x=1e-3, eta_d=1e-3)
    assert logged(capsys, solver, False, x0=0.3) == logged(capsys, solver, 0, x0=0.3) == []
    lines = logged(capsys, solver, 10, x0=0.5)
    assert [line.split()[0] for line in lines] == ["iter", "0", "10", "20", "30", "40", "50"]
    lines = logged(capsys, solver, 1, x0=0.5)
    headers = lines.count(lines[0])
    assert headers > 1
    assert len(lines) == 51 + headers
