"""The judge of the comparison calls a solution a solution and nothing else."""

import casadi as ca
import numpy as np
import pytest
from peers.cases import SETS, Case, cases, moved
from peers.judge import Judge
from peers.solvers import SOLVERS, claim
from peers.workers import Answer, solve
from wheel_peers import judged, summary


def projection(target: float = 2.0) -> Case:
    """min (x1 − target)² + x2² subject to x1 + x2 = 1, x1 ≤ 0.5: x* = (0.5, 0.5)."""
    x = ca.SX.sym("x", 2)
    data = {
        "x": x,
        "f": (x[0] - target) ** 2 + x[1] ** 2,
        "g": x[0] + x[1],
        "lbx": [-np.inf, -np.inf],
        "ubx": [0.5, np.inf],
        "lbg": [1.0],
        "ubg": [1.0],
    }
    return Case("projection", "hs", lambda: data, (0.0, 0.0), 2.5)


def kind(case: Case, **answer) -> str:
    return judged(case, Judge(case.build()), Answer("returned", **answer)).kind


def test_given_multipliers_count():
    residual = Judge(projection().build()).residual((0.5, 0.5), (-1.0,), (4.0, 0.0))
    assert residual == pytest.approx(0.0, abs=1e-12)


def test_multipliers_are_fitted_where_there_are_none():
    for lam_g, lam_x in (((np.nan,), (np.nan, np.nan)), ((0.0,), (0.0, 0.0))):
        residual = Judge(projection().build()).residual((0.5, 0.5), lam_g, lam_x)
        assert residual == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("x", [(0.5, 0.51), (0.4, 0.6), (0.6, 0.4), (np.nan, 0.5)])
def test_other_points_are_not_solved_whatever_is_claimed(x):
    answer = {"x": x, "lam_g": (-1.0,), "lam_x": (4.0, 0.0)}
    assert kind(projection(), claim="success", **answer) == "false"
    assert kind(projection(), claim="failed", **answer) == "honest"
    assert kind(projection(), claim="infeasible", **answer) == "wrong"


def test_multipliers_of_the_wrong_sign_do_not_count():
    """x1 ≤ 0.5 pulls at (0.5, 0.5) when the target is −2: the point is no minimizer."""
    answer = {"x": (0.5, 0.5), "lam_g": (-1.0,), "lam_x": (-4.0, 0.0)}
    assert kind(projection(-2.0), claim="success", **answer) == "false"


def test_infeasibility_is_confirmed_at_stationary_points_alone():
    x = ca.SX.sym("x")
    data = {
        "x": x,
        "f": x,
        "g": ca.vertcat(x**2 + 1, x),
        "lbx": [-np.inf],
        "ubx": [np.inf],
        "lbg": [0.0, -5.0],
        "ubg": [0.0, 5.0],
    }
    case = Case("gap", "hs", lambda: data, (3.0,), None)
    empty = {"lam_g": (0.0, 0.0), "lam_x": (0.0,), "claim": "infeasible"}
    assert kind(case, x=(0.0,), **empty) == "verdict"
    assert kind(case, x=(1.0,), **empty) == "wrong"


def test_unboundedness_is_confirmed_by_the_value():
    x = ca.SX.sym("x")
    data = {"x": x, "f": -x, "g": ca.SX(0, 1), "lbx": [0], "ubx": [np.inf], "lbg": [], "ubg": []}
    case = Case("ray", "hs", lambda: data, (1.0,), None)
    assert kind(case, x=(1e11,), lam_x=(0.0,), claim="unbounded") == "verdict"
    assert kind(case, x=(1e3,), lam_x=(0.0,), claim="unbounded") == "wrong"


@pytest.mark.parametrize(
    ("stats", "word"),
    [
        ({"success": True, "return_status": "infeasible"}, "success"),
        ({"return_status": "Infeasible_Problem_Detected"}, "infeasible"),
        ({"return_status": "Diverging_Iterates"}, "unbounded"),
        ({"return_status": "Maximum_Iterations_Exceeded"}, "limit"),
        ({"return_status": None, "unified_return_status": "SOLVER_RET_LIMITED"}, "limit"),
        ({"return_status": "Converged with feasible KKT point"}, "failed"),
    ],
)
def test_claims(stats, word):
    assert claim(stats) == word


@pytest.mark.parametrize("solver", ["hybrid", "ipopt", "sqpmethod qrqp", "uno filtersqp"])
def test_solvers_end_to_end(solver, capfd):
    case = next(case for case in cases("hs") if case.name == "HS35")
    answer = solve(solver, case.group, case.name, case.x0, 1)
    outcome = judged(case, Judge(case.build()), answer)
    assert outcome.kind == "solved"
    assert answer.iterations > 0
    table = summary({solver: {case.name: outcome}})
    assert table.splitlines()[1].split()[len(solver.split())] == "1"


def test_sets_and_starts():
    names = [case.name for group in SETS for case in cases(group)]
    assert len(names) == len(set(names))
    first = cases("more")[0]
    assert moved(first, 0.5, 1) == moved(first, 0.5, 1)
    assert moved(first, 0.5, 1).x0 != moved(first, 0.5, 2).x0
    assert set(SOLVERS) >= {"hybrid", "ipopt"}
