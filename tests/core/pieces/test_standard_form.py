"""The standard form in C, its multipliers, errors and residuals, by formulas in NumPy."""

import ctypes as ct
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.core import CASES, NUMBER, BoundMultipliersData, FilterPairData, TrialData
from support.judges.standard_form import Form, Formula, address, equal, numbers_of

from casadi_hybrid import Problem
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.point.kkt import kkt_residuals
from casadi_hybrid.problem.point.limits import Limits
from casadi_hybrid.utils.arrays import largest

TOLERANCE = Limits().tolerances.feasibility  # and of the other residuals
S_MAX, DAMPING = 100.0, 1e-5  # Wächter and Biegler 2006, eq. 6 and section 3.7


class Both(Form):
    """A form in C and in NumPy, at the same numbers."""

    def __init__(self, case: str, seed: int = 7) -> None:
        nlp, problem, numbers = numbers_of(case, np.random.default_rng(seed))
        super().__init__(problem, numbers)
        self.formula = Formula(nlp, numbers)

    def inside(self, draws: np.random.Generator) -> np.ndarray:
        """Some w, partly outside its bounds."""
        return self.formula.start + 0.3 * draws.standard_normal(self.data.n)

    def duals(self, draws: np.random.Generator, size: float) -> tuple[np.ndarray, ...]:
        """Some (y, z_lower, z_upper)."""
        of = self.formula
        z = (
            np.where(np.isfinite(bound), size * np.abs(draws.standard_normal(of.n)), 0.0)
            for bound in (of.lower, of.upper)
        )
        return size * draws.standard_normal(of.m), *z

    def distances(self, w: np.ndarray) -> tuple[np.ndarray, ...]:
        """To the bounds, one where there is none, and no smaller than rounding."""
        of = self.formula
        sizes = np.minimum(np.abs(of.lower), np.abs(of.upper))
        room = 4 * np.finfo(float).eps * np.maximum(1, np.where(np.isinf(sizes), 1, sizes))
        gaps = w - of.lower, of.upper - w
        return tuple(np.maximum(np.where(np.isinf(gap), 1.0, gap), room) for gap in gaps)

    def residuals(self, lam_x: np.ndarray, lam_g: np.ndarray, rounding: bool = False) -> Any:
        """Residuals of the user's problem in C, less what rounding explains if asked for."""
        data, residuals = self.data, C.hybrid_residuals()
        self.work = np.zeros(max(data.n, data.n_x, data.n_g))
        self.call("hybrid_residuals_at", lam_x, lam_g, self.work, ct.byref(residuals))
        if rounding:
            sizes = np.zeros(max(data.n_x, data.n_g))
            arrays = lam_x, lam_g, self.work.copy(), sizes
            self.call("hybrid_subtract_rounding", *arrays, ct.byref(residuals))
        return residuals

    def raw(self) -> tuple[np.ndarray, ...]:
        """Views of x, the gradient, g and the entries of J in the user's units."""
        data = self.data
        names = ("x", data.n_x), ("raw_gradient", data.n_x), ("raw_g", data.n_g)
        return tuple(self.of_point(*name) for name in (*names, ("raw_J", data.nnz_J)))

    def jacobian(self) -> np.ndarray:
        J = self.of_point("raw_J", self.data.nnz_J)
        return self.matrix(J, "J_rows", "J_cols", (self.data.n_g, self.data.n_x))


class Held:
    """Multipliers of bounds, those that are not 0 named, as C has them."""

    def __init__(self, z_lower: np.ndarray, z_upper: np.ndarray) -> None:
        self.z_lower, self.z_upper = z_lower.copy(), z_upper.copy()
        self.indices = np.flatnonzero((z_lower != 0) | (z_upper != 0)).astype(np.int32)
        arrays = self.z_lower, self.z_upper, self.indices
        self.data = BoundMultipliersData(*map(address, arrays), self.indices.size)


@pytest.fixture(params=sorted(CASES))
def both(request: pytest.FixtureRequest) -> Both:
    return Both(request.param)


def test_scales_bounds_and_start(both: Both) -> None:
    of, data = both.formula, both.data
    assert (data.n, data.m, data.n_free) == (of.n, of.m, of.free.size)
    equal(both.form.scale_f, of.scale_f)
    for name, size in (("scale_c", of.m), ("lower", of.n), ("upper", of.n), ("target", of.m)):
        equal(both.of_form(name, size), getattr(of, name))
    equal(both.of_point("w", of.n), of.start)
    assert both.form.bounds == np.isfinite(of.lower).sum() + np.isfinite(of.upper).sum()


