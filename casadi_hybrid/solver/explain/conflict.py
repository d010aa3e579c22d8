"""An irreducible set of contradicting constraints at an infeasible stationary point.

Rows and bounds are linearized at the returned point. By Farkas' lemma they contradict each other
if nonnegative weights add them up to 0 ≤ −1, and a vertex of the set of such weights names an
irreducible set (Gleeson & Ryan, 1990). One linear program finds a vertex, a second proves that the
set is infeasible on its own. The rank of its gradients proves it irreducible; if moves are
limited, a deletion filter does, which leaves out one member after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse.linalg import norm

from casadi_hybrid.problem.rounding import violations
from casadi_hybrid.solver.explain.diagnosis import Index, physical, runs, stacked
from casadi_hybrid.solver.record.answer import Answer
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.linear_algebra.sparse import general

_LARGEST = 200_000  # entries of the linearization beyond which nothing is looked for
# Simplex iterations times columns of a linear program, and of the deletion filter: about a second.
# With a limit in seconds the set would depend on the load of the machine.
_WORK = 50_000_000
_SET_UP = 500  # iterations that take as long as setting up a linear program
_RANKED = 600  # members up to which the rank is computed
_CLEAR = 1e-7  # relative size above which a singular value or weight is not zero
_FEW = 6  # linking equations that are still named one by one
_LINK_COST = 10.0  # weight on an equation between variables, where that on other members is one
# An explanation raises nothing. (The caller may have turned warnings into exceptions.)
_NUMERICAL = ArithmeticError, ValueError, MemoryError, Warning
_FAILURES = (*_NUMERICAL, RuntimeError, TypeError, LookupError)
_FAR = 1e8  # largest distance of a bound that takes part, in units of the largest violation


@dataclass(frozen=True, slots=True)
class Member:
    """One bound of a conflicting set."""

    kind: str
    index: int
    name: str
    side: int  # −1 or 1; 0 for equal bounds
    bound: float
    links: bool  # an equation between two or more variables
    excess: float  # violation, in lengths of x
    curved: bool = False  # its gradient differs at the start


@dataclass(frozen=True, slots=True)
class Conflict:
    """Constraints that cannot all hold when they are linearized at the returned point."""

    members: tuple[Member, ...]
    reach: float  # largest allowed move of every variable
    irreducible: bool  # without any one member the others can hold

    def sentences(self) -> list[str]:
        """Return the set by names; equations that merely link variables are one line at the end."""
        near = "" if np.isinf(self.reach) else f", for moves of x up to {self.reach:.3g}"
        near = f"linearized at the returned point{near}"
        links = _mere_links(self.members)
        named = [m for m in self.members if m not in links]
        if len(named) == 1 and not links:
            return [f"{_groups(named)[0]} cannot be met on its own ({near})."]
        lines = [f"These contradict each other ({near}):"]
        lines += [f"  {group}" for group in _groups(named)]
        if links:
            names = runs([m.name for m in sorted(links, key=lambda m: m.index)])
            lines.append(f"  through {names} ({len(links)} equations that link variables)")
        if self.irreducible:
            lines.append("Without any one of them the others can hold: relax or correct one.")
        else:
            lines.append("Relax or correct one of them.")
        if any(m.curved for m in self.members):
            lines.append("Nonlinear ones may hold together elsewhere: another start may help.")
        return lines


def conflicting_set(result: Answer) -> Conflict | None:
    """Return a small set of constraints that contradict each other, or None if none is found."""
    with suppress(*_FAILURES), np.errstate(all="ignore"):
        system = _System.of(result)
        if system is not None:
            size = max(1.0, float(np.abs(result.x).max(initial=0.0)))
            # Moves of any size first. Within moves up to max(1, ‖x‖_∞) almost flat rows cannot be
            # met either.
            return system.search(np.inf) or system.search(size)
    return None


@dataclass(frozen=True, eq=False, slots=True)
class _System:
    """Linearized constraints a_iᵀd = b_i (side 0) or ≤ b_i, in units of the largest violation."""

    members: tuple[Member, ...]
    A: Any
    b: Vector
    unit: float

    @classmethod
    def of(cls, result: Answer) -> _System | None:
        """Return the system of a result; None without derivatives or violation, or if too large."""
        start = result.start
        if result.end is None:
            return None
        J = sp.csr_array(general(result.end.J))
        m, n = J.shape
        if J.nnz + n > _LARGEST:
            return None
        curved = np.zeros(m, dtype=bool)
        size = norm(J, axis=1)
        if start is not None:
            J_start = sp.csr_array(general(start.J))
            # The larger gradient of the two points: at one of them it may vanish.
            size = np.maximum(size, norm(J_start, axis=1))
            curved = norm(J - J_start, axis=1) > _CLEAR * size
        size = np.where(size > 0.0, size, 1.0)
        J = sp.csr_array(sp.diags_array(1.0 / size) @ J)
        touched = np.asarray((abs(J) > 1e-12).sum(axis=1)).ravel()
        names, value, low, high = stacked(result)
        A = sp.csr_array(sp.vstack((J, sp.eye_array(n))))
        length, links = np.append(size, np.ones(n)), np.append(touched > 1, np.zeros(n, dtype=bool))
        curved = np.append(curved, np.zeros(n, dtype=bool))
        # Violation over gradient: to first order the distance in x.
        excess = np.abs(violations(value, low, high)) / length
        members: list[Member] = []
        parts, limits = [], []
        for kind, first, end in (("g", 0, m), ("x", m, m + n)):
            for side, bound in ((0, low), (-1, low), (1, high)):
                has_side = np.isfinite(bound) & ((low == high) == (side == 0))
                rows = first + np.flatnonzero(has_side[first:end])
                # A lower bound a·x ≥ b is −a·x ≤ −b.
                sign = side or 1
                parts.append(sign * A[rows])
                limits.append(sign * (bound - value)[rows] / length[rows])
                for i in rows.tolist():
                    linking = bool(links[i] and side == 0)
                    label = kind, i - first, names[i], side, float(bound[i])
                    members.append(Member(*label, linking, float(excess[i]), bool(curved[i])))
        b = np.concatenate(limits)
        unit = float(max((m.excess for m in members), default=0.0))
        if not 0.0 < unit < np.inf:
            return None
        return cls(tuple(members), sp.csr_array(sp.vstack(parts)), b / unit, unit)

    @property
    def equal(self) -> NDArray[np.bool_]:
        return np.array([m.side == 0 for m in self.members], dtype=bool)

    def search(self, reach: float) -> Conflict | None:
        """Return a conflict for moves up to ``reach``, or None."""
        chosen, irreducible = self._vertex(reach / self.unit), True
        if chosen is None or self._feasible(chosen, reach / self.unit, _WORK)[0] is not False:
            return None
        if chosen.size > 1 and not (np.isinf(reach) and self._is_vertex(chosen)):
            chosen, irreducible = self._filtered(chosen, reach / self.unit)
        return Conflict(tuple(self.members[i] for i in chosen), reach, irreducible)

    def _vertex(self, reach: float) -> Index | None:
        """Return the support of the cheapest weights that add the constraints up to 0 ≤ −1."""
        # Farkas: weights w ≥ 0 (free for equations, hence listed twice) with Aᵀw = 0, bᵀw = −1. A
        # basic solution has the fewest members.
        near = np.flatnonzero(self.b <= _FAR)
        equal = near[self.equal[near]]
        rows, n = np.concatenate((near, equal)), self.A.shape[1]
        sign = np.where(np.arange(rows.size) < near.size, 1.0, -1.0)
        weigh = sp.diags_array(sign) @ self.A[rows]
        b = sign * self.b[rows]
        cost = np.where([self.members[i].links for i in rows], _LINK_COST, 1.0)
        if np.isfinite(reach):  # The box of moves takes part, at a price.
            weigh = sp.vstack((weigh, sp.eye_array(n), -sp.eye_array(n)))
            b = np.concatenate((b, np.full(2 * n, reach)))
            cost = np.concatenate((cost, np.full(2 * n, _LINK_COST)))
        if not b.size or b.min() >= 0.0:
            return None
        A_eq = sp.csc_array(sp.vstack((weigh.T, b[None, :])))
        target = np.append(np.zeros(n), -1.0)
        options = {"maxiter": max(_WORK // cost.size, 1)}
        solution = linprog(cost, A_eq=A_eq, b_eq=target, method="highs-ds", options=options)
        if solution.status != 0:
            return None
        weights = solution.x[: rows.size]
        return np.unique(rows[weights > 1e-9 * weights.max(initial=0.0)])

    def _is_vertex(self, chosen: Index) -> bool:
        """Return True if one combination of the gradients vanishes and needs all of them."""
        # A kernel of dimension one, without a zero entry: every proper subset is independent.
        A = self.A[chosen]
        A = A[:, np.unique(A.indices)]
        if chosen.size > _RANKED or not chosen.size - 1 <= A.shape[1] <= 2 * _RANKED:
            return False
        U, sizes, _ = np.linalg.svd(A.toarray())
        sizes = np.append(sizes, np.zeros(chosen.size))[: chosen.size]
        weights = np.abs(U[:, -1])
        alone = sizes[-1] <= 1e-2 * _CLEAR * sizes[0] and sizes[-2] > _CLEAR * sizes[0]
        return bool(alone and weights.min() > _CLEAR * weights.max())

    def _feasible(self, chosen: Index, reach: float, work: int) -> tuple[bool | None, int]:
        """Return True if these members can all hold (None: not enough ``work``), and the cost."""
        if not chosen.size:
            return True, 0
        A, b = self.A[chosen], self.b[chosen]
        used = np.unique(A.indices)
        if not used.size:
            # No variable enters: no move changes whether they hold, to the tolerance of HiGHS.
            short = np.where(self.equal[chosen], -np.abs(b), b)
            return bool((short >= -1e-7).all()), 0
        A, equal = A[:, used], self.equal[chosen]
        rows = {"A_ub": A[~equal], "b_ub": b[~equal], "A_eq": A[equal], "b_eq": b[equal]}
        options = {"maxiter": max(work // chosen.size, 1)}
        box = -reach, reach
        zeros = np.zeros(used.size)
        solution = linprog(zeros, **rows, bounds=box, method="highs-ds", options=options)
        # linprog's status 0 is solved, 2 infeasible; others prove nothing.
        return {0: True, 2: False}.get(solution.status), (solution.nit + _SET_UP) * chosen.size

    def _filtered(self, chosen: Index, reach: float) -> tuple[Index, bool]:
        """Delete members that the contradiction does not need, links between variables first."""
        # The deletion filter of Chinneck and Dravnieks (1991).
        budget = _WORK
        for i in sorted(map(int, chosen), key=lambda k: not self.members[k].links):
            others = chosen[chosen != i]
            feasible, cost = self._feasible(others, reach, budget)
            budget -= cost
            if feasible is None or budget <= 0:
                return chosen, False
            if feasible is False:
                chosen = others
        return chosen, True


def _mere_links(members: Sequence[Member]) -> set[Member]:
    """Return the equations between variables that need no name, if there are many."""
    most = max(m.excess for m in members)
    worst = [m for m in members if m.excess >= 0.5 * most]
    # A name stays for up to three that are violated most, and if all were left out.
    links = {m for m in members if m.links} - set(worst if len(worst) <= 3 else ())
    return links if _FEW < len(links) < len(members) else set()


def _groups(members: Sequence[Member]) -> list[str]:
    """Return lines of members with one relation: ``u[0] … u[19] ≤ 1 (20 bounds)``."""
    by_side: dict[tuple[bool, str, int], dict[str, list[Member]]] = {}
    for m in sorted(members, key=lambda m: (m.side != 0, m.kind, m.side, m.index)):
        _, bound = physical(m.name, m.bound)
        by_side.setdefault((m.side != 0, m.kind, m.side), {}).setdefault(bound, []).append(m)
    lines = []
    for (_, kind, side), by_bound in by_side.items():
        groups = list(by_bound.items())
        if len(groups) > _FEW:
            sides = {0: "equal", -1: "lower", 1: "upper"}[side]
            groups = [(f"their {sides} bounds", [m for _, group in groups for m in group])]
        relation = {0: "=", -1: "≥", 1: "≤"}[side]
        noun = "equations" if side == 0 else "bounds" if kind == "x" else "limits"
        for bound, group in groups:
            note = f" ({len(group)} {noun})" if len(group) > 2 else ""
            if kind == "x" and side == 0:
                note = " (fixed by equal bounds)"
            lines.append(f"{runs([physical(m.name)[0] for m in group])} {relation} {bound}{note}")
    return lines
