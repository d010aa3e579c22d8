"""Predictive control as a user sees it: what is applied, what is said of it, and when."""

import copy
import dataclasses
import gc
import pickle
import re
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from support.cases.watched import Watched

from casadi_hybrid import InputError, PointStatus, StopReason
from casadi_hybrid.control import (
    MPC,
    Collocation,
    Free,
    Model,
    MultipleShooting,
    OptimalControl,
    Plant,
    SingleShooting,
    simulate,
)
from casadi_hybrid.control.mpc.search import Outcome
from casadi_hybrid.solver.record.answer import altered
from casadi_hybrid.verify import verify

DT = 0.1


def cart(*, intervals=15, limit=1.5, linear=False, duration=None, wall=None, **more):
    """A cart with drag to be brought to a goal."""
    model = Model("cart")
    model.state("x", unit="m")
    v = model.state("v", lower=-limit, upper=limit, unit="m/s")
    u = model.control("force", lower=-2, upper=2, linear=linear)
    x = model.symbol("x")
    model.rates(x=v, v=u - 0.3 * v**3)
    ocp = OptimalControl(model, duration=duration or DT * intervals, intervals=intervals, **more)
    goal = ocp.reference("goal", 0.0)
    ocp.initial()
    ocp.minimize("distance", integral=(x - goal) ** 2 + 0.1 * u**2, end=5 * (x - goal) ** 2 + v**2)
    if wall is not None:
        ocp.path("room", x, upper=wall)
    return ocp


def after(x, u, dt=DT):
    """The measured state a period later, with a disturbance that the model does not know."""
    for _ in range(4):
        x = x + dt / 4 * np.array([x[1], u - 0.3 * x[1] ** 3 + 0.05])
    return x


def loop(mpc, x, steps):
    """Statuses, inputs and states of a closed loop."""
    made, states = [], [np.array(x, dtype=float)]
    for _ in range(steps):
        made.append(mpc.step(states[-1]))
        states.append(after(states[-1], made[-1]["force"]))
    return made, np.array(states)


def test_warm_step_checks_values_once():
    mpc, files = MPC(cart()), []
    loop(mpc, [1.0, 0.0], 3)

    def note(frame, event, _):
        if event == "call":
            files.append(Path(frame.f_code.co_filename).parts)

    sys.setprofile(note)
    try:
        mpc.step(np.array([0.9, 0.0]))
    finally:
        sys.setprofile(None)
    assert sum("control" in parts for parts in files) <= 60


@pytest.mark.parametrize("method", [None, Collocation(), SingleShooting()], ids=str)
def test_the_closed_loop_is_that_of_solving_every_problem_by_hand(method):
    ocp = cart(method=method)
    made, states = loop(MPC(ocp), [1.0, 0.0], 12)
    for step, x in zip(made, states, strict=False):
        by_hand = ocp.solve(x)
        assert step.status == "solved"
        assert step["force"] == pytest.approx(by_hand["force"][0], abs=1e-5)
        assert step.plan["x"] == pytest.approx(by_hand["x"], abs=1e-5)
        assert step.control.tolist() == [step["force"]]


def test_later_steps_begin_at_the_last_plan():
    made, _ = loop(MPC(cart()), [1.0, 0.0], 8)
    assert [step.record.warm for step in made] == [False] + 7 * [True]
    assert sum(step.record.iterations for step in made[1:]) < 4 * made[0].record.iterations


def test_parameters_and_times_reach_the_problem():
    ocp = cart()
    mpc = MPC(ocp)
    mpc.step([0.5, 0.0], time=1.0)
    step = mpc.step([0.4, -0.2], time=1.1, goal=lambda t: 0.1 * t)
    by_hand = ocp.solve([0.4, -0.2], time=1.1, goal=lambda t: 0.1 * t)
    assert step.plan["goal"] == pytest.approx(0.1 * step.plan.times)
    assert step["force"] == pytest.approx(by_hand["force"][0], abs=1e-6)
    assert mpc.step({"v": -0.2, "x": 0.4}, goal=0.1).record.time == pytest.approx(1.2)


MESH = np.array([0, 1, 2, 4, 7, 11, 15]) / 15


