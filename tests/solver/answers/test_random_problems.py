"""``nlpsol`` on random problems: the planted solution, the same from every equivalent form.

Residuals are recomputed from CasADi's graph. The default run draws few examples, the same each
time; ``--hypothesis-profile=explore`` draws hundreds of new ones.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.cases.equivalent_nlp import FORMS, rewritten
from support.cases.nlp import OUTPUTS
from support.cases.random_nlp import ROWS, VARIABLES, Answer, Random, planted
from support.judges.kkt import INF, Judge, numbers, side

from casadi_hybrid import nlpsol
from casadi_hybrid.utils import arrays as helpers

# Tighter than the defaults: what the scales of a form multiply is still small.
TIGHT = {"tol": 1e-10, "residual_tol": 1e-7}
FEW = settings(max_examples=settings().max_examples // 3)

seeds = st.integers(0, 10**6)
variables = st.lists(st.sampled_from(VARIABLES), min_size=1, max_size=6)
rows = st.lists(st.tuples(st.sampled_from(ROWS), st.booleans()), max_size=5)
convex = st.builds(planted, seeds, variables, rows, curved=st.booleans())
indefinite = st.builds(planted, seeds, variables, rows, curved=st.booleans(), convex=st.just(False))
forms = st.lists(st.sampled_from(sorted(FORMS)), min_size=1, max_size=3, unique=True)
# Forms whose active gradients stay independent: else no working set is the only one.
DEPENDENT = {"duplicated_rows", "equations_as_inequalities"}
independent = st.sampled_from(sorted({*FORMS} - DEPENDENT))
regular = st.lists(independent, min_size=1, max_size=3, unique=True)


def solved(problem: Random, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(answer, statistics) of a success, its residuals recomputed."""
    solver = nlpsol("s", "hybrid", problem.nlp, TIGHT)
    found = solver(**{**problem.call, **more})
    assert solver.stats()["success"], solver.explain()
    # Large multipliers of dependent rows cancel, up to rounding in the order of the sums.
    rounding = 1e-14 * np.abs(numbers(found["lam_g"])).max(initial=1.0)
    assert Judge(problem.nlp).kkt(found, problem.call) <= TIGHT["residual_tol"] + rounding
    return found, solver.stats()


