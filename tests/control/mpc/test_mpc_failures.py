"""Predictive control without a solve in time: lost measurements, errors, deadlines."""

import dataclasses
import gc
import time

import casadi as ca
import numpy as np
import pytest
from support.cases.controllers import DT, Solves, cart, closed_loop, next_state
from support.cases.ocps import stated
from support.cases.watched import Watched

from casadi_hybrid import InputError, PointStatus, SolveError, StopReason
from casadi_hybrid.control import MPC, Model, Plant, simulate
from casadi_hybrid.solver.record.answer import altered

UNFINISHED = {"stop": StopReason.TIME_LIMIT, "point": PointStatus.NOT_CONVERGED}


def test_lost_measurements_end_in_fallback_then_default():
    asked, answers = [], iter([{"force": 9.0}, ValueError("no idea"), [np.inf]])

    def fallback(x, at):
        asked.append((x, at))
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    mpc = MPC(cart(intervals=4), fallback=fallback)
    plan = mpc.step([1.0, 0.0]).plan
    steps = [mpc.step([np.nan, 0.0]) for _ in range(6)]
    assert [step.status for step in steps] == 3 * ["last plan"] + ["fallback"] + 2 * ["default"]
    # The fallback's 9 is brought within the limits.
    assert [step["force"] for step in steps] == pytest.approx([*plan["force"][1:], 2.0, 0.0, 0.0])
    assert (np.isnan(asked[0][0]).all(), asked[0][1]) == (True, pytest.approx(0.4))
    for step, words in ((steps[0], "nan"), (steps[4], "no idea"), (steps[5], "not finite")):
        assert words in step.reason
    assert (steps[0].plan["x"].tolist(), steps[4].plan) == (plan["x"].tolist(), None)
    assert mpc.step([1.0, 0.0]).status == "solved"


@pytest.mark.parametrize("begin", [0.0, 1000.1])
def test_rounded_times_are_the_same_interval(begin):
    mpc = MPC(cart())
    plan = mpc.step([1.0, 0.0], time=begin).plan
    assert np.unique(plan["force"][:8]).size == 8  # so that a wrong interval is seen
    for k in range(1, 15):
        late = mpc.step([np.nan, 0.0], time=float(np.nextafter(begin + k * DT, -np.inf)))
        assert late.status == "last plan"
        assert late["force"] == pytest.approx(plan["force"][k])
    assert mpc.step([np.nan, 0.0], time=np.nextafter(begin + 1.5, -np.inf)).status == "default"
    mpc = MPC(cart(linear=True))
    plan = mpc.step([1.0, 0.0], time=0.0).plan
    late = mpc.step([np.nan, np.nan], time=0.234)
    assert late["force"] == pytest.approx(np.interp(0.234, plan.times, plan["force"]))


def test_default_is_the_middle_of_positive_limits():
    model = Model("tank")
    level = model.state("level")
    inflow = model.control("inflow", lower=1, upper=4)
    drain = model.control("drain", lower=-1, upper=0.5)
    model.next(level=level + inflow - drain)
    ocp = stated(model, sum=level**2 + inflow**2, duration=3, intervals=3)
    assert MPC(ocp).step([np.inf]).control.tolist() == [2.5, 0.0]


def watched(act):
    ocp, function = cart(intervals=6), Watched(act)
    x, v = ocp.model.symbol("x"), ocp.model.symbol("v")
    (factor,) = function.call([x], False, True)
    ocp.at_end("near", factor * (x**2 + v**2), upper=9.0)
    return ocp, function


def test_exception_in_the_model_is_a_status():
    broken = []

    def act():
        if broken:
            raise ValueError("the table has no such entry")

    ocp, _function = watched(act)
    mpc = MPC(ocp)
    assert mpc.step([1.0, 0.0]).status == "solved"
    broken.append(True)
    step = mpc.step([0.9, -0.3])
    assert (step.status, "the table has no such entry" in step.reason) == ("last plan", True)
    broken.clear()
    assert mpc.step([0.8, -0.3]).status == "solved"


