"""What happens between the grid points: inner points, and what a solution says by itself."""

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import verify
from casadi_hybrid.control import (
    Collocation,
    Free,
    Integrator,
    Model,
    MultipleShooting,
    OptimalControl,
    Phases,
    RungeKutta,
    SingleShooting,
    Solution,
    refine,
)
from casadi_hybrid.control.solution import checking
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.verify import Rejection

RADIUS = 0.4
MAKE: dict[str, Any] = {
    "shooting": lambda inner: MultipleShooting(inner=inner),
    "shooting, three steps": lambda inner: MultipleShooting(RungeKutta(3), inner=inner),
    "single shooting": lambda inner: SingleShooting(inner=inner),
    "cvodes": lambda inner: MultipleShooting(Integrator(), inner=inner),
    "Radau": lambda inner: Collocation(2, inner=inner),
    "Radau of degree 1": lambda inner: Collocation(1, inner=inner),
    "Legendre": lambda inner: Collocation(2, "legendre", inner=inner),
}


def detour(method: Any, intervals: int = 5, **options: Any) -> OptimalControl:
    """A point mass past a disc; the speed along x is limited."""
    model = Model("detour")
    p, v = model.state("p", 2, unit="m"), model.state("v", 2, upper=[1.1, 9], unit="m/s")
    u = model.control("u", 2, lower=-3, upper=3, unit="m/s²")
    model.rates(p=v, v=u)
    ocp = OptimalControl(model, duration=3.0, intervals=intervals, method=method, **options)
    ocp.initial(p=[0, 0], v=0)
    ocp.final(p=[2, 0], v=0)
    ocp.minimize("effort", integral=ca.sumsqr(u))
    away = ca.sumsqr(p - ca.DM([1, 0.1]))
    ocp.path("clearance", away, lower=RADIUS**2, unit="m²")
    ocp.guess(p=lambda s: [2 * s, -0.5 * np.sin(np.pi * s)])
    return ocp


def room(solution: Solution, times: Any) -> np.ndarray:
    """By how much the clearance is kept, at times."""
    p = solution.at(times)["p"]
    return np.asarray((p[0] - 1) ** 2 + (p[1] - 0.1) ** 2 - RADIUS**2)


@pytest.mark.parametrize("unroll", [True, False], ids=["unrolled", "mapped"])
@pytest.mark.parametrize("name", MAKE)
def test_inner_points_keep_limits_and_path_constraints_where_grid_points_do_not(name, unroll):
    coarse, fine = (detour(MAKE[name](inner), unroll=unroll).solve() for inner in (0, 4))
    assert coarse.success
    assert fine.success
    assert fine.program.m == coarse.program.m + 5 * 4 * 3  # two rows of v, one of the clearance
    t = coarse.times
    inner = (t[:-1, None] + np.diff(t)[:, None] * np.arange(1, 5) / 5).ravel()
    for at in (t, inner):
        assert room(fine, at).min() > -1e-6
        assert fine.at(at)["v"][0].max() < 1.1 + 1e-6
    every = np.linspace(*t[[0, -1]], 2001)
    assert room(coarse, every).min() < -1e-3
    assert room(fine, every).min() > 0.3 * room(coarse, every).min()


@pytest.mark.parametrize("method", [Collocation(2), Collocation(2, "legendre")], ids=str)
def test_path_constraints_hold_where_declared_limits_do(method: Any) -> None:
    """At the points of a collocation, as the unknowns of the states there."""
    solution = detour(method).solve()
    taus = np.array(ca.collocation_points(2, method.points))
    t = solution.times
    points = (t[:-1, None] + np.diff(t)[:, None] * taus).ravel()
    assert room(solution, points).min() > -1e-6
    grid_alone = detour(method)
    grid_alone.constraints[-1] = type(grid_alone.constraints[-1])(
        **{**vars(grid_alone.constraints[-1]), "at": "points"}
    )
    assert room(grid_alone.solve(), points).min() < -1e-3


def test_what_does_not_move_within_an_interval_has_one_row_for_it() -> None:
    ocp = detour(Collocation(3, inner=2))
    u = ocp.model.symbol("u")
    ocp.path("thrust", ca.sumsqr(u), upper=9)
    ocp.path("change", u - ocp.previous("u"), lower=-4, upper=4)
    names = ocp.program.constraints
    assert {"thrust", "change", "clearance", "clearance inside"} <= set(names)
    assert not {"thrust inside", "thrust at end", "change inside", "change at end"} & set(names)
    assert names["clearance inside"].shape == (1, 5 * 4)