def same(a: Answer, b: Answer) -> None:
    """Equal but for the tolerance of the solves; multipliers are of the size of one."""
    np.testing.assert_allclose(a.x, b.x, atol=1e-5)
    np.testing.assert_allclose(a.f, b.f, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(a.lam_x, b.lam_x, atol=1e-4)
    np.testing.assert_allclose(a.lam_g, b.lam_g, atol=1e-4)


@FEW
@given(convex)
def test_planted_solution_is_found(problem: Random) -> None:
    found, _ = solved(problem)
    same(Answer.of(found), problem.planted)
    # ∂L/∂p = (x, λ_g) by the way the parameters enter, and CasADi's sign is the other one.
    slope = np.concatenate((problem.planted.x, problem.planted.lam_g))
    np.testing.assert_allclose(numbers(found["lam_p"]), -slope, atol=1e-4)


def check_form(problem: Random, names: list[str], seed: int, mx: bool) -> None:
    other, back = rewritten(problem, names, seed, mx=mx)
    found, _ = solved(other)
    same(back(Answer.of(found)), problem.planted)


@FEW
@given(convex, forms, seeds, st.booleans())
def test_equivalent_problems_have_equivalent_answers(problem, names, seed, mx):
    check_form(problem, names, seed, mx)


@pytest.mark.parametrize("name", FORMS)
def test_every_form_has_the_planted_answer(name: str) -> None:
    for seed in (1, 2):
        kinds = [*VARIABLES, "free", "free"]
        problem = planted(seed, kinds, [(kind, True) for kind in ROWS], curved=seed == 2)
        check_form(problem, [name], seed, mx=seed == 2)


@FEW
@given(indefinite)
def test_indefinite_problem_has_a_true_verdict(problem: Random) -> None:
    """Success or a certificate; and from the planted KKT point itself nothing moves."""
    solver, judge = nlpsol("s", "hybrid", problem.nlp), Judge(problem.nlp)
    found = solver(**problem.call)
    if solver.stats()["success"]:
        assert judge.kkt(found, problem.call) <= 1e-6 * (1 + 1e-6)
    else:
        # Rows that curve either way may have a local minimum of their violation.
        assert solver.stats()["unified_return_status"] == "SOLVER_RET_INFEASIBLE", solver.explain()
        violation, slope = judge.infeasibility(found["x"], problem.call)
        assert violation > 1e-6
        assert slope <= 1e-4
    known = problem.planted
    again = solver(**{**problem.call, "x0": known.x}, lam_x0=known.lam_x, lam_g0=known.lam_g)
    if known.lam_x.any() or known.lam_g.any():
        assert solver.stats()["iter_count"] == 0
        np.testing.assert_allclose(numbers(again["x"]), known.x, atol=1e-9)


@FEW
@given(convex, regular, seeds)
def test_warm_start_at_the_solution_ends_there(problem, names, seed):
    """From the solution no step; from nearby a few, to the same point."""
    other, _ = rewritten(problem, names, seed, mx=False)
    cold, stats = solved(other)
    duals = {"lam_x0": cold["lam_x"], "lam_g0": cold["lam_g"]}
    if not any(numbers(value).any() for value in duals.values()):
        return
    again, warm = solved(other, x0=cold["x"], **duals)
    assert warm["iter_count"] <= 1
    same(Answer.of(again), Answer.of(cold))
    step = 1e-5 * np.random.default_rng(seed).normal(size=other.x.numel())
    _, warm = solved(other, x0=numbers(cold["x"]) * (1 + step), **duals)
    assert warm["iter_count"] <= max(3, stats["iter_count"])


@FEW
@given(convex, seeds)
def test_used_solver_is_as_good_as_new(problem: Random, seed: int) -> None:
    """Other numbers and kinds of bounds give, to the last bit, the answer of a new solver."""
    rng = np.random.default_rng(seed)
    # Other numbers may contradict each other: the answers are compared, not solutions.
    options = {"max_iter": 60}
    used = nlpsol("s", "hybrid", problem.nlp, options)
    x, free = problem.planted.x, problem.lbx < problem.ubx
    for _ in range(2):
        fixed = rng.random(x.size) < 0.2
        other = replace(
            problem,
            values=problem.values + 0.1 * rng.normal(size=problem.values.size),
            lbx=np.where(fixed, x, problem.lbx),
            ubx=np.where(fixed, x, problem.ubx + np.where(free, rng.uniform(0, 1, x.size), 0)),
            lbg=np.where(rng.random(problem.lbg.size) < 0.2, -INF, problem.lbg),
        )
        fresh = nlpsol("s", "hybrid", problem.nlp, options)
        a, b = used(**other.call), fresh(**other.call)
        for key in OUTPUTS:
            np.testing.assert_array_equal(numbers(a[key]), numbers(b[key]), err_msg=key)
        np.testing.assert_equal(used.stats()["iterations"], fresh.stats()["iterations"])
        used(**problem.call)


def program(f: Any, g: Any, x: Any, x0: Any, **bounds: Any) -> Random:
    of = {"lbx": x, "ubx": x, "lbg": g, "ubg": g}
    whole = {key: side(bounds, key, symbols.numel()) for key, symbols in of.items()}
    return Random(x, ca.SX.sym("p", 0), f, g, **whole, x0=x0, values=np.zeros(0))


@FEW
@given(seeds, st.integers(1, 5), st.integers(0, 4), forms)
def test_planted_contradictions_are_found(seed: int, n: int, more: int, names: list[str]) -> None:
    """Gᵀw = 0 and wᵀh < 0 with w > 0: no x has Gx ≤ h, whatever else is asked of it (Farkas)."""
    rng = np.random.default_rng(seed)
    x = ca.SX.sym("x", n)
    G = rng.normal(size=(2, n))
    w = rng.uniform(0.5, 2, 3)
    G = np.vstack((G, -(w[0] * G[0] + w[1] * G[1]) / w[2]))
    h = rng.normal(size=3)
    h[2] = -(w[0] * h[0] + w[1] * h[1] + rng.uniform(0.5, 2)) / w[2]
    other = rng.normal(size=(more, n))
    g = ca.vertcat(ca.DM(G) @ x, *(ca.dot(ca.DM(row), x) for row in other))
    slack = rng.uniform(-1, 3, more)
    bounds = {"ubg": np.concatenate((h, slack)), "lbx": -10, "ubx": 10}
    problem, _ = rewritten(
        program(ca.sumsqr(x - 1), g, x, rng.normal(size=n), **bounds),
        [name for name in names if "scaled" not in name],
        seed,
        mx=False,
    )
    solver = nlpsol("s", "hybrid", problem.nlp)
    found = solver(**problem.call)
    assert solver.stats()["unified_return_status"] == "SOLVER_RET_INFEASIBLE", solver.explain()
    assert solver.stats()["point_status"] == "INFEASIBLE_STATIONARY"
    violation, slope = Judge(problem.nlp).infeasibility(found["x"], problem.call)
    assert violation > 1e-3
    assert slope <= 1e-4


@FEW
@given(seeds, st.integers(1, 5), st.integers(0, 4))
def test_planted_rays_are_found(seed: int, n: int, m: int) -> None:
    """A direction d with Gd ≤ 0 along which f falls, from a feasible point."""
    rng = np.random.default_rng(seed)
    x, d, inside = ca.SX.sym("x", n), rng.normal(size=n), rng.normal(size=n)
    d /= np.linalg.norm(d)
    G = rng.normal(size=(m, n))
    G -= np.outer(G @ d + rng.uniform(0, 1, m), d)
    c = rng.normal(size=n)
    c -= (c @ d + rng.uniform(0.5, 2)) * d
    across = ca.sumsqr(x - ca.dot(ca.DM(d), x) * ca.DM(d))  # convex, constant along d
    f, g = ca.dot(ca.DM(c), x) + across, ca.DM(G) @ x if m else ca.SX(0, 1)
    problem = program(f, g, x, inside, ubg=G @ inside + rng.uniform(0.1, 1, m))
    solver, judge = nlpsol("s", "hybrid", problem.nlp), Judge(problem.nlp)
    found = solver(**problem.call)
    assert solver.stats()["stop_reason"] == "UNBOUNDED", solver.explain()
    point = numbers(found["x"])
    assert judge.feasibility(point, problem.call) <= 1e-6 * (1 + np.abs(point).max())
    assert float(found["f"]) < judge.at(inside).f - 1e5
    ahead = point + np.abs(point).max() * d
    assert judge.feasibility(ahead, problem.call) <= 1e-6 * (1 + np.abs(ahead).max())
    assert judge.at(ahead).f < float(found["f"])


def moved_multipliers(c: np.ndarray, h: np.ndarray, rng: np.random.Generator) -> set[float]:
    """Assert α_y in the log of a quadratic program; return the ends of its interval it met."""
    A, x0, inside = rng.normal(size=(5, 12)), rng.uniform(0.5, 3.5, 12), rng.uniform(0.5, 3.5, 12)
    x, records = ca.SX.sym("x", 12), []
    nlp = {"x": x, "f": ca.dot(c, x) + ca.dot(h, x**2) / 2, "g": ca.mtimes(ca.DM(A), x)}
    solver = nlpsol("s", "hybrid", nlp, {"iteration_callback": records.append})
    solver(x0=x0, lbx=0, ubx=4, lbg=A @ inside, ubg=A @ inside)
    log, ends = solver.stats()["iterations"], set()
    for t, (old, new) in enumerate(pairwise(records), 1):
        alpha, alpha_z = log["alpha_pr"][t], log["alpha_du"][t]
        before, after = (c + h * k.x + A.T @ k.lam_g + k.lam_x for k in (old, new))
        if np.linalg.norm(before) < 1e-6:
            continue
        moved = A.T @ (new.lam_g - old.lam_g)
        slope = -before - h * (new.x - old.x) / alpha - (new.lam_x - old.lam_x) / alpha_z  # Aᵀdy
        least = -(after - moved) @ slope / (slope @ slope)
        wanted = np.clip(least, *sorted((alpha, alpha_z)))
        assert slope @ moved / (slope @ slope) == pytest.approx(wanted, rel=1e-6)
        if not h.any():
            assert np.linalg.norm(after) <= (1 - alpha_z) * np.linalg.norm(before) + 1e-9
        ends.add(np.sign(wanted - least))
    return ends


@pytest.mark.parametrize("curvature", [0.0, 0.5])
def test_row_multipliers_leave_the_least_slope(curvature: float) -> None:
    """α_y is that between α and α_z with the least |∇f + Aᵀy + lam_x|₂ at the new point.

    Aᵀdy from H dx + Aᵀdy + dlam_x = −(∇f + Aᵀy + lam_x), the steps' parts from two iterates. The
    residual of a linear program falls at least by 1 − α_z.
    """
    rng = np.random.default_rng(1)
    runs = [(rng.normal(size=12), curvature * rng.uniform(size=12)) for _ in range(8)]
    assert set().union(*(moved_multipliers(c, h, rng) for c, h in runs)) == {-1, 0, 1}


@given(arrays(float, st.integers(0, 20), elements=st.floats(width=64)), st.sampled_from([1, 2, -1]))
def test_helpers_for_arrays_agree_with_numpy(v: np.ndarray, step: int) -> None:
    v = v[::step]
    v.setflags(write=False)
    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_equal(helpers.largest(v), float(np.abs(v).max(initial=0.0)))
    assert helpers.all_finite(v) == np.isfinite(v).all()
    assert helpers.anywhere(v > 0.0) == (v > 0.0).any()
    assert helpers.address(v) == v.ctypes.data
    keys = np.argsort(v) // 3
    expected = np.unique(keys, return_inverse=True)
    for values, reference in zip(helpers.distinct(keys), expected, strict=True):
        np.testing.assert_array_equal(values, reference)
