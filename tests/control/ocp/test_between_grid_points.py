"""Trajectories between the grid points: inner points, and warnings of a solution."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from support.cases.ocps import METHODS, clearance, detour, double_integrator, fastest, stated
from support.judges.refusals import assert_refused

from casadi_hybrid import verify
from casadi_hybrid.control import (
    Collocation,
    Free,
    Integrator,
    Model,
    MultipleShooting,
    Phases,
    RungeKutta,
    refine,
)
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.verify import Rejection


def with_inner(name, inner):
    return replace(METHODS[name], inner=inner)


def limited(method, **options):
    return detour(method, fastest=1.1, **options)


def inside(times, fractions):
    return (times[:-1, None] + np.diff(times)[:, None] * fractions).ravel()


@pytest.mark.parametrize("unroll", [True, False], ids=["unrolled", "mapped"])
@pytest.mark.parametrize("name", METHODS)
def test_inner_points_keep_limits_and_rows(name, unroll):
    coarse, fine = (limited(with_inner(name, inner), unroll=unroll).solve() for inner in (0, 4))
    assert coarse.success
    assert fine.success
    assert fine.program.m == coarse.program.m + 5 * 4 * 3  # two rows of v, one of the clearance
    for at in (coarse.times, inside(coarse.times, np.arange(1, 5) / 5)):
        assert clearance(fine, at).min() > -1e-6
        assert fine.at(at)["v"][0].max() < 1.1 + 1e-6
    every = np.linspace(*coarse.times[[0, -1]], 2001)
    assert clearance(coarse, every).min() < -1e-3
    assert clearance(fine, every).min() > 0.3 * clearance(coarse, every).min()


@pytest.mark.parametrize("method", [Collocation(2), Collocation(2, "legendre")], ids=str)
def test_rows_hold_at_collocation_points(method):
    ocp, grid_alone = limited(method), limited(method)
    grid_alone.constraints[-1] = replace(grid_alone.constraints[-1], at="points")
    solution = ocp.solve()
    points = inside(solution.times, np.array(ca.collocation_points(2, method.points)))
    assert clearance(solution, points).min() > -1e-6
    assert clearance(grid_alone.solve(), points).min() < -1e-3


def test_held_quantities_have_one_row_an_interval():
    ocp = limited(Collocation(3, inner=2))
    u = ocp.model.symbol("u")
    ocp.path("thrust", ca.sumsqr(u), upper=9)
    ocp.path("change", u - ocp.previous("u"), lower=-4, upper=4)
    rows = ocp.program.constraints
    assert {"thrust", "change", "clearance", "clearance inside"} <= set(rows)
    assert not {"thrust inside", "thrust at end", "change inside", "change at end"} & set(rows)
    assert rows["clearance inside"].shape == (1, 5 * 4)


@pytest.mark.parametrize(
    "method", [MultipleShooting(Integrator("idas"), inner=2), Collocation(5, inner=2)], ids=str
)
def test_algebraic_limits_hold_at_inner_points(method):
    model = Model("plant")
    x, z, u = model.state("x"), model.algebraic("z", upper=0.4), model.control("u", upper=2)
    model.rates(x=u - x)
    model.equations(balance=z - x * (1 - x))
    cost = {"end": -x, "integral": 0.01 * u**2}
    solution = stated(model, {"x": 0}, intervals=2, method=method, **cost).solve()
    assert solution.success
    assert len(solution.plot(["z", "x"]).axes) == 2
    inner = solution.at(np.array([1, 2, 4, 5]) / 6)
    assert inner["z"].max() < 0.4 + 1e-6
    assert inner["z"] == pytest.approx(inner["x"] * (1 - inner["x"]), abs=0.02)


@pytest.mark.parametrize("name", ["multiple shooting", "Radau"])
def test_solution_tells_excess_between_points(name):
    solution = limited(with_inner(name, 0)).solve()
    assert solution.success
    every = np.linspace(*solution.times[[0, -1]], 6001)
    below, violation = -clearance(solution, every), solution.violation()
    excess = {part.name: part for part in solution.exceeded}["clearance"]
    assert excess.amount == pytest.approx(below.max(), rel=0.02)
    assert excess.time == pytest.approx(every[below.argmax()], abs=0.05)
    assert (excess.side, excess.unit, excess.limit) == ("lower", "m²", pytest.approx(0.16))
    for text in (str(solution), str(violation)):
        assert f"{excess.amount:.3g} m² below its limit 0.16 m² at {excess.time:.3g} s" in text
    assert "inner=4" in str(solution)
    assert violation["clearance"].max() == pytest.approx(excess.scaled)
    assert violation.by_interval.shape == (5,)
    finer = limited(with_inner(name, 4)).solve()  # its excess lies between inner points
    assert "inner=8" in str(finer)
    worst = -clearance(finer, every).min()
    assert finer.violation(1)["clearance"].max() == pytest.approx(worst, rel=0.05)


def test_solution_within_limits_is_silent():
    solution = limited(MultipleShooting(RungeKutta(2), inner=30), intervals=12).solve()
    assert solution.exceeded == ()
    assert str(solution).count("\n") == 0
    free, *_ = double_integrator()
    free.initial(x=1, v=1)
    assert "no limit" in str(free.solve().violation())


@pytest.mark.parametrize("point_alone", [False, True])
def test_verify_judges_between_grid_points(point_alone):
    ocp = limited(MultipleShooting())
    found = ocp.solve()
    report = verify(ocp, found.x if point_alone else found, ipopt=False)
    assert report.categories == (Rejection.EXCEEDED_BETWEEN,)
    assert str(found.exceeded[0]) in report.reasons[0]
    bounds = {key: value for key, value in ocp.program.arguments.items() if key != "x0"}
    assert verify(ocp.program.nlp, found.x, **bounds, ipopt=False).accepted
    fine = limited(MultipleShooting(inner=40))
    report = verify(fine, fine.solve())
    assert report.accepted
    assert report.reference is not None  # the start is known


def test_verify_names_rows_with_units_and_scales():
    model = Model("cart")
    x, v = model.state("x", unit="m"), model.state("v", upper=3, scale=2.0, unit="m/s")
    u, mass = model.control("u", scale=10.0, unit="N"), model.parameter("mass", 1.0)
    model.rates(x=v, v=u / mass)
    ocp = stated(model, {"x": 0, "v": 0}, {"x": 1, "v": 0}, integral=u**2, intervals=4)
    ocp.path("right", x, lower=-1, unit="m", scale=0.5)
    found = ocp.solve(mass=2.0)
    assert verify(ocp, found, ipopt=False).accepted
    assert not verify(ocp, found.x, ipopt=False).accepted  # at the declared mass
    point = found.x.copy()
    point[ocp.program.variables["x"].where[:]] -= 9.0
    reasons = "\n".join(verify(ocp, point, ipopt=False).reasons)
    assert "right[0] (in 0.5 m) ≥ -2 is violated by 1.60e+01" in reasons
    problem = ocp.to_verify(found).problem
    assert {"final x (in m from 1)", "gap to initial v (in 2 m/s)"} <= {*problem.constraint_names}
    assert {"v[3] (in 2 m/s)", "u[0] (in 10 N)", "x[0] (in m)"} <= {*problem.variable_names}


def test_verify_judges_a_refined_mesh():
    ocp = limited(MultipleShooting())
    fine = refine(ocp, tolerance=1e-4, x0=[0.0, 0.01, 0.0, 0.0])
    assert fine.solution.times.size > ocp.intervals + 1
    report = verify(ocp, fine.solution, ipopt=False)
    assert report.accepted == fine.success
    assert report.f == pytest.approx(fine.solution.objective)
    off = replace(fine.solution, x=fine.solution.x + 1e-3)
    assert not verify(ocp, off, ipopt=False).accepted
    with pytest.raises(InputError, match="not laid out as 'detour'"):
        verify(limited(MultipleShooting(inner=2)), fine.solution)


def test_phases_tell_excess_of_each_part():
    there, back = limited(MultipleShooting()), limited(MultipleShooting())
    back.fixed.clear()
    back.constraints[:] = [c for c in back.constraints if not c.name.startswith("final")]
    joint = Phases({"there": there, "back": back})
    found = joint.solve()
    assert "there: But between the grid points" in str(found)
    reasons = verify(joint, found, ipopt=False).reasons
    assert any(reason.startswith("Between the grid points there/clearance") for reason in reasons)


def test_bad_inner_points_are_refused():
    model = Model("counter")
    model.next(x=0.5 * model.state("x", upper=1))
    discrete = stated(model, end=0, method=MultipleShooting(inner=1))
    assert_refused(
        (lambda: MultipleShooting(inner=-1), "inner must be a whole number, at least 0"),
        (lambda: Collocation(inner=1.5), "inner must be a whole number, at least 0"),
        (lambda: discrete.solve([0.0]), "discrete; there are no inner points"),
    )


@pytest.mark.parametrize("method", [MultipleShooting(inner=3), Collocation(2, inner=3)], ids=str)
def test_free_duration_scales_the_inner_points(method):
    """The least time is 1/0.8 + 0.8; held controls take a little more."""
    cart = double_integrator(v={"upper": 0.8}, u={"lower": -1, "upper": 1})[0].model
    options = {"duration": Free(4.0), "intervals": 5, "method": method}
    solution = fastest(cart, {"x": 0, "v": 0}, {"x": 1, "v": 0}, **options).solve()
    assert 2.05 - 1e-6 < solution.duration < 2.2
    assert solution.sample(20)["v"].max() < 0.8 + 1e-6
