"""Equations alone in free variables: whole solves, and eigenvectors of small matrices."""

import ctypes as ct
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.core import assert_cut_short, assert_kkt, core_in_pieces, solved

from casadi_hybrid import Problem, Solver

EPS = float(np.finfo(float).eps)


# --- eigenvectors ---------------------------------------------------------------------------------


def eigenvectors_by_c(A: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """Status, eigenvalues and eigenvectors, a column each."""
    vectors, values, work = A.copy(), np.empty(len(A)), np.empty(max(1, len(A)))
    addresses = (array.ctypes.data for array in (vectors, values, work))
    status = core_in_pieces().hybrid_eigen(ct.c_int(len(A)), *map(ct.c_void_p, addresses))
    return status, values, vectors.T


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 12, 31])
def test_eigenvectors_match_numpy(n: int) -> None:
    whole = np.random.default_rng(n).normal(size=(n, n))
    turned = np.linalg.qr(whole)[0] if n else whole
    matrices = [by * (whole + whole.T) for by in (1.0, 1e9, 1e-170, 1e-300, 1e170, 1e300)]
    matrices += [np.zeros((n, n)), np.eye(n), np.ones((n, n)), np.diag(np.arange(n) % 3 - 1.0)]
    matrices += [turned @ np.diag(10.0 ** -np.arange(n)) @ turned.T]
    for A in (0.5 * (matrix + matrix.T) for matrix in matrices):
        status, values, W = eigenvectors_by_c(A)
        size = np.abs(A).sum()
        assert not status
        assert (np.diff(values) >= 0).all()
        np.testing.assert_allclose(values, np.linalg.eigvalsh(A), rtol=0, atol=20 * EPS * size)
        np.testing.assert_allclose(W.T @ W, np.eye(n), atol=100 * EPS)
        np.testing.assert_allclose((W * values) @ W.T, A, rtol=0, atol=20 * EPS * size)
    for bad in (np.nan, np.inf, 1e300):  # such matrices only end
        eigenvectors_by_c(np.full((n, n), bad) + np.eye(n))


# --- whole solves ---------------------------------------------------------------------------------

X = ca.SX.sym("x", 5)
x, y, z = X[:2], X[:3], X[:4]
PROBLEMS: dict[str, tuple[ca.SX, ca.SX, list[ca.SX], dict[str, Any]]] = {
    # The curvature of the equation spoils full steps: corrections, and steps that are refused.
    "valley": (
        y,
        (1 - X[0]) ** 2 + X[2] ** 4,
        [10 * (X[1] - X[0] ** 2), X[2] - ca.sin(X[0])],
        {"x0": [-1.2, 1, 2]},
    ),
    # The radius cuts steps, and damps the part in the range of A'.
    "far": (
        z,
        ca.sumsqr(z - ca.DM([1, 2, 3, 4])) + ca.cos(X[0] * X[3]),
        [X[0] * X[1] - X[2], ca.exp(X[3]) - X[0]],
        {"x0": [30, -20, 4, 2]},
    ),
    # The Hessian is indefinite on ker A.
    "bent": (y, X[0] * X[1] * X[2] + ca.sum1(y**4), [ca.sum1(y) - 0.3], {"x0": [0.1, 0.2, -0.5]}),
    "dependent rows": (
        z,
        X[2] + 0.5 * X[3] ** 2,
        [ca.sumsqr(z) - 4, 2 * ca.sumsqr(z) - 8, X[0] * X[1] - 1],
        {"x0": [1, 0.5, -1, 0.4]},
    ),
    # Steep rows, a steep objective, a fixed variable, and a row without a bound.
    "kinds": (
        X,
        3e3 * (X[0] - 1) ** 2 + ca.exp(X[1]) + X[3] ** 2,
        [4e3 * (X[0] * X[1] - X[2]), X[3] + X[4], ca.sumsqr(X) - 3],
        {
            "x0": [1, 1.2, 0.3, 0.2, 3],
            "lbx": [-np.inf] * 4 + [0.5],
            "ubx": [np.inf] * 4 + [0.5],
            "lbg": [2, -np.inf, 1],
            "ubg": [2, np.inf, 1],
        },
    ),
    # More equations than unknowns, which have a root.
    "tall": (
        x,
        ca.exp(X[0]) * X[1],
        [ca.sumsqr(x) - 5, X[0] * X[1] - 2, X[0] - 2 * X[1] + 3],
        {"x0": [1.2, 1.7]},
    ),
    # Trial points beyond the domain of the objective.
    "domain": (x, X[0] - ca.log(X[1]), [ca.sumsqr(x) - 1], {"x0": [-0.3, 0.1]}),
    # The violation is stationary at the start, where A is zero, and falls alike on all sides.
    "centre": (x, (X[0] - 0.3) ** 2 + X[1], [ca.sumsqr(x) - 1], {"x0": 0}),
    # One of two opposite directions leads away from the start, and neither is better.
    "saddle": (y, X[0] ** 2 - X[1] ** 2 + X[1] ** 4 + X[2], [X[2] + X[0]], {"x0": 0}),
    # Past a least violation, at 1.13; the roots are negative.
    "two wells": (
        x,
        ca.sumsqr(x),
        [X[0] ** 4 - 3 * X[0] ** 2 + X[0] + 2, X[1] + X[0] - 1],
        {"x0": [1.5, 0.0]},
    ),
}
"""Variables, objective, equations, and other numbers than bounds of zero."""


