"""Over-determined systems agree with the published norms, least sums of squares and minimizers."""

from functools import cache, partial

import numpy as np
import pytest
from scipy.optimize import least_squares
from support.problems.published import SYSTEMS, System

every = pytest.mark.parametrize("entry", SYSTEMS, ids=lambda entry: entry.name)
problem_of = cache(lambda entry: entry.build())


def residual(entry: System, x: np.ndarray) -> np.ndarray:
    return problem_of(entry).functions.residual(x, []).full().ravel()


def jacobian(entry: System, x: np.ndarray) -> np.ndarray:
    return problem_of(entry).functions.first(x, [])[3].full()


@every
def test_published_sizes_and_norms(entry):
    problem = problem_of(entry)
    assert (problem.n, problem.m) == (entry.n, entry.m)
    assert entry.m > entry.n
    assert all(np.isfinite(jacobian(entry, start)).all() for start in entry.starts)
    norms = [np.linalg.norm(residual(entry, start)) for start in entry.starts]
    assert norms[: len(entry.start_norms)] == pytest.approx(entry.start_norms, rel=1e-12)


@every
@pytest.mark.filterwarnings("ignore")
def test_published_least_squares(entry):
    tight = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15, "x_scale": "jac", "max_nfev": 4000}
    start = entry.x0 if entry.minimizer is None else entry.minimizer
    with np.errstate(all="ignore"):
        x = least_squares(partial(residual, entry), start, partial(jacobian, entry), **tight).x
    h, J = residual(entry, x), jacobian(entry, x)
    if entry.minimizer is not None:
        np.testing.assert_allclose(x, entry.minimizer, rtol=1e-3, atol=1e-4)
    if entry.consistent:
        assert np.abs(h).max() <= 1e-10
        return
    assert h @ h > 1e-12
    assert np.linalg.norm(J.T @ h) <= 1e-6 * np.linalg.norm(J) * np.linalg.norm(h)
    if entry.known_norm2:
        # One unit of the last printed digit, which may be cut off instead of rounded; eleven digits
        # are at the limit of what the rounding of the residuals leaves.
        unit = 10.0 ** (np.floor(np.log10(entry.known_norm2)) + 1 - entry.digits)
        assert h @ h == pytest.approx(entry.known_norm2, abs=unit, rel=1e-9)
