"""Optimal control problems against answers known in closed form, by every method."""

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import PEER
from support.cases.ocps import EVERY_METHOD, METHODS, double_integrator, rest_to_rest, stated

from casadi_hybrid.control import (
    Collocation,
    Free,
    Model,
    MultipleShooting,
    OptimalControl,
    Phases,
    Soft,
)

UNEVEN = [0.0, 0.1, 0.3, 0.35, 0.5, 0.6, 0.8, 0.9, 1.0]
FEW = ["multiple shooting", "single shooting", "Radau", "Legendre"]


def held_cost(mesh):
    """The least ∫ u² of a held u: the quadratic program on the exact discrete double integrator."""
    t = np.asarray(mesh)
    h = np.diff(t)
    rows = np.array([h * (1 - t[:-1] - h / 2), h])  # x(1) and v(1) of u = 1 on each interval
    return float(np.array([1, 0]) @ np.linalg.solve(rows / h @ rows.T, [1, 0]))


@pytest.mark.parametrize("name", [name for name in METHODS if name != "Radau of degree 1"])
@pytest.mark.parametrize("mesh", [np.linspace(0, 1, 9), UNEVEN], ids=["even", "uneven"])
def test_held_controls_cost_the_exact_discretization(name, mesh):
    solution = rest_to_rest(METHODS[name], mesh=mesh).solve()
    assert solution.success
    assert solution.objective == pytest.approx(held_cost(mesh), rel=1e-8)
    assert solution.costs == {"effort": solution.objective}
    assert (solution["u"].shape, solution["x"].shape) == ((8,), (9,))


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"cvodes", "Radau of degree 1"}))
def test_linear_controls_reach_the_optimum(name):
    solution = rest_to_rest(METHODS[name], linear=True).solve()
    t = solution.times
    assert solution.objective == pytest.approx(12.0, rel=1e-8)
    assert solution["u"] == pytest.approx(6 - 12 * t, abs=1e-5)
    assert solution["x"] == pytest.approx(3 * t**2 - 2 * t**3, abs=1e-7)


@pytest.mark.parametrize("name", FEW)
def test_mapped_and_unrolled_horizons_agree(name):
    unrolled, mapped = (rest_to_rest(METHODS[name], unroll=unroll) for unroll in (True, False))
    assert isinstance(unrolled.program.nlp["x"], ca.SX)
    assert isinstance(mapped.program.nlp["x"], ca.MX)
    one, other = unrolled.solve(), mapped.solve()
    assert one.x == pytest.approx(other.x, abs=1e-8)
    assert one.lam_g == pytest.approx(other.lam_g, abs=1e-6)
    x, values = np.random.default_rng(0).standard_normal(unrolled.program.n), []
    for program in (unrolled.program, mapped.program):
        nlp = program.nlp
        both = ca.Function("both", [nlp["x"], nlp["p"]], [nlp["f"], nlp["g"]])
        values.append(np.concatenate([part.full().ravel() for part in both(x, program.p)]))
    assert values[0] == pytest.approx(values[1], rel=1e-12, abs=1e-10)


@pytest.mark.parametrize("name", FEW)
def test_least_time_of_the_double_integrator(name):
    """Rest to rest over a distance d with |u| ≤ 1: T = 2 √d."""
    options = {"duration": Free(3.0), "intervals": 8, "method": METHODS[name]}
    ocp, *_ = double_integrator(u={"lower": -1, "upper": 1}, **options)
    ocp.initial(x=0, v=0)
    ocp.final(x=ocp.parameter("distance", 1.0), v=0)
    ocp.minimize("time", end=ocp.duration)
    for d in (1.0, 4.0):
        solution = ocp.solve(distance=d)
        assert solution.duration == pytest.approx(2 * np.sqrt(d), rel=1e-7)
        assert solution["u"] == pytest.approx([1] * 4 + [-1] * 4, abs=1e-5)
        # dT/dd = 1 / √d is the multiplier of the final position, x − d = 0.
        assert solution.multipliers["final x"] == pytest.approx(-1 / np.sqrt(d), rel=1e-5)


