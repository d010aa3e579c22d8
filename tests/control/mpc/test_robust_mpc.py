"""Predictive control with scenarios, held against the nominal controller and solves by hand."""

import numpy as np
import pytest
from support.judges.refusals import assert_refused

from casadi_hybrid import InputError
from casadi_hybrid.control import (
    MPC,
    Collocation,
    Free,
    Model,
    OptimalControl,
    Plant,
    Scenarios,
    Soft,
    simulate,
)
from casadi_hybrid.control.mpc.plan import Plan

DT = 0.1
RATES = {"nominal": {}, "slow": {"k": 0.5}, "fast": {"k": 1.5}}


def tank(*, intervals=12, duration=None, goal=1.0, **more):
    model = Model("tank")
    x = model.state("level", upper=1.05, unit="m")
    v = model.state("flow", scale=2.0)
    u = model.control("valve", lower=-3, upper=3)
    k = model.parameter("k", 1.0)
    model.rates(level=v - k * x, flow=u)
    ocp = OptimalControl(model, duration=duration or DT * intervals, intervals=intervals, **more)
    goal = ocp.reference("goal", goal)
    ocp.initial()
    ocp.minimize("error", integral=10 * (x - goal) ** 2 + 0.01 * u**2, end=(x - goal) ** 2)
    return ocp


def loop(mpc, steps=8, **plant):
    return simulate(Plant(mpc.ocp.model, DT, parameters=plant), mpc, steps=steps, x0=[0.0, 0.0])


@pytest.mark.parametrize("method", [None, Collocation()], ids=str)
def test_equal_scenarios_act_as_the_nominal_controller(method):
    alone = loop(MPC(tank(method=method)))
    equal = Scenarios(tank(method=method), {"a": {}, "b": {"k": 1.0}, "c": {}}, weights=[1, 2, 3])
    together = loop(MPC(equal))
    assert together.status == 8 * ("solved",)
    np.testing.assert_allclose(together["valve"], alone["valve"], atol=1e-4)
    np.testing.assert_allclose(together["level"], alone["level"], atol=1e-5)


def test_closed_loop_equals_separate_solves():
    robust = Scenarios(tank(), RATES, weights=[2, 1, 1], shared=2)
    mpc = MPC(robust)
    run = loop(mpc, k=0.6)
    for x, step in zip(run.states.values.T, run.steps, strict=False):
        by_hand = robust.solve(x)
        assert step.status == "solved"
        assert step["valve"] == pytest.approx(by_hand["fast"]["valve"][0], abs=1e-4)
        assert step.plan.objective == pytest.approx(by_hand.objective, rel=1e-6)
        assert step.plan["slow"]["level"] == pytest.approx(by_hand["slow"]["level"], abs=1e-4)
    assert [record.warm for record in mpc.records] == [False] + 7 * [True]


def test_plan_of_every_scenario_is_moved_on():
    robust = Scenarios(tank(), RATES, shared=2)
    found = robust.solve([0.0, 0.0])
    plan = Plan(robust, found.program, found.x, found.lam_x, found.lam_g, 0.0)
    moved = plan.moved(DT)
    for name, part in found.parts.items():
        program = robust.program.part(f"{name}/")
        begun = program.unpack(plan.begun(moved["x0"], np.array([0.3, 0.4])))
        np.testing.assert_allclose(begun["level"][0, 1:-1], part["level"][2:])
        np.testing.assert_allclose(begun["valve"][0, :-1], part["valve"][1:])
        np.testing.assert_allclose([begun["level"][0, 0], begun["flow"][0, 0]], [0.3, 0.4])
        dynamics = program.constraints["dynamics"]
        before, after = (dynamics.read(lam, dual=True) for lam in (found.lam_g, moved["lam_g0"]))
        np.testing.assert_allclose(after[:, :-1], before[:, 1:])


def test_scenarios_keep_a_limit_under_mismatch():
    nominal, robust = MPC(tank()), MPC(Scenarios(tank(), RATES))
    highest = {
        name: max(loop(mpc, steps=13, k=k)["level"].max() for k in (0.6, 1.4))
        for name, mpc in (("nominal", nominal), ("robust", robust))
    }
    assert highest["nominal"] > 1.055
    assert highest["robust"] <= 1.05


