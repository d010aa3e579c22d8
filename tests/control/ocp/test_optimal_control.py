"""Optimal control problems against answers known in closed form, by every method."""

from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid.control import (
    Collocation,
    Free,
    Integrator,
    Model,
    MultipleShooting,
    OptimalControl,
    Phases,
    RungeKutta,
    SingleShooting,
    Soft,
    Solution,
)

METHODS = {
    "multiple shooting": MultipleShooting(),
    "multiple shooting, two steps": MultipleShooting(RungeKutta(2)),
    "single shooting": SingleShooting(),
    "cvodes": MultipleShooting(Integrator()),
    "Radau": Collocation(),
    "Radau of degree 1": Collocation(1),
    "Legendre": Collocation(2, "legendre"),
}
UNEVEN = [0.0, 0.1, 0.3, 0.35, 0.5, 0.6, 0.8, 0.9, 1.0]


def rest_to_rest(
    method: Any, *, linear: bool = False, scale: float = 1.0, **options: Any
) -> OptimalControl:
    """min ∫ u² from rest at 0 to rest at 1 in a second: u = 6 − 12 t, cost 12."""
    model = Model("cart")
    model.state("x", scale=scale)
    v = model.state("v", scale=3 * scale)
    u = model.control("u", linear=linear, scale=10 * scale)
    model.rates(x=v, v=u)
    ocp = OptimalControl(model, **{"duration": 1.0, "intervals": 8, "method": method, **options})
    ocp.initial(x=0, v=0)
    ocp.final(x=1, v=0)
    ocp.minimize("effort", integral=u**2)
    return ocp


def held_cost(mesh: Any) -> float:
    """The least ∫ u² of a held u: the quadratic program on the exact discrete double integrator."""
    t = np.asarray(mesh)
    h = np.diff(t)
    rows = np.array([h * (1 - t[:-1] - h / 2), h])  # x(1) and v(1) of u = 1 on each interval
    return float(np.array([1, 0]) @ np.linalg.solve(rows / h @ rows.T, [1, 0]))


@pytest.mark.parametrize("name", [name for name in METHODS if name != "Radau of degree 1"])
@pytest.mark.parametrize("mesh", [None, UNEVEN], ids=["even", "uneven"])
def test_held_controls_cost_what_the_exact_discretization_costs(name: str, mesh: Any) -> None:
    solution = rest_to_rest(METHODS[name], mesh=mesh).solve()
    assert solution.success
    expected = held_cost(np.linspace(0, 1, 9) if mesh is None else mesh)
    assert solution.objective == pytest.approx(expected, rel=1e-8)
    assert solution.costs == {"effort": solution.objective}
    assert solution["u"].shape == (8,)
    assert solution["x"].shape == (9,)


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"cvodes", "Radau of degree 1"}))
def test_linear_controls_reach_the_optimum(name: str) -> None:
    """The optimal control is a line."""
    solution = rest_to_rest(METHODS[name], linear=True).solve()
    t = solution.times
    assert solution.objective == pytest.approx(12.0, rel=1e-8)
    assert solution["u"] == pytest.approx(6 - 12 * t, abs=1e-5)
    assert solution["x"] == pytest.approx(3 * t**2 - 2 * t**3, abs=1e-7)


@pytest.mark.parametrize("name", ["multiple shooting", "single shooting", "Radau", "Legendre"])
def test_mapped_and_unrolled_horizons_are_the_same(name: str) -> None:
    ocps = [rest_to_rest(METHODS[name], unroll=unroll) for unroll in (True, False)]
    assert isinstance(ocps[0].program.nlp["x"], ca.SX)
    assert isinstance(ocps[1].program.nlp["x"], ca.MX)
    found = [ocp.solve() for ocp in ocps]
    assert found[0].x == pytest.approx(found[1].x, abs=1e-8)
    assert found[0].lam_g == pytest.approx(found[1].lam_g, abs=1e-6)
    x, values = np.random.default_rng(0).standard_normal(ocps[0].program.n), []
    for ocp in ocps:
        nlp = ocp.program.nlp
        both = ca.Function("both", [nlp["x"], nlp["p"]], [nlp["f"], nlp["g"]])
        values.append([part.full() for part in both(x, ocp.program.p)])
    assert values[0][0] == pytest.approx(values[1][0], rel=1e-12)
    assert values[0][1] == pytest.approx(values[1][1], abs=1e-10)


