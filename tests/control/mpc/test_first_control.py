"""What a controller applies before it has a plan, and what it does so that it has one in time."""

import time
import warnings

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import InputError
from casadi_hybrid.control import MPC, Model, OptimalControl, Scenarios, steady

HELD = 1.2
WEIGHT = 9.81


def pendulum(angle=HELD, broken=False):
    """A pendulum to be held up at an angle from hanging, which takes WEIGHT·sin(angle)."""
    model = Model("pendulum")
    a = model.state("angle", guess=0.5, unit="rad")
    rate = model.state("rate", unit="rad/s")
    torque = model.control("torque", lower=-20, upper=20, scale=5.0, unit="N m")
    mass = model.parameter("mass", 1.0)
    fall = mass * WEIGHT * ca.sin(a)
    model.rates(angle=rate, rate=(torque - fall) / mass + (ca.sqrt(a - 100) if broken else 0))
    ocp = OptimalControl(model, duration=1.0, intervals=10)
    ocp.initial(angle=angle, rate=0)
    ocp.minimize("distance", integral=100 * (a - HELD) ** 2 + rate**2 + 1e-4 * torque**2)
    return ocp


def late(monkeypatch):
    """From now on every look at the clock takes a minute."""
    now = [0.0]

    def perf_counter():
        now[0] += 60.0
        return now[0]

    monkeypatch.setattr(time, "perf_counter", perf_counter)


def test_what_is_held_up_is_held_where_the_first_steps_miss_the_deadline(monkeypatch):
    with pytest.warns(UserWarning, match=r"pendulum does not rest at torque = 0 N m") as caught:
        mpc = MPC(pendulum(), deadline=0.01)
    assert "Choose with default= or fallback=" in str(caught[0].message)
    assert caught[0].filename == __file__  # not the wrapper of the class
    moved = pendulum()
    moved.moves("torque", limit=1.0)
    with pytest.warns(UserWarning, match="Moves count from .* until mpc.applied or simulate"):
        MPC(moved, deadline=0.01)
    late(monkeypatch)
    for _ in range(3):
        step = mpc.step([HELD, 0.0])
        assert step.status == "default"
        assert step["torque"] == pytest.approx(WEIGHT * np.sin(HELD), rel=0.01)
        assert "no time was left" in step.reason
        assert "applied: torque = 9.1" in step.reason
        assert "N m, at which pendulum rests" in step.reason
    assert "without a plan: torque = 9.1" in repr(mpc)


@pytest.mark.parametrize("chosen", [{"torque": 3.0}, [3.0], 3.0])
def test_the_user_chooses(chosen, monkeypatch):
    mpc = MPC(pendulum(), deadline=0.01, default=chosen)  # no warning: those are errors here
    assert "without a plan: torque = 3 N m, as given" in repr(mpc)
    late(monkeypatch)
    assert mpc.step([HELD, 0.0])["torque"] == 3.0


def test_a_steady_state_is_a_choice_and_so_is_a_fallback(monkeypatch):
    ocp = pendulum()
    rest = steady(ocp.model, angle=HELD)
    by_rest = MPC(ocp, deadline=0.01, default=rest)
    by_function = MPC(pendulum(), deadline=0.01, fallback=lambda x, t: [2.0])
    late(monkeypatch)
    assert by_rest.step(rest)["torque"] == pytest.approx(WEIGHT * np.sin(HELD))
    assert by_function.step([HELD, 0.0]).status == "fallback"


def test_the_hanging_pendulum_needs_no_choice():
    ocp = pendulum(angle=0.0)
    ocp.costs.clear()
    angle, torque = ocp.model.symbol("angle"), ocp.model.symbol("torque")
    ocp.minimize("distance", integral=angle**2 + torque**2)
    assert "torque = 0 N m, at which pendulum rests" in repr(MPC(ocp, deadline=0.01))


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (50.0, "default of 'torque' is 50; it must be within its limits"),
        ([1.0, 2.0], "default has 2 entries"),
        ({"troque": 1.0}, "no control 'troque'; did you mean 'torque'"),
        (np.nan, "default has a NaN"),
    ],
)
def test_a_choice_that_does_not_fit_is_refused(chosen, said):
    with pytest.raises(InputError, match=said):
        MPC(pendulum(), default=chosen)


def test_without_a_deadline_it_is_decided_when_it_is_needed():
    mpc = MPC(pendulum())
    assert "not decided" in repr(mpc)
    mpc.step([HELD, 0.0])
    for _ in range(9):
        assert mpc.step([np.nan, 0.0]).status == "last plan"
    step = mpc.step([np.nan, 0.0])
    assert step.status == "default"
    assert step["torque"] == pytest.approx(WEIGHT * np.sin(HELD), rel=0.01)


def test_of_scenarios_the_first_decides():
    heavy = {"heavy": {"mass": 2.0}, "light": {"mass": 1.0}}
    with pytest.warns(UserWarning, match="does not rest"):
        mpc = MPC(Scenarios(pendulum(), heavy), deadline=0.1)
    assert mpc.step([np.nan, 0.0])["torque"] == pytest.approx(2 * WEIGHT * np.sin(HELD), rel=0.1)


def test_what_cannot_prepare_itself_says_so():
    with pytest.warns(UserWarning, match="could not prepare itself") as caught:
        mpc = MPC(pendulum(broken=True), deadline=0.01)
    said = str(caught[0].message)
    assert "call prepare(x) before the loop" in said
    assert "no steady state of pendulum was found" in said
    assert mpc.step([HELD, 0.0])["torque"] == 0.0


def test_with_a_deadline_solvers_are_used_before_the_first_step():
    used = []

    class Watching:
        def __init__(self, solver):
            self.solver = solver

        def within(self, *limits, **arguments):
            used.append("lam_x0" in arguments)
            return self.solver.within(*limits, **arguments)

    ocp = pendulum()
    ocp.__dict__["solver"] = Watching(ocp.solver)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        MPC(ocp)
        assert used == []
        MPC(ocp, deadline=0.01)
    assert used == [False, True]  # cold and warm
