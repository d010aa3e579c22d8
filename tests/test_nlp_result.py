"""The result of ``nlpsol``: one class with the others, read-only, and its table."""

from typing import Any

import casadi as ca
import numpy as np
import pytest
from nlp_cases import CASES

from casadi_hybrid import Problem, Result, Solver, nlpsol
from casadi_hybrid.plotting import plot_convergence
from casadi_hybrid.result.record import IterationRecord


def solved(nlp: dict[str, Any], call: dict[str, Any], **options: Any) -> Result:
    solver = nlpsol("s", "hybrid", nlp, options)
    solver(**call)
    return solver.result


@pytest.fixture(scope="module")
def mixed() -> Result:
    return solved(*CASES["mixed"])


def test_every_solver_returns_a_result(mixed: Result) -> None:
    x = ca.SX.sym("x", 2)
    equality = Solver(Problem(x=x, f=ca.sumsqr(x), h={"line": ca.sum1(x) - 2})).solve(0.5)
    for result in (mixed, equality):
        assert isinstance(result, Result)
        assert result.success
        assert max(result.residuals.feasibility, result.residuals.stationarity) <= 1e-6
        assert len(result.constraint_names) == result.g.size == result.lam_g.size
        assert len(result.variable_names) == result.x.size == result.x0.size
    assert not equality.lam_x.any()
    assert equality.bounds.lbg.tolist() == equality.bounds.ubg.tolist() == [0.0]


def test_a_result_knows_its_problem_and_start(mixed: Result) -> None:
    nlp, call = CASES["mixed"]
    assert mixed.x0.tolist() == call["x0"]
    assert mixed.bounds.lbx.tolist() == [1.0] * 4
    assert mixed.bounds.ubg.tolist() == call["ubg"]
    f = ca.Function("f", [nlp["x"]], [nlp["f"], ca.gradient(nlp["f"], nlp["x"])])
    value, gradient = f(mixed.x)
    assert float(value) == pytest.approx(mixed.f)
    np.testing.assert_allclose(gradient.full().ravel(), mixed.end.gradient)
    np.testing.assert_allclose(f(mixed.x0)[1].full().ravel(), mixed.start.gradient)


def test_the_table_of_either_result(mixed: Result) -> None:
    lines = str(mixed).splitlines()
    labels = [line.split()[0] for line in lines]
    assert labels == [
        "problem", "method", "stopped", "point", "objective",
        "feasibility", "stationarity", "complementarity", "iterations",
    ]  # fmt: skip
    assert len({len(line) - len(line.split(maxsplit=1)[1]) for line in lines}) == 1
    assert "[CONVERGED]" in lines[2]
    assert "array" not in str(mixed)


def test_the_table_names_the_worst_bound() -> None:
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "f": ca.sumsqr(x), "g": ca.vertcat(ca.sumsqr(x), x[0] - x[1])}
    names = {"constraint_names": ["radius", "diagonal"]}
    failed = solved(nlp, {"x0": [1, 0.5], "ubg": [-1, 0], "lbg": [-9, 0]}, **names)
    assert failed.worst() == "radius"
    assert "largest at radius" in str(failed)
    assert failed.x0.tolist() == [1.0, 0.5]  # the user's, not that of a second run


def test_the_course_of_a_solve_is_kept_and_drawn(mixed: Result) -> None:
    history = mixed.history
    assert history is not None
    assert history.t[-1] == mixed.iterations
    assert history.f[-1] == pytest.approx(mixed.f)
    assert history.feasibility[-1] == pytest.approx(mixed.residuals.feasibility)
    assert history.stationarity[-1] == pytest.approx(mixed.residuals.stationarity)
    assert (np.diff(history.elapsed) >= 0).all()
    with pytest.raises(ValueError, match="read-only"):
        history.f[0] = 0.0
    x = ca.SX.sym("x", 2)
    problem = Problem(x=x, f=ca.sumsqr(x), h={"line": ca.sum1(x) - 2})
    equality = Solver(problem).solve(0.5, history=True)
    lines = plot_convergence({"nlp": mixed, "equations": equality}).axes[0].lines
    drawn = {line.get_label(): line.get_xdata() for line in lines}
    assert drawn["nlp"].tolist() == history.t.tolist()
    assert drawn["equations"].tolist() == equality.history.t.tolist()


def test_attempts_are_counted_and_timed_as_one_solve() -> None:
    """Inconsistent constraints are tried from several starts; numbers and times go on."""
    x = ca.SX.sym("x", 2)
    seen: list[IterationRecord] = []
    nlp = {"x": x, "f": ca.sumsqr(x), "g": ca.vertcat(ca.sumsqr(x), x[0])}
    result = solved(nlp, {"x0": 1, "ubg": [-1, 2], "lbg": [-9, 1]}, iteration_callback=seen.append)
    assert not result.success
    assert seen[-1].iter > int(result.detail.split()[1][:-1])  # more than the last run took
    assert (np.diff([record.iter for record in seen]) >= 0).all()
    assert (np.diff([record.elapsed for record in seen]) >= 0).all()
    assert seen[-1].iter == result.iterations
    assert result.history.t.tolist() == [record.iter for record in seen]
