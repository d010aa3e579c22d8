"""Derivatives by elements that are alike: those that CasADi takes of the whole, in less time."""

import pickle
from collections.abc import Callable
from itertools import pairwise
from math import inf
from typing import Any
from unittest.mock import patch

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import solved

from casadi_hybrid import Problem
from casadi_hybrid.core.evaluation.forms import Form
from casadi_hybrid.problem.graph import generate

N = 26
Nlp = dict[str, Any]


def step(x: Any, h: Any) -> Any:
    return x + h * ca.vertcat(x[1] * ca.sin(x[0]), x[2] ** 3, ca.exp(-x[1] * x[0]))


def gaps(x: list[Any], h: Callable[[int], Any]) -> Any:
    return ca.vertcat(*(b - step(a, h(k)) for k, (a, b) in enumerate(pairwise(x))))


def trapezoidal(x: list[Any], h: Any = 0.05) -> Any:
    """Two intervals share the right side between them."""
    slope = [step(a, 1.0) - a for a in x]
    stages = range(len(x) - 1)
    return ca.vertcat(*(x[k + 1] - x[k] - h * (slope[k] + slope[k + 1]) for k in stages))


def triangles(x: list[Any]) -> Any:
    """Two terms share the difference between them."""
    slope = [(b[0] - a[0]) ** 2 for a, b in pairwise(x)]
    return sum(ca.sqrt(1 + a + b) for a, b in pairwise(slope))


def stated(kind: Any) -> dict[str, Nlp]:
    """Stages of three variables that are joined in different ways."""
    x = [kind.sym(f"x{k}", 3) for k in range(N)]
    p, T, X = kind.sym("p", 2), kind.sym("T"), ca.vertcat(*x)
    squares, equal = ca.sumsqr(X), gaps(x, lambda k: 0.1)
    angles = [a[0] * a[1] for a in x]
    pairs = sum(ca.sin(a[0] * b[1]) for a, b in pairwise(x))
    kinks = [ca.if_else(a[2] > 0, a[0] ** 2, ca.fmax(a[0], a[1])) for a in x]
    cosines = sum(ca.cos(0.1 * k) * a for k, a in enumerate(angles))
    times = ca.vertcat(gaps(x, lambda k: T / N), T, x[0][0], T * 2)
    rows = {
        "plain": (X, squares, equal),
        "trapezoidal rule": (X, squares, ca.vertcat(trapezoidal(x), x[0] - p[0], 3, -(2 * x[1]))),
        "triangles": (X, triangles(x), equal),
        "no objective": (X, 0, equal),
        "a variable": (X, x[0][0], equal),
        "no rows": (X, sum(map(ca.sin, angles)), None),
        "scaled sums": (X, x[1][0] - 0.5 * squares / N - 2 * sum(map(ca.cos, angles)), equal),
        "free time": (ca.vertcat(X, T), T + 0.1 * squares, gaps(x, lambda k: T / N)),
        "rows of the time": (ca.vertcat(X, T), T**2, times),
        "parameters": (X, p[1] * squares + p[0], ca.vertcat(gaps(x, lambda k: p[0] / N), p)),
        "zero rows": (X, squares, ca.vertcat(kind(1, 1), equal[:3], kind(2, 1), equal, kind(1.0))),
        "exponents": (X, squares, ca.vertcat(*(a[0] ** (2.5 + k % 2) for k, a in enumerate(x)))),
        "numbers by stage": (X, cosines, gaps(x, lambda k: 0.01 * (k + 1))),
        "linear": (X, ca.dot(ca.DM(range(3 * N)), X), ca.vertcat(*(a[0] - p[0] * a[2] for a in x))),
        "stages joined": (X, squares + pairs, equal),
        "shared": (X, ca.sumsqr(equal) + 2 * equal[0], equal),
        "branches": (X, squares, ca.vertcat(*kinks)),
    }
    return {
        how: {"x": unknowns, "p": p, "f": f} | ({} if g is None else {"g": g})
        for how, (unknowns, f, g) in rows.items()
    }


STATED = {kind: stated(kind) for kind in (ca.SX, ca.MX)}


def stated_from(smallest: float, nlp: Nlp) -> Problem:
    """The problem, whose derivatives are made of elements from this size on."""
    with patch.multiple(generate, LARGE=smallest, LARGE_DERIVATIVES=smallest):
        problem = Problem.from_nlp(nlp)
        assert (problem.functions.assemblies is None) == (smallest == inf)
    return problem


