"""What a problem accepts, and that everything else is refused with the argument's name."""

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import InputError, Problem, Solver, nlpsol
from casadi_hybrid.problem.arguments import Numbers

KINDS = (ca.SX, ca.MX)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_names(kind: Any) -> None:
    x, p = kind.sym("x", 3), kind.sym("p", 2)
    problem = Problem(x=x, p=p, f=ca.sumsqr(x), h=ca.vertcat(x[0] - p[0], x[1] * p[1]), name="two")
    assert (problem.n, problem.m, problem.n_p) == (3, 2, 2)
    assert problem.constraint_names == ("h[0]", "h[1]")
    assert repr(problem) == f"Problem('two', {kind.__name__}, n=3, m=2, parameters=2)"
    assert Problem(x=x, f=0, h=x, p=kind(0, 1)).n_p == 0  # an empty p is no p


def test_variable_names_are_those_of_the_symbols() -> None:
    x = ca.SX.sym("x", 2)
    assert Problem(x=x, f=0, h=x).variable_names == ("x_0", "x_1")
    u, v = ca.MX.sym("u"), ca.MX.sym("v", 2)
    assert Problem(x=ca.vertcat(u, v), f=0, h=u).variable_names == ("u", "v[0]", "v[1]")
    assert Problem(x=v, f=0, h=v, variable_names=["a", "b"]).variable_names == ("a", "b")


