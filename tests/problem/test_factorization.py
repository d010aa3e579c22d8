"""Sparse symmetric factorizations: inertia, solutions, and detection of singular matrices."""

import gc
import weakref
from unittest.mock import Mock

import feral
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from casadi_hybrid.utils.linear_algebra import factorization
from casadi_hybrid.utils.linear_algebra.factorization import SymmetricFactor, inertia


def saddle(rng, n, m, scales=None):
    """[W Aᵀ; A 0] with independent rows, its rows and columns scaled."""
    W = sp.random_array((n, n), density=min(1.0, 3 / n), rng=rng)
    A = sp.random_array((m, n), density=min(1.0, 3 / n), rng=rng) + 2 * sp.eye_array(m, n)
    K = sp.block_array([[W + W.T - sp.eye_array(n), A.T], [A, None]])
    S = sp.diags_array(np.ones(n + m) if scales is None else scales)
    return (S @ K @ S).tocsc()


def chain(n, *, dependent):
    """The KKT matrix of a double integrator; dependent: with the sum of its rows as one more."""
    D, h = sp.diags_array([np.ones(n), -np.ones(n - 1)], offsets=[0, -1]), 1 / n
    A = sp.block_array(
        [[D, -h * sp.eye_array(n, k=-1), None], [None, D, -h * sp.eye_array(n)]], format="csr"
    )
    if dependent:
        A = sp.vstack((A, sp.csr_array(A.sum(axis=0)[None, :])))
    W = sp.diags_array(h * np.repeat([1.0, 0.0, 1e-3], n))
    return sp.block_array([[W, A.T], [A, None]])


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), wide=st.booleans())
def test_inertia_and_solutions(seed, n, wide):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(0, n))
    K = saddle(rng, n, m, 10.0 ** rng.uniform(-3, 3, n + m) if wide else None)
    dense = K.toarray()
    factor = SymmetricFactor(K)
    values = np.linalg.eigvalsh(dense)
    if not wide and np.abs(values).min() > 1e-9:
        assert factor.inertia == (np.sum(values > 0), np.sum(values < 0), 0)
        assert not factor.singular
    exact = rng.standard_normal((n + m, 3))
    right = K @ exact
    solution = factor.solve(right)
    terms = np.abs(dense) @ np.abs(solution) + np.abs(right)
    assert (np.abs(dense @ solution - right) <= 1e-12 * terms.max(axis=0)).all()
    np.testing.assert_allclose(factor.solve(right[:, 0]), solution[:, 0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("n", "shape"), [(0, (0,)), (0, (0, 2)), (3, (3, 0))])
def test_empty_systems_are_solved(n, shape):
    factor = SymmetricFactor(sp.csc_array(sp.eye_array(n)))
    assert factor.inertia == (n, 0, 0)
    assert not factor.singular
    assert factor.solve(np.zeros(shape)).shape == shape


def test_rounding_and_units_are_forgiven():
    K = np.array([[2.0, 1.0], [1.0 + 1e-16, -3.0]])  # the lower triangle is read
    np.testing.assert_allclose(K @ SymmetricFactor(K).solve(np.ones(2)), 1.0, rtol=1e-15)
    factor = SymmetricFactor(sp.diags_array([1e8, 1e-30, -1.0]))
    assert not factor.singular
    assert factor.inertia == (2, 1, 0)
    np.testing.assert_allclose(factor.solve(np.ones(3)), [1e-8, 1e30, -1.0], rtol=1e-14)


def test_zero_pivots_are_zero_eigenvalues():
    K = sp.csc_array(np.diag([1.0, 0.0, -2.0]))
    assert inertia(K) == (1, 1, 1)
    assert SymmetricFactor(K).singular
    # Zeros of the diagonal alone mean nothing.
    assert not SymmetricFactor(np.array([[0.0, 1.0], [1.0, 0.0]])).singular


@pytest.mark.parametrize("n", [50, 500, 2000])
def test_spread_dependence_is_singular(n):
    # The least pivot is as large as 7e-11 here: alone it does not tell.
    assert SymmetricFactor(chain(n, dependent=True)).singular
    assert not SymmetricFactor(chain(n, dependent=False)).singular


@given(seed=st.integers(0, 2**32 - 1))
def test_scaled_dependent_rows_are_singular(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 60))
    m = int(rng.integers(1, n - 1))
    A = (sp.random_array((m, n), density=3 / n, rng=rng) + sp.eye_array(m, n)).tocsr()
    A = sp.vstack((A, rng.standard_normal((1, m)) @ A))
    S = sp.diags_array(10.0 ** rng.uniform(-4, 4, n + m + 1))
    K = sp.block_array([[sp.eye_array(n), A.T], [A, None]])
    assert SymmetricFactor(S @ K @ S).singular


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_infinite_entries_are_refused(bad):
    K = sp.csc_array(np.diag([1.0, bad]))
    with pytest.raises(FloatingPointError, match="not finite"):
        SymmetricFactor(K)
    assert inertia(K) is None


def test_failures_are_floating_point_errors(monkeypatch):
    failing = Mock(**{"return_value.factor.side_effect": feral.FeralError("beyond range")})
    monkeypatch.setattr(factorization.feral, "Solver", failing)
    with pytest.raises(FloatingPointError, match="beyond range"):
        SymmetricFactor(sp.eye_array(2))


def test_factors_are_freed_at_once():
    # A cycle would leave it to the collector, which may run in a thread that may not drop it.
    factor = SymmetricFactor(sp.eye_array(3))
    gone = weakref.ref(factor)
    gc.disable()
    try:
        del factor
        assert gone() is None
    finally:
        gc.enable()
