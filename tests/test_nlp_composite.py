"""Composite steps in the default engine: where they are taken, and what follows where they fail."""

import casadi as ca
import numpy as np
import pytest
from problems.rank_deficient import KINDS, make_rank_deficient

from casadi_hybrid import Problem, Solver, nlpsol

X = ca.SX.sym("x", 2)
COMPOSITE = "hybrid (composite step)"


def solver_of(f, g, **options):
    return nlpsol("s", "hybrid", {"x": X, "f": f, "g": g}, options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("condition", [1.0, 1e4])
def test_dependent_rows_need_no_more_steps_than_the_trust_region_takes(kind, condition) -> None:
    made = make_rank_deficient(condition, 0, n=8, m=5, rank=4, kind=kind, radius=1.0)
    problem = made.problem
    solver = nlpsol("s", "hybrid", {"x": problem.x, "f": problem.f, "g": problem.h})
    solver(x0=made.x0, lbg=0, ubg=0)
    assert solver.stats()["success"]
    assert solver.result.method == COMPOSITE
    assert solver.stats()["iter_count"] <= 25


def test_a_quadratic_problem_takes_one_step_however_far_the_start_is() -> None:
    solver = solver_of((X[0] - 3) ** 2 + X[1] ** 2, X[0] + X[1] - 1)
    found = solver(x0=[8, -7], lbg=0, ubg=0)
    np.testing.assert_allclose(found["x"].full().ravel(), [2, -1], atol=1e-12)
    assert solver.stats()["iter_count"] == 1


@pytest.mark.parametrize(
    ("f", "g", "bounds"),
    [
        (X[0] ** 2 + X[1], X[1] - X[0] ** 2, {"lbg": 0}),
        (X[0] ** 2 + X[1], X[1] - X[0] ** 2, {"lbg": 0, "ubg": 0, "lbx": -5}),
        (0, X[1] - X[0] ** 2, {"lbg": 0, "ubg": 0}),
    ],
    ids=["inequality", "bound", "no objective"],
)
def test_the_barrier_method_is_for_everything_else(f, g, bounds) -> None:
    solver = solver_of(f, g)
    solver(x0=[1, 2], **bounds)
    assert solver.stats()["success"]
    assert solver.result.method != COMPOSITE


@pytest.mark.parametrize(("m", "composite"), [(80, True), (90, False)])
def test_large_problems_are_left_to_the_barrier_method(m, composite) -> None:
    """A chain of products: m rows in m + 30 unknowns."""
    x = ca.SX.sym("x", m + 30)
    rows = x[:m] * x[1 : m + 1] - 2
    solver = nlpsol("s", "hybrid", {"x": x, "f": ca.sumsqr(x - 1), "g": rows})
    solver(x0=1, lbg=0, ubg=0)
    assert solver.stats()["success"]
    assert (solver.result.method == COMPOSITE) is composite


def test_where_composite_steps_are_slow_the_barrier_method_solves() -> None:
    """An ellipse a hundred times longer than wide, from next to its centre."""
    f = ca.sumsqr(X - ca.DM([20, -20]))
    solver = solver_of(f, X[0] ** 2 / 100 + 100 * X[1] ** 2)
    found = solver(x0=1e-4, lbg=1, ubg=1)
    assert solver.stats()["success"]
    assert float(found["f"]) == pytest.approx(499.96, abs=1e-3)
    times = solver.result.history.t
    assert (np.diff(times) >= 0).all()
    assert solver.stats()["iter_count"] == times[-1]


def test_nothing_follows_a_proof_or_the_users_stop() -> None:
    unbounded = solver_of(-ca.sumsqr(X), X[0] - X[1])
    unbounded(x0=1, lbg=0, ubg=0)
    assert unbounded.stats()["stop_reason"] == "UNBOUNDED"
    assert unbounded.result.method == COMPOSITE
    stopped = solver_of(
        (X[0] - 3) ** 4 + X[1] ** 2, X[1] - X[0] ** 2, iteration_callback=lambda r: r.iter == 2
    )
    stopped(x0=1, lbg=0, ubg=0)
    assert stopped.stats()["stop_reason"] == "STOPPED_BY_USER"
    assert stopped.stats()["iter_count"] == 2


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
    # The residuals that end a solve are in the user's units: one more step, or one less.
    assert abs(other.iterations - plain.iterations) <= 1
    assert other.x == pytest.approx(plain.x, abs=1e-6)
    assert other.lam_g[0] * unit == pytest.approx(plain.lam_g[0], rel=1e-4)
