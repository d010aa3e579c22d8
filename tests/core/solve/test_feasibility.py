"""The least violation in C: its certificate by formulas, and solves that end there."""

import ctypes as ct
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import linprog
from support.cases.core import solved
from support.judges.standard_form import Form
from support.problems.verdicts import PROBLEMS

from casadi_hybrid import Problem
from casadi_hybrid.core.header import C
from casadi_hybrid.solver.solve import CAUSES

INF = np.inf
Made = tuple[dict[str, Any], dict[str, Any]]

X = ca.SX.sym("x", 5)
# An equation, a steep row with one bound, one without a bound, one with two; x[3] is fixed.
STEEP = 400 * (X[0] * X[1] - X[2])
G = ca.vertcat(ca.sumsqr(X) - 4, STEEP, ca.exp(X[1]), ca.sin(X[0]) + X[3] * X[4] ** 2)
ROWS = {"lbg": np.array([1, -INF, -INF, 3]), "ubg": np.array([1, -800, INF, 4])}
BOX = {"lbx": np.array([-1, 0, -INF, 2, -3]), "ubx": np.array([1, 2, INF, 2, 0.5])}
FREE, KEPT = [0, 1, 2, 4], [0, 1, 3]


class Formula:
    """The slope of the violation from CasADi's derivatives, as the documentation says it."""

    def __init__(self, x0: np.ndarray) -> None:
        self.g = ca.Function("g", [X], [G])
        self.J = ca.Function("J", [X], [ca.jacobian(G, X)])
        self.H = [ca.Function("H", [X], [ca.hessian(G[i], X)[0]]) for i in range(G.numel())]
        self.J0 = self.J(x0).full()

    def violation(self, x: np.ndarray) -> np.ndarray:
        g = self.g(x).full().ravel()
        return np.maximum(g - ROWS["ubg"], 0) - np.maximum(ROWS["lbg"] - g, 0)

    def slope(self, x: np.ndarray, u: np.ndarray) -> float:
        """Return the slope of u'g at x, u being the pull at each row."""
        v, J = self.violation(x), self.J(x).full()
        slope = J.T @ u
        lengths = np.maximum(*(np.linalg.norm(of, axis=1) for of in (J, self.J0)))
        bent = np.abs(sum(u[i] * self.H[i](x).full() for i in range(u.size)))[np.ix_(FREE, FREE)]
        size = max(np.abs(u) @ lengths, (bent @ np.maximum(1, np.abs(x[FREE]))).max())
        gain = u @ v / np.maximum(np.abs(slope), 1e-300)
        room = np.minimum(np.maximum(1e-6 * np.maximum(1, np.abs(x)), 1e-6 * gain), 0.1 * gain)
        distance = np.where(slope > 0, x - BOX["lbx"], BOX["ubx"] - x)
        return float(np.linalg.norm(slope[distance > room]) / size)


class Certificate:
    """The function of the core on one problem."""

    def __init__(self) -> None:
        x0 = np.array([0.4, 0.5, 0.2, 2, -0.7])
        problem = Problem(x=X, f=X[0] ** 2, g=G)
        self.form = Form(problem, problem.numbers(x0=x0, **ROWS, **BOX))
        data, core = self.form.data, self.form.core
        self.J0 = self.form.of_point("raw_J", data.nnz_J).copy()
        self.scale = self.form.of_form("scale_c", data.m)
        self.formula = Formula(x0)
        room = core.hybrid_violation_slope_doubles(ct.byref(data))
        self.W, self.work = np.zeros(data.nnz_W), np.zeros(room)

    def evaluate(self, x: np.ndarray) -> None:
        """Evaluate at x, slacks anywhere."""
        assert self.form.evaluate(np.r_[x[FREE], np.ones(self.form.data.n - 4)]) == 0

    def slope(self, y: np.ndarray | None) -> float:
        self.work[:] = np.nan
        arrays = self.J0, y, self.W, self.work
        return float(self.form.call("hybrid_violation_slope", *arrays))


def random_points(count: int) -> list[np.ndarray]:
    """Points inside the bounds, with some entries on a bound."""
    draws, points = np.random.default_rng(5), []
    for _ in range(count):
        x = np.array([*draws.uniform(-1, 1, 2), *draws.normal(size=1), 2, draws.uniform(-3, 0.5)])
        x[1] = abs(x[1])
        on = draws.integers(0, 3, 5)
        x = np.where((on == 1) & np.isfinite(BOX["lbx"]), BOX["lbx"], x)
        points.append(np.where((on == 2) & np.isfinite(BOX["ubx"]), BOX["ubx"], x))
    return points


def test_slopes_of_violation_match_formulas() -> None:
    """The violation is a sum of squares, or a sum with a subgradient."""
    one, draws, refused = Certificate(), np.random.default_rng(6), 0
    assert one.scale[1] < 1.0
    for x in random_points(200):
        one.evaluate(x)
        v, u = one.formula.violation(x)[KEPT], np.zeros(4)
        u[KEPT] = one.scale**2 * v
        assert one.slope(None) == pytest.approx(one.formula.slope(x, u), rel=1e-10)
        y = np.where(v != 0.0, 7 * np.sign(v), 7 * draws.uniform(-1, 1, 3))
        u[KEPT] = one.scale * y
        assert one.slope(y) == pytest.approx(one.formula.slope(x, u), rel=1e-10)
        assert one.slope(np.zeros(3)) == 1.0  # without a force there is no subgradient
        first = np.argmax(np.abs(v) * one.scale)
        weak = np.where(np.arange(3) == first, 0.9 * y, y)
        if np.abs(weak).max() < 7 * 0.95:
            continue  # all of them are weaker alike: a subgradient of a smaller force
        refused += 1
        assert one.slope(weak) == 1.0
    assert refused > 50


