"""Where the derivatives of a problem differ in size by so much that a solve suffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.sparse import general
from casadi_hybrid.problem.evaluator import Operator
from casadi_hybrid.result.answer import Answer

_SPREAD = 1e6  # sizes further apart than this are bad scaling


@dataclass(frozen=True, slots=True)
class Spread:
    """Sizes that lie too far apart.

    Attributes:
        what: which sizes.
        smallest, largest: (name, size); zeros do not count.
        advice: what to do about it.
    """

    what: str
    smallest: tuple[str, float]
    largest: tuple[str, float]
    advice: str

    def __str__(self) -> str:
        (low, least), (high, most) = self.smallest, self.largest
        return f"{self.what} range from {least:.1e} ({low}) to {most:.1e} ({high}); {self.advice}"


def bad_scales(result: Answer) -> tuple[Spread, ...]:
    """Where rows, or derivatives by variables, differ in size by more than 1e6.

    A size is the larger of those at the start and at the returned point, so that a derivative
    that vanishes at one of them does not count. Nor do rows without a bound and fixed variables.
    """
    points = [at for at in (result.start, result.end) if at is not None]
    if not points:
        return ()
    b = result.bounds
    free = np.flatnonzero(b.lbx < b.ubx)
    bounded = np.flatnonzero(np.isfinite(b.lbg) | np.isfinite(b.ubg))
    blocks = [abs(general(at.J))[bounded][:, free] for at in points]
    of_f = np.max([np.abs(at.gradient[free]) for at in points], axis=0)
    of_rows = np.max([_maxima(J, 1) for J in blocks], axis=0)
    of_columns = np.max([of_f, *(_maxima(J, 0) for J in blocks)], axis=0)
    rows = [result.constraint_names[i] for i in bounded]
    columns = [result.variable_names[i] for i in free]
    kinds = [
        ("the largest derivatives of the constraints", of_rows, rows,
         "divide each such constraint and its bounds by its size"),
        ("the largest derivatives by the variables", of_columns, columns,
         "measure each such variable in a unit near its usual size"),
        ("the derivatives of f", of_f, columns,
         "measure the variables in units in which f is equally sensitive to them"),
    ]  # fmt: skip
    size = np.max([np.abs(at.x[free]) for at in points], axis=0)
    if size.max(initial=0.0) > _SPREAD:
        # (entries near zero are zeros found to rounding)
        advice = "measure them in units in which they are near one"
        kinds.append(("the entries of x", np.where(size > 1e-9, size, 0.0), columns, advice))
    made = (_spread(what, size, names, advice) for what, size, names, advice in kinds)
    return tuple(one for one in made if one is not None)


def _spread(what: str, size: Vector, names: Sequence[str], advice: str) -> Spread | None:
    seen = np.flatnonzero(size > 0.0)
    if not seen.size:
        return None
    low, high = seen[np.argmin(size[seen])], seen[np.argmax(size[seen])]
    if size[high] <= _SPREAD * size[low]:
        return None
    return Spread(what, (names[low], float(size[low])), (names[high], float(size[high])), advice)


def constant_constraints(result: Answer) -> tuple[str, ...]:
    """Names of the bounded rows with no derivative by a free variable, at the start and the end."""
    b = result.bounds
    constant = np.isfinite(b.lbg) | np.isfinite(b.ubg)
    for at in (result.start, result.end):
        if at is not None:
            constant &= _maxima(abs(general(at.J))[:, np.flatnonzero(b.lbx < b.ubx)], 1) == 0.0
    return tuple(result.constraint_names[i] for i in np.flatnonzero(constant))


def _maxima(A: Operator, axis: int) -> Vector:
    """Largest entries of a nonnegative matrix by row (axis 1) or by column (axis 0)."""
    if sp.issparse(A):
        rows, columns = A.shape
        if not (rows and columns):
            return np.zeros(rows if axis == 1 else columns)
        return np.asarray(A.max(axis=axis).toarray()).ravel()
    return np.asarray(np.asarray(A).max(axis=axis, initial=0.0))