@pytest.mark.parametrize("kind", KINDS)
def test_a_mapping_names_and_stacks_the_constraints(kind: Any) -> None:
    x = kind.sym("x", 3)
    rows = {"ball": ca.sumsqr(x) - 1, "pins": x[:2], "none": kind(0, 1), "given": [x[2], 4.0]}
    problem = Problem(x=x, f=0, h=rows)
    assert problem.constraint_names == ("ball", "pins[0]", "pins[1]", "given[0]", "given[1]")
    values = ca.Function("h", [x], [problem.h])([1.0, 2.0, 3.0]).full().ravel()
    assert values.tolist() == [13, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sequence", [list, tuple])
def test_a_list_of_expressions_and_numbers_is_stacked(kind: Any, sequence: Any) -> None:
    x = kind.sym("x", 2)
    for h in ([x[0], x[1] - 2], [x, 3], [1.0, 2], [ca.DM([1, 2]), x[1]]):
        problem = Problem(x=x, f=0, h=sequence(h))
        assert problem.m == sum(part.numel() if hasattr(part, "numel") else 1 for part in h)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_expressions_too(kind: Any) -> None:
    x = kind.sym("x", 2)
    problem = Problem(x=x, f=np.float64(3.0), h=ca.DM([1, 2, 3]))
    assert (problem.n, problem.m, problem.n_p) == (2, 3, 0)
    assert ca.Function("f", [x], [problem.f])([0, 0]) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_expressions_keep_their_length(kind: Any) -> None:
    x = kind.sym("x", 2)
    h = kind(ca.Sparsity.triplet(4, 1, [1], [0]), x[0])
    problem = Problem(x=x, f=kind(1, 1), h=h)
    assert problem.m == 4
    values = ca.Function("fh", [x], [problem.f, problem.h])([5, 6])
    assert [value.full().ravel().tolist() for value in values] == [[0], [0, 5, 0, 0]]


def test_a_problem_cannot_be_changed() -> None:
    x = ca.SX.sym("x")
    problem = Problem(x=x, f=x, h=x)
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.f = x**2


x, y = ca.SX.sym("x", 2), ca.SX.sym("y", 2)
X, Y = ca.MX.sym("X", 2), ca.MX.sym("Y", 2)
row, square = ca.SX.sym("row", 1, 2), ca.SX.sym("square", 2, 2)
nan, inf = np.nan, np.inf
holes = ca.SX.sym("holes", ca.Sparsity.triplet(3, 1, [0, 2], [0, 0]))


def make(**changes: Any) -> Problem:
    return Problem(**{"x": x, "f": x[0], "h": x, **changes})


# what is wrong: (arguments, words the message must have; the first names the argument)
REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "x is text": ({"x": "x"}, ["x must be", "str"]),
    "x is a list": ({"x": [x]}, ["x must be", "list"]),
    "x is an array": ({"x": np.ones(2)}, ["x must be", "ndarray"]),
    "x is an expression": ({"x": x + 1}, ["x must be", "symbols"]),
    "x is an MX expression": ({"x": X + 1, "f": X[0], "h": X}, ["x must be", "symbols"]),
    "x is part of an MX symbol": ({"x": X[0], "f": X[0], "h": X[0]}, ["x must be", "symbols"]),
    "x is a row": ({"x": row}, ["x has shape", "(1, 2)", "column"]),
    "x is a matrix": ({"x": square}, ["x has shape", "(2, 2)", "column"]),
    "x is sparse": ({"x": holes}, ["x has shape", "dense"]),
    "x is empty": ({"x": ca.SX(), "f": 0, "h": 1}, ["x is empty"]),
    "x has a symbol twice": ({"x": ca.vertcat(x[0], x[0])}, ["x", "twice"]),
    "x has an MX symbol twice": ({"x": ca.vertcat(X, X), "f": X[0], "h": X}, ["x", "twice"]),
    "p has a symbol twice": ({"p": ca.vertcat(y[0], y[0])}, ["p", "twice"]),
    "x and p share a symbol": ({"p": ca.vertcat(y, x[1])}, ["x and p share"]),
    "x and p are one MX symbol": ({"x": X, "p": X, "f": X[0], "h": X}, ["x and p share"]),
    "p is an expression": ({"p": y + 1}, ["p must be", "symbols"]),
    "p is of the other kind": ({"p": Y}, ["p is MX", "SX"]),
    "p is a row": ({"p": row}, ["p has shape", "(1, 2)"]),
    "f is of the other kind": ({"f": X[0]}, ["f must be", "SX", "MX"]),
    "f is of the other kind, in MX": ({"x": X, "f": x[0], "h": X}, ["f must be", "MX", "SX"]),
    "f is a vector": ({"f": x}, ["f has shape", "(2, 1)", "scalar"]),
    "f is a matrix": ({"f": square}, ["f has shape", "(2, 2)"]),
    "f is empty": ({"f": ca.SX(0, 1)}, ["f has shape", "scalar"]),
    "f is text": ({"f": "x"}, ["f must be", "str"]),
    "f is complex": ({"f": 1j}, ["f must be", "complex"]),
    "f is None": ({"f": None}, ["f must be", "NoneType"]),
    "f compares": ({"f": x[0] <= 1}, ["f is the comparison"]),
    "f depends on something else": ({"f": y[1]}, ["f depends on y_1"]),
    "h is of the other kind": ({"h": X}, ["h must be", "SX", "MX"]),
    "h is a row": ({"h": x.T}, ["h has shape", "(1, 2)", "vector"]),
    "h is a matrix": ({"h": ca.mtimes(x, x.T)}, ["h has shape", "(2, 2)"]),
    "h is text": ({"h": "x"}, ["h must be", "str"]),
    "h compares": ({"h": {"a": [x[0], x[1] == 1]}}, ["h['a'][1] is the comparison", "x_1==1"]),
    "h is an array": ({"h": np.array([1.0, 2.0])}, ["h must be", "ndarray"]),
    "h has the other kind in a list": ({"h": [x[0], X[0]]}, ["h[1] must be", "MX"]),
    "h has text in a list": ({"h": [x[0], "x"]}, ["h[1] must be", "str"]),
    "h has a row in a list": ({"h": [x[0], x.T]}, ["h[1] has shape", "(1, 2)"]),
    "h has text in a mapping": ({"h": {"a": x, "b": "x"}}, ["h['b'] must be", "str"]),
    "h has a row in a mapping": ({"h": {"a": x.T}}, ["h['a'] has shape", "(1, 2)"]),
    "h depends on something else": ({"h": x - y}, ["h depends on", "y_0", "y_1"]),
    "h depends on another MX": ({"x": X, "f": 0, "h": X - Y}, ["h depends on", "Y"]),
    "too few constraint names": ({"constraint_names": ["a"]}, ["constraint_names", "1", "2"]),
    "text for constraint names": ({"constraint_names": "ab"}, ["constraint_names"]),
    "a number for constraint names": ({"constraint_names": 3}, ["constraint_names"]),
    "a generator of names": ({"variable_names": (c for c in "ab")}, ["variable_names"]),
    "names twice": ({"h": {"a": x}, "constraint_names": ["a", "b"]}, ["constraint_names", "h"]),
    "too many variable names": ({"variable_names": list("abc")}, ["variable_names", "3", "2"]),
    "x is an empty mapping": ({"x": {}}, ["x is empty"]),
    "x has text in a mapping": ({"x": {"a": "x"}}, ["x['a'] must be", "str"]),
    "x has two kinds in a mapping": ({"x": {"a": x, "b": X}}, ["x['b'] is MX", "SX"]),
    "x is named twice": ({"x": {"a": x}, "variable_names": ["a", "b"]}, ["variable_names", "x"]),
    "p has an expression in a mapping": ({"p": {"a": y + 1}}, ["p['a'] must be", "symbols"]),
    "g is of the other kind": ({"g": X}, ["g must be", "SX", "MX"]),
    "g depends on something else": ({"g": x - y}, ["g depends on", "y_0", "y_1"]),
    "g has text in a mapping": ({"g": {"a": (0, "x", 1)}}, ["g['a'] must be", "str"]),
    "g compares": ({"g": {"a": (0, ca.vertcat(x[0] < 1), 1)}}, ["g['a'] is the comparison"]),
    "g is logic": ({"x": X, "f": 0, "h": X, "g": ca.vertcat(X, ca.logic_not(X[0]))}, ["g is the"]),
    "g is named twice": ({"g": {"a": x}, "constraint_names": [*"abcd"]}, ["constraint_names", "g"]),
    "a block twice": ({"h": {"a": x}, "g": {"a": x}}, ["h and g", "'a'"]),
    "too few names of rows": ({"g": x, "constraint_names": ["a"]}, ["constraint_names", "1", "4"]),
    "a pair": ({"g": {"a": (x[0], 1)}}, ["g['a'] is a pair; write (lower, expression, upper)"]),
    "an equation with bounds": ({"h": {"a": (0, x[0], 5)}}, ["h['a'] has bounds", "in g"]),
    "a bound that is a symbol": ({"g": {"a": (0, x[0], y[0])}}, ["g['a']", "numbers", "list"]),
    "a bound of a triple is NaN": ({"g": {"a": (0, x, nan)}}, ["the upper bound in g['a']", "nan"]),
    "a triple with too many numbers": (
        {"g": {"a": ([0, 0, 0], x, 1)}},
        ["the lower bound in g['a']", "(3,)", "2 number"],
    ),
    "a triple is crossed": ({"g": {"a": (2, x, [3, 1])}}, ["lbg[1] = 2", "ubg[1] = 1", "a[1]"]),
    "a triple and lbg": ({"g": {"a": (0, x, 1)}, "lbg": {"a": 1}}, ["lbg names 'a'", "once"]),
    "a triple and ubg": ({"g": {"a": (0, x, None)}, "ubg": {"a": 1}}, ["ubg names 'a'", "once"]),
    "a triple and lbg of all": ({"g": {"a": (0, x, 1), "b": x}, "lbg": 0}, ["lbg", "'a'", "block"]),
    "lbg has an unknown block": ({"g": {"speed": x}, "lbg": {"spede": 0}}, ["lbg", "'speed'?"]),
    "lbg has a block of h": ({"h": {"a": x}, "g": {"b": x}, "lbg": {"a": 0}}, ["lbg", "unknown"]),
    "lbg has a block where none is": ({"g": x, "lbg": {"a": 0}}, ["lbg", "'a'", "no mapping"]),
    "lbg is NaN": ({"g": x, "lbg": [0, nan]}, ["lbg[1] is nan"]),
    "lbg is too long": ({"g": x, "lbg": [0, 0, 0]}, ["lbg has shape", "(3,)", "2 number"]),
    "lbg is for rows of h": ({"lbg": [0, 0]}, ["lbg has shape", "(2,)", "0 number"]),
    "lbg is inf": ({"g": {"a": x}, "lbg": {"a": [0, inf]}}, ["lbg[1] is inf", "a[1]"]),
    "lbg is a symbol": ({"g": x, "lbg": y}, ["lbg is a CasADi symbol"]),
    "lbg exceeds ubg": ({"g": {"a": x}, "lbg": 2, "ubg": 1}, ["lbg[0] = 2", "ubg[0] = 1", "a[0]"]),
    "lbx exceeds ubx": ({"lbx": 2, "ubx": [3, 1]}, ["lbx[1] = 2", "ubx[1] = 1", "x_1"]),
    "lbx is NaN": ({"lbx": nan}, ["lbx", "nan"]),
    "ubx has an unknown block": ({"x": {"q": x}, "ubx": {"p": 0}}, ["ubx", "'p'", "q"]),
    "x0 is too long": ({"x0": [1, 2, 3]}, ["x0 has shape", "(3,)", "2"]),
    "x0 is inf": ({"x0": [1, inf]}, ["x0[1] is inf"]),
    "p0 is too long": ({"p": y, "p0": [1, 2, 3]}, ["p0 has shape"]),
    "lam_g0 is short": ({"g": x, "lam_g0": [1, 2]}, ["lam_g0 has shape", "4"]),
    "lam_x0 is text": ({"lam_x0": "a"}, ["lam_x0 must be", "str"]),
}


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.filterwarnings("ignore")
def test_refused(what: str, capfd: pytest.CaptureFixture[str]) -> None:
    arguments, words = REFUSED[what]
    with pytest.raises(InputError) as caught:
        make(**arguments)
    message = str(caught.value)
    assert message.startswith(words[0]) or words[0] in message.split(" ")
    for word in words:
        assert word in message
    # A sentence, not a dump of the library underneath.
    assert "\n" not in message
    assert len(message) < 250


