"""``nlpsol`` against IPOPT: answers, statistics, limits and the log; Hock & Schittkowski."""

import re
import time
from dataclasses import fields
from typing import Any

import casadi as ca
import hs_peers
import numpy as np
import pytest
from nlp_cases import CASES, OUTPUTS, PEER
from nlp_judge import Judge, numbers
from problems.hs import HS

from casadi_hybrid import nlpsol
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.result.record import IterationRecord


@pytest.mark.parametrize("label", CASES)
def test_the_answer_is_that_of_ipopt(label: str) -> None:
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


def test_the_parameter_multiplier_is_the_slope_of_the_optimum() -> None:
    nlp, call = CASES["parameters"]
    solver = nlpsol("s", "hybrid", nlp, {"tol": 1e-10, "residual_tol": 1e-9})
    step = 1e-4
    slopes = []
    for i in range(2):
        up, down = (np.array([2.0, 3.0]) + sign * step * np.eye(2)[i] for sign in (1, -1))
        values = [float(solver(**{**call, "p": p})["f"]) for p in (up, down)]
        slopes.append((values[0] - values[1]) / (2 * step))
    np.testing.assert_allclose(numbers(solver(**call)["lam_p"]), -np.array(slopes), atol=1e-5)


def test_one_solver_serves_other_parameters_bounds_and_starts() -> None:
    nlp, call = CASES["parameters"]
    solver, peer = nlpsol("s", "hybrid", nlp), ca.nlpsol("peer", "ipopt", nlp, PEER)
    for change in ({"p": [-1, 2]}, {"ubg": -3}, {"lbg": 1}, {"lbx": [0, 0], "ubx": 0.25}):
        now = {**call, **change}
        np.testing.assert_allclose(
            numbers(solver(**now)["x"]), numbers(peer(**now)["x"]), atol=1e-5
        )
    # What was solved before leaves no trace.
    again = nlpsol("s", "hybrid", nlp)
    assert all((numbers(solver(**call)[k]) == numbers(again(**call)[k])).all() for k in OUTPUTS)


def test_the_comparison_counts_what_it_recomputes(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = [problem for problem in HS if problem.number in (6, 35, 71)]
    text = hs_peers.report(chosen)
    assert "hybrid: solved 3 of 3, published optimum or better 3" in text
    assert "IPOPT: solved 3 of 3, published optimum or better 3" in text
    # A solver's own word counts for nothing.
    monkeypatch.setattr(hs_peers, "SOLVED", -1.0)
    assert "hybrid: solved 0 of 3, published optimum or better 0" in hs_peers.report(chosen)


def status(f: Any, g: Any, x: Any, **call: Any) -> tuple[dict[str, Any], Any]:
    solver = nlpsol("s", "hybrid", {"x": x, "f": f, "g": g}, {"max_iter": 300})
    found = solver(**call)
    assert all(isinstance(found[key], ca.DM) for key in OUTPUTS)
    return solver.stats(), solver


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


def test_a_start_near_a_bound_behind_which_nothing_is_defined() -> None:
    """log(0.005 − x) with x ≥ 0 from x = 0: the usual push inside the bound leaves the domain."""
    x = ca.SX.sym("x")
    stats, solver = status(x - 1e-3 * ca.log(0.005 - x), [], x, x0=0, lbx=0)
    assert stats["success"], solver.explain()
    assert abs(solver.result.x[0]) <= 1e-6
