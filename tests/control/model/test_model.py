"""Models and statements of optimal control problems: what they accept and what they refuse."""

from contextlib import nullcontext

import casadi as ca
import numpy as np
import pytest
from support.cases.ocps import EVERY_METHOD, double_integrator, stated

from casadi_hybrid.control import (
    EKF,
    MHE,
    Collocation,
    Free,
    Integrator,
    Model,
    MultipleShooting,
    OptimalControl,
    Plant,
    RungeKutta,
    steady,
)
from casadi_hybrid.control.transcription.terms import Soft
from casadi_hybrid.utils.errors import InputError


def problem(**options):
    return double_integrator(**options)[0]


def cart():
    return problem().model


def referring():
    """A problem with a reference r, a parameter k and a fixed start of x only."""
    ocp, *_, u = double_integrator()
    r, k = ocp.reference("r", 0.0), ocp.parameter("k", [1.0, 2.0])
    ocp.initial(x=0)
    ocp.minimize("cost", sum=(u - r) ** 2 * k[0])
    return ocp


def algebraic(method=None):
    model = Model("plant")
    x, z = model.state("x"), model.algebraic("z")
    model.rates(x=-z)
    model.equations(balance=z - x)
    return OptimalControl(model, duration=1, intervals=2, method=method)


def discrete(method=None):
    model = Model("counter")
    model.next(x=0.5 * model.state("x"))
    return stated(model, {"x": 1}, end=0, duration=2, intervals=2, method=method)


def repeated(call, *arguments, **named):
    for _ in range(2):
        call(*arguments, **named)


