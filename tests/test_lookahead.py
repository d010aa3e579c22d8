"""Matrix steps under any split, and what the method "look-ahead" does with one step."""

from dataclasses import replace
from itertools import islice
from typing import Any

import casadi as ca
import numpy as np
import pytest
from engine_runs import reduction_of
from hypothesis import given
from hypothesis import strategies as st
from rule_parts import whole

from casadi_hybrid import PointStatus, Problem, Solver, StopReason
from casadi_hybrid.iterations import Hybrid
from casadi_hybrid.iterations.law import Correction, State, advance
from casadi_hybrid.iterations.rules import (
    DesignRule,
    FullCancellation,
    MatrixRule,
    NegativeCancellation,
    ScheduleRule,
    WhitenedRule,
)
from casadi_hybrid.paper import make_instance
from casadi_hybrid.paper.generator import FITTED
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle

Array = Any
norm = np.linalg.norm
SHAPES = [(3, 5), (5, 3), (4, 4), (4, 1)]


def oracle_of(problem: Problem) -> Oracle:
    return Oracle(problem.functions, np.zeros(0))


# --- the general additivity statement -----------------------------------------------------------


def resplit(rule: Any, m: int, seed: int | None) -> ScheduleRule:
    """The rule's M_t and steps, divided by an arbitrary matrix that changes with t."""
    rng = np.random.default_rng(seed)
    shares = rng.normal(size=(100, m, m))

    def schedule(at: Evaluation, t: int) -> Correction:
        c = rule.decide(at, t)
        part = 0.0 * c.M if seed is None else (1 + norm(c.M)) * shares[t]
        looks = getattr(c, "lookahead", False)
        return Correction(c.M - part, part, c.eta_x, c.eta_d, lookahead=looks)

    return ScheduleRule(schedule, needs_hessian=True)


def drift(problem: Problem, x0: Array, lam: Array, rule: Any, steps: int, **options: Any) -> float:
    """Largest deviation of x_t and π_t from the unsplit run, relative to their size."""
    runs = []
    for seed in (None, 1, 2):
        iteration = Hybrid(resplit(rule, problem.m, seed), **options)
        solver = Solver(problem, iteration, tol=1e-300, max_iter=steps)
        runs.append(whole(solver.solve(x0, lam_g0=lam, history=True), steps))
    assert norm(runs[1].mu - runs[2].mu) > 1e-3 * norm(runs[0].mu)  # the splits do differ
    worst = 0.0
    for run in runs[1:]:
        for name in ("x", "multipliers"):
            a, b = getattr(runs[0], name), getattr(run, name)
            worst = max(worst, np.abs(a - b).max() / np.abs(a).max())
    return worst


RULES = {
    "memory": MatrixRule(drive="memory"),
    "look-ahead": MatrixRule(),
    "look-ahead, full": MatrixRule(FullCancellation()),
    "look-ahead, negative": MatrixRule(NegativeCancellation()),
    "whitened": WhitenedRule(),
    "scalar steps": DesignRule(kernel_floor=0.5, M_max=1e9),
}


def within(condition: float, seed: int, n: int, m: int, radius: float) -> Any:
    """An instance whose start is that far from (x*, μ*), in x and in μ."""
    recipe = replace(FITTED, multiplier_radius=radius)
    return make_instance(condition, seed, n=n, m=m, radius=radius, recipe=recipe)


def near(n: int, m: int, radius: float = 0.03) -> Any:
    """An instance whose start is in reach of steps without safeguards."""
    return within(3, 7, n, m, radius)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", RULES)
def test_no_split_changes_a_trajectory(name: str, shape: tuple[int, int]) -> None:
    """Any C_opt,t whatsoever, not symmetric, another at each step, as long as M_t is the rule's."""
    i = near(*shape)
    assert drift(i.problem, i.x0, i.multipliers0, RULES[name], 12) <= 1e-12


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_look_ahead_forgets_the_multiplier_and_so_forgives_a_wrong_memory(shape):
    """Where π⁺ is unique it is Newton's, whatever π was; with m > n the rest of π is carried on."""
    n, m = shape
    i = near(n, m)
    rule = RULES["look-ahead"]
    found = drift(i.problem, i.x0, i.multipliers0, rule, 3, memory="untelescoped")
    assert found > 1e-6 if m > n else found <= 1e-12


