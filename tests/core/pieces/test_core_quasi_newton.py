"""Hessians from first derivatives in C: formulas in NumPy, eigenvalues, and what they lead to."""

from __future__ import annotations

import ctypes as ct
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.core import CASES, assert_kkt, solved, warm
from support.cases.nlp import hock_schittkowski
from support.judges.standard_form import Form, Kkt, equal, view, whole

from casadi_hybrid import Derivatives, Problem
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.hessian import quasi_newton

LEARN = {"hessian_approximation": "limited-memory"}
DRAWS = 7
FIXED = 7  # of the variables of the problem in stages, whose blocks are these
GROUPS = [0, 1], [2, 3], [4, 5, 6, 7, 8]


class Secants(Form):
    """The standard form of a problem without second derivatives."""

    def __init__(self, problem: Problem, x0: np.ndarray) -> None:
        self.problem = problem.with_derivatives(Derivatives("limited-memory"))
        super().__init__(self.problem, self.problem.numbers(x0=x0))
        self.start = self.of_point("w", self.data.n).copy()

    def hessian(self, y: np.ndarray, objective: float = 1.0) -> np.ndarray:
        """W in C at the point that was evaluated last, which it knows from then on."""
        values = np.full(self.data.nnz_W, np.nan)
        assert self.call("hybrid_hessian", y, ct.c_double(objective), values) == 0
        return self.matrix(values, "W_rows", "W_cols", (self.data.n, self.data.n))

    @property
    def secants(self) -> Any:
        return C.hybrid_secants.from_address(self.functions.secants)

    def low_rank(self) -> tuple[np.ndarray, np.ndarray]:
        """U and w of the last Hessian."""
        low, n = self.form.low_rank, self.data.n
        return view(low.U, low.rank * n).reshape(low.rank, n).T.copy(), view(low.w, low.rank).copy()


def stages() -> Secants:
    """Blocks of several sizes, a variable that enters linearly, a fixed one, slacks and scales."""
    x = ca.SX.sym("x", 10)
    f = ca.exp(x[0] * x[1]) + x[2] ** 4 + 300 * x[9] + (x[4] - x[5] * x[6]) ** 2
    g = ca.vertcat(x[0] ** 2 * x[1] + x[9], 400 * ca.sin(x[3] * x[2]), x[7] * x[8] * x[6])
    limits = {"lbg": [0.1, -1, 0], "ubg": [0.1, np.inf, 2]}
    limits["lbx"], limits["ubx"] = np.full(10, -2.0), np.full(10, 2.0)
    limits["lbx"][7] = limits["ubx"][7] = 0.5
    return Secants(Problem(x=x, f=f, g=g, **limits), np.full(10, 0.3))


def rank_one(s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """B after the symmetric rank-one updates by these pairs, from the identity."""
    B = np.eye(s.shape[1])
    for step, slope in zip(s, y, strict=True):
        r = slope - B @ step
        if abs(r @ step) > 1e-8 * np.linalg.norm(r) * np.linalg.norm(step) > 0:
            B += np.outer(r, r) / (r @ step)
    return B


def steps(form: Secants, count: int) -> Any:
    """Random points inside the bounds, one after the other, and multipliers there."""
    draws = np.random.default_rng(DRAWS)
    for _ in range(count):
        w = np.clip(form.start + 0.2 * draws.standard_normal(form.data.n), -1.9, 1.9)
        assert form.evaluate(w) == 0
        yield w, draws.standard_normal(form.data.m)


def by_hand(
    form: Secants, seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]], y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """∇²L of x by the points seen, and the last s and y."""
    multipliers = y * form.of_form("scale_c", 3)
    slopes = np.array([form.form.scale_f * df + J.T @ multipliers for _, df, J in seen])
    s, slope = np.diff([x for x, _, _ in seen], axis=0), np.diff(slopes, axis=0)
    full = np.zeros((10, 10))
    for group in GROUPS:
        full[np.ix_(group, group)] = rank_one(s[:, group], slope[:, group])
    return full, s[-1:], slope[-1:]


