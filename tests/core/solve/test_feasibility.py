"""The least violation in C: its certificate by formulas, and solves that end there."""

import ctypes as ct
import re
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import linprog
from support.cases.core import NUMBER, solved
from support.judges.standard_form import Form
from support.problems.verdicts import PROBLEMS

from casadi_hybrid import Problem
from casadi_hybrid.core.export.core import core_sources
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

    def __init__(self, x0: np.ndarray, scale: np.ndarray) -> None:
        self.g = ca.Function("g", [X], [G])
        self.J = ca.Function("J", [X], [ca.jacobian(G, X)])
        self.H = [ca.Function("H", [X], [ca.hessian(G[i], X)[0]]) for i in range(G.numel())]
        self.J0, self.scale = self.J(x0).full(), scale

    def violation(self, x: np.ndarray) -> np.ndarray:
        g = self.g(x).full().ravel()
        return np.maximum(g - ROWS["ubg"], 0) - np.maximum(ROWS["lbg"] - g, 0)

    def slope(self, x: np.ndarray, u: np.ndarray) -> float:
        """Of u'g at x, u being the pull at each row."""
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
        problem = Problem.from_nlp({"x": X, "f": X[0] ** 2, "g": G})
        self.form_of = Form(problem, problem.numbers(x0=x0, **ROWS, **BOX))
        data, core = self.form_of.data, self.form_of.core
        self.J0 = self.form_of.of_point("raw_J", data.nnz_J).copy()
        self.scale = self.form_of.of_form("scale_c", data.m)
        self.formula = Formula(x0, self.scale)
        core.hybrid_violation_slope.restype = NUMBER
        core.hybrid_violation_slope_doubles.restype = ct.c_longlong
        room = core.hybrid_violation_slope_doubles(ct.byref(data))
        self._W, self._work = np.zeros(data.nnz_W), np.zeros(room)

    def at(self, x: np.ndarray) -> None:
        """Evaluate at x, slacks anywhere."""
        free = x[FREE]
        assert self.form_of.evaluate(np.concatenate((free, np.ones(self.form_of.data.n - 4)))) == 0

    def slope(self, y: np.ndarray | None) -> float:
        self._work[:] = np.nan
        given = (self.J0, y, self._W, self._work)
        return float(self.form_of.call("hybrid_violation_slope", *given))


def random_points(count: int) -> list[np.ndarray]:
    draws = np.random.default_rng(5)
    found = []
    for _ in range(count):
        x = np.array([*draws.uniform(-1, 1, 2), *draws.normal(size=1), 2, draws.uniform(-3, 0.5)])
        x[1] = abs(x[1])
        on = draws.integers(0, 3, 5)  # some entries on a bound
        x = np.where((on == 1) & np.isfinite(BOX["lbx"]), BOX["lbx"], x)
        found.append(np.where((on == 2) & np.isfinite(BOX["ubx"]), BOX["ubx"], x))
    return found


def test_the_slope_of_the_squared_violation_is_that_of_the_formula() -> None:
    one = Certificate()
    assert one.scale[1] < 1.0
    for x in random_points(200):
        one.at(x)
        u = np.zeros(4)
        u[KEPT] = one.scale**2 * one.formula.violation(x)[KEPT]
        wanted = one.formula.slope(x, u)
        assert one.slope(None) == pytest.approx(wanted, rel=1e-10)


def test_the_slope_of_the_sum_is_that_of_its_subgradient() -> None:
    one, draws, refused = Certificate(), np.random.default_rng(6), 0
    for x in random_points(200):
        one.at(x)
        v = one.formula.violation(x)[KEPT]
        y = np.where(v != 0.0, 7 * np.sign(v), 7 * draws.uniform(-1, 1, 3))
        u = np.zeros(4)
        u[KEPT] = one.scale * y
        wanted = one.formula.slope(x, u)
        assert one.slope(y) == pytest.approx(wanted, rel=1e-10)
        first = np.argmax(np.abs(v) * one.scale)
        weak = np.where(np.arange(3) == first, 0.9 * y, y)
        if np.abs(weak).max() < 7 * 0.95:
            continue  # all of them are weaker alike: a subgradient of a smaller force
        refused += 1
        assert one.slope(weak) == 1.0
    assert refused > 50