# --- what a look-ahead step is ------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_look_ahead_step_does_not_depend_on_m(shape: tuple[int, int]) -> None:
    """For every M with A = H + BᵀMB invertible, definite or not: Newton–KKT, or Gauss–Newton."""
    i = near(*shape, radius=0.5)
    at = oracle_of(i.problem).second(i.x0, i.multipliers0)
    m, n = at.B.shape
    rng = np.random.default_rng(0)
    zero = np.zeros(m)
    ends = []
    for _ in range(5):
        M = 3 * rng.normal(size=(m, m))
        M = M + M.T
        P = np.linalg.inv(at.hessian + at.B.T @ M @ at.B)
        D = np.linalg.pinv(at.B @ P @ at.B.T, rcond=1e-9)
        step = Correction(M, 0 * M, P, D, lookahead=True)
        state = State(i.x0, i.multipliers0, zero, i.multipliers0)
        ends.append(advance(state, at, step, zero).x)
    for end in ends[1:]:
        assert np.abs(end - ends[0]).max() <= 1e-8 * norm(ends[0] - i.x0)
    if m >= n:
        newton = i.x0 - np.linalg.pinv(at.B) @ at.h
    else:
        K = np.block([[at.hessian, at.B.T], [at.B, np.zeros((m, m))]])
        newton = i.x0 - np.linalg.solve(K, np.concatenate([at.gradient, at.h]))[:n]
    assert ends[0] == pytest.approx(newton, abs=1e-8)


def errors_of(i: Any, method: str, steps: int) -> Array:
    solver = Solver(i.problem, method, tol=1e-300, max_iter=steps)
    history = solver.solve(i.x0, lam_g0=i.multipliers0, history=True).history
    return np.hypot(
        norm(history.x - i.x_star, axis=1),
        norm((history.multipliers - i.multipliers_star) @ i.B_star, axis=1),
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_look_ahead_converges_quadratically_and_memory_in_two_steps(shape, seed):
    """Linearized, D1's iteration matrix is nilpotent: its square vanishes, itself it does not."""
    n, m = shape
    i = within(2, seed, n, m, 0.02)
    one = errors_of(i, "matrix-lookahead", 3)
    two = errors_of(i, "matrix-memory", 6)
    floor = 1e-13
    assert one[1] <= 60 * one[0] ** 2
    assert one[2] <= 60 * one[1] ** 2 + floor
    assert two[1] > 0.1 * two[0]
    assert two[2] <= 300 * two[0] ** 2
    assert two[4] <= 300 * two[2] ** 2 + floor


def first_step(problem: Problem, x0: Array) -> Array:
    x0 = np.array(x0, dtype=float)
    result = Solver(problem, "look-ahead", tol=1e-300, max_iter=1).solve(x0, history=True)
    assert result.iterations == 1
    return result.history.x[1] - x0


# --- one composite step, on a model that is exact -----------------------------------------------


def quadratic(seed: int, n: int, m: int, r: int, size: float) -> tuple[Array, Array, Array, Array]:
    """(H, g, B, h) with B of rank r; g and h in proportion to the size."""
    rng = np.random.default_rng([seed, n, m, r])
    G = rng.normal(size=(n, n))
    B = rng.normal(size=(m, r)) @ rng.normal(size=(r, n))
    return G + G.T, size * rng.normal(size=n), B, size * rng.normal(size=m)


models = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda s: st.builds(
        quadratic,
        st.integers(0, 10_000),
        st.just(s[0]),
        st.just(s[1]),
        st.integers(1, min(s)),
        st.sampled_from([1e-3, 0.1, 1.0, 20.0]),
    )
)


def exact(H: Array, g: Array, B: Array, h: Array) -> Problem:
    """½xᵀHx + gᵀx with h + Bx = 0."""
    x = ca.SX.sym("x", len(g))
    f = 0.5 * ca.bilin(ca.DM(H), x, x) + ca.dot(ca.DM(g), x)
    return Problem(x=x, f=f, h=ca.mtimes(ca.DM(B), x) + ca.DM(h))


@given(models)
def test_the_composite_step_and_its_two_parts(model: tuple[Array, Array, Array, Array]) -> None:
    """From x = 0 the radius is one; a Newton step of up to ten is tried, and right here."""
    H, g, B, h = model
    d = first_step(exact(*model), np.zeros(len(g)))
    _, sigma, V = np.linalg.svd(B)
    rank = np.count_nonzero(sigma > 1e-10 * sigma[0])
    Y, Z = V[:rank].T, V[rank:].T
    d_y, z = Y @ (Y.T @ d), Z.T @ d
    reduced = Z.T @ H @ Z
    least = np.linalg.eigvalsh(reduced)[0] if z.size else np.inf
    whole = np.linalg.pinv(B, rcond=1e-10) @ -h
    undamped = np.inf
    if least > 0:
        newton = whole - Z @ np.linalg.solve(reduced, Z.T @ (g + H @ whole))
        undamped = max(norm(newton), norm(whole) / 0.8)
    if undamped <= 10:
        assert d == pytest.approx(newton, abs=1e-8 * (1 + norm(newton)))
        return
    # d_y: (BᵀB + λ)d_y = −Bᵀh, and λ > 0 only at its radius.
    damping = -(d_y @ B.T @ (B @ d_y + h)) / (d_y @ d_y)
    force = B.T @ (B @ d_y + h) + damping * d_y
    assert norm(force) <= 1e-7 * norm(B) * (norm(h) + norm(B))
    assert norm(d_y) <= 0.8 * (1 + 1e-9)
    if norm(d_y) < 0.8 * (1 - 1e-6):
        assert d_y == pytest.approx(whole, abs=1e-8)
    # d_z: ZᵀHZ lifted by σ, which is exactly as much as the radius or definiteness asks for.
    slope = Z.T @ (g + H @ d_y)
    scale = norm(slope) + norm(H)
    assert norm(d) <= 1 + 1e-9
    lift = -(z @ (reduced @ z + slope)) / (z @ z) if z.any() else 0.0
    assert norm(reduced @ z + lift * z + slope) <= 1e-7 * scale
    if z.any():
        assert lift + least >= -1e-7 * scale
        assert lift >= -1e-7 * scale / norm(z)
    if lift > 1e-6 * scale:
        assert norm(d) == pytest.approx(1, rel=1e-6)