@pytest.mark.parametrize("name", ["multiple shooting", "single shooting", "Radau", "Legendre"])
def test_least_time_of_the_double_integrator(name: str) -> None:
    """From rest to rest over a distance d with |u| ≤ 1: T = 2 √d."""
    model = Model("cart")
    model.state("x")
    v = model.state("v")
    u = model.control("u", lower=-1, upper=1)
    model.rates(x=v, v=u)
    ocp = OptimalControl(model, duration=Free(3.0), intervals=8, method=METHODS[name])
    distance = ocp.parameter("distance", 1.0)
    ocp.initial(x=0, v=0)
    ocp.final(x=distance, v=0)
    ocp.minimize("time", end=ocp.duration)
    for d in (1.0, 4.0):
        solution = ocp.solve(distance=d)
        assert solution.duration == pytest.approx(2 * np.sqrt(d), rel=1e-7)
        assert solution["u"] == pytest.approx([1] * 4 + [-1] * 4, abs=1e-5)
        # dT/dd = 1 / √d is the multiplier of the final position, x − d = 0.
        assert solution.multipliers["final x"] == pytest.approx(-1 / np.sqrt(d), rel=1e-5)


def discrete_regulator(soft: Any = None) -> tuple[OptimalControl, dict[str, np.ndarray]]:
    A, B = np.array([[1.0, 0.2], [-0.1, 0.9]]), np.array([[0.0], [0.3]])
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
    return ocp, {"A": A, "B": B}


@pytest.mark.parametrize("weight", [2.0, 0.5])
def test_a_discrete_regulator_is_that_of_the_riccati_recursion(weight: float) -> None:
    ocp, m = discrete_regulator()
    solution = ocp.solve(k=weight)
    P = 5 * np.eye(2)
    values = [P]
    for _ in range(12):
        K = np.linalg.solve(weight + m["B"].T @ P @ m["B"], m["B"].T @ P @ m["A"])
        P = np.eye(2) + m["A"].T @ P @ (m["A"] - m["B"] @ K)
        values.insert(0, P)
    x, states, controls = np.array([1.0, -1.0]), [], []
    for k in range(12):
        states.append(x)
        P = values[k + 1]
        u = -np.linalg.solve(weight + m["B"].T @ P @ m["B"], m["B"].T @ P @ m["A"]) @ x
        controls.append(u[0])
        x = m["A"] @ x + m["B"] @ u
    states.append(x)
    assert solution.objective == pytest.approx(states[0] @ values[0] @ states[0], rel=1e-9)
    assert solution["x"] == pytest.approx(np.array(states).T, abs=1e-8)
    assert solution["u"] == pytest.approx(np.array(controls), abs=1e-8)
    # The costate: x_{k+1} − next(x_k, u_k) = 0 has the multiplier −∂cost-to-go/∂x_{k+1}.
    costate = -2 * np.stack([values[k] @ states[k] for k in range(1, 13)], axis=1)
    assert solution.multipliers["dynamics"] == pytest.approx(costate, abs=1e-6)
    first = solution.multipliers["initial x"][:, 0]
    assert first == pytest.approx(-2 * values[0] @ states[0], abs=1e-6)


def limited(soft: Any, **options: Any) -> Solution:
    """Rest to rest with a limited speed, of which the multipliers are known to be finite."""
    ocp = rest_to_rest(MultipleShooting(), **options)
    ocp.path("speed", ocp.model.symbol("v"), upper=1.2, soft=soft, scale=options.get("scale", 1.0))
    return ocp.solve()


