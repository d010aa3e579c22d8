"""The restart for smaller multipliers in C beside that in Python."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import Problem, nlpsol
from casadi_hybrid.answer import altered
from casadi_hybrid.attempts import solve
from casadi_hybrid.attempts.attempts import remultiplied
from casadi_hybrid.attempts.multipliers import has_huge_multipliers, restart_on_engine
from casadi_hybrid.engine.library import engine
from casadi_hybrid.point.limits import Limits

pytestmark = pytest.mark.skipif(engine() is None, reason="there is no core")


def test_rows_that_say_the_same_twice_share_the_least_multipliers() -> None:
    x = ca.SX.sym("x", 2)
    rows = {"at most": (None, x[0], 1), "at least": (1, x[0] + x[1] ** 2, None)}
    problem = Problem(x=x, f=ca.sumsqr(x - 3) - x[0], g=rows, lbx=-5, ubx=[5, 0])
    numbers, limits = problem.numbers(x0=[0, -1]), Limits()
    plain = solve.solve_problem(problem, numbers, limits)
    huge = altered(plain, lam_g=plain.lam_g + np.array([1e6, -1e6]))
    assert has_huge_multipliers(huge)
    assert not has_huge_multipliers(plain)
    restart = remultiplied(huge)
    again = restart_on_engine(problem, numbers, limits, restart)
    twin = solve.run_attempt(problem, numbers, limits, None, (), (), restart, 0)
    assert again is not None
    better = again.better_than(huge)
    assert again.result is not None
    assert better.lam_g is again.result.lam_g
    assert better.stop is huge.stop
    assert twin.success
    assert again.iterations == twin.iterations
    for name in ("x", "lam_x", "lam_g"):
        np.testing.assert_allclose(getattr(better, name), getattr(twin, name), atol=1e-6)


def test_multipliers_that_stay_huge_keep_the_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of small slope, whose one multiplier is large: nothing else is tried in Python."""
    x = ca.SX.sym("x", 2)
    problem = {"x": x, "f": x[0] + x[1], "g": 4 / x[0] + 2.25 / x[1]}
    python, attempts = solve.run_attempt, []

    def noted(*given: Any) -> Any:
        attempts.append(python(*given))
        return attempts[-1]

    monkeypatch.setattr(solve, "run_attempt", noted)
    solver = nlpsol("solver", "hybrid", problem)
    found = solver(x0=1, lbx=1e-3, ubx=4e6, ubg=0.005)
    stats = solver.stats()
    assert (stats["success"], stats["engine"]) == (True, "c")
    assert float(found["lam_g"]) > 1e5
    (only,) = attempts
    assert has_huge_multipliers(only)
    assert stats["iter_count"] > only.iterations  # the restart was, and is counted
    np.testing.assert_array_equal(found["x"].full().ravel(), only.x)