def test_nothing_moves_along_flat_directions() -> None:
    """f = 0 and one equation in three unknowns: the way to the plane is orthogonal to it."""
    x = ca.SX.sym("x", 3)
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    for f in (0, ca.sumsqr(ca.mtimes(ca.DM(Q[:1]), x)) / 2):
        problem = Problem(x=x, f=f, h=ca.mtimes(ca.DM(Q[1:2]), x) - 1)
        start = np.array([3.0, -2.0, 1.0])
        for method in ("auto", "look-ahead"):
            result = Solver(problem, method).solve(start)
            assert result.iterations == 1
            moved = (result.x - start) @ Q.T
            expected = [0.0 if isinstance(f, int) else -Q[0] @ start, 1 - Q[1] @ start, 0.0]
            assert moved == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("slope", "moved"), [(1e-15, 0.0), (1e-13, np.sqrt(399))])
def test_rounding_of_larger_numbers_does_not_pull(slope: float, moved: float) -> None:
    """The curvature along x_1 is zero, and its slope is what rounding leaves of g + H d_y."""
    x = ca.SX.sym("x", 2)
    problem = Problem(x=x, f=0.5 * (x[0] - 40) ** 2 + x[0] + slope * x[1], h=x[0] - 39)
    assert first_step(problem, [40, 0]) == pytest.approx([-1, -moved])


def test_look_ahead_takes_any_size() -> None:
    n = 150  # beyond what the default method begins with composite steps
    many = ca.SX.sym("x", n)
    problem = Problem(x=many, f=ca.sumsqr(many - 1), h=many[1:] - ca.sin(many[:-1]))
    result = Solver(problem, "look-ahead").solve(np.zeros(n))
    assert result.success
    assert (result.method, result.engine, result.kernel) == ("look-ahead", "c", "svd")
    for multipliers in (result.mu, result.effective_multipliers):
        assert multipliers.tolist() == result.lam_g.tolist()


def test_the_limit_is_that_of_the_solve_and_nothing_comes_after_it() -> None:
    """A start with multipliers is no other start, and a failure is the end."""
    i = make_instance(1e3, 224, n=20, m=12, radius=1.0)
    solver = Solver(i.problem, "look-ahead")
    result = solver.solve(i.x0)
    again = solver.solve(i.x0, lam_g0=np.ones(12))
    assert again.iterations == result.iterations > 20
    assert again.x.tolist() == result.x.tolist()
    stopped = Solver(i.problem, "look-ahead", max_iter=20).solve(i.x0, history=True)
    assert (stopped.stop, stopped.iterations) == (StopReason.ITERATION_LIMIT, 20)
    assert stopped.history.x.shape == (21, 20)


def test_multipliers_beyond_the_limit_end_a_solve() -> None:
    """‖x‖² = 0 has no multipliers at its root; the limit is relative to ‖∇f‖ = 1."""
    x = ca.SX.sym("x", 2)
    solver = Solver(Problem(x=x, f=x[0], h=ca.sumsqr(x)), "look-ahead", divergence=1e8)
    result = solver.solve([1.0, 0.5], history=True)
    assert (result.stop, result.point) == (
        StopReason.NO_MULTIPLIERS, PointStatus.FRITZ_JOHN_POINT
    )  # fmt: skip
    sizes = np.abs(result.history.multipliers).max(axis=1)
    assert sizes[-2] <= 1e8 < sizes[-1]


# --- the violation alone ------------------------------------------------------------------------


