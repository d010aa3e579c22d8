"""Derivatives that the user gives, Hessians of Gauss and Newton, and what is refused."""

import pickle
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.watched import Watched

from casadi_hybrid import (
    Derivatives,
    InputError,
    Problem,
    Solver,
    nlpsol,
    solution_sensitivity,
    verify,
)
from casadi_hybrid.solver.options.foreign import OptionWarning

X, P = ca.SX.sym("x", 2), ca.SX.sym("p")
F = (1 - X[0]) ** 2 + 100 * (X[1] - X[0] ** 2) ** 2
G = ca.vertcat(X[0] ** 2 + P * X[1], X[0])
NLP = {"x": X, "p": P, "f": F, "g": G}
BOUNDS = {"p": 2.0, "x0": [0.5, 0.5], "ubg": [1.0, 4.0]}
SIGMA, LAM = ca.SX.sym("s"), ca.SX.sym("l", 2)
H = ca.hessian(SIGMA * F + ca.dot(LAM, G), X)[0]


def hess_lag(part: Any = lambda full: full) -> ca.Function:
    return ca.Function("hess_lag", [X, P, SIGMA, LAM], [part(H)])


def solved(**options: Any) -> Any:
    solver = nlpsol("s", "hybrid", NLP, options)
    solver(**BOUNDS)
    return solver.result


@pytest.fixture(scope="module")
def exact() -> Any:
    return solved()


@pytest.mark.parametrize("part", [lambda full: full, ca.triu, ca.densify])
def test_a_given_hessian_in_full_or_its_triangle_makes_the_same_steps(exact, part):
    found = solved(hess_lag=hess_lag(part))
    assert found.hessian == "given"
    assert exact.hessian == "exact"
    assert found.iterations == exact.iterations
    np.testing.assert_allclose(found.x, exact.x, rtol=0, atol=1e-10)
    assert "The Hessian: given by the user." in found.explain()


def test_a_given_hessian_is_used_and_not_the_exact_one(exact: Any) -> None:
    constant = ca.Function("h", [X, P, SIGMA, LAM], [SIGMA * ca.SX(ca.DM([[900, 0], [0, 200]]))])
    found = solved(hess_lag=constant)
    assert found.success
    assert found.iterations > 2 * exact.iterations
    np.testing.assert_allclose(found.x, exact.x, rtol=0, atol=1e-5)


def test_given_first_derivatives_are_used() -> None:
    calls: list[int] = []
    watched = Watched(lambda: calls.append(1))
    x, p = ca.MX.sym("x", 2), ca.MX.sym("p")
    f, slope = ca.Function("f", [X, P], [F, ca.gradient(F, X)])(x, p)
    gradient = ca.Function("grad_f", [x, p], [f, slope * watched(0)])
    J = ca.Function("jac_g", [X, P], [G, ca.jacobian(G, X)])
    found = solved(grad_f=gradient, jac_g=J)
    assert found.success
    assert calls
    # Second derivatives of f still come from its graph.
    assert found.hessian == "exact"