def test_a_soft_limit_holds_where_its_price_is_above_the_multiplier() -> None:
    hard = limited(None)
    dearest = hard.multipliers["speed"].max()
    assert dearest > 1
    dear, cheap = limited(1.5 * dearest), limited(0.5 * dearest)
    assert dear["v"] == pytest.approx(hard["v"], abs=1e-6)
    assert dear.multipliers["speed, upper"] == pytest.approx(hard.multipliers["speed"], abs=1e-3)
    assert cheap["v"].max() > 1.2 + 1e-3
    assert cheap.multipliers["speed, upper"].max() <= 0.5 * dearest + 1e-6
    quadratic = limited(Soft(quadratic=10.0))
    excess = np.maximum(quadratic["v"] - 1.2, 0)
    assert quadratic.multipliers["speed, upper"] == pytest.approx(20 * excess, abs=1e-4)
    least = limited(Soft(0.5 * dearest, most=0.01))
    assert least["v"].max() == pytest.approx(1.21, abs=1e-6)


@pytest.mark.parametrize("method", [MultipleShooting(), Collocation(), SingleShooting()], ids=str)
def test_the_answer_does_not_depend_on_the_scales(method: Any) -> None:
    found = []
    for scale in (1.0, 0.05, 30.0):
        ocp = rest_to_rest(method, scale=scale)
        # At the grid points alone: at more, multipliers of a level arc are not unique.
        ocp.path("speed", ocp.model.symbol("v"), upper=1.2, scale=scale, at="points")
        found.append(ocp.solve())
    for other in found[1:]:
        for name in ("x", "v", "u"):
            assert other[name] == pytest.approx(found[0][name], abs=1e-5)
        for name in ("speed", "final x", "initial v", *(() if method == SingleShooting() else
                     ("dynamics",))):  # fmt: skip
            here, there = other.multipliers[name], found[0].multipliers[name]
            assert here == pytest.approx(there, rel=1e-3, abs=1e-2)


def test_numbers_change_without_another_program() -> None:
    model = Model("cart")
    x, v = model.state("x"), model.state("v")
    u, drag = model.control("u"), model.parameter("drag", 0.0)
    wind = model.reference("wind", 0.0)
    model.rates(x=v, v=u - drag * v + wind)
    ocp = OptimalControl(model, duration=1.0, intervals=6)
    target = ocp.reference("target", lambda t: t, size=1)
    ocp.initial()
    ocp.minimize("distance", sum=(x - target) ** 2, end=(x - 2) ** 2)
    ocp.minimize("effort", integral=0.01 * u**2)
    first = ocp.solve([0, 0])
    solver, program = ocp.solver, ocp.program
    second = ocp.solve({"x": 1.0, "v": 0.5}, time=3.0, drag=0.7, wind=np.arange(7.0),
                       target=lambda t: 2 * t)  # fmt: skip
    assert ocp.solver is solver
    assert ocp.program is program
    assert first["target"] == pytest.approx(np.linspace(0, 1, 7))
    assert second["target"] == pytest.approx(2 * np.linspace(3, 4, 7))
    assert second["wind"].tolist() == list(range(7))
    assert second["drag"] == 0.7
    assert second.times == pytest.approx(np.linspace(3, 4, 7))
    assert (second["x"][0], second["v"][0]) == pytest.approx((1.0, 0.5))
    assert (first["x"][0], first["v"][0]) == pytest.approx((0.0, 0.0), abs=1e-9)
    again = ocp.solve([0, 0])
    assert again["x"] == pytest.approx(first["x"], abs=1e-9)
    warm = ocp.solve([0.01, 0], guess=first)
    assert warm.success
    assert warm.iterations < first.iterations + 3


def pendulum(method: Any, *, pull: float = 22.0) -> OptimalControl:
    """A pendulum in Cartesian coordinates, its tension algebraic (index reduced)."""
    model = Model("pendulum")
    x, y = model.state("x", guess=1.0), model.state("y")
    v, w = model.state("v"), model.state("w")
    tension, u = model.algebraic("tension"), model.control("u", lower=-5, upper=5)
    model.rates(x=v, y=w, v=-tension * x + u, w=-tension * y - 9.81)
    model.equations(length=v**2 + w**2 - tension * (x**2 + y**2) + u * x - 9.81 * y)
    ocp = OptimalControl(model, duration=0.45, intervals=10, method=method)
    ocp.initial(x=1, y=0, v=0, w=0)
    ocp.minimize("effort", integral=u**2)
    ocp.minimize("height", end=100 * (y + 0.6) ** 2)
    ocp.path("pull", tension, upper=pull)
    return ocp


