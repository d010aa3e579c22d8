"""Equations alone in free variables: whole solves, and eigenvectors of small matrices."""

import ctypes as ct
from collections.abc import Callable
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
import pytest
from problems.rank_deficient import KINDS, make_rank_deficient
from support.cases.core import assert_cut_short, assert_kkt, core_in_pieces, solved

from casadi_hybrid import Problem, Solver

Made = tuple[dict[str, Any], dict[str, Any]]
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
    matrices = [
        *(by * (whole + whole.T) for by in (1.0, 1e9, 1e-170, 1e-300, 1e170, 1e300)),
        np.zeros((n, n)), np.eye(n), np.ones((n, n)),
        np.diag(np.arange(n) % 3 - 1.0), turned @ np.diag(10.0 ** -np.arange(n)) @ turned.T,
    ]  # fmt: skip
    for A in (0.5 * (matrix + matrix.T) for matrix in matrices):
        status, values, W = eigenvectors_by_c(A)
        size = np.abs(A).sum()
        assert not status
        assert (np.diff(values) >= 0).all()
        np.testing.assert_allclose(values, np.linalg.eigvalsh(A), rtol=0, atol=20 * EPS * size)
        np.testing.assert_allclose(W.T @ W, np.eye(n), atol=100 * EPS)
        np.testing.assert_allclose((W * values) @ W.T, A, rtol=0, atol=20 * EPS * size)


def test_matrices_without_numbers_end() -> None:
    for bad in (np.nan, np.inf, 1e300):
        A = np.full((4, 4), bad)
        A[0, 1] = A[1, 0] = 1.0
        eigenvectors_by_c(A)


# --- whole solves ---------------------------------------------------------------------------------


def circle() -> Made:
    x = ca.SX.sym("x", 2)
    return {"x": x, "f": (x[0] - 2) ** 2 + x[1], "g": ca.sumsqr(x) - 1}, {"x0": [0.5, 0.7]}


def valley() -> Made:
    """The curvature of the equation spoils full steps: corrections, and steps that are refused."""
    x = ca.SX.sym("x", 3)
    g = ca.vertcat(10 * (x[1] - x[0] ** 2), x[2] - ca.sin(x[0]))
    return {"x": x, "f": (1 - x[0]) ** 2 + x[2] ** 4, "g": g}, {"x0": [-1.2, 1, 2]}


def far() -> Made:
    """From far off: the radius cuts steps, and damps the part in the range of A'."""
    x = ca.SX.sym("x", 4)
    g = ca.vertcat(x[0] * x[1] - x[2], ca.exp(x[3]) - x[0])
    f = ca.sumsqr(x - ca.DM([1, 2, 3, 4])) + ca.cos(x[0] * x[3])
    return {"x": x, "f": f, "g": g}, {"x0": [30, -20, 4, 2]}


def bent() -> Made:
    """The Hessian is indefinite on ker A."""
    x = ca.SX.sym("x", 3)
    return {"x": x, "f": x[0] * x[1] * x[2] + x[0] ** 4 + x[1] ** 4 + x[2] ** 4,
            "g": x[0] + x[1] + x[2] - 0.3}, {"x0": [0.1, 0.2, -0.5]}  # fmt: skip


def twice() -> Made:
    """Rows that depend on each other."""
    x = ca.SX.sym("x", 4)
    g = ca.vertcat(ca.sumsqr(x) - 4, 2 * ca.sumsqr(x) - 8, x[0] * x[1] - 1)
    return {"x": x, "f": x[2] + 0.5 * x[3] ** 2, "g": g}, {"x0": [1, 0.5, -1, 0.4]}


def kinds() -> Made:
    """Steep rows, a steep objective, a fixed variable, and a row without a bound."""
    x = ca.SX.sym("x", 5)
    g = ca.vertcat(4e3 * (x[0] * x[1] - x[2]), x[3] + x[4], ca.sumsqr(x) - 3)
    bounds = {"lbx": [-np.inf] * 4 + [0.5], "ubx": [np.inf] * 4 + [0.5]}
    rows = {"lbg": [2, -np.inf, 1], "ubg": [2, np.inf, 1]}
    f = 3e3 * (x[0] - 1) ** 2 + ca.exp(x[1]) + x[3] ** 2
    return {"x": x, "f": f, "g": g}, {"x0": [1, 1.2, 0.3, 0.2, 3], **bounds, **rows}


