"""The restart for smaller multipliers."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from engine_cases import assert_kkt, needs_engine

from casadi_hybrid import Problem, Solver, nlpsol

LEAST = 3  # HYBRID_LEAST_MULTIPLIERS


@pytest.fixture(autouse=True)
def core() -> None:
    needs_engine()


def test_rows_that_say_the_same_twice_share_the_least_multipliers() -> None:
    """Where they begin with multipliers that cancel, a warm start is a solution already."""
    x = ca.SX.sym("x", 2)
    rows = ca.vertcat(x[0], x[0] + x[1] ** 2)
    nlp = {"x": x, "f": ca.sumsqr(x - 3) - x[0], "g": rows}
    bounds = {"lbx": -5, "ubx": [5, 0], "lbg": [-np.inf, 1], "ubg": [1, np.inf]}
    solver = Solver(Problem.from_nlp(nlp))
    plain = solver.solve([0, -1], **bounds)
    huge = {"lam_x0": plain.lam_x, "lam_g0": plain.lam_g + np.array([1e6, -1e6])}
    found = solver.solve(plain.x, **bounds, **huge)
    assert found.success
    assert np.abs(found.lam_g).max() < 1e3
    assert_kkt((nlp, bounds), {"x": found.x, "lam_x": found.lam_x, "lam_g": found.lam_g})


def test_multipliers_that_stay_huge_keep_the_solution() -> None:
    """A row of small slope, whose one multiplier is large: the restart is counted."""
    x = ca.SX.sym("x", 2)
    problem = {"x": x, "f": x[0] + x[1], "g": 4 / x[0] + 2.25 / x[1]}
    solver = nlpsol("solver", "hybrid", problem)
    found = solver(x0=1, lbx=1e-3, ubx=4e6, ubg=0.005)
    stats = solver.stats()
    assert stats["success"]
    assert float(found["lam_g"]) > 1e5
    assert stats["iter_count"] + 1 >= len(stats["iterations"]["obj"])
    # 4/x² = 2.25/y² where both are as cheap.
    np.testing.assert_allclose(found["x"], [[1400], [1050]], rtol=1e-6)