A, B = np.array([[1.0, 0.2], [-0.1, 0.9]]), np.array([[0.0], [0.3]])


def discrete_regulator(soft=None):
    model = Model("regulator")
    x, u = model.state("x", 2), model.control("u")
    k = model.parameter("k", 2.0)
    model.next(x=A @ x + B @ u)
    ocp = OptimalControl(model, duration=12, intervals=12)
    ocp.initial(x=[1, -1])
    ocp.minimize("stage", sum=ca.sumsqr(x) + k * u**2)
    ocp.minimize("end", end=5 * ca.sumsqr(x))
    if soft is not None:
        ocp.path("limit", x[1], lower=-0.9, soft=soft)
    return ocp


@pytest.mark.parametrize("weight", [2.0, 0.5])
def test_discrete_regulator_is_the_riccati_recursion(weight):
    solution = discrete_regulator().solve(k=weight)
    costs, gains = [5 * np.eye(2)], []
    for _ in range(12):
        P = costs[0]
        gains.insert(0, np.linalg.solve(weight + B.T @ P @ B, B.T @ P @ A))
        costs.insert(0, np.eye(2) + A.T @ P @ (A - B @ gains[0]))
    states, controls = [np.array([1.0, -1.0])], []
    for gain in gains:
        controls.append(-gain @ states[-1])
        states.append(A @ states[-1] + B @ controls[-1])
    assert solution.objective == pytest.approx(states[0] @ costs[0] @ states[0], rel=1e-9)
    assert solution["x"] == pytest.approx(np.array(states).T, abs=1e-8)
    assert solution["u"] == pytest.approx(np.concatenate(controls), abs=1e-8)
    # The costate: x_{k+1} − next(x_k, u_k) = 0 has the multiplier −∂cost-to-go/∂x_{k+1}.
    costates = np.transpose([-2 * P @ x for P, x in zip(costs, states, strict=True)])
    assert solution.multipliers["dynamics"] == pytest.approx(costates[:, 1:], abs=1e-6)
    assert solution.multipliers["initial x"] == pytest.approx(costates[:, :1], abs=1e-6)


def test_soft_limit_holds_above_its_multiplier():
    def limited(soft):
        ocp = rest_to_rest(MultipleShooting())
        ocp.path("speed", ocp.model.symbol("v"), upper=1.2, soft=soft)
        return ocp.solve()

    hard = limited(None)
    largest = hard.multipliers["speed"].max()
    assert largest > 1
    heavy, light = limited(1.5 * largest), limited(0.5 * largest)
    assert heavy["v"] == pytest.approx(hard["v"], abs=1e-6)
    assert heavy.multipliers["speed, upper"] == pytest.approx(hard.multipliers["speed"], abs=1e-3)
    assert light["v"].max() > 1.2 + 1e-3
    assert light.multipliers["speed, upper"].max() <= 0.5 * largest + 1e-6
    quadratic = limited(Soft(quadratic=10.0))
    excess = np.maximum(quadratic["v"] - 1.2, 0)
    assert quadratic.multipliers["speed, upper"] == pytest.approx(20 * excess, abs=1e-4)
    least = limited(Soft(0.5 * largest, most=0.01))
    assert least["v"].max() == pytest.approx(1.21, abs=1e-6)


@pytest.mark.parametrize("method", EVERY_METHOD, ids=str)
def test_solution_is_independent_of_scales(method):
    solutions = []
    for scale in (1.0, 0.05, 30.0):
        ocp = rest_to_rest(method, scale=scale)
        # At the grid points alone: at more, multipliers of a level arc are not unique.
        ocp.path("speed", ocp.model.symbol("v"), upper=1.2, scale=scale, at="points")
        solutions.append(ocp.solve())
    first, *others = solutions
    for other in others:
        for name in ("x", "v", "u"):
            assert other[name] == pytest.approx(first[name], abs=1e-5)
        for name in {"speed", "final x", "initial v", "dynamics"} & first.multipliers.keys():
            here, there = other.multipliers[name], first.multipliers[name]
            assert here == pytest.approx(there, rel=1e-3, abs=1e-2)


