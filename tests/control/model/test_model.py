"""Models and statements of optimal control problems: what they accept and what they refuse."""

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
    Plant,
    RungeKutta,
    SingleShooting,
    steady,
)
from casadi_hybrid.control.model.signals import matrix
from casadi_hybrid.control.transcription.terms import Soft
from casadi_hybrid.utils.errors import InputError


def integrator(**control: Any) -> tuple[Model, Any, Any, Any]:
    model = Model("cart")
    x, v = model.state("x"), model.state("v")
    u = model.control("u", **control)
    model.rates(x=v, v=u)
    return model, x, v, u


def problem(**options: Any) -> OptimalControl:
    options = {"duration": 1.0, "intervals": 4, **options}
    return OptimalControl(integrator()[0], **options)


def stated() -> OptimalControl:
    """With a reference ``r``, a parameter ``k`` and a fixed start of ``x`` only."""
    ocp = problem()
    r, k = ocp.reference("r", 0.0), ocp.parameter("k", [1.0, 2.0])
    ocp.initial(x=0)
    ocp.minimize("cost", sum=(ocp.model.symbol("u") - r) ** 2 * k[0])
    return ocp


def algebraic() -> Model:
    model = Model("plant")
    x, z = model.state("x"), model.algebraic("z")
    model.rates(x=-z)
    model.equations(balance=z - x)
    return model


def discrete() -> Model:
    model = Model("counter")
    x = model.state("x")
    model.next(x=0.5 * x)
    return model