@pytest.mark.parametrize(
    ("given", "period"),
    [
        ({"method": Collocation(), "linear": True}, DT),
        ({"method": Collocation(2, "legendre")}, 2 * DT),
        ({"linear": True}, 0.37 * DT),
        ({"mesh": MESH, "intervals": 6, "duration": 1.5}, 0.13),
        ({"mesh": MESH, "intervals": 6, "duration": 1.5, "method": Collocation()}, 0.13),
    ],
)
def test_where_a_plan_is_followed_without_disturbance_the_next_begins_on_it(given, period):
    ocp = cart(**given)
    mpc = MPC(ocp)
    first = mpc.step([1.0, 0.0], time=0.0).plan
    begin = mpc._latest.moved(period)["x0"]
    moved = first.program.unpack(begin)
    then = np.minimum(first.times + period, first.times[-1])
    for name in ("x", "v"):
        assert moved[name][0] == pytest.approx(np.interp(then, first.times, first[name]), abs=1e-9)
    if given.get("linear"):
        expected = np.interp(then, first.times, first["force"])
    else:
        middle = np.minimum((first.times[:-1] + first.times[1:]) / 2 + period, first.times[-1])
        expected = first["force"][np.searchsorted(first.times, middle, side="left") - 1]
    assert moved["force"][0] == pytest.approx(expected, abs=1e-9)
    if "x inside" in moved:  # between the values at the grid points, as a smooth curve is
        inside, count = moved["x inside"][0], moved["x inside"].shape[1] // (then.size - 1)
        low, high = np.sort(np.stack((moved["x"][0][:-1], moved["x"][0][1:])), axis=0)
        known = then[1:] < first.times[-1]  # the plan does not go further
        parts = inside.reshape(-1, count)[known]
        assert (parts >= low[known, None] - 1e-3).all()
        assert (parts <= high[known, None] + 1e-3).all()


def test_multipliers_of_rows_between_the_grid_points_move_by_whole_intervals():
    ocp = cart(method=Collocation(3), intervals=4)
    ocp.path("speed", ocp.model.symbol("v"), lower=-0.3, at="inside")
    program = ocp.program
    block = program.constraints["speed inside"]
    numbers = np.zeros(program.m)
    numbers[block.where] = np.arange(8)  # two points in each of four intervals
    moved = program.shifted(program.x0, np.zeros(program.n), numbers)["lam_g0"]
    assert moved[block.where].tolist() == [2, 3, 4, 5, 6, 7, 6, 7]


def test_a_free_duration_becomes_shorter_by_the_time_that_has_gone_by():
    model = Model("double integrator")
    model.state("x")
    v = model.state("v")
    model.rates(x=v, v=model.control("force", lower=-1, upper=1))
    ocp = OptimalControl(model, duration=Free(2.0), intervals=20)
    ocp.initial()
    ocp.final(x=0, v=0)
    ocp.minimize("time", end=ocp.duration)
    mpc = MPC(ocp)
    first = mpc.step([1.0, 0.0], time=0.0)
    t = 0.31  # full force until half of the time
    assert mpc._latest.moved(t)["x0"][ocp.program.variables["duration"].where] * 2 == (
        pytest.approx(2.0 - t, abs=1e-6)
    )
    second = mpc.step([1 - t**2 / 2, -t], time=t)
    assert (first.status, second.status) == ("solved", "solved")
    assert second.plan.duration == pytest.approx(2.0 - t, abs=1e-2)


def test_few_iterations_a_step_come_to_the_loop_of_full_solves():
    full = loop(MPC(cart()), [1.0, 0.0], 15)[1]
    away = []
    for iterations in (1, 2, 4):
        made, states = loop(MPC(cart(), iterations=iterations, tolerance=1e-2), [1.0, 0.0], 15)
        assert {step.status for step in made} <= {"solved", "feasible"}
        assert all(step.record.iterations <= iterations for step in made[1:])
        away.append(np.abs(states - full).max())
    assert away[0] < 1e-2
    assert away[2] <= away[0]
    assert away[2] < 1e-6


