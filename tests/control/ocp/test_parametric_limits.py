"""Limits that change between solves without a new program; limits and prices of changes."""

import numpy as np
import pytest
from support.cases.ocps import EVERY_METHOD, WITH_STATES, double_integrator, stated
from support.judges.refusals import assert_refused

from casadi_hybrid import InputError
from casadi_hybrid.control import (
    MHE,
    MPC,
    Model,
    MultipleShooting,
    Plant,
    Run,
    Scenarios,
    Soft,
    Solution,
    simulate,
)


def cart(method=None, fixed=True):
    """A cart to be brought to zero, fast: its limits decide, parameters of the model or fixed."""
    model = Model("cart")
    fastest, strength = model.parameter("fastest", 1.0), model.parameter("strength", [3.0])
    least, most = (-fastest, fastest) if fixed else (-1, 1)
    x, v = model.state("x"), model.state("v", lower=least, upper=most)
    u = model.control("force", lower=-3, upper=2 * strength if fixed else 6)
    model.rates(x=v, v=u)
    cost = {"integral": 100 * x**2 + 1e-3 * u**2, "end": 100 * x**2 + v**2}
    ocp = stated(model, duration=2.0, method=method, **cost)
    ocp.path("room", x + 0.1 * v, lower=-0.05, upper=9)
    return ocp


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_limit_follows_its_parameter(method):
    ocp = cart(method)
    program = ocp.program
    for fastest in (1.0, 0.4, 0.7):
        found = ocp.solve([1.0, 0.0], fastest=fastest)
        assert found.success
        assert found["v"].min() == pytest.approx(-fastest, abs=1e-5)
        assert found.ocp.model.signals["state"]["v"].lower == -fastest  # as the solution is judged
    assert ocp.program is program
    weak = ocp.solve([-0.04, -0.5], strength=0.5)
    assert weak["force"].max() == pytest.approx(1.0, abs=1e-5)


def test_soft_and_scenario_limits_follow_parameters():
    ocp = cart()
    ocp.soften("v", 1e4)
    ocp.path("slow", ocp.model.symbol("v"), lower=-ocp.parameter("slowest", 1.0))
    assert ocp.solve([1.0, 0.0], slowest=0.3)["v"].min() == pytest.approx(-0.3, abs=1e-6)
    both = Scenarios(cart(), {"0.4": {"fastest": 0.4}, "0.8": {"fastest": 0.8}}, shared=1)
    found = both.solve([1.0, 0.0])
    for fastest in (0.4, 0.8):
        for solution in (found[str(fastest)], ocp.solve([1.0, 0.0], fastest=fastest)):
            assert solution["v"].min() == pytest.approx(-fastest, abs=1e-4)


def assert_slopes(solve, name, at):
    more, less, slope = solve(at + 1e-4), solve(at - 1e-4), solve(at).sensitivity(name)
    difference = (more["v"] - less["v"]) / 2e-4
    assert slope.objective == pytest.approx((more.objective - less.objective) / 2e-4, rel=1e-3)
    np.testing.assert_allclose(slope["v"], difference, atol=1e-2 * np.abs(difference).max())


def test_shared_controls_keep_the_tightest_limit():
    both = Scenarios(cart(), {"strong": {}, "weak": {"strength": 0.5}}, shared=3)
    found = both.solve([0.5, -0.8])
    np.testing.assert_allclose([found[name]["force"][1:3] for name in both.parts], 1.0, atol=1e-5)

    def weak(strength):
        return both.solve([0.5, -0.8], weak={"strength": strength})["weak"]

    assert_slopes(weak, "strength", 0.5)
    step = MPC(both, default=0).step([0.3, -0.8], weak={"strength": 0.45})
    assert step["force"] == pytest.approx(0.9, abs=1e-5)
    with pytest.raises(InputError, match="lower of 'weak/force' is -3, above its upper, -4"):
        weak(-2.0)


@pytest.mark.parametrize("method", [*EVERY_METHOD, MultipleShooting(inner=2)], ids=str)
def test_slopes_include_parametric_limits(method, tmp_path):
    ocp = cart(method)

    def loaded(fastest):
        return Solution.load(ocp.solve([1.0, 0.0], fastest=fastest).save(tmp_path / "x"), ocp)

    assert_slopes(loaded, "fastest", 0.5)
    plant = Plant(ocp.model, 0.1, parameters={"strength": lambda t: 0.5 - t})
    run = simulate(plant, lambda time, x: 0.9, steps=2, x0=[0, 0])
    np.testing.assert_allclose(run.limits["force"].upper[0], [1.0, 0.8, 0.6])


