"""Constraints named as contradicting each other do so: linear programs and CasADi's derivatives."""

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from support.cases.nlp import solved
from support.problems.verdicts import case_of, read

from casadi_hybrid import Result
from casadi_hybrid.solver.explain import conflict as search
from casadi_hybrid.solver.explain.conflict import Conflict, Member, conflicting_set
from casadi_hybrid.solver.explain.diagnosis import runs

INF = np.inf
Nlp = dict[str, Any]


def conflict_of(nlp: Nlp, call: dict[str, Any], **options: Any) -> Conflict:
    """The conflict, proven infeasible and irreducible here."""
    result = solved(nlp, {"max_iter": 500, **options}, **call).result
    assert result.point.name == "INFEASIBLE_STATIONARY"
    conflict = conflicting_set(result)
    J = ca.Function("J", [nlp["x"]], [ca.jacobian(nlp["g"], nlp["x"])])(result.x).full()
    J[np.abs(J) < 1e-8] = 0.0  # as zero as the point is stationary
    assert not feasible(conflict.members, conflict.reach, J, result)
    assert conflict.irreducible
    for left_out in conflict.members:
        others = [member for member in conflict.members if member is not left_out]
        assert feasible(others, conflict.reach, J, result), left_out
    assert "\n".join(conflict.sentences()) in result.explain()
    return conflict


def feasible(members: Any, reach: float, J: Any, result: Result) -> bool:
    """True if a move of x meets the linearized constraints, without scales and signs."""
    n, B = result.x.size, result.bounds
    of_kind = {"g": (J, result.g, B.lbg, B.ubg), "x": (np.eye(n), result.x, B.lbx, B.ubx)}
    rows, low, high = [np.zeros(n)], [-INF], [INF]
    for member in members:
        row, value, lower, upper = (part[member.index] for part in of_kind[member.kind])
        assert member.bound == (upper if member.side > 0 else lower)
        assert (member.side == 0) == (lower == upper)
        rows.append(row)
        low.append(lower - value if member.side <= 0 else -INF)
        high.append(upper - value if member.side >= 0 else INF)
    moves = Bounds(-reach, reach)
    done = milp(np.zeros(n), bounds=moves, constraints=LinearConstraint(np.array(rows), low, high))
    assert done.status in (0, 2)
    return done.status == 0


def names(conflict: Conflict, side: int | None = None) -> set[str]:
    return {m.name for m in conflict.members if side is None or m.side == side}


@pytest.mark.parametrize("first", [True, False])
def test_unreachable_end_contradicts_input_limits(first: bool) -> None:
    """3 m within 2 s at rest on both ends, |u| ≤ 1: in reach is 1 m; dynamics are summed up."""
    N, dt = 20, 0.1
    S, U = ca.SX.sym("S", 2, N + 1), ca.SX.sym("U", N)  # position and speed, acceleration
    rows = [S[:, k + 1] - S[:, k] - dt * ca.vertcat(S[1, k], U[k]) for k in range(N)]
    rows += [S[:, N]] + ([S[:, 0]] if first else [])
    nlp = {"x": ca.veccat(S, U), "f": ca.sumsqr(U), "g": ca.vertcat(*rows)}
    labels = [f"{state}[{k}]" for k in range(N + 1) for state in ("position", "speed")]
    labels += [f"u[{k}]" for k in range(N)]
    goal = np.zeros(nlp["g"].numel())
    goal[2 * N] = 3.0
    most = np.concatenate((np.full(2 * N + 2, INF), np.full(N, 1.0)))
    if not first:
        most[:2] = 0.0  # the first state by its bounds instead of by rows
    call = {"x0": 0, "lbx": -most, "ubx": most, "lbg": goal, "ubg": goal}
    conflict = conflict_of(nlp, call, variable_names=labels)
    assert {"g[40]", "g[41]"} <= names(conflict, 0)
    assert {"u[0]", "u[1]"} <= names(conflict, 1)
    assert {"u[18]", "u[19]"} <= names(conflict, -1)
    assert first or {"position[0]", "speed[0]"} <= names(conflict, 0)
    assert len(conflict.sentences()) < 12  # however many links there are