REFUSED_BY_A_MODEL = [
    (lambda m: m.state(""), "name"),
    (lambda m: m.control("x"), "'x'"),
    (lambda m: m.state("time"), "'time'"),
    (lambda m: m.parameter("guess"), "argument of a solve"),
    (lambda m: m.state("y", 0), "size of 'y'"),
    (lambda m: m.state("y", lower=1, upper=0), "lower of 'y'"),
    (lambda m: m.state("y", upper=np.nan), "upper of 'y' has a NaN"),
    (lambda m: m.state("y", upper="a"), "got 'a'"),
    (lambda m: m.state("y", upper=m.symbol("x")), "upper of 'y' has 'x'"),
    (lambda m: m.state("y", scale=0), "scale of 'y'"),
    (lambda m: m.state("y", unit=2.0), "unit.*scale"),
    (lambda m: m.parameter("y", None), "value of 'y'"),
    (lambda m: m.parameter("P", [[0, 1], [2, 3]]), r"\(2, 2\); give 4 numbers"),
    (lambda m: m.reference("aim", [1.0, 2.0]), "reference 'aim' has 2 numbers; give size=2"),
    (lambda m: m.reference("aim", 2), r"write 2\.0 for the value, or size=2 for as many"),
    (lambda m: m.rates(x=cart().symbol("x")), "'x', which is another"),
    (lambda m: m.rates([0, 0]), "rates must be a dictionary"),
    (lambda m: m.rates(vv=0), "'vv'"),
    (lambda m: m.rates(x=ca.DM([1, 2])), "has 2 entries"),
    (lambda m: m.rates(x="v"), "must be an expression"),
    (lambda m: m.rates(x=ca.SX.sym("w")), "'w'"),
    (lambda m: m.rates(x=m.symbol("x") == 1), "'x' is the comparison"),
    (lambda m: m.next(x=0), "next"),
    (lambda m: repeated(m.equations, a=0), "'a' already"),
    (lambda m: (m.state("y"), m.moves), "'y'"),
    (lambda m: (m.algebraic("z"), m.moves), "1 algebraic states and 0 rows"),
    (lambda m: m.vector("state", {"x": 1}, "x0"), "x0 lacks 'v'"),
]
REFUSED_BY_A_PROBLEM = [
    (lambda o: o.minimize(""), "name"),
    (lambda o: repeated(o.minimize, "a", end=1), "'a' already"),
    (lambda o: o.minimize("soft limits", end=1), "already"),
    (lambda o: o.minimize("a", sum=ca.SX(2, 1)), "sum of 'a'"),
    (lambda o: o.minimize("a"), "'a' costs nothing"),
    (lambda o: o.minimize("a", end=ca.SX.sym("w")), "'w'"),
    (lambda o: repeated(o.path, "a", 1, upper=2), "'a' already"),
    (lambda o: (o.path("a", 1, upper=2), o.parameter("a")), "'a' already"),
    (lambda o: o.path("a", 1), "'a' has no limit"),
    (lambda o: o.path("a", 1, upper=o.model.symbol("x") <= 1), "limit of 'a' is the comparison"),
    (lambda o: o.path("a", 1, upper=2, at="middle"), "at of 'a'"),
    (lambda o: o.path("a", 1, upper=2, soft=-1), "soft of 'a'|linear weight"),
    (lambda o: o.path("a", 1, upper=2, soft=True), "soft of 'a'"),
    (lambda o: o.at_end("a", 1, equal=1, upper=2), "'a' has equal and a limit"),
    (lambda o: o.at_start("a", 1, lower=2, upper=1), "lower of 'a'"),
    (lambda o: o.soften("x", 1), "'x' has no limit"),
    (lambda o: o.final(x="1"), "final 'x'"),
    (lambda o: o.final(x=np.inf), "final 'x' is infinite"),
    (lambda o: o.final(x=o.model.symbol("x") <= 1), "final 'x' is the comparison"),
    (lambda o: o.initial(y=1), "'y'"),
    (lambda o: o.reference("x0"), "'x0' already"),
    (lambda o: (o.program, o.model.rates(x=0)), "cart is closed"),
    (lambda o: (o.program, o.minimize("a", end=1)), "cart is closed"),
    *[
        (lambda o, name=name: o.path(name, 1, upper=2), f"'{name}' already")
        for name in ("x", "u", "duration", "dynamics", "initial x", "final x")
    ],
]
REFUSED_BY_A_SOLVE = [
    (lambda o: (o.initial(v=None), o.solve()), "v of cart has no number"),
    (lambda o: o.solve({"v": 1}), "leaves free at the start"),
    (lambda o: o.solve({"w": 1}), "no state 'w'"),
    (lambda o: o.solve(guess={"q": 1}), "'q'"),
    (lambda o: o.solve(x=1), "'x' is a state.*x0="),
    (lambda o: o.solve([1, 2, 3]), "x0 has 3 entries"),
    (lambda o: o.solve([np.inf, 0]), "initial 'x' is infinite"),
    (lambda o: (o.final(x=ca.SX(np.nan)), o.solve()), "final 'x' has a NaN"),
    (lambda o: o.solve(k=[1, 2, 3]), r"'k' has the shape \(3,\)"),
    (lambda o: o.solve(r=[1, 2, 3]), "'r' .*5 numbers"),
    (lambda o: o.solve(r=np.nan), "'r' has a NaN"),
    (lambda o: o.solve(time="now"), "time must be numbers"),
    (lambda o: o.solve(guess=discrete().solve()), "guess"),
]
REFUSED_ARGUMENTS = [
    (lambda _: Model(""), "name"),
    (lambda _: OptimalControl("m", duration=1, intervals=1), "model must be a Model"),
    (lambda _: problem(solver="ipopt"), "solver must be a dictionary"),
    (lambda _: RungeKutta(0), "steps"),
    (lambda _: MultipleShooting(RungeKutta), "step must be RungeKutta"),
    (lambda _: steady(problem()), "model must be a Model"),
    (lambda _: Integrator("rk"), "plugin"),
    (lambda _: Collocation(0), "degree"),
    (lambda _: Collocation(3, "lobatto"), "points"),
    (lambda _: Free(1.0, lower=2.0), "lower <= guess <= upper"),
    (lambda _: algebraic().program, "Collocation"),
    (lambda _: algebraic(MultipleShooting(Integrator())).program, r"Integrator\('idas'\)"),
    (lambda _: discrete(Collocation()).program, "collocation is for rates"),
    (lambda _: problem(duration=0), "duration"),
    (lambda _: problem(duration=(1, 0.2, 3)), "Free"),
    (lambda _: problem(intervals=0), "intervals"),
    (lambda _: problem(method="radau"), "method must be"),
    (lambda _: problem(mesh=[0, 0.5, 0.4, 0.6, 1]), "increasing numbers from 0 to 1"),
    (lambda _: Soft(), "not both 0"),
    (lambda _: Soft(1.0, most=0.0), "most"),
]
TABLES = [
    (cart, REFUSED_BY_A_MODEL),
    (problem, REFUSED_BY_A_PROBLEM),
    (referring, REFUSED_BY_A_SOLVE),
    (lambda: None, REFUSED_ARGUMENTS),
]


@pytest.mark.parametrize(
    ("make", "call", "match"), [(make, *row) for make, table in TABLES for row in table]
)
def test_invalid_arguments_are_refused_by_name(make, call, match):
    with pytest.raises(InputError, match=match):
        call(make())


