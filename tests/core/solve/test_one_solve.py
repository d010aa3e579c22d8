"""One solve: observers, its result, Ctrl-C, and starts where a row or the objective is flat."""

import os
import signal
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.core import CASES, assert_kkt, solved

from casadi_hybrid import Problem, Solver, StopReason, nlpsol
from casadi_hybrid.core.binding.core import engine_of
from casadi_hybrid.core.header import C
from casadi_hybrid.utils.errors import Interrupted, ScaleWarning

CASE = CASES["hs071"]()


@pytest.mark.parametrize("observer", ["history", "log", "callback", "stopping"])
@pytest.mark.parametrize("near", [False, True], ids=["cold", "warm"])
def test_observers_change_no_bit(observer: str, near: bool) -> None:
    def nothing(_progress: Any) -> None:
        pass

    problem, numbers = Problem.from_nlp(CASE.nlp), {**CASE.numbers, "p": [1.02]}
    first = Solver(problem).solve(**CASE.numbers) if near else None
    solver = Solver(problem, stopping=[nothing] if observer == "stopping" else [])
    values = {"history": True, "log": 100, "callback": nothing}
    looks = {observer: values[observer]} if observer in values else {}
    result = solver.solve(**numbers, warm_start=first, **looks)
    alone = Solver(problem).solve(**numbers, warm_start=first)
    assert result.success
    assert (result.engine, result.iterations) == ("c", alone.iterations)
    for name in ("x", "lam_x", "lam_g"):
        np.testing.assert_array_equal(getattr(result, name), getattr(alone, name))
    rows = np.searchsorted(alone.history.t, result.history.t)  # steps on a set are no iterates
    np.testing.assert_array_equal(result.history.f, alone.history.f[rows])
    assert result.history.t[-1] == result.iterations


def test_threads_change_no_bit() -> None:
    """A membrane between obstacles, whose factorizations take some milliseconds."""
    side = 100
    inner = ca.SX.sym("u", side, side)
    u = ca.SX.zeros(side + 2, side + 2)
    u[1:-1, 1:-1] = inner
    energy = (ca.sumsqr(ca.diff(u, 1, 0)) + ca.sumsqr(ca.diff(u, 1, 1))) / 2
    nlp = {"x": ca.vec(inner), "f": energy - 5 * ca.sum1(ca.vec(u)) / side**2}
    solvers = [Solver(nlp, threads=threads) for threads in (1, 2, 3)]
    one, *others = (solver.solve(0, lbx=-0.1, ubx=0.2) for solver in solvers)
    assert one.success
    for result in others:
        assert result.iterations == one.iterations
        assert result.x.tobytes() == one.x.tobytes()
        assert result.lam_x.tobytes() == one.lam_x.tobytes()
    for solver, several in zip(solvers, (False, True, True), strict=True):
        core = engine_of(solver.problem).cores[0]
        assert core.plan.data.ldl.dealt > 0
        functions = C.hybrid_functions.from_address(core.data.functions)
        assert bool(functions.at_once) == several


@pytest.mark.skipif(os.name == "nt", reason="there is no such signal")
@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("door", ["auto", "gda", "nlpsol"])
@pytest.mark.parametrize("after", [1, 3])
def test_ctrl_c_keeps_best_point(after: int, door: str) -> None:
    """Pressed at an iterate; the next solve is as if nothing had been."""
    x, seen = ca.SX.sym("x", 20), list[Any]()
    terms = 100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2
    nlp = {"x": x, "f": ca.sum1(terms), "g": x[0] + x[1]}
    numbers = {"x0": [-1.2, 1.0] * 10, "lbg": 0, "ubg": 0}

    def press(progress: Any) -> None:
        seen.append(progress)
        if len(seen) == after + 1:
            signal.raise_signal(signal.SIGINT)

    def solve(look: Any) -> Any:
        if door == "nlpsol":
            solver = nlpsol("s", "hybrid", nlp, {"iteration_callback": look})
            return lambda: solver(**numbers) and solver.result
        solver = Solver(Problem.from_nlp(nlp), door)
        return lambda: solver.solve(**numbers, callback=look)

    interrupted = solve(press)
    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted()
    assert isinstance(caught.value, Interrupted)
    result = caught.value.result
    assert result.stop is StopReason.STOPPED_BY_USER
    assert result.iterations <= after
    assert np.isfinite(result.f)
    assert len(seen) == after + 1
    np.testing.assert_array_equal(interrupted().x, solve(lambda _: None)().x)


# --- flat rows and saddles at the start -----------------------------------------------------------


