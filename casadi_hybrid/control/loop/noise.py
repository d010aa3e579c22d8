"""Covariances as users give them, and random numbers that have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.feedback.geometry import covariance as matrix
from casadi_hybrid.control.loop.table import Places, size_of
from casadi_hybrid.control.signals import Array, column, known


def covariance(value: Any, places: Places, what: str) -> Array:
    """Return a covariance matrix.

    The value is a standard deviation for all entries, one an entry, a dictionary of them by name
    (names left out have none), or a covariance matrix; None is no noise.
    """
    size = size_of(places)
    if np.ndim(value) > 1:
        return matrix(value, size, what)
    deviations = np.zeros(size)
    if isinstance(value, Mapping):
        for name, number in value.items():
            where = known(name, places, f"entry of {what}")
            deviations[where] = column(number, where.stop - where.start, f"{what}[{name!r}]")
    elif value is not None:
        deviations = column(value, size, what)
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
