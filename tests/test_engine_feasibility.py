"""The least violation in C: its certificate by formulas, its proofs, and runs that end there."""

from __future__ import annotations

import ctypes as ct
import re
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
from engine_cases import NUMBER, needs_engine, solved
from nlp_edge_cases import ALL
from nlp_verdict_cases import INFEASIBLE as CASES
from problems.hopeless import TRAPS
from test_engine_pieces import Twins

from casadi_hybrid import Problem
from casadi_hybrid.attempts import compiled
from casadi_hybrid.engine.cold import CAUSES
from casadi_hybrid.engine.library import core_sources
from casadi_hybrid.standard_form.certificate import violation_slope

INF = np.inf
Made = tuple[dict[str, Any], dict[str, Any]]


@pytest.fixture(autouse=True)
def core() -> None:
    needs_engine()


# --- the certificate ------------------------------------------------------------------------------

X = ca.SX.sym("x", 5)
# An equation, a steep row with one bound, one with two, one without a bound; x[3] is fixed.
G = ca.vertcat(
    ca.sumsqr(X) - 4, 400 * (X[0] * X[1] - X[2]), ca.sin(X[0]) + X[3] * X[4] ** 2, ca.exp(X[1])
)
ROWS = {"lbg": np.array([1, -INF, 3, -INF]), "ubg": np.array([1, -800, 4, INF])}
BOX = {"lbx": np.array([-1, 0, -INF, 2, -3]), "ubx": np.array([1, 2, INF, 2, 0.5])}
FREE, KEPT = [0, 1, 2, 4], [0, 1, 2]


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
        self.twins = Twins(problem, problem.numbers(x0=x0, **ROWS, **BOX))
        data, core = self.twins.data, self.twins.core
        self.J0 = self.twins.of_point("raw_J", data.nnz_J).copy()
        self.scale = self.twins.of_form("scale_c", data.m)
        self.formula = Formula(x0, self.scale)
        core.hybrid_violation_slope.restype = NUMBER
        core.hybrid_violation_slope_doubles.restype = ct.c_longlong
        room = core.hybrid_violation_slope_doubles(ct.byref(data))
        self._W, self._work = np.zeros(data.nnz_W), np.zeros(room)

    def at(self, x: np.ndarray) -> None:
        """Evaluate at x, slacks anywhere."""
        free = x[FREE]
        assert self.twins.evaluate(np.concatenate((free, np.ones(self.twins.data.n - 4)))) == 0

    def slope(self, y: np.ndarray | None) -> float:
        given = (self.J0, y, self._W, self._work)
        return float(self.twins.call("hybrid_violation_slope", *given))

    def twin(self, y: np.ndarray | None) -> float:
        form = self.twins.twin
        return violation_slope(form, form.point(self.twins.of_point("w", form.n).copy()), y)


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
        assert one.twin(None) == pytest.approx(wanted, rel=1e-10)


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
        assert one.twin(y) == pytest.approx(wanted, rel=1e-10)
        first = np.argmax(np.abs(v) * one.scale)
        weak = np.where(np.arange(3) == first, 0.9 * y, y)
        if np.abs(weak).max() < 7 * 0.95:
            continue  # all of them are weaker alike: a subgradient of a smaller force
        refused += 1
        assert one.slope(weak) == one.twin(weak) == 1.0
    assert refused > 50


def test_without_a_force_there_is_no_subgradient() -> None:
    one = Certificate()
    one.at(random_points(1)[0])
    assert one.slope(np.zeros(3)) == one.twin(np.zeros(3)) == 1.0


# --- whole runs -----------------------------------------------------------------------------------


def of_case(name: str) -> Callable[[], Made]:
    return lambda: (CASES[name].nlp, CASES[name].call)


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
    "two rows": of_case("two rows"),
    "row against box": of_case("row against box"),
    "a cycle of strict orders": of_case("a cycle of strict orders"),
    "twenty variables": of_case("twenty variables"),
    "a steep row": of_case("a steep row"),
    "more equations than unknowns": three_values,
    "a point mass": point_mass(),
}


