"""The barrier method in C: pieces by textbook formulas, and solves of every kind."""

import ctypes as ct
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.core import (
    FilterPairData,
    FormData,
    PointData,
    assert_cut_short,
    assert_kkt,
    core_in_pieces,
    engine_answer,
    solved,
)
from support.cases.core import core as headers
from support.cases.nlp import hock_schittkowski

from casadi_hybrid import Problem
from casadi_hybrid.core.header import C

Made = tuple[dict[str, Any], dict[str, Any]]
INF = np.inf
EPS = float(np.finfo(float).eps)


@pytest.fixture(scope="module")
def core() -> Any:
    return core_in_pieces()


def sizes(rng: np.random.Generator, count: int, decades: float = 4.0) -> np.ndarray:
    return np.asarray(10.0 ** rng.uniform(-decades, decades, count))


# γ_θ = γ_φ, δ, s_θ, s_φ, η, γ_α of Wächter and Biegler 2006, section 2.3
GAMMA, DELTA, S_THETA, S_PHI, ETA, G_ALPHA = 1e-5, 1.0, 1.1, 2.3, 1e-4, 0.05
F_TYPE, H_TYPE = headers.HYBRID_F_TYPE, headers.HYBRID_H_TYPE


class Filter:
    """The acceptance test of that paper at (θ, φ), with pairs of a filter."""

    def __init__(self, theta: float, phi: float, start: float, pairs: np.ndarray) -> None:
        self.theta, self.phi, self.pairs = theta, phi, pairs
        self.least, self.most = (part * max(1.0, start) for part in (1e-4, 1e4))

    def blocks(self, theta: float, phi: float, reach: float = 1.0) -> bool:
        worse = (theta >= self.pairs[:, 0]) & (phi >= self.pairs[:, 1])
        return bool(theta > self.most * max(1.0, reach) or worse.any())

    def verdict(self, size: float, trial: tuple[float, float], alpha: float, slope: float) -> int:
        """The type of an accepted step, 0 for a rejected one."""
        theta, phi = trial
        fall = phi - self.phi - 10 * EPS * abs(self.phi)
        if self.blocks(theta, phi, np.sqrt(size)):
            return 0
        switching = slope < 0 and alpha * (-slope) ** S_PHI > DELTA * self.theta**S_THETA
        if switching and self.theta <= self.least:
            return F_TYPE * (fall <= ETA * alpha * slope)
        better = theta <= (1 - GAMMA) * self.theta or fall <= -GAMMA * self.theta
        return H_TYPE * better

    def smallest_step(self, slope: float) -> float:
        least = GAMMA
        if slope < 0:
            least = min(least, GAMMA * self.theta / -slope)
            if self.theta <= self.least:
                least = min(least, DELTA * self.theta**S_THETA / (-slope) ** S_PHI)
        return max(G_ALPHA * least, 10 * EPS)

    def extended(self) -> np.ndarray:
        new = np.array([(1 - GAMMA) * self.theta, self.phi - GAMMA * self.theta])
        return np.vstack((self.pairs[(self.pairs < new).any(axis=1)], new))


def test_filter_follows_the_paper(core: Any) -> None:
    rng, seen = np.random.default_rng(1), set()
    for _ in range(2000):
        pairs = np.column_stack([sizes(rng, 5, 3.0), rng.normal(size=5)])
        start, size = float(sizes(rng, 1)[0]), float(sizes(rng, 1)[0])
        theta, phi = float(sizes(rng, 1, 6.0)[0]), float(rng.normal())
        trial = theta * float(rng.choice([0.5, 1.0, 2.0, 1e3])), phi + 0.1 * rng.normal()
        alpha, slope = float(rng.uniform()), float(rng.normal())
        of, room = Filter(theta, phi, start, pairs), np.zeros(256)
        room[:10] = pairs.ravel()
        it = headers.hybrid_iterate(filter=room.ctypes.data, entries=5, theta_start=start)
        pair = FilterPairData(theta, phi)
        wanted = of.verdict(size, trial, alpha, slope)
        seen.add(wanted)
        given = ct.byref(pair), ct.byref(it), size, *trial, alpha, slope
        assert core.hybrid_filter_accepts(*given) == wanted
        assert core.hybrid_filter_rejects(ct.byref(it), theta, phi, 1.0) == of.blocks(theta, phi)
        step = core.hybrid_alpha_min(ct.byref(pair), start, slope)
        assert step == pytest.approx(of.smallest_step(slope), rel=1e-13)
        core.hybrid_filter_add(ct.byref(pair), ct.byref(it))
        kept = of.extended()
        assert it.entries == len(kept)
        np.testing.assert_allclose(room[: 2 * len(kept)].reshape(-1, 2), kept, rtol=1e-15)
    assert seen == {0, F_TYPE, H_TYPE}