@pytest.mark.parametrize("kind", KINDS)
def test_input_errors_come_before_any_function_is_built(kind, monkeypatch):
    def fail(*args: Any, **keywords: Any) -> Callable[..., Any]:
        raise AssertionError("built")

    monkeypatch.setattr("casadi_hybrid.problem.problem.build_functions", fail)
    z = kind.sym("z", 2)
    problem = Problem(x=z, f=z[0], h=z, g={"a": (0, z, 1)}, lbx=0)
    problem.numbers(x0=1, ubg=7)
    with pytest.raises(InputError):
        Problem(x=z, f=z, h=z)
    with pytest.raises(InputError):
        problem.numbers(lbg={"a": 9})


EMPTY: dict[str, Any] = {
    "nothing": None, "no rows": ca.SX(0, 1), "a list": [], "a mapping": {},
    "a mapping to nothing": {"a": ca.SX(0, 1)},
}  # fmt: skip


@pytest.mark.parametrize("what", EMPTY)
def test_a_problem_without_equations_is_one_that_only_some_methods_refuse(what: str) -> None:
    problem = Problem(x=x, f=ca.sumsqr(x - 1), h=EMPTY[what])
    assert problem.m == 0
    for method in ("gda", "closed-form"):
        with pytest.raises(InputError, match=rf"^h is empty; method '{method}'.*at least one"):
            Solver(problem, method)
    assert Solver(problem).solve().x == pytest.approx([1, 1])
    assert nlpsol("f", "hybrid", problem)(x0=0)["x"].full().ravel() == pytest.approx([1, 1])


