"""Sparse matrices and reductions against NumPy and SciPy; bounds that change their kind."""

import casadi as ca
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from casadi_hybrid import nlpsol
from casadi_hybrid.utils.arrays import all_finite, anywhere, distinct, largest
from casadi_hybrid.utils.linear_algebra.sparse import Pattern, Sparse, general


def random_sparse(rng: np.random.Generator, m: int, n: int, density: float = 0.3) -> Sparse:
    rows, cols = np.nonzero(rng.random((m, n)) < density)
    pattern, order = Pattern.ordered((m, n), rows, cols)
    data = np.empty(rows.size)
    data[order] = rng.standard_normal(rows.size)
    return Sparse(pattern, data)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 12), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_entries_and_blocks_equal_the_full_matrix(m, n, seed):
    rng = np.random.default_rng(seed)
    A = random_sparse(rng, m, n)
    full = np.zeros((m, n))
    full[A.pattern.rows, A.pattern.cols] = A.data
    np.testing.assert_array_equal(A.scipy().toarray(), full)
    np.testing.assert_array_equal(general(A).toarray(), full)
    rows = np.flatnonzero(rng.random(m) < 0.5)
    cols = np.flatnonzero(rng.random(n) < 0.5)
    block, kept = A.pattern.block(rows, cols)
    picked = Sparse(block, A.data[kept]).scipy().toarray()
    np.testing.assert_array_equal(picked, full[np.ix_(rows, cols)])


def test_repeated_entries_find_their_places():
    pattern, where = Pattern.ordered((3, 2), np.array([2, 0, 2, 1]), np.array([1, 0, 1, 0]))
    assert pattern.rows.tolist() == [0, 1, 2]
    assert pattern.cols.tolist() == [0, 0, 1]
    assert where.tolist() == [2, 0, 2, 1]


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


vectors = arrays(float, st.integers(0, 20), elements=st.floats(width=64))


@given(vectors, st.sampled_from([1, 2, -1]))
def test_reductions_agree_with_numpy(v: np.ndarray, step: int) -> None:
    v = v[::step]
    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_equal(largest(v), float(np.abs(v).max(initial=0.0)))
    assert all_finite(v) == np.isfinite(v).all()
    assert anywhere(v > 0.0) == (v > 0.0).any()
    assert all_finite(np.full(3, 1e308))  # whose sum overflows


@given(arrays(np.intp, st.integers(0, 30), elements=st.integers(-3, 9)))
def test_distinct_agrees_with_numpy(numbers: np.ndarray) -> None:
    expected = np.unique(numbers, return_inverse=True)
    for values, reference in zip(distinct(numbers), expected, strict=True):
        assert values.dtype == reference.dtype
        np.testing.assert_array_equal(values, reference)