@pytest.mark.parametrize("begin", [0.0, 0.7, 1000.1])
def test_times_that_differ_by_rounding_are_the_same_interval(begin):
    mpc = MPC(cart(linear=False))
    plan = mpc.step([1.0, 0.0], time=begin).plan
    assert np.unique(plan["force"][:8]).size == 8  # so that a wrong interval is seen
    for k in range(1, 15):
        late = mpc.step([np.nan, 0.0], time=float(np.nextafter(begin + k * DT, -np.inf)))
        assert late.status == "last plan"
        assert late["force"] == pytest.approx(plan["force"][k])
    assert mpc.step([np.nan, 0.0], time=np.nextafter(begin + 1.5, -np.inf)).status == "default"


def test_without_a_measurement_the_plan_goes_on_then_the_fallback_then_zero():
    asked = []

    def fallback(x, at):
        asked.append((x, at))
        if len(asked) == 2:
            raise ValueError("no idea")
        return {"force": 9.0} if len(asked) == 1 else [np.inf]

    mpc = MPC(cart(intervals=4), fallback=fallback)
    plan = mpc.step([1.0, 0.0]).plan
    made = [mpc.step([np.nan, 0.0]) for _ in range(6)]
    assert [step.status for step in made] == 3 * ["last plan"] + ["fallback"] + 2 * ["default"]
    assert [step["force"] for step in made[:3]] == pytest.approx(plan["force"][1:])
    assert made[3]["force"] == 2.0  # within its limits
    assert np.isnan(asked[0][0]).all()
    assert asked[0][1] == pytest.approx(0.4)
    assert [step["force"] for step in made[4:]] == [0.0, 0.0]
    assert "measured state has nan" in made[0].reason
    assert "no idea" in made[4].reason
    assert "not finite" in made[5].reason
    assert made[0].plan["x"] == pytest.approx(plan["x"])
    assert made[4].plan is None
    assert mpc.step([1.0, 0.0]).status == "solved"


def test_between_the_grid_points_a_linear_control_is_interpolated():
    mpc = MPC(cart(linear=True))
    plan = mpc.step([1.0, 0.0], time=0.0).plan
    step = mpc.step([np.nan, np.nan], time=0.234)
    assert step["force"] == pytest.approx(np.interp(0.234, plan.times, plan["force"]))


def test_the_default_is_the_middle_where_zero_is_not_allowed():
    model = Model("tank")
    level = model.state("level")
    inflow = model.control("inflow", lower=1, upper=4)
    drain = model.control("drain", lower=-1, upper=0.5)
    model.next(level=level + inflow - drain)
    ocp = OptimalControl(model, duration=3, intervals=3)
    ocp.initial()
    ocp.minimize("level", sum=level**2 + inflow**2)
    mpc = MPC(ocp)
    assert mpc.step([np.inf]).control.tolist() == [2.5, 0.0]


def watched(act, intervals=6):
    """The cart with a function of Python's in its model, and that function."""
    ocp = cart(intervals=intervals)
    function = Watched(act)
    x, v = ocp.model.symbol("x"), ocp.model.symbol("v")
    (one,) = function.call([x], False, True)
    ocp.at_end("near", one * (x**2 + v**2), upper=9.0)
    return ocp, function


def test_an_exception_in_the_model_is_a_status():
    broken = []

    def act():
        if broken:
            raise ValueError("the table has no such entry")

    ocp, _function = watched(act)
    mpc = MPC(ocp)
    assert mpc.step([1.0, 0.0]).status == "solved"
    broken.append(True)
    step = mpc.step([0.9, -0.3])
    assert step.status == "last plan"
    assert "the table has no such entry" in step.reason
    broken.clear()
    assert mpc.step([0.8, -0.3]).status == "solved"


class Breaking:
    """A solver that fails every third time, each time in another way."""

    def __init__(self, solver):
        self.solver, self.calls = solver, 0

    def within(self, *limits, **arguments):
        self.calls += 1
        found = self.solver.within(*limits, **arguments)
        if self.calls % 3:
            return found
        if self.calls % 9 == 0:
            raise MemoryError("no room")
        wrong = np.nan if self.calls % 9 == 3 else 0.01
        return dataclasses.replace(found, x=found.x + wrong)


