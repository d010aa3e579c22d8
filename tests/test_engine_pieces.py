"""Each piece of the engine in C against its twin in Python, at random numbers.

Pieces that the library exports are called as they are, through ctypes and the structures of
the headers in ``engine/c``. What is ``static`` there (the step on a set, the exchange of sets) is
watched from outside: with a limit of one step the warm mode hands over the iterate that it has
reached.
"""

from __future__ import annotations

import ctypes as ct
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from engine_cases import (
    CASES,
    NUMBER,
    POINTER,
    WHOLE,
    Arena,
    FormData,
    HeldData,
    PointData,
    SpotData,
    WorthData,
    core_in_pieces,
    problem_of,
)

from casadi_hybrid import Problem, Solver
from casadi_hybrid.barrier import hot
from casadi_hybrid.barrier.hot import _LEFT, _OUTSIDE, CONVEX, _step
from casadi_hybrid.barrier.iterate import Iterate, interior, scaled_error
from casadi_hybrid.barrier.merit import Merit
from casadi_hybrid.barrier.polish import active_guess
from casadi_hybrid.basics.arrays import largest
from casadi_hybrid.engine.plan import plan_of
from casadi_hybrid.engine.structures import NOT_NEARER, ResidualsData
from casadi_hybrid.engine.warm import why_not
from casadi_hybrid.engine.workspace import Workspace, trigger
from casadi_hybrid.point.kkt import kkt_residuals
from casadi_hybrid.point.working_set import WarmStart
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.standard_form.form import StandardForm
from casadi_hybrid.stopping import Limits


class Twins:
    """The standard form of one problem in C and in Python, at the same numbers."""

    def __init__(self, problem: Problem, numbers: Numbers) -> None:
        core = core_in_pieces()
        assert not why_not(problem)
        self.core, self.numbers = core, numbers
        functions, bounds = problem.functions, numbers.bounds

        plan = plan_of(core, problem, bounds)
        self.data = plan.data
        self.space = Workspace(core, plan, functions, trigger())
        self.space.fill(numbers, WarmStart(numbers.lam_x0, numbers.lam_g0))
        self.space.limit(Limits())
        addresses = self.space.addresses
        self.form = FormData(
            **{name: addresses[name] for name in ("plan", "functions", "numbers", "answer")}
        )
        self.point = PointData()
        self._doubles = np.full(plan.doubles, np.nan)
        self._ints = np.zeros(plan.ints, dtype=np.int32)
        arena = Arena(self._doubles.ctypes.data, self._ints.ctypes.data, 0, 0)
        core.hybrid_place_form(ct.byref(self.data), ct.byref(arena), ct.byref(self.form))
        core.hybrid_place_point(ct.byref(self.data), ct.byref(arena), ct.byref(self.point))
        assert arena.used_doubles <= plan.doubles
        assert core.hybrid_make_form(ct.byref(self.form), ct.byref(self.point)) == 0
        core.hybrid_look_at_bounds(ct.byref(self.form))
        self.twin = StandardForm(problem, bounds, numbers.p, numbers.x0, dense=True)

    def of_form(self, name: str, size: int) -> np.ndarray:
        return view(getattr(self.form, name), size)

    def of_point(self, name: str, size: int) -> np.ndarray:
        return view(getattr(self.point, name), size)

    def evaluate(self, w: np.ndarray) -> int:
        self.of_point("w", self.data.n)[:] = w
        self.core.hybrid_distances(ct.byref(self.form), ct.byref(self.point))
        evaluate = self.core.hybrid_evaluate
        return int(evaluate(ct.byref(self.form), ct.byref(self.point), None))

    def matrix(
        self, values: np.ndarray, rows: str, cols: str, shape: tuple[int, int]
    ) -> np.ndarray:
        full = np.zeros(shape)
        at = (
            whole(getattr(self.data, rows), values.size),
            whole(getattr(self.data, cols), values.size),
        )
        np.add.at(full, at, values)
        return full

    def call(self, name: str, *arrays: Any) -> Any:
        """A function of (form, point, arrays and numbers …)."""
        function = getattr(self.core, name)
        given = (one if isinstance(one, ct.c_double) else address(one) for one in arrays)
        return function(ct.byref(self.form), ct.byref(self.point), *given)


