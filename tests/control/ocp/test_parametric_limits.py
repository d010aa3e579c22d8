"""Limits that change between solves without a new program; limits and prices of changes."""

import numpy as np
import pytest

from casadi_hybrid import InputError
from casadi_hybrid.control import (
    MHE,
    MPC,
    Collocation,
    Model,
    MultipleShooting,
    OptimalControl,
    Plant,
    Run,
    Scenarios,
    SingleShooting,
    Soft,
    Solution,
    simulate,
)

METHODS = (MultipleShooting(), SingleShooting(), Collocation())


def cart(method=None, fixed=True, **limits):
    """A cart to be brought to zero, fast: its limits decide."""
    model = Model("cart")
    fastest = model.parameter("fastest", 1.0)
    strength = model.parameter("strength", [3.0])
    x = model.state("x")
    speed = {"lower": -fastest, "upper": fastest} if fixed else {"lower": -1, "upper": 1}
    v = model.state("v", **{**speed, **limits})
    u = model.control("force", lower=-3, upper=2 * strength if fixed else 6)
    model.rates(x=v, v=u)
    ocp = OptimalControl(model, duration=2.0, intervals=10, method=method)
    ocp.initial()
    ocp.path("room", x + 0.1 * v, lower=-0.05, upper=9)
    ocp.minimize("distance", integral=100 * x**2 + 1e-3 * u**2, end=100 * x**2 + v**2)
    return ocp


@pytest.mark.parametrize("method", METHODS)
def test_a_limit_follows_its_parameter(method):
    ocp = cart(method)
    program = ocp.program
    for fastest in (1.0, 0.4, 0.7):
        found = ocp.solve([1.0, 0.0], fastest=fastest)
        assert found.success
        assert found["v"].min() == pytest.approx(-fastest, abs=1e-5)
        assert found.ocp.model.signals["state"]["v"].lower == -fastest  # what it is judged by
    assert ocp.program is program
    weak = ocp.solve([-0.04, -0.5], strength=0.5)
    assert weak["force"].max() == pytest.approx(1.0, abs=1e-5)


def test_a_soft_limit_follows_its_parameter():
    ocp = cart()
    ocp.soften("v", 1e4)
    ocp.path("slow", ocp.model.symbol("v"), lower=-ocp.parameter("slowest", 1.0))
    assert ocp.solve([1.0, 0.0], slowest=0.3)["v"].min() == pytest.approx(-0.3, abs=1e-6)
    for fastest in (0.4, 0.8):
        found = ocp.solve([1.0, 0.0], fastest=fastest)
        assert found["v"].min() == pytest.approx(-fastest, abs=1e-4)


def test_a_limit_of_scenarios_follows_the_parameter_of_each():
    both = Scenarios(cart(), {"slow": {"fastest": 0.4}, "fast": {"fastest": 0.8}}, shared=1)
    found = both.solve([1.0, 0.0])
    for name, fastest in (("slow", 0.4), ("fast", 0.8)):
        assert found[name]["v"].min() == pytest.approx(-fastest, abs=1e-5)


def slopes_are_differences(solve, name, now, of):
    """By a parameter that ``solve`` takes, of the objective and of a trajectory of a part."""
    one, two = of(solve(now + 1e-4)), of(solve(now - 1e-4))
    slope, moved = of(solve(now)).sensitivity(name), (one["v"] - two["v"]) / 2e-4
    assert slope.objective == pytest.approx((one.objective - two.objective) / 2e-4, rel=1e-3)
    np.testing.assert_allclose(slope["v"], moved, atol=1e-2 * np.abs(moved).max())


def test_controls_that_scenarios_have_in_common_keep_the_tightest_limit():
    both = Scenarios(cart(), {"strong": {}, "weak": {"strength": 0.5}}, shared=3)
    found = both.solve([0.5, -0.8])
    np.testing.assert_allclose([found[name]["force"][1:3] for name in both.parts], 1.0, atol=1e-5)
    slopes_are_differences(lambda now: both.solve([0.5, -0.8], weak={"strength": now}),
                           "strength", 0.5, lambda found: found["weak"])  # fmt: skip
    step = MPC(both, default=0).step([0.3, -0.8], weak={"strength": 0.45})
    assert step["force"] == pytest.approx(0.9, abs=1e-5)
    with pytest.raises(InputError, match="lower of 'weak/force' is -3, above its upper, -4"):
        both.solve([0.5, -0.8], weak={"strength": -2.0})