def test_full_filter_drops_oldest_pair(core: Any) -> None:
    rng = np.random.default_rng(3)
    theta = np.sort(sizes(rng, 128))
    pairs = rng.permutation(np.column_stack([theta, np.sort(rng.normal(size=128))[::-1]]))
    room = pairs.ravel().copy()
    it = headers.hybrid_iterate(filter=room.ctypes.data, entries=128, theta_start=1.0)
    pair = FilterPairData(0.5 * float(theta[0]), 9.0)
    core.hybrid_filter_add(ct.byref(pair), ct.byref(it))
    new = Filter(pair.theta, pair.phi, 1.0, pairs[:0]).extended()
    assert it.entries == 128
    np.testing.assert_allclose(room.reshape(-1, 2), np.vstack([pairs[1:], new]), rtol=1e-15)


def test_bounds_are_kept(core: Any) -> None:
    """Points inside, z within 1e10 of ν/distance, fractions to the boundary, ν after ν."""
    rng, n = np.random.default_rng(2), 7
    for _ in range(300):
        low, high = rng.uniform(size=(2, n)) < 0.6
        lower = np.where(low, rng.normal(size=n), -INF)
        upper = np.where(high, np.where(low, lower + sizes(rng, n), 5.0), INF)
        flags, plan = [has.astype(float) for has in (low, high)], C.hybrid_plan(n=n)
        arrays = {"lower": lower, "upper": upper, "has_lower": flags[0], "has_upper": flags[1]}
        addresses = {name: array.ctypes.data for name, array in arrays.items()}
        form = FormData(plan=ct.addressof(plan), **addresses)
        w = 3.0 * rng.normal(size=n)
        moved = w.copy()
        core.hybrid_push_inside(ct.byref(form), 1e-2, moved.ctypes.data)
        below, above = (
            np.minimum(
                1e-2 * np.maximum(1, np.where(has, np.abs(bound), 0)), 1e-2 * (upper - lower)
            )
            for has, bound in ((low, lower), (high, upper))
        )
        inside = np.minimum(np.maximum(w, lower + below), upper - above)
        np.testing.assert_allclose(moved, inside, rtol=1e-15)
        nu, below, above = float(sizes(rng, 1, 6.0)[0]), sizes(rng, n), sizes(rng, n)
        point = PointData(below=below.ctypes.data, above=above.ctypes.data)
        z = [np.where(has, sizes(rng, n, 14.0), 0.0) for has in (low, high)]
        central = nu * low / below, nu * high / above
        clipped = [np.clip(o, c / 1e10, c * 1e10) for o, c in zip(z, central, strict=True)]
        addresses = (values.ctypes.data for values in z)
        core.hybrid_reset_duals(ct.byref(form), ct.byref(point), nu, *addresses)
        np.testing.assert_allclose(z, clipped, rtol=1e-14)
        step = rng.normal(size=n)
        share = core.hybrid_fraction_to_zero(
            n, below.ctypes.data, step.ctypes.data, 1.0, flags[0].ctypes.data, 0.99
        )
        falling = low & (step < 0)
        shares = -0.99 * below[falling] / step[falling]
        assert share == pytest.approx(min(1.0, shares.min(initial=1.0)), rel=1e-14)
        least = max(1e-9, min(0.2 * nu, nu**1.5))
        assert core.hybrid_next_nu(nu, 1e-9) == pytest.approx(least, rel=1e-15)


def test_rows_of_low_rank_are_dependent(core: Any) -> None:
    draws, seen = np.random.default_rng(6), set()
    for _ in range(200):
        n, m = (int(size) for size in draws.integers(1, 7, 2))
        A = draws.normal(size=(m, n)) * (draws.uniform(size=(m, n)) < 0.7)
        if draws.uniform() < 0.5:
            A[0] = draws.normal(size=m - 1) @ A[1:]
        A *= 10.0 ** draws.uniform(-100, 100)
        rows, cols = (places.astype(np.int32) for places in np.nonzero(A))
        of_A = {"nnz_A": rows.size, "A_rows": rows.ctypes.data, "A_cols": cols.ctypes.data}
        plan = C.hybrid_plan(n=n, m=m, **of_A)
        values, room = A[rows, cols], np.empty((n + 1) * m)
        found = core.hybrid_rows_are_dependent(
            ct.addressof(plan), values.ctypes.data, room.ctypes.data
        )
        assert found == (np.linalg.matrix_rank(A) < m)
        seen.add((found, m <= n))
    assert len(seen) == 3


# --- whole solves --------------------------------------------------------------------------------