class Held:
    """Multipliers of bounds, those that are not 0 named, as C has them."""

    def __init__(self, z_lower: np.ndarray, z_upper: np.ndarray) -> None:
        self.z_lower, self.z_upper = z_lower.copy(), z_upper.copy()
        self.at = np.flatnonzero((z_lower != 0) | (z_upper != 0)).astype(np.int32)
        self.data = HeldData(*map(address, (self.z_lower, self.z_upper, self.at)), self.at.size)


def view(at: int | None, size: int) -> np.ndarray:
    return (
        np.ctypeslib.as_array(ct.cast(at or 8, ct.POINTER(NUMBER)), (size,))
        if size
        else np.zeros(0)
    )


def whole(at: int, size: int) -> np.ndarray:
    return (
        np.ctypeslib.as_array(ct.cast(at, ct.POINTER(WHOLE)), (size,)) if size else np.zeros(0, int)
    )


def address(value: Any) -> Any:
    return POINTER(value.ctypes.data) if isinstance(value, np.ndarray) else value


def equal(found: Any, expected: Any, rtol: float = 1e-14) -> None:
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


def numbers_of(case: str, draws: np.random.Generator) -> tuple[Problem, Numbers]:
    """A case at a random start with random multipliers."""
    made = CASES[case]()
    problem = problem_of(made)
    x0 = draws.standard_normal(problem.n)
    lam_x0, lam_g0 = (s * draws.standard_normal(k) for s, k in ((3.0, problem.n), (2.0, problem.m)))
    given = {**made.numbers, "x0": x0, "lam_x0": lam_x0, "lam_g0": lam_g0}
    return problem, problem.numbers(**given)


@pytest.fixture(params=sorted(CASES))
def twins(request) -> Twins:
    return Twins(*numbers_of(request.param, np.random.default_rng(7)))


def start_of(twins: Twins) -> np.ndarray:
    form = twins.twin
    return np.clip(form.start, form.lower, form.upper)


def inside(twins: Twins, draws: np.random.Generator) -> np.ndarray:
    """Some w, partly outside its bounds."""
    return start_of(twins) + 0.3 * draws.standard_normal(twins.data.n)


def test_scales_bounds_and_the_start_are_those_of_the_form(twins) -> None:
    form, data = twins.twin, twins.data
    assert (data.n, data.m, data.n_free) == (form.n, form.m, form.n_free)
    assert twins.form.scale_f == form.scale_f
    equal(twins.of_form("scale_c", data.m), form.scale_c, 0)
    equal(twins.of_form("lower", data.n), form.lower, 0)
    equal(twins.of_form("upper", data.n), form.upper, 0)
    equal(twins.of_form("target", data.m), form._target, 0)
    equal(twins.of_form("room", data.n), form._room, 0)
    equal(twins.of_point("w", data.n), start_of(twins), 0)
    assert twins.form.bounds == form.has_lower.sum() + form.has_upper.sum()


def test_the_steep_case_is_scaled() -> None:
    twins = Twins(*numbers_of("steep", np.random.default_rng(7)))
    assert twins.form.scale_f < 1.0
    assert (twins.of_form("scale_c", twins.data.m) < 1.0).any()


def test_a_point_is_that_of_the_form(twins) -> None:
    draws, data = np.random.default_rng(3), twins.data
    for _ in range(5):
        w = inside(twins, draws)
        assert twins.evaluate(w) == 0
        at = twins.twin.point(w)
        equal(twins.point.f, at.f)
        equal(twins.point.raw_f, at.raw_f)
        equal(twins.of_point("gradient", data.n), at.gradient)
        equal(twins.of_point("c", data.m), at.c)
        equal(twins.of_point("below", data.n), at.below, 0)
        equal(twins.of_point("above", data.n), at.above, 0)
        equal(twins.of_point("x", data.n_x), at.x, 0)
        equal(twins.of_point("raw_gradient", data.n_x), at.raw_gradient)
        equal(twins.of_point("raw_g", data.n_g), at.raw_g)
        A = twins.matrix(twins.of_point("A", data.nnz_A), "A_rows", "A_cols", (data.m, data.n))
        equal(A, at.A)
        J = twins.matrix(
            twins.of_point("raw_J", data.nnz_J), "J_rows", "J_cols", (data.n_g, data.n_x)
        )
        equal(J, at.raw_J)


def test_the_hessian_is_that_of_the_form(twins) -> None:
    draws, data = np.random.default_rng(4), twins.data
    for _ in range(3):
        w, y = inside(twins, draws), draws.standard_normal(data.m)
        assert twins.evaluate(w) == 0
        W = np.full(max(1, data.nnz_W), np.nan)
        assert twins.call("hybrid_hessian", y, ct.c_double(1.0), W) == 0
        found = twins.matrix(W[: data.nnz_W], "W_rows", "W_cols", (data.n, data.n))
        equal(found, twins.twin.hessian(twins.twin.point(w), y), 1e-13)


