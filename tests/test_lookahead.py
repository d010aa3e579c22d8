"""Matrix steps under any split, and the parts of the look-ahead iteration one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import whole

from casadi_hybrid import Problem, Solver, StopReason
from casadi_hybrid.basics.errors import StallError
from casadi_hybrid.iterations import Hybrid
from casadi_hybrid.iterations.composite import Merit, composite_step, kkt_error
from casadi_hybrid.iterations.law import Correction, State, advance
from casadi_hybrid.iterations.lookahead import LookAhead
from casadi_hybrid.iterations.rules import (
    DesignRule,
    FullCancellation,
    LocalModel,
    MatrixRule,
    NegativeCancellation,
    ScheduleRule,
    WhitenedRule,
)
from casadi_hybrid.iterations.rules.spectra import Jacobian
from casadi_hybrid.iterations.safeguards import Safeguards
from casadi_hybrid.iterations.violation import damped_gauss_newton, escape, reduce_violation
from casadi_hybrid.paper import make_instance
from casadi_hybrid.paper.generator import FITTED
from casadi_hybrid.point.residuals import violation_is_stationary
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
@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("memory", {"memory": "untelescoped"}),
        ("whitened", {"memory": "untelescoped"}),
        ("memory", {"hessian_at": "printed"}),
        ("whitened", {"hessian_at": "printed"}),
        ("look-ahead", {"hessian_at": "printed"}),
    ],
)
def test_without_a_hypothesis_the_split_matters(
    broken: Any, name: str, shape: tuple[int, int]
) -> None:
    i = near(*shape)
    assert drift(i.problem, i.x0, i.multipliers0, RULES[name], 3, **broken) > 1e-6


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_look_ahead_forgets_the_multiplier_and_so_forgives_a_wrong_memory(
    shape: tuple[int, int],
) -> None:
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
def test_look_ahead_converges_quadratically_and_memory_in_two_steps(
    shape: tuple[int, int], seed: int
) -> None:
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


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_undamped_composite_step_is_the_matrix_rule(shape: tuple[int, int]) -> None:
    for seed in range(5):
        n, m = shape
        i = within(3, seed, n, m, 0.1)
        at = oracle_of(i.problem).second(i.x0, i.multipliers0)
        model = LocalModel(at.hessian, at.B)
        step = composite_step(model, at, 1e6)
        assert step.is_newton
        assert np.all(model.kernel[0] > 0.1)  # so the rule does not lift H_zz
        rule = MatrixRule(delta=0.1).decide(at, 0)
        state = State(i.x0, i.multipliers0, np.zeros(m), i.multipliers0)
        moved = advance(state, at, rule, np.zeros(m)).x - i.x0
        assert moved == pytest.approx(step.d, abs=1e-9 * norm(step.d))


# --- the composite step -------------------------------------------------------------------------


def random_point(seed: int, n: int, m: int, r: int) -> Evaluation:
    rng = np.random.default_rng([seed, n, m, r])
    G = rng.normal(size=(n, n))
    B = rng.normal(size=(m, r)) @ rng.normal(size=(r, n))
    h = rng.normal(size=m)
    return Evaluation(rng.normal(size=n), 0.0, rng.normal(size=n), h, B, G + G.T, h)


points = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda s: st.builds(
        random_point,
        st.integers(0, 10_000),
        st.just(s[0]),
        st.just(s[1]),
        st.integers(1, min(s)),
    )
)
radii = st.sampled_from([1e-9, 1e-3, 0.3, 2.0, 1e4])


@given(points, radii)
def test_the_composite_step_and_its_two_parts(at: Evaluation, radius: float) -> None:
    model = LocalModel(at.hessian, at.B)
    step = composite_step(model, at, radius)
    Z = model.jacobian.Z
    d_z = Z @ (Z.T @ step.d)
    d_y = step.d - d_z
    assert norm(step.d) <= radius * (1 + 1e-9)
    assert norm(d_y) <= 0.8 * radius * (1 + 1e-9)
    # d_y: (BᵀB + λI)d_y = −Bᵀh, and λ > 0 only at its radius.
    force = at.B.T @ (at.B @ d_y + at.h) + step.normal_damping * d_y
    assert norm(force) <= 1e-8 * norm(at.B) * (norm(at.h) + norm(at.B) * radius)
    if step.normal_damping > 0:
        assert norm(d_y) == pytest.approx(0.8 * radius, rel=1e-6)
    # d_z: ZᵀHZ lifted by σ, which is exactly as much as the radius or definiteness asks for.
    slope = Z.T @ (at.gradient + at.hessian @ d_y)
    lifted = Z.T @ at.hessian @ Z + step.tangential_damping * np.eye(Z.shape[1])
    scale = norm(slope) + norm(at.hessian) * radius
    assert norm(lifted @ (Z.T @ d_z) + slope) <= 1e-7 * scale
    if Z.shape[1]:
        assert np.linalg.eigvalsh(lifted)[0] >= -1e-9 * norm(at.hessian)
    if step.tangential_damping > 1e-6 * scale / radius:
        assert norm(step.d) == pytest.approx(radius, rel=1e-6)


@given(points)
def test_damping_is_the_shortest_way_to_a_smaller_residual(at: Evaluation) -> None:
    """‖h + Bd‖ falls as the radius grows, down to what no step can reach."""
    jacobian = Jacobian(at.B)
    left = []
    for radius in np.geomspace(1e-4, 1e3, 15):
        d, damping = damped_gauss_newton(jacobian, at.h, radius)
        left.append(norm(at.h + at.B @ d))
        assert norm(d) <= radius * (1 + 1e-9)
        assert damping >= 0
        if damping == 0:
            assert d == pytest.approx(-np.linalg.pinv(at.B, rcond=1e-9) @ at.h, abs=1e-9 * norm(d))
    assert left == sorted(left, reverse=True)
    assert left[0] < norm(at.h)


def test_nothing_moves_along_flat_directions() -> None:
    """f = 0 and one equation in three unknowns: the way to the plane is orthogonal to it."""
    x = ca.SX.sym("x", 3)
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    for f in (0, ca.sumsqr(ca.mtimes(ca.DM(Q[:1]), x)) / 2):
        problem = Problem(x=x, f=f, h=ca.mtimes(ca.DM(Q[1:2]), x) - 1)
        start = np.array([3.0, -2.0, 1.0])
        result = Solver(problem, "auto").solve(start)
        assert result.iterations == 1
        moved = (result.x - start) @ Q.T
        expected = [0.0 if isinstance(f, int) else -Q[0] @ start, 1 - Q[1] @ start, 0.0]
        assert moved == pytest.approx(expected, abs=1e-12)


def test_merit_ratio_and_kkt_error() -> None:
    x = ca.SX.sym("x", 2)
    oracle = oracle_of(Problem(x=x, f=x[0] ** 2, h=ca.log(x[1])))
    at = oracle.first(np.array([1.0, np.e]))
    d = np.array([-0.5, 1 - np.e])
    merit = Merit(at, 3.0, 1.5)
    tried = merit.measure(oracle, d)
    # f: 1 → ¼, ‖h‖: 1 → 0; (¾ + 3)/1.5.
    assert tried.ratio == pytest.approx(2.5)
    assert tried.new.f == pytest.approx(0.25)
    outside = merit.measure(oracle, np.array([0.0, -5.0]))
    assert outside.new is None
    assert outside.ratio == -np.inf
    assert kkt_error(at, Jacobian(at.B)) == pytest.approx(2)  # ∇f = (2, 0) is all in ker B
    assert kkt_error(tried.new, Jacobian(tried.new.B)) == pytest.approx(1)


def test_decreases_that_drown_in_rounding_are_taken_as_equal() -> None:
    x = ca.SX.sym("x", 2)
    oracle = oracle_of(Problem(x=x, f=x[0] ** 2, h=x[1] - 1))
    at = oracle.first(np.array([2.0, 6.0]))  # f = 4, ‖h‖ = 5
    noise = 10 * np.finfo(float).eps * (4 + 3 * 5)
    for predicted, ratio in ((0.0, 1.0), (noise, 0.5), (3 * noise, 0.25)):
        assert Merit(at, 3.0, predicted).measure(oracle, np.zeros(2)).ratio == pytest.approx(ratio)


def test_rounding_of_larger_numbers_does_not_pull() -> None:
    """The curvature along x_1 is zero, and its slope is what rounding leaves of g + H d_y."""
    for slope, moved in ((1e-15, 0.0), (1e-13, np.sqrt(99))):
        at = Evaluation(
            np.zeros(2), 0.0, np.array([1.0, slope]), np.ones(1), np.array([[1.0, 0.0]]),
            np.diag([1.0, 0.0]), np.ones(1),
        )  # fmt: skip
        step = composite_step(LocalModel(at.hessian, at.B), at, 10.0)
        assert step.d == pytest.approx([-1.0, -moved])


def test_saddle_points_that_are_left_are_counted() -> None:
    x = ca.SX.sym("x", 3)
    f = x[0] ** 2 - x[1] ** 2 + x[1] ** 4
    oracle, method = oracle_of(Problem(x=x, f=f, h=x[2])), LookAhead()
    at = oracle.second(np.zeros(3), np.zeros(1))
    guards = method.begin(at)
    for count in range(1, 6):
        assert not method.at_rest(at, guards)
        new, guards = method.advance(oracle, at, guards)
        assert new.f < 0
        assert guards.saddles == count
    assert method.at_rest(at, guards)


# --- the violation alone ------------------------------------------------------------------------


def reduce_from(problem: Problem, x0: Any, most: int = 100) -> tuple[Evaluation, list[float]]:
    oracle, reach = oracle_of(problem), None
    at = oracle.first(np.asarray(x0, dtype=float))
    sizes = [float(norm(at.h))]
    for _ in range(most):
        moved = reduce_violation(oracle, at, reach)
        if moved is None:
            return at, sizes
        at, reach = moved
        sizes.append(float(norm(at.h)))
        assert sizes[-1] <= sizes[-2] * (1 + 1e-14)
        if sizes[-1] <= 1e-13:
            return at, sizes
    raise AssertionError(f"still moving at ‖h‖ = {sizes[-1]}")


def valley(scale: Any = (1.0, 1.0), size: float = 1.0) -> Problem:
    """Rosenbrock's residuals, with a third that makes them inconsistent."""
    x = ca.SX.sym("x", 2)
    a, b = x[0] / scale[0], x[1] / scale[1]
    return Problem(x=x, f=0, h=size * ca.vertcat(10 * (b - a**2), 1 - a, 0.1 * (a + b)))