OF_A_MODEL = {
    "name of a state": (lambda m: m.state(""), "name must be a non-empty text"),
    "name twice": (lambda m: m.control("x"), "cart has 'x' already"),
    "time is taken": (lambda m: m.state("time"), "cart has 'time' already"),
    "parameter of a model": (lambda m: m.parameter("guess"), "argument of a solve"),
    "size": (lambda m: m.state("y", 0), "size of 'y' must be a whole number, at least 1"),
    "limits crossed": (lambda m: m.state("y", lower=1, upper=0), "lower of 'y' is 1"),
    "limits of two": (
        lambda m: m.state("y", 3, lower=[0, 1]), "lower of 'y' has 2 entries; give one"),
    "limit NaN": (lambda m: m.state("y", upper=np.nan), "upper of 'y' has a NaN"),
    "limit no number": (lambda m: m.state("y", upper="a"), "must be numbers, got 'a'"),
    "limit a symbol": (
        lambda m: m.state("y", upper=m.symbol("x")),
        "upper of 'y' has 'x', which is no parameter of cart; declare it before, or limit"),
    "value of a parameter": (
        lambda m: m.parameter("y", None), "value of 'y' must be numbers, got None"),
    "matrix": (lambda m: m.parameter("P", [[0, 1], [2, 3]]), r"\(2, 2\); give 4 numbers; A"),
    "another's symbol": (
        lambda m: m.rates(x=integrator()[1]), "has 'x', which is another model's or problem's by"),
    "rates in a list": (lambda m: m.rates([0, 0]), "rates must be a dictionary by name"),
    "scale": (lambda m: m.state("y", scale=0), "scale of 'y' must be positive"),
    "unit": (lambda m: m.state("y", unit=2.0), "the typical size is called scale"),
    "rate of none": (lambda m: m.rates(vv=0), "there is no state 'vv'"),
    "rate of other size": (lambda m: m.rates(x=ca.DM([1, 2])), "has 2 entries"),
    "rate no expression": (lambda m: m.rates(x="v"), "must be an expression"),
    "rate of a stranger": (lambda m: m.rates(x=ca.SX.sym("w")), "does not know"),
    "rates and next": (lambda m: m.next(x=0), "it is either or"),
    "equation twice": (lambda m: (m.equations(a=0), m.equations(a=0)), "equations has 'a' already"),
    "output twice": (lambda m: m.output("x", 1), "cart has 'x' already"),
    "symbol": (lambda m: m.symbol("y"), "there is no quantity 'y'"),
    "rates missing": (lambda m: (m.state("y"), m.moves), "does not say how 'y' moves"),
    "equations missing": (lambda m: (m.algebraic("z"), m.moves), "1 algebraic states and 0 rows"),
    "vector": (lambda m: m.vector("state", [1], "x0"), "x0 has 1 entries, but cart has 2"),
    "vector a text": (lambda m: m.vector("state", "ab", "x0"), "x0 must be numbers, got 'ab'"),
    "vector by name": (lambda m: m.vector("state", {"x": 1}, "x0"), "x0 lacks 'v'"),
}  # fmt: skip
OF_A_PROBLEM = {
    "cost of a name": (lambda o: o.minimize(""), "the first argument is the cost.s name"),
    "cost twice": (
        lambda o: (o.minimize("a", end=1), o.minimize("a", end=1)), "a cost 'a' already"),
    "cost a vector": (lambda o: o.minimize("a", sum=ca.SX(2, 1)), "sum of 'a' must be a scalar"),
    "cost of nothing": (lambda o: o.minimize("a"), "'a' costs nothing; give integral"),
    "cost of a stranger": (
        lambda o: o.minimize("a", end=ca.SX.sym("w")), "'w', which cart does not know"),
    "constraint twice": (
        lambda o: (o.path("a", 1, upper=2), o.path("a", 1, upper=2)), "a constraint 'a' already"),
    **{f"constraint named {name}": (
        lambda o, name=name: o.path(name, 1, upper=2), f"cart has '{name}' already: limits, mult")
       for name in ("x", "u", "duration", "dynamics", "initial x", "final x")},
    "parameter named as a constraint": (
        lambda o: (o.path("a", 1, upper=2), o.parameter("a")), "'a' already"),
    "constraint of none": (lambda o: o.path("a", 1), "'a' has no limit"),
    **{f"comparison in {name}": (call, f"{name} is the comparison") for name, call in {
        "'a'": lambda o: o.path("a", o.model.symbol("x") <= 1, upper=1),
        "limit of 'a'": lambda o: o.path("a", 1, upper=o.model.symbol("x") <= 1),
        "final 'x'": lambda o: o.final(x=o.model.symbol("x") <= 1),
        "sum of 'a'": lambda o: o.minimize("a", sum=ca.logic_not(o.model.symbol("x"))),
        "the rate of 'x'": lambda o: o.model.rates(x=o.model.symbol("x") == 1)}.items()},
    "equal and limit": (lambda o: o.at_end("a", 1, equal=1, upper=2), "'a' has equal and a limit"),
    "constraint crossed": (
        lambda o: o.at_start("a", 1, lower=2, upper=1), "lower of 'a' is 2, above"),
    "at": (lambda o: o.path("a", 1, upper=2, at="middle"), "at of 'a' must be one of"),
    "soft": (lambda o: o.path("a", 1, upper=2, soft=-1), "a positive linear weight or None"),
    "soft without price": (
        lambda o: o.path("a", 1, upper=2, soft=True), "soft of 'a' must be a Soft"),
    "soften": (lambda o: o.soften("y", 1), "no state or algebraic state 'y'"),
    "soften no limit": (lambda o: o.soften("x", 1), "'x' has no limit that could be soft"),
    "final a text": (lambda o: o.final(x="1"), "final 'x' must be an expression"),
    "final infinite": (lambda o: o.final(x=np.inf), "final 'x' is infinite; give a finite"),
    "initial NaN": (lambda o: o.initial(x=np.nan), "initial 'x' has a NaN; give numbers$"),
    "initial in a list": (lambda o: o.initial([1, 0]), "initial must be a dictionary"),
    "final": (lambda o: o.final(y=1), "there is no state 'y'"),
    "initial": (lambda o: o.initial(y=1), "there is no state 'y'"),
    "free": (lambda o: o.free("k"), "there is no parameter 'k'"),
    "guess": (lambda o: o.guess(y=1), "there is no state, control or free one 'y'"),
    "parameter twice": (lambda o: (o.parameter("k"), o.parameter("k")), "cart has 'k' already"),
    "parameter named as an argument": (lambda o: o.reference("x0"), "'x0' already"),
    "model closed": (lambda o: (o.program, o.model.rates(x=0)), "cart is closed: a program of it"),
    "closed": (lambda o: (o.program, o.minimize("a", end=1)), "cart is closed: its program"),
}  # fmt: skip
OF_A_SOLVE = {
    "no start": (lambda o: (o.initial(v=None), o.solve()), "v of cart has no number at the start"),
    "no start in part": (lambda o: (o.initial(v=None), o.solve({"x": 0})), "solve.* {'v': …}, or"),
    "x0 of a free state": (lambda o: o.solve({"v": 1}), "leaves free at the start"),
    "x0 of a stranger": (lambda o: o.solve({"w": 1}), "there is no state 'w'"),
    "a state as a parameter": (lambda o: o.solve(x=1), "'x' is a state; its initial value is x0="),
    "x0 of three": (lambda o: o.solve([1, 2, 3]), "x0 has 3 entries"),
    "x0 infinite": (lambda o: o.solve([np.inf, 0]), "initial 'x' is infinite"),
    "cost soft limits": (lambda o: o.minimize("soft limits", end=1), "already"),
    "final NaN": (lambda o: (o.final(x=ca.SX(np.nan)), o.solve()), "final 'x' has a NaN"),
    "parameter of three": (
        lambda o: o.solve(k=[1, 2, 3]), r"'k' has the shape \(3,\); give a number, or 2 numbers$"),
    "reference of three": (
        lambda o: o.solve(r=[1, 2, 3]), "give a number, or 5 numbers, one for each time$"),
    "reference NaN": (lambda o: o.solve(r=np.nan), "value of 'r' has a NaN"),
    "guess in a list": (
        lambda o: o.solve(guess=[1, 2]), "guess must be a dictionary by name, got list"),
    "time a text": (lambda o: o.solve(time="now"), "time must be numbers, got 'now'"),
    "guess of a stranger": (lambda o: o.solve(guess={"q": 1}), "'q'"),
    "guess of another": (lambda o: o.solve(guess=discrete_solution()), "guess is a solution of"),
}  # fmt: skip
AS_IT_IS_MADE = {
    "no name": (lambda: Model(""), "name must be a non-empty text"),
    "Runge-Kutta steps": (lambda: RungeKutta(0), "steps must be a whole number, at least 1"),
    "step": (lambda: MultipleShooting(RungeKutta), "step must be RungeKutta.* got <class"),
    "plant": (lambda: Plant(discrete(), 1, step="rk"), "step must be RungeKutta.* got 'rk'"),
    "steady": (lambda: steady(problem()), "model must be a Model, got OptimalControl"),
    "plugin": (lambda: Integrator("rk"), "plugin must be one of 'cvodes', 'idas', got 'rk'"),
    "degree": (lambda: Collocation(0), "degree must be an integer from 1 to 9"),
    "points": (lambda: Collocation(3, "lobatto"), "points must be one of 'radau', 'legendre'"),
    "free duration": (lambda: Free(1.0, lower=2.0), "takes 0 < lower <= guess <= upper"),
    "DAE by Runge-Kutta": (
        lambda: OptimalControl(algebraic(), duration=1, intervals=2).program, "Collocation"),
    "DAE by cvodes": (
        lambda: OptimalControl(
            algebraic(), duration=1, intervals=2, method=MultipleShooting(Integrator())).program,
        "Integrator\\('idas'\\)"),
    "discrete by collocation": (
        lambda: OptimalControl(discrete(), duration=1, intervals=2, method=Collocation()).program,
        "collocation is for rates"),
    "no model": (lambda: OptimalControl("m", duration=1, intervals=1), "model must be a Model"),
    "duration": (lambda: problem(duration=0), "duration must be a positive number"),
    "duration a tuple": (lambda: problem(duration=(1, 0.2, 3)), "or Free\\(guess, lower, upper\\)"),
    "intervals": (lambda: problem(intervals=0), "intervals must be a whole number, at least 1"),
    "method": (lambda: problem(method="radau"), "method must be"),
    "method not made": (lambda: problem(method=Collocation), "method must be"),
    "options": (lambda: problem(solver="ipopt"), "solver must be a dictionary by name, got str"),
    "mesh": (lambda: problem(mesh=[0, 0.5, 0.4, 0.6, 1]), "increasing numbers from 0 to 1"),
    "soft without weight": (Soft, "not both 0"),
    "soft most": (lambda: Soft(1.0, most=0.0), "most must be a positive number"),
}  # fmt: skip


