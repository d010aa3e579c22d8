"""Predictive control as a user sees it: plans, limits, records and names."""

import copy
import pickle

import casadi as ca
import numpy as np
import pytest
from support.cases.controllers import DT, Solves, cart, closed_loop
from support.cases.ocps import EVERY_METHOD, WITH_STATES, double_integrator, fastest, stated
from support.judges.refusals import assert_refused

from casadi_hybrid import InputError
from casadi_hybrid.control import (
    MPC,
    Collocation,
    Model,
    MultipleShooting,
    Plant,
    SingleShooting,
    simulate,
)
from casadi_hybrid.control.mpc.plan import Plan
from casadi_hybrid.verify import verify


@pytest.mark.parametrize("method", EVERY_METHOD, ids=str)
def test_closed_loop_equals_separate_solves(method):
    ocp = cart(method=method)
    steps, states = closed_loop(MPC(ocp), [1.0, 0.0], 12)
    for step, x in zip(steps, states, strict=False):
        by_hand = ocp.solve(x)
        assert step.status == "solved"
        assert step["force"] == pytest.approx(by_hand["force"][0], abs=1e-5)
        assert step.plan["x"] == pytest.approx(by_hand["x"], abs=1e-5)
        assert step.control.tolist() == [step["force"]]
    assert [step.record.warm for step in steps] == [False] + 11 * [True]
    warm = sum(step.record.iterations for step in steps[1:])
    assert warm < 6 * steps[0].record.iterations


def test_parameters_and_times_reach_the_problem():
    ocp, goal = cart(), {"goal": lambda t: 0.1 * t}
    mpc = MPC(ocp)
    mpc.step([0.5, 0.0], time=1.0)
    step, by_hand = (call([0.4, -0.2], time=1.1, **goal) for call in (mpc.step, ocp.solve))
    assert step.plan["goal"] == pytest.approx(0.1 * step.plan.times)
    assert step["force"] == pytest.approx(by_hand["force"][0], abs=1e-6)
    assert mpc.step({"v": -0.2, "x": 0.4}, goal=0.1).record.time == pytest.approx(1.2)


MESH = {"mesh": np.array([0, 1, 2, 4, 7, 11, 15]) / 15, "intervals": 6, "duration": 1.5}


MOVED = [
    ({"method": Collocation(), "linear": True}, DT),
    ({"method": Collocation(2, "legendre")}, 2 * DT),
    ({"linear": True}, 0.37 * DT),
    (MESH, 0.13),
    ({**MESH, "method": Collocation()}, 0.13),
]


@pytest.mark.parametrize(("options", "period"), MOVED)
def test_moved_plan_follows_the_trajectory(options, period):
    ocp = cart(**options)
    plan = ocp.solve([1.0, 0.0])
    at_start = Plan(ocp, plan.program, plan.x, plan.lam_x, plan.lam_g, 0.0)
    moved = plan.program.unpack(at_start.moved(period)["x0"])
    times, end = plan.times, plan.times[-1]
    then = np.minimum(times + period, end)
    for name in ("x", "v"):
        assert moved[name][0] == pytest.approx(np.interp(then, times, plan[name]), abs=1e-9)
    if options.get("linear"):
        expected = np.interp(then, times, plan["force"])
    else:
        middle = np.minimum((times[:-1] + times[1:]) / 2 + period, end)
        expected = plan["force"][np.searchsorted(times, middle, side="left") - 1]
    assert moved["force"][0] == pytest.approx(expected, abs=1e-9)
    if "x inside" in moved:  # between the values at the grid points, as a smooth curve is
        low, high = np.sort(np.stack((moved["x"][0][:-1], moved["x"][0][1:])), axis=0)
        known = then[1:] < end  # the plan does not go further
        inside = moved["x inside"][0].reshape(then.size - 1, -1)[known]
        assert (inside >= low[known, None] - 1e-3).all()
        assert (inside <= high[known, None] + 1e-3).all()