OTHER_THAN_EQUATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "an inequality": (
        {"g": {"speed": (0, x[0], 5)}},
        r"'speed' is .* \(lbg\[0\] = 0 < ubg\[0\] = 5",
    ),
    "one side": ({"g": [0, x[0]], "lbg": [0, -inf], "ubg": 0}, r"'g\[1\]' is .*\(lbg\[1\] = -inf"),
    "a bound": ({"ubx": [inf, 1]}, r"the variable 'x_1' has a bound \(ubx\[1\] = 1\)"),
}


@pytest.mark.parametrize("what", OTHER_THAN_EQUATIONS)
def test_methods_for_equations_refuse_the_rest_by_name(what: str) -> None:
    arguments, words = OTHER_THAN_EQUATIONS[what]
    problem = make(**arguments)
    for method in ("gda", "matrix-lookahead"):
        said = f"^method '{method}' takes equations only.*{words}.*'hybrid'"
        with pytest.raises(InputError, match=said):
            Solver(problem, method)
    assert Solver(problem, tol=1e-6).solve(0.5).point.name != "UNDEFINED"


def test_a_row_without_bounds_waits_for_those_of_the_solve() -> None:
    problem = Problem.from_nlp({"x": x, "f": ca.sumsqr(x), "g": x[0] - 1})
    solver = Solver(problem, "closed-form")
    assert solver.solve(0.9, lbg=0, ubg=0).x == pytest.approx([1, 0], abs=1e-2)
    with pytest.raises(InputError, match=r"'g' is an inequality \(lbg\[0\] = -inf < ubg"):
        solver.solve(0.5, ubg=0)