def test_the_loop_survives_a_solver_that_fails_and_says_so():
    ocp = cart()
    ocp.__dict__["solver"] = Breaking(ocp.solver)
    made, states = loop(MPC(ocp), [1.0, 0.0], 36)
    failed = made[2::3]
    assert {step.status for step in failed} == {"last plan"}
    assert {step.status for step in made} == {"last plan", "solved"}
    assert "not finite" in failed[0].reason
    assert "violates the problem by" in failed[1].reason  # though the solver said success
    assert "no room" in failed[2].reason
    assert np.abs(states[-1]).max() < 0.2


def violation(ocp, step, x, *, limit):
    """By how much a plan of the cart violates its model, limits and start."""
    nlp = ocp.program.nlp
    check = ca.Function("rows", [nlp["x"], nlp["p"]], [nlp["g"]])
    plan = step.plan
    g = check(plan.x, plan.program.p).full().ravel()
    rows = np.concatenate((plan.program.lbg - g, g - plan.program.ubg))
    return max(
        np.abs(plan.states[:, 0] - x).max(),
        np.abs(plan["v"]).max() - limit,
        np.abs(plan["force"]).max() - 2.0,
        rows.max(),
    )


def test_a_step_is_no_later_than_the_deadline_and_one_evaluation(monkeypatch):
    deadline, now, stalls = 0.01, [0.0], np.random.default_rng(7)
    longest = [0.0]
    live = []

    def act():
        spent = 1e-3 if not live else float(stalls.choice([1e-4, 8e-4, 2e-2], p=[0.6, 0.35, 0.05]))
        longest[0] = max(longest[0], spent)
        now[0] += spent

    ocp, _function = watched(act)
    mpc = MPC(ocp, deadline=deadline)
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    x = np.array([1.0, 0.0])
    assert mpc.prepare(x).success
    live.append(True)
    statuses = set()
    for k in range(60):
        began, longest[0] = now[0], 0.0
        step = mpc.step(x)
        assert now[0] - began <= deadline + longest[0]
        assert step.record.seconds == pytest.approx(now[0] - began)
        statuses.add(step.status)
        spent = now[0]
        live.clear()
        if step.status in ("solved", "feasible"):
            assert violation(ocp, step, x, limit=1.5) < 1e-4
        live.append(True)
        now[0] = spent
        x = after(x, step["force"]) + (1.0 if k % 20 == 19 else 0.0) * np.array([0.5, 0.2])
    assert statuses >= {"solved", "last plan"}


def test_a_state_outside_its_limits_is_brought_back_and_named():
    ocp = cart(limit=0.8)
    mpc = MPC(ocp)
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


def test_without_a_feasible_point_the_softened_problem_is_first_until_there_is_one():
    mpc = MPC(cart(wall=1.0))
    step = mpc.step([1.2, 0.0])  # not limited as a state: only the solver can see it
    assert step.status == "softened"
    assert list(step.violated) == ["room"]
    assert step.violated["room"] == pytest.approx(0.2, abs=1e-5)
    assert "cannot be reduced" in step.reason or "no further progress" in step.reason
    for x in (1.199, 1.19, 1.17):
        step = mpc.step([x, -0.2])
        assert (step.status, list(step.violated)) == ("softened", ["room"])
        assert step.record.iterations < 10
    assert mpc.step([0.9, -0.3]).status == "solved"
    assert mpc.step([0.87, -0.4]).record.iterations < 10
    assert not mpc._answers._strained


@pytest.mark.parametrize("method", [None, Collocation()], ids=str)
def test_a_limit_that_is_soft_by_itself_is_no_reason_for_the_softened_problem(method):
    ocp = cart(limit=0.8, method=method, wall=1.0)
    ocp.soften("v", 5.0)
    mpc = MPC(ocp)
    assert mpc.step([1.2, -1.2]).status == "softened"
    step = mpc.step([0.9, -1.2])
    assert (step.status, mpc._answers._strained) == ("solved", False)
    assert step.plan["v"].min() < -1.0