def test_free_duration_shrinks_by_elapsed_time():
    model = double_integrator(u={"lower": -1, "upper": 1})[0].model
    ocp = fastest(model, {"x": None, "v": None}, {"x": 0, "v": 0}, intervals=20)
    plan, t = ocp.solve([1.0, 0.0]), 0.31
    moved = Plan(ocp, plan.program, plan.x, plan.lam_x, plan.lam_g, 0.0).moved(t)["x0"]
    assert plan.program.unpack(moved)["duration"] == pytest.approx(2.0 - t, abs=1e-6)
    mpc = MPC(ocp)
    first = mpc.step([1.0, 0.0], time=0.0)
    second = mpc.step([1 - t**2 / 2, -t], time=t)
    assert (first.status, second.status) == ("solved", "solved")
    assert second.plan.duration == pytest.approx(2.0 - t, abs=1e-2)


def test_few_iterations_approach_full_solves():
    full, away = closed_loop(MPC(cart()), [1.0, 0.0], 15)[1], []
    for iterations in (1, 2, 4):
        mpc = MPC(cart(), iterations=iterations, tolerance=1e-2)
        steps, states = closed_loop(mpc, [1.0, 0.0], 15)
        assert {step.status for step in steps} <= {"solved", "feasible"}
        assert all(step.record.iterations <= iterations for step in steps[1:])
        away.append(np.abs(states - full).max())
    assert away[0] < 1e-2
    assert away[2] < 1e-6


@pytest.mark.filterwarnings("ignore:the controller's deadline")  # longer than any step takes
def test_few_iterations_follow_a_jumping_goal():
    model = Model("pendulum")
    angle, rate = model.state("angle"), model.state("rate", lower=-6, upper=6)
    torque, goal = model.control("torque", lower=-6, upper=6), model.reference("goal")
    model.rates(angle=rate, rate=4 * torque - 20 * ca.sin(angle))
    error = 10 * (angle - goal) ** 2 + 0.1 * rate**2 + 1e-3 * torque**2
    ocp = stated(model, integral=error, intervals=20)
    ocp.path("jump", torque - ocp.previous("torque"), lower=-3, upper=3)
    wanted = {"goal": lambda t: 1.0 if t < 1.5 else -2.5}
    with pytest.raises(InputError, match="reference 'goal'"):
        MPC(ocp).step([0.0, 0.0])

    def distance(iterations, tolerance):
        mpc = MPC(ocp, iterations=iterations, tolerance=tolerance, deadline=9.0, default=0.0)
        run = simulate(Plant(model, 0.05), mpc, steps=60, x0=[0, 0], parameters=wanted)
        assert "over the deadline: 0" in str(run)
        assert set(run.status) <= {"solved", "feasible", "softened", "last plan"}
        return np.sum((run["angle"] - [wanted["goal"](t) for t in run.times]) ** 2)

    full = distance(None, 1e-4)
    assert max(distance(1, tolerance) for tolerance in (1e-4, 1.0)) < 1.02 * full


def test_state_outside_its_limits_is_brought_back():
    mpc = MPC(cart(limit=0.8))
    assert mpc.step([1.0, 0.0]).status == "solved"
    step = mpc.step([0.9, -1.1])
    assert step.status == "softened"
    assert step.violated == pytest.approx({"v": 0.3}, abs=1e-6)
    assert "v by 0.3 m/s" in step.reason
    speed = step.plan["v"]
    assert speed[0] == pytest.approx(-1.1)
    assert (speed[3:] >= -0.8 - 1e-4).all()
    assert step["force"] == pytest.approx(2.0)  # the brake
    assert mpc.step([0.8, -0.7]).status == "solved"
    step = MPC(cart(limit=0.8), soften=None, deadline=60.0).step([0.9, -1.1])
    assert (step.status, step.violated) == ("default", {})


def test_softened_problem_comes_first_while_infeasible(monkeypatch):
    mpc, solves = MPC(cart(wall=1.0)), Solves(monkeypatch)
    step = mpc.step([1.2, 0.0])
    assert step.status == "softened"
    assert step.violated == {"room": pytest.approx(0.2, abs=1e-5)}
    for x in (1.199, 1.19, 1.17):
        step = mpc.step([x, -0.2])
        assert (step.status, list(step.violated)) == ("softened", ["room"])
        assert step.record.iterations < 10
    assert mpc.step([0.9, -0.3]).status == "solved"
    solves.solvers.clear()
    assert mpc.step([0.87, -0.4]).record.iterations < 10
    assert solves.solvers == [mpc.ocp.solver]


