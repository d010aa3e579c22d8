"""Meshes refined until the solution holds between the grid points, held by another integrator."""

from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from casadi_hybrid.control import (
    Collocation,
    Free,
    Model,
    MultipleShooting,
    OptimalControl,
    Solution,
    refine,
)
from casadi_hybrid.utils.errors import InputError


def bead(intervals: int = 6) -> OptimalControl:
    """The brachistochrone, a cycloid: x = r (θ − sin θ), y = r (1 − cos θ), time θ √(r / g)."""
    model = Model("bead")
    model.state("x", guess=0.5)
    model.state("y")
    v = model.state("v", guess=1.0)
    angle = model.control("angle", lower=0, upper=np.pi, linear=True, guess=lambda s: 0.2 + 1.5 * s)
    model.rates(x=v * ca.sin(angle), y=v * ca.cos(angle), v=9.81 * ca.cos(angle))
    ocp = OptimalControl(model, duration=Free(1.0), intervals=intervals, method=Collocation(2))
    ocp.initial(x=0, y=0, v=0)
    ocp.final(x=2, y=1)
    ocp.minimize("time", end=ocp.duration)
    return ocp


def detour(method: Any = None) -> OptimalControl:
    """Past a disc: a path constraint that a coarse mesh cuts between its points."""
    model = Model("detour")
    p, v = model.state("p", 2), model.state("v", 2)
    u = model.control("u", 2, lower=-3, upper=3)
    model.rates(p=v, v=u - 0.3 * v * ca.sqrt(ca.sumsqr(v) + 1e-3))
    ocp = OptimalControl(model, duration=3.0, intervals=8, method=method)
    ocp.initial(p=[0, 0], v=0)
    ocp.final(p=[2, 0], v=0)
    ocp.minimize("effort", integral=ca.sumsqr(u))
    ocp.path("clearance", ca.sumsqr(p - ca.DM([1, 0.1])), lower=0.16)
    ocp.guess(p=lambda s: [2 * s, -0.5 * np.sin(np.pi * s)])
    return ocp


def furthest(solution: Solution, rates: Any, names: list[str]) -> float:
    """Distance from LSODA's motion in every interval, with the controls read from the solution."""
    worst = 0.0
    for k in range(solution.times.size - 1):
        begin, end = solution.times[k], solution.times[k + 1]
        # Strictly inside: at the grid point itself a held control is already the next one.
        t = np.linspace(begin, end, 9)
        t[-1] -= 1e-9 * (end - begin)
        u = solution.at(t[[0, -1]])

        def motion(time: float, y: Any, t: Any = t, u: Any = u) -> Any:
            s, inputs = (time - t[0]) / (t[-1] - t[0]), solution.ocp.model.signals["control"]
            return rates(y, {n: u[n][..., 0] * (1 - s) + u[n][..., 1] * s for n in inputs})

        states = np.vstack([np.atleast_2d(solution.at(t)[name]) for name in names])
        found = solve_ivp(motion, (begin, end), states[:, 0], "LSODA", t, rtol=1e-10, atol=1e-12)
        worst = max(worst, float(abs(found.y - states).max()))
    return worst


def test_a_free_time_is_refined_to_the_error_asked_for() -> None:
    def rates(y: np.ndarray, u: dict[str, Any]) -> list[float]:
        a, v = u["angle"], y[2]
        return [v * np.sin(a), v * np.cos(a), 9.81 * np.cos(a)]

    ocp = bead()
    found = refine(ocp, tolerance=1e-5)
    assert found.success
    assert found.solution.success
    assert "within the tolerance" in found.status
    assert furthest(ocp.solve(), rates, ["x", "y", "v"]) > 1e-4
    assert furthest(found.solution, rates, ["x", "y", "v"]) < 1.05e-5
    sizes = [one.intervals for one in found.rounds]
    assert sizes == sorted(set(sizes))
    assert sizes[0] == 6
    assert found.ocp.intervals == sizes[-1]
    assert found.rounds[-1].error < 1e-5 < found.rounds[0].error
    theta = brentq(lambda a: (a - np.sin(a)) / (1 - np.cos(a)) - 2.0, 0.1, 6.0)
    radius = 1.0 / (1 - np.cos(theta))
    assert found.solution.duration == pytest.approx(theta * np.sqrt(radius / 9.81), rel=1e-5)
    assert ocp.intervals == 6
    assert str(found).count("\n") == len(found.rounds) + 1