def test_loop_survives_a_failing_solver(monkeypatch):
    ocp, calls = cart(), []

    def failing(solve, limits, arguments):
        result = solve(*limits, **arguments)
        calls.append(result)
        count = len(calls)
        if count % 9 == 0:
            raise MemoryError("no room")
        wrong = {3: np.nan, 6: 0.01}.get(count % 9, 0.0)
        return dataclasses.replace(result, x=result.x + wrong)

    Solves(monkeypatch).disturb(failing, ocp.solver)
    steps, states = closed_loop(MPC(ocp), [1.0, 0.0], 36)
    failed = steps[2::3]
    assert {step.status for step in failed} == {"last plan"}
    assert {step.status for step in steps} == {"last plan", "solved"}
    reasons = "not finite", "violates the problem", "no room"  # though the solver said success
    assert all(word in step.reason for word, step in zip(reasons, failed, strict=False))
    assert np.abs(states[-1]).max() < 0.2


def violation(ocp, plan, x):
    """The largest violation of model, limits and start by a plan of the cart."""
    nlp, program = ocp.program.nlp, plan.program
    rows = ca.Function("rows", [nlp["x"], nlp["p"]], [nlp["g"]])
    g = rows(plan.x, program.p).full().ravel()
    excess = np.concatenate((program.lbg - g, g - program.ubg))
    limits = np.abs(plan["v"]).max() - 1.5, np.abs(plan["force"]).max() - 2.0
    return max(np.abs(plan.states[:, 0] - x).max(), excess.max(), *limits)


def test_step_ends_an_evaluation_after_the_deadline(monkeypatch):
    """Evaluations of 0.1 to 20 ms by a clock of the test, one of 1 ms outside the loop."""
    deadline, now, longest, live = 0.01, [0.0], [0.0], []
    stalls = np.random.default_rng(7)

    def act():
        spent = float(stalls.choice([1e-4, 8e-4, 2e-2], p=[0.5, 0.3, 0.2])) if live else 1e-3
        longest[0] = max(longest[0], spent)
        now[0] += spent

    ocp, _function = watched(act)
    mpc = MPC(ocp, deadline=deadline)
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    x = np.array([1.0, 0.0])
    assert mpc.prepare(x).success
    statuses = set()
    for k in range(60):
        live.append(True)
        began, longest[0] = now[0], 0.0
        step = mpc.step(x)
        spent = now[0] - began
        live.clear()
        assert spent <= deadline + longest[0]
        assert step.record.seconds == pytest.approx(spent)
        statuses.add(step.status)
        if step.status in ("solved", "feasible"):
            assert violation(ocp, step.plan, x) < 1e-4
        now[0] = began + spent
        x = next_state(x, step["force"]) + (k % 20 == 19) * np.array([0.5, 0.2])
    assert statuses >= {"solved", "last plan"}


def test_only_a_proof_softens_the_next_step(monkeypatch):
    mpc, solves = MPC(cart(wall=1.0), deadline=60.0), Solves(monkeypatch)
    mpc.step([0.9, 0.0])

    def late(solve, limits, arguments):
        raise SolveError("out of time", None)

    solves.disturb(late, mpc.ocp.solver)
    assert [mpc.step([1.2, 0.0]).status for _ in range(3)] == 3 * ["last plan"]
    solves.disturb(None)
    assert mpc.step([1.2, 0.0]).status == "softened"
    solves.disturb(late, mpc.ocp.solver)
    assert mpc.step([1.2, 0.0]).status == "softened"
    for _ in range(2):
        step = mpc.step([0.9, 0.0])
        assert (step.status, step.violated) == ("softened", {})
    solves.disturb(None)
    assert mpc.step([0.9, 0.0]).status == "solved"


def unfinished(result, offset, residual):
    x, residuals = result.x + offset, dataclasses.replace(result.residuals, feasibility=residual)
    point = {"x": x, "last": {**result.last, "x0": x}, "residuals": residuals, "iterations": 20}
    return altered(result, **point, **UNFINISHED)