def test_only_a_proof_has_the_softened_problem_asked_first():
    mpc = MPC(cart(wall=1.0), deadline=60.0)
    mpc.step([0.9, 0.0])
    hard = mpc._answers.search.run
    late = Outcome(unfinished=True, report={"warm": True, "iterations": 0})
    mpc._answers.search.run = lambda *_, **__: late
    assert [mpc.step([1.2, 0.0]).status for _ in range(3)] == 3 * ["last plan"]
    mpc._answers.search.run = hard
    assert mpc.step([1.2, 0.0]).status == "softened"
    mpc._answers.search.run = lambda *_, **__: late
    assert mpc.step([1.2, 0.0]).status == "softened"
    step = mpc.step([0.9, 0.0])
    assert (step.status, step.violated) == ("softened", {})
    mpc._answers.search.run = hard
    assert mpc.step([0.9, 0.0]).status == "solved"


def test_the_next_solve_begins_at_an_unfinished_point_only_while_those_come_nearer():
    mpc = MPC(cart())
    mpc.step([1.0, 0.0])
    plan = mpc._plan

    def unfinished(left):
        report = {
            "feasibility": left,
            "stationarity": 0.0,
            "complementarity": 0.0,
            "iterations": 20,
        }
        return Outcome(dataclasses.replace(plan, x=plan.x + left), lasting=True, report=report)

    course = (1e18, True), (2.0, True), (1.99, True), (3.0, True), (1.85, False), (np.nan, False)
    for left, lasts in course:
        found = unfinished(left)
        mpc._keep(found)
        assert mpc._latest is (found.plan if lasts else plan)
    mpc._keep(unfinished(1e18))
    assert mpc.step([1.0, 0.0]).status == "solved"
    assert mpc._plan is mpc._latest


@pytest.mark.parametrize("most", [9, 12])
def test_a_swing_up_that_no_step_has_time_for_is_found_over_some(most):
    """Solves that are cut after so many iterations as time would cut them, of over 14."""
    model = Model("pole")
    place, angle = model.state("place", lower=-2, upper=2), model.state("angle")
    speed, rate = model.state("speed", lower=-5, upper=5), model.state("rate")
    force = model.control("force", lower=-20, upper=20)
    sin, cos = ca.sin(angle), ca.cos(angle)
    push = (force + 0.15 * rate**2 * sin - 2.943 * sin * cos) / (1.3 - 0.3 * cos**2)
    model.rates(place=speed, angle=rate, speed=push, rate=2 * (9.81 * sin - push * cos))
    ocp = OptimalControl(model, duration=2.0, intervals=20)
    ocp.initial()
    away = 10 * (place**2 + angle**2)
    ocp.minimize("away", integral=away + 0.1 * (speed**2 + rate**2) + 0.01 * force**2, end=away)
    mpc = MPC(ocp, default=0.0)
    for search in (mpc._answers.search, mpc._answers.aid):
        search._solver = SimpleNamespace(within=partial(cut, search._solver.within, most))
    simulate(Plant(model, 0.1), mpc, steps=20, x0=[0.1, 3.0, 0.0, 0.0])
    statuses = [record.status for record in mpc.records]
    assert statuses.count("default") <= 6
    assert set(statuses[-12:]) == {"solved"}


def cut(within, most, *_, **given):
    """A solve that seems to be ended by time after so many iterations."""
    found = within(np.inf, most, **given)
    late = found.stop is StopReason.ITERATION_LIMIT
    return altered(found, stop=StopReason.TIME_LIMIT) if late else found


@pytest.mark.parametrize("late", [True, False])
def test_a_solve_that_time_has_ended_goes_on_in_the_next_step(late):
    mpc = MPC(cart())
    mpc.step([1.0, 0.0])
    search, asked = mpc._answers.search, mpc._request([1.0, 0.0], 0.1, {})[0]
    within = search._solver.within

    def ended(*_, **given):
        time.sleep(0.1 * late)  # solved, and no time is left to check it; else not a step was made
        none = {"stop": StopReason.TIME_LIMIT, "point": PointStatus.NOT_CONVERGED, "iterations": 0}
        return altered(within(**given), **({} if late else {**none, "x": given["x0"]}))

    search._solver = SimpleNamespace(within=ended)
    until = time.perf_counter() + (0.1 if late else 60.0)
    found = search.run(dataclasses.replace(asked, before=mpc._plan, until=until))
    for lasting in (True, late):  # again no step from these multipliers: the next is without
        mpc._keep(found)
        assert (found.usable, mpc._latest.lam_g.any()) == (False, lasting)
        np.testing.assert_array_equal(mpc._latest.x, found.plan.x)


