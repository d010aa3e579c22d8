"""Limits that change between solves, by a parameter or by name, without a new program."""

import numpy as np
import pytest

from casadi_hybrid import InputError
from casadi_hybrid.control import (
    MPC,
    Collocation,
    Model,
    MultipleShooting,
    OptimalControl,
    Scenarios,
    SingleShooting,
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
    for fastest in (0.4, 0.8):
        assert ocp.solve([1.0, 0.0], fastest=fastest)["v"].min() == pytest.approx(
            -fastest, abs=1e-4
        )


def test_a_limit_of_scenarios_follows_the_parameter_of_each():
    both = Scenarios(cart(), {"slow": {"fastest": 0.4}, "fast": {"fastest": 0.8}}, shared=1)
    found = both.solve([1.0, 0.0])
    for name, fastest in (("slow", 0.4), ("fast", 0.8)):
        assert found[name]["v"].min() == pytest.approx(-fastest, abs=1e-5)


def test_limits_that_cannot_be_are_refused():
    model = Model("m")
    other = Model("other").parameter("p")
    with pytest.raises(InputError, match=r"upper of 'v' .* 'p'|'p'"):
        model.state("v", upper=other)
    goal = model.reference("goal")
    with pytest.raises(InputError, match="goal"):
        model.state("v", upper=goal)
    with pytest.raises(InputError, match="above its upper"):
        cart().solve([1.0, 0.0], fastest=-1.0)
    ocp = cart()
    with pytest.raises(InputError, match="'fastest' is in a limit of the model"):
        ocp.free("fastest")


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


def test_what_exceeds_a_new_limit_is_softened_and_what_is_applied_is_within_it():
    mpc = MPC(cart(fixed=False))
    mpc.limits(v=(-0.2, 0.2))
    step = mpc.step([1.0, -0.6])
    assert step.status == "softened"
    assert step.violated["v"] == pytest.approx(0.4, abs=1e-3)
    assert mpc.step([np.nan, 0.0]).status == "last plan"
    mpc.limits(force=(-3, 0.01))
    assert mpc.step([np.nan, 0.0])["force"] <= 0.01


def test_of_scenarios_all_have_the_new_limit():
    ocp = cart(fixed=False)
    mpc = MPC(Scenarios(ocp, {"one": {}, "other": {"strength": 2.0}}))
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
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(given, said):
    mpc = MPC(cart(fixed=False))
    with pytest.raises(InputError, match=said):
        mpc.limits({"force": (-1, 1), **given})
    assert mpc.step([1.0, 0.0])["force"] == pytest.approx(-3, abs=1e-4)
