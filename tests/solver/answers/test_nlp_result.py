"""The result of ``nlpsol``, its table, and the runs it is made of: their limits and their list."""

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import CASES, hock_schittkowski, solved
from support.problems.published import hs_problem

from casadi_hybrid import Problem, Result, Solver, nlpsol
from casadi_hybrid.solver.record.record import IterationRecord
from casadi_hybrid.utils.output.plotting import plot_convergence


@pytest.fixture(scope="module")
def mixed() -> Result:
    nlp, call = CASES["mixed"]
    return solved(nlp, **call).result


def test_result_knows_problem_and_start(mixed: Result) -> None:
    nlp, call = CASES["mixed"]
    assert mixed.success
    assert max(mixed.residuals.feasibility, mixed.residuals.stationarity) <= 1e-6
    assert len(mixed.constraint_names) == mixed.g.size == mixed.lam_g.size
    assert len(mixed.variable_names) == mixed.x.size == mixed.x0.size
    assert mixed.x0.tolist() == call["x0"]
    assert mixed.bounds.lbx.tolist() == [1.0] * 4
    assert mixed.bounds.ubg.tolist() == call["ubg"]
    f = ca.Function("f", [nlp["x"]], [nlp["f"], ca.gradient(nlp["f"], nlp["x"])])
    value, gradient = f(mixed.x)
    assert float(value) == pytest.approx(mixed.f)
    np.testing.assert_allclose(gradient.full().ravel(), mixed.end.gradient)
    np.testing.assert_allclose(f(mixed.x0)[1].full().ravel(), mixed.start.gradient)


@pytest.mark.parametrize(
    ("x0", "lbx", "ubx"),
    [(0.015, 0, 0.02), (0, 0, 0.02), (-1, 0, np.inf), (0, [0, 0.1], [0.02, 0.1])],
)
@pytest.mark.parametrize("warm", [0.0, 0.1])
def test_start_is_where_its_gradient_is(x0, lbx, ubx, warm) -> None:
    """Also where the logarithm moves it off the bounds, and of a warm start."""
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "f": ca.sumsqr(x - 1) - 1e-3 * ca.sum1(ca.log(x)), "g": ca.sumsqr(x)}
    numbers = {"x0": x0, "lbx": lbx, "ubx": ubx, "lam_x0": warm}
    start = solved(nlp, **numbers).result.start
    slope = ca.Function("slope", [x], [ca.gradient(nlp["f"], x), ca.jacobian(nlp["g"], x)])
    gradient, J = (value.full() for value in slope(start.x))
    np.testing.assert_allclose(start.gradient, gradient.ravel(), rtol=1e-14)
    np.testing.assert_allclose(start.J.scipy().toarray(), J, rtol=1e-14)


def test_the_start_is_x0_after_a_saddle() -> None:
    x = ca.SX.sym("x", 2)
    result = solved({"x": x, "f": x[0] ** 2 - x[1] ** 2 + x[1] ** 4}, x0=[1, 0]).result
    assert result.f == pytest.approx(-0.25)
    assert result.start.x.tolist() == [1, 0]
    assert result.start.gradient.tolist() == [2, 0]


def test_course_is_kept_and_drawn(mixed: Result) -> None:
    history = mixed.history
    assert history.t[-1] == mixed.iterations
    assert history.f[-1] == pytest.approx(mixed.f)
    assert history.feasibility[-1] == pytest.approx(mixed.residuals.feasibility)
    assert history.stationarity[-1] == pytest.approx(mixed.residuals.stationarity)
    assert (np.diff(history.elapsed) >= 0).all()
    assert not history.f.flags.writeable
    x = ca.SX.sym("x", 2)
    problem = Problem(x=x, f=ca.sumsqr(x), h={"line": ca.sum1(x) - 2})
    equality = Solver(problem).solve(0.5, history=True)
    assert not equality.lam_x.any()
    assert equality.bounds.lbg.tolist() == equality.bounds.ubg.tolist() == [0.0]
    lines = plot_convergence({"nlp": mixed, "equations": equality}).axes[0].lines
    drawn = {line.get_label(): line.get_xdata() for line in lines}
    assert drawn["nlp"].tolist() == history.t.tolist()
    assert drawn["equations"].tolist() == equality.history.t.tolist()


