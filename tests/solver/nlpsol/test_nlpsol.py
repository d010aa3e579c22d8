"""``nlpsol`` against IPOPT: answers, statistics, limits and the log; Hock & Schittkowski."""

import re
import time
from dataclasses import fields
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import CASES, OUTPUTS, PEER, solved
from support.judges.kkt import Judge, numbers
from support.problems.published import HS

from casadi_hybrid import nlpsol
from casadi_hybrid.solver.options.options import NlpOptions
from casadi_hybrid.solver.record.record import IterationRecord


@pytest.mark.parametrize("label", CASES)
def test_the_answer_is_that_of_ipopt(label: str):
    nlp, call = CASES[label]
    if isinstance(nlp.get("g"), list):
        nlp = {**nlp, "g": ca.vertcat(*nlp["g"])}
    peer = ca.nlpsol("peer", "ipopt", nlp, PEER)
    expected = peer(**call)
    assert peer.stats()["success"]
    solver = nlpsol("ours", "hybrid", CASES[label][0])
    found = solver(**call)
    assert solver.stats()["success"], solver.explain()
    assert Judge(nlp).kkt(found, call) <= 1e-6
    assert list(found) == list(OUTPUTS) == solver.name_out()
    for _ in range(2):  # by shorter ways than a first solve
        assert list(solver(**call)) == list(OUTPUTS)
    for key in OUTPUTS:
        assert isinstance(found[key], ca.DM)
        assert found[key].numel() == expected[key].numel(), key
        np.testing.assert_allclose(
            numbers(found[key]), numbers(expected[key]), rtol=1e-5, atol=2e-5, err_msg=key
        )


def status(f: Any, g: Any, x: Any, **call: Any) -> tuple[dict[str, Any], Any]:
    solver = nlpsol("s", "hybrid", {"x": x, "f": f, "g": g}, {"max_iter": 300})
    found = solver(**call)
    assert all(isinstance(found[key], ca.DM) for key in OUTPUTS)
    return solver.stats(), solver


def test_everything_fixed_is_only_evaluated():
    x = ca.SX.sym("x", 2)
    stats, solver = status(ca.sumsqr(x), ca.sum1(x), x, lbx=[1, 2], ubx=[1, 2], ubg=4)
    assert stats["success"]
    np.testing.assert_allclose(solver.result.lam_x, [-2, -4], atol=1e-5)
    stats, _ = status(ca.sumsqr(x), ca.sum1(x), x, lbx=[1, 2], ubx=[1, 2], ubg=2)
    assert not stats["success"]


def test_limits_and_the_callback_stop_a_solve():
    nlp, call = CASES["no constraints"]
    seen: list[IterationRecord] = []

    def stop_at_five(record: IterationRecord) -> bool:
        seen.append(record)
        return record.iter >= 5

    solver = solved(nlp, {"iteration_callback": stop_at_five}, **call)
    stats = solver.stats()
    assert stats["stop_reason"] == "STOPPED_BY_USER"
    assert not stats["success"]
    assert [record.iter for record in seen] == stats["iterations"]["iter"] == [*range(6)]
    assert [record.obj for record in seen] == stats["iterations"]["obj"]
    check = ca.Function("f", [nlp["x"]], [nlp["f"]])
    for record in seen:
        assert float(check(record.x)) == pytest.approx(record.obj, rel=1e-12)

    solver = solved(nlp, {"iteration_callback": lambda at: np.float64(at.iter) > 4}, **call)
    assert solver.stats()["iter_count"] == 5  # NumPy's True is one

    def slow(record: IterationRecord) -> None:
        time.sleep(0.02)

    solver = solved(nlp, {"iteration_callback": slow, "max_time": 0.05}, **call)
    assert solver.stats()["stop_reason"] == "TIME_LIMIT"


def test_statistics_have_casadis_keys():
    nlp, call = CASES["mixed"]
    solver = solved(nlp, **call)
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
    peer = ca.nlpsol("s", "ipopt", {**nlp, "g": ca.vertcat(*nlp["g"])}, PEER)
    peer(**call)
    assert set(peer.stats()) <= set(stats)
    assert set(peer.stats()["iterations"]) <= set(lists)
    spent = sum(value for key, value in stats.items() if key.startswith("t_wall_nlp_"))
    assert 0 < spent < stats["t_wall_total"]
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


def test_the_log_is_aligned_and_explained(capsys: pytest.CaptureFixture[str]):
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


def test_the_documented_options_are_the_options():
    rows = re.findall(r"^ {12}(\w+) {2,}(\S+) {2,}\S.*$", nlpsol.__doc__ or "", re.MULTILINE)
    documented = dict(row for row in rows if row[0] != "option")
    assert documented == {entry.name: str(entry.default) for entry in fields(NlpOptions)}


def test_start_near_the_edge_of_the_domain():
    """log(0.005 − x) with x ≥ 0 from x = 0: the usual push inside the bound leaves the domain."""
    x = ca.SX.sym("x")
    stats, solver = status(x - 1e-3 * ca.log(0.005 - x), [], x, x0=0, lbx=0)
    assert stats["success"], solver.explain()
    assert abs(solver.result.x[0]) <= 1e-6
