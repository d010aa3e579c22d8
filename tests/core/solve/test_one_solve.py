"""One solve: observers, its result, Ctrl-C, limits of time, starts where a row has no slope."""

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.core import CASES, assert_kkt, solved, warm

from casadi_hybrid import Problem, Solver, StopReason, nlpsol
from casadi_hybrid.control import Model, OptimalControl
from casadi_hybrid.core.binding.core import engine_of
from casadi_hybrid.utils.errors import Interrupted, ScaleWarning

CASE = CASES["hs071"]()
Numbers = dict[str, Any]


def problem() -> Problem:
    return Problem.from_nlp(CASE.nlp)


@pytest.mark.parametrize(
    "looks",
    [
        {"history": True}, {"log": 100}, {"callback": lambda progress: None},
        {"stopping": lambda progress: None},
    ],
    ids=lambda looks: next(iter(looks)),
)  # fmt: skip
@pytest.mark.parametrize("near", [False, True], ids=["cold", "warm"])
def test_who_looks_on_changes_no_bit(looks: Numbers, near: bool) -> None:
    first = Solver(problem()).solve(**CASE.numbers) if near else None
    test = looks.get("stopping")
    solver = Solver(problem(), stopping=[test]) if test else Solver(problem())
    numbers = {**CASE.numbers, "p": [1.02]}
    result = solver.solve(**numbers, warm_start=first, **({} if test else looks))
    alone = Solver(problem()).solve(**numbers, warm_start=first)
    assert result.success
    assert (result.engine, result.iterations) == ("c", alone.iterations)
    for name in ("x", "lam_x", "lam_g"):
        np.testing.assert_array_equal(getattr(result, name), getattr(alone, name))
    rows = np.searchsorted(alone.history.t, result.history.t)  # steps on a set are no iterates
    np.testing.assert_array_equal(result.history.f, alone.history.f[rows])
    assert result.history.t[-1] == result.iterations


def test_two_threads_change_no_bit() -> None:
    """A membrane between obstacles, whose factorizations take some milliseconds."""
    side = 100
    inner = ca.SX.sym("u", side, side)
    u = ca.SX.zeros(side + 2, side + 2)
    u[1:-1, 1:-1] = inner
    energy = (ca.sumsqr(ca.diff(u, 1, 0)) + ca.sumsqr(ca.diff(u, 1, 1))) / 2
    nlp = {"x": ca.vec(inner), "f": energy - 5 * ca.sum1(ca.vec(u)) / side**2}
    solvers = [Solver(nlp, threads=threads) for threads in (1, 2, 3)]
    one, two, three = (solver.solve(0, lbx=-0.1, ubx=0.2) for solver in solvers)
    assert one.success
    asked = []
    for solver, other in zip(solvers, (one, two, three), strict=True):
        core = engine_of(solver.problem).cores[0]
        asked.append(bool(core._functions.at_once))
        assert (core.plan.data.fixed.size, core.plan.data.ldl.dealt > 0) == (0, True)
        assert other.iterations == one.iterations
        for name in ("x", "lam_x"):
            assert getattr(other, name).tobytes() == getattr(one, name).tobytes()
    assert asked == [False, True, True]


def test_a_solve_under_a_limit_in_seconds() -> None:
    ample = nlpsol("solver", "hybrid", CASE.nlp, {"max_time": 60.0})
    outputs = ample(**CASE.numbers)
    arguments = {**CASE.numbers, **warm(outputs), "p": [1.02]}
    found = ample(**arguments)
    assert ample.result.success
    assert len(ample.stats()["iterations"]["obj"]) == ample.stats()["iter_count"] + 1
    wanted = nlpsol("solver", "hybrid", CASE.nlp)(**arguments)
    np.testing.assert_array_equal(found["x"].full(), wanted["x"].full())


