"""Covariances: of named quantities, as matrices, their factors and samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from casadi_hybrid.control.model.signals import Array, Places, column, known, size_of
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import Matrix, as_matrix, real_array

# A singular value or an eigenvalue below this share of the largest counts as zero.
ROUNDING = 1e-10


def symmetric(value: Any, size: int, name: str) -> Matrix:
    """Return a symmetric matrix, refusing one that is not by name."""
    array = as_matrix(value, (size, size), name)
    if not np.allclose(array, array.T, rtol=1e-9, atol=1e-12 * np.abs(array).max(initial=0.0)):
        raise InputError(f"{name} is not symmetric; give (A + Aᵀ)/2 if that is what is meant")
    return (array + array.T) / 2


def covariance(value: Any, size: int, name: str = "noise") -> Matrix:
    """Return a covariance from a matrix, ``size`` variances, or one variance for all."""
    array = real_array(value, name)
    if array.ndim == 1:
        array = np.diag(array)
    array = symmetric(array, size, name)
    values = np.linalg.eigvalsh(array)
    # Rounding makes zero eigenvalues slightly negative.
    if values[0] < -ROUNDING * max(values[-1], 0.0) or values[-1] < 0:
        raise InputError(
            f"{name} has the eigenvalue {values[0]:.3g}; a covariance has none below zero"
        )
    return array


def root(cov: Matrix) -> Matrix:
    """Return L with LLᵀ = the covariance, which may be singular."""
    # Q √Λ of cov = Q Λ Qᵀ: a Cholesky factor does not exist for a singular covariance.
    values, vectors = np.linalg.eigh(cov)
    positive = np.where(values > ROUNDING * values[-1], values, 0.0)
    return np.asarray(vectors * np.sqrt(positive))


def covariance_of(value: Any, places: Places, what: str) -> Array:
    """Return a covariance matrix from deviations, one, one an entry or by name, or a matrix."""
    size = size_of(places)
    if np.ndim(value) > 1:
        return covariance(value, size, what)
    # Names left out, and None, are without noise.
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
    """Return G with G Gᵀ = the covariance, and no column for a direction without noise."""
    if not np.any(matrix - np.diag(np.diag(matrix))):
        # A diagonal covariance keeps the order of its entries, which eigh would not.
        noisy = np.flatnonzero(np.diag(matrix) > 0.0)
        return np.asarray(np.sqrt(matrix)[:, noisy])
    values, vectors = np.linalg.eigh(matrix)
    noisy = np.flatnonzero(values > 1e-14 * values.max(initial=0.0))
    return np.asarray(vectors[:, noisy] * np.sqrt(values[noisy]))


def draw(rng: np.random.Generator, root: Array) -> Array:
    """Return a normal sample with the covariance root rootᵀ."""
    return np.asarray(root @ rng.standard_normal(root.shape[1]))