@pytest.mark.parametrize("large", [200, 3], ids=["full", "low rank"])
def test_hessian_follows_formulas(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quasi_newton, "LARGE", large)
    form = stages()
    first, seen = form.problem.functions.first, []
    free = np.delete(np.arange(10), FIXED)
    for w, y in steps(form, 9):
        W = form.hessian(y)
        U, weights = form.low_rank()
        assert weights.size == (len(seen) if large == 3 else 0)
        W += U * weights @ U.T
        x = np.insert(w[:9], FIXED, 0.5)
        _, gradient, _, J = (one.full() for one in first(x, np.zeros(0)))
        seen.append((x, gradient.ravel(), J))
        full, s, slope = by_hand(form, seen, y)
        size = np.abs(full).max()
        equal(W[:9, :9], full[np.ix_(free, free)], 1e-8 * size)
        assert not W[9:].any()
        assert not W[:, 9:].any()
        nonlinear = free[free < 9]
        for step, change in zip(s, slope, strict=True):  # the secant equation
            equal((W[:9, :9] @ step[free])[:8], change[nonlinear], 1e-7 * size)
    values = np.full(form.data.nnz_W, np.nan)
    assert form.call("hybrid_curvature", np.ones(3), values) == 0
    assert not values.any()  # of the rows alone


def test_pairs_without_information_are_left_out() -> None:
    form = stages()
    w, y = form.start.copy(), np.ones(3)
    form.evaluate(w)
    np.testing.assert_array_equal(form.hessian(y)[:2, :2], np.eye(2))
    w[0] += 1e-13  # no other point
    form.evaluate(w)
    form.hessian(y)
    assert form.secants.count == 1
    w[0] += 0.1  # of the others nothing is seen
    form.evaluate(w)
    W = form.hessian(y)
    assert form.secants.count == 2
    assert np.abs(W[:2, :2] - np.eye(2)).max() > 0.1
    np.testing.assert_array_equal(W[2:8, 2:8], np.eye(6))
    assert form.core.hybrid_drop_secants(ct.byref(form.secants)) == 1
    np.testing.assert_array_equal(form.hessian(y)[:2, :2], np.eye(2))
    assert form.core.hybrid_drop_secants(ct.byref(form.secants)) == 0
    for _, y in steps(form, 24):
        form.hessian(y)
    assert form.secants.count == 21  # of 24 points