Y = ca.SX.sym("y", 2)
NORM, SADDLE = ca.sumsqr(Y), Y[0] ** 2 - Y[1] ** 2
ROSENBROCK = (1 - Y[0]) ** 2 + 100 * (Y[1] - Y[0] ** 2) ** 2
WELLS = ca.sum1((Y**2 - 1) ** 2) + 0.1 * (Y[0] - Y[1]) ** 2
NEAREST = (Y[0] - 2) ** 2 + (Y[1] - 0.3) ** 2
RING, CIRCLE = {"lbg": 1, "ubg": 4, "lbx": -4, "ubx": 4}, {"lbg": 1, "ubg": 1}
FLAT = {
    # Rows without a slope at the start.
    "tutorial": (ROSENBROCK, NORM, [0, 0], {"ubg": 1}, 0.045675),
    "circle": (NEAREST, NORM, [0, 0], {**CIRCLE, "lbx": -2, "ubx": 3}, (np.hypot(2, 0.3) - 1) ** 2),
    "ring": (Y[0] ** 2 + 0.1 * Y[0] * Y[1] ** 2, NORM, [0, 0], RING, -0.039234),
    "beside ring": (Y[0] ** 2 + 0.1 * Y[0] * Y[1] ** 2, NORM, [4e-16, -7e-16], RING, -0.039234),
    # Objectives without a slope at the start, or without one across it.
    "disc": (Y[0] * Y[1], NORM, [0, 0], {"ubg": 1}, -0.5),
    "quartic": (SADDLE + Y[1] ** 4, ca.SX(0, 1), [0, 0], {}, -0.25),
    "beside": (SADDLE + Y[1] ** 4, ca.SX(0, 1), [1, 0], {}, -0.25),
    "maximum": (ca.cos(Y[0]) + ca.cos(Y[1]), ca.SX(0, 1), [0, 0], {}, -2.0),
    "wells": (WELLS, ca.SX(0, 1), [0, 0], {}, 0.0),
    "small wells": (1e-3 * WELLS, ca.SX(0, 1), [0, 0], {}, 0.0),
    "box": (Y[0] * Y[1] - 0.1 * Y[0] ** 2, ca.SX(0, 1), [0, 0], {"lbx": -1, "ubx": 1}, -1.1),
    "sphere": (Y[0] ** 2 + 3 * Y[1] ** 2, NORM, [0, 1], {**CIRCLE, "lbx": -2}, 1.0),
}
"""Objective, row, start, bounds, and the least value nearby."""


@pytest.mark.parametrize("label", FLAT)
def test_flat_starts_are_left_for_minima(label: str) -> None:
    f, g, x0, bounds, least = FLAT[label]
    made = {"x": Y, "f": f, "g": g}, {"x0": x0, **bounds}
    solver, found = solved(made)
    assert solver.stats()["success"]
    assert solver.stats()["conditions"] in ("NECESSARY", "SUFFICIENT")
    assert found["f"] == pytest.approx(least, abs=1e-6)
    assert_kkt(made, found)


def test_many_flat_rows_are_left() -> None:
    """Beyond the limit of full matrices."""
    x, y = ca.SX.sym("x", 60), ca.SX.sym("y", 60)
    f = ca.sumsqr(x - 1) + ca.sumsqr(y[1:] - y[:-1] - 0.1) + ca.dot(x, y) + y[0]
    made = {"x": ca.vertcat(x, y), "f": f, "g": x**2 + y**2}, {"x0": 0, "ubg": 1}
    solver, found = solved(made)
    assert solver.stats()["success"]
    assert_kkt(made, found)


@pytest.mark.parametrize("f", [Y[0] ** 2 - Y[1] ** 2, Y[0] * Y[1], -ca.sumsqr(Y)])
def test_saddle_without_minimum_is_unbounded(f: ca.SX) -> None:
    result = Solver({"x": Y, "f": f}).solve(0)
    assert result.stop is StopReason.UNBOUNDED
    assert result.f < -1e10


def test_minimum_at_start_is_sufficient() -> None:
    solver = nlpsol("s", "hybrid", {"x": Y, "f": ca.sumsqr(Y - 1)})
    solver(x0=1)
    assert (solver.stats()["iter_count"], solver.stats()["conditions"]) == (0, "SUFFICIENT")
    options = {"hessian_approximation": "limited-memory"}
    secant = nlpsol("s", "hybrid", {"x": Y, "f": NORM}, options)
    secant(x0=[1, 2])
    assert secant.stats()["conditions"] == "UNKNOWN"


# --- units ----------------------------------------------------------------------------------------


def test_gap_of_many_bounds_is_small() -> None:
    """Each product of a multiplier and its distance is below 1e-8 anyway."""
    n = 3000
    x, goal = ca.SX.sym("x", n), np.sin(np.arange(n))
    f = 0.5e-3 * ca.sumsqr(x[1:] - x[:-1]) + 1e-3 * ca.dot(goal, x)
    found = Solver({"x": x, "f": f}).solve(np.zeros(n), lbx=-1, ubx=1)
    distance = np.where(found.lam_x < 0, found.x + 1, 1 - found.x)
    assert found.success
    assert np.abs(found.lam_x) @ distance <= 1e-6 * max(1.0, abs(found.f))


@pytest.mark.parametrize(
    ("f", "bounds"),
    [
        (ca.sumsqr(Y - 3), {}),
        (ca.cos(Y[0]) + ca.cos(Y[1]) + 0.1 * ca.sumsqr(Y), {}),  # no curvature above the tolerance
        (Y[0] * Y[1], {"lbx": -1, "ubx": 1}),
        (Y[0] + Y[1], {"lbx": -1, "ubx": 1}),
    ],
)
def test_small_objective_warns(f: ca.SX, bounds: dict[str, int]) -> None:
    solver = nlpsol("s", "hybrid", {"x": Y, "f": 1e-10 * f})
    with pytest.warns(ScaleWarning, match="gradient of f"):
        solver(x0=[0.3, 0.4], **bounds)
    assert "units" in solver.result.explain()
    nlpsol("s", "hybrid", {"x": Y, "f": f})(x0=[0.3, 0.4], **bounds)  # without a warning
