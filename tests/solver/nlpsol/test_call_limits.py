"""Solves under limits of one call: ``NlpSolver.within``."""

import time
from contextlib import suppress

import casadi as ca
import numpy as np
import pytest
from support.cases.watched import BufferedFunction, PythonFunction, Watched

from casadi_hybrid import InputError, Problem, Solver, nlpsol
from casadi_hybrid.solver.nlpsol.runner import SolveError
from casadi_hybrid.utils.errors import OutOfTimeError
from casadi_hybrid.utils.status import PointStatus, StopReason


def program(function=None):
    """Rosenbrock's function on a disk, moved by a parameter; a function of Python's in the row."""
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    factor = 1.0 if function is None else function.call([x[0]], False, True)[0]
    f = 100 * (x[1] - x[0] ** 2) ** 2 + (p - x[0]) ** 2
    return {"x": x, "p": p, "f": f, "g": ca.sumsqr(x) + factor - 1.0}


GIVEN = {"p": 1.0, "lbg": -np.inf, "ubg": 1.5, "x0": [0.2, -0.3]}


def with_act(act):
    """The same with a function of Python's that is called once an evaluation."""
    function = Watched(act)
    return nlpsol("solver", "hybrid", program(function)), function


def test_without_limits_it_is_the_call():
    solver = nlpsol("solver", "hybrid", program())
    found = solver(**GIVEN)
    result = solver.within(**GIVEN)
    assert result.success
    assert result.x.tolist() == np.array(found["x"]).ravel().tolist()
    assert solver.result is result
    assert solver.stats()["iter_count"] == result.iterations


def test_the_iterations_of_one_call_are_limited():
    solver = nlpsol("solver", "hybrid", program())
    cut = solver.within(np.inf, 3, **GIVEN)
    assert (cut.stop, cut.iterations) == (StopReason.ITERATION_LIMIT, 3)
    assert not cut.success
    assert solver.within(**GIVEN).success  # it was that call's alone
    assert solver.options.max_iter == 3000


@pytest.mark.parametrize("callback", [None, lambda _: None], ids=["unseen", "seen"])
def test_last_step_is_taken_though_violation_stays(callback):
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    nlp = {"x": x, "p": p, "f": 0.01 * ca.sumsqr(x - 1), "g": ca.exp(3 * x[0]) + x[1] - p}
    problem = Problem.from_nlp(nlp)
    before = Solver(problem).solve(x0=[0, 0], p=1.0, lbg=0, ubg=0)
    one = Solver(problem, max_iter=1)
    cut = one.solve(p=3.5, lbg=0, ubg=0, warm_start=before, callback=callback)
    assert (cut.stop, cut.iterations) == (StopReason.ITERATION_LIMIT, 1)
    assert cut.residuals.feasibility > 2 / 3 * 2.5
    slope = np.array([3 * np.exp(3 * before.x[0]), 1.0])
    assert slope @ (cut.x - before.x) == pytest.approx(2.5, rel=1e-6)  # a full Newton step


def test_limited_warm_solve_returns_its_last_point():
    solver = nlpsol("solver", "hybrid", program())
    before = solver(**GIVEN)
    warm = {**GIVEN, "p": 2.5, "x0": before["x"],
            "lam_x0": before["lam_x"], "lam_g0": before["lam_g"]}  # fmt: skip
    full = solver.within(**warm)
    assert full.iterations > 2
    away = []
    for steps in range(1, full.iterations):
        cut = solver.within(np.inf, steps, **warm)
        assert (cut.stop, cut.iterations) == (StopReason.ITERATION_LIMIT, steps)
        within = max(cut.residuals.feasibility, cut.residuals.stationarity) <= 1e-6
        assert (cut.point is PointStatus.KKT_POINT) == within
        assert steps > 1 or not within
        row = float(cut.x @ cut.x)
        assert cut.g == pytest.approx([row])
        assert cut.residuals.feasibility == pytest.approx(max(0.0, row - 1.5), abs=1e-12)
        away.append(np.abs(cut.x - full.x).max())
    assert away[-1] < away[0]


def test_no_time_is_no_step():
    solver = nlpsol("solver", "hybrid", program())
    before = solver(**GIVEN)
    multipliers = {"lam_x0": before["lam_x"], "lam_g0": before["lam_g"]}
    late = solver.within(1e-9, **{**GIVEN, "p": 1.4}, **multipliers)
    assert late.stop is StopReason.TIME_LIMIT
    assert late.iterations == 0
    assert not late.success
    assert late.x.tolist() == GIVEN["x0"]