@pytest.mark.parametrize("method", [MultipleShooting(), Collocation()], ids=str)
def test_a_path_constraint_is_kept_between_the_grid_points(method: Any) -> None:
    def rates(y: np.ndarray, u: dict[str, Any]) -> np.ndarray:
        v = y[2:]
        return np.concatenate((v, u["u"] - 0.3 * v * np.sqrt(v @ v + 1e-3)))

    def closest(solution: Solution) -> float:
        p = solution.sample(40)["p"]
        return float(((p[0] - 1) ** 2 + (p[1] - 0.1) ** 2).min())

    ocp = detour(method)
    coarse, found = ocp.solve(), refine(ocp, tolerance=2e-5)
    assert closest(coarse) < 0.16 - 1e-4
    assert found.success
    assert closest(found.solution) > 0.16 - 3e-5
    assert furthest(found.solution, rates, ["p", "v"]) < 2.1e-5
    # Refined where it is needed, and not everywhere.
    lengths = np.diff(found.ocp.fractions)
    assert lengths.max() > 3 * lengths.min()


def test_a_refinement_that_cannot_succeed_says_so() -> None:
    few = refine(bead(), tolerance=1e-9, most=40)
    assert not few.success
    assert few.solution.success
    assert few.status.startswith("The tolerance is not met: the next mesh would have")
    short = refine(bead(), tolerance=1e-9, rounds=1)
    assert not short.success
    assert short.status.startswith("The tolerance is not met after 1 rounds. Give more, rounds=")
    ocp = detour()
    ocp.path("impossible", ocp.model.symbol("p")[0], upper=1.5)
    unsolved = refine(ocp, tolerance=1e-3)
    assert not unsolved.success
    assert [one.note for one in unsolved.rounds] == ["not solved"] * 2
    assert "intervals the solver found no solution" in unsolved.status
    # Named are what was stated and cannot be met, with where and by how much.
    assert "In the way: final p[0] is" in unsolved.status
    assert "impossible is" in unsolved.status
    assert "above its limit 1.5 at 3 s" in unsolved.status


def crane(intervals: int, method: Any) -> OptimalControl:
    """A two-link crane in minimum time, its tip around a disc of half a metre."""
    model = Model("two-link crane")
    q = model.state("q", 2, unit="rad")
    w = model.state("w", 2, lower=-3, upper=3, scale=2.0, unit="rad/s")
    torque = model.control("torque", 2, lower=[-60, -25], upper=[60, 25], scale=[50, 20])
    c, s = ca.cos(q[1]), ca.sin(q[1])
    m11, m12, m22 = 10 / 3 + 3 * c + 0.5, 4 / 3 + 1.5 * c, 4 / 3
    first = torque[0] + 1.5 * s * (2 * w[0] * w[1] + w[1] ** 2)
    first -= 9.81 * (2.5 * ca.cos(q[0]) + 1.5 * ca.cos(q[0] + q[1]))
    second = torque[1] - 1.5 * s * w[0] ** 2 - 9.81 * 1.5 * ca.cos(q[0] + q[1])
    determinant = m11 * m22 - m12**2
    rates = [m22 * first - m12 * second, m11 * second - m12 * first]
    model.rates(q=w, w=ca.vertcat(*rates) / determinant)
    tip = ca.vertcat(ca.cos(q[0]) + ca.cos(q[0] + q[1]), ca.sin(q[0]) + ca.sin(q[0] + q[1]))
    duration = Free(1.5, 0.3, 20)
    ocp = OptimalControl(model, duration=duration, intervals=intervals, method=method)
    ocp.initial(q=[0.1, -0.5], w=0)
    ocp.final(q=[2.2, 0.5], w=0)
    ocp.minimize("time", end=ocp.duration)
    ocp.path("tip clear", ca.sumsqr(tip - ca.DM([0.3, 1.7])), lower=0.25, unit="m²")
    return ocp


@pytest.mark.parametrize("method", [MultipleShooting(), Collocation()], ids=str)
def test_a_trajectory_through_an_obstacle_is_not_changed_for_a_slower_one(method: Any) -> None:
    """It jumps the disc from one grid point to the next; on finer meshes it would wait to do so."""
    ocp = crane(10, method)
    coarse, found = ocp.solve(), refine(ocp, tolerance=1e-3)
    assert coarse.success
    assert not found.success
    assert found.solution.objective == coarse.objective
    assert found.ocp.intervals == 10
    assert {one.note for one in found.rounds[1:]} <= {"another trajectory", "not solved"}
    assert "another trajectory" in {one.note for one in found.rounds}
    assert "tip clear is" in found.status
    followed = refine(ocp, tolerance=1e-3, rounds=2, follow=True)
    assert followed.rounds[1].objective > 1.5 * coarse.objective
    assert "another trajectory" not in str(followed)


