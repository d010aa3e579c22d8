"""The quick reductions say what NumPy's do, for every kind of number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from casadi_hybrid.basics.arrays import (
    address,
    all_finite,
    anywhere,
    changed,
    distinct,
    largest,
)
from casadi_hybrid.point.limits import Limits

vectors = arrays(float, st.integers(0, 20), elements=st.floats(width=64))


@given(vectors)
def test_reductions_agree_with_numpy(v: np.ndarray) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_equal(largest(v), float(np.abs(v).max(initial=0.0)))
    assert all_finite(v) == np.isfinite(v).all()
    assert anywhere(v > 0.0) == (v > 0.0).any()


@pytest.mark.parametrize("step", [1, 2, -1])
def test_views_are_read_by_their_strides(step: int) -> None:
    v = np.array([1.0, -9.0, 2.0, 3.0])[::step]
    assert largest(v) == np.abs(v).max()
    assert not all_finite(np.array([1.0, np.inf, 1.0, np.nan])[1::2])
    assert all_finite(np.full(3, 1e308))  # whose sum overflows


def test_what_is_changed_leaves_the_old_one_alone() -> None:
    old = Limits(max_time=3.0)
    new = changed(old, max_iter=2)
    assert (old.max_iter, new.max_iter, new.max_time) == (3000, 2, 3.0)
    with pytest.raises(AttributeError):
        setattr(new, "max_iter", 3)  # noqa: B010


@given(arrays(np.intp, st.integers(0, 30), elements=st.integers(-3, 9)))
def test_distinct_numbers_are_those_of_numpy(numbers: np.ndarray) -> None:
    for found, expected in zip(
        distinct(numbers), np.unique(numbers, return_inverse=True), strict=True
    ):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_addresses_are_those_of_numpy() -> None:
    fixed = np.arange(3.0)
    fixed.setflags(write=False)
    table = np.zeros((4, 3), dtype=np.int32)
    arrays = np.zeros(0), np.arange(5.0)[::2], fixed, table, table[2:], table[:, 1], table.T
    for array in arrays:
        assert address(array) == array.ctypes.data