@pytest.mark.parametrize("name", PROBLEMS)
def test_solutions_meet_the_conditions(name: str) -> None:
    variables, f, g, numbers = PROBLEMS[name]
    nlp = {"x": variables, "f": f, "g": ca.vertcat(*g)}
    made = nlp, {"lbg": 0, "ubg": 0, **numbers}
    solver, found = solved(made)
    assert solver.stats()["success"]
    assert_kkt(made, found)
    assert_cut_short(made, 4)


@pytest.mark.parametrize("start", [2.0, 0.0])
@pytest.mark.parametrize(
    ("variables", "g"),
    [
        (x, ca.sumsqr(x) + 1),
        (y, ca.vertcat(ca.sumsqr(x) - 1, ca.sumsqr(x - 3) - 1, X[2] - X[0])),  # apart, and a plane
    ],
)
def test_stationary_violation_is_proved(variables: ca.SX, g: ca.SX, start: float) -> None:
    """J'c = 0 where c is not."""
    nlp = {"x": variables, "f": ca.sumsqr(variables), "g": g}
    solver, found = solved((nlp, {"x0": start, "lbg": 0, "ubg": 0}))
    assert solver.stats()["return_status"] == "Infeasible_Problem_Detected"
    J = ca.Function("J", [variables], [ca.jacobian(g, variables)])(found["x"]).full()
    assert np.linalg.norm(found["g"]) > 0.1
    assert np.abs(J.T @ found["g"]).max() < 1e-4


FAR_ROOTS = [
    # A, B and x* of h(x) = A(x − x*) + B(x² − x*²), and x0
    ([0.3, 0.8, 0.3, -1.3, 0.9, 0.4], [-0.5, 0.6, 0.4, 0.3, 0.0, 0.5], [-0.7, -0.2], [-1, 2]),
    ([-0.4, 1.0, 0.4, -0.6, 0.7, -1.5], [0.6, -0.6, 0.6, 0.4, -0.8, 0.5], [0.3, -0.6], [6, 2]),
]


@pytest.mark.parametrize(("A", "B", "root", "x0"), FAR_ROOTS)
def test_local_least_squares_are_left(A: Any, B: Any, root: Any, x0: Any) -> None:
    """Least squares of more equations than unknowns from x0 end where the violation is not zero."""
    there = ca.DM(root)
    slopes, curvatures = (ca.reshape(ca.DM(entries), 2, 3).T for entries in (A, B))
    h = ca.mtimes(slopes, x - there) + ca.mtimes(curvatures, x**2 - there**2)
    assert Solver(Problem(x=x, f=ca.sumsqr(x - 1), h=h)).solve(x0).success