def test_without_a_force_there_is_no_subgradient() -> None:
    one = Certificate()
    one.at(random_points(1)[0])
    assert one.slope(np.zeros(3)) == 1.0


def three_values() -> Made:
    """More equations than unknowns, between bounds: least squares from where the filter blocks."""
    x = ca.SX.sym("x", 2)
    g = ca.vertcat(x[0] ** 2 + x[1] - 1, x[0] - 2 * x[1], ca.exp(x[1]) - 3)
    numbers = {"x0": [0.4, 0.2], "lbx": -1, "ubx": 0.6, "lbg": 0, "ubg": 0}
    return {"x": x, "f": ca.sumsqr(x), "g": g}, numbers


def point_mass(N: int = 25) -> Callable[[], Made]:
    """It cannot be in time: the sum of the violations is stationary."""

    def made() -> Made:
        p, v, u = ca.SX.sym("p", N + 1), ca.SX.sym("v", N + 1), ca.SX.sym("u", N)
        rows = [p[0], v[0], p[-1] - 1, v[-1]]
        rows += [p[1:] - p[:-1] - v[:-1] / N, v[1:] - v[:-1] - (ca.sin(u) - 0.1 * v[:-1] ** 3) / N]
        free, most = [INF] * (2 * N + 2), [1.0] * N
        bounds = {"lbx": [-one for one in free + most], "ubx": free + most, "lbg": 0, "ubg": 0}
        nlp = {"x": ca.vertcat(p, v, u), "f": ca.sumsqr(u), "g": ca.vertcat(*rows)}
        return nlp, {"x0": 0, **bounds}

    return made


RUNS = {
    "a steep row": lambda: ((case := PROBLEMS["infeasible"]["a steep row"]).nlp, case.call),
    "more equations than unknowns": three_values,
    "a point mass": point_mass(),
}


@pytest.mark.parametrize("name", RUNS)
def test_infeasibility_is_proved(name: str) -> None:
    """No first-order move from x inside the bounds makes the scaled violation less, in one norm."""
    solver, found = solved(RUNS[name]())
    stats = solver.stats()
    assert stats["stop_reason"] == "LOCALLY_INFEASIBLE"
    assert stats["point_status"] == "INFEASIBLE_STATIONARY"
    assert solver.result.certificate <= 1e-5
    problem, numbers = RUNS[name]()
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
    """By how much the sum of the violations of room by Jd falls where low <= d <= high."""
    m, n = J.shape
    one, zero = np.eye(m), np.zeros((m, m))
    rows = np.block([[J, -one, zero], [-J, zero, -one]])
    ends = np.r_[room[1], -room[0]]
    kept = np.isfinite(ends)
    bounds = [*zip(np.minimum(low, 0), np.maximum(high, 0), strict=True), *[(0, None)] * (2 * m)]
    cost = np.r_[np.zeros(n), np.ones(2 * m)]
    found = linprog(cost, rows[kept], ends[kept], bounds=bounds)
    return float(np.maximum(-ends, 0).sum() - found.fun)


def test_a_warm_start_of_an_infeasible_problem_ends_there_too() -> None:
    """Also where no iterate is nearer to a solution than the start: it is judged at its end."""
    _, first = solved(three_values())
    start = {"x0": first["x"], "lam_x0": first["lam_x"], "lam_g0": 0.1 + first["lam_g"]}
    solver, found = solved(three_values(), **start)
    assert solver.stats()["stop_reason"] == "LOCALLY_INFEASIBLE"
    np.testing.assert_allclose(found["x"], first["x"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "name", "cause"),
    [
        ("on the edge", "an arc", 1),
        ("poles", "an inverse", 2),
        ("on the edge", "a corner of a norm", 4),
    ],
)
def test_a_solve_without_a_way_on_says_why(kind: str, name: str, cause: int) -> None:
    case = PROBLEMS[kind][name]
    solver, _ = solved((case.nlp, case.call), {"mu_init": 0.1})
    assert solver.stats()["stop_reason"] == "STALLED"
    assert solver.stats()["detail"].endswith(CAUSES[cause])


def test_causes_have_the_numbers_of_the_header() -> None:
    text = core_sources()["hybrid.h"]
    body = text[text.index("HYBRID_TINY_STEPS") :].partition("}")[0]
    assert [int(number) for number in re.findall(r"= (\d+)", body)] == list(CAUSES)