def test_matrices_of_parameters_reach_given_functions_in_their_shape() -> None:
    A = ca.SX.sym("A", 2, 2)
    f = ca.sumsqr(A @ X - 1)
    H = ca.Function("h", [X, A, SIGMA, ca.SX.sym("l", 0)], [2 * SIGMA * A.T @ A])
    solver = nlpsol("s", "hybrid", {"x": X, "p": A, "f": f}, {"hess_lag": H})
    found = solver(p=ca.DM([[2, 1], [0, 3]]))
    np.testing.assert_allclose(found["x"].full().ravel(), [1 / 3, 1 / 3], atol=1e-8)
    assert solver.result.iterations <= 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"hess_lag": 3}, "hess_lag must be a CasADi Function, got int"),
        ({"hess_lag": ca.Function("h", [X], [X])}, r"must take 4 arguments \(x, p, lam_f, lam_g\)"),
        (
            {"hess_lag": ca.Function("h", [X, P, SIGMA, ca.SX.sym("l")], [X @ X.T])},
            "argument 3 is lam_g with 2 entries",
        ),
        (
            {"hess_lag": ca.Function("h", [X, P, SIGMA, LAM], [X])},
            r"output 0 is hess_lag of shape \(2, 2\)",
        ),
        ({"hess_lag": hess_lag(ca.tril)}, "neither symmetric nor upper triangular"),
        ({"jac_g": ca.Function("j", [X, P], [G])}, "must return g and jac_g, got 1"),
        (
            {"jac_g": ca.Function("j", [X, P], [G, ca.jacobian(G, X).T[:, 0]])},
            r"jac_g of shape \(2, 2\)",
        ),
        ({"grad_f": ca.Function("g", [X, P], [F, ca.gradient(F, X).T])}, r"shape \(2, 1\), got"),
        ({"hessian_approximation": "bfgs"}, "must be one of 'exact', 'gauss-newton'"),
        ({"hessian_approximation": "limited-memory", "hess_lag": hess_lag()}, "leave one out"),
        ({"residuals": ca.Function("r", [X, P], [X])}, "residuals are for"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        solved(**options)


def test_a_problem_carries_its_derivatives(exact: Any) -> None:
    own = Derivatives(hess_lag=hess_lag())
    problem = Problem(x=X, p=P, f=F, g=G, ubg=[1, 4], derivatives=own)
    result = Solver(pickle.loads(pickle.dumps(problem))).solve([0.5, 0.5], p=2.0)
    assert result.hessian == "given"
    assert result.iterations == exact.iterations
    learned = problem.with_derivatives(Derivatives("limited-memory"))
    assert Solver(learned).solve([0.5, 0.5], p=2.0).hessian == "limited-memory"
    slopes = [
        solution_sensitivity(one, Solver(one).solve([0.5, 0.5], p=2.0), p=2.0)
        for one in (learned, problem.with_derivatives(Derivatives()))
    ]
    np.testing.assert_allclose(slopes[0]["jac_x_p"], slopes[1]["jac_x_p"], atol=1e-4)
    # The verifier takes CasADi's derivatives, whatever the solve was given.
    assert verify(learned, result, ipopt=False).second.verdict.name == "STRICT_MINIMIZER"
    with pytest.raises(InputError, match="derivatives must be a Derivatives"):
        Problem(x=X, f=F, derivatives="exact")


def test_ipopts_word_is_translated() -> None:
    found = solved(ipopt={"hessian_approximation": "limited-memory"})
    assert found.hessian == "limited-memory"
    assert found.success
    with pytest.warns(OptionWarning, match="limited_memory_max_history"):
        solved(ipopt={"limited_memory_max_history": 3})


RESIDUALS = ca.vertcat(ca.sin(X[0]) - X[1], X[0] * X[1] - P, ca.exp(X[1]))
W = ca.DM([[2, 1], [1, 3]])


def by_hand(weights: Any = 1.0) -> Any:
    J = ca.jacobian(RESIDUALS, X)
    return 2 * J.T @ (ca.diag(weights * ca.SX.ones(3)) @ J)


CASES = {
    "sumsqr": (ca.sumsqr(RESIDUALS), by_hand()),
    "half a dot": (0.5 * ca.dot(RESIDUALS, RESIDUALS), by_hand(0.5)),
    "norm squared": (ca.norm_2(RESIDUALS) ** 2, by_hand()),
    "weights": (
        3 * RESIDUALS[0] ** 2 + P**2 * RESIDUALS[1] ** 2 + RESIDUALS[2] ** 2 / 4,
        by_hand(ca.vertcat(3, P**2, 0.25)),
    ),
    "with quadratic and linear terms": (
        ca.sumsqr(RESIDUALS) + ca.bilin(W, X, X) + P * X[0] - 3,
        by_hand() + 2 * W,
    ),
    "an even power": (
        ca.sumsqr(RESIDUALS) + (X[0] - 1) ** 4,
        by_hand() + ca.diag(ca.vertcat(8 * (X[0] - 1) ** 2, 0)),
    ),
}


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_squares_are_seen(name: str, kind: type) -> None:
    f, expected = CASES[name]
    x, p = kind.sym("x", 2), kind.sym("p")
    graph = ca.Function("f", [X, P], [f])
    own = Derivatives("gauss-newton")
    # As a call MX keeps the scalar graph, in line its own operations.
    problem = Problem(x=x, p=p, f=graph.call([x, p], kind is ca.SX, False)[0], derivatives=own)
    found = problem.functions.with_hessian("curvature")([0.7, -0.4], [], 1.5)
    wanted = ca.Function("H", [X, P], [expected])([0.7, -0.4], 1.5)
    np.testing.assert_allclose(found.full(), wanted.full(), atol=1e-12)


def test_squares_of_matrix_operations_are_seen() -> None:
    x = ca.MX.sym("x", 2)
    e = ca.sin(x) - ca.DM([1, 2])
    J = ca.Function("J", [x], [ca.jacobian(e, x)])([0.3, 0.4]).full()
    for f in (ca.sumsqr(e), e.T @ e, ca.sum1(e**2), ca.norm_fro(e) ** 2):
        problem = Problem(x=x, f=f, derivatives=Derivatives("gauss-newton"))
        found = problem.functions.with_hessian("curvature")([0.3, 0.4], [], []).full()
        np.testing.assert_allclose(found, 2 * J.T @ J, atol=1e-12)


def test_given_residuals() -> None:
    twisted = ca.bilin(W, RESIDUALS[:2], RESIDUALS[:2])  # no sum of squares in its terms
    root = ca.DM(np.linalg.cholesky(W.full()).T)
    with pytest.raises(InputError, match="no square is seen in f; give residuals"):
        nlpsol("s", "hybrid", {**NLP, "f": twisted}, {"hessian_approximation": "gauss-newton"})
    r = root @ RESIDUALS[:2]
    own = Derivatives("gauss-newton", residuals=ca.Function("r", [X, P], [r]))
    for factor in (1.0, 0.5):
        problem = Problem(x=X, p=P, f=factor * twisted, derivatives=own)
        J = ca.jacobian(r, X)
        wanted = ca.Function("H", [X, P], [2 * factor * J.T @ J])([0.7, -0.4], 1.5)
        found = problem.functions.with_hessian("curvature")([0.7, -0.4], [], 1.5)
        np.testing.assert_allclose(found.full(), wanted.full(), atol=1e-12)
    wrong = Derivatives("gauss-newton", residuals=ca.Function("r", [X, P], [RESIDUALS]))
    with pytest.raises(InputError, match="residuals do not belong to f"):
        Problem(x=X, p=P, f=twisted, derivatives=wrong).functions  # noqa: B018


@pytest.mark.parametrize("f", [ca.sin(X[0]), X[0] * X[1] ** 2 + X[0] ** 2, -(ca.exp(X[0]) ** 2)])
def test_what_is_no_sum_of_squares_is_refused(f: Any) -> None:
    with pytest.raises(InputError, match=r"square.*give residuals"):
        nlpsol("s", "hybrid", {"x": X, "f": f}, {"hessian_approximation": "gauss-newton"})


def test_a_fit_by_gauss_newton(exact: Any) -> None:
    found = solved(hessian_approximation="gauss-newton")
    assert found.hessian == "gauss-newton"
    assert found.success
    assert found.iterations < 30
    np.testing.assert_allclose(found.x, exact.x, rtol=0, atol=1e-6)


def test_finite_differences_are_asked_for_as_in_casadi(exact: Any) -> None:
    differences = {"enable_fd": True, "enable_forward": False, "enable_reverse": False}
    found = solved(common_options={"helper_options": differences})
    assert found.success
    assert found.hessian == "limited-memory"
    np.testing.assert_allclose(found.x, exact.x, atol=1e-4)


def test_functions_in_casadis_cache_are_the_users() -> None:
    hessian = nlpsol("s", "hybrid", NLP).get_function("nlp_hess_l")
    assert solved(cache={"nlp_hess_l": hessian}).hessian == "given"
    with pytest.raises(InputError, match="cache must be a dictionary"):
        solved(cache=3)


def test_a_functions_own_derivatives_survive_expansion_where_they_come_first() -> None:
    x = ca.MX.sym("x")
    for factor, solves in ((2, True), (-1, False)):
        inputs = [x, ca.MX(1, 1)]
        slope = ca.Function("jac_square", inputs, [factor * x], ["x", "out_y"], ["jac_y_x"])
        brought = {"custom_jacobian": slope, "jac_penalty": 0}
        square = ca.Function("square", [x], [x**2], ["x"], ["y"], brought)
        options = {"expand": True, "postpone_expand": True, "max_iter": 20}
        solver = nlpsol("s", "hybrid", {"x": x, "f": square(x - 3)}, options)
        solver()
        assert solver.stats()["success"] is solves
        assert solver.get_function("nlp_jac_g").is_a("SXFunction")
        lost = nlpsol("s", "hybrid", {"x": x, "f": square(x - 3)}, {"expand": True})
        assert abs(float(lost()["x"]) - 3) < 1e-6


def test_a_given_hessian_may_leave_out_what_it_has_no_use_for(exact: Any) -> None:
    """As of Gauss–Newton, which knows no multipliers of the constraints."""
    at = hess_lag()(X, P, SIGMA, ca.DM([0.5, 0.0]))
    partial = ca.Function("hess_lag", [X, P, SIGMA, ca.SX(0, 0)], [at])
    assert solved(hess_lag=partial, max_iter=200).success