def test_numbers_change_without_another_program():
    model = Model("cart")
    x, v = model.state("x"), model.state("v")
    u, drag = model.control("u"), model.parameter("drag", 0.0)
    model.rates(x=v, v=u - drag * v + model.reference("wind", 0.0))
    ocp = stated(model, integral=0.01 * u**2, intervals=6)
    target = ocp.reference("target", lambda t: t, size=1)
    ocp.minimize("distance", sum=(x - target) ** 2, end=(x - 2) ** 2)
    first, solver, program = ocp.solve([0, 0]), ocp.solver, ocp.program
    others = {"drag": 0.7, "wind": np.arange(7.0), "target": lambda t: 2 * t}
    second = ocp.solve({"x": 1.0, "v": 0.5}, time=3.0, **others)
    assert (ocp.solver, ocp.program) == (solver, program)
    assert first["target"] == pytest.approx(np.linspace(0, 1, 7))
    assert second["target"] == pytest.approx(2 * np.linspace(3, 4, 7))
    assert (second["wind"].tolist(), second["drag"]) == ([*range(7)], 0.7)
    assert second.times == pytest.approx(np.linspace(3, 4, 7))
    assert (second["x"][0], second["v"][0]) == pytest.approx((1.0, 0.5))
    assert ocp.solve([0, 0])["x"] == pytest.approx(first["x"], abs=1e-9)
    assert ocp.solve([0.01, 0], guess=first).iterations < first.iterations + 3


def pendulum(method):
    model = Model("pendulum")
    x, y = model.state("x", guess=1.0), model.state("y")
    v, w = model.state("v"), model.state("w")
    tension, u = model.algebraic("tension"), model.control("u", lower=-5, upper=5)
    model.rates(x=v, y=w, v=-tension * x + u, w=-tension * y - 9.81)
    model.equations(length=v**2 + w**2 - tension * (x**2 + y**2) + u * x - 9.81 * y)
    return swung_up(model, method, {"x": 1, "y": 0, "v": 0, "w": 0}, tension, y)


def swung_up(model, method, initial, tension, height):
    cost = {"integral": model.symbol("u") ** 2, "end": 100 * (height + 0.6) ** 2}
    ocp = stated(model, initial, duration=0.45, method=method, **cost)
    ocp.path("pull", tension, upper=22)
    return ocp


@pytest.mark.parametrize("method", [Collocation(), Collocation(3, "legendre")], ids=str)
def test_algebraic_pendulum_moves_as_in_an_angle(method):
    """x = cos a, y = −sin a: a'' = g cos a − u sin a."""
    solution = pendulum(method).solve()
    assert np.hypot(solution["x"], solution["y"]) == pytest.approx(np.ones(11), abs=1e-5)
    model = Model("angle")
    a, rate = model.state("angle"), model.state("rate")
    u = model.control("u", lower=-5, upper=5)
    model.rates(angle=rate, rate=9.81 * ca.cos(a) - u * ca.sin(a))
    pull = rate**2 + u * ca.cos(a) + 9.81 * ca.sin(a)
    other = swung_up(model, method, {"angle": 0, "rate": 0}, pull, -ca.sin(a)).solve()
    assert solution.success
    assert other.success
    assert solution.objective == pytest.approx(other.objective, rel=1e-4)
    assert solution["u"] == pytest.approx(other["u"], abs=1e-3)
    a, held = other["angle"], np.append(other["u"], other["u"][-1])
    tension = other["rate"] ** 2 + held * np.cos(a) + 9.81 * np.sin(a)
    assert solution["tension"] == pytest.approx(tension, abs=1e-3)


def test_small_algebraic_states_keep_their_precision():
    model = Model("small")
    x, z = model.state("x"), model.algebraic("z", scale=1e-11)
    model.rates(x=model.control("u") - 1e11 * z)
    model.equations(size=z - 1e-11 * ca.exp(x))
    cost = {"integral": (x - 1) ** 2, "end": (1e11 * z - 2) ** 2}
    found = stated(model, None, intervals=4, method=Collocation(), **cost).solve()
    np.testing.assert_allclose(1e11 * found["z"], np.exp(found["x"]), rtol=1e-6)