@pytest.mark.parametrize("method", [*METHODS, MultipleShooting(inner=2)], ids=str)
def test_slopes_know_what_a_limit_follows(method, tmp_path):
    ocp = cart(method)
    slopes_are_differences(lambda now: ocp.solve([1.0, 0.0], fastest=now), "fastest", 0.5,
                           lambda x: Solution.load(x.save(tmp_path / "x"), ocp))  # fmt: skip
    plant = Plant(ocp.model, 0.1, parameters={"strength": lambda t: 0.5 - t})
    run = simulate(plant, lambda time, x: 0.9, steps=2, x0=[0, 0])
    np.testing.assert_allclose(run.limits["force"].upper[0], [1.0, 0.8, 0.6])


def test_limits_that_cannot_be_are_refused():
    model = Model("m")
    for limit, said in (
        (Model("other").parameter("p"), r"upper of 'v' .* 'p'|'p'"),
        (model.reference("goal"), "goal"),
    ):
        with pytest.raises(InputError, match=said):
            model.state("v", upper=limit)
    with pytest.raises(InputError, match="above its upper"):
        cart().solve([1.0, 0.0], fastest=-1.0)
    with pytest.raises(InputError, match="'fastest' is in a limit of the model"):
        cart().free("fastest")
    step = MPC(cart(), default=0).step([1.0, 0.0], fastest=-1.0)
    assert (step.status, step["force"]) == ("default", 0.0)
    assert "above its upper" in step.reason


def test_a_loop_tells_an_estimator_the_parameters_that_it_does_not_estimate():
    ocp = cart()
    mhe = MHE(ocp.model, 0.1, noise=1e-3, prior=1.0, process=0.1)
    run = simulate(Plant(ocp.model, 0.1), lambda time, x, **known: 2.0, mhe, steps=12, x0=[0, 0],
                   parameters={"fastest": 3.0})  # fmt: skip
    assert run.estimates["v"][-1] > 1.5


@pytest.mark.parametrize("method", METHODS)
def test_a_controller_changes_limits_by_name_between_steps(method):
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


def test_softened_limits_are_priced_by_the_scale_of_each_entry():
    model = Model("two")
    model.state("x", 2, upper=[1e3, 1], scale=[1e3, 1])
    model.rates(x=model.control("u", 2, scale=[1e3, 1]))
    ocp = OptimalControl(model, duration=1.0, intervals=4)
    ocp.initial()
    assert MPC(ocp, soften=Soft(1.0, most=0.5)).step([1100.0, 0.2]).status == "softened"


def test_what_exceeds_a_new_limit_is_softened_and_what_is_applied_is_within_it():
    mpc = MPC(cart(fixed=False))
    mpc.limits(v=(-0.2, 0.2))
    step = mpc.step([1.0, -0.6])
    assert step.status == "softened"
    assert step.violated["v"] == pytest.approx(0.4, abs=1e-3)
    assert mpc.step([np.nan, 0.0]).status == "last plan"
    mpc.limits(force=(-3, 0.01))
    assert mpc.step([np.nan, 0.0])["force"] <= 0.01


