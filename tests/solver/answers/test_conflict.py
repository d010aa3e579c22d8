"""Constraints named as contradicting each other do so: linear programs and CasADi's derivatives."""

import time
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import linprog
from support.cases.nlp import solved

from casadi_hybrid import Result
from casadi_hybrid.solver.explain import conflict as search
from casadi_hybrid.solver.explain.conflict import Conflict, Member, conflicting_set
from casadi_hybrid.solver.explain.diagnosis import runs

INF = np.inf
Nlp = dict[str, Any]


def conflict_of(nlp: Nlp, call: dict[str, Any], **options: Any) -> tuple[Conflict, str]:
    """The conflict, proven infeasible and irreducible here, and the text."""
    result = solved(nlp, {"max_iter": 500, **options}, **call).result
    assert result.point.name == "INFEASIBLE_STATIONARY"
    found = conflicting_set(result)
    J = ca.Function("J", [nlp["x"]], [ca.jacobian(nlp["g"], nlp["x"])])(result.x).full()
    J[np.abs(J) < 1e-8] = 0.0  # as zero as the point is stationary
    assert not feasible(found.members, found.reach, J, result)
    assert found.irreducible
    for left_out in found.members:
        others = [one for one in found.members if one is not left_out]
        assert feasible(others, found.reach, J, result), left_out
    text = result.explain()
    assert all(line in text for line in found.sentences())
    assert max(map(len, found.sentences())) <= 100
    return found, text


def feasible(members: Any, reach: float, J: Any, result: Result) -> bool:
    """Whether a move of x meets the linearizations of these constraints (no scales, no signs)."""
    n = result.x.size
    rows = np.zeros((len(members), n))
    low, high = np.full(len(members), -INF), np.full(len(members), INF)
    B = result.bounds
    for k, one in enumerate(members):
        i = one.index
        value, lower, upper = (
            (result.g[i], B.lbg[i], B.ubg[i]) if one.kind == "g" else
            (result.x[i], B.lbx[i], B.ubx[i])
        )  # fmt: skip
        rows[k] = J[i] if one.kind == "g" else np.eye(n)[i]
        assert one.bound == (upper if one.side > 0 else lower)
        assert (one.side == 0) == (lower == upper)
        if one.side <= 0:
            low[k] = lower - value
        if one.side >= 0:
            high[k] = upper - value
    is_low, is_high = np.isfinite(low), np.isfinite(high)
    A = np.vstack((rows[is_high], -rows[is_low]))
    b = np.concatenate((high[is_high], -low[is_low]))
    if not b.size:
        return True
    done = linprog(np.zeros(n), A_ub=A, b_ub=b, bounds=(-reach, reach), method="highs")
    assert done.status in (0, 2)
    return done.status == 0


def names(found: Conflict, side: int | None = None) -> set[str]:
    return {one.name for one in found.members if side is None or one.side == side}


def double_integrator(N: int, first: bool) -> Nlp:
    """States (position, speed) behind each other, then inputs; rows: dynamics, end, first state."""
    X, U, dt = ca.SX.sym("X", 2, N + 1), ca.SX.sym("U", N), 0.1
    rows = [X[:, k + 1] - X[:, k] - dt * ca.vertcat(X[1, k], U[k]) for k in range(N)]
    rows += [X[:, N]] + ([X[:, 0]] if first else [])
    return {"x": ca.veccat(X, U), "f": ca.sumsqr(U), "g": ca.vertcat(*rows)}


def state_names(N: int) -> list[str]:
    states = [f"{one}[{k}]" for k in range(N + 1) for one in ("position", "speed")]
    return states + [f"u[{k}]" for k in range(N)]


@pytest.mark.parametrize("first", [True, False])
def test_an_end_state_out_of_reach_contradicts_the_limits(first: bool) -> None:
    """3 m within 2 s at rest on both ends, |u| ≤ 1: in reach is 1 m; dynamics are summed up."""
    N = 20
    nlp = double_integrator(N, first)
    end = 2 * N
    goal = np.zeros(nlp["g"].numel())
    goal[end] = 3.0
    least = np.concatenate((np.full(end + 2, -INF), np.full(N, -1.0)))
    most = -least
    if not first:
        least[:2] = most[:2] = 0.0  # the first state by its bounds instead of by rows
    call = {"x0": 0, "lbx": least, "ubx": most, "lbg": goal, "ubg": goal}
    found, text = conflict_of(nlp, call, variable_names=state_names(N))
    assert {f"g[{end}]", f"g[{end + 1}]"} <= names(found, 0)
    assert {"u[0]", "u[1]"} <= names(found, 1)
    assert {"u[18]", "u[19]"} <= names(found, -1)
    assert f"  g[{end}] = 3\n" in text
    assert "u[0] … u[" in text
    assert "equations that link variables)" in text
    assert "through g[0] … g[" in text
    if not first:
        assert "position[0], speed[0] = 0 (fixed by equal bounds)" in text
    assert "Without any one of them the others can hold" in text