def test_small_algebraic_states_are_as_exact_as_their_scale() -> None:
    model = Model("small")
    x, z = model.state("x"), model.algebraic("z", scale=1e-11)
    model.rates(x=model.control("u") - 1e11 * z)
    model.equations(size=z - 1e-11 * ca.exp(x))
    ocp = OptimalControl(model, duration=1.0, intervals=4, method=Collocation())
    ocp.minimize("error", integral=(x - 1) ** 2, end=(1e11 * z - 2) ** 2)
    found = ocp.solve()
    np.testing.assert_allclose(1e11 * found["z"], np.exp(found["x"]), rtol=1e-6)


@pytest.mark.parametrize("method", [Collocation(), Collocation(3, "legendre")], ids=str)
def test_algebraic_states_by_collocation(method: Any) -> None:
    """The rod keeps its length, and the same motion in an angle costs the same."""
    solution = pendulum(method).solve()
    assert solution.success
    assert np.hypot(solution["x"], solution["y"]) == pytest.approx(np.ones(11), abs=1e-5)
    model = Model("angle")
    angle, rate = model.state("angle"), model.state("rate")
    u = model.control("u", lower=-5, upper=5)
    # x = cos a, y = −sin a: a'' = g cos a − u sin a
    model.rates(angle=rate, rate=9.81 * ca.cos(angle) - u * ca.sin(angle))
    ocp = OptimalControl(model, duration=0.45, intervals=10, method=method)
    ocp.initial(angle=0, rate=0)
    ocp.minimize("effort", integral=u**2)
    ocp.minimize("height", end=100 * (0.6 - ca.sin(angle)) ** 2)
    ocp.path("pull", rate**2 + u * ca.cos(angle) + 9.81 * ca.sin(angle), upper=22)
    other = ocp.solve()
    assert other.success
    assert solution.objective == pytest.approx(other.objective, rel=1e-4)
    assert solution["u"] == pytest.approx(other["u"], abs=1e-3)
    assert solution["tension"] == pytest.approx(
        other["rate"] ** 2 + np.append(other["u"], other["u"][-1]) * np.cos(other["angle"])
        + 9.81 * np.sin(other["angle"]), abs=1e-3)  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [
        lambda: pendulum(Collocation()),
        lambda: rest_to_rest(Collocation(2, "legendre"), linear=True, scale=0.1),
        lambda: rest_to_rest(MultipleShooting(), duration=Free(1.0, lower=0.9), unroll=False),
        lambda: discrete_regulator(soft=3.0)[0],
    ],
    ids=["DAE", "Legendre", "free time, mapped", "discrete, soft"],
)
def test_ipopt_finds_the_same(make: Any) -> None:
    """A program is CasADi's own: any solver takes it, and its answer is read by the same names."""
    ocp = make()
    ours = ocp.solve()
    program = ocp.numbers()
    options = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "tol": 1e-10}}
    ipopt = ca.nlpsol("ipopt", "ipopt", dict(program.nlp), options)
    found = ipopt(**program.arguments)
    theirs = ocp.solution(program, found, ipopt.stats())
    assert ours.success
    assert theirs.success
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-6, abs=1e-8)
    for name in ours.values:
        assert ours[name] == pytest.approx(theirs[name], abs=1e-4), name


@pytest.mark.parametrize("method", [Collocation(4), SingleShooting(RungeKutta(2))], ids=str)
def test_a_parameter_that_is_free_is_identified(method: Any) -> None:
    """x' = −k x through x(1) = e^−1.7."""
    model = Model("decay")
    x, k = model.state("x"), model.parameter("k", 1.0)
    model.rates(x=-k * x)
    ocp = OptimalControl(model, duration=1.0, intervals=5, method=method)
    ocp.initial(x=1)
    ocp.free("k", lower=0, upper=5)  # begins as declared
    ocp.minimize("misfit", end=(x - np.exp(-1.7)) ** 2)
    assert ocp.program.unpack(ocp.program.x0)["k"] == 1.0
    assert ocp.solve()["k"] == pytest.approx(1.7, abs=1e-3)


