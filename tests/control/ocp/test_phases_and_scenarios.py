"""Phases one after the other and scenarios side by side, held against programs in one piece."""

import casadi as ca
import numpy as np
import pytest
from support.cases.ocps import stated
from support.judges.refusals import assert_refused

from casadi_hybrid import InputError
from casadi_hybrid.control import Free, Model, OptimalControl, Phases, Saved, Scenarios, branches
from casadi_hybrid.control.solution.solution import Solution


def cart(name="cart", drag=0.2, **control):
    model = Model(name)
    model.state("x")
    v = model.state("v")
    u = model.control("u", **{"lower": -2, "upper": 2, **control})
    k = model.parameter("drag", drag)
    model.rates(x=v, v=u - k * v * ca.sqrt(1 + v**2))
    return model


def effort(duration, intervals, **control):
    model = cart(**control)
    cost = model.symbol("u") ** 2 + 0.1 * (model.symbol("x") - 1) ** 2
    return stated(model, None, integral=cost, duration=duration, intervals=intervals)


def whole_and_parts(**control):
    parts = effort(2.0, 12, **control), effort(0.5, 3, **control), effort(1.5, 9, **control)
    whole, first, second = parts
    for ocp in (whole, first):
        ocp.initial(x=0, v=0)
    for ocp in (whole, second):
        ocp.final(x=1, v=0)
    return parts


def test_horizon_cut_in_two_equals_the_whole():
    whole, first, second = whole_and_parts()
    for ocp in (whole, first, second):
        ocp.moves("u", price=0.02, limit=0.7)
    joint = Phases({"first": first, "second": second})
    alone, found = whole.solve(), joint.solve()
    assert alone.success
    assert found.success
    assert found.objective == pytest.approx(alone.objective, rel=1e-8)
    both = np.concatenate((found["first"]["u"], found["second"]["u"]))
    np.testing.assert_allclose(both, alone["u"], atol=1e-6)
    # The multiplier of the link is that of the dynamics of the interval before it.
    links = np.concatenate(list(found.links.values()))
    np.testing.assert_allclose(links, alone.multipliers["dynamics"][:, 2], atol=1e-6)
    assert (found["second"].times[0], found.duration) == pytest.approx((0.5, 2.0))
    with pytest.raises(InputError, match="'u_previous' is the last control of the phase before"):
        joint.numbers(second={"u_previous": 1.0})
    assert joint.solve(u_previous=0.5)["first"]["u"][0] > found["first"]["u"][0] + 0.01
    whole, first, second = whole_and_parts(linear=True)  # may jump between the phases
    jumping = Phases({"first": first, "second": second}).solve()
    assert jumping.objective <= whole.solve().objective + 1e-9


def test_jump_states_where_a_phase_begins():
    heavy, light = Model("two stages"), Model("one stage")
    heavy.state("height")
    v, m, u = heavy.state("v"), heavy.state("mass", guess=2.0), heavy.control("u", lower=0, upper=3)
    heavy.rates(height=v, v=u / m - 0.5, mass=-0.1 * u)
    height, w = light.state("height"), light.state("v")
    light.rates(height=w, v=light.control("u", lower=0, upper=1) - 0.5)
    one, two = (OptimalControl(m, duration=1.0, intervals=8) for m in (heavy, light))
    one.initial(height=0, v=0, mass=2)
    two.minimize("height", end=-height)
    joint = Phases({"one": one, "two": two})
    joint.jump("two", v=v - 0.25 * m)
    found = joint.solve()
    assert found.success
    before, after = found["one"], found["two"]
    assert after["v"][0] == pytest.approx(before["v"][-1] - 0.25 * before["mass"][-1], abs=1e-8)
    assert after["height"][0] == pytest.approx(before["height"][-1], abs=1e-8)
    np.testing.assert_allclose(after["u"], 1.0, atol=1e-6)  # full thrust to the end


def test_free_durations_follow_one_another():
    """The speed at the switch: v²/4 + v²/2 = 1."""
    legs = (cart(drag=0.0, lower=-most) for most in (2.0, 1.0))
    go, stop = (OptimalControl(leg, duration=Free(1.0), intervals=6) for leg in legs)
    go.initial(x=0, v=0)
    stop.final(x=1, v=0)
    go.minimize("time", end=go.duration)
    stop.minimize("time", end=stop.duration)
    go.path("only drives", go.model.symbol("u"), lower=0.0)
    stop.path("only brakes", stop.model.symbol("u"), upper=0.0)
    found = Phases({"go": go, "stop": stop}).solve()
    speed = np.sqrt(4 / 3)
    assert found.objective == pytest.approx(speed / 2 + speed, rel=1e-7)
    assert found["stop"].times[0] == pytest.approx(found["go"].times[-1])