@pytest.mark.parametrize("value", [0, 3])
def test_rows_of_g_with_equal_bounds_are_equations(value: float) -> None:
    by_h = make(f=ca.sumsqr(x), h=x - value)
    by_g = make(f=ca.sumsqr(x), h=None, g=x, lbg=value, ubg=value)
    for method in ("closed-form", "gda"):
        solvers = (Solver(problem, method) for problem in (by_h, by_g))
        ours, theirs = (solver.solve(value + 0.5, history=True) for solver in solvers)
        assert ours.stop is theirs.stop
        assert ours.x == pytest.approx(theirs.x, abs=1e-12)
        assert ours.lam_g == pytest.approx(theirs.lam_g, abs=1e-12)
        assert ours.g + value == pytest.approx(theirs.g, abs=1e-12)


POINT = [2.0, 3.0, 0.5], [10.0, 1.0, 1.0]  # x and p


def stacked(kind: Any, **changes: Any) -> Problem:
    """Two variables by name, three equations, four rows with bounds, two parameters by name."""
    q, u, a, b = (kind.sym(name, size) for name, size in zip("quab", (2, 1, 1, 2), strict=True))
    arguments: dict[str, Any] = {
        "x": {"q": q, "u": u},
        "p": {"a": a, "b": b},
        "f": ca.sumsqr(q) * a + u * b[1],
        "h": {"pin": q - b, "flat": ca.sin(u)},
        "g": {"speed": (0, q[0] * u, 5), "box": q * a, "none": kind(0, 1), "cap": (None, u, [2])},
        "lbg": {"box": [-1, -2]},
        "x0": {"u": 7},
        "p0": [1, 2, 3],
        "ubx": {"q": 9},
        "lam_g0": {"flat": 4, "box": [5, 6]},
    }
    return Problem(**{**arguments, **changes})


