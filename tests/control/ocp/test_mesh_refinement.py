"""Meshes refined until the solution holds between the grid points, held by another integrator."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from support.cases.ocps import WITH_STATES, clearance, detour, double_integrator, fastest
from support.judges.refusals import assert_refused

from casadi_hybrid.control import Collocation, Free, Model, MultipleShooting, OptimalControl, refine
from casadi_hybrid.utils.errors import InputError


def bead():
    """The brachistochrone, a cycloid: x = r (θ − sin θ), y = r (1 − cos θ), time θ √(r / g)."""
    model = Model("bead")
    model.state("x", guess=0.5)
    model.state("y")
    v = model.state("v", guess=1.0)
    angle = model.control("angle", lower=0, upper=np.pi, linear=True, guess=lambda s: 0.2 + 1.5 * s)
    model.rates(x=v * ca.sin(angle), y=v * ca.cos(angle), v=9.81 * ca.cos(angle))
    options = {"duration": Free(1.0), "intervals": 6, "method": Collocation(2)}
    return fastest(model, {"x": 0, "y": 0, "v": 0}, {"x": 2, "y": 1}, **options)


def around(method=None):
    return detour(method, intervals=8, drag=0.3)


def furthest(solution, rates):
    """Distance from LSODA's motion in every interval, under the held controls."""
    worst = 0.0
    for k, span in enumerate(np.column_stack((solution.times[:-1], solution.times[1:]))):
        u, t = solution["u"][:, k], np.linspace(*span, 9)
        begin, options = solution.states[:, k], {"t_eval": t, "rtol": 1e-10, "atol": 1e-12}
        motion = solve_ivp(lambda _, y, u=u: rates(y, u), span, begin, "LSODA", **options)
        states = np.vstack([solution.at(t)[name] for name in ("p", "v")])
        worst = max(worst, float(abs(motion.y - states).max()))
    return worst


def test_free_time_is_refined_to_the_tolerance():
    ocp = bead()
    found = refine(ocp, tolerance=1e-5)
    assert found.success
    assert found.solution.success
    assert found.solution.error().largest < 1.05e-5
    sizes = [row.intervals for row in found.rounds]
    assert sizes == sorted(set(sizes))
    assert (sizes[0], ocp.intervals, found.ocp.intervals) == (6, 6, sizes[-1])
    assert found.rounds[-1].error < 1e-5 < found.rounds[0].error
    theta = brentq(lambda a: (a - np.sin(a)) / (1 - np.cos(a)) - 2.0, 0.1, 6.0)
    radius = 1.0 / (1 - np.cos(theta))
    assert found.solution.duration == pytest.approx(theta * np.sqrt(radius / 9.81), rel=1e-5)
    assert str(found).count("\n") == len(found.rounds) + 1


@pytest.mark.parametrize("method", WITH_STATES, ids=str)
def test_rows_are_kept_between_refined_points(method):
    def rates(y, u):
        v = y[2:]
        return np.concatenate((v, u - 0.3 * v * np.sqrt(v @ v + 1e-3)))

    ocp = around(method)
    coarse, found = ocp.solve(), refine(ocp, tolerance=2e-5)
    assert found.rounds[-1].iterations < found.rounds[0].iterations  # begun warm
    assert found.solution.iterations < found.ocp.solve().iterations
    assert clearance(coarse, coarse.sample(40).times).min() < -1e-4
    assert found.success
    assert clearance(found.solution, found.solution.sample(40).times).min() > -3e-5
    assert furthest(found.solution, rates) < 2.1e-5
    # Refined where it is needed, and not everywhere.
    lengths = np.diff(found.ocp.fractions)
    assert lengths.max() > 3 * lengths.min()


def test_failed_refinement_has_a_status():
    few = refine(bead(), tolerance=1e-9, most=40)
    assert not few.success
    assert few.solution.success
    assert "The tolerance is not met" in few.status
    short = refine(bead(), tolerance=1e-9, rounds=1)
    assert (short.success, "rounds=" in short.status) == (False, True)
    ocp = around()
    ocp.path("impossible", ocp.model.symbol("p")[0], upper=1.5)
    unsolved = refine(ocp, tolerance=1e-3)
    assert not unsolved.success
    assert [row.note for row in unsolved.rounds] == ["not solved"] * 2
    for name in ("final p[0]", "impossible", "above its limit 1.5 at 3 s"):
        assert name in unsolved.status