def discrete_solution() -> Any:
    ocp = OptimalControl(discrete(), duration=2, intervals=2)
    ocp.initial(x=1)
    return ocp.solve()


MADE = [
    pytest.param(make, *row, id=name)
    for make, table in (
        (lambda: integrator()[0], OF_A_MODEL), (problem, OF_A_PROBLEM), (stated, OF_A_SOLVE)
    )
    for name, row in table.items()
]  # fmt: skip


@pytest.mark.parametrize(("make", "call", "words"), MADE)
def test_what_does_not_fit_a_model_a_problem_or_a_solve_is_refused_by_name(make, call, words):
    made = make()
    with pytest.raises(InputError, match=words):
        call(made)


@pytest.mark.parametrize("index", [1, 2, 3])
def test_a_dae_of_higher_index_is_warned_of(index: int, recwarn: Any) -> None:
    """A pendulum whose rod is stated for the force, the velocity or the place."""
    model = Model("pendulum")
    x, y, vx, vy = (model.state(name) for name in ("x", "y", "vx", "vy"))
    force = model.algebraic("force")
    model.rates(x=vx, y=vy, vx=-force * x, vy=-force * y - 1)
    rod = (vx**2 + vy**2 - y - force * (x**2 + y**2), x * vx + y * vy, x**2 + y**2 - 1)
    model.equations(rod=rod[index - 1])
    assert model.moves
    said = [str(one.message) for one in recwarn]
    assert len(said) == (index > 1)
    assert all("pendulum" in one and "index of the DAE is above 1" in one for one in said)