def pressures() -> Made:
    """Variables of a million, as pascals are, and a negative objective."""
    x = ca.SX.sym("x", 3)
    g = ca.vertcat(ca.sqrt(x[0] - x[1]) - x[2], x[0] + 2 * x[1])
    f = (1e-6 * x[0] - 3) ** 2 + (1e-6 * x[1] - 1) ** 2 - 1e-3 * x[2] - 9
    bounds = {"lbx": [1e5, 1e5, 0], "ubx": [4e6, 3e6, 2e3], "lbg": [0, -INF], "ubg": [0, 4e6]}
    return {"x": x, "f": f, "g": g}, {"x0": [2e6, 1e6, 50], **bounds}


def far_off() -> Made:
    """From far out, where f is positive, to a solution nearby."""
    x = ca.SX.sym("x", 2)
    f = ca.sumsqr(x) / (1 + ca.sumsqr(x) / 1e14) + x[0]
    return {"x": x, "f": f, "g": x[0] + x[1]}, {"x0": [3e6, -2e6], "lbx": -1e7, "lbg": 2}


def shifted() -> Made:
    """The Hessian needs a shift, the line search cuts and corrects."""
    return hock_schittkowski(37)


@pytest.mark.parametrize("made", [shifted, pressures, far_off])
def test_solutions_meet_the_conditions(made: Any) -> None:
    solver, found = solved(made())
    assert solver.stats()["success"]
    assert_kkt(made(), found)
    assert_cut_short(made(), 4)


def shifts(curvature: float, steps: int) -> tuple[list[float], int]:
    """σ of every step where W has the eigenvalue −curvature, and how many are tried for them.

    A third of the last one, then eight times as much each time, a hundred times before any has
    served; zero comes first, but from when it has failed twice in a row until σ has served at once
    twice in a row.
    """
    used, tried, at_once = [0.0], 0, 0
    for indefinite in range(steps):
        last = used[-1]
        first = last / 3 if indefinite >= 2 and at_once < 2 else 0.0
        shift, growth = first, 8 if last else 100
        tried += 1
        while shift <= curvature:
            shift = growth * shift if shift else last / 3 or 1e-4
            tried += 1
        at_once = at_once + 1 if shift == first else 0
        used.append(shift)
    return used, tried


@pytest.mark.parametrize("curvature", [0.002, 0.75, 1.5, 20.0])
def test_shifts_of_the_hessian(curvature: float) -> None:
    x = ca.SX.sym("x", 2)
    problem = Problem(x=x, f=(x[1] ** 2 - curvature * x[0] ** 2) / 2)
    bounds = {"x0": [1, 0], "lbx": -1e9, "ubx": 1e9}
    solver, _ = solved((problem, bounds), {"max_iter": 12})
    used, tried = shifts(curvature, 12)
    assert solver.stats()["iterations"]["regularization_size"] == pytest.approx(used)
    assert engine_answer(problem).factors == tried


def test_lower_objective_does_not_excuse_violation() -> None:
    """HS13 has no multipliers: of two ends of runs one is 0.4 % lower by what 1e-6 allows."""
    solver, found = solved(hock_schittkowski(13))
    assert not solver.stats()["success"]
    assert found["f"] == pytest.approx(1, abs=1e-3)


def strip() -> Made:
    """Along which f falls, and rows that contradict each other only in what is lost in rounding."""
    x = ca.SX.sym("x", 2)
    numbers = {"x0": [2e5, 2e5], "lbx": 0, "lbg": -1, "ubg": 2}
    return {"x": x, "f": x[1] - 2 * x[0], "g": x[0] - x[1]}, numbers


def test_unbounded_objective_is_proved() -> None:
    solver, found = solved(strip())
    assert solver.stats()["stop_reason"] == "UNBOUNDED"
    numbers, x, row = strip()[1], found["x"], found["g"]
    room = max(1e-2, 1e-11 * np.abs(x).max())
    assert np.abs(x).max() > 1e10
    assert found["f"] < -1e10
    assert numbers["lbg"] - room <= row <= numbers["ubg"] + room


@pytest.mark.parametrize("sign", [1, -1])
def test_multipliers_follow_a_far_step(sign: int) -> None:
    """To 4e11 away: z, which was 1, is at most 1e10 ν/distance there."""
    x = ca.SX.sym("x", 2)
    made = {"x": x, "f": ca.sumsqr(x), "g": sign * x[0] - 1e12 - x[1]}, {"lbg": 0, "ubg": 0}
    of, end = ("lbx", -INF) if sign == 1 else ("ubx", INF)
    solver, found = solved(made, {"max_iter": 1}, x0=[sign, 0], **{of: [0, end]})
    nu = solver.stats()["iterations"]["mu"][0]
    assert -found["x"][0] * found["lam_x"][0] == pytest.approx(1e10 * nu)