def crane(method):
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
    options = {"duration": Free(1.5, 0.3, 20), "intervals": 10, "method": method}
    ocp = fastest(model, {"q": [0.1, -0.5], "w": 0}, {"q": [2.2, 0.5], "w": 0}, **options)
    ocp.path("tip clear", ca.sumsqr(tip - ca.DM([0.3, 1.7])), lower=0.25, unit="m²")
    return ocp


@pytest.mark.parametrize("method", WITH_STATES, ids=str)
def test_slower_trajectory_is_not_taken(method):
    """The tip jumps the disc between two grid points; on finer meshes it would wait to do so."""
    ocp = crane(method)
    coarse, found = ocp.solve(), refine(ocp, tolerance=1e-3)
    assert coarse.success
    assert not found.success
    assert found.solution.objective == coarse.objective
    assert found.ocp.intervals == 10
    notes = {row.note for row in found.rounds[1:]}
    assert {"another trajectory"} <= notes <= {"another trajectory", "not solved"}
    assert "tip clear is" in found.status
    followed = refine(ocp, tolerance=1e-3, rounds=2, follow=True)
    assert followed.rounds[1].objective > 1.5 * coarse.objective
    assert "another trajectory" not in str(followed)


def test_solution_of_another_mesh_is_a_guess():
    for method in (MultipleShooting(inner=1), Collocation(3)):
        coarse = around(method)
        fine = coarse.on_mesh(np.linspace(0, 1, 17))
        warm, cold = fine.solve(guess=coarse.solve()), fine.solve()
        assert warm.iterations < cold.iterations
        assert warm.objective == pytest.approx(cold.objective, rel=1e-6)
    for method in (MultipleShooting(inner=3), Collocation(2), Collocation(3, inner=2)):
        other = around(method).solve(guess=warm)  # as print(solution) advises
        assert other.success
        assert other.objective == pytest.approx(around(method).solve().objective, rel=1e-6)
    with pytest.raises(InputError, match="whose states and controls are not those of"):
        bead().solve(guess=warm)


def test_guesses_and_references_move_to_another_mesh():
    ocp, x, v, u = double_integrator(x={"guess": np.array([[0.0, 2.0, 4.0]])}, intervals=2)
    wind = ocp.model.reference("wind", [[1.0, 2.0, 3.0]])
    target = ocp.reference("target", lambda t: t)
    ocp.initial(x=0, v=0)
    ocp.minimize("all", integral=(x - target) ** 2 + u**2 * wind)
    finer = ocp.on_mesh([0, 0.25, 0.5, 0.75, 1])
    program, solution = finer.numbers(), finer.solve()
    assert program.unpack(program.x0)["x"].tolist() == [[0, 1, 2, 3, 4]]
    assert solution["wind"].tolist() == [1, 1, 2, 2, 3]
    assert solution["target"].tolist() == [0, 0.25, 0.5, 0.75, 1]
    ocp.on_mesh([0, 0.5, 1]).minimize("more", end=v**2)
    assert (ocp.solve()["wind"].tolist(), len(ocp.costs)) == ([1, 2, 3], 1)
    # A reference of a solve, given by columns, goes along as well.
    found = refine(ocp, tolerance=1e-6, wind=[[1.0, 5.0, 9.0]])
    assert set(found.solution["wind"]) == {1.0, 5.0, 9.0}


def test_mesh_dependent_costs_are_named():
    ocp = around()
    ocp.moves("u", price=1e-4, limit=4.0)
    ocp.minimize("fuel", sum=1e-3 * ca.sumsqr(ocp.model.symbol("u")))
    ocp.path("slow", ocp.model.symbol("v")[0], upper=2.0, soft=1.0)
    assert "fuel" not in refine(ocp, tolerance=1e-3).status  # on the mesh as it is
    with pytest.warns(UserWarning, match="moves of u .*fuel .*slow"):
        assert "fuel" in refine(ocp, tolerance=1e-5).status


def test_bad_refinements_are_refused():
    model = Model("counter")
    model.next(x=0.5 * model.state("x"))
    discrete, ocp = OptimalControl(model, duration=2, intervals=2), bead()
    assert_refused(
        (lambda: refine(discrete, tolerance=1e-3), "counter is discrete"),
        (lambda: refine(ocp, tolerance=0), "tolerance must be a positive number"),
        (lambda: refine(ocp, tolerance=1e-3, most=0), "most must be a whole number, at least 1"),
        (lambda: refine("ocp", tolerance=1e-3), "ocp must be an OptimalControl, got str"),
        (lambda: ocp.on_mesh([0, 0.5]), "increasing numbers from 0 to 1"),
    )
