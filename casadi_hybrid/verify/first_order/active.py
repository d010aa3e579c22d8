"""The active set at a point, and the qualification of its gradients: rank, LICQ, MFCQ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.verify.first_order.face import Faces
from casadi_hybrid.verify.first_order.fit import fit_signed
from casadi_hybrid.verify.first_order.rows import Indices, Rows, Sides

MARGIN = 1e-7  # length of a combination of active gradients that counts as zero


@dataclass(frozen=True, eq=False)
class ActiveSet:
    """Rows that hold with equality at x, by index into the stacked rows (x; g)."""

    KINDS: ClassVar = ("equations", "strong", "weak")
    equations: Indices  # rows with equal bounds, fixed variables among them
    strong: Indices  # inequalities whose multiplier exceeds 10·tol
    weak: Indices  # the other active inequalities
    signs: Vector  # +1 at an upper bound, −1 at a lower one, 0 elsewhere; one per row
    names: tuple[str, ...]  # of all rows

    @property
    def all(self) -> Indices:
        """Every active row, in order."""
        return np.sort(np.concatenate((self.equations, self.strong, self.weak)))

    @property
    def binding(self) -> Indices:
        """Equations and strongly active rows: d is critical only if A_i d = 0 for them."""
        return np.sort(np.concatenate((self.equations, self.strong)))

    def names_of(self, rows: Indices) -> tuple[str, ...]:
        """Return the names of some rows."""
        return tuple(self.names[i] for i in rows)


def find_active(rows: Rows, multipliers: Vector, tol: float) -> ActiveSet:
    """Classify the rows at x; ``tol`` is the tolerance in units of f and of the rows."""
    # Multipliers of rows whose gradients have size one.
    pull = multipliers * rows.sizes
    signs = np.zeros(pull.size)
    for sign in (1.0, -1.0):
        # Multiplier against distance, both in the units of a row with a gradient of size one.
        toward = sign * pull * rows.sizes
        # Within 10·tol of the bound, unless the multiplier points to the other one.
        near = rows.near(sign, 10 * tol) & (toward >= 0)
        # By complementarity multiplier or distance vanishes at a solution: the larger one decides.
        signs[(toward > rows.inside(sign)) | near] = sign
    signs[rows.equations] = 0.0
    strong = (signs != 0) & (np.abs(pull) > 10 * tol)
    weak = (signs != 0) & ~strong
    equations, strong, weak = map(np.flatnonzero, (rows.equations, strong, weak))
    return ActiveSet(equations, strong, weak, signs, rows.names)


class Qualification(NamedTuple):
    """Constraint qualifications at x."""

    rank: int  # of the active rows' Jacobian
    condition: float | None  # of its free part, row-scaled; None for large ones
    licq: bool  # independent active gradients: λ is unique
    # Mangasarian and Fromovitz: independent equations, and a direction that keeps them and leaves
    # every active inequality.
    mfcq: bool


def qualify(faces: Faces, active: ActiveSet) -> Qualification:
    """Judge the gradients of the active rows."""
    indices = active.all
    face = faces.of(indices)
    # An active bound is a row of I, independent of all rows on the free variables.
    rank = int(np.count_nonzero(indices < faces.rows.n)) + face.rank
    condition = face.fit.condition if face.small else None
    licq = rank == indices.size
    # LICQ implies MFCQ.
    return Qualification(rank, condition, licq, licq or _mfcq(faces, active))


def _mfcq(faces: Faces, active: ActiveSet) -> bool:
    """Return True if no combination of active gradients with the signs of multipliers vanishes."""
    rows, equations = faces.rows, faces.equations
    if equations.rank < equations.constraints.size:
        return False
    indices = active.all
    sides = Sides(indices, active.signs[indices], np.zeros(indices.size))
    # By Motzkin's theorem MFCQ holds if A_Eᵀλ + A_Iᵀμ = 0, Σμ = 1, μ ≥ 0 has no solution.
    signed = sides.sign != 0
    columns = sides.columns(rows) @ sp.diags_array(1.0 / rows.sizes[indices])
    # The last row is Σμ = 1; a residual of zero is a combination that vanishes.
    gradients = sp.vstack((columns, signed[None, :].astype(float)), format="csc")
    target = np.append(np.zeros(rows.n), -1.0)
    coefficients = fit_signed(target, gradients, sides.distance, signed)
    return bool(np.linalg.norm(target + gradients @ coefficients) > MARGIN)
