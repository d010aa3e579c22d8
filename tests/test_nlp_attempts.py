"""Whose limit a solve stopped at: the caller's, or that of one of its attempts."""

from __future__ import annotations

import casadi as ca

from casadi_hybrid import nlpsol


def rosenbrock(**options):
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "f": (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2, "g": x[0] + x[1]}
    return nlpsol("rosenbrock", "hybrid", nlp, options)


def test_the_callers_limit_is_named_as_one():
    solver = rosenbrock(max_iter=2)
    solver(x0=[-1.2, 1], ubg=1)
    assert solver.stats()["return_status"] == "ITERATION_LIMIT"
    assert solver.stats()["iter_count"] == 2


def test_the_limit_of_an_attempt_is_not_the_callers(monkeypatch):
    monkeypatch.setattr("casadi_hybrid.nlp.attempts.PATIENCE", 2)
    monkeypatch.setattr("casadi_hybrid.nlp.solve.next_attempt", lambda *_, **__: None)
    solver = rosenbrock()
    solver(x0=[-1.2, 1], ubg=1)
    assert solver.stats()["return_status"] == "STALLED"
    assert solver.stats()["iter_count"] == 2
    assert "none of 1 attempts came further" in solver.result.detail


def test_a_failed_attempt_is_followed_by_one_that_solves(monkeypatch):
    monkeypatch.setattr("casadi_hybrid.nlp.attempts.PATIENCE", 2)
    solver = rosenbrock()
    found = solver(x0=[-1.2, 1], ubg=1)
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] > 2
    assert abs(float(found["g"]) - 1) < 1e-6