def test_limits_hold_where_they_are_asked_for() -> None:
    """At the end of each interval a held control is that of the interval, not of the next."""
    model = Model("tank")
    x, u = model.state("x"), model.control("u", lower=0)
    model.rates(x=u)
    answers = {}
    for at in ("points", "ends", "inside"):
        ocp = OptimalControl(model, duration=1.0, intervals=4, method=Collocation())
        ocp.initial(x=0)
        ocp.minimize("gain", end=-x)
        ocp.path("sum", x + u, upper=1.0, at=at)
        answers[at] = ocp.solve()
    for at, solution in answers.items():
        begin = solution["x"][:-1] + solution["u"]
        end = solution["x"][1:] + solution["u"]
        assert begin.max() <= 1 + 1e-6
        assert (end.max() <= 1 + 1e-6) == (at != "points")
    ends, points = answers["ends"].objective, answers["points"].objective
    assert points < ends - 1e-3
    assert answers["ends"]["x"][-1] == pytest.approx(1 - 0.8**4, abs=1e-6)


@pytest.mark.parametrize("method", [MultipleShooting(), SingleShooting(), Collocation()])
def test_states_that_end_as_they_began_do_so_away_from_zero(method: Any) -> None:
    """A tank that leaks is kept near a level, and filled again within the period."""
    model = Model("tank")
    x, u = model.state("x", scale=5.0, guess=2.0), model.control("u", lower=0, upper=4)
    model.rates(x=u - 0.5 * x)
    ocp = OptimalControl(model, duration=2.0, intervals=8, method=method)
    ocp.minimize("level", integral=(x - 3) ** 2 + (u - ca.cos(3 * model.time) - 1) ** 2)
    ocp.periodic()
    solution = ocp.solve()
    assert solution.success
    assert solution["x"][0] > 1
    assert solution["x"][-1] == pytest.approx(solution["x"][0], abs=1e-6)


def test_inside_an_interval_a_limit_is_on_the_control_that_runs_linearly_there() -> None:
    model = Model("ramp")
    x, u = model.state("x"), model.control("u", lower=0, upper=2, linear=True)
    model.rates(x=u)
    ocp = OptimalControl(model, duration=1.0, intervals=1, method=Collocation(3, "legendre"))
    ocp.initial(x=0)
    ocp.minimize("end", end=-x, integral=0.1 * u**2)
    ocp.path("bump", u + 4 * model.time * (1 - model.time), upper=2.0, at="inside")
    solution = ocp.solve()
    first, last = solution["u"]
    for tau in ca.collocation_points(3, "legendre"):
        assert first + (last - first) * tau + 4 * tau * (1 - tau) <= 2 + 1e-6
    # The bump is symmetric: the best ramp is level, at what the point in the middle leaves.
    assert (first, last) == pytest.approx((1.0, 1.0), abs=1e-5)


def test_a_start_runs_from_the_state_given_to_the_one_wanted() -> None:
    program = rest_to_rest(MultipleShooting(), scale=2.0).numbers({"x": 0.5, "v": -1.0})
    begin = program.unpack(program.x0)
    assert begin["x"][0] == pytest.approx(np.linspace(0.5, 1.0, 9))
    assert begin["v"][0] == pytest.approx(np.linspace(-1.0, 0.0, 9))


def test_an_explanation_says_numbers_in_their_units() -> None:
    model = Model("cart")
    model.state("x", unit="m")
    v = model.state("v", upper=1, unit="m/s")
    model.rates(x=v, v=model.control("u", lower=-3, upper=5, scale=10.0, unit="N"))
    ocp = OptimalControl(model, duration=Free(2.0, 1, 6), intervals=5)
    ocp.initial(x=0, v=0)
    ocp.final(x=9)
    ocp.minimize("time", end=ocp.duration)
    said = ocp.solve().explanation
    assert "  duration ≤ 6 s\n" in said
    assert "v[5] ≤ 1 m/s (5 bounds)\n" in said
    assert "gap to initial x" in said
    assert "  final x = 9 m\n" in said
    nan = rest_to_rest(MultipleShooting())
    nan.path("root", ca.sqrt(0.4 - nan.model.symbol("x")), upper=9)  # its own unknowns first
    assert "g is nan in its entry root[4], at x[4] = 0.5, x[0] = 0" in nan.solve().explanation