X = ca.SX.sym("x", 2)
# Programs as in data/verdicts.json, and the names and sides of their smallest conflict.
CONFLICTS = read("conflicts")


@pytest.mark.parametrize("label", CONFLICTS)
def test_smallest_conflict_is_named(label: str) -> None:
    entry = dict(CONFLICTS[label])
    members = entry.pop("members")
    case = case_of(label, entry)
    conflict = conflict_of(case.nlp, case.call)
    assert {member.name: member.side for member in conflict.members} == members
    assert label != "elsewhere" or any(member.curved for member in conflict.members)
    assert all(name in "\n".join(conflict.sentences()) for name in members)


def test_moves_are_limited_to_the_size_of_x() -> None:
    """Discs whose gradients at the returned point are made to differ a little from a line's."""
    discs = ca.vertcat(ca.sumsqr(X), ca.sumsqr(X - ca.DM([5, 0])))
    result = solved({"x": X, "f": X[1], "g": discs}, x0=[2, 3], ubg=1).result
    J = np.array([[5.0, 1e-4], [-5.0, 1e-4]])
    bent = replace(result, end=replace(result.end, J=J))
    conflict = conflicting_set(bent)
    assert conflict.reach == max(1.0, np.abs(result.x).max())
    assert feasible(conflict.members, INF, J, result)
    assert not feasible(conflict.members, conflict.reach, J, result)
    assert names(conflict, 1) == {"g[0]", "g[1]"}
    assert conflict.irreducible


def test_unfinished_solve_names_no_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "linprog", lambda *args, **options: pytest.fail("searched"))
    nlp = {"x": X, "f": ca.sumsqr(X), "g": ca.sum1(X)}
    assert solved(nlp, lbg=1).result.explain()
    assert solved(nlp, {"max_iter": 0}, x0=9, ubg=1, lbg=1).result.explain()


def test_failing_search_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = {"x": X, "f": ca.sumsqr(X), "g": ca.vertcat(ca.sum1(X), ca.sum1(X))}
    result = solved(nlp, lbg=[0, 1], ubg=[0, 1]).result
    assert conflicting_set(result) is not None
    undefined = (replace(result, g=np.array([value, 0.0])) for value in (np.nan, INF))
    for broken in (replace(result, end=None), *undefined):
        assert conflicting_set(broken) is None
        assert broken.explain()
    monkeypatch.setattr(search, "linprog", lambda *args, **options: 1 // 0)
    assert conflicting_set(result) is None
    assert result.explain()


def test_names_in_a_row_are_shortened() -> None:
    for short, whole in (
        ("a", ["a"]),
        ("u[0] … u[19]", [f"u[{k}]" for k in range(20)]),
        ("x[2], x[5], …, x[59]", [f"x[{k}]" for k in range(2, 60, 3)]),
        ("a, b, c, d, e, f and 2 more", [*"abcdefgh"]),
        ("X[1, 0] (a.py:12) … X[1, 2] (a.py:12)", [f"X[1, {k}] (a.py:12)" for k in range(3)]),
        ("some of g[0] … g[13]", [f"g[{k}]" for k in (0, 1, 3, 4, 6, 7, 9, 10, 12, 13)]),
    ):
        assert runs(whole) == short


def test_many_links_are_summed_up() -> None:
    links = tuple(Member("g", k, f"g[{k}]", 0, 0.0, True, 0.1) for k in range(9))
    end = Member("g", 9, "goal", 0, 5.0, True, 1.0)  # joins variables too, but is violated most
    limit = Member("x", 0, "u", 1, 1.0, False, 0.0)
    uneven = tuple(Member("x", k, f"x[{k}]", -1, k / 7, False, 0.0) for k in range(9))
    for members, lines in (
        ((*links, end, limit), ["goal = 5", "u ≤ 1", "g[0] … g[8]"]),
        ((*links[:3], limit), ["g[0] … g[2] = 0", "u ≤ 1"]),
        (links, ["g[0] … g[8] = 0"]),
        (uneven, ["x[0] … x[8]"]),
    ):
        _, *sentences = Conflict(members, INF, True).sentences()
        assert all(part in line for line, part in zip(sentences, lines, strict=False))
    assert "2.5" in Conflict((*links[:3], limit), 2.5, False).sentences()[0]
