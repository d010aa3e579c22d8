"""Covariances as users give them, and random numbers that have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.loop.table import Places
from casadi_hybrid.control.signals import Array, column, known


def covariance(value: Any, places: Places, what: str) -> Array:
    """Return a covariance matrix.

    Args:
        value: a standard deviation for all entries, one an entry, a dictionary of them by name
            (names left out have none), or a covariance matrix. None is no noise.
        places: the rows of each name.
        what: the argument, for messages.

    Raises:
        InputError: for numbers that do not fit, that are negative or infinite, and for a matrix
            that is not symmetric positive semidefinite.
    """
    size = sum(where.stop - where.start for where in places.values())
    if isinstance(value, Mapping):
        deviations = np.zeros(size)
        for name, number in value.items():
            where = known(name, places, f"entry of {what}")
            deviations[where] = column(number, where.stop - where.start, f"{what}[{name!r}]")
        return _squared(deviations, what)
    if value is None:
        return np.zeros((size, size))
    if np.ndim(value) < 2:
        return _squared(column(value, size, what), what)
    matrix = np.asarray(value, dtype=float)
    if matrix.shape != (size, size):
        raise InputError(
            f"{what} has the shape {matrix.shape}; a covariance of {', '.join(places)} is "
            f"{size}×{size}"
        )
    if not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T, rtol=1e-10, atol=0.0):
        raise InputError(f"{what} must be a finite symmetric matrix")
    if np.linalg.eigvalsh(matrix).min(initial=0.0) < -1e-12 * np.abs(matrix).max(initial=0.0):
        raise InputError(f"{what} must be positive semidefinite; it has a negative eigenvalue")
    return np.asarray((matrix + matrix.T) / 2.0)


def _squared(deviations: Array, what: str) -> Array:
    if not (np.isfinite(deviations) & (deviations >= 0.0)).all():
        raise InputError(f"{what} must be standard deviations, finite and not negative")
    return np.diag(deviations**2)


def factor(matrix: Array) -> Array:
    """Return G with G Gᵀ = the covariance, and no column for a direction without noise.

    A diagonal covariance keeps the order of its entries.
    """
    if not np.any(matrix - np.diag(np.diag(matrix))):
        noisy = np.flatnonzero(np.diag(matrix) > 0.0)
        return np.asarray(np.sqrt(matrix)[:, noisy])
    values, vectors = np.linalg.eigh(matrix)
    noisy = np.flatnonzero(values > 1e-14 * values.max(initial=0.0))
    return np.asarray(vectors[:, noisy] * np.sqrt(values[noisy]))


def draw(rng: np.random.Generator, root: Array) -> Array:
    """Return a normal sample with the covariance root rootᵀ."""
    return np.asarray(root @ rng.standard_normal(root.shape[1]))
