"""Controls priced and limited by their changes."""

import numpy as np
import pytest

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control import MPC, Collocation, Model, MultipleShooting, OptimalControl

METHODS = (MultipleShooting(), Collocation())


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


@pytest.mark.parametrize("method", METHODS)
def test_changes_are_priced_and_limited(method):
    found = tank(method).solve([0.0])
    before = np.append(0.3, found["v"][:-1])
    np.testing.assert_allclose(found["v_previous"][:-1], before, atol=1e-12)
    assert found.costs["change"] == pytest.approx(0.5 * np.sum((found["v"] - before) ** 2))
    assert np.abs(found["v"] - before).max() == pytest.approx(0.1, abs=1e-6)


def test_what_was_applied_last_is_a_parameter():
    found = tank().solve([0.0], v_previous=-1.0)
    np.testing.assert_allclose(found["v"][:2], [-0.9, -0.8], atol=1e-6)


def test_a_controller_gives_what_it_applied():
    mpc = MPC(tank())
    applied = [mpc.step([0.0])["v"] for _ in range(3)]
    np.testing.assert_allclose(applied, [0.4, 0.5, 0.6], atol=1e-6)
    assert mpc.step([0.0], v_previous=-1.0)["v"] == pytest.approx(-0.9, abs=1e-6)
    mpc.reset()
    assert mpc.step([0.0])["v"] == pytest.approx(0.4, abs=1e-6)


def test_twice_the_same():
    ocp = tank()
    assert ocp.previous("v") is ocp.previous("v")


def test_what_has_no_jumps_or_no_name_is_refused():
    with pytest.raises(InputError, match="'v' runs linearly"):
        tank(linear=True)
    with pytest.raises(InputError, match="there is no control 'z'"):
        tank().previous("z")


def moving(price=None, limit=None, method=None):
    """Two valves of different strength that fill a tank."""
    model = Model("tank")
    y = model.state("y")
    v = model.control("v", 2, lower=-5, upper=5, guess=[0.3, 0.0], scale=2.0)
    model.rates(y=-y + v[0] + 0.5 * v[1])
    ocp = OptimalControl(model, duration=1.0, intervals=5, method=method)
    ocp.initial()
    ocp.minimize("distance", sum=(y - 1) ** 2 + 1e-2 * v[1] ** 2)
    ocp.moves("v", price=price, limit=limit)
    return ocp


@pytest.mark.parametrize("method", METHODS)
def test_moves_are_priced_and_limited_by_one_line(method):
    found = moving(price=[0.1, 0.3], limit=[0.2, 0.1], method=method).solve([0.0])
    steps = np.diff(np.hstack(([[0.3], [0.0]], found["v"])), axis=1)
    by_hand = sum(0.1 * step[0] ** 2 + 0.3 * step[1] ** 2 for step in steps.T)
    assert found.costs["moves of v"] == pytest.approx(by_hand)
    assert np.abs(steps[0]).max() == pytest.approx(0.2, abs=1e-6)
    assert np.abs(steps[1]).max() <= 0.1 + 1e-6
    assert found.program.constraints["moves of v"].shape == (2, 5)  # a row an interval, no more


def test_a_limit_of_moves_holds_in_the_loop_and_can_change():
    mpc = MPC(moving(limit=0.2))
    applied = np.array([[0.3, 0.0], *(mpc.step([0.0])["v"] for _ in range(4))])
    assert np.abs(np.diff(applied, axis=0)).max() == pytest.approx(0.2, abs=1e-6)
    mpc.limits({"moves of v": (-0.05, 0.05)})
    assert np.abs(mpc.step([0.0])["v"] - applied[-1]).max() == pytest.approx(0.05, abs=1e-6)


def test_a_limit_of_moves_is_hard_where_others_give_way():
    ocp = moving(limit=0.2)
    ocp.path("full", ocp.model.symbol("y"), lower=2.0)
    step = MPC(ocp).step([0.0])
    assert step.status == "softened"
    assert list(step.violated) == ["full"]
    np.testing.assert_allclose(step["v"], [0.5, 0.2], atol=1e-6)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, r"moves\('v'\) does nothing; give price, limit or both"),
        ({"price": -1.0}, "price of moves of v must be positive, got -1.0"),
        ({"limit": [1, 2, 3]}, "limit of moves of v has 3 entries"),
    ],
)
def test_moves_that_say_nothing_or_too_much_are_refused(given, said):
    with pytest.raises(InputError, match=said):
        moving(**given)
