"""Controls that are applied before there is a plan, and solves in advance."""

import time

import casadi as ca
import numpy as np
import pytest
from support.cases.controllers import Solves
from support.cases.ocps import stated
from support.judges.refusals import assert_refused

from casadi_hybrid.control import MPC, Model, Scenarios, steady

HELD = 1.2
WEIGHT = 9.81
TORQUE = WEIGHT * np.sin(HELD)


def pendulum(angle=HELD, goal=HELD, broken=False):
    """A pendulum to be held up at an angle from hanging, which takes WEIGHT·sin(angle)."""
    model = Model("pendulum")
    a, rate = model.state("angle", guess=0.5, unit="rad"), model.state("rate", unit="rad/s")
    torque = model.control("torque", lower=-20, upper=20, scale=5.0, unit="N m")
    mass = model.parameter("mass", 1.0)
    fall = mass * WEIGHT * ca.sin(a)
    model.rates(angle=rate, rate=(torque - fall) / mass + (ca.sqrt(a - 100) if broken else 0))
    cost = 100 * (a - goal) ** 2 + rate**2 + 1e-4 * torque**2
    return stated(model, {"angle": angle, "rate": 0}, integral=cost)


def stop_in_time(monkeypatch):
    now = iter(np.arange(60.0, 1e6, 60.0))
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))


def test_first_missed_deadlines_apply_the_equilibrium(monkeypatch):
    with pytest.warns(UserWarning, match="pendulum does not rest at torque = 0 N m") as caught:
        mpc = MPC(pendulum(), deadline=0.01)
    assert caught[0].filename == __file__  # not the wrapper of the class
    moves = pendulum()
    moves.moves("torque", limit=1.0)
    with pytest.warns(UserWarning, match="Moves count from .* until mpc.applied or simulate"):
        MPC(moves, deadline=0.01)
    stop_in_time(monkeypatch)
    for _ in range(3):
        step = mpc.step([HELD, 0.0])
        assert step.status == "default"
        assert step["torque"] == pytest.approx(TORQUE, rel=0.01)
        assert "torque = 9.1" in step.reason
    assert "torque = 9.1" in repr(mpc)


@pytest.mark.parametrize("default", [{"torque": 3.0}, [3.0], 3.0])
def test_user_chooses_the_default(default, monkeypatch):
    ocp = pendulum()
    rest = steady(ocp.model, angle=HELD)
    mpc = MPC(ocp, deadline=0.01, default=default)  # no warning: those are errors here
    by_rest = MPC(ocp, deadline=0.01, default=rest)
    by_function = MPC(ocp, deadline=0.01, fallback=lambda x, t: [2.0])
    assert "torque = 3 N m" in repr(mpc)
    hanging = MPC(pendulum(angle=0.0, goal=0.0), deadline=0.01)  # needs no choice
    assert "torque = 0 N m" in repr(hanging)
    stop_in_time(monkeypatch)
    assert mpc.step([HELD, 0.0])["torque"] == 3.0
    assert by_rest.step(rest)["torque"] == pytest.approx(TORQUE)
    assert by_function.step([HELD, 0.0]).status == "fallback"


def test_default_is_decided_late_without_deadline():
    mpc = MPC(pendulum())
    mpc.step([HELD, 0.0])
    for _ in range(9):
        assert mpc.step([np.nan, 0.0]).status == "last plan"
    step = mpc.step([np.nan, 0.0])
    assert (step.status, step["torque"]) == ("default", pytest.approx(TORQUE, rel=0.01))


def test_first_scenario_decides_the_default():
    scenarios = Scenarios(pendulum(), {"heavy": {"mass": 2.0}, "light": {"mass": 1.0}})
    with pytest.warns(UserWarning, match="does not rest"):
        mpc = MPC(scenarios, deadline=0.1)
    assert mpc.step([np.nan, 0.0])["torque"] == pytest.approx(2 * TORQUE, rel=0.1)
    with pytest.warns(UserWarning, match=r"prepare\(x\).*no steady state of pendulum"):
        mpc = MPC(pendulum(broken=True), deadline=0.01)
    assert mpc.step([HELD, 0.0])["torque"] == 0.0


@pytest.mark.filterwarnings("ignore:MPC of pendulum")
def test_deadline_solves_cold_and_warm_in_advance(monkeypatch):
    ocp, solves = pendulum(), Solves(monkeypatch)
    MPC(ocp)
    assert solves.solvers == []
    MPC(ocp, deadline=0.01)
    own = [a for s, a in zip(solves.solvers, solves.arguments, strict=True) if s is ocp.solver]
    assert ["lam_x0" in arguments for arguments in own] == [False, True]


def test_bad_default_is_refused():
    assert_refused(
        ({"default": 50.0}, "default of 'torque' is 50; it must be within its limits"),
        ({"default": [1.0, 2.0]}, "default has 2 entries"),
        ({"default": {"troque": 1.0}}, "no control 'troque'; did you mean 'torque'"),
        by=lambda default: MPC(pendulum(), default=default),
    )