def reduce_from(problem: Problem, x0: Any, most: int = 100) -> tuple[Array, list[float]]:
    """The last point, and ‖h‖ from x_0 to there."""
    x = np.array(x0, dtype=float)
    sizes = [float(norm(oracle_of(problem).residual(x)))]
    for x, h in islice(reduction_of(problem, x0), most):  # noqa: B007 - the last one is returned
        sizes.append(float(norm(h)))
        assert sizes[-1] <= sizes[-2] * (1 + 1e-14)
        if sizes[-1] <= 1e-13:
            break
    assert len(sizes) <= most
    return x, sizes


def valley(scale: Any = (1.0, 1.0), size: float = 1.0) -> Problem:
    """Rosenbrock's residuals, with a third that makes them inconsistent."""
    x = ca.SX.sym("x", 2)
    a, b = x[0] / scale[0], x[1] / scale[1]
    return Problem(x=x, f=0, h=size * ca.vertcat(10 * (b - a**2), 1 - a, 0.1 * (a + b)))


def test_the_curved_valley_is_followed() -> None:
    x, sizes = reduce_from(valley(), [-1.2, 1.0])
    at = oracle_of(valley()).first(x)
    assert norm(at.B.T @ at.h) <= 1e-9 * norm(at.B) * norm(at.h)
    assert len(sizes) <= 22


def same_fall(a: list[float], b: list[float]) -> None:
    """The last step, which only flattens the slope, may be left out by rounding."""
    shared = min(len(a), len(b))
    assert max(len(a), len(b)) - shared <= 1
    assert a[:shared] == pytest.approx(b[:shared], rel=1e-6)


@pytest.mark.parametrize("scale", [(1e-3, 1.0), (1.0, 1e4), (1e2, 1e-3)])
@pytest.mark.parametrize("size", [1.0, 1e-6, 1e5])
def test_units_of_variables_and_constraints_do_not_matter(scale, size):
    _, plain = reduce_from(valley(), [-1.2, 1.0])
    _, scaled = reduce_from(valley(scale, size), [-1.2 * scale[0], scale[1]])
    same_fall(scaled, [size * h for h in plain])


def test_a_maximum_and_a_saddle_of_the_violation_are_left() -> None:
    x = ca.SX.sym("x", 2)
    problem = Problem(x=x, f=0, h=ca.vertcat(x[0] ** 2 - 1, x[1] ** 2 + x[0] ** 2 - 2))
    for start in ([0, 0], [1, 0], [0, np.sqrt(2)]):
        result = Solver(problem, "look-ahead").solve(start)
        assert result.success
        assert abs(result.g).max() <= 1e-8


@pytest.mark.parametrize(
    ("h", "x0"),
    [
        (lambda x: x[0] ** 2 + x[1] ** 2 + 1, [0, 0]),
        (lambda x: ca.vertcat(x[0], x[0] - 1, x[1]), [0.5, 0]),
        (lambda x: ca.vertcat(ca.exp(x[0]) + ca.exp(-x[0]), x[1] ** 3), [0, 0]),
    ],
)
def test_a_local_minimizer_of_the_violation_is_the_end(h: Any, x0: Any) -> None:
    x = ca.SX.sym("x", 2)
    assert list(reduction_of(Problem(x=x, f=0, h=h(x)), x0)) == []


def test_steps_out_of_the_domain_are_cut() -> None:
    x = ca.SX.sym("x")
    assert reduce_from(Problem(x=x, f=0, h=ca.log(x) + 3), [20.0])[0] == pytest.approx(np.exp(-3))


def test_a_stationary_violation_is_left_where_there_is_a_root_behind_it() -> None:
    """x³ − 3x + 3 has a local minimum of |h| = 1 at x = 1; its root is at −2.1."""
    x = ca.SX.sym("x")
    behind = Problem(x=x, f=0, h=x**3 - 3 * x + 3)
    assert list(reduction_of(behind, [1.0])) == []
    result = Solver(behind, "look-ahead").solve([1.0], history=True)
    assert result.success
    assert result.history.x[1] < -1
    assert result.history.feasibility[1] <= 0.5
    nowhere = Solver(Problem(x=x, f=0, h=x**2 + 1), "look-ahead").solve([0.0])
    assert (nowhere.stop, nowhere.iterations) == (StopReason.LOCALLY_INFEASIBLE, 0)
    assert nowhere.point is PointStatus.INFEASIBLE_STATIONARY


@pytest.mark.parametrize(
    ("shape", "condition", "seed", "radius"),
    [((5, 3), 1e4, 222, 1.0), ((20, 12), 1e3, 224, 1.0), ((20, 12), 1e3, 224, 5.0)],
)
def test_a_penalty_that_only_grows_does_not_stop_the_steps(shape, condition, seed, radius):
    """These runs crawled at ‖h‖ = 1e-10 under ν = 1e5 for hundreds of iterations."""
    n, m = shape
    i = make_instance(condition, seed, n=n, m=m, radius=radius)
    result = Solver(i.problem, "look-ahead").solve(i.x0)
    assert result.success
    assert result.iterations <= 150
