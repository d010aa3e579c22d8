"""Phases one after the other and scenarios side by side, held against programs in one piece."""

from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import InputError
from casadi_hybrid.control import Free, Model, OptimalControl, Phases, Saved, Scenarios, branches
from casadi_hybrid.control.solution.solution import Solution


def cart(name="cart", drag=0.2, **signals):
    model = Model(name)
    model.state("x")
    v = model.state("v")
    u = model.control("u", **{"lower": -2, "upper": 2, **signals})
    k = model.parameter("drag", drag)
    model.rates(x=v, v=u - k * v * ca.sqrt(1 + v**2))
    return model


def effort(model, duration, intervals):
    ocp = OptimalControl(model, duration=duration, intervals=intervals)
    x, u = model.symbol("x"), model.symbol("u")
    ocp.minimize("effort", integral=u**2 + 0.1 * (x - 1) ** 2)
    return ocp


@pytest.mark.parametrize("linear", [False, True])
def test_a_horizon_cut_in_two_has_the_answer_of_the_whole(linear: bool) -> None:
    whole = effort(cart(linear=linear), 2.0, 12)
    first, second = effort(cart(linear=linear), 0.5, 3), effort(cart(linear=linear), 1.5, 9)
    for ocp in (whole, first):
        ocp.initial(x=0, v=0)
    for ocp in (whole, second):
        ocp.final(x=1, v=0)
    for ocp in () if linear else (whole, first, second):
        ocp.moves("u", price=0.02, limit=0.7)
    joint = Phases({"first": first, "second": second})
    if linear:  # a control that runs linearly has no jump between the phases of the whole
        joint_cost = joint.solve().objective
        assert joint_cost <= whole.solve().objective + 1e-9
        return
    alone, found = whole.solve(), joint.solve()
    assert alone.success
    assert found.success
    assert found.objective == pytest.approx(alone.objective, rel=1e-8)
    both = np.concatenate((found["first"]["u"], found["second"]["u"]))
    np.testing.assert_allclose(both, alone["u"], atol=1e-6)
    # The multiplier of the link is that of the dynamics of the interval before it.
    links = np.concatenate(list(found.links.values()))
    np.testing.assert_allclose(links, alone.multipliers["dynamics"][:, 2], atol=1e-6)
    assert found["second"].times[0] == pytest.approx(0.5)
    assert found.duration == pytest.approx(2.0)
    with pytest.raises(InputError, match="'u_previous' is the last control of the phase before"):
        joint.numbers(second={"u_previous": 1.0})
    assert joint.solve(u_previous=0.5)["first"]["u"][0] > found["first"]["u"][0] + 0.01


def test_a_jump_says_where_a_phase_begins() -> None:
    heavy = Model("two stages")
    heavy.state("height")
    v, m, u = heavy.state("v"), heavy.state("mass", guess=2.0), heavy.control("u", lower=0, upper=3)
    heavy.rates(height=v, v=u / m - 0.5, mass=-0.1 * u)
    light = Model("one stage")
    light.state("height")
    w, u2 = light.state("v"), light.control("u", lower=0, upper=1)
    light.rates(height=w, v=u2 - 0.5)
    one = OptimalControl(heavy, duration=1.0, intervals=8)
    two = OptimalControl(light, duration=1.0, intervals=8)
    one.initial(height=0, v=0, mass=2)
    two.minimize("height", end=-light.symbol("height"))
    joint = Phases({"one": one, "two": two})
    joint.jump("two", v=heavy.symbol("v") - 0.25 * heavy.symbol("mass"))
    found = joint.solve()
    assert found.success
    after = found["one"]["v"][-1] - 0.25 * found["one"]["mass"][-1]
    assert found["two"]["v"][0] == pytest.approx(after, abs=1e-8)
    assert found["two"]["height"][0] == pytest.approx(found["one"]["height"][-1], abs=1e-8)
    np.testing.assert_allclose(found["two"]["u"], 1.0, atol=1e-6)  # full thrust to the end


def test_free_durations_follow_one_another() -> None:
    legs = (cart(drag=0.0, lower=-most) for most in (2.0, 1.0))
    go, stop = (OptimalControl(leg, duration=Free(1.0), intervals=6) for leg in legs)
    go.initial(x=0, v=0)
    stop.final(x=1, v=0)
    go.minimize("time", end=go.duration)
    stop.minimize("time", end=stop.duration)
    go.path("only drives", go.model.symbol("u"), lower=0.0)
    stop.path("only brakes", stop.model.symbol("u"), upper=0.0)
    found = Phases({"go": go, "stop": stop}).solve()
    # v at the switch: v²/4 + v²/2 = 1.
    speed = np.sqrt(4 / 3)
    assert found.objective == pytest.approx(speed / 2 + speed, rel=1e-7)
    assert found["stop"].times[0] == pytest.approx(found["go"].times[-1])


