"""Over-determined systems agree with the published norms, least sums of squares and minimizers."""

import warnings
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


@cache
def fitted(entry: System) -> list[np.ndarray]:
    """Ends of SciPy's least squares from the standard start and from the published minimizer."""
    starts = [entry.x0] if entry.minimizer is None else [entry.x0, entry.minimizer]
    tight = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15, "x_scale": "jac"}
    ends = []
    for start in starts:
        for method, limit in (("lm", 4000), ("trf", 1000)):
            options = {"method": method, "max_nfev": limit, **tight}
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    x = least_squares(
                        partial(residual, entry), start, partial(jacobian, entry), **options
                    ).x
            except (ValueError, np.linalg.LinAlgError):
                continue  # MINPACK does not survive values that are not finite
            if np.isfinite(residual(entry, x)).all():
                ends.append(x)
                break
    return ends


def least(entry: System) -> np.ndarray:
    return min(fitted(entry), key=lambda x: np.linalg.norm(residual(entry, x)))


def test_systems_are_of_both_kinds():
    assert len({entry.name for entry in SYSTEMS}) == len(SYSTEMS)
    assert sum(entry.consistent for entry in SYSTEMS) >= 10
    assert sum(not entry.consistent for entry in SYSTEMS) >= 10


@every
def test_published_sizes_and_norms(entry):
    problem = problem_of(entry)
    assert (problem.n, problem.m) == (entry.n, entry.m)
    assert entry.m > entry.n
    for start in entry.starts:
        assert np.isfinite(residual(entry, start)).all()
        assert np.isfinite(jacobian(entry, start)).all()
    for start, published in zip(entry.starts, entry.start_norms, strict=False):
        norm = np.linalg.norm(residual(entry, start))
        assert norm == pytest.approx(published, rel=1e-12)


@every
def test_published_least_sum_of_squares(entry):
    x = least(entry)
    h = residual(entry, x)
    if entry.consistent:
        assert np.abs(h).max() <= 1e-10
        return
    assert h @ h > 1e-12
    J = jacobian(entry, x)
    assert np.linalg.norm(J.T @ h) <= 1e-6 * np.linalg.norm(J) * np.linalg.norm(h)
    if entry.known_norm2:
        # One unit of the last printed digit, which may be cut off instead of rounded; eleven digits
        # are at the limit of what the rounding of the residuals leaves.
        unit = 10.0 ** (np.floor(np.log10(entry.known_norm2)) + 1 - entry.digits)
        assert h @ h == pytest.approx(entry.known_norm2, abs=unit, rel=1e-9)


@pytest.mark.parametrize(
    "entry",
    [entry for entry in SYSTEMS if entry.minimizer is not None],
    ids=lambda entry: entry.name,
)
def test_published_minimizer(entry):
    x = fitted(entry)[-1]
    h, best = residual(entry, x), residual(entry, least(entry))
    assert h @ h <= best @ best * (1 + 1e-9) + 1e-20
    np.testing.assert_allclose(x, np.asarray(entry.minimizer), rtol=1e-3, atol=1e-4)
