"""Sentences about the outcome of a solve, from the data of its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from casadi_hybrid.solver.explain.conflict import conflicting_set
from casadi_hybrid.solver.explain.diagnosis import (
    Violation,
    bad_scales,
    constant_constraints,
    fall,
    last_direction,
    listed,
    worst_violations,
)
from casadi_hybrid.solver.record.answer import Answer
from casadi_hybrid.utils.inputs import Matrix
from casadi_hybrid.utils.linear_algebra.sparse import general
from casadi_hybrid.utils.status import PointStatus, StopReason

_MANY = 5
_LARGEST_QR = 5e9  # most operations of the factorization that looks for dependence
_TERMS = 8  # most terms of a combination in a sentence
_LARGE_MULTIPLIER = 1e6
_RUNAWAY = (StopReason.UNBOUNDED, StopReason.DIVERGED)
_LIMITS = StopReason.ITERATION_LIMIT, StopReason.TIME_LIMIT
_UNFINISHED = (StopReason.DIVERGED, StopReason.STALLED, *_LIMITS)


def findings(result: Answer) -> tuple[str, ...]:
    """Return the findings, most of them for a failed solve; beside a conflict no scales."""
    worst = worst_violations(result, at_most=_MANY)
    conflict = conflicting_set(result) if result.infeasible and worst else None
    lines = conflict.sentences() if conflict else []
    lines += _infeasibility(result, worst, beside_conflict=conflict is not None)
    lines += [*_undefined(result), *_falling(result)]
    if result.end is not None and conflict is None:
        lines += _dependence(result)
    if not result.success and conflict is None and result.stop not in _RUNAWAY:
        spreads = bad_scales(result)
        lines += ["Badly scaled:", *(f"  {spread}" for spread in spreads)] if spreads else []
    fixed = np.flatnonzero(result.bounds.lbx == result.bounds.ubx)
    if fixed.size:
        lines.append(f"Fixed by equal bounds: {listed([result.variable_names[i] for i in fixed])}.")
    return tuple(lines)


def _infeasibility(
    result: Answer, worst: Sequence[Violation], *, beside_conflict: bool
) -> list[str]:
    if not worst:
        return []
    lines = ["Worst violations:", *(f"  {violation}" for violation in worst)]
    slope = result.certificate
    if slope is not None and result.point is PointStatus.INFEASIBLE_STATIONARY:
        lines.append(
            f"Certificate: the slope of the violation is {slope:.2e}, so no small step reduces it."
        )
        if not beside_conflict:
            lines.append(
                "Constraints contradict each other, or this is a local minimum of their "
                "violation: relax one of them, or start elsewhere."
            )
    elif slope is not None:
        lines.append(
            f"The slope of the violation is {slope:.2e}: a step from here can still reduce it, so "
            "this is no proof that the constraints are inconsistent."
        )
    violated = {violation.name for violation in worst}
    constant = [name for name in constant_constraints(result) if name in violated]
    if constant:
        lines.append(
            f"The derivatives of {listed(constant)} by the free variables are zero at the start "
            "and at the end: where no free variable enters, no step can meet it; where one does, "
            "start elsewhere."
        )
    return lines


def _undefined(result: Answer) -> list[str]:
    count = result.evaluations.get("undefined", 0)
    if result.error is None or not count or result.stop is StopReason.EVALUATION_ERROR:
        return []
    return [
        f"At {count} trial points a function of the problem was not defined; they were rejected. "
        f"The last: {result.error}."
    ]


def _falling(result: Answer) -> list[str]:
    """Return how f falls without bound, or seems to, and the direction of the last step."""
    size, value = float(np.abs(result.x).max(initial=0.0)), f"{result.f:.6g}"
    least = fall(result) if result.stop in _UNFINISHED and not result.success else None
    lines = []
    if result.stop is StopReason.UNBOUNDED:
        lines = [f"f falls without bound along feasible points: f = {value} at |x| = {size:.2e}."]
    elif least is not None:
        place = f"at |x| = {size:.2e}" if least == result.f else "at a feasible iterate"
        lines = [
            f"f falls apparently without bound: f = {least:.6g} {place}.",
            "This is no proof; check the sign of the objective, or bound what may grow.",
        ]
    ray = last_direction(result) if result.stop in _RUNAWAY or least == result.f else None
    if ray is not None:
        lines.append(f"The last step, at |x| = {size:.2e} and f = {result.f:.3g}: {ray}.")
        if result.stop is StopReason.UNBOUNDED:
            lines.append(
                "Bound the variables named, or check the sign of the objective and the direction "
                "of the inequalities."
            )
    return lines


def _dependence(result: Answer) -> list[str]:
    dependent = dependent_constraints(result)
    if dependent is None:
        return ["Whether constraints depend on each other was not looked for: too many are active."]
    lines = []
    if dependent:
        near = rank_tolerance(result)
        lines = [f"Active constraints whose gradients depend on others, to within {near:g}:"]
        lines += [f"  {dependence}" for dependence in dependent[:_MANY]]
        if len(dependent) > _MANY:
            lines.append(f"  and {len(dependent) - _MANY} more")
        if result.success:
            lines.append("Their multipliers are not unique; those returned are one choice of many.")
        elif result.certificate is None:
            lines.append("Multipliers may not exist here; leave out what says the same twice.")
    multipliers = np.abs(np.append(result.lam_g, result.lam_x))
    largest = multipliers.max(initial=0.0)
    if (dependent or not result.success) and largest > _LARGE_MULTIPLIER * max(1.0, abs(result.f)):
        names = (*result.constraint_names, *(f"bound on {n}" for n in result.variable_names))
        name = names[int(np.argmax(multipliers))]
        lines.append(f"The largest multiplier is {largest:.2e}, of {name}.")
    return lines


@dataclass(frozen=True, slots=True)
class Dependence:
    """Gradient of an active constraint that is a combination of others."""

    index: int
    name: str
    combination: tuple[tuple[str, float], ...]  # names and coefficients of rows
    bounds: tuple[str, ...]  # variables whose bounds make up the rest

    def __str__(self) -> str:
        largest = sorted(self.combination, key=lambda part: -abs(part[1]))[:_TERMS]
        terms = [part for part in self.combination if part in largest]
        parts = [f"{factor:.4g}·∇({name})" for name, factor in terms]
        more = len(self.combination) - len(parts)
        if more:
            parts.append(f"{more} more with smaller factors")
        if self.bounds:
            parts.append(f"the bounds on {listed(self.bounds)}")
        return f"∇({self.name}) = {' + '.join(parts) or '0'}".replace("+ -", "− ")


def dependent_constraints(
    result: Answer, tolerance: float | None = None
) -> tuple[Dependence, ...] | None:
    """Return the active constraints whose gradients depend on others; None if unknown."""
    working = result.working_set
    if result.end is None:
        return None
    rows: NDArray[np.intp] = np.flatnonzero(working.g)
    columns, pinned = np.flatnonzero(working.x == 0), np.flatnonzero(working.x)
    if float(rows.size) ** 2 * columns.size > _LARGEST_QR:
        return None
    J = sp.csr_array(general(result.end.J))[rows].toarray()
    # Bounds hold the variables on them, so the other columns decide about dependence.
    whole = np.linalg.norm(J, axis=1)
    A = J[:, columns]
    size = np.linalg.norm(A, axis=1)
    # The entries of a row at free variables may be mere rounding of those at bounds.
    empty = size <= 1e-12 * whole
    length = np.where(empty | (size == 0.0), 1.0, size)
    A = np.where(empty[:, None], 0.0, A / length[:, None])
    # Rows of length one: the tolerance is an angle.
    rank, pivots, factors = _row_basis(A, tolerance or rank_tolerance(result))
    dependences = []
    names, basis = result.constraint_names, rows[pivots[:rank]]
    for d, column in zip(pivots[rank:], factors.T, strict=True):
        # Back to the rows as they are, before the scaling.
        weights = column * length[d] / length[pivots[:rank]]
        nonzero = np.abs(weights) > 1e-6 * np.abs(weights).max(initial=0.0)
        rest = J[d] - weights @ J[pivots[:rank]]
        by_bounds = pinned[np.abs(rest[pinned]) > 1e-6 * max(whole[d], 1e-300)]
        terms = zip((names[i] for i in basis[nonzero]), weights[nonzero].tolist(), strict=True)
        bounds = tuple(result.variable_names[i] for i in by_bounds)
        dependences.append(Dependence(int(rows[d]), names[rows[d]], tuple(terms), bounds))
    return tuple(sorted(dependences, key=lambda dependence: dependence.index))


def rank_tolerance(result: Answer) -> float:
    """The default tolerance of :func:`dependent_constraints`."""
    # Gradients are dependent at a solution nearby; a failed solve ended beside it.
    return 1e-6 if result.success or result.certificate is not None else 1e-2


def _row_basis(A: Matrix, tolerance: float) -> tuple[int, NDArray[np.intp], Matrix]:
    """Rank, an order of rows with a basis first, and the other rows' coefficients in it."""
    m, n = A.shape
    if m == 0 or n == 0:
        return 0, np.arange(m), np.zeros((0, m))
    # |R_kk| is the distance of a row to the span of those before it; they are ordered by it.
    R, pivots = la.qr(A.T, mode="r", pivoting=True)
    rank = int(np.count_nonzero(np.abs(np.diag(R)) > tolerance))
    # R = [R_1 R_2]: the other rows are (R_1⁻¹R_2)ᵀ times the basis.
    factors = la.solve_triangular(R[:rank, :rank], R[:rank, rank:]) if rank else R[:0]
    return rank, pivots, factors
