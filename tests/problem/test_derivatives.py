"""Derivatives that the user gives, Gauss-Newton Hessians, and refusals."""

import pickle
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import solved as nlp_solved
from support.cases.watched import Distance, Watched

from casadi_hybrid import (
    Derivatives,
    InputError,
    Problem,
    Solver,
    nlpsol,
    solution_sensitivity,
    verify,
)

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
    return nlp_solved(NLP, options, **BOUNDS).result


@pytest.fixture(scope="module")
def exact() -> Any:
    return solved()


@pytest.mark.parametrize("part", [lambda full: full, ca.triu, ca.densify])
def test_given_hessian_may_be_triangular(exact, part):
    result = solved(hess_lag=hess_lag(part))
    assert result.hessian == "given"
    assert exact.hessian == "exact"
    assert result.iterations == exact.iterations
    np.testing.assert_allclose(result.x, exact.x, rtol=0, atol=1e-10)
    assert "given by the user" in result.explain()


def test_given_hessian_replaces_the_exact(exact: Any) -> None:
    constant = ca.Function("h", [X, P, SIGMA, LAM], [SIGMA * ca.SX(ca.DM([[900, 0], [0, 200]]))])
    result = solved(hess_lag=constant)
    assert result.success
    assert result.iterations > 2 * exact.iterations
    np.testing.assert_allclose(result.x, exact.x, rtol=0, atol=1e-5)


def test_given_first_derivatives_are_used() -> None:
    calls: list[int] = []
    watched = Watched(lambda: calls.append(1))
    x, p = ca.MX.sym("x", 2), ca.MX.sym("p")
    f, slope = ca.Function("f", [X, P], [F, ca.gradient(F, X)])(x, p)
    gradient = ca.Function("grad_f", [x, p], [f, slope * watched(0)])
    J = ca.Function("jac_g", [X, P], [G, ca.jacobian(G, X)])
    result = solved(grad_f=gradient, jac_g=J)
    assert result.success
    assert calls
    assert result.hessian == "exact"  # from the graph of f


def test_matrix_parameters_keep_their_shape() -> None:
    A = ca.SX.sym("A", 2, 2)
    f = ca.sumsqr(A @ X - 1)
    H = ca.Function("h", [X, A, SIGMA, ca.SX.sym("l", 0)], [2 * SIGMA * A.T @ A])
    solver = nlpsol("s", "hybrid", {"x": X, "p": A, "f": f}, {"hess_lag": H})
    solution = solver(p=ca.DM([[2, 1], [0, 3]]))
    np.testing.assert_allclose(solution["x"].full().ravel(), [1 / 3, 1 / 3], atol=1e-8)
    assert solver.result.iterations <= 2


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("hess_lag must be a CasADi Function", {"hess_lag": 3}),
        ("must take 4 arguments", {"hess_lag": ca.Function("h", [X], [X])}),
        ("lam_g", {"hess_lag": ca.Function("h", [X, P, SIGMA, ca.SX.sym("l")], [X @ X.T])}),
        (r"hess_lag of shape \(2, 2\)", {"hess_lag": ca.Function("h", [X, P, SIGMA, LAM], [X])}),
        ("hess_lag .*upper triangular", {"hess_lag": hess_lag(ca.tril)}),
        ("jac_g must return g and jac_g", {"jac_g": ca.Function("j", [X, P], [G])}),
        ("jac_g of shape", {"jac_g": ca.Function("j", [X, P], [G, ca.jacobian(G, X).T[:, 0]])}),
        ("grad_f of shape", {"grad_f": ca.Function("g", [X, P], [F, ca.gradient(F, X).T])}),
        ("hessian_approximation", {"hessian_approximation": "bfgs"}),
        ("hess_lag", {"hessian_approximation": "limited-memory", "hess_lag": hess_lag()}),
        ("residuals", {"residuals": ca.Function("r", [X, P], [X])}),
        ("cache", {"cache": 3}),
    ],
)
def test_unfit_derivatives_are_refused(text: str, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=text):
        solved(**options)