def test_a_first_state_outside_path_limits_is_named_alone() -> None:
    N = 10
    nlp = double_integrator(N, first=False)
    nlp["g"] = ca.vertcat(nlp["g"], nlp["x"][1 : 2 * N + 2 : 2])  # speeds
    m, path = nlp["g"].numel(), N + 1
    least = np.concatenate((np.full(2 * N + 2, -INF), np.full(N, -9.0)))
    most = -least
    least[:2] = most[:2] = (0.0, 2.0)
    lbg, ubg = np.zeros(m), np.zeros(m)
    lbg[-path:], ubg[-path:] = -1.0, 1.0
    rows = [f"row[{i}]" for i in range(m - path)] + [f"limit[{k}]" for k in range(path)]
    call = {"x0": 0, "lbx": least, "ubx": most, "lbg": lbg, "ubg": ubg}
    found, text = conflict_of(nlp, call, variable_names=state_names(N), constraint_names=rows)
    assert names(found) == {"speed[0]", "limit[0]"}
    assert "  speed[0] = 2 (fixed by equal bounds)\n  limit[0] ≤ 1\n" in text


X = ca.SX.sym("x", 2)


def test_two_discs_apart() -> None:
    discs = ca.vertcat(ca.sumsqr(X), ca.sumsqr(X - ca.DM([5, 0])), X[1])
    call = {"x0": [2, 3], "ubg": [1, 1, 7]}
    found, text = conflict_of({"x": X, "f": X[1], "g": discs}, call)
    assert names(found, 1) == {"g[0]", "g[1]"}
    assert "  g[0], g[1] ≤ 1\n" in text
    assert "link variables" not in text


def test_a_conflict_of_nonlinear_rows_is_a_local_one() -> None:
    """cos 4 x0 = -1 at 0.79, and not where 0.9 <= x0 <= 1."""
    nlp = {"x": X, "f": ca.sumsqr(X), "g": ca.vertcat(ca.cos(4 * X[0]), X[0])}
    _, text = conflict_of(nlp, {"x0": 0.95, "lbg": [-1, 0.9], "ubg": [-1, 1]})
    assert "Nonlinear ones may hold together elsewhere" in text


def test_a_row_against_a_box() -> None:
    nlp = {"x": X, "f": ca.sum1(X), "g": ca.vertcat(X[0] - X[1], ca.sum1(X))}
    call = {"x0": 0.5, "lbx": 0, "ubx": 1, "lbg": [-3, 3]}
    found, text = conflict_of(nlp, call, constraint_names=["free", "total"])
    assert [(one.name, one.side, one.bound) for one in found.members] == [
        ("total", -1, 3.0), ("x[0]", 1, 1.0), ("x[1]", 1, 1.0)
    ]  # fmt: skip
    assert "  total ≥ 3\n" in text
    assert "  x[0], x[1] ≤ 1\n" in text


def test_gradients_that_leave_a_way_far_out_are_no_way_out() -> None:
    """Discs whose gradients at the returned point are made to differ a little from a line's."""
    discs = ca.vertcat(ca.sumsqr(X), ca.sumsqr(X - ca.DM([5, 0])))
    result = solved({"x": X, "f": X[1], "g": discs}, x0=[2, 3], ubg=1).result
    J = np.array([[5.0, 1e-4], [-5.0, 1e-4]])
    bent = replace(result, end=replace(result.end, J=J))
    found = conflicting_set(bent)
    assert found.reach == max(1.0, np.abs(result.x).max())
    assert feasible(found.members, INF, J, result)
    assert not feasible(found.members, found.reach, J, result)
    assert names(found, 1) == {"g[0]", "g[1]"}
    assert found.irreducible
    assert f"for moves of x up to {found.reach:.3g}):" in bent.explain()


def test_the_filter_leaves_out_what_is_not_needed() -> None:
    """From all constraints, equations between variables go first: here the one in the middle."""
    total = ca.sum1(X)
    nlp = {"x": X, "f": ca.sumsqr(X), "g": ca.vertcat(total, total, X[0] - X[1])}
    call = {"lbx": 0, "ubx": 1, "lbg": [3, 4, 0], "ubg": [INF, 4, 0]}
    system = search._System.of(solved(nlp, **call).result)
    chosen, irreducible = system._filtered(np.arange(len(system.members)), INF)
    assert irreducible
    kept = {(system.members[i].name, system.members[i].side) for i in chosen}
    assert kept == {("g[0]", -1), ("x[0]", 1), ("x[1]", 1)}


@pytest.mark.parametrize("g", [X[0] ** 2 + 1, ca.sin(X[0]) + 2, 3 + 0 * X[1]])
def test_one_row_that_cannot_be_met_at_all(g: Any) -> None:
    nlp = {"x": X, "f": ca.sumsqr(X), "g": ca.vertcat(X[1], g)}
    found, text = conflict_of(nlp, {"x0": [0.7, 1], "ubg": [2, 0]}, constraint_names=["a", "b"])
    assert names(found) == {"b"}
    assert "b ≤ 0 cannot be met on its own" in text


