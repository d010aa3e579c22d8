"""Arguments with k times as many columns as are asked for: numbers of k solves, as in CasADi."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError


def solves_in(value: Any, wanted: tuple[int, int]) -> int:
    """How many solves an argument has numbers for: one, or as many as it repeats its shape.

    What fits no solve counts as one, for the checks of a solve to refuse.
    """
    kind = type(value)
    if kind is float or kind is int:
        return 1
    if kind is list and value and isinstance(value[0], list | tuple):
        try:
            value = np.asarray(value)
        except ValueError:  # rows of different lengths
            return 1
        kind = np.ndarray
    if not (kind is ca.DM or (kind is np.ndarray and value.ndim == 2)):
        return 1
    rows, columns = value.shape
    if columns <= 1 or rows == 0 or rows != wanted[0] or (columns, rows) == wanted:
        return 1
    return 1 if columns % wanted[1] else int(columns // wanted[1])


def each_solve(
    given: Mapping[str, Any], solves: Sequence[int], most: int
) -> Iterator[dict[str, Any]]:
    """The arguments of each of ``most`` solves: what has fewer columns begins anew.

    Raises:
        InputError: where the numbers of columns do not fit.
    """
    for label, has in zip(given, solves, strict=True):
        if most % has:
            raise InputError(f"{label} has numbers for {has} solves, another argument for {most}")
    matrices = {
        label: ca.DM(value)
        for (label, value), has in zip(given.items(), solves, strict=True)
        if has > 1
    }
    for k in range(most):
        one = {}
        for (label, value), has in zip(given.items(), solves, strict=True):
            if has == 1:
                one[label] = value
                continue
            matrix = matrices[label]
            width = matrix.size2() // has
            start = width * (k % has)
            one[label] = matrix[:, start : start + width]
        yield one