def test_problems_carry_given_derivatives(exact: Any) -> None:
    given = Derivatives(hess_lag=hess_lag())
    problem = Problem(x=X, p=P, f=F, g=G, ubg=[1, 4], derivatives=given)
    result = Solver(pickle.loads(pickle.dumps(problem))).solve([0.5, 0.5], p=2.0)
    assert result.hessian == "given"
    assert result.iterations == exact.iterations
    learned = problem.with_derivatives(Derivatives("limited-memory"))
    solution = Solver(learned).solve([0.5, 0.5], p=2.0)
    assert solution.hessian == "limited-memory"
    slopes = (
        solution_sensitivity(made, answer, p=2.0)["jac_x_p"]
        for made, answer in ((learned, solution), (problem, result))
    )
    np.testing.assert_allclose(*slopes, atol=1e-4)
    # The verifier takes CasADi's derivatives, whatever the solve was given.
    assert verify(learned, result, ipopt=False).second.verdict.name == "STRICT_MINIMIZER"
    with pytest.raises(InputError, match="derivatives must be"):
        Problem(x=X, f=F, derivatives="exact")


# --- Gauss-Newton --------------------------------------------------------------------------------

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


def curvature(x: Any, p: Any, f: Any, residuals: ca.Function | None = None) -> Any:
    """The Gauss-Newton matrix at one point."""
    derivatives = Derivatives("gauss-newton", residuals=residuals)
    problem = Problem(x=x, p=p, f=f, derivatives=derivatives)
    return problem.functions.with_hessian("curvature")([0.7, -0.4], [], 1.5).full()


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_squares_are_recognized(name: str, kind: type) -> None:
    f, expected = CASES[name]
    x, p = kind.sym("x", 2), kind.sym("p")
    # As a call MX keeps the scalar graph, in line its own operations.
    f = ca.Function("f", [X, P], [f]).call([x, p], kind is ca.SX, False)[0]
    by_formula = ca.Function("H", [X, P], [expected])([0.7, -0.4], 1.5)
    np.testing.assert_allclose(curvature(x, p, f), by_formula.full(), atol=1e-12)


def test_squares_of_matrix_operations() -> None:
    x, p = ca.MX.sym("x", 2), ca.MX.sym("p")
    e, J = ca.sin(x) - ca.DM([1, 2]), np.diag(np.cos([0.7, -0.4]))
    for f in (ca.sumsqr(e), e.T @ e, ca.sum1(e**2), ca.norm_fro(e) ** 2):
        np.testing.assert_allclose(curvature(x, p, f), 2 * J.T @ J, atol=1e-12)


def test_given_residuals_replace_recognition() -> None:
    twisted = ca.bilin(W, RESIDUALS[:2], RESIDUALS[:2])  # no sum of squares in its terms
    r = ca.DM(np.linalg.cholesky(W.full()).T) @ RESIDUALS[:2]
    J = ca.jacobian(r, X)
    by_formula = ca.Function("H", [X, P], [2 * J.T @ J])([0.7, -0.4], 1.5).full()
    residuals = ca.Function("r", [X, P], [r])
    for factor in (1.0, 0.5):
        ours = curvature(X, P, factor * twisted, residuals)
        np.testing.assert_allclose(ours, factor * by_formula, atol=1e-12)
    with pytest.raises(InputError, match="residuals do not belong to f"):
        curvature(X, P, twisted, ca.Function("r", [X, P], [RESIDUALS]))
    for f in (twisted, ca.sin(X[0]), X[0] * X[1] ** 2 + X[0] ** 2, -(ca.exp(X[0]) ** 2)):
        with pytest.raises(InputError, match=r"square.*give residuals"):
            nlpsol("s", "hybrid", {**NLP, "f": f}, {"hessian_approximation": "gauss-newton"})


def test_gauss_newton_solves_a_fit(exact: Any) -> None:
    result = solved(hessian_approximation="gauss-newton")
    assert result.hessian == "gauss-newton"
    assert result.success
    assert result.iterations < 30
    np.testing.assert_allclose(result.x, exact.x, rtol=0, atol=1e-6)