def steered(varying=False, duration=2.0, linear=False):
    model = Model("first order")
    x, u = model.state("x"), model.control("u", lower=-2, upper=2, linear=linear)
    k = model.reference("k", 1.0) if varying else model.parameter("k", 1.0)
    model.rates(x=-k * x + u)
    ocp = stated(model, integral=(x - 1) ** 2 + 0.1 * u**2, duration=duration)
    ocp.path("top", x, upper=0.8)
    return ocp


def test_scenarios_equal_a_program_by_hand():
    y, u, k = ca.SX.sym("y", 2), ca.SX.sym("u"), ca.SX.sym("k")  # y: the state and its cost
    rates, given = ca.vertcat(-k * y[0] + u, (y[0] - 1) ** 2 + 0.1 * u**2), ca.vertcat(u, k)
    step = ca.simpleRK(ca.Function("rates", [y, given], [rates]), 1)
    opti, total = ca.Opti(), 0
    first = opti.variable()
    for weight, rate in ((0.5, 1.0), (0.3, 0.5), (0.2, 1.5)):
        controls, state = ca.vertcat(first, opti.variable(9)), ca.MX(2, 1)
        opti.subject_to(opti.bounded(-2, controls, 2))
        for i in range(10):
            state = step(state, ca.vertcat(controls[i], rate), 0.2)
            opti.subject_to(state[0] <= 0.8)
        total += weight * state[1]
    opti.minimize(total)
    opti.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes", "tol": 1e-10})
    by_hand = opti.solve()
    scenarios = {"nominal": {}, "slow": {"k": 0.5}, "fast": {"k": 1.5}}
    found = Scenarios(steered(), scenarios, weights=[5, 3, 2]).solve(x0=0.0)  # of one in all
    assert found.success
    assert found.objective == pytest.approx(by_hand.value(total), rel=1e-6)
    assert found.controls[0, 0] == pytest.approx(by_hand.value(first), abs=1e-5)
    assert max(part["x"].max() for part in found.parts.values()) <= 0.8 + 1e-6


def test_scenarios_share_controls_while_indistinguishable():
    tree = branches({"k": [1.0, 0.5, 1.5]}, 10, depth=2)
    found = Scenarios(steered(varying=True), tree).solve(x0=0.0)
    assert found.success
    controls = np.array([part["u"] for part in found.parts.values()])
    assert controls.shape == (9, 10)
    spread = np.ptp(controls.reshape(3, 3, 10), axis=1)  # of the scenarios with one first branch
    assert np.ptp(controls[:, 0]) < 1e-8
    assert spread[:, 1].max() < 1e-8
    assert np.ptp(controls[::3, 1]) > 1e-3
    assert spread[:, 2].min() > 1e-3
    # All differ from the first interval on where the parameters are constant.
    at_once = Scenarios(steered(), branches({"k": [1.0, 0.5, 1.5]}, 10), shared=3).solve(x0=0.0)
    controls = np.array([part["u"] for part in at_once.parts.values()])
    assert np.ptp(controls[:, :3], axis=0).max() < 1e-8 < np.ptp(controls[:, 3])
    ramps = Scenarios(steered(linear=True), {"a": {}, "b": {"k": 0.5}}).solve(x0=0.0)
    apart = np.abs(ramps["a"]["u"] - ramps["b"]["u"])
    assert apart[:2].max() < 1e-8 < apart[2]  # at both ends of the first interval