def test_multipliers_in_and_out_are_those_of_the_form(twins) -> None:
    data, form = twins.data, twins.twin
    y, z_lower, z_upper = np.full(data.m, np.nan), np.full(data.n, np.nan), np.full(data.n, np.nan)
    held = np.full(data.n, -1, dtype=np.int32)
    into = twins.core.hybrid_multipliers_in
    count = into(ct.byref(twins.form), *map(address, (y, z_lower, z_upper, held)))
    np.testing.assert_array_equal(held[:count], np.flatnonzero(z_lower + z_upper))
    expected = form.from_user_multipliers(twins.numbers.lam_x0, twins.numbers.lam_g0)
    for found, other in zip((y, z_lower, z_upper), expected, strict=True):
        equal(found, other, 0)
    assert twins.evaluate(start_of(twins)) == 0
    lam_x, lam_g = np.full(data.n_x, np.nan), np.full(data.n_g, np.nan)
    twins.call("hybrid_multipliers_out", y, z_lower, z_upper, lam_x, lam_g)
    at = form.point(start_of(twins))
    out_x, out_g = form.user_multipliers(at, y, z_upper - z_lower)
    equal(lam_x, out_x, 1e-13)
    equal(lam_g, out_g)


def iterate_at(twins: Twins, w: np.ndarray, draws: np.random.Generator, size: float) -> Iterate:
    """Some iterate of the twin at w, whose multipliers are of this size."""
    form = twins.twin
    z_lower, z_upper = (
        np.where(has, size * np.abs(draws.standard_normal(form.n)), 0.0)
        for has in (form.has_lower, form.has_upper)
    )
    y, at = size * draws.standard_normal(form.m), form.point(w)
    return Iterate(
        at=at, y=y, z_lower=z_lower, z_upper=z_upper, nu=0.1, filter=None, crossed=at,
    )  # fmt: skip


@pytest.mark.parametrize("nu", [1e-9, 0.1, 10.0])
def test_the_merit_is_that_of_the_iterate(twins, nu) -> None:
    draws, data = np.random.default_rng(6), twins.data
    twins.core.hybrid_logs.restype = NUMBER
    slope = np.zeros(data.n)
    seen = set()
    for k in range(6):
        w = inside(twins, draws)
        w = interior(twins.twin, w, 1e-2) if k % 2 else w
        it = replace(iterate_at(twins, w, draws, 1.0), nu=nu)
        assert twins.evaluate(w) == 0
        spot = SpotData(of=twins.point, theta=float(np.abs(it.at.c).sum()))
        for name in ("below", "above"):
            spot.logs += twins.core.hybrid_logs(data.n, address(twins.of_point(name, data.n)))
        form, worth = ct.byref(twins.form), WorthData(gradient=slope.ctypes.data)
        twins.core.hybrid_look_outside(form, ct.byref(spot))
        twins.core.hybrid_weigh(form, ct.byref(spot), NUMBER(nu), ct.byref(worth))
        merit = Merit(twins.twin, it)
        # f is near zero in places, and φ what is left of large terms.
        equal(worth.phi, merit.phi, 1e-12)
        equal(slope, merit.gradient, 1e-12)
        assert worth.theta == spot.theta
        seen.add(bool(spot.outside))
        assert spot.outside == it.at.outside
    assert False in seen


@pytest.mark.parametrize("size", [0.0, 1.0, 1e3, 1e6])
def test_the_scaled_error_is_that_of_the_iterate(twins, size) -> None:
    draws, data = np.random.default_rng(5), twins.data
    error = twins.core.hybrid_scaled_error
    error.restype = NUMBER
    work, sizes = np.zeros(max(data.n, data.n_x)), np.zeros(2)
    for _ in range(4):
        w = inside(twins, draws)
        it = iterate_at(twins, w, draws, size)
        assert twins.evaluate(w) == 0
        slope = it.at.gradient + it.at.A.T @ it.y
        before, held = slope.copy(), Held(it.z_lower, it.z_upper)
        given = slope, it.y, ct.byref(held.data), work, sizes
        equal(twins.call("hybrid_scaled_error", *given), scaled_error(twins.twin, it, 0.0), 1e-12)
        np.testing.assert_array_equal(slope, before)
        of_x = (slope - it.z_lower + it.z_upper)[: data.n_free]
        equal(sizes, (largest(of_x), largest(it.at.c)), 1e-12)