def test_the_curved_valley_is_followed() -> None:
    at, sizes = reduce_from(valley(), [-1.2, 1.0])
    assert violation_is_stationary(at, 1e-9)
    assert len(sizes) <= 20


def same_fall(a: list[float], b: list[float]) -> None:
    """The last step, which only flattens the slope, may be left out by rounding."""
    shared = min(len(a), len(b))
    assert max(len(a), len(b)) - shared <= 1
    assert a[:shared] == pytest.approx(b[:shared], rel=1e-6)


@pytest.mark.parametrize("scale", [(1e-3, 1.0), (1.0, 1e4), (1e3, 1e-3)])
def test_units_of_the_variables_do_not_matter(scale: tuple[float, float]) -> None:
    _, plain = reduce_from(valley(), [-1.2, 1.0])
    _, scaled = reduce_from(valley(scale), [-1.2 * scale[0], scale[1]])
    same_fall(scaled, plain)


def test_units_of_the_constraints_do_not_matter() -> None:
    _, plain = reduce_from(valley(), [-1.2, 1.0])
    for size in (1e-6, 1e5):
        _, scaled = reduce_from(valley(size=size), [-1.2, 1.0])
        same_fall(scaled, [size * h for h in plain])


def test_a_maximum_and_a_saddle_of_the_violation_are_left() -> None:
    x = ca.SX.sym("x", 2)
    problem = Problem(x=x, f=0, h=ca.vertcat(x[0] ** 2 - 1, x[1] ** 2 + x[0] ** 2 - 2))
    for start in ([0, 0], [1, 0], [0, np.sqrt(2)]):
        at, _ = reduce_from(problem, start)
        assert norm(at.h) <= 1e-12


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
    oracle = oracle_of(Problem(x=x, f=0, h=h(x)))
    at = oracle.first(np.array(x0, dtype=float))
    assert violation_is_stationary(at, 1e-12)
    assert reduce_violation(oracle, at, None) is None


