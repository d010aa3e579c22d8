"""``nlpsol``: how a solve fails, what it reports, and one solver with many users."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import Any

import casadi as ca
import numpy as np
import pytest
from nlp_cases import CASES, OUTPUTS, numbers

from casadi_hybrid import nlpsol
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.result.record import IterationRecord


def status(f: Any, g: Any, x: Any, **call: Any) -> tuple[dict[str, Any], Any]:
    solver = nlpsol("s", "hybrid", {"x": x, "f": f, "g": g}, {"max_iter": 300})
    found = solver(**call)
    assert all(isinstance(found[key], ca.DM) for key in OUTPUTS)
    return solver.stats(), solver


def test_inconsistent_constraints_are_said_and_named() -> None:
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "f": ca.sumsqr(x), "g": ca.vertcat(ca.sumsqr(x), x[0] - x[1])}
    solver = nlpsol("s", "hybrid", nlp, {"constraint_names": ["radius", "diagonal"]})
    solver(x0=[1, 0.5], lbg=[-2, 0], ubg=[-1, 0])
    stats = solver.stats()
    assert not stats["success"]
    assert stats["unified_return_status"] == "SOLVER_RET_INFEASIBLE", solver.explain()
    text = solver.explain()
    assert "radius = " in text
    assert "above its upper bound -1 by 1" in text
    assert "diagonal" not in text


def test_an_unbounded_problem_is_said() -> None:
    x = ca.SX.sym("x")
    for f, g, call in (
        (x, 0 * x, {}),
        (x, x, {"ubg": 5}),
        (-ca.exp(x), x, {}),
        (x**3, [], {"ubx": 4, "x0": -1}),
    ):
        stats, solver = status(f, g, x, **call)
        assert stats["stop_reason"] == "UNBOUNDED", solver.explain()
        assert not stats["success"]
        assert stats["unified_return_status"] == "SOLVER_RET_UNKNOWN"


def test_a_start_outside_the_domain_is_said() -> None:
    x = ca.SX.sym("x")
    stats, solver = status(ca.log(x), x, x, x0=-1)
    assert stats["stop_reason"] == "EVALUATION_ERROR"
    assert stats["unified_return_status"] == "SOLVER_RET_NAN"
    assert "objective" in stats["detail"]
    assert solver.result.point.name == "UNDEFINED"


def test_everything_fixed_is_only_evaluated() -> None:
    x = ca.SX.sym("x", 2)
    stats, solver = status(ca.sumsqr(x), ca.sum1(x), x, lbx=[1, 2], ubx=[1, 2], ubg=4)
    assert stats["success"]
    np.testing.assert_allclose(solver.result.lam_x, [-2, -4], atol=1e-5)
    stats, _ = status(ca.sumsqr(x), ca.sum1(x), x, lbx=[1, 2], ubx=[1, 2], ubg=2)
    assert not stats["success"]


def test_limits_and_the_callback_stop_a_solve() -> None:
    nlp, call = CASES["no constraints"]
    solver = nlpsol("s", "hybrid", nlp, {"max_iter": 3})
    solver(**call)
    assert solver.stats()["stop_reason"] == "ITERATION_LIMIT"
    assert solver.stats()["unified_return_status"] == "SOLVER_RET_LIMITED"
    assert solver.stats()["iter_count"] == 3

    seen: list[IterationRecord] = []

    def stop_at_five(record: IterationRecord) -> bool:
        seen.append(record)
        return record.iter >= 5

    solver = nlpsol("s", "hybrid", nlp, {"iteration_callback": stop_at_five})
    solver(**call)
    stats = solver.stats()
    assert stats["stop_reason"] == "STOPPED_BY_USER"
    assert not stats["success"]
    assert [record.iter for record in seen] == stats["iterations"]["iter"] == [*range(6)]
    assert [record.obj for record in seen] == stats["iterations"]["obj"]
    check = ca.Function("f", [nlp["x"]], [nlp["f"]])
    for record in seen:
        assert float(check(record.x)) == pytest.approx(record.obj, rel=1e-12)

    solver = nlpsol("s", "hybrid", nlp, {"iteration_callback": lambda at: np.float64(at.iter) > 4})
    solver(**call)
    assert solver.stats()["iter_count"] == 5  # NumPy's True is one

    def slow(record: IterationRecord) -> None:
        time.sleep(0.02)

    solver = nlpsol("s", "hybrid", nlp, {"iteration_callback": slow, "max_time": 0.05})
    solver(**call)
    assert solver.stats()["stop_reason"] == "TIME_LIMIT"


def test_statistics_have_casadis_keys() -> None:
    nlp, call = CASES["mixed"]
    solver = nlpsol("s", "hybrid", nlp)
    with pytest.raises(RuntimeError, match=r"No stats available.*has not been called"):
        solver.stats()
    solver(**call)
    stats = solver.stats()
    assert stats["success"] is True
    assert stats["unified_return_status"] == "SOLVER_RET_SUCCESS"
    assert (stats["stop_reason"], stats["return_status"]) == ("CONVERGED", "Solve_Succeeded")
    assert 0 < stats["iter_count"] == solver.result.iterations
    assert stats["n_call_nlp_f"] >= stats["iter_count"]
    assert stats["n_call_nlp_hess_l"] >= stats["iter_count"]
    assert 0 < stats["t_wall_total"] < 10
    lists = stats["iterations"]
    assert {len(entries) for entries in lists.values()} == {stats["iter_count"] + 1}
    assert lists["iter"] == list(range(stats["iter_count"] + 1))
    assert lists["inf_pr"][-1] <= 1e-6
    assert lists["mu"][0] > lists["mu"][-1] >= 0
    lists["obj"].clear()
    stats["success"] = None
    assert solver.stats()["success"]
    assert solver.stats()["iterations"]["obj"]
    assert "KKT point" in solver.explain()
    assert solver.name_in()[0] == "x0"
    assert (solver.n_in(), solver.n_out(), solver.name()) == (8, 6, "s")


def test_the_log_is_aligned_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    nlp, call = CASES["no constraints"]
    nlpsol("s", "hybrid", nlp, {"log": True, "print_time": True})(**call)
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.split()[:2] == ["iter", "objective"])
    legend = " ".join(lines[:at])
    for column in lines[at].split():
        assert f"{column}:" in legend
    assert re.match(r"s: CONVERGED after \d+ iterations", lines[-1])
    rows = [line for line in lines[at + 1 : -1] if not line.startswith(" iter")]
    assert {len(row) for row in rows} == {len(lines[at])}
    assert rows[0].split()[0] == "0"
    nlpsol("s", "hybrid", nlp)(**call)
    assert capsys.readouterr().out == ""


def test_the_documented_options_are_the_options() -> None:
    rows = re.findall(r"^ {12}(\w+) {2,}(\S+) {2,}\S.*$", nlpsol.__doc__ or "", re.MULTILINE)
    documented = dict(row for row in rows if row[0] != "option")
    assert documented == {entry.name: str(entry.default) for entry in fields(NlpOptions)}


def test_expansion_changes_no_answer() -> None:
    nlp, call = CASES["MX"]
    plain, expanded = (nlpsol("s", "hybrid", nlp, {"expand": e})(**call) for e in (False, True))
    for key in OUTPUTS:
        np.testing.assert_allclose(numbers(plain[key]), numbers(expanded[key]), atol=1e-8)


def test_threads_may_share_a_solver() -> None:
    nlp, call = CASES["parameters"]
    solver = nlpsol("s", "hybrid", nlp)
    points = [[2 + 0.1 * k, 3 - 0.05 * k] for k in range(24)]
    alone = [numbers(solver(**{**call, "p": p})["x"]) for p in points]

    def solve(p: list[float]) -> tuple[np.ndarray, np.ndarray]:
        found = solver(**{**call, "p": p})
        return numbers(found["x"]), solver.result.x

    with ThreadPoolExecutor(8) as pool:
        for expected, (x, of_thread) in zip(alone, pool.map(solve, points), strict=True):
            assert (x == expected).all()
            assert (of_thread == expected).all()


def test_a_start_near_a_bound_behind_which_nothing_is_defined() -> None:
    """log(0.005 − x) with x ≥ 0 from x = 0: the usual push inside the bound leaves the domain."""
    x = ca.SX.sym("x")
    stats, solver = status(x - 1e-3 * ca.log(0.005 - x), [], x, x0=0, lbx=0)
    assert stats["success"], solver.explain()
    assert abs(solver.result.x[0]) <= 1e-6
