"""Models and statements of optimal control problems: what they accept and what they refuse."""

from contextlib import nullcontext

import casadi as ca
import numpy as np
import pytest
from support.cases.ocps import double_integrator

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
    SingleShooting,
    steady,
)
from casadi_hybrid.control.transcription.terms import Soft
from casadi_hybrid.utils.errors import InputError


def problem(**options):
    return double_integrator(**options)[0]


def cart():
    return problem().model


def stated():
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
    ocp = OptimalControl(model, duration=2, intervals=2, method=method)
    ocp.initial(x=1)
    return ocp


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
    (lambda m: m.state("y", 3, lower=[0, 1]), "lower of 'y' has 2 entries"),
    (lambda m: m.state("y", upper=np.nan), "upper of 'y' has a NaN"),
    (lambda m: m.state("y", upper="a"), "got 'a'"),
    (lambda m: m.state("y", upper=m.symbol("x")), "upper of 'y' has 'x'"),
    (lambda m: m.state("y", scale=0), "scale of 'y'"),
    (lambda m: m.state("y", unit=2.0), "unit.*scale"),
    (lambda m: m.parameter("y", None), "value of 'y'"),
    (lambda m: m.parameter("P", [[0, 1], [2, 3]]), r"\(2, 2\); give 4 numbers"),
    (lambda m: m.symbol("y"), "'y'"),
    (lambda m: m.rates(x=cart().symbol("x")), "'x', which is another"),
    (lambda m: m.rates([0, 0]), "rates must be a dictionary"),
    (lambda m: m.rates(vv=0), "'vv'"),
    (lambda m: m.rates(x=ca.DM([1, 2])), "has 2 entries"),
    (lambda m: m.rates(x="v"), "must be an expression"),
    (lambda m: m.rates(x=ca.SX.sym("w")), "'w'"),
    (lambda m: m.rates(x=m.symbol("x") == 1), "'x' is the comparison"),
    (lambda m: m.next(x=0), "next"),
    (lambda m: repeated(m.equations, a=0), "'a' already"),
    (lambda m: m.output("x", 1), "'x' already"),
    (lambda m: (m.state("y"), m.moves), "'y'"),
    (lambda m: (m.algebraic("z"), m.moves), "1 algebraic states and 0 rows"),
    (lambda m: m.vector("state", [1], "x0"), "x0 has 1 entries"),
    (lambda m: m.vector("state", "ab", "x0"), "x0 must be numbers"),
    (lambda m: m.vector("state", {"x": 1}, "x0"), "x0 lacks 'v'"),
]
REFUSED_BY_A_PROBLEM = [
    (lambda o: o.minimize(""), "name"),
    (lambda o: repeated(o.minimize, "a", end=1), "'a' already"),
    (lambda o: o.minimize("soft limits", end=1), "already"),
    (lambda o: o.minimize("a", sum=ca.SX(2, 1)), "sum of 'a'"),
    (lambda o: o.minimize("a"), "'a' costs nothing"),
    (lambda o: o.minimize("a", end=ca.SX.sym("w")), "'w'"),
    (lambda o: o.minimize("a", sum=ca.logic_not(o.model.symbol("x"))), "sum of 'a' is the comp"),
    (lambda o: repeated(o.path, "a", 1, upper=2), "'a' already"),
    (lambda o: (o.path("a", 1, upper=2), o.parameter("a")), "'a' already"),
    (lambda o: o.path("a", 1), "'a' has no limit"),
    (lambda o: o.path("a", o.model.symbol("x") <= 1, upper=1), "'a' is the comparison"),
    (lambda o: o.path("a", 1, upper=o.model.symbol("x") <= 1), "limit of 'a' is the comparison"),
    (lambda o: o.path("a", 1, upper=2, at="middle"), "at of 'a'"),
    (lambda o: o.path("a", 1, upper=2, soft=-1), "soft of 'a'|linear weight"),
    (lambda o: o.path("a", 1, upper=2, soft=True), "soft of 'a'"),
    (lambda o: o.at_end("a", 1, equal=1, upper=2), "'a' has equal and a limit"),
    (lambda o: o.at_start("a", 1, lower=2, upper=1), "lower of 'a'"),
    (lambda o: o.soften("y", 1), "'y'"),
    (lambda o: o.soften("x", 1), "'x' has no limit"),
    (lambda o: o.final(x="1"), "final 'x'"),
    (lambda o: o.final(x=np.inf), "final 'x' is infinite"),
    (lambda o: o.final(x=o.model.symbol("x") <= 1), "final 'x' is the comparison"),
    (lambda o: o.final(y=1), "'y'"),
    (lambda o: o.initial(x=np.nan), "initial 'x' has a NaN"),
    (lambda o: o.initial([1, 0]), "initial must be a dictionary"),
    (lambda o: o.initial(y=1), "'y'"),
    (lambda o: o.free("k"), "no parameter 'k'"),
    (lambda o: o.guess(y=1), "'y'"),
    (lambda o: repeated(o.parameter, "k"), "'k' already"),
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
    (lambda o: (o.initial(v=None), o.solve({"x": 0})), "'v'"),
    (lambda o: o.solve({"v": 1}), "leaves free at the start"),
    (lambda o: o.solve({"w": 1}), "no state 'w'"),
    (lambda o: o.solve(x=1), "'x' is a state.*x0="),
    (lambda o: o.solve([1, 2, 3]), "x0 has 3 entries"),
    (lambda o: o.solve([np.inf, 0]), "initial 'x' is infinite"),
    (lambda o: (o.final(x=ca.SX(np.nan)), o.solve()), "final 'x' has a NaN"),
    (lambda o: o.solve(k=[1, 2, 3]), r"'k' has the shape \(3,\)"),
    (lambda o: o.solve(r=[1, 2, 3]), "'r' .*5 numbers"),
    (lambda o: o.solve(r=np.nan), "'r' has a NaN"),
    (lambda o: o.solve(guess=[1, 2]), "guess must be a dictionary"),
    (lambda o: o.solve(time="now"), "time must be numbers"),
    (lambda o: o.solve(guess={"q": 1}), "'q'"),
    (lambda o: o.solve(guess=discrete().solve()), "guess"),
]
REFUSED_ARGUMENTS = [
    (lambda _: Model(""), "name"),
    (lambda _: RungeKutta(0), "steps"),
    (lambda _: MultipleShooting(RungeKutta), "step must be RungeKutta"),
    (lambda _: Plant(discrete().model, 1, step="rk"), "step must be RungeKutta"),
    (lambda _: steady(problem()), "model must be a Model"),
    (lambda _: Integrator("rk"), "plugin"),
    (lambda _: Collocation(0), "degree"),
    (lambda _: Collocation(3, "lobatto"), "points"),
    (lambda _: Free(1.0, lower=2.0), "lower <= guess <= upper"),
    (lambda _: algebraic().program, "Collocation"),
    (lambda _: algebraic(MultipleShooting(Integrator())).program, r"Integrator\('idas'\)"),
    (lambda _: discrete(Collocation()).program, "collocation is for rates"),
    (lambda _: OptimalControl("m", duration=1, intervals=1), "model must be a Model"),
    (lambda _: problem(duration=0), "duration"),
    (lambda _: problem(duration=(1, 0.2, 3)), "Free"),
    (lambda _: problem(intervals=0), "intervals"),
    (lambda _: problem(method="radau"), "method must be"),
    (lambda _: problem(method=Collocation), "method must be"),
    (lambda _: problem(solver="ipopt"), "solver must be a dictionary"),
    (lambda _: problem(mesh=[0, 0.5, 0.4, 0.6, 1]), "increasing numbers from 0 to 1"),
    (lambda _: Soft(), "not both 0"),
    (lambda _: Soft(1.0, most=0.0), "most"),
]
TABLES = [
    (cart, REFUSED_BY_A_MODEL),
    (problem, REFUSED_BY_A_PROBLEM),
    (stated, REFUSED_BY_A_SOLVE),
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
    options = {"duration": Free(2.0), "intervals": 3, "method": Collocation()}
    ocp, x, *_ = double_integrator(u={"lower": -1, "upper": 1}, **options)
    assert "control u" in str(ocp.model)
    assert "bare" in str(Model("bare"))
    ocp.initial()
    ocp.minimize("error", integral=x**2)
    ocp.path("wall", x, upper=2)
    for name in ("3 intervals", "Collocation", "error", "wall"):
        assert name in str(ocp)
    solution = discrete().solve()
    assert str(solution).startswith(f"Solved in {solution.iterations} iterations")
    assert "free at the start" not in str(solution)
    assert "free at the start: v" in str(stated().solve())


@pytest.mark.parametrize("method", [MultipleShooting(), SingleShooting()])
def test_boundary_value_outside_limits_comes_first(method):
    """The limits are those of the solve; the last of two stated ends counts."""
    model = Model("cart")
    model.state("x", lower=-1, upper=model.parameter("wall", 0.5), unit="m")
    model.rates(x=model.control("u"), y=model.state("y"))
    ocp = OptimalControl(model, duration=1.0, intervals=4, method=method)
    for start in ({"x": 7}, {"x": -2}, {}):
        ocp.initial(**start)
    for x in (9, 1):
        ocp.final(x=x)
    ocp.minimize("effort", integral=model.symbol("u") ** 2)
    head, first, *rest = str(ocp.solve({"y": 0})).splitlines()
    assert head.startswith("Not solved")
    for words in ("-2 m at the start, 1 m below", "1 m at the end, 0.5 m above its limit 0.5 m"):
        assert words in first
    assert "final x" in "\n".join(rest)
    assert ocp.solve([0, 0], wall=2)["x"][[0, -1]] == pytest.approx([0, 1], abs=1e-7)
    soft = ocp.reopened()
    soft.soften("x", 1.0)
    assert soft.solve([0, 0]).success


def test_model_gives_sizes_limits_and_functions():
    ocp, x, v, _ = double_integrator(u={"lower": -1, "upper": [2.0]})
    model = ocp.model
    k = model.parameter("k", [1.0, 2.0], unit="1/s")
    energy = model.output("energy", v**2 / 2 + k[1] * x, unit="J")
    assert model.size("state") == 2
    assert model.places("parameter") == {"k": slice(0, 2)}
    assert model.limits("control", "upper").tolist() == [2.0]
    assert ca.is_equal(model.symbol("energy"), energy, 5)
    assert not model.discrete
    assert float(model.moves.outputs([3.0, 2.0], [], [0.0], [0.0, 10.0], 0.0)) == 32.0
    rate = model.moves.rate([3.0, 2.0], [], [7.0], [0.0, 0.0], 0.0)
    assert rate.full().ravel().tolist() == [2.0, 7.0]


@pytest.mark.parametrize(
    "method", [MultipleShooting(), SingleShooting(), Collocation(), Collocation(2, "legendre")]
)
def test_rows_and_unknowns_have_unique_names(method):
    ocp, _, v, u = double_integrator(intervals=3, method=method)
    ocp.initial()
    ocp.final(x=1)
    ocp.path("speed", v, upper=1)
    ocp.minimize("effort", integral=u**2)
    program = ocp.program
    for names, stages in (
        (program.variable_names, program.stages["x"]),
        (program.constraint_names, program.stages["g"]),
    ):
        assert all(names)
        assert len(set(names)) == len(names) == stages.size
        assert (np.diff(stages) >= 0).all()
    rows = np.array(program.constraint_names)[program.constraints["speed"].where]
    assert rows.tolist() == [f"speed[{k}]" for k in range(4)]


@pytest.mark.parametrize("points", [2, 3, 4])
def test_guess_of_one_number_per_entry_is_constant(points):
    """Two numbers for two entries are one for each, also with as many intervals or points."""
    model, times = Model("plane"), np.arange(float(points))
    p = model.state("p", 2)
    model.rates(p=model.control("u", 2, guess=[1.0, 2.0]), s=model.state("s", guess=times[None]))
    ocp = OptimalControl(model, duration=1.0, intervals=points - 1)
    ocp.guess(p=[3.0, 4.0])
    ocp.minimize("size", end=ca.sumsqr(p))
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
