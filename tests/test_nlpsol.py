"""``nlpsol`` against IPOPT, and on the collection of Hock & Schittkowski."""

from __future__ import annotations

import casadi as ca
import hs_peers
import numpy as np
import pytest
from nlp_cases import CASES, OUTPUTS, PEER, kkt, numbers
from problems.hs import HS

from casadi_hybrid import nlpsol


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
    assert kkt(nlp, found, **call) <= 1e-6
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