def three_values() -> Made:
    """More equations than unknowns, between bounds: least squares from where the filter blocks."""
    x = ca.SX.sym("x", 2)
    g = ca.vertcat(x[0] ** 2 + x[1] - 1, x[0] - 2 * x[1], ca.exp(x[1]) - 3)
    numbers = {"x0": [0.4, 0.2], "lbx": -1, "ubx": 0.6, "lbg": 0, "ubg": 0}
    return {"x": x, "f": ca.sumsqr(x), "g": g}, numbers


def point_mass(N: int = 25) -> Made:
    """A mass that cannot be in time: the sum of the violations is stationary."""
    p, v, u = ca.SX.sym("p", N + 1), ca.SX.sym("v", N + 1), ca.SX.sym("u", N)
    rows = [p[0], v[0], p[-1] - 1, v[-1]]
    rows += [p[1:] - p[:-1] - v[:-1] / N, v[1:] - v[:-1] - (ca.sin(u) - 0.1 * v[:-1] ** 3) / N]
    most = np.r_[np.full(2 * N + 2, INF), np.ones(N)]
    nlp = {"x": ca.vertcat(p, v, u), "f": ca.sumsqr(u), "g": ca.vertcat(*rows)}
    return nlp, {"x0": 0, "lbx": -most, "ubx": most, "lbg": 0, "ubg": 0}


STEEP_ROW = PROBLEMS["infeasible"]["a steep row"]


@pytest.mark.parametrize(
    ("problem", "numbers"), [(STEEP_ROW.nlp, STEEP_ROW.call), three_values(), point_mass()]
)
def test_infeasibility_is_proved(problem: Any, numbers: Any) -> None:
    """No first-order move from x inside the bounds makes the scaled violation less, in one norm."""
    solver, found = solved((problem, numbers))
    stats = solver.stats()
    assert stats["stop_reason"] == "LOCALLY_INFEASIBLE"
    assert stats["point_status"] == "INFEASIBLE_STATIONARY"
    assert solver.result.certificate <= 1e-5
    x, g = found["x"], found["g"]
    slopes = ca.Function("J", [problem["x"]], [ca.jacobian(problem["g"], problem["x"])])
    scale = 100 / np.maximum(100, np.abs(slopes(numbers.get("x0", 0)).full()).max(axis=1))
    J, g = scale[:, None] * slopes(x).full(), scale * g
    lbg, ubg = (scale * numbers.get(k, end) for k, end in (("lbg", -INF), ("ubg", INF)))
    v = np.maximum(g - ubg, 0) - np.maximum(lbg - g, 0)
    assert np.abs(v).max() > 1e-4
    low, high = (numbers.get(key, end) - x for key, end in (("lbx", -INF), ("ubx", INF)))
    # max over |d| <= 1 of the decrease of the sum of violations, as a linear program.
    fall = least_sum(J, (lbg - g, ubg - g), np.maximum(low, -1), np.minimum(high, 1))
    squares = J.T @ v
    blocked = np.where(squares > 0, -low, high) <= 1e-6 * np.maximum(1, np.abs(x))
    assert fall <= 1e-3 * np.abs(v).sum() or (
        np.abs(squares[~blocked]).max(initial=0) <= 1e-3 * np.abs(J.T * v).max()
    )


def least_sum(J: np.ndarray, room: Any, low: np.ndarray, high: np.ndarray) -> float:
    """Largest decrease of the sum of the violations of room by Jd where low <= d <= high."""
    m, n = J.shape
    one, zero = np.eye(m), np.zeros((m, m))
    rows = np.block([[J, -one, zero], [-J, zero, -one]])
    ends = np.r_[room[1], -room[0]]
    kept = np.isfinite(ends)
    bounds = [*zip(np.minimum(low, 0), np.maximum(high, 0), strict=True), *[(0, None)] * (2 * m)]
    cost = np.r_[np.zeros(n), np.ones(2 * m)]
    found = linprog(cost, rows[kept], ends[kept], bounds=bounds)
    return float(np.maximum(-ends, 0).sum() - found.fun)


def test_warm_start_of_infeasible_problem_stays() -> None:
    """No iterate is nearer to a solution than the start: it is judged at its end."""
    _, first = solved(three_values())
    start = {"x0": first["x"], "lam_x0": first["lam_x"], "lam_g0": 0.1 + first["lam_g"]}
    solver, found = solved(three_values(), **start)
    assert solver.stats()["stop_reason"] == "LOCALLY_INFEASIBLE"
    np.testing.assert_allclose(found["x"], first["x"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "name", "cause"),
    [
        ("on the edge", "an arc", C.HYBRID_TINY_STEPS),
        ("poles", "an inverse", C.HYBRID_WRONG_INERTIA),
        ("on the edge", "a corner of a norm", C.HYBRID_NO_DESCENT),
    ],
)
def test_stalled_solve_has_a_cause(kind: str, name: str, cause: int) -> None:
    case = PROBLEMS[kind][name]
    solver, _ = solved((case.nlp, case.call), {"mu_init": 0.1})
    assert solver.stats()["stop_reason"] == "STALLED"
    assert CAUSES[cause] in solver.stats()["detail"]