@pytest.mark.parametrize("kind", KINDS)
def test_equations_come_first_then_rows_with_bounds(kind: Any) -> None:
    problem = stacked(kind)
    assert (problem.n, problem.m, problem.m_h, problem.n_p) == (3, 7, 3, 3)
    assert problem.variable_names == ("q[0]", "q[1]", "u")
    rows = ("pin[0]", "pin[1]", "flat", "speed", "box[0]", "box[1]", "cap")
    assert problem.constraint_names == rows == problem.functions.constraint_names
    assert problem.functions.constraint_label == "g"
    assert problem.blocks == {
        "x": {"q": slice(0, 2), "u": slice(2, 3)},
        "p": {"a": slice(0, 1), "b": slice(1, 3)},
        "g": {"speed": slice(0, 1), "box": slice(1, 3), "none": slice(3, 3), "cap": slice(3, 4)},
        "c": {
            "pin": slice(0, 2), "flat": slice(2, 3), "speed": slice(3, 4), "box": slice(4, 6),
            "none": slice(6, 6), "cap": slice(6, 7),
        },
    }  # fmt: skip
    c = problem.functions.residual(*POINT).full().ravel()
    assert c == pytest.approx([1, 2, np.sin(0.5), 1, 20, 30, 0.5])
    both = ca.Function("hg", [problem.x, problem.p], [problem.h, problem.g])(*POINT)
    assert np.concatenate([part.full().ravel() for part in both]) == pytest.approx(c)
    lam = np.arange(1.0, 8.0)
    slope = problem.parameter_gradient(POINT[0], lam, POINT[1]).full().ravel()
    expected = [13 + lam[4] * 2 + lam[5] * 3, -lam[0], 0.5 - lam[1]]
    assert slope == pytest.approx(expected)


def test_both_kinds_of_rows_without_names() -> None:
    problem = make(g=x[0], ubg=3)
    assert problem.constraint_names == ("h[0]", "h[1]", "g")
    assert problem.bounds.lbg.tolist() == [0, 0, -inf]
    assert problem.bounds.ubg.tolist() == [0, 0, 3]
    assert make(g=x[0], constraint_names=["a", "b", "c"]).constraint_names == ("a", "b", "c")


@pytest.mark.parametrize("kind", KINDS)
def test_default_bounds_by_block_and_as_triples(kind: Any) -> None:
    problem = stacked(kind)
    assert problem.lbg.tolist() == [0, -1, -2, -inf]
    assert problem.ubg.tolist() == [5, inf, inf, 2]
    assert problem.bounds.lbg.tolist() == [0, 0, 0, 0, -1, -2, -inf]
    assert problem.bounds.ubg.tolist() == [0, 0, 0, 5, inf, inf, 2]
    assert problem.bounds.lbx.tolist() == [-inf] * 3
    assert problem.bounds.ubx.tolist() == [9, 9, inf]
    for vector in (problem.lbg, problem.x0, problem.bounds.ubg, problem.bounds.lbx):
        assert not vector.flags.writeable


def test_a_solve_may_replace_default_numbers() -> None:
    problem = stacked(ca.SX)
    given = problem.numbers()
    assert isinstance(given, Numbers)
    assert given.bounds is problem.bounds
    assert given.x0.tolist() == [0, 0, 7]
    assert given.p.tolist() == [1, 2, 3]
    assert given.lam_x0.tolist() == [0, 0, 0]
    assert given.lam_g0.tolist() == [0, 0, 4, 0, 5, 6, 0]
    given.x0[:] = 1.0  # its own copy
    with pytest.raises(dataclasses.FrozenInstanceError):
        given.x0 = None

    given = problem.numbers(
        x0={"q": [1, 2]}, p=8, lbx={"u": -1}, ubx=4, lbg={"speed": 1}, ubg=[5, 6, 7, 8],
        lam_x0=1, lam_g0={"speed": 9},
    )  # fmt: skip
    assert given.x0.tolist() == [1, 2, 7]
    assert given.p.tolist() == [8, 8, 8]
    assert given.bounds.lbx.tolist() == [-inf, -inf, -1]
    assert given.bounds.ubx.tolist() == [4, 4, 4]
    assert given.bounds.lbg.tolist() == [0, 0, 0, 1, -1, -2, -inf]
    assert given.bounds.ubg.tolist() == [0, 0, 0, 5, 6, 7, 8]
    assert given.lam_x0.tolist() == [1, 1, 1]
    assert given.lam_g0.tolist() == [0, 0, 4, 9, 5, 6, 0]
    assert problem.numbers(p={"b": [0, 0]}).p.tolist() == [1, 0, 0]
    assert problem.numbers(lbg=-inf).bounds.lbg.tolist() == [0, 0, 0, *[-inf] * 4]
    assert problem.numbers(ubx={"u": ca.DM(3)}).bounds.ubx.tolist() == [9, 9, 3]