@pytest.mark.parametrize("method", WITH_STATES, ids=str)
def test_soft_limits_alone_need_no_softened_problem(method, monkeypatch):
    ocp, solves = cart(limit=0.8, method=method, wall=1.0), Solves(monkeypatch)
    ocp.soften("v", 5.0)
    mpc = MPC(ocp)
    assert mpc.step([1.2, -1.2]).status == "softened"
    step = mpc.step([0.9, -1.2])
    assert step.status == "solved"
    assert step.plan["v"].min() < -1.0
    solves.solvers.clear()
    assert mpc.step([0.8, -1.2]).status == "solved"
    assert solves.solvers == [ocp.solver]


def test_excess_below_tolerance_counts_as_the_limit():
    mpc, same = MPC(cart(limit=0.8)), MPC(cart(limit=0.8))
    for x in (2.0, 1.92, 1.84):
        step = mpc.step([x, -0.8 - 5e-5])
        assert step.status == "solved"
        assert step.record.iterations < 20
        assert step.control == pytest.approx(same.step([x, -0.8]).control, abs=1e-9)


def test_every_step_leaves_a_record():
    mpc = MPC(cart(limit=0.3))
    steps, _ = closed_loop(mpc, [1.0, 0.0], 5)
    mpc.step([np.nan, 0.0])
    assert mpc.records[:5] == [step.record for step in steps]
    columns = mpc.telemetry()
    assert columns["time"] == pytest.approx(DT * np.arange(6))
    assert columns["status"].tolist() == 5 * ["solved"] + ["last plan"]
    assert (columns["seconds"] > 0).all()
    assert (columns["violation"][:5] < 1e-6).all()
    objectives = [*(step.plan.objective for step in steps), np.nan]
    assert columns["objective"] == pytest.approx(objectives, rel=1e-6, nan_ok=True)
    assert "v" in columns["active_names"][1]
    assert columns["active"][1] >= 1
    assert len(mpc.table().splitlines()) == 7
    mpc.reset()
    assert mpc.records == []
    assert not mpc.step([1.0, 0.0]).record.warm


def test_bad_step_is_refused_before_any_work():
    mpc = MPC(cart())
    mpc.step([0.5, 0.0], time=1.0)
    assert_refused(
        ({"x": [1.0]}, "x has 1 entries"),
        ({"x": {"x": 1.0, "V": 0.0}}, "did you mean 'v'"),
        ({"time": "soon"}, "time must be a finite number"),
        ({"time": 0.5}, r"before the last step .* reset\(\)"),
        ({"gaol": 1.0}, "'goal'"),
        ({"goal": [1.0, 2.0]}, "value of 'goal'"),
        by=lambda **bad: mpc.step(**{"x": [1.0, 0.0], **bad}),
    )
    with pytest.raises(InputError, match="applied has 3 entries"):
        mpc.applied = [0.1, 0.2, 0.3]
    assert len(mpc.records) == 1
    mpc.reset()
    assert mpc.step([0.5, 0.0], time=0.5).status == "solved"


def test_bad_settings_are_refused_by_name():
    ocp = cart()
    ocp.fixed.pop("v")
    assert_refused(
        ({"deadline": 0}, "deadline must be"),
        ({"iterations": 0}, "iterations must be"),
        ({"fallback": 1.0}, "fallback must be"),
        ({"soften": "much"}, "soften must be"),
        ({"ocp": ocp}, r"v free at the start; call its initial\(\)"),
        ({"ocp": ocp.model}, "ocp must be an OptimalControl or Scenarios, got Model"),
        by=lambda **bad: MPC(**{"ocp": cart(), **bad}),
    )
    with pytest.raises(InputError, match="must not begin with"):
        Model("cart").state("violation of x")
    with pytest.raises(InputError, match="'limits of v' already"):
        cart().path("limits of v", 0.0, upper=1)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_controller_refuses_to_be_copied(duplicate):
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        duplicate(MPC(cart()))