def steered(varying: bool = False, duration: Any = 2.0, linear: bool = False):
    model = Model("first order")
    x, u = model.state("x"), model.control("u", lower=-2, upper=2, linear=linear)
    k = model.reference("k", 1.0) if varying else model.parameter("k", 1.0)
    model.rates(x=-k * x + u)
    ocp = OptimalControl(model, duration=duration, intervals=10)
    ocp.initial()
    ocp.minimize("error", integral=(x - 1) ** 2 + 0.1 * u**2)
    ocp.path("top", x, upper=0.8)
    return ocp


def test_scenarios_against_a_program_written_by_hand() -> None:
    weights, rates = (0.5, 0.3, 0.2), (1.0, 0.5, 1.5)
    opti, total = ca.Opti(), 0
    first, h = opti.variable(), 0.2
    for weight, k in zip(weights, rates, strict=True):
        u = ca.vertcat(first, opti.variable(9))
        opti.subject_to(opti.bounded(-2, u, 2))
        x, cost = ca.MX(0), 0
        states = [x]
        for i in range(10):
            y = ca.vertcat(x, 0)
            rate = lambda y, u=u[i], k=k: ca.vertcat(-k * y[0] + u, (y[0] - 1) ** 2 + 0.1 * u**2)  # noqa: E731
            a = rate(y)
            b = rate(y + h / 2 * a)
            c = rate(y + h / 2 * b)
            y = y + h / 6 * (a + 2 * b + 2 * c + rate(y + h * c))
            x, cost = y[0], cost + y[1]
            states.append(x)
        opti.subject_to(ca.vertcat(*states) <= 0.8)
        total = total + weight * cost
    opti.minimize(total)
    opti.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes", "tol": 1e-10})
    by_hand = opti.solve()
    scenarios = {"nominal": {}, "slow": {"k": 0.5}, "fast": {"k": 1.5}}
    found = Scenarios(steered(), scenarios, weights=[5, 3, 2]).solve(x0=0.0)  # of one in all
    assert found.success
    assert found.objective == pytest.approx(by_hand.value(total), rel=1e-6)
    assert found.controls[0, 0] == pytest.approx(by_hand.value(first), abs=1e-5)
    for part in found.parts.values():
        assert part["x"].max() <= 0.8 + 1e-6


def test_scenarios_share_controls_until_they_can_be_told_apart() -> None:
    tree = branches({"k": [1.0, 0.5, 1.5]}, 10, depth=2)
    found = Scenarios(steered(varying=True), tree).solve(x0=0.0)
    assert found.success
    assert len(found.parts) == 9
    controls = np.array([part["u"] for part in found.parts.values()])
    np.testing.assert_allclose(controls[:, 0], controls[0, 0], atol=1e-8)
    second = controls[:, 1].reshape(3, 3)
    np.testing.assert_allclose(second, second[:, :1] * np.ones((1, 3)), atol=1e-8)
    assert np.ptp(second[:, 0]) > 1e-3
    assert all(np.ptp(row) > 1e-3 for row in controls[:, 2].reshape(3, 3))
    # All differ from the first interval on where the parameters are constant.
    at_once = Scenarios(steered(), branches({"k": [1.0, 0.5, 1.5]}, 10), shared=3).solve(x0=0.0)
    controls = np.array([part["u"] for part in at_once.parts.values()])
    assert np.ptp(controls[:, :3], axis=0).max() < 1e-8 < np.ptp(controls[:, 3])
    ramps = Scenarios(steered(linear=True), {"a": {}, "b": {"k": 0.5}}).solve(x0=0.0)
    apart = np.abs(ramps["a"]["u"] - ramps["b"]["u"])
    assert apart[:2].max() < 1e-8 < apart[2]  # at both ends of the first interval


def test_parameters_of_a_solve_reach_the_parts() -> None:
    joint = Scenarios(steered(), {"a": {}, "b": {"k": 0.5}})
    solver = joint.solver
    found = joint.solve(x0=0.0, b={"k": 0.25})
    assert joint.solver is solver
    np.testing.assert_allclose(found["b"]["k"], 0.25)
    np.testing.assert_allclose(found["a"]["k"], 1.0)
    assert str(found).startswith(f"Solved in {found.iterations} iterations: objective ")
    again = joint.solve(x0=0.0, guess=found, b={"k": 0.25})
    assert again.iterations <= 2
    less, at, more = (joint.solve(x0=x0)["a"] for x0 in (0.5999, 0.6, 0.6001))
    slope = at.sensitivity("initial x")["u"]  # of both parts, which begin at one number
    np.testing.assert_allclose(slope, (more["u"] - less["u"]) / 2e-4, atol=1e-3)
    both = Phases({"a": steered(True), "b": steered(True)}).numbers(0.0, time=1.0, k=lambda t: t)
    np.testing.assert_allclose(both.p[both.parameters["b/k"].where], np.linspace(3, 5, 11))