def test_limits_are_softened_in_every_scenario():
    mpc = MPC(Scenarios(tank(), RATES, weights=[2, 1, 1]))
    mpc.step([1.0, 0.5])
    step = mpc.step([1.2, 0.5])
    assert step.status == "softened"
    assert step.violated == {"level": pytest.approx(0.15, abs=1e-6)}
    assert "level by 0.15 m" in step.reason
    soft = tank()
    soft.soften("level", Soft(1e4))
    by_hand = Scenarios(soft, RATES, weights=[2, 1, 1]).solve([1.2, 0.5])
    assert step["valve"] == pytest.approx(by_hand["slow"]["valve"][0], abs=1e-4)
    assert step.record.warm
    assert mpc.step([0.9, 0.5]).status == "solved"


def test_parameters_reach_all_scenarios_or_one():
    robust = Scenarios(tank(), RATES)
    mpc = MPC(robust)
    step = mpc.step([0.2, 0.0], goal=0.5, fast={"k": 1.2})
    by_hand = robust.solve([0.2, 0.0], goal=0.5, fast={"k": 1.2})
    assert step["valve"] == pytest.approx(by_hand.controls[0, 0], abs=1e-4)
    assert step.plan["fast"]["k"] == pytest.approx(1.2)
    assert step.plan["slow"]["goal"] == pytest.approx(0.5)
    mixed = mpc.step([0.2, 0.0], k=0.9).plan  # what a scenario states for itself stays
    assert [mixed[name]["k"] for name in RATES] == [0.9, 0.5, 1.5]
    wrong = mpc.step([0.2, 0.0], fast={"k": np.nan})
    assert wrong.status == "last plan"
    assert wrong.reason == "the parameter fast: k has nan"


def test_undefined_numbers_end_in_a_status():
    late = {"goal": lambda t: 1 / (t < 2)}
    own = MPC(Scenarios(tank(goal=None), dict.fromkeys(RATES, late)), default=0, deadline=60.0)
    assert [own.step([0.0, 0.0], t).status for t in (0, 3)] == ["solved", "default"]
    with pytest.raises(InputError, match=r"every part .* states 'goal' .* nominal=\{'goal': …\}"):
        own.step([0.0, 0.0], goal=1.0)
    mpc = MPC(Scenarios(tank(), RATES), deadline=60.0)
    assert mpc.prepare([0.0, 0.0])["nominal"].success
    assert mpc.step([0.0, 0.0]).record.warm
    assert mpc.step([np.nan, 0.0]).status == "last plan"


def test_bad_robust_controllers_are_refused():
    loose, free, mpc = tank(), tank(duration=Free(1.0)), MPC(Scenarios(tank(), RATES))
    loose.fixed.pop("flow")
    assert_refused(
        (lambda: MPC(Scenarios(loose, RATES)), "tank leaves flow free at the start"),
        (lambda: MPC(Scenarios(free, RATES)), "duration of tank is free.*give the problem a fixed"),
        (lambda: mpc.step([0.0, 0.0], gaol=1.0), "no part of tank has a parameter 'gaol'.*goal"),
    )
    assert mpc.records == []


def test_previous_control_reaches_every_scenario():
    ocp = tank()
    change = ocp.model.symbol("valve") - ocp.previous("valve")
    ocp.path("change", change, lower=-0.5, upper=0.5)
    mpc = MPC(Scenarios(ocp, RATES), soften=None)
    run = loop(mpc, steps=6)
    assert run.status == 6 * ("solved",)
    assert np.abs(np.diff(run["valve"])).max() == pytest.approx(0.5, abs=1e-5)


def test_bounds_of_a_common_control_stand_once():
    """Twice, active ones would be dependent: no multipliers would be unique."""
    plan = Scenarios(tank(intervals=6), RATES, shared=2).solve([0.0, 0.0])
    assert plan.success
    for label in RATES:  # the limit of 3 is active at first, and holds for all
        np.testing.assert_allclose(plan[label]["valve"][:2], plan["nominal"]["valve"][:2])
        assert np.abs(plan[label]["valve"]).max() <= 3 + 1e-6
    for label in ("slow", "fast"):
        assert (plan[label].multipliers["valve"][:2] == 0.0).all()
    assert plan["nominal"].multipliers["valve"][0] > 1e-3