@pytest.mark.parametrize(
    ("kind", "how"),
    [*((ca.SX, how) for how in STATED[ca.SX]), (ca.MX, "free time"), (ca.MX, "parameters")],
)
def test_element_derivatives_are_those_of_casadi(kind: Any, how: str) -> None:
    whole, made = (stated_from(smallest, STATED[kind][how]) for smallest in (inf, 0))
    a, b = whole.functions, made.functions
    assert b.patterns == a.patterns
    assert b.residual.sparsity_out(0) == a.residual.sparsity_out(0)
    draws = np.random.default_rng(0)
    x, lam, p = (draws.uniform(-1.5, 1.5, size) for size in (made.n, made.m, made.n_p))
    theirs, ours = (
        [
            np.array(output.nonzeros())
            for output in (*of.first(x, p), of.with_hessian("curvature")(x, lam, p))
        ]
        for of in (a, b)
    )
    for expected, values in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-13)
    assert (made.linear, made.feasibility) == (whole.linear, whole.feasibility)
    lists = Form(b.first, b.with_hessian("curvature"), b.assemblies)
    assert lists.call(0, x, p).tobytes() == np.concatenate(ours[:-1]).tobytes()
    assert lists.call(1, x, lam, p).tobytes() == ours[-1].tobytes()


def oscillator(stages: int, **options: Any) -> Nlp:
    """An interval as a Function in SX that is called at every stage, as users write it."""
    x, u = ca.SX.sym("x", 2), ca.SX.sym("u")
    ahead = x
    for _ in range(4):
        ahead = ahead + 0.05 * ca.vertcat((1 - ahead[1] ** 2) * ahead[0] - ahead[1] + u, ahead[0])
    F = ca.Function("F", [x, u], [ahead, 0.2 * (ca.sumsqr(x) + u**2)], options)
    X = [ca.MX.sym(f"x{k}", 2) for k in range(stages + 1)]
    U = [ca.MX.sym(f"u{k}") for k in range(stages)]
    f, g = 0, [X[0] - ca.DM([0, 1])]
    for k in range(stages):
        there, cost = F(X[k], U[k])
        f, g = f + cost, [*g, X[k + 1] - there]
    return {"x": ca.vertcat(*X, *U), "f": f, "g": ca.vertcat(*g)}


def sharing(stages: int) -> Nlp:
    x = [ca.SX.sym(f"x{k}", 3) for k in range(stages)]
    return {"x": ca.vertcat(*x), "f": triangles(x), "g": trapezoidal(x)}


def in_free_time(stages: int) -> Nlp:
    x, T = [ca.SX.sym(f"x{k}", 3) for k in range(stages)], ca.SX.sym("T")
    return {"x": ca.vertcat(*x, T), "f": T, "g": trapezoidal([step(a, 0.1) for a in x], T)}


@pytest.mark.parametrize("nlp", [oscillator, sharing, in_free_time])
def test_repeated_stages_are_derived_once(nlp: Callable[[int], Nlp]) -> None:
    operations = []
    for stages in (80, 160):
        functions = Problem.from_nlp(nlp(stages)).functions
        assert functions.assemblies is not None
        operations.append([assembly.operations[0] for assembly in functions.assemblies])
    assert operations[0] == operations[1]
    assert sum(operations[0]) < functions.instructions / 40


def test_solution_is_the_same() -> None:
    bounds = {"lbx": np.repeat([-0.25, -1.0], [82, 40]), "ubx": 1, "lbg": 0, "ubg": 0}
    with patch.multiple(generate, LARGE=inf, LARGE_DERIVATIVES=inf):
        other = solved(oscillator(40), **bounds)
    solver = solved(oscillator(40), **bounds)
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] == other.stats()["iter_count"]
    np.testing.assert_allclose(solver.result.x, other.result.x, atol=1e-7)
    again = pickle.loads(pickle.dumps(solver))(**bounds)
    assert np.array_equal(again["x"].full().ravel(), solver.result.x)


def test_single_chains_are_left_to_casadi() -> None:
    x = ca.SX.sym("x", 60)
    s, rows = ca.vertcat(*ca.vertsplit(x)[:3]), []
    for k in range(60):
        s = step(s, 0.01) + x[k]
        rows.append(s)
    with patch.multiple(generate, LARGE=0, LARGE_DERIVATIVES=0):
        functions = Problem.from_nlp({"x": x, "f": ca.sumsqr(s), "g": ca.vertcat(*rows)}).functions
    assert functions.assemblies is None
    assert functions.first.is_a("SXFunction")


@pytest.mark.parametrize("how", ["differences", "Jacobian", "not differentiated"])
def test_own_derivatives_of_functions_stay(how: str) -> None:
    x, u = ca.SX.sym("x", 2), ca.SX.sym("u")
    given = [ca.DM.ones(2, 2), ca.DM.ones(2, 1), ca.DM.ones(1, 2), ca.DM.ones(1, 1)]
    slots = [x, u, ca.SX(2, 1), ca.SX(1, 1)]
    ways = ("forward", "reverse", "jacobian")
    options: dict[str, Any] = {
        "differences": {"enable_fd": True, **{f"enable_{way}": False for way in ways}},
        "Jacobian": {"custom_jacobian": ca.Function("jac_F", slots, given), "jac_penalty": 0},
        "not differentiated": {"is_diff_in": [True, False]},
    }
    nlp = oscillator(40, **options[how])
    nlp["f"] = ca.sumsqr(nlp["x"])
    functions = Problem.from_nlp(nlp).functions
    assert functions.assemblies is None
    assert functions.differenced == (how == "differences")