@pytest.mark.parametrize("delay", [0, 1])
def test_a_run_judges_path_constraints_and_the_limits_of_each_step(delay, tmp_path):
    ocp = cart(fixed=False)
    ocp.free("strength", guess=3.0)
    ocp.path("felt", ocp.model.symbol("x") * ocp.model.symbol("strength"), upper=50, soft=1.0)
    ocp.moves("force", limit=[3.0])
    ocp.path("close", ocp.model.symbol("x") - ocp.reference("goal"), upper=99)
    mpc = MPC(ocp, delay=delay)

    def slower(time):
        mpc.limits(v=(-0.4, 0.4) if time > 0.5 else None)
        return {"goal": lambda t: 2 * t}

    plant = Plant(cart(fixed=False).model, 0.2)  # the same names
    run = simulate(plant, mpc, steps=8, x0=[1, 0], push={5: {"v": 1.0}, 7: {"x": 10.0}},
                   parameters=slower, delay=delay, limits={"force": (None, None)})  # fmt: skip
    room = run["x"] + 0.1 * run["v"]
    np.testing.assert_allclose(run["room"], room)
    np.testing.assert_allclose(run["close"], run["x"] - 2 * run.times)
    np.testing.assert_allclose(run["goal"], 2 * run.times)
    np.testing.assert_allclose(Run.load(run.save(tmp_path / "known"))["goal"], run["goal"])
    outside = np.maximum(np.maximum(room - 9, -0.05 - room), 0)
    np.testing.assert_allclose(run.violations["room"], outside)
    np.testing.assert_allclose(run["moves of force"][:8], np.diff(run["force"], prepend=0.0))
    assert run.limits["v"].upper.tolist() == [[1.0, 1.0, 1.0, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4]]
    assert run.violations["v"][5] == pytest.approx(run["v"][5] - 0.4)
    said = str(Run.load(run.save(tmp_path / "run")))
    assert f"largest violation {outside.max():.3g} of the scale: room is" in said
    assert said.endswith("not checked, for the record does not determine them: felt")
    other = simulate(lambda x, u: x, mpc, steps=2, x0=[1, 0], period=0.2, parameters={"goal": 0})
    assert "no limit of room, moves of force, close is exceeded" in str(other)
    assert len(run.plot(["v", "room"]).axes) == 2