def test_bad_limits_and_moves_are_refused():
    model = Model("m")
    other, goal = Model("other").parameter("p"), model.reference("goal")
    plain, *_ = double_integrator()
    assert_refused(
        (lambda: model.state("v", upper=other), "'p'"),
        (lambda: model.state("v", upper=goal), "goal"),
        (lambda: cart().solve([1.0, 0.0], fastest=-1.0), "above its upper"),
        (lambda: cart().free("fastest"), "'fastest' is in a limit of the model"),
        (moving, r"moves\('v'\) does nothing"),
        (lambda: moving(-1.0), "price of moves of v must be positive, got -1.0"),
        (lambda: moving(limit=[1, 2, 3]), "limit of moves of v has 3 entries"),
        (lambda: moving(limit=1.0, linear=True), "'v' runs linearly"),
        (lambda: plain.previous("z"), "there is no control 'z'"),
    )
    step = MPC(cart(), default=0).step([1.0, 0.0], fastest=-1.0)
    assert (step.status, step["force"]) == ("default", 0.0)
    assert "above its upper" in step.reason


def test_estimator_hears_parameters_of_the_loop():
    ocp = cart()
    mhe = MHE(ocp.model, 0.1, noise=1e-3, prior=1.0, process=0.1)
    plant, known = Plant(ocp.model, 0.1), {"fastest": 3.0}
    run = simulate(plant, lambda t, x, **_: 2.0, mhe, steps=12, x0=[0, 0], parameters=known)
    assert run.estimates["v"][-1] > 1.5


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_controller_changes_limits_by_name(method):
    ocp = cart(method, fixed=False)
    mpc, program = MPC(ocp), ocp.program
    for limit in (1.0, 0.3, 0.6):
        mpc.limits(v=(-limit, limit))
        step = mpc.step([1.0, 0.0], time=0.0)
        assert step.status == "solved"
        assert step.plan["v"].min() == pytest.approx(-limit, abs=1e-5)
    mpc.limits(v=None, force=(-1.5, None))
    assert mpc.step([1.0, 0.0], time=0.0)["force"] == pytest.approx(-1.5, abs=1e-5)
    mpc.reset()  # what a simulation begins with leaves the limits
    assert mpc.step([1.0, 0.0])["force"] == pytest.approx(-1.5, abs=1e-5)
    mpc.limits({"force": None, "room": (0.5, 9)})
    plan = mpc.step([1.0, 0.0], time=0.0).plan
    assert (plan["x"] + 0.1 * plan["v"]).min() == pytest.approx(0.5, abs=1e-5)
    # Between the points where it holds, and of the new limit.
    assert 1e-4 < plan.violation()["room"].max() < 0.1
    assert ocp.program is program


def test_changed_limits_hold_in_all_scenarios():
    mpc = MPC(Scenarios(cart(fixed=False), {"one": {}, "other": {"strength": 2.0}}))
    mpc.limits(v=(-0.3, 0.3), force=(-1, 1))
    step = mpc.step([1.0, 0.0])
    assert (step.status, step["force"]) == ("solved", pytest.approx(-1, abs=1e-5))
    speeds = [part["v"].min() for part in step.plan.parts.values()]
    assert speeds == pytest.approx([-0.3, -0.3], abs=1e-5)


def test_changed_limits_are_softened_and_applied():
    mpc = MPC(cart(fixed=False))
    mpc.limits(v=(-0.2, 0.2))
    step = mpc.step([1.0, -0.6])
    assert step.status == "softened"
    assert step.violated["v"] == pytest.approx(0.4, abs=1e-3)
    assert mpc.step([np.nan, 0.0]).status == "last plan"
    mpc.limits(force=(-3, 0.01))
    assert mpc.step([np.nan, 0.0])["force"] <= 0.01
    model = Model("two")  # the penalty counts in the scale of each entry
    model.state("x", 2, upper=[1e3, 1], scale=[1e3, 1])
    model.rates(x=model.control("u", 2, scale=[1e3, 1]))
    mpc = MPC(stated(model, end=0), soften=Soft(1.0, most=0.5))
    assert mpc.step([1100.0, 0.2]).status == "softened"


@pytest.mark.parametrize("delay", [0, 1])
def test_run_judges_rows_and_changing_limits(delay, tmp_path):
    ocp = cart(fixed=False)
    ocp.free("strength", guess=3.0)
    x = ocp.model.symbol("x")
    ocp.path("felt", x * ocp.model.symbol("strength"), upper=50, soft=1.0)
    ocp.moves("force", limit=[3.0])
    ocp.path("close", x - ocp.reference("goal"), upper=99)
    mpc = MPC(ocp, delay=delay)

    def slower(time):
        mpc.limits(v=(-0.4, 0.4) if time > 0.5 else None)
        return {"goal": lambda t: 2 * t}

    plant = Plant(cart(fixed=False).model, 0.2)  # the same names
    push = {5: {"v": 1.0}, 7: {"x": 10.0}}
    options = {"parameters": slower, "delay": delay, "limits": {"force": (None, None)}}
    run = simulate(plant, mpc, steps=8, x0=[1, 0], push=push, **options)
    room, again = run["x"] + 0.1 * run["v"], Run.load(run.save(tmp_path / "run"))
    np.testing.assert_allclose(run["room"], room)
    np.testing.assert_allclose(run["close"], run["x"] - 2 * run.times)
    np.testing.assert_allclose(run["goal"], 2 * run.times)
    outside = np.maximum(np.maximum(room - 9, -0.05 - room), 0)
    np.testing.assert_allclose(run.violations["room"], outside)
    np.testing.assert_allclose(run["moves of force"][:8], np.diff(run["force"], prepend=0.0))
    assert run.limits["v"].upper.tolist() == [3 * [1.0] + 6 * [0.4]]
    assert run.violations["v"][5] == pytest.approx(run["v"][5] - 0.4)
    assert f"{outside.max():.3g} of the scale: room is" in str(again)
    assert str(again).endswith("felt")  # which is not checked, as the record does not determine it