def test_solves_go_on_only_while_they_approach(monkeypatch):
    """Points 10 to 70 away, by their residual; those that gain too little go on twice."""
    residual_at = {10: 1e18, 20: 2.0, 30: 1.99, 40: 3.0, 50: 1.85, 60: np.nan, 70: 1e18}
    begun_at, offsets = {}, iter(residual_at)

    def away(solve, limits, arguments):
        offset = next(offsets)
        begun_at[offset] = round(float(np.median(arguments["x0"])), -1)
        return unfinished(solve(*limits, **arguments), offset, residual_at[offset])

    mpc, solves = MPC(cart(), soften=None), Solves(monkeypatch)
    mpc.step([1.0, 0.0])
    solves.disturb(away)
    for _ in residual_at:
        assert mpc.step([1.0, 0.0]).status == "last plan"
    assert begun_at == {10: 0, 20: 10, 30: 20, 40: 30, 50: 40, 60: 0, 70: 0}
    solves.disturb(None)
    assert mpc.step([1.0, 0.0]).status == "solved"

    def vain(solve, limits, arguments):
        return unfinished(solve(*limits, **arguments), 1.0, 1.0)

    mpc = MPC(cart())  # whose softened problem comes next
    mpc.step([1.0, 0.0])
    solves.disturb(vain, mpc.ocp.solver)
    statuses = [mpc.step([1.0, 0.0]).status for _ in range(5)]
    assert statuses == 4 * ["last plan"] + ["softened"]


@pytest.mark.parametrize("solved", [True, False])
def test_solve_ended_by_time_goes_on(solved, monkeypatch):
    """Solved but unchecked, or without a step: then the next solve but one has no multipliers."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    mpc, solves = MPC(cart(), deadline=1.0, soften=None), Solves(monkeypatch)
    mpc.step([1.0, 0.0])

    def ended(solve, limits, arguments):
        result = solve(*limits, **arguments)
        now[0] += 1.0
        if not solved:
            begin = {name: arguments[name] for name in ("x0", "lam_x0", "lam_g0")}
            residuals = dataclasses.replace(result.residuals, feasibility=1.0)
            point = {"x": arguments["x0"], "last": begin, "residuals": residuals}
            result = altered(result, **point, **UNFINISHED, iterations=0)
        return result

    solves.disturb(ended)
    for with_multipliers in (True, True, solved):
        assert mpc.step([1.0, 0.0]).status == "last plan"
        assert solves.arguments[-1]["lam_g0"].any() == with_multipliers


@pytest.mark.parametrize("most", [9, 12])
def test_swing_up_is_found_over_several_steps(most, monkeypatch):
    """Solves that are cut after so many iterations as time would cut them, of over 14."""
    model = Model("pole")
    place, angle = model.state("place", lower=-2, upper=2), model.state("angle")
    speed, rate = model.state("speed", lower=-5, upper=5), model.state("rate")
    force = model.control("force", lower=-20, upper=20)
    sin, cos = ca.sin(angle), ca.cos(angle)
    push = (force + 0.15 * rate**2 * sin - 2.943 * sin * cos) / (1.3 - 0.3 * cos**2)
    model.rates(place=speed, angle=rate, speed=push, rate=2 * (9.81 * sin - push * cos))
    away = 10 * (place**2 + angle**2)
    costs = {"integral": away + 0.1 * (speed**2 + rate**2) + 0.01 * force**2, "end": away}
    ocp = stated(model, duration=2.0, intervals=20, **costs)

    def cut(solve, _, arguments):
        result = solve(np.inf, most, **arguments)
        late = result.stop is StopReason.ITERATION_LIMIT
        return altered(result, stop=StopReason.TIME_LIMIT) if late else result

    mpc = MPC(ocp, default=0.0)
    Solves(monkeypatch).disturb(cut)
    simulate(Plant(model, 0.1), mpc, steps=20, x0=[0.1, 3.0, 0.0, 0.0])
    statuses = [record.status for record in mpc.records]
    assert statuses.count("default") <= 6
    assert set(statuses[-12:]) == {"solved"}


@pytest.mark.parametrize(
    ("deadline", "enabled", "during"), [(5.0, True, False), (None, True, True), (5.0, False, False)]
)
def test_garbage_waits_for_steps_with_deadline(deadline, enabled, during):
    collects = []
    mpc = MPC(cart(), deadline=deadline, fallback=lambda x, t: collects.append(gc.isenabled()))
    try:
        (gc.enable if enabled else gc.disable)()
        mpc.step([np.nan, 0.0])
        assert (collects, gc.isenabled()) == ([during], enabled)
        with pytest.raises(InputError):
            mpc.step([1.0])
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