def test_refusals_name_what_is_wrong() -> None:
    def of(given: Any, **more: Any) -> Scenarios:
        return Scenarios(steered(), given, **more)

    other = Model("other")
    y = other.state("y")
    other.rates(y=-y)
    one, two = effort(cart(), 1.0, 4), OptimalControl(other, duration=1.0, intervals=4)
    legs = Phases({"one": one, "two": two})
    late = Phases({"one": steered(duration=Free(2.0)), "two": steered(True)})
    for call, words in (
        (lambda: of({"a": {"kk": 1.0}}), "no parameter 'kk'; did you mean 'k'"),
        (lambda: of({"a": {}, "b": {}}, weights=[1, -1]), "weights must be 2 positive numbers"),
        (lambda: of({"a": {}}, shared=11), "shared must be an integer from 1 to 10"),
        (lambda: of([{"k": 1.0}]), "scenarios must be a dictionary by name, got list"),
        (lambda: of({"a": [1.0]}), "scenario 'a' must be a dictionary by name, got list"),
        (lambda: of({"a": {}, "b": {"k": abs}}).solve(0.0), "'a' and 'b' .* 'k' by a function of"),
        (lambda: Phases({}), "at least one part"),
        (lambda: of({"a": {}}).solve(0.0, c=1.0), "no part of first order has a parameter 'c'"),
        (lambda: of({"a": {}}).solve(), "x of first order has no number at the start"),
        (lambda: late.numbers(0.0, two={"k": abs}), "'k' cannot be a function of time"),
        (legs.solve, "no state connects 'one' and 'two'"),
        (lambda: legs.jump("one", x=0), "'one' is the first phase"),
        (lambda: legs.jump("two", y=y), "'y' at the start of 'two', in symbols of 'one', has 'y'"),
    ):
        with pytest.raises(InputError, match=words):
            call()


def two_legs() -> Phases:
    """Out and back, with a quantity that only the second leg knows."""
    parts = {}
    for name, goal in (("out", 0.3), ("back", 0.0)):
        model = cart(name)
        if name == "back":
            model.output("twice", 2 * model.symbol("x"), unit="m")
        ocp = OptimalControl(model, duration=1.0, intervals=4)
        ocp.final(x=goal)
        ocp.minimize("effort", integral=ca.sumsqr(model.stacked("control")))
        parts[name] = ocp
    parts["out"].initial(x=0, v=0)
    return Phases(parts)


def test_a_joint_solution_is_saved_and_read_again(tmp_path) -> None:
    phases = two_legs()
    found = phases.solve()
    path = found.save(tmp_path / "deep" / "tour")
    assert path.name == "tour.npz"
    again = Solution.load(path, two_legs())
    assert (again.success, again.objective) == (True, pytest.approx(found.objective, rel=1e-12))
    for leg in ("out", "back"):
        np.testing.assert_array_equal(again[leg]["x"], found[leg]["x"])
        np.testing.assert_array_equal(again[leg].times, found[leg].times)
    np.testing.assert_array_equal(again.lam_g, found.lam_g)
    told = Saved.read(path)
    np.testing.assert_array_equal(told["back/twice"], 2 * found["back"]["x"])
    np.testing.assert_array_equal(told["back/times"], found["back"].times)
    assert told.units["back/twice"] == "m"
    with pytest.raises(InputError, match="not laid out as"):
        Solution.load(path, Scenarios(phases.parts["out"], {"a": {}, "b": {"drag": 0.3}}))
    phases = two_legs()
    phases.parts["back"].minimize("more", end=phases.parts["back"].model.symbol("v") ** 2)
    with pytest.raises(InputError, match=r"does not solve this problem: the objective is [\d.]+"):
        Solution.load(path, phases)


def test_a_joint_solution_is_drawn_with_a_colour_a_part(tmp_path) -> None:
    found = two_legs().solve()
    figure = found.plot(["x", "twice"], path=tmp_path / "tour.png")
    assert (tmp_path / "tour.png").stat().st_size > 0
    places, twice = figure.axes
    assert (places.get_ylabel(), twice.get_ylabel()) == ("x", "twice (m)")
    curves = [line for line in places.get_lines() if line.get_linestyle() == "-"]
    drawn = {line.get_color() for line in curves if len(line.get_xdata()) > 1}
    assert len(drawn) == 2
    assert max(line.get_xdata()[-1] for line in curves if len(line.get_xdata())) == 2.0
    assert {text.get_text() for text in figure.legends[0].get_texts()} >= {"out", "back"}
    with pytest.raises(InputError, match="no quantity 'speed'"):
        found.plot(["speed"])