def test_scales_have_a_least_value() -> None:
    """1e-8, from slopes of 100."""
    x, slopes = ca.SX.sym("x"), 10.0 ** np.arange(15)
    problem = Problem(x=x, f=1e13 * x, h=slopes * x)
    form = Form(problem, problem.numbers())
    assert form.form.scale_f == 1e-8
    expected = np.where(slopes > 100, np.maximum(100 / slopes, 1e-8), 1)
    equal(form.of_form("scale_c", slopes.size), expected, 1e-15)


def test_values_and_derivatives_of_a_point(both: Both) -> None:
    draws, data, of = np.random.default_rng(3), both.data, both.formula
    W = np.full(max(1, data.nnz_W), np.nan)
    for _ in range(5):
        w, y = both.inside(draws), draws.standard_normal(data.m)
        assert both.evaluate(w) == 0
        f, gradient, c, A = of.point(w)
        equal(both.point.f, f, 1e-13)
        equal(both.of_point("gradient", data.n), gradient, 1e-13)
        equal(both.of_point("c", data.m), c, 1e-13)
        entries = both.of_point("A", data.nnz_A)
        equal(both.matrix(entries, "A_rows", "A_cols", (data.m, data.n)), A, 1e-13)
        for name, gap in zip(("below", "above"), both.distances(w), strict=True):
            equal(both.of_point(name, data.n), gap)
        equal(both.of_point("x", data.n_x), of.x(w), 0)
        assert both.call("hybrid_hessian", y, ct.c_double(1.0), W) == 0
        hessian = both.matrix(W[: data.nnz_W], "W_rows", "W_cols", (data.n, data.n))
        equal(hessian, of.hessian(w, y), 1e-12)


def test_multipliers_in_and_out(both: Both) -> None:
    data, of, numbers = both.data, both.formula, both.numbers
    y, z_lower, z_upper = np.full(data.m, np.nan), np.full(data.n, np.nan), np.full(data.n, np.nan)
    held = np.full(data.n, -1, dtype=np.int32)
    into = both.core.hybrid_multipliers_in
    count = into(ct.byref(both.form), *map(address, (y, z_lower, z_upper, held)))
    np.testing.assert_array_equal(held[:count], np.flatnonzero(z_lower + z_upper))
    expected = of.multipliers(numbers.lam_x0, numbers.lam_g0)
    for found, other in zip((y, z_lower, z_upper), expected, strict=True):
        equal(found, other)
    assert both.evaluate(of.start) == 0
    lam_x, lam_g = np.full(data.n_x, np.nan), np.full(data.n_g, np.nan)
    both.call("hybrid_multipliers_out", y, z_lower, z_upper, lam_x, lam_g)
    out_x, out_g = of.users(of.start, y, z_upper - z_lower)
    equal(lam_x, out_x, 1e-12)
    equal(lam_g, out_g)


@pytest.mark.parametrize("nu", [1e-9, 0.1, 10.0])
def test_barrier_function(both: Both, nu: float) -> None:
    """φ_ν = f − ν Σ log(distances), damped by the distance where there is one bound alone."""
    draws, data, of = np.random.default_rng(6), both.data, both.formula
    slope = np.zeros(data.n)
    low, high = np.isfinite(of.lower), np.isfinite(of.upper)
    for k in range(6):
        w = both.inside(draws)
        if k % 2:  # 1 % of the room from the bounds
            room = 0.01 * np.where(low & high, of.upper - of.lower, 1.0)
            w = np.clip(w, of.lower + room, of.upper - room)
        assert both.evaluate(w) == 0
        f, gradient, c, _ = of.point(w)
        trial = TrialData(of=both.point, theta=float(np.abs(c).sum()))
        for name in ("below", "above"):
            trial.logs += both.core.hybrid_sum_log(data.n, address(both.of_point(name, data.n)))
        form, pair = ct.byref(both.form), FilterPairData(gradient=slope.ctypes.data)
        both.core.hybrid_bound_terms(form, ct.byref(trial))
        both.core.hybrid_filter_pair_at(form, ct.byref(trial), NUMBER(nu), ct.byref(pair))
        assert bool(trial.outside) == bool(((w < of.lower) | (w > of.upper)).any())
        below, above = both.distances(w)
        if trial.outside:
            assert pair.phi == np.inf
        else:
            alone = below[low & ~high].sum() + above[high & ~low].sum()
            terms = np.log(below[low]).sum() + np.log(above[high]).sum() - DAMPING * alone
            equal(pair.phi, f - nu * terms, 1e-12)
        one = DAMPING * ((low & ~high).astype(float) - (high & ~low))
        equal(slope, gradient + nu * (high / above - low / below + one), 1e-12)
        assert pair.theta == trial.theta