def past_a_disc(duration: float, place: float = 1.0, radius: float = 0.3) -> OptimalControl:
    """From (0, 0) to (2, 0) at a speed of at most 1 along each axis; the guess goes straight."""
    model = Model("robot")
    x, y = model.state("x", unit="m"), model.state("y", unit="m")
    vx, vy = (model.control(name, lower=-1, upper=1) for name in ("vx", "vy"))
    model.rates(x=vx, y=vy)
    ocp = OptimalControl(model, duration=duration, intervals=20)
    ocp.initial(x=0, y=0)
    ocp.final(x=2, y=0)
    ocp.path("obstacle", (x - place) ** 2 + y**2, lower=radius**2, unit="m2")
    ocp.minimize("effort", integral=vx**2 + vy**2)
    return ocp


def test_a_guess_through_an_obstacle_is_told_to_go_around_it() -> None:
    ocp = past_a_disc(3.0)
    said = str(ocp.solve()).splitlines()[1]
    assert said.startswith("First begin with another guess")
    assert "obstacle is 0.09 m2 below its limit 0.09 m2 at 1.5 s" in said
    assert "as in the guess" in said
    around = ocp.solve(guess={"y": lambda s: s * (1 - s)})
    assert around.success
    assert "another guess" not in str(around)
    both = str(Phases({"way": past_a_disc(3.0)}).solve())
    assert "way: First begin with another guess" in both


@pytest.mark.parametrize(("place", "time"), [(0.0, "0 s"), (2.0, "3 s")])
def test_an_obstacle_over_a_given_end_is_told_to_move(place: float, time: str) -> None:
    solution = past_a_disc(3.0, place).solve()
    said = str(solution).splitlines()[1]
    assert said.startswith("obstacle is 0.0")
    assert said.endswith(f"at {time}, where all states are given: move them, or the limit.")
    # At a saddle of the elastic problem steps go on without progress.
    assert solution.iterations < 300
    # In one second the end is out of reach, with an obstacle or without.
    said = str(past_a_disc(1.0).solve())
    assert "another guess" not in said
    assert "relax or correct one" in said


def swing(*, scale: float = 1.0, unroll: bool = True, soft: Any = None) -> OptimalControl:
    """A pendulum swings to 1 rad with a limited motor and a limited rate."""
    model = Model("swing")
    angle, rate = model.state("angle", scale=scale), model.state("rate", scale=0.7 * scale)
    torque = model.control("torque", lower=-1.0, upper=0.8)
    model.rates(angle=rate, rate=torque - ca.sin(angle))
    ocp = OptimalControl(model, duration=2.4, intervals=8, unroll=unroll)
    ocp.initial(angle=0.1, rate=-0.1)
    ocp.final(angle=1, rate=0)
    ocp.path("swing", angle**2 + rate, upper=1.5, soft=soft)
    ocp.minimize("effort", integral=torque**2)
    return ocp


@pytest.mark.parametrize("case", [{}, {"scale": 3.1}, {"unroll": False}, {"soft": 10.0}])
def test_point_and_multipliers_are_those_of_ipopt(case: dict[str, Any]) -> None:
    """FATROP finds the stages of a program and the same answer as IPOPT."""
    program = swing(**case).numbers()
    equality = (program.lbg == program.ubg).tolist()
    stages = {"structure_detection": "auto", "equality": equality}
    options = {
        "fatrop": {"fatrop": {"print_level": 0, "tolerance": 1e-7}, **stages},
        "ipopt": {"ipopt": {"print_level": 0, "sb": "yes"}},
    }
    answers = []
    for plugin, more in options.items():
        solver = ca.nlpsol("peer", plugin, dict(program.nlp), {"print_time": False, **more})
        answers.append(solver(**program.arguments))
        assert solver.stats()["success"]
    for key in ("x", "f", "g", "lam_x", "lam_g"):
        np.testing.assert_allclose(answers[0][key].full(), answers[1][key].full(), atol=1e-4)
    assert np.abs(answers[0]["lam_x"].full()).max() > 1e-2  # the motor's limit is active
