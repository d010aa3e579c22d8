"""The judge of the benchmarks accepts solutions and rejects points perturbed by hand."""

import casadi as ca
import numpy as np
import pytest
from peers.judge import TOLERANCE, Judge

NO_MULTIPLIERS = {"lam_g": (np.nan,), "lam_x": (np.nan, np.nan)}
SOLUTION = {"x": (0.5, 0.5), "lam_g": (-1.0,), "lam_x": (4.0, 0.0)}


def projection(target: float = 2.0) -> Judge:
    """min (x1 − target)² + x2² subject to x1 + x2 = 1, x1 ≤ 0.5: x* = (0.5, 0.5)."""
    x = ca.SX.sym("x", 2)
    data = {"x": x, "f": (x[0] - target) ** 2 + x[1] ** 2, "g": x[0] + x[1]}
    bounds = {"lbx": [-np.inf] * 2, "ubx": [0.5, np.inf], "lbg": [1.0], "ubg": [1.0]}
    return Judge(data | bounds)


def test_judge_accepts_the_solution():
    judge = projection()
    assert judge.residual(**SOLUTION) == pytest.approx(0.0, abs=1e-12)
    # Without usable multipliers the point alone counts.
    assert judge.residual(**SOLUTION | NO_MULTIPLIERS) == pytest.approx(0.0, abs=1e-12)
    assert judge.residual(**SOLUTION | {"lam_x": (0.0, 0.0)}) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("x", [(0.5, 0.51), (0.4, 0.6), (0.6, 0.4), (np.nan, 0.5)])
def test_judge_rejects_perturbed_points(x):
    judge = projection()
    assert judge.residual(**SOLUTION | {"x": x}) > TOLERANCE
    assert judge.residual(**SOLUTION | NO_MULTIPLIERS | {"x": x}) > TOLERANCE
    assert not judge.infeasible(x)
    assert not judge.unbounded(x)


def test_judge_rejects_the_wrong_sign():
    """At (0.5, 0.5) the bound x1 ≤ 0.5 would have to pull when the target is −2."""
    assert projection(-2.0).residual((0.5, 0.5), (-1.0,), (-4.0, 0.0)) > TOLERANCE


def test_judge_confirms_proofs_alone():
    x = ca.SX.sym("x")
    free = {"lbx": [-np.inf], "ubx": [np.inf]}
    gap = {"x": x, "f": x, "g": ca.vertcat(x**2 + 1, x), "lbg": [0, -5], "ubg": [0, 5], **free}
    assert Judge(gap).infeasible((0.0,))
    assert not Judge(gap).infeasible((1.0,))
    ray = {"x": x, "f": -x, "g": ca.SX(0, 1), "lbg": [], "ubg": [], "lbx": [0], "ubx": [np.inf]}
    assert Judge(ray).unbounded((1e11,))
    assert not Judge(ray).unbounded((1e3,))