def test_parameters_of_a_solve_reach_the_parts():
    joint = Scenarios(steered(), {"a": {}, "b": {"k": 0.5}})
    solver, found = joint.solver, joint.solve(x0=0.0, b={"k": 0.25})
    assert joint.solver is solver
    np.testing.assert_allclose([found["a"]["k"], found["b"]["k"]], [1.0, 0.25])
    assert joint.solve(x0=0.0, guess=found, b={"k": 0.25}).iterations <= 2
    less, at, more = (joint.solve(x0=x0)["a"] for x0 in (0.5999, 0.6, 0.6001))
    slope = at.sensitivity("initial x")["u"]  # of both parts, which begin at one number
    np.testing.assert_allclose(slope, (more["u"] - less["u"]) / 2e-4, atol=1e-3)
    both = Phases({"a": steered(True), "b": steered(True)}).numbers(0.0, time=1.0, k=lambda t: t)
    np.testing.assert_allclose(both.p[both.parameters["b/k"].where], np.linspace(3, 5, 11))


def test_bad_phases_and_scenarios_are_refused():
    def of(given, **more):
        return Scenarios(steered(), given, **more)

    other = Model("other")
    y = other.state("y")
    other.rates(y=-y)
    legs = Phases({"one": effort(1.0, 4), "two": OptimalControl(other, duration=1.0, intervals=4)})
    late = Phases({"one": steered(duration=Free(2.0)), "two": steered(True)})
    assert_refused(
        (lambda: of({"a": {"kk": 1.0}}), "no parameter 'kk'; did you mean 'k'"),
        (lambda: of({"a": {}, "b": {}}, weights=[1, -1]), "weights must be 2 positive numbers"),
        (lambda: of({"a": {}}, shared=11), "shared must be an integer from 1 to 10"),
        (lambda: of([{"k": 1.0}]), "scenarios must be a dictionary by name, got list"),
        (lambda: of({"a": {}, "b": {"k": abs}}).solve(0.0), "'a' and 'b' .* 'k' by a function of"),
        (lambda: Phases({}), "at least one part"),
        (lambda: of({"a": {}}).solve(), "x of first order has no number at the start"),
        (lambda: late.numbers(0.0, two={"k": abs}), "'k' cannot be a function of time"),
        (legs.solve, "no state connects 'one' and 'two'"),
        (lambda: legs.jump("one", x=0), "'one' is the first phase"),
        (lambda: legs.jump("two", y=y), "'y' at the start of 'two', in symbols of 'one', has 'y'"),
    )


def two_legs():
    parts = {}
    for name, goal in (("out", 0.3), ("back", 0.0)):
        model = cart(name)
        if name == "back":
            model.output("twice", 2 * model.symbol("x"), unit="m")
        effort = model.symbol("u") ** 2
        parts[name] = stated(model, None, {"x": goal}, integral=effort, intervals=4)
    parts["out"].initial(x=0, v=0)
    return Phases(parts)


def test_joint_solution_is_saved_and_loaded(tmp_path):
    phases = two_legs()
    found = phases.solve()
    path = found.save(tmp_path / "deep" / "tour")
    again, light = Solution.load(path, two_legs()), Saved.read(path)
    assert path.name == "tour.npz"
    assert (again.success, again.objective) == (True, pytest.approx(found.objective, rel=1e-12))
    for leg in ("out", "back"):
        np.testing.assert_array_equal(again[leg]["x"], found[leg]["x"])
        np.testing.assert_array_equal(again[leg].times, found[leg].times)
    np.testing.assert_array_equal(again.lam_g, found.lam_g)
    np.testing.assert_array_equal(light["back/twice"], 2 * found["back"]["x"])
    np.testing.assert_array_equal(light["back/times"], found["back"].times)
    assert light.units["back/twice"] == "m"
    with pytest.raises(InputError, match="not laid out as"):
        Solution.load(path, Scenarios(phases.parts["out"], {"a": {}, "b": {"drag": 0.3}}))
    phases = two_legs()
    phases.parts["back"].minimize("more", end=phases.parts["back"].model.symbol("v") ** 2)
    with pytest.raises(InputError, match="the objective is"):
        Solution.load(path, phases)


def test_joint_solution_is_drawn_by_part():
    places, twice = two_legs().solve().plot(["x", "twice"]).axes
    assert (places.get_ylabel(), twice.get_ylabel()) == ("x", "twice (m)")
    lines = [line for line in places.get_lines() if line.get_linestyle() == "-"]
    curves = [line for line in lines if len(line.get_xdata()) > 1]
    assert len({line.get_color() for line in curves}) == 2
    assert max(line.get_xdata()[-1] for line in curves) == 2.0
    assert {text.get_text() for text in places.figure.legends[0].get_texts()} >= {"out", "back"}