def test_no_evaluation_begins_after_the_time(monkeypatch):
    now, calls = [0.0], []

    def act():
        calls.append(now[0])
        now[0] += 1.0

    solver, _function = with_act(act)
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    assert solver.within(**GIVEN).success
    all_calls = len(calls)
    for seconds in range(1, all_calls + 1):
        began = now[0]
        calls.clear()
        try:
            result = solver.within(float(seconds), **GIVEN)
        except OutOfTimeError:
            assert len(calls) < 3  # before there was an iterate
        else:
            assert result.success or result.stop is StopReason.TIME_LIMIT
        assert calls
        assert max(calls) < began + seconds
    assert solver.within(2.0 * all_calls, **GIVEN).success


ENDS = {
    "nlpsol": lambda problem, seconds: nlpsol("s", "hybrid", problem, {"max_time": seconds})(x0=-1),
    "Solver": lambda problem, seconds: Solver(problem, max_time=seconds).solve(-1.0),
    "within": lambda problem, seconds: nlpsol("s", "hybrid", problem).within(seconds, x0=-1),
}
"""Solves that take no longer; where there is no time for a gradient the last one raises."""


@pytest.mark.parametrize("door", ENDS)
@pytest.mark.parametrize("kind", [PythonFunction, BufferedFunction])
def test_differences_end_with_the_time(monkeypatch, door, kind):
    now, calls = [0.0], []

    def value(x):
        calls.append(now[0])
        now[0] += 1.0
        return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2 + x[2] ** 2

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    model, x = kind(value, 3), ca.MX.sym("x", 3)
    problem = Problem.from_nlp(
        {"x": x, "f": ca.fmax(model(x), -1), "g": ca.sumsqr(x)}, lbg=-np.inf, ubg=9
    )
    assert Solver(problem).solve(-1.0).success  # makes what all solves need
    for seconds in (5.0, 20.0, 33.0, 34.0, 70.0):  # a gradient takes 13
        calls.clear()
        began = now[0]
        with suppress(SolveError):
            found = ENDS[door](problem, seconds)
            assert door == "nlpsol" or found.stop is StopReason.TIME_LIMIT
            assert not (found["f"] if door == "nlpsol" else found.f) < 0  # of values that came
        assert began <= max(calls) < began + seconds


def test_raising_function_is_a_status():
    broken = []

    def act():
        if broken:
            raise ValueError("no such entry")

    solver, _function = with_act(act)
    assert solver.within(**GIVEN).success
    broken.append(True)
    assert solver.within(**GIVEN).stop is StopReason.EVALUATION_ERROR
    with pytest.raises(RuntimeError, match="no such entry"):
        solver(**GIVEN)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (((-1.0,), GIVEN), "seconds must be a positive number"),
        (((1.0, 1.5), GIVEN), "iterations must be a whole number"),
        (((1.0,), {**GIVEN, "x0": [1, 2, 3]}), "x0"),
    ],
)
def test_wrong_limits_are_refused(given, said):
    solver = nlpsol("solver", "hybrid", program())
    limits, numbers = given
    with pytest.raises(InputError, match=said):
        solver.within(*limits, **numbers)


def test_larger_limit_loses_no_solution():
    """The step for the gap leads to a worse point first: 20² nodes of a twisted bar."""
    n, h = 20, 1 / 21
    u, U = ca.SX.sym("u", n * n), ca.SX.zeros(n + 2, n + 2)
    U[1:-1, 1:-1] = ca.reshape(u, n, n)
    wall = h * np.minimum(np.arange(1, n + 1), np.arange(n, 0, -1))
    wall = np.minimum.outer(wall, wall).ravel()
    f = (ca.sumsqr(ca.diff(U, 1, 0)) + ca.sumsqr(ca.diff(U, 1, 1))) / 2 - 5 * h**2 * ca.sum1(u)
    solve, kept = nlpsol("s", "hybrid", {"x": u, "f": f}), []
    for limit in range(5, 14):
        kept.append(solve.within(iterations=limit, lbx=-wall, ubx=wall).success)
    assert kept == sorted(kept)
    assert kept[-1]