def residuals_of(twins: Twins, lam_x: np.ndarray, lam_g: np.ndarray, work: np.ndarray) -> Any:
    """Those of C for multipliers of the form, which knows their sizes already."""
    form, data = twins.twin, twins.data
    y, z_lower, z_upper = form.from_user_multipliers(lam_x, lam_g)
    at = form.point(twins.of_point("w", data.n).copy())
    slope = (at.gradient + at.A.T @ y - z_lower + z_upper)[: data.n_free]
    sizes = np.array([largest(slope), largest(at.c)])
    held, found = Held(z_lower, z_upper), ResidualsData()
    given = np.array(y), ct.byref(held.data), sizes, work, ct.byref(found)
    twins.call("hybrid_residuals_of", *given)
    return found


@pytest.mark.parametrize("known", [False, True], ids=["", "of the form"])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e6])
def test_the_residuals_are_those_of_the_user_unexcused(twins, size, known) -> None:
    draws, data = np.random.default_rng(6), twins.data
    work, found = np.zeros(max(data.n, data.n_x, data.n_g)), ResidualsData()
    for _ in range(4):
        w = inside(twins, draws)
        lam_x, lam_g = (
            size * draws.standard_normal(data.n_x),
            size * draws.standard_normal(data.n_g),
        )
        assert twins.evaluate(w) == 0
        at = twins.twin.point(w)
        if known:  # only what the form can carry
            y, z_lower, z_upper = twins.twin.from_user_multipliers(lam_x, lam_g)
            lam_x, lam_g = twins.twin.user_multipliers(at, y, z_upper - z_lower)
            found = residuals_of(twins, lam_x, lam_g, work)
        else:
            twins.call("hybrid_residuals_at", lam_x, lam_g, work, ct.byref(found))
        expected = kkt_residuals(
            twins.numbers.bounds,
            at.x,
            at.raw_gradient,
            at.raw_g,
            at.raw_J,
            lam_x,
            lam_g,
            plain=True,
        )
        equal(found.f, at.raw_f)
        equal(found.feasibility, expected.feasibility, 1e-13)
        equal(found.stationarity, expected.stationarity, 1e-12)
        equal(found.complementarity, expected.complementarity, 1e-12)
        if not known:  # what excuses a residual looks at it there
            slope = at.raw_gradient + at.raw_J.T @ lam_g + lam_x
            equal(work[: data.n_x], slope, 1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_what_rounding_excuses_is_that_of_the_user(twins, seed) -> None:
    """Large terms that nearly cancel, so that some residuals are excused, some just not."""
    draws, data = np.random.default_rng(seed), twins.data
    work, sizes = np.zeros(max(data.n, data.n_x, data.n_g)), np.zeros(max(data.n_x, data.n_g))
    found = ResidualsData()
    assert twins.evaluate(inside(twins, draws)) == 0
    x, gradient = twins.of_point("x", data.n_x), twins.of_point("raw_gradient", data.n_x)
    g, J = twins.of_point("raw_g", data.n_g), twins.of_point("raw_J", data.nnz_J)
    J[:] *= 10.0 ** draws.integers(0, 9)
    gradient[:] = 10.0 ** draws.integers(0, 9) * draws.standard_normal(data.n_x)
    bounds = twins.numbers.bounds
    equal_rows = bounds.lbg == bounds.ubg
    g[equal_rows] = bounds.lbg[equal_rows] + 10.0 ** draws.uniform(-9, -3, equal_rows.sum())
    twins.point.sum_J = np.abs(J).sum()
    full = twins.matrix(J, "J_rows", "J_cols", (data.n_g, data.n_x))
    lam_g = 10.0 ** draws.integers(0, 9) * draws.standard_normal(data.n_g)
    lam_x = -(gradient + full.T @ lam_g)
    lam_x[:: 1 + seed % 3] *= 1.0 + 10.0 ** draws.uniform(-15, -9)
    twins.call("hybrid_residuals_at", lam_x, lam_g, work, ct.byref(found))
    twins.call("hybrid_excuse", lam_x, lam_g, work, sizes, ct.byref(found))
    expected = kkt_residuals(bounds, x, gradient, g, full, lam_x, lam_g)
    entry = largest(np.abs(gradient) + np.abs(full.T) @ np.abs(lam_g))
    equal(found.feasibility, expected.feasibility, 1e-12)
    assert found.stationarity == pytest.approx(expected.stationarity, abs=1e-15 * entry)
    equal(found.complementarity, expected.complementarity, 1e-12)


@pytest.mark.parametrize("case", sorted(CASES))
def test_one_step_is_that_of_the_hot_mode(case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first guess, the step on the set, the exchange of sets, and the move.

    Where a set on the way pins so many entries that rows depend on each other, C says so and takes
    the next remedy; in Python a pin is a number of 1e14, which such rows can still move.
    """
    sets: list[int] = []
    pinned = hot._Model.pinned

    def noted(model: Any, at_lower: np.ndarray, at_upper: np.ndarray) -> Any:
        sets.append(int((at_lower | at_upper).sum()))
        return pinned(model, at_lower, at_upper)

    monkeypatch.setattr(hot._Model, "pinned", noted)
    made = CASES[case]()
    problem = problem_of(made)
    result = Solver(problem).solve(**made.numbers)
    known = {"x0": result.x, "lam_x0": result.lam_x, "lam_g0": result.lam_g}
    compared = several = 0
    for seed in range(20):
        near = 0.02 * (seed + 1)
        draws = np.random.default_rng(seed)
        moved = {name: v + near * draws.standard_normal(v.size) for name, v in known.items()}
        numbers = problem.numbers(**{**made.numbers, **moved})
        twins = Twins(problem, numbers)
        twins.space.limit(replace(Limits(), max_iter=1))
        status = twins.space.warm(None)
        form = twins.twin
        it = replace(
            iterate_at(twins, start_of(twins), draws, 0.0),
            **dict(zip(
                ("y", "z_lower", "z_upper"),
                form.from_user_multipliers(numbers.lam_x0, numbers.lam_g0),
                strict=True,
            )),
        )  # fmt: skip
        guess = active_guess(form, it)
        sets.clear()
        found = _step(form, form.kernel(), it, guess, CONVEX)
        if max(sets) > form.n - form.m:
            continue
        if status == 5:  # which leaves it to Python
            continue
        assert (found is None) == (status in (2, 3)), (seed, status)
        if found is None:
            continue
        new, active, _ = found
        if status == NOT_NEARER:
            before, after = largest(it.at.c), largest(new.at.c)
            assert after > _LEFT * before > _LEFT * _OUTSIDE
            continue
        assert status in (0, 7), (seed, status)
        several += any((a != b).any() for a, b in zip(guess, active, strict=True))
        compared += 1
        lam_x, lam_g = form.user_multipliers(new.at, new.y, new.z_upper - new.z_lower)
        outputs = twins.space.outputs
        for name, other in (
            ("x", new.at.x),
            ("g", new.at.raw_g),
            ("lam_g", lam_g),
            ("lam_x", lam_x),
        ):
            size = np.abs(other).max(initial=1.0)
            np.testing.assert_allclose(outputs[name], other, rtol=0, atol=1e-8 * size, err_msg=name)
    assert compared >= 5
    if twins.form.bounds:
        assert several >= 1  # sets were exchanged on the way


def test_what_cannot_be_solved_with_is_refused_by_the_core() -> None:
    problem, numbers = numbers_of("with_rows", np.random.default_rng(1))
    space = Twins(problem, numbers).space
    nan, inf = np.nan, np.inf
    for name, value in [
        ("x0", nan), ("x0", inf), ("p", nan), ("lam_x0", nan), ("lam_g0", inf), ("lbx", nan),
        ("ubx", nan), ("lbx", inf), ("ubx", -inf), ("lbg", nan), ("ubg", nan), ("ubg", -inf),
    ]:  # fmt: skip
        kept = space.inputs[name][0]
        space.inputs[name][0] = value
        assert space.warm(None) == 9, (name, value)
        space.inputs[name][0] = kept
    space.inputs["lbg"][1] = 5.0
    assert space.warm(None) == 9
    space.inputs["lbg"][1] = space.inputs["ubg"][1]
    assert space.warm(None) == 1  # an equation now


def test_a_function_that_is_not_defined_is_a_status() -> None:
    x = ca.SX.sym("x", 2)
    problem = Problem(x=x, f=ca.sumsqr(x) - ca.log(x[0]))
    numbers = problem.numbers(x0=[1.0, 1.0], lam_x0=[1.0, 0.0])
    space = Twins(problem, numbers).space
    space.inputs["x0"][:] = -1.0, 1.0
    assert space.warm(None) == 2