def test_bad_limits_change_nothing():
    ocp = cart(fixed=False)
    ocp.path("cap", ocp.model.symbol("x"), upper=ocp.parameter("top", 9.0))
    mpc = MPC(ocp)
    assert_refused(
        ({"w": (0, 1)}, "no state, control or constraint 'w'"),
        ({"v": 1.0}, r"limits of 'v' must be a pair \(lower, upper\), got 1.0"),
        ({"v": (2, 1)}, "lower of 'v' is 2, above its upper, 1"),
        ({"x": (None, 1)}, "'x' was declared without upper="),
        ({"cap": (None, 1)}, "the limit of 'cap' is an expression"),
        by=lambda **bad: mpc.limits({"force": (-1, 1), **bad}),
    )
    assert mpc.step([1.0, 0.0])["force"] == pytest.approx(-3, abs=1e-4)


def moving(price=None, limit=None, method=None, **control):
    model = Model("tank")
    y, guess = model.state("y"), [0.3, 0.0]
    v = model.control("v", 2, lower=-5, upper=5, guess=guess, scale=2.0, unit="m3/s", **control)
    model.rates(y=-y + v[0] + 0.5 * v[1])
    cost = (y - 1) ** 2 + 1e-2 * v[1] ** 2
    ocp = stated(model, sum=cost, intervals=5, method=method)
    ocp.moves("v", price=price, limit=limit)
    return ocp


@pytest.mark.parametrize("method", WITH_STATES)
def test_moves_have_a_price_and_a_limit(method):
    found = moving(price=[0.1, 0.3], limit=[0.2, 0.1], method=method).solve([0.0])
    steps = np.diff(np.hstack(([[0.3], [0.0]], found["v"])), axis=1)
    assert found.costs["moves of v"] == pytest.approx(
        0.1 * steps[0] @ steps[0] + 0.3 * steps[1] @ steps[1]
    )
    assert np.abs(steps[0]).max() == pytest.approx(0.2, abs=1e-6)
    assert np.abs(steps[1]).max() <= 0.1 + 1e-6
    assert found.program.constraints["moves of v"].shape == (2, 5)  # a row an interval, no more
    assert found.ocp.constraints[0].unit == "m3/s"


def test_moves_count_from_the_applied_control():
    ocp = moving(limit=0.2)
    away = ocp.solve([0.0], v_previous=[-1.0, 0.0])["v"][0]
    np.testing.assert_allclose(away[:2], [-0.8, -0.6], atol=1e-6)
    assert ocp.previous("v") is ocp.previous("v")
    mpc = MPC(moving(limit=0.2))
    applied = np.array([[0.3, 0.0], *(mpc.step([0.0])["v"] for _ in range(4))])
    np.testing.assert_allclose(applied[:3, 0], [0.3, 0.5, 0.7], atol=1e-6)
    assert np.abs(np.diff(applied, axis=0)).max() == pytest.approx(0.2, abs=1e-6)
    mpc.limits({"moves of v": (-0.05, 0.05)})
    assert np.abs(mpc.step([0.0])["v"] - applied[-1]).max() == pytest.approx(0.05, abs=1e-6)
    mpc.limits({"moves of v": None})
    assert mpc.step([0.0], v_previous=[-1.0, 0.0])["v"][0] == pytest.approx(-0.8, abs=1e-6)
    mpc.reset()
    assert mpc.step([0.0])["v"][0] == pytest.approx(0.5, abs=1e-6)


def test_limit_of_moves_gives_way_last():
    ocp = moving(limit=0.2)
    ocp.path("full", ocp.model.symbol("y"), lower=2.0)
    step = MPC(ocp).step([0.0])
    assert (step.status, list(step.violated)) == ("softened", ["full"])
    np.testing.assert_allclose(step["v"], [0.5, 0.2], atol=1e-6)
    mpc = MPC(moving(limit=0.2))
    mpc.limits(v=(None, -1.0))
    step = mpc.step([0.0])
    assert step.status == "softened"
    assert step.violated == {"moves of v": pytest.approx(1.1, abs=1e-6)}
    np.testing.assert_allclose(step["v"], -1.0, atol=1e-6)