def test_attempts_count_as_one_solve() -> None:
    """Inconsistent constraints are tried from several starts; numbers and times go on.

    At a local minimum of the violation several attempts end where they begin.
    """
    x, y = ca.SX.sym("x", 2), ca.SX.sym("y")
    radius = {"x": x, "f": ca.sumsqr(x), "g": ca.vertcat(ca.sumsqr(x), x[0] - x[1])}
    equations = {"x0": 0, "lbg": 0, "ubg": 0}
    for nlp, call in (
        (radius, {"x0": [1, 0.5], "lbg": [-9, 0], "ubg": [-1, 0]}),
        ({"x": y, "g": ca.vertcat(y**2 - 1, y**2 + 1)}, equations),
        ({"x": y, "g": ca.vertcat(y - 1, y**3 + y + 1)}, equations),
    ):
        seen: list[IterationRecord] = []
        names = {"constraint_names": ["radius", "diagonal"]}
        for options in (names, {"iteration_callback": seen.append}):
            solver = solved(nlp, options, **call)
            result, stats = solver.result, solver.stats()
            assert stats["stop_reason"] == "LOCALLY_INFEASIBLE"
            assert stats["iterations"]["iter"] == [*range(result.iterations + 1)]
            assert result.history.t.tolist() == stats["iterations"]["iter"]
            assert result.x0.tolist() == np.ravel(call["x0"]).tolist()  # not of a later attempt
            if nlp is radius and options is names:
                assert result.worst() == "radius"
                assert "radius" in str(result)
        assert [record.iter for record in seen] == stats["iterations"]["iter"]
        assert (np.diff([record.elapsed for record in seen]) >= 0).all()


def test_large_gradients_excuse_no_residual():
    """Problem 99: ∇f is near 1e6 after 1e8 at the start; 1.3e-6 of it were left, and excused."""
    x0 = [2.03676863, 3.52673501, 0.95063964, -1.43586759, 0.63954066, -3.00380277, 0.76212764]
    data, call = hock_schittkowski(99)
    result = solved(data, **{**call, "x0": x0}).result
    assert result.success
    slope = ca.gradient(data["f"] + ca.dot(result.lam_g, data["g"]), data["x"]) + result.lam_x
    left = ca.Function("left", [data["x"]], [slope])(result.x)
    assert float(ca.norm_inf(left)) <= 1e-6


@pytest.mark.parametrize(
    ("number", "x0"),
    [
        (89, [-0.14774, -1.24009, 0.17804]),  # the third step for f leads out of the basin
        (91, [0.67502296, -0.04464087, 0.60343027, -0.26680068, 0.36064096]),
        (91, [0.81749110, 0.23682039, 0.24241424, 2.55803302, -0.26479018]),
    ],
)
def test_root_search_leaves_minimum_of_violation(number, x0):
    """Both problems are flat almost everywhere but next to their few feasible points."""
    nlp, call = hock_schittkowski(number)
    result = solved(nlp, **{**call, "x0": x0}).result
    assert result.success
    assert abs(result.f - hs_problem(number).f_star) < 1e-5


def test_solve_returns_into_the_domain() -> None:
    """A wing of least drag in logarithms scaled by the guess: exp overflows after a long step.

    The problem: W. Hoburg, P. Abbeel, Geometric programming for aircraft design optimization, AIAA
    Journal 52 (2014), section 3; its drag of 303.1 N.
    """
    guess = ca.DM([10.0, 100.0, 100.0, 8e3, 1.0])
    x = ca.SX.sym("x", 5)
    ratio, area, speed, weight, lift = ca.vertsplit(ca.exp(x / guess))
    reynolds = 1.23 / 1.78e-5 * speed * ca.sqrt(area / ratio)
    drag = 0.031 / area + 1.2 * 2.05 * 0.074 / reynolds**0.2 + lift**2 / (np.pi * 0.95 * ratio)
    force = 0.5 * 1.23 * speed**2 * area
    spar = 8.71e-5 * 3.8 * ratio**1.5 * ca.sqrt(4940.0 * weight * area) / 0.12
    takeoff = 0.5 * 1.23 * 22.0**2 * 1.5 * area
    g = ca.vertcat(weight - force * lift, weight - takeoff, 4940.0 + 45.24 * area + spar - weight)
    solver = nlpsol("wing", "hybrid", {"x": x, "f": force * drag, "g": g})
    solver(x0=guess * ca.log(guess), ubg=0)
    assert solver.result.success
    assert solver.result.f == pytest.approx(303.075, abs=1e-3)


def test_bounds_of_a_result_stay():
    x = ca.SX.sym("x", 3)
    f, g = ca.sumsqr(x - ca.DM([1, 2, 3])), ca.vertcat(ca.sum1(x), x[0] * x[1])
    solver, lower = Solver(Problem.from_nlp({"x": x, "f": f, "g": g})), np.zeros(3)
    first = solver.solve(0.1, lbx=lower, ubg=5)
    lower[0] = 0.5  # the caller's own array
    second = solver.solve(0.1, lbx=lower, ubg=5)
    assert second.bounds.lbx[0] == 0.5
    assert first.bounds.lbx[0] == 0.0
    assert not first.bounds.lbx.flags.writeable