BAD_NUMBERS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "NaN": ({"lbg": [0, 0, nan, 0]}, ["lbg[2] is nan"]),
    "NaN in a block": ({"ubg": {"box": nan}}, ["ubg['box']", "nan"]),
    "crossed by a default": ({"lbg": {"speed": 6}}, ["lbg[0] = 6", "ubg[0] = 5", "speed"]),
    "crossed": ({"lbx": 2, "ubx": [2, 1, 3]}, ["lbx[1] = 2", "ubx[1] = 1", "q[1]"]),
    "all rows": ({"lbg": [0] * 7}, ["lbg has shape", "(7,)", "4 number"]),
    "too many in a block": ({"ubg": {"box": [1, 2, 3]}}, ["ubg['box'] has shape", "2 number"]),
    "unknown block": ({"ubg": {"spede": 1}}, ["ubg", "'spede'", "'speed'?"]),
    "block of h": ({"ubg": {"pin": 1}}, ["ubg", "unknown block 'pin'"]),
    "unknown block of x": ({"x0": {"v": 1}}, ["x0", "unknown block 'v'", "q, u"]),
    "start": ({"x0": [1, 2]}, ["x0 has shape", "3"]),
    "parameters": ({"p": [1, 2]}, ["p has shape", "3"]),
    "symbols": ({"p": x}, ["p is a CasADi symbol"]),
    "multipliers": ({"lam_g0": [1] * 4}, ["lam_g0 has shape", "7"]),
}


@pytest.mark.parametrize("what", BAD_NUMBERS)
def test_bad_numbers_of_a_solve_are_refused_before_any_evaluation(what: str) -> None:
    problem = stacked(ca.SX)
    arguments, words = BAD_NUMBERS[what]
    with pytest.raises(InputError) as caught:
        problem.numbers(**arguments)
    assert all(word in str(caught.value) for word in words)
    assert "functions" not in vars(problem)


def test_parameters_without_values_are_missing() -> None:
    with pytest.raises(InputError, match=r"p is missing; the problem has 2 parameter\(s\)"):
        make(p=y).numbers()
    assert make(p=y).numbers(p=1).p.tolist() == [1, 1]


def test_what_the_user_keeps_is_not_what_the_problem_keeps() -> None:
    x0, lbx = np.zeros(2), np.zeros(2)
    problem = make(x0=x0, lbx=lbx)
    x0[:] = lbx[:] = 5.0
    assert not problem.numbers().x0.any()
    assert not problem.bounds.lbx.any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("built", [False, True])
@pytest.mark.parametrize("parts", ["both", "h", "g", "neither"])
def test_problems_can_be_pickled(kind: Any, built: bool, parts: str) -> None:
    changes: dict[str, Any] = {} if parts in ("both", "h") else {"h": None, "lam_g0": None}
    if parts in ("h", "neither"):
        changes |= {"g": None, "lbg": -inf, "lam_g0": None}
    problem = stacked(kind, **changes)
    if built:
        assert problem.functions
        assert problem.parameter_gradient
    sent = pickle.loads(pickle.dumps(problem))
    assert ("functions" in vars(sent)) == built
    assert repr(sent) == repr(problem)
    assert sent.blocks == problem.blocks
    assert (sent.constraint_names, sent.variable_names, sent.m_h) == (
        problem.constraint_names, problem.variable_names, problem.m_h,
    )  # fmt: skip
    assert sent.h.numel() + sent.g.numel() == problem.m
    firsts = (of.functions.first(*POINT) for of in (sent, problem))
    for one, other in zip(*firsts, strict=True):
        assert (one.full() == other.full()).all()
    again = Problem(x=sent.x, f=sent.f, h=sent.h, g=sent.g, p=sent.p)
    values = again.functions.residual(*POINT).full()
    assert (values == problem.functions.residual(*POINT).full()).all()
    ours, theirs = sent.numbers(), problem.numbers()
    assert (ours.x0 == theirs.x0).all()
    assert (ours.bounds.ubg == theirs.bounds.ubg).all()