def test_a_state_outside_its_limits_by_less_than_the_tolerance_is_at_them():
    mpc, same = MPC(cart(limit=0.8)), MPC(cart(limit=0.8))
    for steps in range(3):
        x = 2.0 - 0.08 * steps
        step = mpc.step([x, -0.8 - 5e-5])
        assert step.status == "solved"
        assert step.record.iterations < 20
        assert step.control == pytest.approx(same.step([x, -0.8]).control, abs=1e-9)


@pytest.mark.filterwarnings("ignore:the controller's deadline")  # longer than any step takes
def test_a_few_iterations_a_step_follow_a_goal_that_jumps():
    def closed(iterations, tolerance):
        model = Model("pendulum")
        angle, rate = model.state("angle"), model.state("rate", lower=-6, upper=6)
        torque = model.control("torque", lower=-6, upper=6)
        goal = model.reference("goal")
        model.rates(angle=rate, rate=4 * torque - 20 * ca.sin(angle))
        ocp = OptimalControl(model, duration=1.0, intervals=20)
        ocp.initial()
        ocp.minimize("error", integral=10 * (angle - goal) ** 2 + 0.1 * rate**2 + 1e-3 * torque**2)
        ocp.path("jump", torque - ocp.previous("torque"), lower=-3, upper=3)
        mpc = MPC(ocp, iterations=iterations, tolerance=tolerance, deadline=9.0, default=0.0)
        with pytest.raises(InputError, match="not given the reference 'goal'; give it as goal="):
            mpc.step([0.0, 0.0])
        with pytest.raises(InputError, match="'gaol'; did you mean 'goal'"):
            mpc.step([0.0, 0.0], gaol=1.0)
        wanted = {"goal": lambda t: 1.0 if t < 1.5 else -2.5}
        run = simulate(Plant(model, 0.05), mpc, steps=60, x0=[0, 0], parameters=wanted)
        assert f"estimator included; over the deadline: {(run.seconds > 9.0).sum()}" in str(run)
        away = run["angle"] - [wanted["goal"](t) for t in run.times]
        return float(away @ away), {record.status for record in mpc.records}

    full, _ = closed(None, 1e-4)
    for tolerance in (1e-4, 1.0):
        away, statuses = closed(1, tolerance)
        assert away < 1.02 * full
        assert statuses <= {"solved", "feasible", "softened", "last plan"}


def test_first_aid_can_be_refused():
    step = MPC(cart(limit=0.8), soften=None, deadline=60.0).step([0.9, -1.1])
    assert step.status == "default"
    assert step.violated == {}