def test_steps_out_of_the_domain_are_cut() -> None:
    x = ca.SX.sym("x")
    problem = Problem(x=x, f=0, h=ca.log(x) + 3)
    at, _ = reduce_from(problem, [20.0])
    assert at.x[0] == pytest.approx(np.exp(-3))


def test_escape_finds_the_root_behind_the_hill() -> None:
    """x³ − 3x + 3 has a local minimum of |h| = 1 at x = 1; its root is at −2.1."""
    x = ca.SX.sym("x")
    oracle = oracle_of(Problem(x=x, f=0, h=x**3 - 3 * x + 3))
    at = oracle.first(np.array([1.0]))
    assert reduce_violation(oracle, at, None) is None
    new = escape(oracle, at, Jacobian(at.B))
    assert new is not None
    assert norm(new.h) <= 0.5
    assert new.x[0] < -1
    flat = oracle_of(Problem(x=x, f=0, h=x**2 + 1))
    at = flat.first(np.zeros(1))
    assert escape(flat, at, Jacobian(at.B)) is None


def test_escape_tries_the_undamped_step_first() -> None:
    x = ca.SX.sym("x", 2)
    oracle = oracle_of(Problem(x=x, f=0, h=ca.vertcat(x[0] + x[1] - 3, 1e-3 * (x[0] - x[1]))))
    at = oracle.first(np.array([1.0, 3.0]))
    before = oracle.counts["first"]
    new = escape(oracle, at, Jacobian(at.B))
    assert new is not None
    assert new.x == pytest.approx([1.5, 1.5])
    assert oracle.counts["first"] == before + 1