def test_sparse_derivatives_give_a_conflict_too() -> None:
    n = 200
    x = ca.SX.sym("x", n)
    nlp = {"x": x, "f": ca.sumsqr(x), "g": x[1:] - x[:-1]}
    least = np.full(n, -INF)
    least[-1] = 150.0
    most = np.full(n, INF)
    most[0] = 0.0
    found, text = conflict_of(nlp, {"lbg": -INF, "ubg": 0.5, "lbx": least, "ubx": most})
    assert len(found.members) == n + 1
    assert "  x[199] ≥ 150\n" in text
    assert "  g[0] … g[198] ≤ 0.5 (199 limits)\n" in text


def test_solved_and_unfinished_solves_name_no_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a linear program was asked for")

    monkeypatch.setattr(search, "linprog", never)
    nlp = {"x": X, "f": ca.sumsqr(X), "g": ca.sum1(X)}
    assert solved(nlp, lbg=1).result.success
    early = solved(nlp, {"max_iter": 0}, x0=9, ubg=1, lbg=1).result
    assert "contradict each other (" not in early.explain()


def test_nothing_that_fails_in_the_search_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = {"x": X, "f": ca.sumsqr(X), "g": ca.vertcat(ca.sum1(X), ca.sum1(X))}
    result = solved(nlp, lbg=[0, 1], ubg=[0, 1]).result
    assert "contradict each other (" in result.explain()
    assert conflicting_set(replace(result, end=None)) is None
    for value in (np.nan, INF):
        broken = replace(result, g=np.array([value, 0.0]))
        assert conflicting_set(broken) is None
        assert broken.explain()
    monkeypatch.setattr(search, "_LARGEST", 1)
    assert conflicting_set(result) is None
    monkeypatch.undo()

    def fails(*_: Any, **__: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(search, "linprog", fails)
    assert "contradict each other (" not in result.explain()


def test_the_search_is_soon_over() -> None:
    """200 steps of the double integrator, 1004 rows and bounds."""
    N = 200
    nlp = double_integrator(N, first=True)
    goal = np.zeros(nlp["g"].numel())
    goal[2 * N] = 1e3
    least = np.concatenate((np.full(2 * N + 2, -INF), np.full(N, -1.0)))
    call = {"x0": 0, "lbx": least, "ubx": -least, "lbg": goal, "ubg": goal}
    # Linear, so the contradiction is there at every point.
    result = solved(nlp, {"max_iter": 5}, **call).result
    began = time.perf_counter()
    said = conflicting_set(result).sentences()
    assert time.perf_counter() - began < 5.0
    assert f"  g[{2 * N}] = 1000" in said
    assert len(said) < 12


def test_names_in_a_row_are_written_short() -> None:
    assert runs(["a"]) == "a"
    assert runs([f"u[{k}]" for k in range(20)]) == "u[0] … u[19]"
    assert runs([f"x[{k}]" for k in range(2, 60, 3)]) == "x[2], x[5], …, x[59]"
    assert runs(["u[0]", "u[1]", "v[2]", "goal"]) == "u[0], u[1], v[2], goal"
    assert runs(["pair 1", "pair 2", "pair 3"]) == "pair 1 … pair 3"
    stages = [f"X[1, {k}] (race.py:12)" for k in range(3)]
    assert runs(stages) == f"{stages[0]} … {stages[2]}"
    assert runs(list("abcdefgh")) == "a, b, c, d, e, f and 2 more"
    scattered = [f"g[{k}]" for k in (0, 1, 3, 4, 6, 7, 9, 10, 12, 13)]
    assert runs(scattered) == "some of g[0] … g[13]"


def test_links_are_summed_up_where_they_are_many() -> None:
    links = [Member("g", k, f"g[{k}]", 0, 0.0, True, 0.1) for k in range(9)]
    end = Member("g", 9, "goal", 0, 5.0, True, 1.0)  # joins variables too, but is violated most
    limit = Member("x", 0, "u", 1, 1.0, False, 0.0)
    said = Conflict((*links, end, limit), INF, True).sentences()
    assert said[1:4] == [
        "  goal = 5", "  u ≤ 1", "  through g[0] … g[8] (9 equations that link variables)"
    ]  # fmt: skip
    few = Conflict((*links[:3], limit), 2.5, False).sentences()
    assert "for moves of x up to 2.5" in few[0]
    assert few[1:3] == ["  g[0] … g[2] = 0 (3 equations)", "  u ≤ 1"]
    assert few[3] == "Relax or correct one of them."
    alone = Conflict(tuple(links), INF, True).sentences()
    assert alone[1] == "  g[0] … g[8] = 0 (9 equations)"
    uneven = [Member("x", k, f"x[{k}]", -1, k / 7, False, 0.0) for k in range(9)]
    said = Conflict(tuple(uneven), INF, True).sentences()
    assert said[1] == "  x[0] … x[8] ≥ their lower bounds (9 bounds)"
