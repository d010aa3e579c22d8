"""The verifier for programs with inequalities and bounds."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from problems.hs import hs_problem

from casadi_hybrid import nlpsol, verify_nlp
from casadi_hybrid.verify import Rejection, Relation

NUMBERS = (1, 5, 10, 21, 24, 35, 43, 65, 71, 76, 100)


def corner():
    """min (x−2)² + (y−1)² s.t. x + y ≤ 2, x ≤ 1: x = (1, 1), λ_g = 0 weak, λ_x = 2."""
    x = ca.SX.sym("x", 2)
    return {"x": x, "f": (x[0] - 2) ** 2 + (x[1] - 1) ** 2, "g": x[0] + x[1]}


def test_a_corner_computed_by_hand():
    report = verify_nlp(corner(), [1, 1], ubx=[1, np.inf], ubg=3, x0=[0, 0])
    assert report.accepted, report.reasons
    assert report.lam_x == pytest.approx([2, 0], abs=1e-9)
    assert report.lam_g == pytest.approx([0], abs=1e-9)
    assert report.reference.relation is Relation.SAME_POINT


@pytest.mark.parametrize("number", NUMBERS)
def test_answers_to_hock_and_schittkowski(number):
    problem = hs_problem(number)
    data = problem.build()
    nlp = {key: data[key] for key in ("x", "f", "g")}
    bounds = {key: data[key] for key in ("lbx", "ubx", "lbg", "ubg")}
    answer = nlpsol("s", "hybrid", nlp)(x0=problem.x0, **bounds)
    report = verify_nlp(nlp, answer, x0=problem.x0, **bounds)
    assert report.accepted, report.reasons
    if report.licq:
        given = ca.vertcat(answer["lam_x"], answer["lam_g"]).full().ravel()
        assert report.first.multipliers == pytest.approx(given, abs=1e-4)
    moved = answer["x"].full().ravel() + 1e-3 * np.cos(np.arange(len(problem.x0)))
    assert not verify_nlp(nlp, moved, compare=False, **bounds).accepted


def test_a_wrong_sign_is_named():
    report = verify_nlp(corner(), [1, 1], lbx=[1, -np.inf], compare=False)
    assert report.categories == (Rejection.WRONG_SIGN,)
    assert report.dual_sign.value == pytest.approx(2)