@pytest.mark.filterwarnings("ignore:the controller's deadline")  # longer than any step takes
def test_prepared_controller_begins_warm():
    ocp = cart()
    mpc = MPC(ocp, deadline=60.0)
    mpc.prepare([1.0, 0.0])
    run = simulate(Plant(ocp.model, period=DT), mpc, steps=8, x0=[1.0, 0.0])
    assert [record.status for record in mpc.records] == 8 * ["solved"]
    assert all(record.warm for record in mpc.records)
    anew = [ocp.solve(run.states[:, k])["force"][0] for k in range(8)]
    assert run["force"] == pytest.approx(anew, abs=1e-3)


def test_moves_count_from_the_holding_control():
    """A mass under gravity 5, held by 5: with |Δu| ≤ 1 the first control is at least 4."""
    model = Model("mass")
    x, v, u = model.state("x"), model.state("v"), model.control("u", lower=-20, upper=20)
    model.rates(x=v, v=u - 5.0)
    ocp = stated(model, integral=x**2 + 0.1 * v**2 + 0.01 * (u - 5) ** 2)
    ocp.moves("u", limit=1.0)
    mpc = MPC(ocp)
    run = simulate(Plant(model, DT), mpc, steps=5, x0=[0.0, 0.0], u0=[5.0])
    assert run["u"] == pytest.approx(5.0, abs=1e-4)
    mpc.reset()
    assert mpc.step([0.0, 0.0])["u"] == pytest.approx(1.0)  # from the guess, which is zero


PLAIN = ("place", "pace", "push", "load", "room", "edge")
CONFUSING = [
    ("x", "x at end", "x at begin", "load inside", "room at end", "room"),
    ("v, lower", "v", "v between", "limits of x", "final x inside", "v, upper"),
    ("a/b", "ü\n", "a[0] inside", "initial guess", "violation of a/b, lower", "limits of limits"),
]


def named(names, method):
    x, v, u, load, room, edge = names
    model = Model("cart")
    place, speed = model.state(x, unit="m"), model.state(v, lower=-1, upper=1, unit="m/s")
    push, mass = model.control(u, lower=-2, upper=2), model.parameter(load, 1.0)
    model.rates({x: speed, v: push / mass})
    options = {"duration": 2.0, "intervals": 6, "method": method}
    ocp = stated(model, integral=place**2 + 0.1 * push**2, **options)
    ocp.path(room, speed + 0.1 * push, lower=-0.5, soft=20.0, at="ends", unit="m/s")
    ocp.at_end(edge, place, upper=0.3)
    return ocp


@pytest.mark.parametrize("method", [MultipleShooting(inner=1), Collocation(2), SingleShooting()])
@pytest.mark.parametrize("names", CONFUSING)
def test_no_name_is_taken_for_another(names, method):
    ocp, other = named(names, method), named(PLAIN, method)
    plain_of = dict(zip(names, PLAIN, strict=True))
    mpc, expected = MPC(ocp), MPC(other)
    for x in ([1.0, -0.2], [1.0, -0.9], [2.9, -1.2], [0.5, -0.2], [0.1, 0.0]):
        step, like = mpc.step(x), expected.step(x)
        assert (step.status, step.control.tolist()) == (like.status, like.control.tolist())
        assert {plain_of[name]: by for name, by in step.violated.items()} == like.violated
        mpc.limits({names[1]: (-0.9, 0.8), names[5]: (None, 0.25)})
        expected.limits(pace=(-0.9, 0.8), edge=(None, 0.25))
    solution, theirs = ocp.solve([1.0, 0.0]), other.solve([1.0, 0.0])
    assert verify(ocp, solution, ipopt=False).accepted
    for name, plain in plain_of.items():
        if plain in theirs.multipliers:
            assert np.array_equal(solution.multipliers[name], theirs.multipliers[plain])