class Ends:
    """Of each run that has ended by itself in C the cause, and its infeasibility multipliers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.causes: list[str] = []
        self.multipliers: list[Any] = []
        outcome = compiled.Handed.outcome

        def noted(handed: Any, *arguments: Any) -> Any:
            self.causes.append(CAUSES.get(handed.cold.state.cause, "a limit"))
            self.multipliers.append(handed.cold.infeasibility())
            return outcome(handed, *arguments)

        monkeypatch.setattr(compiled.Handed, "outcome", noted)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_proves_infeasibility_ends_in_c(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = Ends(monkeypatch)
    found, stats = solved(monkeypatch, RUNS[name], "c")
    runs = len(ends.causes)
    assert runs
    wanted, twin = solved(monkeypatch, RUNS[name], "python")
    assert len(ends.causes) == runs
    assert (stats["engine"], twin["engine"]) == ("c", "python")
    assert stats["stop_reason"] == twin["stop_reason"] == "LOCALLY_INFEASIBLE"
    assert stats["point_status"] == twin["point_status"] == "INFEASIBLE_STATIONARY"
    # Where the violation is least rounding says which step is the last.
    assert abs(stats["iter_count"] - twin["iter_count"]) <= 2 * runs
    alike = 5 if runs > 1 else min(stats["iter_count"], twin["iter_count"]) - 2
    for row in ("obj", "inf_pr", "mu"):
        ours, theirs = (of["iterations"][row][:alike] for of in (stats, twin))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-8, err_msg=row)
    for output in ("x", "f", "g"):
        np.testing.assert_allclose(found[output], wanted[output], rtol=1e-6, atol=1e-6)


def test_a_warm_start_of_an_infeasible_problem_ends_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no iterate is nearer to a solution than the start: it is judged at its end."""
    made = three_values
    first, _ = solved(monkeypatch, made, "python")
    start = {"x0": first["x"], "lam_x0": first["lam_x"], "lam_g0": 0.1 + first["lam_g"]}
    ends = Ends(monkeypatch)
    found, stats = solved(monkeypatch, made, "c", **start)
    assert len(ends.causes) > 1
    wanted, twin = solved(monkeypatch, made, "python", **start)
    assert (stats["engine"], twin["engine"]) == ("c", "python")
    assert stats["stop_reason"] == twin["stop_reason"] == "LOCALLY_INFEASIBLE"
    assert abs(stats["iter_count"] - twin["iter_count"]) <= 2 * len(ends.causes)
    np.testing.assert_allclose(found["x"], wanted["x"], rtol=1e-6, atol=1e-6)


def test_the_multipliers_of_a_least_sum_of_violations_prove_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By CasADi's derivatives: y is ±1 where a row is violated, and J'y lets no variable gain."""
    ends = Ends(monkeypatch)
    found, stats = solved(monkeypatch, point_mass(40), "c")
    (cause,), (y,) = ends.causes, ends.multipliers
    assert stats["engine"] == "c"
    assert cause.startswith("the sum of the violations")
    nlp, numbers = point_mass(40)()
    x, g = found["x"].full().ravel(), found["g"].full().ravel()
    J = ca.Function("J", [nlp["x"]], [ca.jacobian(nlp["g"], nlp["x"])])(x).full()
    y = y / np.abs(y).max()
    violated = np.abs(g) > 1e-3 * np.abs(g).max()
    assert violated.any()
    np.testing.assert_allclose(y[violated], np.sign(g[violated]), atol=1e-2)
    slope = J.T @ y
    lower, upper = np.array(numbers["lbx"]), np.array(numbers["ubx"])
    gains = np.abs(slope) * np.minimum(np.where(slope > 0, x - lower, upper - x), 1)
    assert gains.sum() <= 1e-2 * np.abs(g).sum()  # of any move by at most one


STALLED = {
    "no multipliers: a norm of zero": 1,
    "pole: an inverse": 2,
    "edge: a corner": 4,
    "welded-beam-thin": 5,
}


def of_edge(name: str) -> Callable[[], Made]:
    if name in ALL:
        return lambda: (ALL[name].nlp, ALL[name].call)
    (trap,) = (one for one in TRAPS if one.name == name)

    def made() -> Made:
        of = trap.build()
        return {key: of[key] for key in "xfg"}, {
            "x0": trap.x0,
            **{key: of[key] for key in ("lbx", "ubx", "lbg", "ubg")},
        }

    return made


@pytest.mark.parametrize("name", STALLED)
def test_a_run_without_a_way_on_ends_in_c(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reason; what the point is, and what is tried next, is as in Python."""
    ends = Ends(monkeypatch)
    found, stats = solved(monkeypatch, of_edge(name), "c")
    assert CAUSES[STALLED[name]] in ends.causes
    wanted, twin = solved(monkeypatch, of_edge(name), "python")
    assert stats["stop_reason"] == twin["stop_reason"]
    assert stats["point_status"] == twin["point_status"]
    np.testing.assert_allclose(found["f"], wanted["f"], rtol=1e-6, atol=1e-6)


def test_causes_have_the_numbers_of_the_header() -> None:
    text = core_sources().files["hybrid.h"]
    body = text[text.index("HYBRID_TINY_STEPS") :].partition("}")[0]
    assert [int(number) for number in re.findall(r"= (\d+)", body)] == list(CAUSES)
