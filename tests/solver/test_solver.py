"""Why a solve stops, what it returns, and that it agrees with IPOPT."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count, pairwise, product
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import PEER
from support.judges import paper_by_hand as by_hand
from support.judges.kkt import numbers

from casadi_hybrid import METHODS, InputError, PointStatus, Problem, Solver, StopReason
from casadi_hybrid.paper.iterations import Hybrid, Iteration
from casadi_hybrid.paper.iterations.methods import ITERATIONS
from casadi_hybrid.paper.iterations.stopping import DistanceTest
from casadi_hybrid.paper.law import Correction, State
from casadi_hybrid.paper.rules import ScheduleRule

x2 = ca.SX.sym("x", 2)
# min ½‖x‖² s.t. x_0² = 1, defined for ‖x‖ < 10 only (the root is too small to be seen otherwise).
TINY_ROOT = 1e-13 * ca.sqrt(100 - ca.sumsqr(x2))
PARABOLA = Problem(x=x2, f=0.5 * ca.sumsqr(x2) + TINY_ROOT, h=x2[0] ** 2 - 1)

# status: (x, λ). ∇f + Bᵀλ = (x_0(1 + 2λ), x_1).
POINTS = {
    PointStatus.KKT_POINT: ([1, 0], -0.5),
    PointStatus.FEASIBLE_NOT_STATIONARY: ([1, 0.5], 0.0),
    PointStatus.STATIONARY_NOT_FEASIBLE: ([2, 0], -0.5),
    PointStatus.INFEASIBLE_STATIONARY: ([0, 1], 0.0),
    PointStatus.NOT_CONVERGED: ([2, 1], 0.0),
}
# reason: what makes a solve stop at once, wherever it starts.
STOPS = {
    StopReason.ITERATION_LIMIT: {"max_iter": 0},
    StopReason.TIME_LIMIT: {"max_time": 1e-12},
    StopReason.DIVERGED: {"divergence": 1e-6},
    StopReason.TARGET_REACHED: {"stopping": [DistanceTest(np.zeros(2), 1e3)]},
    StopReason.STOPPED_BY_USER: {"callback": lambda progress: True},
    StopReason.DESIGN_INFEASIBLE: {"method": "closed-form", "M_max": 1e-9},
    StopReason.EVALUATION_ERROR: {"method": "constant", "eta_x": 1e4, "eta_d": 10.0},
}


@pytest.mark.parametrize("point", POINTS, ids=lambda member: member.name)
@pytest.mark.parametrize("reason", STOPS, ids=lambda member: member.name)
def test_stop_and_point_are_independent(reason, point):
    options = {"method": "gda", **STOPS[reason]}
    callback = options.pop("callback", None)
    x0, lam = POINTS[point]
    result = Solver(PARABOLA, **options).solve(x0, lam_g0=lam, callback=callback)
    if point is PointStatus.KKT_POINT and reason is not StopReason.STOPPED_BY_USER:
        reason = StopReason.CONVERGED  # asked before everything but the callback
    assert (result.stop, result.point) == (reason, point)
    assert result.success == (point is PointStatus.KKT_POINT)
    assert result.x == pytest.approx(x0)
    assert result.lam_g == pytest.approx([lam])
    assert result.residuals.feasibility == pytest.approx(abs(x0[0] ** 2 - 1))
    stationarity = max(abs(x0[0] * (1 + 2 * lam)), abs(x0[1]))
    assert result.residuals.stationarity == pytest.approx(stationarity, abs=1e-12)
    failed = reason in (StopReason.DESIGN_INFEASIBLE, StopReason.EVALUATION_ERROR)
    assert bool(result.detail) == failed


def test_each_residual_has_its_tolerance():
    x0 = [1 + 1e-4, 1e-2]  # h ≈ 2e-4, stationarity 1e-2
    for tol_feasibility, tol_stationarity, point in (
        (1e-3, 1e-1, PointStatus.KKT_POINT),
        (1e-3, 1e-3, PointStatus.FEASIBLE_NOT_STATIONARY),
        (1e-5, 1e-1, PointStatus.STATIONARY_NOT_FEASIBLE),
        (1e-5, 1e-3, PointStatus.NOT_CONVERGED),
    ):
        options = {"tol_feasibility": tol_feasibility, "tol_stationarity": tol_stationarity}
        result = Solver(PARABOLA, "gda", max_iter=0, **options).solve(x0, lam_g0=-0.5)
        assert result.point is point
    assert Solver(PARABOLA, "gda", tol=0.1, max_iter=0).solve(x0, lam_g0=-0.5).success


def test_points_without_multipliers_and_unbounded():
    """min x s.t. x² = 0: feasible at 0 only, where no λ solves 1 + 2xλ = 0."""
    x = ca.SX.sym("x")
    problem = Problem(x=x, f=x, h=x**2)
    result = Solver(problem, "gda", max_iter=0).solve(0.0, lam_g0=1e8)
    assert result.point is PointStatus.FRITZ_JOHN_POINT
    result = Solver(problem, "gda", divergence=1e4).solve(1e-6, lam_g0=1e6)
    assert result.stop is StopReason.NO_MULTIPLIERS
    unbounded = Problem(x=x2, f=-x2[0], h=x2[1])
    result = Solver(unbounded, "gda", eta_x=1e3, max_iter=10**6, divergence=1e6).solve([0, 0])
    assert result.stop is StopReason.UNBOUNDED
    assert result.f < -1e3
    huge = Problem(x=x2, f=ca.sumsqr(x2), h=1e150 * (x2 - 1))
    result = Solver(huge, "gda", max_iter=0).solve([0.5, 0.3])
    assert result.point is PointStatus.NOT_CONVERGED


def test_time_limit_stops_a_long_run(monkeypatch):
    monkeypatch.setattr(time, "perf_counter", count(0.0, 0.01).__next__)  # 10 ms a look
    result = Solver(PARABOLA, "gda", eta_x=1e-9, eta_d=1e-9, max_time=0.5).solve([2, 1])
    assert result.stop is StopReason.TIME_LIMIT
    assert result.elapsed >= 0.5
    assert result.iterations > 0


def test_callback_sees_every_iterate_and_stops():
    seen = []

    def watch(progress):
        seen.append(progress)
        return progress.residuals.feasibility < 0.1

    solver = Solver(PARABOLA, "constant", C_aug=1.0, eta_x=0.05, eta_d=0.2)
    result = solver.solve([2, 1], callback=watch, history=True)
    assert result.stop is StopReason.STOPPED_BY_USER
    assert [progress.state.t for progress in seen] == list(range(result.iterations + 1))
    assert np.array_equal([progress.state.x for progress in seen], result.history.x)
    assert seen[0].correction is None
    assert seen[1].correction.M == 1.0
    assert all(a.elapsed <= b.elapsed for a, b in pairwise(seen))
    Solver(PARABOLA, "auto").solve([2, 1], callback=seen.append)
    assert seen[-1].residuals.feasibility < 1e-8  # also the solution is shown


@pytest.mark.parametrize("limit", [1e4, 1e300])
def test_best_point_survives_divergence(limit):
    """Thirty good steps, then steps of the wrong sign and a thousand times as long."""

    def schedule(at, t):
        sign = 1.0 if t < 30 else -1e3
        return Correction(np.eye(1), np.zeros((1, 1)), sign * 0.05, abs(sign) * 0.2)

    problem = Problem(x=x2, f=0.5 * ca.sumsqr(x2), h=x2[0] ** 2 - 1)
    solver = Solver(problem, Hybrid(ScheduleRule(schedule)), tol=1e-12, divergence=limit)
    result = solver.solve([2, 1], history=True)
    assert result.stop is StopReason.DIVERGED
    assert result.iterations > 31
    merit = np.maximum(result.history.feasibility, result.history.stationarity)
    best = int(merit.argmin())
    assert 25 <= best <= 31
    assert result.x.tolist() == result.history.x[best].tolist()
    assert result.lam_g.tolist() == result.history.multipliers[best].tolist()
    assert max(result.residuals.feasibility, result.residuals.stationarity) == merit[best] < 0.5
    assert result.f == result.history.f[best]


def fingerprint(result):
    arrays = (result.x, result.lam_g, result.history.x, result.history.multipliers)
    return (*(array.tobytes() for array in arrays), result.f, result.iterations, result.stop)


WAYS = [*product(("auto", "closed-form", "ogda", "pdhg"), [False]), ("closed-form", True)]


@pytest.mark.parametrize(("method", "compiled"), WAYS)
def test_solver_serves_threads_and_repeats(method, compiled, request):
    """Started together, before the functions are built, and then one by one."""
    if compiled:
        request.getfixturevalue("compiler")
    problem, x0, lam = by_hand.instance(2.0, 1)
    solver = Solver(Problem(**problem.symbolic(), compile=compiled), method, max_iter=60)
    starts = [x0 + 0.02 * k for k in range(8)]
    together = threading.Barrier(len(starts))

    def work(start):
        together.wait()
        return fingerprint(solver.solve(start, lam_g0=lam, history=True))

    with ThreadPoolExecutor(len(starts)) as pool:
        concurrent = list(pool.map(work, starts))
    serial = [fingerprint(solver.solve(x, lam_g0=lam, history=True)) for x in starts]
    assert concurrent == serial
    assert len({*serial}) == len(starts)


def test_arguments_are_left_alone():
    x0, lam, before = np.array([2.0, 1.0]), np.array([0.1]), np.array([2.1, 1.1])
    copies = [array.copy() for array in (x0, lam, before)]
    for method in ("constant", "ogda", "pdhg"):
        Solver(PARABOLA, method, max_iter=5).solve(x0, lam_g0=lam, x_prev=before)
    Solver(PARABOLA, max_iter=5).solve(x0, lam_g0=lam)
    with pytest.raises(InputError, match=r"x_prev.*'hybrid'"):
        Solver(PARABOLA).solve(x0, x_prev=before)
    for array, copy in zip((x0, lam, before), copies, strict=True):
        assert np.array_equal(array, copy)


y = ca.SX.sym("y", 3)
# name: (x, f, h, start); m < n and m = n, each with a regular strict minimizer.
LINEAR = ca.vertcat(y[0] + y[1], y[1] - y[2], 2 * y[2] - 1)
CURVED = ca.vertcat(x2[0] ** 2 + x2[1] - 1, x2[0] - x2[1] ** 3)
NEARBY = {
    "circle": (x2, x2[0] + x2[1], ca.sumsqr(x2) - 2, [-0.5, -1.5]),
    "square linear": (y, ca.sumsqr(y), LINEAR, [0, 0, 0]),
    "square nonlinear": (x2, ca.sin(x2[0]) * x2[1], CURVED, [0.7, 0.8]),
}


@pytest.mark.parametrize("name", NEARBY)
@pytest.mark.parametrize("method", ["constant", "closed-form", "whitened", "matrix-lookahead"])
def test_methods_agree_with_ipopt_nearby(name, method):
    x, f, h, x0 = NEARBY[name]
    peer = ca.nlpsol("peer", "ipopt", {"x": x, "f": f, "g": h}, PEER)
    expected = peer(x0=x0, lbg=0, ubg=0)
    assert peer.stats()["success"]
    x_star, lam_star = numbers(expected["x"]), numbers(expected["lam_g"])
    options = {"C_aug": 2.0, "eta_x": 0.05, "eta_d": 0.5} if method == "constant" else {}
    solver = Solver(Problem(x=x, f=f, h=h), method, max_iter=20_000, **options)
    result = solver.solve(x_star + 0.02, lam_g0=lam_star + 0.02)
    assert result.success, result
    assert result.x == pytest.approx(x_star, abs=1e-6)
    assert result.lam_g == pytest.approx(lam_star, abs=1e-6)
    assert result.f == pytest.approx(float(expected["f"]), abs=1e-6)


@pytest.mark.parametrize("error", [OverflowError, FloatingPointError])
def test_rule_errors_are_statuses_and_callers_propagate(error):
    def fail(*_):
        raise error("mine")

    result = Solver(PARABOLA, Hybrid(ScheduleRule(fail))).solve([3.0, 2.0])
    assert result.stop is StopReason.EVALUATION_ERROR
    assert f"{error.__name__}: mine" in result.detail
    assert result.x.tolist() == [3.0, 2.0]
    height, width = ca.SX.sym("height"), ca.SX.sym("width")
    problem = Problem(x=ca.vertcat(height, width), f=width - height**2, h=width)
    failed = Solver(problem, "closed-form", kernel_floor=None).solve([0.5, 0.5])
    assert "height" in failed.detail
    for method, options, callback in (
        ("hybrid", {}, fail),
        ("gda", {}, fail),
        ("hybrid", {"stopping": [fail]}, None),
    ):
        with pytest.raises(error, match="mine"):
            Solver(PARABOLA, method, **options).solve([3.0, 2.0], callback=callback)


class Newton(Iteration):
    """Newton's method on the KKT equations, by the members of ``Iteration`` alone."""

    label = "Newton"

    def init(self, oracle, start):
        return State(start.x0, start.multipliers, 0 * start.multipliers, start.multipliers)

    def evaluate(self, oracle, state):
        at = oracle.first(state.x)
        return SimpleNamespace(x=at.x, f=at.f, gradient=at.gradient, h=at.h, B=at.B)

    def step(self, oracle, state, at):
        H = oracle.second(state.x, state.mu).hessian
        K = np.block([[H, at.B.T], [at.B, np.zeros((at.h.size, at.h.size))]])
        d = np.linalg.solve(K, -np.r_[at.gradient, at.h])
        x, mu = state.x + d[: at.x.size], d[at.x.size :]
        return State(x, mu, 0 * mu, mu, state.t + 1), None


def test_own_iteration_solves_shows_and_logs(capsys):
    """Tests, log, history, callback and result read the members of ``Iteration`` alone."""
    seen = []
    solver = Solver(PARABOLA, Newton())
    result = solver.solve([2, 1], history=True, log=True, callback=seen.append)
    assert result.success
    np.testing.assert_allclose([*result.x, *result.lam_g], [1, 0, -0.5], atol=1e-8)
    assert [(now.f, now.g, now.x[0]) for now in seen][-1] == (result.f, result.g, result.x[0])
    assert len(seen) == len(result.history.f) == result.iterations + 1
    assert "objective" in capsys.readouterr().out
    assert "Newton" in str(result)


def test_incomplete_iteration_is_refused():
    for lacking in ("init", "evaluate", "step"):
        members = {name: member for name, member in vars(Newton).items() if name != lacking}
        with pytest.raises(TypeError, match=lacking):
            type("Short", (Iteration,), members)()
    with pytest.raises(InputError, match=r"subclass of .*Iteration, got int"):
        Solver(PARABOLA, 3)
    assert METHODS.keys() == {*ITERATIONS, "hybrid", "auto"}
