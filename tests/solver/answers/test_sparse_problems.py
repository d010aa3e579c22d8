"""Bounds of a sparse problem that change their kind, and reductions as NumPy's."""

import casadi as ca
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from casadi_hybrid import nlpsol
from casadi_hybrid.utils.arrays import all_finite, anywhere, largest


def test_changing_bounds_leave_nothing_behind():
    """Cold, and from the answer of the solve before: a chain with a bound on every link."""
    n = 120
    x = ca.SX.sym("x", n)
    chain = {"x": x, "f": ca.sumsqr(x - 0.7), "g": x[1:] - x[:-1] ** 2}
    solver = nlpsol("chain", "hybrid", chain)
    rng, starts = np.random.default_rng(3), [{"x0": 0.1}]
    for _ in range(12):
        lbx, ubx = np.full(n, -2.0), np.full(n, 2.0)
        fixed = rng.random(n) < 0.1
        lbx[fixed] = ubx[fixed] = 0.5
        lbg = np.where(rng.random(n - 1) < 0.5, -0.3, -np.inf)
        ubg = np.where(rng.random(n - 1) < 0.5, 0.3, np.inf)
        bounds = {"lbx": lbx, "ubx": ubx, "lbg": lbg, "ubg": ubg}
        for start in starts:
            again = solver(**start, **bounds)
            fresh = nlpsol("chain", "hybrid", chain)(**start, **bounds)
            assert solver.stats()["success"]
            np.testing.assert_array_equal(again["x"].full(), fresh["x"].full())
            np.testing.assert_array_equal(again["lam_g"].full(), fresh["lam_g"].full())
        near = {"x0": again["x"], "lam_x0": again["lam_x"], "lam_g0": again["lam_g"]}
        starts = [{"x0": 0.1}, near]


@given(arrays(float, st.integers(0, 20), elements=st.floats(width=64)), st.sampled_from([1, 2, -1]))
def test_reductions_agree_with_numpy(v: np.ndarray, step: int) -> None:
    v = v[::step]
    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_equal(largest(v), float(np.abs(v).max(initial=0.0)))
    assert all_finite(v) == np.isfinite(v).all()
    assert anywhere(v > 0.0) == (v > 0.0).any()
    assert all_finite(np.full(3, 1e308))  # whose sum overflows