def swing(*, scale=1.0, soft=None, **options):
    model = Model("swing")
    angle, rate = model.state("angle", scale=scale), model.state("rate", scale=0.7 * scale)
    torque = model.control("torque", lower=-1.0, upper=0.8)
    model.rates(angle=rate, rate=torque - ca.sin(angle))
    ends = {"angle": 0.1, "rate": -0.1}, {"angle": 1, "rate": 0}
    ocp = stated(model, *ends, integral=torque**2, duration=2.4, intervals=8, **options)
    ocp.path("swing", angle**2 + rate, upper=1.5, soft=soft)
    return ocp


FREE = {"duration": Free(1.0, lower=0.9), "unroll": False}
TO_IPOPT = {
    "DAE": lambda: pendulum(Collocation()),
    "Legendre": lambda: rest_to_rest(Collocation(2, "legendre"), linear=True, scale=0.1),
    "free time, mapped": lambda: rest_to_rest(MultipleShooting(), **FREE),
    "discrete, soft": lambda: discrete_regulator(soft=3.0),
    "swing": swing,
    "swing, scaled": lambda: swing(scale=3.1),
    "swing, mapped": lambda: swing(unroll=False),
    "swing, soft": lambda: swing(soft=10.0),
}


@pytest.mark.parametrize("name", TO_IPOPT)
def test_ipopt_finds_the_same(name):
    ocp = TO_IPOPT[name]()
    ours, program = ocp.solve(), ocp.numbers()
    ipopt = ca.nlpsol("ipopt", "ipopt", dict(program.nlp), PEER)
    theirs = ocp.solution(program, ipopt(**program.arguments), ipopt.stats())
    assert ours.success
    assert theirs.success
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-6, abs=1e-8)
    for trajectory in ours.values:
        assert ours[trajectory] == pytest.approx(theirs[trajectory], abs=1e-4), trajectory
    if name.startswith("swing"):  # of the others some are not unique
        assert ours.lam_x == pytest.approx(theirs.lam_x, abs=1e-4)
        assert ours.lam_g == pytest.approx(theirs.lam_g, abs=1e-4)
        assert np.abs(ours.lam_x).max() > 1e-2  # the motor's limit is active


def test_fatrop_finds_the_stages():
    ocp = swing()
    program, ours = ocp.numbers(), ocp.solve()
    options = {"structure_detection": "auto", "equality": (program.lbg == program.ubg).tolist()}
    options |= {"fatrop": {"print_level": 0, "tolerance": 1e-7}, "print_time": False}
    fatrop = ca.nlpsol("fatrop", "fatrop", dict(program.nlp), options)
    answer = fatrop(**program.arguments)
    assert fatrop.stats()["success"]
    np.testing.assert_allclose(ours.x, answer["x"].full().ravel(), atol=1e-4)
    np.testing.assert_allclose(ours.lam_g, answer["lam_g"].full().ravel(), atol=1e-4)


def test_limits_hold_at_points_or_ends():
    """At the end of each interval a held control is that of the interval, not of the next."""
    model = Model("tank")
    x, u = model.state("x"), model.control("u", lower=0)
    model.rates(x=u)
    answers = {}
    for at in ("points", "ends", "inside"):
        ocp = stated(model, {"x": 0}, end=-x, intervals=4, method=Collocation())
        ocp.path("sum", x + u, upper=1.0, at=at)
        answers[at] = solution = ocp.solve()
        assert (solution["x"][:-1] + solution["u"]).max() <= 1 + 1e-6
        end = (solution["x"][1:] + solution["u"]).max()
        assert (end <= 1 + 1e-6) == (at != "points")
    assert answers["points"].objective < answers["ends"].objective - 1e-3
    assert answers["ends"]["x"][-1] == pytest.approx(1 - 0.8**4, abs=1e-6)


