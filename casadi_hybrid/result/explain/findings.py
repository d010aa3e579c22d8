"""Sentences about a solve of a nonlinear program, from what its result holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from casadi_hybrid.basics.inputs import Matrix
from casadi_hybrid.basics.sparse import general
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.result.answer import Answer
from casadi_hybrid.result.explain.conflict import conflicting_set
from casadi_hybrid.result.explain.diagnosis import (
    bad_scales,
    constant_constraints,
    fall,
    last_direction,
    listed,
    worst_violations,
)

_MANY = 5
_LARGEST_QR = 5e9  # operations of the factorization beyond which dependence is not looked for
_TERMS = 8  # of a combination, that a sentence names
_LARGE_MULTIPLIER = 1e6
_RUNAWAY = (StopReason.UNBOUNDED, StopReason.DIVERGED)
_UNFINISHED = (
    StopReason.DIVERGED, StopReason.STALLED, StopReason.ITERATION_LIMIT, StopReason.TIME_LIMIT
)  # fmt: skip


def findings(result: Answer) -> tuple[str, ...]:
    """What there is to say about the outcome; most of it only where the solve failed."""
    conflict = _conflict(result)
    said = [*conflict, *_infeasibility(result, beside_conflict=bool(conflict))]
    said += [*_undefined(result), *_falling(result), *_ray(result)]
    if result.end is not None and not conflict:
        said += _dependence(result)
    if not result.success and not conflict and result.stop not in _RUNAWAY:
        spreads = bad_scales(result)
        said += ["Badly scaled:", *(f"  {one}" for one in spreads)] if spreads else []
    fixed = np.flatnonzero(result.bounds.lbx == result.bounds.ubx)
    if fixed.size:
        names = [result.variable_names[i] for i in fixed]
        said.append(f"Fixed by equal bounds: {listed(names)}.")
    return tuple(said)


def _conflict(result: Answer) -> list[str]:
    """What contradicts each other: with it, dependence and scales have nothing to add."""
    if not result.infeasible or not worst_violations(result, at_most=1):
        return []
    conflict = conflicting_set(result)
    return [] if conflict is None else conflict.sentences()


def _infeasibility(result: Answer, *, beside_conflict: bool) -> list[str]:
    worst = worst_violations(result, at_most=_MANY)
    if not worst:
        return []
    said = ["Worst violations:", *(f"  {one}" for one in worst)]
    slope = result.certificate
    if slope is not None and result.point is PointStatus.INFEASIBLE_STATIONARY:
        said.append(
            f"Certificate: the slope of the violation is {slope:.2e}, so no small step reduces it."
        )
        if not beside_conflict:
            said.append(
                "Constraints contradict each other, or this is a local minimum of their "
                "violation: relax one of them, or start elsewhere."
            )
    elif slope is not None:
        said.append(
            f"The slope of the violation is {slope:.2e}: a step from here can still reduce it, so "
            "this is no proof that the constraints are inconsistent."
        )
    violated = {one.name for one in worst}
    constant = [name for name in constant_constraints(result) if name in violated]
    if constant:
        said.append(
            f"The derivatives of {listed(constant)} by the free variables are zero at the start "
            "and at the end: where no free variable enters, no step can meet it; where one does, "
            "start elsewhere."
        )
    return said


def _undefined(result: Answer) -> list[str]:
    count = result.evaluations.get("undefined", 0)
    if result.error is None or not count or result.stop is StopReason.EVALUATION_ERROR:
        return []
    return [
        f"At {count} trial points a function of the problem was not defined; they were rejected. "
        f"The last: {result.error}."
    ]


def _falling(result: Answer) -> list[str]:
    """That f falls without bound, or does so apparently, where the solve shows it."""
    size = float(np.abs(result.x).max(initial=0.0))
    if result.stop is StopReason.UNBOUNDED:
        return [
            f"f falls without bound along feasible points: f = {result.f:.6g} at |x| = {size:.2e}."
        ]
    least = fall(result) if result.stop in _UNFINISHED else None
    if least is None or result.success:
        return []
    there = f"at |x| = {size:.2e}" if least == result.f else "at a feasible iterate"
    return [
        f"f falls apparently without bound: f = {least:.6g} {there}.",
        "This is no proof; check the sign of the objective, or bound what may grow.",
    ]


def _ray(result: Answer) -> list[str]:
    apparent = result.stop in _UNFINISHED and fall(result) == result.f
    if result.stop not in _RUNAWAY and (result.success or not apparent):
        return []
    ray = last_direction(result)
    if ray is None:
        return []
    size = float(np.abs(result.x).max())
    said = [f"The last step, at |x| = {size:.2e} and f = {result.f:.3g}: {ray}."]
    if result.stop is StopReason.UNBOUNDED:
        said.append(
            "Bound the variables named, or check the sign of the objective and the direction of "
            "the inequalities."
        )
    return said


def _dependence(result: Answer) -> list[str]:
    dependent = dependent_constraints(result)
    if dependent is None:
        return ["Whether constraints depend on each other was not looked for: too many are active."]
    said = []
    if dependent:
        near = rank_tolerance(result)
        said = [f"Active constraints whose gradients depend on others, to within {near:g}:"]
        said += [f"  {one}" for one in dependent[:_MANY]]
        if len(dependent) > _MANY:
            said.append(f"  and {len(dependent) - _MANY} more")
        if result.success:
            said.append("Their multipliers are not unique; those returned are one choice of many.")
        elif result.certificate is None:
            said.append("Multipliers may not exist here; leave out what says the same twice.")
    largest = max(np.abs(result.lam_g).max(initial=0.0), np.abs(result.lam_x).max(initial=0.0))
    told = bool(dependent) or not result.success
    if told and largest > _LARGE_MULTIPLIER * max(1.0, abs(result.f)):
        names = (*result.constraint_names, *(f"bound on {n}" for n in result.variable_names))
        i = int(np.argmax(np.abs(np.concatenate((result.lam_g, result.lam_x)))))
        said.append(f"The largest multiplier is {largest:.2e}, of {names[i]}.")
    return said


@dataclass(frozen=True, slots=True)
class Dependence:
    """A gradient of an active constraint that is a combination of others.

    ``combination`` has names and coefficients of rows; the bounds of the variables named in
    ``bounds`` make up the rest.
    """

    index: int
    name: str
    combination: tuple[tuple[str, float], ...]
    bounds: tuple[str, ...]

    def __str__(self) -> str:
        largest = sorted(self.combination, key=lambda part: -abs(part[1]))[:_TERMS]
        parts = [f"{factor:.4g}·∇({name})" for name, factor in self.combination
                 if (name, factor) in largest]  # fmt: skip
        left = len(self.combination) - len(parts)
        if left:
            parts.append(f"{left} more with smaller factors")
        if self.bounds:
            parts.append(f"the bounds on {listed(self.bounds)}")
        return f"∇({self.name}) = {' + '.join(parts) or '0'}".replace("+ -", "− ")


def dependent_constraints(
    result: Answer, tolerance: float | None = None
) -> tuple[Dependence, ...] | None:
    """The active constraints whose gradients depend on those of others at the returned point.

    The gradients of the active rows, without the entries of variables at a bound, are scaled to
    length one; QR with column pivoting of their transpose gives the rank and the combinations.
    Where there is any dependence the multipliers are not unique (or do not exist).

    Args:
        tolerance: a row of length one this close to a combination of others depends on them; by
            default 1e-6, and 1e-2 at a feasible point where the solve failed: where constraints
            degenerate, such points are only near the one at which gradients are dependent.

    Returns:
        None where it is not known: no derivatives, or more than 5e9 operations.
    """
    at, working = result.end, result.working_set
    if at is None:
        return None
    rows: NDArray[np.intp] = np.flatnonzero(working.g)
    columns, pinned = np.flatnonzero(working.x == 0), np.flatnonzero(working.x)
    if float(rows.size) ** 2 * columns.size > _LARGEST_QR:
        return None
    J = sp.csr_array(general(at.J))[rows].toarray()
    whole = np.linalg.norm(J, axis=1)
    A = J[:, columns]
    size = np.linalg.norm(A, axis=1)
    # What is left of a row once the bounds have taken their part may be rounding.
    empty = size <= 1e-12 * whole
    length = np.where(empty | (size == 0.0), 1.0, size)
    A = np.where(empty[:, None], 0.0, A / length[:, None])
    rank, pivots, factors = _row_basis(A, tolerance or rank_tolerance(result))
    found = []
    for k in range(rank, rows.size):
        d = pivots[k]
        weights = factors[:, k - rank] * length[d] / length[pivots[:rank]]
        basis = rows[pivots[:rank]]
        kept = np.abs(weights) > 1e-6 * np.abs(weights).max(initial=0.0)
        rest = J[d] - weights @ J[pivots[:rank]]
        held = pinned[np.abs(rest[pinned]) > 1e-6 * max(whole[d], 1e-300)]
        names = result.constraint_names
        combination = zip((names[i] for i in basis[kept]), weights[kept].tolist(), strict=True)
        bounds = tuple(result.variable_names[i] for i in held)
        found.append(Dependence(int(rows[d]), names[rows[d]], tuple(combination), bounds))
    return tuple(sorted(found, key=lambda one: one.index))


def rank_tolerance(result: Answer) -> float:
    """The default tolerance of :func:`dependent_constraints`."""
    return 1e-6 if result.success or result.certificate is not None else 1e-2


def _row_basis(A: Matrix, tolerance: float) -> tuple[int, NDArray[np.intp], Matrix]:
    """Rank, an order of rows with a basis first, and the other rows' coefficients in it."""
    m, n = A.shape
    if m == 0 or n == 0:
        return 0, np.arange(m), np.zeros((0, m))
    R, pivots = la.qr(A.T, mode="r", pivoting=True)
    rank = int(np.count_nonzero(np.abs(np.diag(R)) > tolerance))
    factors = la.solve_triangular(R[:rank, :rank], R[:rank, rank:]) if rank else R[:0]
    return rank, pivots, factors