def test_given_hessian_may_skip_multipliers() -> None:
    """The Hessian of Gauss-Newton does not depend on lam_g."""
    constant = hess_lag()(X, P, SIGMA, ca.DM([0.5, 0.0]))
    partial = ca.Function("hess_lag", [X, P, SIGMA, ca.SX(0, 0)], [constant])
    assert solved(hess_lag=partial, max_iter=200).success


# --- functions of Python -------------------------------------------------------------------------


def of_distance() -> dict[str, ca.Function]:
    """The derivatives of ``Distance``."""
    q, lam = ca.SX.sym("q", 2), ca.SX.sym("lam")
    f, g = ca.sumsqr(X - q), X[0]
    curvature = ca.triu(ca.hessian(SIGMA * f + lam * g, X)[0])
    return {
        "grad_f": ca.Function("grad_f", [X, q], [f, ca.gradient(f, X)]),
        "jac_g": ca.Function("jac_g", [X, q], [g, ca.jacobian(g, X)]),
        "hess_lag": ca.Function("hess_lag", [X, q, SIGMA, lam], [curvature]),
    }


@pytest.mark.parametrize(
    ("given", "approximation", "hessian"),
    [
        ((), {}, "limited-memory"),  # as of any finite differences
        ((), {"hessian_approximation": "limited-memory"}, "limited-memory"),
        ((), {"hessian_approximation": "exact"}, "exact"),
        (("grad_f", "jac_g"), {}, "exact"),
        (("grad_f", "jac_g", "hess_lag"), {}, "given"),
    ],
)
def test_derivatives_of_callbacks_are_those_asked_for(given, approximation, hessian):
    derivatives = {name: of_distance()[name] for name in given}
    graph = Distance({"enable_fd": True})
    solver = nlp_solved(graph, approximation | derivatives, p=[1, 2], lbg=-1, ubg=0.5)
    assert solver.stats()["success"]
    assert solver.stats()["hessian"] == hessian
    np.testing.assert_allclose(solver.result.x, [0.5, 2], atol=1e-5)
    np.testing.assert_allclose(solver.result.lam_g, [1], atol=1e-5)
    with pytest.raises(InputError, match="residuals"):
        nlpsol("s", "hybrid", graph, {"hessian_approximation": "gauss-newton"})


# --- options of CasADi and IPOPT -----------------------------------------------------------------


def test_ipopt_option_chooses_limited_memory() -> None:
    result = solved(ipopt={"hessian_approximation": "limited-memory"})
    assert result.hessian == "limited-memory"
    assert result.success


def test_casadi_options_ask_for_differences(exact: Any) -> None:
    differences = {"enable_fd": True, "enable_forward": False, "enable_reverse": False}
    result = solved(common_options={"helper_options": differences})
    assert result.success
    assert result.hessian == "limited-memory"
    np.testing.assert_allclose(result.x, exact.x, atol=1e-4)


def test_casadi_cache_gives_functions() -> None:
    hessian = nlpsol("s", "hybrid", NLP).get_function("nlp_hess_l")
    assert solved(cache={"nlp_hess_l": hessian}).hessian == "given"


def test_custom_jacobians_survive_postponed_expansion() -> None:
    x = ca.MX.sym("x")
    for factor, solves in ((2, True), (-1, False)):
        names = ["x", "out_y"], ["jac_y_x"]
        slope = ca.Function("jac_square", [x, ca.MX(1, 1)], [factor * x], *names)
        custom = {"custom_jacobian": slope, "jac_penalty": 0}
        nlp = {"x": x, "f": ca.Function("square", [x], [x**2], ["x"], ["y"], custom)(x - 3)}
        solver = nlp_solved(nlp, {"expand": True, "postpone_expand": True, "max_iter": 20})
        assert solver.stats()["success"] is solves
        assert solver.get_function("nlp_jac_g").is_a("SXFunction")
        assert nlp_solved(nlp, {"expand": True}).result.x == pytest.approx([3])