@pytest.mark.parametrize(("call", "words"), AS_IT_IS_MADE.values(), ids=AS_IT_IS_MADE)
def test_what_does_not_fit_as_it_is_made_is_refused_by_name(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_models_and_problems_say_what_they_are_where_they_are_printed() -> None:
    model, x, *_ = integrator(lower=-1, upper=1)
    name = next(iter(model.signals["control"]))
    assert f"control {name}" in str(model)
    assert str(Model("bare")) == "<Model 'bare': empty>"
    ocp = OptimalControl(model, duration=Free(2.0), intervals=3, method=Collocation())
    ocp.initial()
    ocp.minimize("error", integral=x**2)
    ocp.path("wall", x, upper=2)
    for words in ("free duration in 3 intervals, Collocation", "costs error", "constraints wall"):
        assert words in str(ocp)


def test_a_solution_says_whether_it_is_one_where_it_is_printed() -> None:
    found = discrete_solution()
    assert str(found).startswith(f"Solved in {found.iterations} iterations: ")
    assert "free at the start" not in str(found)
    assert "\nfree at the start: v" in str(stated().solve())


@pytest.mark.parametrize("method", [MultipleShooting(), SingleShooting()])
def test_a_start_or_an_end_outside_of_limits_is_said_first(method: Any) -> None:
    """By the limits of the solve; of two calls that state the same end the last one counts."""
    model = Model("cart")
    model.state("x", lower=-1, upper=model.parameter("wall", 0.5), unit="m")
    model.rates(x=model.control("u"), y=model.state("y"))
    ocp = OptimalControl(model, duration=1.0, intervals=4, method=method)
    ocp.initial(x=7)
    ocp.initial(x=-2)
    ocp.initial()  # the others
    ocp.final(x=9)
    ocp.final(x=1)
    ocp.minimize("effort", integral=model.symbol("u") ** 2)
    head, first, *rest = str(ocp.solve({"y": 0})).splitlines()
    assert head.startswith("Not solved in ")
    assert first.startswith("x is given as -2 m at the start, 1 m below its limit -1 m; x is given")
    assert first.endswith("1 m at the end, 0.5 m above its limit 0.5 m: change that, or the limit.")
    assert "  final x should be 1 m, is " in "\n".join(rest)
    assert ocp.solve([0, 0], wall=2)["x"][[0, -1]] == pytest.approx([0, 1], abs=1e-7)
    soft = ocp.reopened()
    soft.soften("x", 1.0)
    assert soft.solve([0, 0]).success


def test_a_model_says_what_it_has() -> None:
    model, x, v, _ = integrator(lower=-1, upper=[2.0])
    k = model.parameter("k", [1.0, 2.0], unit="1/s")
    energy = model.output("energy", v**2 / 2 + k[1] * x, unit="J")
    assert model.size("state") == 2
    assert model.places("parameter") == {"k": slice(0, 2)}
    assert model.limits("control", "upper").tolist() == [2.0]
    assert ca.is_equal(model.symbol("energy"), energy, 5)
    outputs = model.moves.outputs([3.0, 2.0], [], [0.0], [0.0, 10.0], 0.0)
    assert float(outputs) == 32.0
    assert not model.discrete
    rate = model.moves.rate([3.0, 2.0], [], [7.0], [0.0, 0.0], 0.0)
    assert rate.full().ravel().tolist() == [2.0, 7.0]


def test_names_that_are_no_python_words_come_in_dictionaries() -> None:
    model = Model("car")
    x = model.state("x position")
    u = model.control("steer & go")
    model.rates({"x position": u - x})
    ocp = OptimalControl(model, duration=1.0, intervals=3)
    ocp.initial({"x position": 1.0})
    ocp.final({"x position": 0.0})
    ocp.minimize("effort", integral=u**2)
    assert ocp.solve()["x position"][-1] == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize(
    "method", [MultipleShooting(), SingleShooting(), Collocation(), Collocation(2, "legendre")]
)
def test_every_row_and_unknown_has_a_name_and_a_stage(method: Any) -> None:
    model, _, v, u = integrator()
    ocp = OptimalControl(model, duration=1.0, intervals=3, method=method)
    ocp.initial()
    ocp.final(x=1)
    ocp.path("speed", v, upper=1)
    ocp.minimize("effort", integral=u**2)
    program = ocp.program
    for kind, key, total in (("variable", "x", program.n), ("constraint", "g", program.m)):
        names = getattr(program, f"{kind}_names")
        assert len(set(names)) == total
        assert all(names)
        assert program.stages[key].size == total
        assert (np.diff(program.stages[key]) >= 0).all()
    names = np.array(program.constraint_names)
    assert names[program.constraints["speed"].where].tolist() == [f"speed[{k}]" for k in range(4)]


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_two_numbers_for_two_signals_are_one_for_each_also_where_there_are_two_times(columns):
    found = matrix([1.0, 2.0], 2, columns, "guess")
    assert (found == [[1.0] * columns, [2.0] * columns]).all()
    times = np.arange(float(columns))
    assert (matrix(times, 1, columns, "guess") == [times]).all()