def test_limits_inside_see_the_linear_control():
    """The best ramp under a symmetric bump is level, at what the middle point leaves."""
    model = Model("ramp")
    x, u = model.state("x"), model.control("u", lower=0, upper=2, linear=True)
    model.rates(x=u)
    options = {"intervals": 1, "method": Collocation(3, "legendre")}
    ocp = stated(model, {"x": 0}, end=-x, integral=0.1 * u**2, **options)
    ocp.path("bump", u + 4 * model.time * (1 - model.time), upper=2.0, at="inside")
    first, last = ocp.solve()["u"]
    taus = np.array(ca.collocation_points(3, "legendre"))
    assert (first + (last - first) * taus + 4 * taus * (1 - taus)).max() <= 2 + 1e-6
    assert (first, last) == pytest.approx((1.0, 1.0), abs=1e-5)


@pytest.mark.parametrize("method", EVERY_METHOD, ids=str)
def test_periodic_states_stay_away_from_zero(method):
    model = Model("tank")
    x, u = model.state("x", scale=5.0, guess=2.0), model.control("u", lower=0, upper=4)
    model.rates(x=u - 0.5 * x)
    cost = (x - 3) ** 2 + (u - ca.cos(3 * model.time) - 1) ** 2
    ocp = stated(model, None, integral=cost, duration=2.0, intervals=8, method=method)
    ocp.periodic()
    solution = ocp.solve()
    assert solution.success
    assert solution["x"][0] > 1
    assert solution["x"][-1] == pytest.approx(solution["x"][0], abs=1e-6)


def test_guess_runs_from_start_to_end():
    program = rest_to_rest(MultipleShooting(), scale=2.0).numbers({"x": 0.5, "v": -1.0})
    assert program.unpack(program.x0)["x"][0] == pytest.approx(np.linspace(0.5, 1.0, 9))


def test_explanation_has_names_and_units():
    speed, force = {"upper": 1, "unit": "m/s"}, {"lower": -3, "upper": 5, "scale": 10, "unit": "N"}
    ocp, *_ = double_integrator(x={"unit": "m"}, v=speed, u=force, duration=Free(2.0, 1, 6))
    ocp.initial(x=0, v=0)
    ocp.final(x=9)
    ocp.minimize("time", end=ocp.duration)
    explanation = ocp.solve().explanation
    for part in ("duration ≤ 6 s\n", "v[4] ≤ 1 m/s", "gap to initial x", "final x = 9 m\n"):
        assert part in explanation
    undefined = rest_to_rest(MultipleShooting())
    undefined.path("root", ca.sqrt(0.4 - undefined.model.symbol("x")), upper=9)
    assert "nan in its entry root[4], at x[4] = 0.5" in undefined.solve().explanation


def past_a_disc(duration=3.0, place=1.0):
    model = Model("robot")
    x, y = model.state("x", unit="m"), model.state("y", unit="m")
    vx, vy = (model.control(name, lower=-1, upper=1) for name in ("vx", "vy"))
    model.rates(x=vx, y=vy)
    ends, options = ({"x": 0, "y": 0}, {"x": 2, "y": 0}), {"duration": duration, "intervals": 20}
    ocp = stated(model, *ends, integral=vx**2 + vy**2, **options)
    ocp.path("obstacle", (x - place) ** 2 + y**2, lower=0.09, unit="m2")
    return ocp


def test_guess_through_an_obstacle_is_named():
    ocp = past_a_disc()
    advice = str(ocp.solve()).splitlines()[1]
    assert "another guess" in advice
    assert "obstacle is 0.09 m2 below its limit 0.09 m2 at 1.5 s" in advice
    around = ocp.solve(guess={"y": lambda s: s * (1 - s)})
    assert around.success
    assert "another guess" not in str(around)
    assert "way: First begin with another guess" in str(Phases({"way": past_a_disc()}).solve())
    # In one second the end is out of reach, with an obstacle or without.
    assert "another guess" not in str(past_a_disc(1.0).solve())


@pytest.mark.parametrize(("place", "time"), [(0.0, "0 s"), (2.0, "3 s")])
def test_obstacle_over_an_end_is_named(place, time):
    solution = past_a_disc(place=place).solve()
    advice = str(solution).splitlines()[1]
    assert advice.startswith("obstacle is 0.0")
    assert f"at {time}, where all states are given" in advice
    # At a saddle of the elastic problem steps go on without progress.
    assert solution.iterations < 300