def test_of_scenarios_all_have_the_new_limit():
    mpc = MPC(Scenarios(cart(fixed=False), {"one": {}, "other": {"strength": 2.0}}))
    mpc.limits(v=(-0.3, 0.3), force=(-1, 1))
    step = mpc.step([1.0, 0.0])
    assert step.status == "solved"
    for name in ("one", "other"):
        assert step.plan[name]["v"].min() == pytest.approx(-0.3, abs=1e-5)
    assert step["force"] == pytest.approx(-1, abs=1e-5)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"w": (0, 1)}, "there is no state, control or constraint 'w'"),
        ({"v": 1.0}, r"limits of 'v' must be a pair \(lower, upper\), got 1.0"),
        ({"v": ([1, 2], 3)}, "lower of 'v' has 2 entries"),
        ({"v": (2, 1)}, "lower of 'v' is 2, above its upper, 1"),
        ({"x": (None, 1)}, "'x' was declared without upper="),
        ({"v": ("low", 1)}, "lower of 'v' must be numbers"),
        ({"cap": (None, 1)}, "the limit of 'cap' is an expression"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(given, said):
    ocp = cart(fixed=False)
    ocp.path("cap", ocp.model.symbol("x"), upper=ocp.parameter("top", 9.0))
    mpc = MPC(ocp)
    with pytest.raises(InputError, match=said):
        mpc.limits({"force": (-1, 1), **given})
    assert mpc.step([1.0, 0.0])["force"] == pytest.approx(-3, abs=1e-4)


def tank(method=None, linear=False):
    """y' = −k₀ y + v + w with a price on the changes of v, which are at most 0.1."""
    model = Model("tank")
    y = model.state("y")
    k = model.parameter("k", [1.0, 2.0])
    v = model.control("v", lower=-5, upper=5, guess=0.3, linear=linear)
    w = model.control("w")
    model.rates(y=-k[0] * y + v + w)
    ocp = OptimalControl(model, duration=1.0, intervals=4, method=method)
    ocp.initial()
    target = ocp.reference("target", 1.0)
    ocp.minimize("distance", sum=(y - target) ** 2 + 0.1 * w**2)
    change = v - ocp.previous("v")
    ocp.minimize("change", sum=0.5 * change**2)
    ocp.path("slew", change, lower=-0.1, upper=0.1, at="ends")
    return ocp


def test_what_was_applied_last_is_a_parameter_that_a_controller_gives():
    ocp = tank()
    np.testing.assert_allclose(ocp.solve([0.0], v_previous=-1.0)["v"][:2], [-0.9, -0.8], atol=1e-6)
    assert ocp.previous("v") is ocp.previous("v")
    mpc = MPC(tank())
    applied = [mpc.step([0.0])["v"] for _ in range(3)]
    np.testing.assert_allclose(applied, [0.4, 0.5, 0.6], atol=1e-6)
    assert mpc.step([0.0], v_previous=-1.0)["v"] == pytest.approx(-0.9, abs=1e-6)
    mpc.reset()
    assert mpc.step([0.0])["v"] == pytest.approx(0.4, abs=1e-6)


def test_the_previous_of_what_has_no_jumps_or_no_name_is_refused():
    with pytest.raises(InputError, match="'v' runs linearly"):
        tank(linear=True)
    with pytest.raises(InputError, match="there is no control 'z'"):
        tank().previous("z")


def moving(price=None, limit=None, method=None):
    """Two valves of different strength that fill a tank."""
    model = Model("tank")
    y = model.state("y")
    v = model.control("v", 2, lower=-5, upper=5, guess=[0.3, 0.0], scale=2.0, unit="m3/s")
    model.rates(y=-y + v[0] + 0.5 * v[1])
    ocp = OptimalControl(model, duration=1.0, intervals=5, method=method)
    ocp.initial()
    ocp.minimize("distance", sum=(y - 1) ** 2 + 1e-2 * v[1] ** 2)
    ocp.moves("v", price=price, limit=limit)
    return ocp


@pytest.mark.parametrize("method", [MultipleShooting(), Collocation()])
def test_moves_are_priced_and_limited_by_one_line(method):
    found = moving(price=[0.1, 0.3], limit=[0.2, 0.1], method=method).solve([0.0])
    steps = np.diff(np.hstack(([[0.3], [0.0]], found["v"])), axis=1)
    by_hand = sum(0.1 * step[0] ** 2 + 0.3 * step[1] ** 2 for step in steps.T)
    assert found.costs["moves of v"] == pytest.approx(by_hand)
    assert np.abs(steps[0]).max() == pytest.approx(0.2, abs=1e-6)
    assert np.abs(steps[1]).max() <= 0.1 + 1e-6
    assert found.program.constraints["moves of v"].shape == (2, 5)  # a row an interval, no more
    assert found.ocp.constraints[0].unit == "m3/s"


def test_a_limit_of_moves_holds_in_the_loop_and_can_change():
    mpc = MPC(moving(limit=0.2))
    applied = np.array([[0.3, 0.0], *(mpc.step([0.0])["v"] for _ in range(4))])
    assert np.abs(np.diff(applied, axis=0)).max() == pytest.approx(0.2, abs=1e-6)
    mpc.limits({"moves of v": (-0.05, 0.05)})
    assert np.abs(mpc.step([0.0])["v"] - applied[-1]).max() == pytest.approx(0.05, abs=1e-6)


def test_a_limit_of_moves_gives_way_last():
    ocp = moving(limit=0.2)
    ocp.path("full", ocp.model.symbol("y"), lower=2.0)
    step = MPC(ocp).step([0.0])
    assert step.status == "softened"
    assert list(step.violated) == ["full"]
    np.testing.assert_allclose(step["v"], [0.5, 0.2], atol=1e-6)
    mpc = MPC(moving(limit=0.2))
    mpc.limits(v=(None, -1.0))
    step = mpc.step([0.0])
    assert step.status == "softened"
    assert step.violated == {"moves of v": pytest.approx(1.1, abs=1e-6)}
    np.testing.assert_allclose(step["v"], -1.0, atol=1e-6)


def test_moves_that_say_nothing_or_too_much_are_refused():
    for price, limit, said in (
        (None, None, r"moves\('v'\) does nothing; give price, limit or both"),
        (-1.0, None, "price of moves of v must be positive, got -1.0"),
        (None, [1, 2, 3], "limit of moves of v has 3 entries"),
    ):
        with pytest.raises(InputError, match=said):
            moving(price, limit)
