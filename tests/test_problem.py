"""What a problem accepts, and that everything else is refused with the argument's name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import InputError, Problem

KINDS = (ca.SX, ca.MX)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_names(kind: Any) -> None:
    x, p = kind.sym("x", 3), kind.sym("p", 2)
    problem = Problem(x=x, p=p, f=ca.sumsqr(x), h=ca.vertcat(x[0] - p[0], x[1] * p[1]), name="two")
    assert (problem.n, problem.m, problem.n_p) == (3, 2, 2)
    assert problem.constraint_names == ("h[0]", "h[1]")
    assert repr(problem) == f"Problem('two', {kind.__name__}, n=3, m=2, parameters=2)"


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


def test_an_empty_p_is_no_p() -> None:
    x = ca.SX.sym("x")
    assert Problem(x=x, f=x, h=x, p=ca.SX(0, 1)).n_p == 0


x, y = ca.SX.sym("x", 2), ca.SX.sym("y", 2)
X, Y = ca.MX.sym("X", 2), ca.MX.sym("Y", 2)
row, square = ca.SX.sym("row", 1, 2), ca.SX.sym("square", 2, 2)
holes = ca.SX.sym("holes", ca.Sparsity.triplet(3, 1, [0, 2], [0, 0]))


def make(**changes: Any) -> Problem:
    return Problem(**{"x": x, "f": x[0], "h": x, **changes})


# what is wrong: (arguments, words the message must have; the first names the argument)
REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "x is text": ({"x": "x"}, ["x must be", "str"]),
    "x is None": ({"x": None}, ["x must be", "NoneType"]),
    "x is a list": ({"x": [x]}, ["x must be", "list"]),
    "x is a number": ({"x": 1.0}, ["x must be", "float"]),
    "x is an array": ({"x": np.ones(2)}, ["x must be", "ndarray"]),
    "x is an expression": ({"x": x + 1}, ["x must be", "symbols"]),
    "x is an MX expression": ({"x": X + 1, "f": X[0], "h": X}, ["x must be", "symbols"]),
    "x is part of an MX symbol": ({"x": X[0], "f": X[0], "h": X[0]}, ["x must be", "symbols"]),
    "x is a row": ({"x": row}, ["x has shape", "(1, 2)", "column"]),
    "x is a matrix": ({"x": square}, ["x has shape", "(2, 2)", "column"]),
    "x is sparse": ({"x": holes}, ["x has shape", "dense"]),
    "x is empty": ({"x": ca.SX(0, 1), "f": 0, "h": 1}, ["x is empty"]),
    "x has a symbol twice": ({"x": ca.vertcat(x[0], x[0])}, ["x", "twice"]),
    "x has an MX symbol twice": (
        {"x": ca.vertcat(X, X), "f": X[0], "h": X},
        ["x", "twice"],
    ),
    "p has a symbol twice": ({"p": ca.vertcat(y[0], y[0])}, ["p", "twice"]),
    "x and p share a symbol": ({"p": ca.vertcat(y, x[1])}, ["x and p share"]),
    "x and p are one MX symbol": (
        {"x": X, "p": X, "f": X[0], "h": X},
        ["x and p share"],
    ),
    "p is text": ({"p": "p"}, ["p must be", "str"]),
    "p is a number": ({"p": 2.0}, ["p must be", "float"]),
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
    "f is a function": ({"f": ca.sin}, ["f must be", "function"]),
    "f depends on something else": ({"f": y[1]}, ["f depends on y_1"]),
    "h is of the other kind": ({"h": X}, ["h must be", "SX", "MX"]),
    "h is a row": ({"h": x.T}, ["h has shape", "(1, 2)", "column"]),
    "h is a matrix": ({"h": ca.mtimes(x, x.T)}, ["h has shape", "(2, 2)"]),
    "h is empty": ({"h": ca.SX(0, 1)}, ["h is empty", "at least one"]),
    "h is an empty list": ({"h": []}, ["h is empty"]),
    "h is an empty mapping": ({"h": {}}, ["h is empty"]),
    "h is a mapping to nothing": ({"h": {"a": ca.SX(0, 1)}}, ["h is empty"]),
    "h is text": ({"h": "x"}, ["h must be", "str"]),
    "h is None": ({"h": None}, ["h must be", "NoneType"]),
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
    "names twice": ({"h": {"a": x}, "constraint_names": ["a", "b"]}, ["constraint_names", "h"]),
    "too many variable names": ({"variable_names": list("abc")}, ["variable_names", "3", "2"]),
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


@pytest.mark.parametrize(
    ("argument", "value"), [("constraint_names", 3), ("variable_names", (c for c in "ab"))]
)
def test_names_that_are_no_sequence_are_refused(argument: str, value: Any) -> None:
    with pytest.raises(InputError, match=argument):
        make(**{argument: value})


@pytest.mark.parametrize("kind", KINDS)
def test_input_errors_come_before_any_function_is_built(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **keywords: Any) -> Callable[..., Any]:
        raise AssertionError("built")

    monkeypatch.setattr("casadi_hybrid.problem.problem.build_functions", fail)
    z = kind.sym("z", 2)
    Problem(x=z, f=z[0], h=z)
    with pytest.raises(InputError):
        Problem(x=z, f=z, h=z)