@pytest.mark.parametrize("index", [1, 2, 3])
def test_higher_index_dae_warns(index):
    """The rod of a pendulum stated for its force, velocity or position."""
    model = Model("pendulum")
    x, y, vx, vy = (model.state(name) for name in ("x", "y", "vx", "vy"))
    force = model.algebraic("force")
    model.rates(x=vx, y=vy, vx=-force * x, vy=-force * y - 1)
    rod = (vx**2 + vy**2 - y - force * (x**2 + y**2), x * vx + y * vy, x**2 + y**2 - 1)
    model.equations(rod=rod[index - 1])
    with pytest.warns(UserWarning, match="pendulum.*index") if index > 1 else nullcontext():
        assert model.moves


def test_printed_objects_list_their_names():
    ocp = referring()
    assert "control u" in str(ocp.model)
    for name in ("4 intervals", "MultipleShooting", "cost"):
        assert name in str(ocp)
    assert "free at the start: v" in str(ocp.solve())
    solution = discrete().solve()
    assert str(solution).startswith(f"Solved in {solution.iterations} iterations")
    assert "free at the start" not in str(solution)


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_boundary_value_outside_limits_comes_first(method):
    model = Model("cart")
    model.state("x", lower=-1, upper=model.parameter("wall", 0.5), unit="m")
    model.rates(x=model.control("u"), y=model.state("y"))
    ocp = stated(model, {"x": 7}, {"x": 9}, integral=model.symbol("u") ** 2, method=method)
    ocp.initial(x=-2)
    ocp.initial()
    ocp.final(x=1)
    head, first, *rest = str(ocp.solve({"y": 0})).splitlines()
    assert head.startswith("Not solved")
    for words in ("-2 m at the start, 1 m below", "1 m at the end, 0.5 m above its limit 0.5 m"):
        assert words in first
    assert "final x" in "\n".join(rest)
    assert ocp.solve([0, 0], wall=2)["x"][[0, -1]] == pytest.approx([0, 1], abs=1e-7)
    soft = ocp.reopened()
    soft.soften("x", 1.0)
    assert soft.solve([0, 0]).success


def test_model_gives_limits_and_functions():
    ocp, x, v, _ = double_integrator(u={"lower": -1, "upper": [2.0]})
    model = ocp.model
    k = model.parameter("k", [1.0, 2.0], unit="1/s")
    energy = model.output("energy", v**2 / 2 + k[1] * x, unit="J")
    assert model.limits("control", "upper").tolist() == [2.0]
    assert ca.is_equal(model.symbol("energy"), energy, 5)
    assert float(model.moves.outputs([3.0, 2.0], [], [0.0], [0.0, 10.0], 0.0)) == 32.0


@pytest.mark.parametrize("method", [*EVERY_METHOD, Collocation(2, "legendre")])
def test_rows_and_unknowns_have_unique_names(method):
    ocp, _, v, _ = double_integrator(intervals=3, method=method)
    ocp.initial()
    ocp.final(x=1)
    ocp.path("speed", v, upper=1)
    program = ocp.program
    names = program.variable_names, program.constraint_names
    for labels, stages in zip(names, (program.stages["x"], program.stages["g"]), strict=True):
        assert len(set(labels) - {""}) == len(labels) == stages.size
        assert (np.diff(stages) >= 0).all()
    rows = np.array(program.constraint_names)[program.constraints["speed"].where]
    assert rows.tolist() == [f"speed[{k}]" for k in range(4)]


@pytest.mark.parametrize("points", [2, 3, 4])
def test_guess_of_one_number_per_entry_is_constant(points):
    model, times = Model("plane"), np.arange(float(points))
    model.state("p", 2)
    model.rates(p=model.control("u", 2, guess=[1.0, 2.0]), s=model.state("s", guess=times[None]))
    ocp = OptimalControl(model, duration=1.0, intervals=points - 1)
    ocp.guess(p=[3.0, 4.0])
    start = ocp.program.unpack(ocp.program.x0)
    np.testing.assert_array_equal(start["u"], [[1.0] * (points - 1), [2.0] * (points - 1)])
    np.testing.assert_array_equal(start["p"], [[3.0] * points, [4.0] * points])
    np.testing.assert_array_equal(start["s"], [times])


@pytest.mark.parametrize("kind", ["parameter", "reference"])
@pytest.mark.parametrize("made", [Plant, MHE, EKF])
def test_later_parameters_are_refused_by_name(made, kind):
    model = Model("tank")
    level, inflow = model.state("level"), model.control("inflow")
    model.rates(level=inflow - level)
    options = {} if made is Plant else {"noise": 1.0, "prior": 1.0}
    part = made(model, 1.0, **options)
    part.step([1.0], [0.0])
    getattr(model, kind)("late", 1.0)
    with pytest.raises(InputError, match="'late'"):
        part.step([1.0], [0.0])
