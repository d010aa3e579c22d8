"""Generated functions: exact derivatives, kept sparsity, compilation, and NaN that is located."""

import math
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.cases.graphs import central, complex_step, evaluate, numeric, trees
from support.cases.watched import PythonFunction

from casadi_hybrid import PointStatus, Problem, Solver, StopReason
from casadi_hybrid.problem.building import compiler
from casadi_hybrid.problem.graph import functions
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.utils.errors import CompilerWarning, EvaluationError

KINDS = (ca.SX, ca.MX)


def oracle(problem: Problem, p: Any = ()) -> Oracle:
    return Oracle(problem.functions, np.array(p, dtype=float))


@given(
    f=trees(3),
    h=st.lists(trees(3), min_size=1, max_size=4),
    kind=st.sampled_from(KINDS),
    point=st.lists(st.integers(-15, 15), min_size=3, max_size=3),
    lam=st.lists(st.integers(-20, 20), min_size=4, max_size=4),
)
def test_derivatives_of_random_graphs(f, h, kind, point, lam):
    """f, ∇f, h, J_h and ∇²ₓₓL against NumPy with the complex step, to 1e-8 and better."""
    x, weights = np.array(point) / 10, np.array(lam[: len(h)]) / 10
    f_np, h_np = numeric([f]), numeric(h)

    def lagrangian_gradient(z: Any) -> Any:
        return complex_step(f_np, z)[0] + weights @ complex_step(h_np, z)

    hessian = central(lagrangian_gradient, x)
    # Random products can be steep; the reference must be believed to be used.
    assume(np.abs(hessian - central(lagrangian_gradient, x, 2e-3)).max() < 1e-9)
    symbols = kind.sym("x", 3)
    exprs = [evaluate(tree, symbols, symbolic=True) for tree in (f, *h)]
    at = oracle(Problem(x=symbols, f=exprs[0], h=exprs[1:])).second(x, weights)
    assert at.f == pytest.approx(f_np(x)[0], rel=1e-13, abs=1e-13)
    assert at.h == pytest.approx(h_np(x), rel=1e-13, abs=1e-13)
    assert at.gradient == pytest.approx(complex_step(f_np, x)[0], rel=1e-11, abs=1e-11)
    assert pytest.approx(complex_step(h_np, x), rel=1e-11, abs=1e-11) == at.B
    assert at.hessian == pytest.approx(hessian, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 7])
def test_sparsity_is_that_of_casadi(kind: Any, n: int) -> None:
    """A chain: bidiagonal J_h and tridiagonal ∇²L, with no entry filled in."""
    x, p = kind.sym("x", n), kind.sym("p")
    f = ca.sum1(ca.sin(x)) + p * x[0]
    h = ca.vertcat(x[1:] * ca.cos(x[:-1]) - p, x[0] ** 2 - 1)
    functions = Problem(x=x, f=f, h=h, p=p).functions
    lam = kind.sym("lam", n)
    assert functions.jacobian_sparsity == ca.jacobian(h, x).sparsity()
    assert functions.jacobian_sparsity.nnz() == 2 * (n - 1) + 1
    assert functions.hessian_sparsity == ca.hessian(f + ca.dot(lam, h), x)[0].sparsity()
    assert functions.hessian_sparsity.nnz() == n + 2 * (n - 1)
    at = oracle(Problem(x=x, f=f, h=h, p=p), [0.7]).second(np.linspace(0.3, 1.1, n), np.ones(n))
    assert np.count_nonzero(at.B) == functions.jacobian_sparsity.nnz()
    assert at.hessian == pytest.approx(at.hessian.T, abs=0)


