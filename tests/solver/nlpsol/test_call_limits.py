"""Solves under limits of one call: ``NlpSolver.within``."""

import time
from contextlib import suppress

import casadi as ca
import numpy as np
import pytest
from support.cases.core import warm
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


ARGUMENTS = {"p": 1.0, "lbg": -np.inf, "ubg": 1.5, "x0": [0.2, -0.3]}


class Clock:
    """A clock that calls of functions move by a second, in the place of ``time.perf_counter``."""

    def __init__(self, monkeypatch):
        self.now, self.calls = 0.0, []
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def tick(self):
        self.calls.append(self.now)
        self.now += 1.0


@pytest.fixture
def solver():
    return nlpsol("solver", "hybrid", program())


def test_limits_are_of_one_call_alone(solver):
    x = solver(**ARGUMENTS)["x"]
    cut = solver.within(np.inf, 3, **ARGUMENTS)
    assert (cut.stop, cut.iterations, cut.success) == (StopReason.ITERATION_LIMIT, 3, False)
    result = solver.within(**ARGUMENTS)
    assert result.success
    assert result.x.tolist() == np.array(x).ravel().tolist()
    assert solver.result is result
    assert solver.stats()["iter_count"] == result.iterations
    assert solver.options.max_iter == 3000
    for name, limits in (("seconds", (-1.0,)), ("iterations", (1.0, 1.5))):
        with pytest.raises(InputError, match=name):
            solver.within(*limits, **ARGUMENTS)


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


def test_limited_warm_solve_returns_its_last_point(solver):
    start = {**ARGUMENTS, **warm(solver(**ARGUMENTS)), "p": 2.5}
    full = solver.within(**start)
    assert full.iterations > 2
    away = []
    for steps in range(1, full.iterations):
        cut = solver.within(np.inf, steps, **start)
        assert (cut.stop, cut.iterations) == (StopReason.ITERATION_LIMIT, steps)
        accurate = max(cut.residuals.feasibility, cut.residuals.stationarity) <= 1e-6
        assert (cut.point is PointStatus.KKT_POINT) == accurate
        assert steps > 1 or not accurate
        row = float(cut.x @ cut.x)
        assert cut.g == pytest.approx([row])
        assert cut.residuals.feasibility == pytest.approx(max(0.0, row - 1.5), abs=1e-12)
        away.append(np.abs(cut.x - full.x).max())
    assert away[-1] < away[0]


def test_no_time_is_no_step(solver):
    start = {**warm(solver(**ARGUMENTS)), "x0": ARGUMENTS["x0"]}
    late = solver.within(1e-9, **{**ARGUMENTS, **start, "p": 1.4})
    assert (late.stop, late.iterations, late.success) == (StopReason.TIME_LIMIT, 0, False)
    assert late.x.tolist() == ARGUMENTS["x0"]


def test_no_evaluation_begins_after_the_time(monkeypatch):
    clock = Clock(monkeypatch)
    function = Watched(clock.tick)
    solver = nlpsol("solver", "hybrid", program(function))
    assert solver.within(**ARGUMENTS).success
    needed = len(clock.calls)
    for seconds in range(1, needed + 1):
        began = clock.now
        clock.calls.clear()
        try:
            result = solver.within(float(seconds), **ARGUMENTS)
        except OutOfTimeError:
            assert len(clock.calls) < 3  # before there was an iterate
        else:
            assert result.success or result.stop is StopReason.TIME_LIMIT
        assert max(clock.calls) < began + seconds
    assert solver.within(2.0 * needed, **ARGUMENTS).success


WAYS = {
    "Solver": lambda problem, seconds: Solver(problem, max_time=seconds).solve(-1.0),
    "within": lambda problem, seconds: nlpsol("s", "hybrid", problem).within(seconds, x0=-1),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [PythonFunction, BufferedFunction])
def test_differences_end_with_the_time(monkeypatch, way, kind):
    clock = Clock(monkeypatch)

    def value(x):
        clock.tick()
        return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2 + x[2] ** 2

    model, x = kind(value, 3), ca.MX.sym("x", 3)
    nlp = {"x": x, "f": ca.fmax(model(x), -1), "g": ca.sumsqr(x)}
    problem = Problem.from_nlp(nlp, lbg=-np.inf, ubg=9)
    assert Solver(problem).solve(-1.0).success  # makes what all solves need
    for seconds in (5.0, 20.0, 33.0, 34.0, 70.0):  # a gradient takes 13
        clock.calls.clear()
        began = clock.now
        with suppress(SolveError):  # where there is no time for a gradient
            result = WAYS[way](problem, seconds)
            assert result.stop is StopReason.TIME_LIMIT
            assert not result.f < 0  # of values that came
        assert began <= max(clock.calls) < began + seconds


def test_raising_function_is_a_status():
    acts = []
    function = Watched(lambda: [act() for act in acts])
    solver = nlpsol("solver", "hybrid", program(function))
    assert solver.within(**ARGUMENTS).success
    acts.append(lambda: int("no such entry"))
    assert solver.within(**ARGUMENTS).stop is StopReason.EVALUATION_ERROR
    with pytest.raises(RuntimeError, match="no such entry"):
        solver(**ARGUMENTS)


def test_larger_limit_loses_no_solution():
    """The step for the gap leads to a worse point first: 20² nodes of a twisted bar."""
    n, h = 20, 1 / 21
    u, U = ca.SX.sym("u", n * n), ca.SX.zeros(n + 2, n + 2)
    U[1:-1, 1:-1] = ca.reshape(u, n, n)
    wall = h * np.minimum(np.arange(1, n + 1), np.arange(n, 0, -1))
    wall = np.minimum.outer(wall, wall).ravel()
    f = (ca.sumsqr(ca.diff(U, 1, 0)) + ca.sumsqr(ca.diff(U, 1, 1))) / 2 - 5 * h**2 * ca.sum1(u)
    solver = nlpsol("s", "hybrid", {"x": u, "f": f})
    limits = range(5, 14)
    solved = [solver.within(iterations=limit, lbx=-wall, ubx=wall).success for limit in limits]
    assert solved == sorted(solved)
    assert solved[-1]