def test_compiled_code_stays_in_its_process(compiler: str) -> None:
    problem = stacked(ca.MX)
    made = problem.compiled()
    assert made.functions.backend == "compiled"
    assert problem.functions.backend == "interpreted"
    sent = pickle.loads(pickle.dumps(made))
    assert "functions" not in vars(sent)
    assert sent.compile
    there, here = (one.functions.residual(*POINT).full() for one in (sent, problem))
    assert there == pytest.approx(here, rel=1e-12)


def test_expanded_is_the_same_problem_in_sx() -> None:
    problem = stacked(ca.MX)
    assert problem.functions
    made = problem.expanded()
    assert isinstance(made.x, ca.SX)
    assert made.expanded() is made
    assert made.functions.residual.is_a("SXFunction")
    assert made.functions is not problem.functions
    there, here = (one.functions.residual(*POINT).full() for one in (made, problem))
    assert (there == here).all()
    assert made.bounds is problem.bounds


@pytest.mark.parametrize("kind", KINDS)
def test_from_nlp_is_the_dictionary(kind: Any) -> None:
    z, q = kind.sym("z", 2), kind.sym("q", 1, 2)
    nlp = {"x": z, "p": q, "f": ca.sumsqr(z) * q[0], "g": (z * q[1]).T}
    problem = Problem.from_nlp(nlp, lbg=0, ubg=[1, 2], x0=3, p0=[[4, 5]])
    assert problem.variable_names == ("x[0]", "x[1]")
    assert problem.constraint_names == ("g[0]", "g[1]")
    assert problem.name == "nlp"
    assert problem.shapes == {"p": (1, 2), "g": (1, 2)}
    assert problem.functions.constraint_label == "g"
    f, _, g, _ = problem.functions.first([2, 3], [4, 5])
    assert float(f) == 52
    assert g.full().ravel().tolist() == [10, 15]
    given = problem.numbers()
    assert given.bounds.ubg.tolist() == [1, 2]
    assert given.x0.tolist() == [3, 3]
    assert given.p.tolist() == [4, 5]

    direct = Problem(x=problem.x, f=problem.f, g=problem.g, p=problem.p, lbg=0, ubg=[1, 2])
    seconds = (of.functions.second([2, 3], [1, 1], [4, 5]) for of in (direct, problem))
    for one, other in zip(*seconds, strict=True):
        assert (one.full() == other.full()).all()


def test_a_problem_solves_like_its_dictionary() -> None:
    nlp = {"x": x, "p": y, "f": ca.sumsqr(x - y), "g": x[0] * x[1]}
    problem = Problem.from_nlp(nlp, lbg=-inf, ubg=1, lbx=0, ubx=3)
    numbers: dict[str, Any] = {"x0": 1, "p": [2, 2]}
    ours = nlpsol("f", "hybrid", problem)(**numbers)
    theirs = nlpsol("s", "hybrid", nlp)(**numbers, ubg=1, lbx=0, ubx=3)
    assert (ours["x"].full() == theirs["x"].full()).all()
    assert (Solver(problem).solve(1, [2, 2]).x == theirs["x"].full().ravel()).all()


def test_a_copy_with_another_name_has_the_same_rows_and_numbers() -> None:
    problem = stacked(ca.MX)
    other = dataclasses.replace(problem, name="other")
    assert (other.name, other.n, other.m) == ("other", problem.n, problem.m)
    assert other.constraint_names == problem.constraint_names
    assert (other.bounds.ubg == problem.bounds.ubg).all()
    assert other.x0.tolist() == [0, 0, 7]