def test_statistics_of_a_warm_solve_say_what_its_result_says() -> None:
    solver = nlpsol("solver", "hybrid", CASE.nlp)
    outputs = solver(**CASE.numbers)
    solver(**{**CASE.numbers, **warm(outputs), "p": [1.02]})
    stats, result = solver.stats(), solver.result
    assert result.iterations > 1
    assert stats["n_call_nlp_f"] == result.evaluations["first"] > 0
    assert stats["n_call_nlp_hess_l"] == result.evaluations["second"]
    assert (stats["success"], stats["iter_count"]) == (result.success, result.iterations)
    for name in ("hessian", "engine", "kernel", "detail"):
        assert stats[name] == getattr(result, name)
    assert stats["stop_reason"] == result.stop.name
    assert stats["point_status"] == result.point.name
    assert stats["t_wall_total"] == result.elapsed
    lists = stats["iterations"]
    assert lists["iter"] == list(result.history.t) == [*range(result.iterations + 1)]
    assert lists["obj"] == list(result.history.f)
    assert lists["inf_pr"][-1] == result.residuals.feasibility
    assert not any(lists["regularization_size"])  # of steps on active sets


def valley(n: int = 20) -> tuple[Numbers, Numbers]:
    """Rosenbrock's function in a chain, from the other side of the valley."""
    x = ca.SX.sym("x", n)
    terms = 100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2
    return {"x": x, "f": ca.sum1(terms), "g": x[0] + x[1]}, {"x0": [-1.2, 1.0] * (n // 2)}


@pytest.mark.skipif(os.name == "nt", reason="there is no such signal")
@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("door", "equations"),
    [("auto", False), ("auto", True), ("gda", True), ("nlpsol", False), ("nlpsol", True)],
)
@pytest.mark.parametrize("after", [1, 3])
def test_ctrl_c_keeps_the_best_point(after: int, door: str, equations: bool) -> None:
    """Pressed at an iterate; the next solve is as if nothing had been."""
    nlp, numbers = valley()
    if equations:
        numbers |= {"lbg": 0, "ubg": 0}
    assert threading.current_thread() is threading.main_thread()
    seen = list[Any]()

    def pressed(progress: Any) -> None:
        seen.append(progress)
        if len(seen) == after + 1:
            signal.raise_signal(signal.SIGINT)

    def made(look: Any) -> Callable[[], Any]:
        """A solver, ready to be called."""
        if door == "nlpsol":
            solver = nlpsol("s", "hybrid", nlp, {"iteration_callback": look})
            return lambda: solver(**numbers) and solver.result
        own = Solver(Problem.from_nlp(nlp), door)
        return lambda: own.solve(**numbers, callback=look)

    solve = made(pressed)
    with pytest.raises(KeyboardInterrupt) as caught:
        solve()
    assert isinstance(caught.value, Interrupted)
    result = caught.value.result
    assert result.stop is StopReason.STOPPED_BY_USER
    assert result.iterations <= after
    assert np.isfinite(result.f)
    assert len(seen) == after + 1
    np.testing.assert_array_equal(solve().x, made(lambda _: None)().x)


Made = tuple[dict[str, Any], dict[str, Any]]
INF = np.inf


def rosenbrock_in_a_disc() -> Made:
    """The first example of many tutorials."""
    x = ca.SX.sym("x", 2)
    f = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    return {"x": x, "f": f, "g": ca.sumsqr(x)}, {"x0": [0, 0], "ubg": 1}


def circle_between_bounds() -> Made:
    """An equation without a slope: the kernel is singular at the first step."""
    x = ca.SX.sym("x", 3)
    f = (x[0] - 2) ** 2 + (x[1] - 0.3) ** 2 + ca.exp(x[2]) * x[0]
    numbers = {"x0": 0, "lbx": -2, "ubx": 3, "lbg": 1, "ubg": 1}
    return {"x": x, "f": f, "g": ca.sumsqr(x)}, numbers


def steep_beside_flat() -> Made:
    """One row is scaled, one has no slope, one none in its free variable, one no bound."""
    x = ca.SX.sym("x", 3)
    g = ca.vertcat(900 * x[0] + x[1], x[0] * x[1], x[1] ** 2 + x[2], x[0] ** 2)
    f = (x[0] - 1) ** 2 + (x[1] + 2) ** 2 + x[0] * x[2]
    bounds = {"lbx": [-3, -3, 0.5], "ubx": [3, 3, 0.5]}
    limits = {"lbg": [-INF, -0.5, 0.6, -INF], "ubg": [500, 0.25, 1.5, INF]}
    return {"x": x, "f": f, "g": g}, {"x0": [0, 0, 0.5], **bounds, **limits}


def discs() -> Made:
    """The same row many times: beyond the limit of full matrices."""
    n = 60
    x, y = ca.SX.sym("x", n), ca.SX.sym("y", n)
    f = ca.sumsqr(x - 1) + ca.sumsqr(y[1:] - y[:-1] - 0.1) + ca.dot(x, y) + y[0]
    return {"x": ca.vertcat(x, y), "f": f, "g": x**2 + y**2}, {"x0": 0, "ubg": 1}


def arm() -> Made:
    """More equations than unknowns: a root is looked for first."""
    q = ca.SX.sym("q", 2)
    hand = ca.vertcat(ca.cos(q[0]) + ca.cos(q[0] + q[1]), ca.sin(q[0]) + ca.sin(q[0] + q[1]))
    at = ca.DM([np.cos(0.4) + np.cos(1.3), np.sin(0.4) + np.sin(1.3)])
    g = ca.vertcat(hand - at, (q[0] - 0.1) ** 2 - 0.09)
    return {"x": q, "g": g}, {"x0": [0.1, 0.2], "lbg": 0, "ubg": 0}


STARTS = [rosenbrock_in_a_disc, circle_between_bounds, steep_beside_flat, discs, arm]


def has_flat_row(made: Made) -> bool:
    """Whether a row has no slope at all at the start."""
    problem, numbers = made
    x = problem["x"]
    J = ca.Function("J", [x], [ca.jacobian(problem["g"], x)])(numbers["x0"]).full()
    return not np.abs(J).max(axis=1).all()


@pytest.mark.parametrize("made", STARTS)
def test_they_are_left(made: Callable[[], Made]) -> None:
    assert has_flat_row(made())
    solver, found = solved(made())
    assert solver.stats()["success"]
    problem, numbers = made()
    assert_kkt((problem, numbers), found)


@pytest.mark.parametrize("seed", range(4))
def test_where_only_rounding_leaves_the_start_a_minimizer_is_found(seed: int) -> None:
    """At the centre of a ring nothing says where to go: which of the two it is hangs on a hair."""
    x = ca.SX.sym("x", 2)
    x0 = 1e-15 * np.random.default_rng(seed).uniform(-1, 1, 2) * (seed > 0)
    problem = {"x": x, "f": x[0] ** 2 + 0.1 * x[0] * x[1] ** 2, "g": ca.sumsqr(x)}
    made = problem, {"x0": x0, "lbx": -4, "ubx": 4, "lbg": 1, "ubg": 4}
    solver, found = solved(made)
    assert solver.stats()["success"]
    assert_kkt(made, found)


Y = ca.SX.sym("y", 2)
WELLS = sum((Y[i] ** 2 - 1) ** 2 for i in range(2)) + 0.1 * (Y[0] - Y[1]) ** 2
SADDLES = {
    "disc": ({"f": Y[0] * Y[1], "g": ca.sumsqr(Y)}, [0, 0], {"ubg": 1}, -0.5),
    "quartic": ({"f": Y[0] ** 2 - Y[1] ** 2 + Y[1] ** 4}, [0, 0], {}, -0.25),
    "beside": ({"f": Y[0] ** 2 - Y[1] ** 2 + Y[1] ** 4}, [1, 0], {}, -0.25),
    "maximum": ({"f": ca.cos(Y[0]) + ca.cos(Y[1])}, [0, 0], {}, -2.0),
    "wells": ({"f": WELLS}, [0, 0], {}, 0.0),
    "small": ({"f": 1e-3 * WELLS}, [0, 0], {}, 0.0),
    "box": ({"f": Y[0] * Y[1] - 0.1 * Y[0] ** 2}, [0, 0], {"lbx": -1, "ubx": 1}, -1.1),
    "sphere": (
        {"f": Y[0] ** 2 + 3 * Y[1] ** 2, "g": ca.sumsqr(Y)},
        [0, 1],
        {"lbg": 1, "ubg": 1, "lbx": -2},
        1.0,
    ),
}


@pytest.mark.parametrize("label", SADDLES)
def test_saddles_are_left_for_minima(label: str) -> None:
    nlp, x0, bounds, f = SADDLES[label]
    solver = nlpsol("s", "hybrid", {"x": Y, **nlp})
    assert float(solver(x0=x0, **bounds)["f"]) == pytest.approx(f, abs=1e-6)
    assert solver.stats()["success"]
    assert solver.stats()["conditions"] in ("NECESSARY", "SUFFICIENT")


def test_hanging_pendulum_swings_up() -> None:
    model = Model("pendulum")
    angle, rate = model.state("angle"), model.state("rate")
    torque = model.control("torque", lower=-6, upper=6)
    model.rates(angle=rate, rate=torque - 9.81 * ca.sin(angle))
    ocp = OptimalControl(model, duration=2.5, intervals=15)
    ocp.initial(angle=0, rate=0)
    ocp.minimize("up", integral=1 + ca.cos(angle) + 0.01 * torque**2, end=10 * (1 + ca.cos(angle)))
    found = ocp.solve()
    assert found.success
    assert abs(found["angle"][-1]) == pytest.approx(np.pi, abs=0.1)


def test_minimum_at_start_is_sufficient() -> None:
    solver = nlpsol("s", "hybrid", {"x": Y, "f": ca.sumsqr(Y - 1)})
    solver(x0=1)
    assert (solver.stats()["iter_count"], solver.stats()["conditions"]) == (0, "SUFFICIENT")
    secant = nlpsol(
        "s", "hybrid", {"x": Y, "f": ca.sumsqr(Y)}, {"hessian_approximation": "limited-memory"}
    )
    secant(x0=[1, 2])
    assert secant.stats()["conditions"] == "UNKNOWN"


def test_gap_of_many_bounds_is_small() -> None:
    """Each product of a multiplier and its distance is below 1e-8 anyway."""
    n = 3000
    x, goal = ca.SX.sym("x", n), np.sin(np.arange(n))
    f = 0.5e-3 * ca.sumsqr(x[1:] - x[:-1]) + 1e-3 * ca.dot(goal, x)
    found = Solver({"x": x, "f": f}).solve(np.zeros(n), lbx=-1, ubx=1)
    distance = np.where(found.lam_x < 0, found.x + 1, 1 - found.x)
    assert found.success
    assert np.abs(found.lam_x) @ distance <= 1e-6 * max(1.0, abs(found.f))


def test_small_objective_warns_where_inaccurate() -> None:
    solver = nlpsol("s", "hybrid", {"x": Y, "f": 1e-10 * ca.sumsqr(Y - 3)})
    with pytest.warns(ScaleWarning, match=r"gradient of f at the start was 6.0e-10"):
        solver(x0=0)
    assert "state f in smaller units" in solver.result.explain()
    for right in (3, 3 + 1e-12):
        assert "smaller units" not in Solver({"x": Y, "f": ca.sumsqr(Y - 3)}).solve(right).explain()
        solver(x0=right)  # without a warning


@pytest.mark.parametrize(
    ("f", "bounds"),
    [
        (ca.cos(Y[0]) + ca.cos(Y[1]) + 0.1 * ca.sumsqr(Y), {}),  # no curvature above the tolerance
        (Y[0] * Y[1], {"lbx": -1, "ubx": 1}),
        (Y[0] + Y[1], {"lbx": -1, "ubx": 1}),
    ],
)
def test_small_objective_of_any_kind_warns(f: ca.SX, bounds: dict[str, int]) -> None:
    solver = nlpsol("s", "hybrid", {"x": Y, "f": 1e-10 * f})
    with pytest.warns(ScaleWarning, match="may be off by"):
        solver(x0=[0.3, 0.4], **bounds)
    nlpsol("s", "hybrid", {"x": Y, "f": f})(x0=[0.3, 0.4], **bounds)  # without a warning


@pytest.mark.parametrize("f", [Y[0] ** 2 - Y[1] ** 2, Y[0] * Y[1], -ca.sumsqr(Y)])
def test_saddle_without_minimum_is_unbounded(f: ca.SX) -> None:
    found = Solver({"x": Y, "f": f}).solve(0)
    assert found.stop is StopReason.UNBOUNDED
    assert found.f < -1e10