def tall() -> Made:
    """More equations than unknowns, which have a root."""
    x = ca.SX.sym("x", 2)
    g = ca.vertcat(ca.sumsqr(x) - 5, x[0] * x[1] - 2, x[0] - 2 * x[1] + 3)
    return {"x": x, "f": ca.exp(x[0]) * x[1], "g": g}, {"x0": [1.2, 1.7]}


def domain() -> Made:
    """Trial points beyond the domain of the objective."""
    x = ca.SX.sym("x", 2)
    return {"x": x, "f": x[0] - ca.log(x[1]), "g": ca.sumsqr(x) - 1}, {"x0": [-0.3, 0.1]}


def centre(n: int = 2) -> Made:
    """The violation is stationary at the start, where A is zero, and falls alike on all sides."""
    x = ca.SX.sym("x", n)
    return {"x": x, "f": (x[0] - 0.3) ** 2 + x[1], "g": ca.sumsqr(x) - 1}, {"x0": 0}


def saddle() -> Made:
    """One of two opposite directions leads away from the start, and neither is better."""
    x = ca.SX.sym("x", 3)
    f = x[0] ** 2 - x[1] ** 2 + x[1] ** 4 + x[2]
    return {"x": x, "f": f, "g": x[2] + x[0]}, {"x0": 0}


def two_wells() -> Made:
    """Past a least violation: c = x⁴ − 3x² + x + 2 has one at 1.13, and its roots are negative."""
    x = ca.SX.sym("x", 2)
    g = ca.vertcat(x[0] ** 4 - 3 * x[0] ** 2 + x[0] + 2, x[1] + x[0] - 1)
    return {"x": x, "f": ca.sumsqr(x), "g": g}, {"x0": [1.5, 0.0]}


def many(n: int) -> Made:
    x = ca.SX.sym("x", n)
    f = ca.sumsqr(x - ca.DM(np.linspace(-1, 1, n))) + 0.1 * ca.dot(x[1:] ** 2, x[:-1])
    return {"x": x, "f": f, "g": ca.sumsqr(x) - 2}, {"x0": 0.2}


PROBLEMS = [circle, valley, far, bent, twice, kinds, tall, domain, centre, saddle]
LARGE = [partial(many, n) for n in (40, 120, 190)]


def with_equations(made: Callable[[], Made]) -> Callable[[], Made]:
    def complete() -> Made:
        problem, numbers = made()
        return problem, {"lbg": 0, "ubg": 0, **numbers}

    return complete


@pytest.mark.parametrize("made", [*PROBLEMS, two_wells, *LARGE])
def test_solutions_meet_the_conditions(made: Callable[[], Made]) -> None:
    problem = with_equations(made)()
    solver, found = solved(problem)
    assert solver.stats()["success"]
    assert_kkt(problem, found)


@pytest.mark.parametrize("made", PROBLEMS)
def test_a_limit_ends_a_run_on_its_way(made: Callable[[], Made]) -> None:
    assert_cut_short(with_equations(made)(), 4)


