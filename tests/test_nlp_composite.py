"""Composite steps in the default engine, its elastic restoration, and what each is for."""

import ctypes as ct

import casadi as ca
import numpy as np
import pytest
from engine_form import Form
from nlp_cases import parts, solved
from problems.chains import chain_disc
from problems.control import FAMILIES
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
    solver = solved({"x": problem.x, "f": problem.f, "g": problem.h}, x0=made.x0, lbg=0, ubg=0)
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
    solver = solved({"x": x, "f": ca.sumsqr(x - 1), "g": rows}, x0=1, lbg=0, ubg=0)
    assert solver.stats()["success"]
    assert (solver.result.method == COMPOSITE) is composite


def test_where_composite_steps_are_slow_the_barrier_method_solves() -> None:
    """An ellipse a hundred times longer than wide, from next to its centre."""
    solver = solver_of(ca.sumsqr(X - ca.DM([20, -20])), X[0] ** 2 / 100 + 100 * X[1] ** 2)
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
    f, stop = (X[0] - 3) ** 4 + X[1] ** 2, {"iteration_callback": lambda r: r.iter == 2}
    stopped = solver_of(f, X[1] - X[0] ** 2, **stop)
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


def test_a_start_whose_bounds_meet_its_equations_is_no_obstacle() -> None:
    """x₀ ≥ 0 and x₀ = 0: the distance to the bound falls to rounding, ν has to fall after it."""
    N = 30
    v, u = ca.SX.sym("v", N + 1), ca.SX.sym("u", N)
    g = ca.vertcat(v[0], v[1:] - v[:-1] - (u - v[:-1] ** 2) / N)
    solver = solved(
        {"x": ca.vertcat(v, u), "f": -v[-1], "g": g},
        x0=0.1,
        lbx=0,
        ubx=[np.inf] * (N + 1) + [1] * N,
        lbg=0,
        ubg=0,
    )
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] <= 25


@pytest.mark.parametrize("N", [20, 40, 50])
def test_a_race_is_not_restored_by_tiny_steps(N: int) -> None:
    """With 50 intervals 73, had θ to grow in five short steps before a restoration is due."""
    nlp, call = parts(FAMILIES["race_car"].build(N))
    solver = solved(nlp, **call)
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] <= 50
    assert float(solver.result.f) == pytest.approx(1.905, abs=5e-2)


def test_chains_around_a_disc_are_not_lost() -> None:
    """A restoration after five short steps, wherever they led, lost three of four of these."""
    count = 0
    for links in (50, 60, 70, 80):
        nlp, call = parts(chain_disc(links))
        solver = solved(nlp, **call)
        count += solver.stats()["success"]
    assert count >= 3


def test_a_relaxation_is_never_wider_than_the_tolerance_allows() -> None:
    """A row of slope 10⁵ is scaled by 10⁻³: 10⁻⁸ of its scaled bounds were 10⁻⁵ of its own."""
    x = ca.SX.sym("x", 3)
    problem = Problem.from_nlp({"x": x, "f": x[0] + x[2], "g": ca.vertcat(1e5 * x[0], x[1])})
    form = Form(problem, problem.numbers(x0=1, lbx=-1e4, ubx=1e4, lbg=-1, ubg=1))
    scale = np.array([1, 1, 1, 1e-3, 1])  # three variables, two slacks
    np.testing.assert_allclose(form.of_form("scale_c", 2), scale[3:])
    bounds = [form.of_form(name, 5).copy() for name in ("lower", "upper")]
    form.form.relaxation = 1e-8
    form.space._numbers.feasibility = 1e-6
    form.core.hybrid_make_form(ct.byref(form.form), ct.byref(form.point))
    for name, before, sign in zip(("lower", "upper"), bounds, (-1, 1), strict=True):
        moved = sign * (form.of_form(name, 5) - before)
        np.testing.assert_allclose(moved / scale, [5e-7] * 4 + [1e-8], rtol=1e-4)