def test_the_iteration_leaves_a_stationary_violation_and_counts_it() -> None:
    x = ca.SX.sym("x")
    problem = Problem(x=x, f=0, h=x**3 - 3 * x + 3)
    oracle, method = oracle_of(problem), LookAhead()
    at = oracle.second(np.array([1.0]), np.zeros(1))
    new, guards = method.advance(oracle, at, method.begin(at))
    assert new.x[0] < -1
    assert (guards.escapes, guards.goal) == (1, None)
    assert guards.radius == pytest.approx(1.0 - new.x[0])  # as far as it has gone
    again = replace(guards, jacobian=Jacobian(at.B))
    assert method.advance(oracle, at, again)[1].escapes == 2
    with pytest.raises(StallError) as stall:
        method.advance(oracle, at, replace(again, escapes=2))
    assert stall.value.reason is StopReason.LOCALLY_INFEASIBLE
    assert any("left 1×" in said for said in Solver(problem, "look-ahead").solve([1.0]).remarks)


# --- when the mode changes ----------------------------------------------------------------------


def guards(rank_deficient: bool = True, **fields: Any) -> Safeguards:
    B = np.array([[1.0, 0.0]]) if rank_deficient else np.eye(2)
    return Safeguards(1.0, 2.0, Jacobian(B), **fields)


def test_a_violation_that_halves_renews_the_patience() -> None:
    g = guards(mark=0.5, patience=1, raised=True).watched(0.5, 1e-10)
    assert (g.mark, g.raised, g.goal, g.penalty) == (0.25, False, None, 2.0)
    assert g.patience > 1


def test_a_violation_that_stays_raises_the_penalty_once_and_then_takes_over() -> None:
    g = guards(mark=0.5)
    seen = []
    for _ in range(20):
        g = g.watched(1.0, 1e-10)
        seen.append((g.penalty, g.goal))
        if g.goal is not None:
            break
    assert seen[0] == (2.0, None)
    assert seen[-1] == (20.0, 0.1)
    assert {penalty for penalty, _ in seen} == {2.0, 20.0}


def test_with_full_column_rank_the_objective_has_no_say_and_no_penalty() -> None:
    g = replace(guards(rank_deficient=False, mark=0.5), patience=0).watched(1.0, 1e-10)
    assert (g.penalty, g.goal) == (2.0, 0.1)


def test_steps_that_promise_feasibility_cost_no_patience() -> None:
    g = guards(mark=0.5, patience=0, promised=1.0)
    assert g.watched(1.0, 1e-10) == g


def test_a_violation_within_tolerance_is_left_alone() -> None:
    g = guards(mark=0.0, patience=0).watched(1e-11, 1e-10)
    assert (g.penalty, g.goal) == (2.0, None)


def test_the_reduction_counts_the_steps_without_progress() -> None:
    g = guards(mark=0.5).reducing(0.1)
    assert g.mark == np.inf
    g = g.slowed(1.0)
    full = g.patience
    assert g.slowed(1.0).patience == full - 1
    assert g.slowed(0.9).patience == full
    assert g.reducing(0.05).mark == g.mark  # going on is not beginning anew


@pytest.mark.parametrize(
    ("shape", "condition", "seed", "radius"),
    [((5, 3), 1e4, 222, 1.0), ((20, 12), 1e3, 224, 1.0), ((20, 12), 1e3, 224, 5.0)],
)
def test_a_penalty_that_only_grows_does_not_stop_the_steps(
    shape: tuple[int, int], condition: float, seed: int, radius: float
) -> None:
    """These runs crawled at ‖h‖ = 1e-10 under ν = 1e5 for hundreds of iterations."""
    n, m = shape
    i = make_instance(condition, seed, n=n, m=m, radius=radius)
    result = Solver(i.problem, "auto").solve(i.x0)
    assert result.success
    assert result.iterations <= 150