def test_every_step_leaves_a_record():
    mpc = MPC(cart(limit=0.3))
    made, _ = loop(mpc, [1.0, 0.0], 5)
    mpc.step([np.nan, 0.0])
    assert mpc.records[:5] == [step.record for step in made]
    with pytest.raises(dataclasses.FrozenInstanceError):
        mpc.records[0].status = "solved"
    told = mpc.telemetry()
    assert told["time"] == pytest.approx(DT * np.arange(6))
    assert told["status"].tolist() == 5 * ["solved"] + ["last plan"]
    assert (told["seconds"] > 0).all()
    assert (told["violation"][:5] < 1e-6).all()
    assert np.isnan(told["objective"][5])
    assert told["objective"][0] == pytest.approx(made[0].plan.objective, rel=1e-6)
    assert "v" in told["active_names"][1]
    assert told["active"][1] >= 1
    assert set(told["engine"][:5]) <= {"c", "python"}
    assert all(told["kernel"][:5])
    lines = mpc.table().splitlines()
    assert len(lines) == 7
    assert lines[0].split()[:3] == ["time", "status", "iterations"]
    assert lines[6].endswith("the measured state has nan")
    mpc.reset()
    assert mpc.records == []
    assert not mpc.step([1.0, 0.0]).record.warm
    with pytest.raises(InputError, match="applied has 3 entries"):
        mpc.applied = [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (([1.0],), "x has 1 entries"),
        (({"x": 1.0},), "x lacks 'v'"),
        (({"x": 1.0, "V": 0.0},), "no state 'V'; did you mean 'v'"),
        (("x",), "x must be numbers, got 'x'"),
        (([1.0, 0.0], "soon"), "time must be a finite number"),
        (([1.0, 0.0], np.nan), "time must be a finite number"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_work(given, said):
    mpc = MPC(cart())
    with pytest.raises(InputError, match=said):
        mpc.step(*given)
    with pytest.raises(InputError, match=r"'gaol'.*goal"):
        mpc.step([1.0, 0.0], gaol=1.0)
    for goal in ([1.0, 2.0], "5"):
        with pytest.raises(InputError, match="value of 'goal'"):
            mpc.step([1.0, 0.0], goal=goal)
    assert mpc.records == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"deadline": 0}, "deadline must be a positive number"),
        ({"iterations": 0}, "iterations must be a whole number"),
        ({"fallback": 1.0}, "fallback must be a function"),
        ({"soften": "much"}, "soften must be"),
        ({"tolerance": -1}, "tolerance must be a positive number"),
        ({"period": "long"}, "period must be a positive number"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_name(given, said):
    with pytest.raises(InputError, match=said):
        MPC(cart(), **given)


@pytest.mark.filterwarnings("ignore:the controller's deadline")  # longer than any step takes
def test_it_is_a_controller_of_the_closed_loop():
    ocp = cart()
    mpc = MPC(ocp, deadline=60.0)
    mpc.prepare([1.0, 0.0])
    run = simulate(Plant(ocp.model, period=DT), mpc, steps=8, x0=[1.0, 0.0])
    assert [record.status for record in mpc.records] == 8 * ["solved"]
    assert all(record.warm for record in mpc.records)  # what was prepared stays
    anew = [ocp.solve(run.states[:, k])["force"][0] for k in range(8)]
    assert run["force"] == pytest.approx(anew, abs=1e-3)


def test_a_problem_has_to_fix_all_states_at_the_start():
    ocp = cart()
    ocp.fixed.pop("v")
    with pytest.raises(InputError, match=r"leaves v free at the start; call its initial\(\)"):
        MPC(ocp)
    with pytest.raises(InputError, match="ocp must be an OptimalControl or Scenarios, got Model"):
        MPC(ocp.model)


def test_no_garbage_is_collected_in_a_step_with_a_deadline():
    """A full collection takes as long as many deadlines; it waits, and is on again afterwards."""
    model = Model("integrator")
    x, u = model.state("x"), model.control("u", lower=-1, upper=1)
    model.next(x=x + u)
    ocp = OptimalControl(model, duration=3.0, intervals=3)
    ocp.initial()
    ocp.minimize("distance", sum=x**2 + u**2, end=x**2)
    seen = []
    ask = {"fallback": lambda x, t: seen.append(gc.isenabled()) or [0.0]}
    for deadline, was in ((5.0, False), (None, True)):
        mpc = MPC(ocp, deadline=deadline, **ask)
        mpc.step([np.nan])
        assert seen.pop() is was
        assert gc.isenabled()
    gc.disable()
    try:
        MPC(ocp, deadline=5.0, **ask).step([np.nan])
        assert not gc.isenabled()
        with pytest.raises(InputError):
            MPC(ocp, deadline=5.0).step([1.0, 2.0])
    finally:
        gc.enable()
    with pytest.raises(InputError):
        MPC(ocp, deadline=5.0).step([1.0, 2.0])
    assert gc.isenabled()


def test_moves_count_from_the_control_that_holds_the_plant() -> None:
    """A mass under gravity 5, held by 5: with |Δu| ≤ 1 the first control is at least 4."""
    model = Model("mass")
    x, v, u = model.state("x"), model.state("v"), model.control("u", lower=-20, upper=20)
    model.rates(x=v, v=u - 5.0)
    ocp = OptimalControl(model, duration=1.0, intervals=10)
    ocp.initial()
    ocp.minimize("distance", integral=x**2 + 0.1 * v**2 + 0.01 * (u - 5) ** 2)
    ocp.moves("u", limit=1.0)
    mpc = MPC(ocp)
    run = simulate(Plant(model, DT), mpc, steps=5, x0=[0.0, 0.0], u0=[5.0])
    assert run["u"] == pytest.approx(5.0, abs=1e-4)
    mpc.reset()
    assert mpc.step([0.0, 0.0])["u"] == pytest.approx(1.0)  # from the guess, which is zero


PLAIN = ("place", "pace", "push", "load", "room", "edge")


def named(names, method):
    """A cart with limits of all kinds under names of one's own."""
    x, v, u, load, room, edge = names
    model = Model("cart")
    place, speed = model.state(x, unit="m"), model.state(v, lower=-1, upper=1, unit="m/s")
    push, mass = model.control(u, lower=-2, upper=2), model.parameter(load, 1.0)
    model.rates({x: speed, v: push / mass})
    ocp = OptimalControl(model, duration=2.0, intervals=6, method=method)
    ocp.initial()
    ocp.minimize("cost", integral=place**2 + 0.1 * push**2)
    ocp.path(room, speed + 0.1 * push, lower=-0.5, soft=20.0, at="ends", unit="m/s")
    ocp.at_end(edge, place, upper=0.3)
    return ocp


@pytest.mark.parametrize("method", [MultipleShooting(inner=1), Collocation(2), SingleShooting()])
@pytest.mark.parametrize("names", [
    ("x", "x at end", "x at begin", "load inside", "room at end", "room"),
    ("v, lower", "v", "v between", "limits of x", "final x inside", "v, upper"),
    ("a/b", "ü\n", "a[0] inside", "initial guess", "violation of a/b, lower", "limits of limits"),
])  # fmt: skip
def test_no_name_is_taken_for_another(names, method):
    ocp, other = named(names, method), named(PLAIN, method)
    mpc, expected = MPC(ocp), MPC(other)
    for x in ([1.0, -0.2], [1.0, -0.9], [2.9, -1.2], [0.5, -0.2], [0.1, 0.0]):
        step, like = mpc.step(x), expected.step(x)
        assert (step.status, step.control.tolist()) == (like.status, like.control.tolist())
        back = dict(zip(names, PLAIN, strict=True))
        assert {back[name]: by for name, by in step.violated.items()} == like.violated
        mpc.limits({names[1]: (-0.9, 0.8), names[5]: (None, 0.25)})
        expected.limits(pace=(-0.9, 0.8), edge=(None, 0.25))
    found, theirs = (one.solve([1.0, 0.0]) for one in (ocp, other))
    assert verify(ocp, found, ipopt=False).accepted
    for name, like in zip(names, PLAIN, strict=True):
        if like in theirs.multipliers:
            assert np.array_equal(found.multipliers[name], theirs.multipliers[like])
    stuck, same = (one.solve([3.0, 0.0]) for one in (ocp, other))
    assert [(e.amount, e.unit) for e in stuck.unmet] == [(e.amount, e.unit) for e in same.unmet]


def test_names_of_the_package_are_refused():
    for name in ("[3]", "violation of x"):
        with pytest.raises(InputError, match="must not begin with"):
            Model("cart").state(name)
    with pytest.raises(InputError, match="has 'limits of v' already"):
        cart().path("limits of v", 0.0, upper=1)


def test_a_time_before_the_last_step_is_refused():
    mpc = MPC(cart())
    mpc.step([0.5, 0.0], time=1.0)
    with pytest.raises(InputError, match=r"time is 0.5, before the last step at 1.0; reset\(\)"):
        mpc.step([0.5, 0.0], time=0.5)
    assert len(mpc.records) == 1
    mpc.reset()
    assert mpc.step([0.5, 0.0], time=0.5).status == "solved"


def test_a_step_is_printed_in_one_line():
    mpc = MPC(cart(limit=1.5))
    assert str(mpc.step([0.5, 0.0])).startswith("solved at 0: force -")
    assert re.fullmatch(r"softened at 0\.1: force -?[\d.]+ \(.*\)", str(mpc.step([0.5, 2.0])))


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_controller_refuses_to_be_copied(how):
    with pytest.raises(TypeError, match="cannot be copied or pickled; make another"):
        how(MPC(cart()))