@pytest.mark.parametrize("kind", KINDS)
def test_structural_zeros_keep_their_place(kind: Any) -> None:
    """Structurally zero f, h and derivatives are zeros of the right shape, not missing outputs."""
    x = kind.sym("x", 3)
    row = kind(ca.Sparsity.triplet(2, 1, [0], [0]), x[0] * x[1])  # second entry: structural zero
    problem = Problem(x=x, f=0, h=ca.vertcat(row, 4.0, x[2] - 1))
    functions = problem.functions
    assert functions.jacobian_sparsity.nnz() == 3
    assert functions.hessian_sparsity.nnz() == 2
    at = oracle(problem).second(np.array([2.0, 3.0, 5.0]), np.array([1.0, 7.0, 7.0, 7.0]))
    assert at.f == 0
    assert at.gradient.tolist() == [0, 0, 0]
    assert at.h.tolist() == [6, 0, 4, 4]
    assert at.B.tolist() == [[3, 2, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert at.hessian.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_evaluations_agree_and_are_counted() -> None:
    x = ca.SX.sym("x", 2)
    made = oracle(Problem(x=x, f=x[0] ** 3 * x[1], h=ca.sin(x[0] * x[1])))
    point, lam = np.array([0.7, -0.3]), np.array([2.0])
    first, second = made.first(point), made.second(point, lam)
    assert first.hessian is None
    assert np.array_equal(made.residual(point), first.h)
    assert made.counts == {"residual": 1, "first": 1, "second": 1}
    made.first(np.array([5.0, 6.0]))  # overwrites no earlier evaluation
    for name in ("f", "gradient", "h", "B"):
        assert np.array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
@pytest.mark.parametrize("size", [2, 4000])  # the larger is made of elements
def test_linear_rows_are_recognized(kind: Any, size: int) -> None:
    x, p = kind.sym("x", size), kind.sym("p")
    rows = {
        True: [3 * x[1:] - x[:-1], p**2 * x[1:] + ca.exp(p) * x[:-1], kind(0, 1)],
        False: [x[1:] - x[:-1] ** 2, p * x[1:] * x[:-1], ca.sin(p * x)],
    }
    f = ca.sum1(ca.exp(x) * ca.cos(x))
    for linear, each in rows.items():
        for g in each:
            assert Problem.from_nlp({"x": x, "p": p, "f": f, "g": g}).linear is linear


def chain(kind: Any, *, compiled: bool) -> Problem:
    x, p = kind.sym("x", 6), kind.sym("p", 2)
    f = ca.sum1(ca.exp(ca.sin(x))) * p[0]
    return Problem(x=x, p=p, f=f, h=ca.cos(x[1:] * x[:-1]) / (2 + x[1:]) - p[1], compile=compiled)


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_functions_equal_interpreted(kind: Any, compiler: str) -> None:
    plain, compiled = chain(kind, compiled=False), chain(kind, compiled=True)
    assert plain.functions.backend == "interpreted"
    assert compiled.functions.backend == "compiled"
    assert compiled.functions.hessian_sparsity == plain.functions.hessian_sparsity
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, p, lam = rng.normal(size=6), rng.normal(size=2), rng.normal(size=5)
        a, b = oracle(plain, p).second(x, lam), oracle(compiled, p).second(x, lam)
        for name in ("f", "gradient", "h", "B", "hessian"):
            wanted = np.asarray(getattr(a, name))
            assert np.abs(getattr(b, name) - wanted).max() <= 1e-14 * max(1, np.abs(wanted).max())


def test_compiled_problems_live_side_by_side(compiler: str) -> None:
    """Their libraries export the same symbols; each problem must keep its own."""
    x = ca.SX.sym("x", 2)
    problems = [Problem(x=x, f=k * ca.sumsqr(x), h=x[0] - k, compile=True) for k in (1, 2, 3)]
    assert [oracle(problem).first(np.ones(2)).f for problem in problems] == [2, 4, 6]


def test_missing_compiler_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(compiler, "WHEEL", "casadi_hybrid_no_such_wheel")
    with pytest.warns(CompilerWarning, match="no C compiler"):
        functions = chain(ca.SX, compiled=True).functions
    assert functions.backend == "interpreted"
    assert functions.first([1] * 6, [1, 2])[0].is_scalar()


Y = ca.SX.sym("x", 3)


@pytest.mark.parametrize(
    ("function", "entry", "f", "h", "point"),
    [
        ("the objective f", "", ca.log(Y[2]), {"a": Y[0]}, [1, 1, -1]),
        ("the gradient of f", "d/dx_1", ca.sqrt(Y[1]), {"a": Y[0]}, [1, 0, 1]),
        ("the constraint function h", "b[1]", Y[0], {"a": Y[0], "b": 1 / Y[:2]}, [1, 0, 1]),
        ("the Jacobian of h", "d r / d x_2", Y[0], {"a": Y[0], "r": ca.sqrt(Y[2])}, [1, 1, 0]),
    ],
)
def test_nan_is_located(function: str, entry: str, f: Any, h: Any, point: list[int]) -> None:
    problem = Problem(x=Y, f=f, h=h)
    with pytest.raises(EvaluationError) as caught:
        oracle(problem).second(np.array(point, dtype=float), np.ones(problem.m))
    assert (caught.value.function, caught.value.entry) == (function, entry)
    assert not math.isfinite(caught.value.value)
    result = Solver(problem, "closed-form").solve(point)
    assert (result.stop, result.point) == (StopReason.EVALUATION_ERROR, PointStatus.UNDEFINED)
    assert entry in result.detail
    assert result.x.tolist() == point


def test_nan_in_hessian_is_located() -> None:
    """x^1.5 has a finite gradient at 0 and no second derivative there."""
    x = ca.SX.sym("x", 2)
    problem = Problem(x=x, f=x[0] + x[1] ** 1.5, h=ca.vertcat(x[0], x[1] - 1))
    result = Solver(problem, "closed-form").solve([0.5, 0.0])
    assert result.stop is StopReason.EVALUATION_ERROR
    assert "d²/dx_1 dx_1" in result.detail
    assert result.point is PointStatus.NOT_CONVERGED
    assert result.residuals.feasibility == 1
    # Without the Hessian the same start is no obstacle.
    assert Solver(problem, "constant", C_aug=1.0, eta_x=0.1, eta_d=0.5).solve([0.5, 0.0]).success


def test_leaving_the_domain_keeps_best() -> None:
    """log x with a step that jumps to x < 0: the best iterate comes back, with its residuals."""
    x = ca.SX.sym("x")
    problem = Problem(x=x, f=-ca.log(x), h=ca.log(x))
    solver = Solver(problem, "constant", C_aug=0.0, eta_x=0.9, eta_d=1.0)
    result = solver.solve(3.0, lam_g0=8.0, history=True)
    assert result.stop is StopReason.EVALUATION_ERROR
    history = result.history
    assert len(history.x) == result.iterations == len(history.corrections) + 1
    assert (history.x > 0).all()
    merit = np.maximum(history.feasibility, history.stationarity)
    best = int(merit.argmin())
    assert result.x == pytest.approx(history.x[best])
    assert max(result.residuals.feasibility, result.residuals.stationarity) == merit[best]


def test_mx_is_expanded_without_change(monkeypatch: pytest.MonkeyPatch) -> None:
    x = ca.MX.sym("x", 3)
    statement = {"x": x, "f": ca.sumsqr(ca.sin(x)), "h": [x[0] * x[1], ca.exp(x[2]) - x[0]]}
    expanded = Problem(**statement).functions
    monkeypatch.setattr(functions, "EXPANSION_LIMIT", 0)
    plain = Problem(**statement).functions
    assert expanded.first.is_a("SXFunction")
    assert expanded.curvature.is_a("SXFunction")
    assert plain.first.is_a("MXFunction")
    assert not plain.unexpanded
    at, lam = [0.3, -1.0, 0.5], [2.0, -3.0]
    for a, b in zip(expanded.first(at, []), plain.first(at, []), strict=True):
        np.testing.assert_allclose(a.full(), b.full(), rtol=1e-14)
    expected = plain.second(at, lam, [])[4].full()
    for each in (expanded, plain):
        np.testing.assert_allclose(each.curvature(at, lam, []).full(), expected, rtol=1e-14)


def test_some_graphs_stay_mx() -> None:
    """A neural network is fast as products; its scalar operations took a hundred times as long."""
    x = ca.MX.sym("x", 2)
    weights = [ca.DM(np.cos(np.arange(w * h)).reshape(w, h) / w) for w, h in ((300, 2), (350, 300))]
    network = ca.Function("network", [x], [ca.sumsqr(weights[1] @ ca.tanh(weights[0] @ x))])
    large = Problem(x=x, f=network(x) + ca.sumsqr(x - 1), h=ca.sum1(x) - 1)
    assert large.functions.first.is_a("MXFunction")
    small = Problem(x=x, f=ca.sumsqr(weights[0][:20, :] @ x), h=ca.sum1(x) - 1)
    assert small.functions.first.is_a("SXFunction")
    # A spline has no scalar form.
    spline = ca.interpolant("s", "bspline", [np.linspace(-2, 2, 9)], np.linspace(0, 1, 9) ** 2)
    curved = Problem(x=x, f=spline(x[0]) + x[1] ** 2, h=ca.sum1(x) - 1)
    assert curved.functions.first.is_a("MXFunction")


def test_nested_calls_have_own_buffers() -> None:
    def square(at: float) -> Any:
        """At 5 it evaluates the function that it is part of at 1."""
        return fused(np.array([1.0, 7.0]))[0] if at == 5.0 else at**2

    inner, x = PythonFunction(square), ca.MX.sym("x", 2)
    outer = ca.Function("outer", [x], [inner(x[0]) + 10 * x[1]], ["x"], ["f"])
    fused = functions.Fused(outer, SimpleNamespace(packing=functions.Packing))
    assert fused(np.array([5.0, 3.0])).tolist() == [1 + 10 * 7 + 10 * 3]
    assert fused(np.array([2.0, 1.0])).tolist() == [14.0]
