"""``nlpsol`` against IPOPT: answers, statistics, limits and the log."""

import time
from dataclasses import fields

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import CASES, OUTPUTS, PEER, solved
from support.judges.kkt import Judge, numbers

from casadi_hybrid import nlpsol
from casadi_hybrid.solver.options.options import NlpOptions


@pytest.mark.parametrize("label", CASES)
def test_answer_is_that_of_ipopt(label):
    nlp, call = CASES[label]
    if isinstance(nlp.get("g"), list):
        nlp = {**nlp, "g": ca.vertcat(*nlp["g"])}
    peer = ca.nlpsol("peer", "ipopt", nlp, PEER)
    expected = peer(**call)
    assert peer.stats()["success"]
    solver = nlpsol("ours", "hybrid", CASES[label][0])
    answer = solver(**call)
    assert solver.stats()["success"], solver.explain()
    assert Judge(nlp).kkt(answer, call) <= 1e-6
    for _ in range(2):  # by shorter ways than a first solve
        assert list(solver(**call)) == list(answer) == list(OUTPUTS) == solver.name_out()
    for key in OUTPUTS:
        assert isinstance(answer[key], ca.DM)
        assert answer[key].numel() == expected[key].numel(), key
        np.testing.assert_allclose(
            numbers(answer[key]), numbers(expected[key]), rtol=1e-5, atol=2e-5, err_msg=key
        )


def test_callback_and_time_limit_stop():
    nlp, call = CASES["no constraints"]
    seen = []

    def stop_at_five(record):
        seen.append(record)
        return np.float64(record.iter) >= 5  # NumPy's True

    stats = solved(nlp, {"iteration_callback": stop_at_five}, **call).stats()
    assert (stats["stop_reason"], stats["success"]) == ("STOPPED_BY_USER", False)
    assert [record.iter for record in seen] == stats["iterations"]["iter"] == [*range(6)]
    objective = ca.Function("f", [nlp["x"]], [nlp["f"]])
    values = [float(objective(record.x)) for record in seen]
    assert [record.obj for record in seen] == stats["iterations"]["obj"] == pytest.approx(values)
    slow = {"iteration_callback": lambda record: time.sleep(0.02), "max_time": 0.05}
    assert solved(nlp, slow, **call).stats()["stop_reason"] == "TIME_LIMIT"


def test_statistics_have_casadis_keys():
    nlp, call = CASES["mixed"]
    solver = solved(nlp, **call)
    stats = solver.stats()
    assert stats["success"] is True
    assert stats["unified_return_status"] == "SOLVER_RET_SUCCESS"
    assert (stats["stop_reason"], stats["return_status"]) == ("CONVERGED", "Solve_Succeeded")
    count, lists = stats["iter_count"], stats["iterations"]
    assert 0 < count == solver.result.iterations
    assert min(stats["n_call_nlp_f"], stats["n_call_nlp_hess_l"]) >= count
    assert {len(entries) for entries in lists.values()} == {count + 1}
    peer = ca.nlpsol("s", "ipopt", {**nlp, "g": ca.vertcat(*nlp["g"])}, PEER)
    peer(**call)
    assert set(peer.stats()) <= set(stats)
    assert set(peer.stats()["iterations"]) <= set(lists)
    spent = sum(value for key, value in stats.items() if key.startswith("t_wall_nlp_"))
    assert 0 < spent < stats["t_wall_total"]
    assert lists["iter"] == list(range(count + 1))
    assert lists["inf_pr"][-1] <= 1e-6
    assert lists["mu"][0] > lists["mu"][-1] >= 0
    lists["obj"].clear()  # a copy of the caller's own
    stats["success"] = None
    assert solver.stats()["success"]
    assert solver.stats()["iterations"]["obj"]


def test_log_is_aligned_and_explained(capsys):
    nlp, call = CASES["no constraints"]
    nlpsol("s", "hybrid", nlp, {"log": True, "print_time": True})(**call)
    lines = capsys.readouterr().out.splitlines()
    head = next(i for i, line in enumerate(lines) if line.split()[:2] == ["iter", "objective"])
    legend = " ".join(lines[:head])
    assert all(f"{column}:" in legend for column in lines[head].split())
    assert lines[-1].startswith("s: CONVERGED")
    assert {len(line) for line in lines[head:-1]} == {len(lines[head])}
    nlpsol("s", "hybrid", nlp)(**call)
    assert capsys.readouterr().out == ""


def test_docstring_lists_each_default():
    lines = [line.split() for line in (nlpsol.__doc__ or "").splitlines()]
    documented = {words[0]: words[1] for words in lines if len(words) > 2}
    for option in fields(NlpOptions):
        assert documented[option.name] == str(option.default)