def test_limits_of_algebraic_states_hold_at_inner_points() -> None:
    for method in (MultipleShooting(Integrator("idas"), inner=2), Collocation(5, inner=2)):
        model = Model("plant")
        x, z, u = model.state("x"), model.algebraic("z", upper=0.4), model.control("u", upper=2)
        model.rates(x=u - x)
        model.equations(balance=z - x * (1 - x))
        ocp = OptimalControl(model, duration=1.0, intervals=2, method=method)
        ocp.initial(x=0)
        ocp.minimize("end", end=-x, integral=0.01 * u**2)
        solution = ocp.solve()
        assert solution.success
        assert len(solution.plot(["z", "x"]).axes) == 2
        inner = solution.at(np.array([1, 2, 4, 5]) / 6)
        assert inner["z"].max() < 0.4 + 1e-6
        assert inner["z"] == pytest.approx(inner["x"] * (1 - inner["x"]), abs=0.02)


@pytest.mark.parametrize("name", ["shooting", "Radau"])
def test_a_solution_says_what_is_exceeded_between_grid_points_by_how_much_and_when(name):
    solution = detour(MAKE[name](0)).solve()
    assert solution.success
    every = np.linspace(*solution.times[[0, -1]], 6001)
    below = -room(solution, every)
    excess = {one.name: one for one in solution.exceeded}["clearance"]
    assert excess.amount == pytest.approx(below.max(), rel=0.02)
    assert excess.time == pytest.approx(every[below.argmax()], abs=0.05)
    assert (excess.side, excess.unit, excess.limit) == ("lower", "m²", pytest.approx(0.16))
    text = str(solution)
    said = f"clearance is {excess.amount:.3g} m² below its limit 0.16 m² at {excess.time:.3g} s"
    assert f"But between the grid points {said}" in text
    assert "inner=4" in text
    assert "inner=8" in checking.warning(
        solution.exceeded, MAKE[name](4).finer()
    )  # more than there are
    assert str(solution.violation()).endswith(f"{excess.scaled:.2g} of the scale: {said}")
    assert solution.violation()["clearance"].max() == pytest.approx(excess.scaled)
    assert solution.violation().by_interval.shape == (5,)
    finer = detour(MAKE[name](4)).solve()  # what is exceeded there lies between inner points
    worst = finer.violation(1)["clearance"].max()
    assert worst == pytest.approx(-room(finer, every).min(), rel=0.05)


def test_a_solution_within_its_limits_is_silent_and_one_line_says_the_error() -> None:
    solution = detour(MultipleShooting(RungeKutta(2), inner=30), intervals=12).solve()
    assert solution.exceeded == ()
    assert str(solution).count("\n") == 0
    model = Model("free")
    x = model.state("x", unit="m")
    model.rates(x=-3 * x + model.control("u"))
    ocp = OptimalControl(model, duration=2.0, intervals=2)
    ocp.initial(x=1)
    error = ocp.solve().error()
    assert str(ocp.solve().violation()) == "no limit is exceeded between the grid points"
    k = int(error["x"].argmax())
    assert str(error) == (
        f"largest error {error.largest:.2g} of the scale: x by {error['x'].max():.3g} m, "
        f"from {k} s to {k + 1} s"
    )


@pytest.mark.parametrize("kind", ["shooting", "Radau", "Legendre"])
def test_a_limit_that_acts_between_grid_points_is_ringed_there(kind: str) -> None:
    found = detour(MAKE[kind](2)).solve()
    rings = [li for li in found.plot(["clearance"]).axes[0].get_lines() if li.get_marker() == "o"]
    times = np.concatenate([li.get_xdata() for li in rings])
    active = found.active()
    acting = sum(active[name].sum() for name in active if name.startswith("clearance"))
    times = times[np.isfinite(times)]
    assert times.size == acting > active["clearance"].sum()
    assert room(found, times) == pytest.approx(np.zeros(times.size), abs=1e-5)


@pytest.mark.parametrize("unit_less", [False, True])
def test_a_verifier_judges_the_trajectory_between_grid_points_too(unit_less: bool) -> None:
    ocp = detour(MultipleShooting())
    found = ocp.solve()
    report = verify(ocp, found.x if unit_less else found, ipopt=False)
    assert report.categories == (Rejection.EXCEEDED_BETWEEN,)
    assert report.reasons == (f"Between the grid points {found.exceeded[0]}.",)
    bounds = {key: value for key, value in ocp.program.arguments.items() if key != "x0"}
    assert verify(ocp.program.nlp, found.x, **bounds, ipopt=False).accepted
    kept = detour(MultipleShooting(inner=40))
    report = verify(kept, kept.solve())
    assert report.accepted
    assert report.reference is not None  # the start is known