def mean(total: float, count: int) -> float:
    """Divisor of an error where multipliers are large."""
    return max(S_MAX, total / max(1, count)) / S_MAX


@pytest.mark.parametrize("size", [0.0, 1.0, 1e3, 1e6])
def test_scaled_error(both: Both, size: float) -> None:
    """E_0 = max(‖∇f + A'y − z_l + z_u‖/s_d, ‖c‖, ‖z(w − bound)‖/s_c)."""
    draws, data, of = np.random.default_rng(5), both.data, both.formula
    work, sizes = np.zeros(max(data.n, data.n_x)), np.zeros(2)
    for _ in range(4):
        w, (y, z_lower, z_upper) = both.inside(draws), both.duals(draws, size)
        assert both.evaluate(w) == 0
        _, gradient, c, A = of.point(w)
        slope = gradient + A.T @ y
        before, held = slope.copy(), Held(z_lower, z_upper)
        given = slope, y, ct.byref(held.data), work, sizes
        below, above = both.distances(w)
        sums = z_lower.sum() + z_upper.sum()
        expected = max(
            largest(slope - z_lower + z_upper)
            / mean(np.abs(y).sum() + sums, of.m + both.form.bounds),
            largest(c),
            max(largest(z_lower * below), largest(z_upper * above)) / mean(sums, both.form.bounds),
        )
        equal(both.call("hybrid_scaled_error", *given), expected, 1e-12)
        np.testing.assert_array_equal(slope, before)
        of_x = (slope - z_lower + z_upper)[: data.n_free]
        equal(sizes, (largest(of_x), largest(c)), 1e-12)