def test_a_trajectory_around_the_obstacle_is_refined_from_solution_to_solution() -> None:
    ocp = crane(20, Collocation())
    ocp.guess(q=lambda s: [0.1 + 2.1 * s, -0.5 + s + 1.8 * np.sin(np.pi * s)])
    found = refine(ocp, tolerance=1e-3)
    assert found.success
    first, last = found.rounds[0], found.rounds[-1]
    assert last.objective == pytest.approx(first.objective, rel=0.03)
    assert last.iterations < first.iterations / 2  # warm
    cold = found.ocp.solve()
    assert found.solution.iterations < cold.iterations


def test_a_solution_of_another_mesh_is_a_warm_guess_and_that_of_another_problem_is_none() -> None:
    for method in (MultipleShooting(inner=1), Collocation(3)):
        coarse = detour(method)
        fine = coarse.on_mesh(np.linspace(0, 1, 17))
        warm, cold = fine.solve(guess=coarse.solve()), fine.solve()
        assert warm.iterations < cold.iterations
        assert warm.objective == pytest.approx(cold.objective, rel=1e-6)
    for method in (MultipleShooting(inner=3), Collocation(2), Collocation(3, inner=2)):
        other = detour(method).solve(guess=warm)  # where the warning of print(found) leads to
        assert other.success
        assert other.objective == pytest.approx(detour(method).solve().objective, rel=1e-6)
    with pytest.raises(InputError, match="whose states and controls are not those of"):
        bead().solve(guess=warm)


def test_guesses_and_references_go_along_to_another_mesh() -> None:
    model = Model("cart")
    x, v = model.state("x", guess=np.array([[0.0, 2.0, 4.0]])), model.state("v")
    u = model.control("u")
    model.rates(x=v, v=u)
    wind = model.reference("wind", [[1.0, 2.0, 3.0]])
    ocp = OptimalControl(model, duration=1.0, intervals=2)
    target = ocp.reference("target", lambda t: t)
    ocp.initial(x=0, v=0)
    ocp.minimize("all", integral=(x - target) ** 2 + u**2 * wind)
    finer = ocp.on_mesh([0, 0.25, 0.5, 0.75, 1])
    assert finer.intervals == 4
    solution = finer.solve()
    assert solution["wind"].tolist() == [1, 1, 2, 2, 3]
    assert solution["target"].tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert finer.numbers().unpack(finer.numbers().x0)["x"].tolist() == [[0, 1, 2, 3, 4]]
    assert ocp.solve()["wind"].tolist() == [1, 2, 3]
    finer = ocp.on_mesh([0, 0.5, 1])
    finer.minimize("more", end=v**2)
    assert len(ocp.costs) == 1
    # A reference of a solve, given by columns, goes along as well.
    found = refine(ocp, tolerance=1e-6, wind=[[1.0, 5.0, 9.0]])
    assert set(found.solution["wind"]) == {1.0, 5.0, 9.0}


def test_what_counts_an_interval_or_a_point_is_named_where_a_mesh_changes_it() -> None:
    ocp = detour()
    ocp.moves("u", price=1e-4, limit=4.0)
    ocp.minimize("fuel", sum=1e-3 * ca.sumsqr(ocp.model.symbol("u")))
    ocp.path("slow", ocp.model.symbol("v")[0], upper=2.0, soft=1.0)
    assert refine(ocp, tolerance=1e-3).status.endswith("with 8 intervals.")
    with pytest.warns(UserWarning, match=r"point: moves of u \(.*; fuel \(give.*; slow \(price"):
        assert "; fuel (give integral=); slow (price a" in refine(ocp, tolerance=1e-5).status


def test_what_does_not_fit_is_refused() -> None:
    model = Model("counter")
    model.next(x=0.5 * model.state("x"))
    discrete = OptimalControl(model, duration=2, intervals=2)
    for call, words in (
        (lambda: refine(discrete, tolerance=1e-3), "counter is discrete"),
        (lambda: refine(bead(), tolerance=0), "tolerance must be a positive number"),
        (lambda: refine(bead(), tolerance=1e-3, most=0), "most must be a whole number, at least 1"),
        (
            lambda: refine(bead(), tolerance=1e-3, rounds=0),
            "rounds must be a whole number, at least 1",
        ),
        (lambda: refine("ocp", tolerance=1e-3), "ocp must be an OptimalControl, got str"),
        (lambda: bead().on_mesh([0, 0.5]), "increasing numbers from 0 to 1"),
    ):
        with pytest.raises(InputError, match=words):
            call()