def matrices(form: Secants, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """W with its change of low rank, and A at the point that was evaluated last."""
    n, m = form.data.n, form.data.m
    U, weights = form.low_rank()
    assert weights.size
    W = form.matrix(values, "W_rows", "W_cols", (n, n)) + U * weights @ U.T
    return W, form.matrix(form.of_point("A", form.data.nnz_A), "A_rows", "A_cols", (m, n))


@pytest.mark.parametrize("seed", range(6))
def test_kkt_matrix_solves_and_counts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """K with its change of low rank: inertia by eigenvalues, solutions by NumPy."""
    monkeypatch.setattr(quasi_newton, "LARGE", 1)
    form = stages()
    kkt, draws = Kkt(form), np.random.default_rng(seed)
    n, m, epsilon = form.data.n, form.data.m, ct.c_double(1e-3)
    values, pinned = np.full(form.data.nnz_W, np.nan), whole(kkt.data.pinned, n)
    statuses = set()
    for _, y in steps(form, 6):
        assert form.call("hybrid_hessian", 3 * y, ct.c_double(1.0), values) == 0
        if form.secants.count == 1:
            continue
        (W, A), rows = matrices(form, values), form.of_point("A", form.data.nnz_A)
        D, shift = draws.uniform(0, 1, n), draws.choice([0.0, 5.0, 50.0])
        force, c, dw, dy = *(draws.standard_normal(k) for k in (n, m)), np.zeros(n), np.zeros(m)
        right, sigma = np.r_[force, c], ct.c_double(shift)
        K = np.block([[W + np.diag(D + shift), A.T], [A, -epsilon.value * np.eye(m)]])
        status = kkt.call("hybrid_factor", values, D, sigma, rows, epsilon, None, kkt.at)
        assert kkt.data.inertia.negative == np.count_nonzero(np.linalg.eigvalsh(K) < 0)
        assert status == (kkt.data.inertia.negative != m)
        statuses.add(status)
        assert kkt.call("hybrid_solve_kkt", force, c, kkt.at, dw, dy) == 0
        equal(K @ np.r_[dw, dy], -right, 1e-9)
        # With entries pinned, as on an active set.
        pinned[:] = draws.uniform(size=n) < 0.3
        free, move = np.r_[pinned == 0, np.ones(m, bool)], view(kkt.data.move, n)
        move[:] = np.where(pinned, draws.standard_normal(n), 0.0)
        K -= np.diag(np.r_[D, np.zeros(m)])
        status = kkt.call("hybrid_factor_pinned", values, rows, sigma, epsilon, kkt.at)
        negative = np.count_nonzero(np.linalg.eigvalsh(K[np.ix_(free, free)]) < 0)
        assert kkt.data.inertia.negative == negative
        assert status == (negative != m)
        assert kkt.call("hybrid_solve_pinned", values, rows, force, c, kkt.at, dw, dy) == 0
        step = np.r_[dw, dy]
        np.testing.assert_array_equal(step[~free], move[~free[:n]])
        size = (np.abs(K) @ np.abs(step) + np.abs(right)).max()
        equal((K @ step + right)[free] / size, 0.0, 1e-10)
    assert statuses == {0, 1}


# --- whole solves ---------------------------------------------------------------------------------


def learned(nlp: dict[str, Any], numbers: dict[str, Any], **options: Any) -> Any:
    return solved((nlp, numbers), {**LEARN, **options})


# 59 and 109 forget what other points have shown, 59 restores feasibility.
@pytest.mark.parametrize("number", [6, 10, 26, 43, 59, 71, 80, 93, 100, 109, 113])
def test_published_problems_are_solved(number: int) -> None:
    nlp, numbers = hock_schittkowski(number)
    solver, found = learned(nlp, numbers)
    assert solver.stats()["success"]
    assert solver.stats()["n_call_nlp_hess_l"] == 0
    assert_kkt((nlp, numbers), found)


@pytest.mark.parametrize("name", sorted(CASES))
def test_warm_solves_converge(name: str) -> None:
    case = CASES[name]()
    solver, x = learned(case.nlp, case.numbers)
    moved = case.moved(case.numbers, x["x"], np.random.default_rng(DRAWS))
    found = solver(**moved | warm(x))
    assert solver.stats()["success"]
    assert_kkt((case.nlp, moved), {name: of.full().ravel() for name, of in found.items()})


@pytest.mark.parametrize("number", [43, 71, 100])
def test_updates_lead_as_full_matrices(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    nlp, numbers = hock_schittkowski(number)
    full, x = learned(nlp, numbers)
    monkeypatch.setattr(quasi_newton, "LARGE", 1)
    low, found = learned(nlp, numbers)
    assert low.stats()["iter_count"] == full.stats()["iter_count"]
    np.testing.assert_allclose(found["x"], x["x"], rtol=1e-7, atol=1e-9)
    again = low(**{**numbers, **warm(found), "x0": found["x"] + 0.01})["x"].full().ravel()
    assert low.stats()["success"]
    np.testing.assert_allclose(again, x["x"], rtol=1e-5, atol=1e-5)


def test_maps_and_batches_learn_alone() -> None:
    """Each of their solves has the bits of a solve by itself, also by compiled functions."""
    case = CASES["van_der_pol"]()
    solver, plain = learned(case.nlp, case.numbers)
    p = np.array([[0.0, 0.02, 0.05], [0.8, 0.7, 0.75]])
    others = {name: value for name, value in case.numbers.items() if name != "p"}
    batch = solver.batch(**others, p=p)
    symbol = ca.MX.sym("p", 2)
    graph = ca.Function("graph", [symbol], [solver(**others, p=symbol)["x"]])
    mapped = graph.map(3, "thread", 2)(p).full()
    for k in range(3):
        alone = solver(**others, p=p[:, k])["x"].full().ravel()
        np.testing.assert_array_equal(batch.x[:, k], alone)
        np.testing.assert_array_equal(mapped[:, k], alone)
    compiled, found = learned(case.nlp, case.numbers, compile=True)
    assert compiled.stats()["functions"] == "compiled"
    np.testing.assert_allclose(found["x"], plain["x"], rtol=1e-8, atol=1e-10)