@pytest.mark.parametrize("known", [False, True], ids=["user", "form"])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e6])
def test_residuals_are_those_of_user(both: Both, size: float, known: bool) -> None:
    """From multipliers of the user, or from multipliers that the form can carry."""
    draws, data, of = np.random.default_rng(6), both.data, both.formula
    for _ in range(4):
        w = both.inside(draws)
        assert both.evaluate(w) == 0
        x = of.x(w)
        f, gradient, g, J = of.user(x)
        lam_x, lam_g = (size * draws.standard_normal(k) for k in (data.n_x, data.n_g))
        if known:
            y, z_lower, z_upper = of.multipliers(lam_x, lam_g)
            lam_x, lam_g = of.users(w, y, z_upper - z_lower)
            _, slope, c, A = of.point(w)
            slope = (slope + A.T @ y - z_lower + z_upper)[: data.n_free]
            held, sizes = Held(z_lower, z_upper), np.array([largest(slope), largest(c)])
            found, work = C.hybrid_residuals(), np.zeros(max(data.n, data.n_x, data.n_g))
            given = np.array(y), ct.byref(held.data), sizes, work, ct.byref(found)
            both.call("hybrid_residuals_of", *given)
        else:
            found = both.residuals(lam_x, lam_g)
            equal(both.work[: data.n_x], gradient + J.T @ lam_g + lam_x, 1e-12)
        expected = kkt_residuals(both.numbers.bounds, x, gradient, g, J, lam_x, lam_g, plain=True)
        equal(found.f, f, 1e-13)
        equal(found.feasibility, expected.feasibility, 1e-13)
        equal(found.stationarity, expected.stationarity, 1e-12)
        equal(found.complementarity, expected.complementarity, 1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_rounding_is_subtracted_above_tolerance(both: Both, seed: int) -> None:
    """Large terms nearly cancel: rounding explains some residuals, and just not others."""
    draws, bounds = np.random.default_rng(seed), both.numbers.bounds
    assert both.evaluate(both.inside(draws)) == 0
    x, gradient, g, J = both.raw()
    J[:] *= 10.0 ** draws.integers(0, 9)
    gradient[:] = 10.0 ** draws.integers(0, 9) * draws.standard_normal(x.size)
    equal_rows = bounds.lbg == bounds.ubg
    g[equal_rows] = bounds.lbg[equal_rows] + 10.0 ** draws.uniform(-9, -3, equal_rows.sum())
    both.point.sum_J, full = np.abs(J).sum(), both.jacobian()
    lam_g = 10.0 ** draws.integers(0, 9) * draws.standard_normal(g.size)
    lam_x = -(gradient + full.T @ lam_g)
    lam_x[:: 1 + seed % 3] *= 1.0 + 10.0 ** draws.uniform(-15, -9)
    found = both.residuals(lam_x, lam_g, rounding=True)
    plain, counted = (
        kkt_residuals(bounds, x, gradient, g, full, lam_x, lam_g, plain=p) for p in (True, False)
    )
    entry = largest(np.abs(gradient) + np.abs(full.T) @ np.abs(lam_g))
    for name in ("feasibility", "stationarity", "complementarity"):
        whole, less = getattr(plain, name), getattr(counted, name)
        expected = less if whole > TOLERANCE or less > whole else whole
        rel, room = (1e-6, 1e-15 * entry) if name == "stationarity" else (1e-12, 1e-12)
        assert getattr(found, name) == pytest.approx(expected, rel=rel, abs=room)


@pytest.mark.parametrize("of_rows", [False, True], ids=["variables", "rows"])
@pytest.mark.parametrize("seed", range(4))
def test_distances_of_rounding_do_not_count(both: Both, seed: int, of_rows: bool) -> None:
    """Large multipliers at bounds that are met to about as much as the values can say."""
    draws, bounds = np.random.default_rng(seed), both.numbers.bounds
    assert both.evaluate(both.inside(draws)) == 0
    x, gradient, g, _ = both.raw()
    gradient[:] = 1e8 * draws.standard_normal(x.size)
    x[:] *= 10.0 ** draws.integers(-3, 1)
    lam_x, lam_g = np.zeros(x.size), np.zeros(g.size)
    values, lam = (g, lam_g) if of_rows else (x, lam_x)
    low, high = (bounds.lbg, bounds.ubg) if of_rows else (bounds.lbx, bounds.ubx)
    for bound, sign in ((low, -1.0), (high, 1.0)):
        near = np.isfinite(bound) & (low < high) & (lam == 0) & (draws.random(lam.size) < 0.5)
        rounded = 1 + draws.choice([-7, -3, -1, 0, 1, 3, 7], lam.size) * np.finfo(float).eps
        values[near] = (bound * rounded)[near]
        lam[near] = sign * (10.0 ** draws.uniform(9, 11, lam.size))[near]
    found = both.residuals(lam_x, lam_g, rounding=True)
    given = bounds, x, gradient, g, both.jacobian(), lam_x, lam_g
    plain, counted = (kkt_residuals(*given, plain=p).complementarity for p in (True, False))
    equal(found.complementarity, counted if plain > TOLERANCE else plain, 1e-12)


def test_bad_numbers_have_a_status() -> None:
    both = Both("with_rows", 1)
    parts, nan, inf = both.space.parts, np.nan, np.inf
    bad = [(name, nan) for name in ("x0", "p", "lam_x0", "lbx", "ubx", "lbg", "ubg")]
    bad += [("x0", inf), ("lam_g0", inf), ("lbx", inf), ("ubx", -inf), ("ubg", -inf)]
    for name, value in bad:
        before = parts[name][0]
        parts[name][0] = value
        assert both.warm() == C.HYBRID_BAD_NUMBERS, (name, value)
        parts[name][0] = before
    parts["lbg"][1] = 5.0
    assert both.warm() == C.HYBRID_BAD_NUMBERS
    parts["lbg"][1] = parts["ubg"][1]
    assert both.warm() == C.HYBRID_OTHER_PATTERN  # an equation now
    x = ca.SX.sym("x", 2)
    problem = Problem(x=x, f=ca.sumsqr(x) - ca.log(x[0]))
    form = Form(problem, problem.numbers(x0=[1.0, 1.0], lam_x0=[1.0, 0.0]))
    form.space.parts["x0"][:] = -1.0, 1.0
    assert form.warm() == C.HYBRID_UNDEFINED