def cubic(seed: int) -> Made:
    """Random equations that are far from linear, from some way off."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    m = int(rng.integers(1, n + 1))
    x = ca.SX.sym("x", n)
    A, B, c = rng.normal(size=(m, n)), rng.normal(size=(m, n)), rng.normal(size=m)
    g = ca.mtimes(A, x) + ca.mtimes(B, x**3) - c + ca.sin(3 * x[0]) * x[-1]
    return {"x": x, "f": ca.sumsqr(x - 1) + ca.cos(2 * x[0]), "g": g}, {
        "x0": 3 * rng.normal(size=n), "lbg": 0, "ubg": 0,
    }  # fmt: skip


def test_random_equations_are_solved() -> None:
    """Nearly all; the others say that they found none."""
    solutions = 0
    for seed in range(60):
        solver, found = solved(cubic(seed))
        if solver.result.success:
            solutions += 1
            assert_kkt(cubic(seed), found)
        else:
            assert solver.result.stop.name == "LOCALLY_INFEASIBLE", seed
    assert solutions >= 50


def nowhere() -> Made:
    x = ca.SX.sym("x", 2)
    return {"x": x, "f": x[0], "g": ca.sumsqr(x) + 1}, {}


def crossing() -> Made:
    """Two circles that do not meet, and a plane."""
    x = ca.SX.sym("x", 3)
    g = ca.vertcat(ca.sumsqr(x[:2]) - 1, ca.sumsqr(x[:2] - 3) - 1, x[2] - x[0])
    return {"x": x, "f": ca.sumsqr(x), "g": g}, {}


@pytest.mark.parametrize("start", [2.0, 0.0])
@pytest.mark.parametrize("made", [nowhere, crossing])
def test_a_violation_that_stays_is_proved(made: Callable[[], Made], start: float) -> None:
    """‖c‖ is stationary: J'c = 0 where c is not."""
    problem, numbers = with_equations(made)()
    solver, found = solved((problem, {**numbers, "x0": start}))
    assert solver.stats()["return_status"] == "Infeasible_Problem_Detected"
    x = problem["x"]
    J = ca.Function("J", [x], [ca.jacobian(problem["g"], x)])(found["x"]).full()
    assert np.linalg.norm(found["g"]) > 0.1
    assert np.abs(J.T @ found["g"]).max() < 1e-4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("condition", [1.0, 1e4])
def test_dependent_rows_are_solved_fast(kind: str, condition: float) -> None:
    """Multipliers along dependent rows do not grow."""
    made = make_rank_deficient(condition, 0, n=8, m=5, rank=4, kind=kind, radius=1.0)
    result = Solver(made.problem).solve(made.x0)
    assert result.success
    assert result.iterations <= 25
    assert np.abs(result.lam_g).max() < 1e3


FAR_ROOTS = [
    # A, B and x* of h(x) = A(x − x*) + B(x² − x*²), and x0
    ([0.3, 0.8, 0.3, -1.3, 0.9, 0.4], [-0.5, 0.6, 0.4, 0.3, 0.0, 0.5], [-0.7, -0.2], [-1, 2]),
    ([-0.4, 1.0, 0.4, -0.6, 0.7, -1.5], [0.6, -0.6, 0.6, 0.4, -0.8, 0.5], [0.3, -0.6], [6, 2]),
]


@pytest.mark.parametrize(("A", "B", "root", "x0"), FAR_ROOTS)
def test_more_equations_than_unknowns_leave_local_minima(
    A: list[float], B: list[float], root: list[float], x0: list[float]
) -> None:
    """Least squares from x0 end where the violation is least nearby, and not zero."""
    x, there = ca.SX.sym("x", 2), ca.DM(root)
    slopes, curvatures = (ca.reshape(ca.DM(entries), 2, 3).T for entries in (A, B))
    h = ca.mtimes(slopes, x - there) + ca.mtimes(curvatures, x**2 - there**2)
    assert Solver(Problem(x=x, f=ca.sumsqr(x - 1), h=h)).solve(x0).success


@pytest.mark.parametrize("unit", [10.0, 1e3, 1e6])
def test_larger_units_of_a_row_change_little(unit: float) -> None:
    """A row in smaller units is the same constraint; its multiplier is in the inverse unit."""
    x = ca.SX.sym("x", 3)
    rows = ca.vertcat(x[0] ** 2 + x[1] - 2, ca.sin(x[1]) + x[2] - 1)
    f = ca.sumsqr(x - 0.3) + x[0] * x[2]
    plain = Solver(Problem(x=x, f=f, h=rows)).solve(1.5)
    other = Solver(Problem(x=x, f=f, h=rows * ca.DM([unit, 1.0]))).solve(1.5)
    assert plain.success
    assert other.success
    assert other.x == pytest.approx(plain.x, abs=1e-6)
    assert other.lam_g[0] * unit == pytest.approx(plain.lam_g[0], rel=1e-4)