def test_a_verifier_names_rows_with_units_and_scales_and_takes_the_numbers_of_the_solve() -> None:
    model = Model("cart")
    x, v = model.state("x", unit="m"), model.state("v", upper=3, scale=2.0, unit="m/s")
    mass = model.parameter("mass", 1.0)
    model.rates(x=v, v=model.control("u", scale=10.0, unit="N") / mass)
    ocp = OptimalControl(model, duration=1.0, intervals=4)
    ocp.initial(x=0, v=0)
    ocp.final(x=1, v=0)
    ocp.path("right", x, lower=-1, unit="m", scale=0.5)
    ocp.minimize("effort", integral=model.symbol("u") ** 2)
    found = ocp.solve(mass=2.0)
    assert verify(ocp, found, ipopt=False).accepted
    at_first = verify(ocp, found.x, ipopt=False)  # numbers of the declarations: another mass
    assert not at_first.accepted
    point = found.x.copy()
    point[ocp.program.variables["x"].where[:]] -= 9.0
    report = verify(ocp, point, ipopt=False)
    assert "right[0] (in 0.5 m) ≥ -2 is violated by 1.60e+01, above 1e-06." in report.reasons
    problem = ocp.to_verify(found).problem
    assert {"final x (in m from 1)", "gap to initial v (in 2 m/s)"} <= {*problem.constraint_names}
    assert {"v[3] (in 2 m/s)", "u[0] (in 10 N)", "x[0] (in m)"} <= {*problem.variable_names}


def test_a_verifier_judges_a_refined_solution_on_its_own_mesh() -> None:
    ocp = detour(MultipleShooting())
    fine = refine(ocp, tolerance=1e-4, x0=[0.0, 0.01, 0.0, 0.0])
    assert fine.solution.times.size > ocp.intervals + 1
    report = verify(ocp, fine.solution, ipopt=False)
    assert report.accepted == fine.success
    assert report.f == pytest.approx(fine.solution.objective)
    off = replace(fine.solution, x=fine.solution.x + 1e-3)
    assert not verify(ocp, off, ipopt=False).accepted
    with pytest.raises(InputError, match="not laid out as 'detour': other"):
        verify(detour(MultipleShooting(inner=2)), fine.solution)


def test_phases_say_it_of_each_part() -> None:
    there, back = detour(MultipleShooting()), detour(MultipleShooting())
    back.fixed.clear()
    back.constraints[:] = [c for c in back.constraints if not c.name.startswith("final")]
    joint = Phases({"there": there, "back": back})
    found = joint.solve()
    assert "there: But between the grid points" in str(found)
    reasons = verify(joint, found, ipopt=False).reasons
    assert any(reason.startswith("Between the grid points there/clearance") for reason in reasons)


def test_what_is_refused() -> None:
    for method in (MultipleShooting, Collocation):
        for inner in (-1, 1.5, True):
            with pytest.raises(InputError, match="inner must be a whole number, at least 0"):
                method(inner=inner)
    model = Model("counter")
    model.next(x=0.5 * model.state("x", upper=1))
    with pytest.raises(InputError, match="discrete; there are no inner points"):
        OptimalControl(model, duration=2, intervals=2, method=MultipleShooting(inner=1)).solve()


def test_a_free_duration_scales_the_inner_points() -> None:
    model = Model("cart")
    model.state("x")
    v = model.state("v", upper=0.8)
    model.rates(x=v, v=model.control("u", lower=-1, upper=1))
    for method in (MultipleShooting(inner=3), Collocation(2, inner=3)):
        ocp = OptimalControl(model, duration=Free(4.0), intervals=5, method=method)
        ocp.initial(x=0, v=0)
        ocp.final(x=1, v=0)
        ocp.minimize("time", end=ocp.duration)
        solution = ocp.solve()
        # With |u| ≤ 1 and v ≤ 0.8 the least time is 1/0.8 + 0.8; held controls take a little more.
        assert 2.05 - 1e-6 < solution.duration < 2.2
        assert solution.sample(20)["v"].max() < 0.8 + 1e-6
