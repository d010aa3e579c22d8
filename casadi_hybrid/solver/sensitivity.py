"""Derivatives of a solution with respect to parameters and bounds, by the KKT system.

Let x solve min f(x, p) s.t. lbg ≤ g(x, p) ≤ ubg, lbx ≤ x ≤ ubx with multipliers λ, μ and
L = f + λᵀg + μᵀx. Where the active rows A and active bounds B stay active, the implicit function
theorem gives, for a change dp and changes db of the active bounds,

    [ W    J_Aᵀ  E_Bᵀ ] [ dx   ]     [ L_xp dp          ]
    [ J_A  0     0    ] [ dλ_A ] = − [ g_p,A dp − db_A  ]
    [ E_B  0     0    ] [ dμ_B ]     [ −db_B            ]

with W = ∇²ₓₓL; the other multipliers stay zero. The system needs independent active gradients,
W definite on their kernel, and no active row with a zero multiplier.

Gradients are dependent if more points of an interval hold a limit than there are degrees of
freedom, and near its end a limit is neither clearly active nor clearly inactive. Then all limits
count, as in a step of the interior-point method, g_i dp + J_i dx − (s_i/|λ_i|) dλ_i = db_i with s
the distance to the limit: the derivative of the point that the solver found. In any case
df = f_p dp + λᵀ(g_p dp − db) − μᵀdb, which needs no dx.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.problem.bounds import Bounds, checked
from casadi_hybrid.problem.graph.directions import few_directions, jacobian
from casadi_hybrid.problem.graph.functions import Fused
from casadi_hybrid.problem.point.kkt import kkt_residuals
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.result import Result
from casadi_hybrid.utils.errors import InputError, suggest, warn
from casadi_hybrid.utils.inputs import Matrix, Vector
from casadi_hybrid.utils.late import LateModule
from casadi_hybrid.utils.linear_algebra.factorization import SymmetricFactor
from casadi_hybrid.utils.linear_algebra.sparse import Sparse

sp = LateModule("scipy.sparse")
INPUTS = ("p", "lbx", "ubx", "lbg", "ubg")
Indices = NDArray[np.intp]
OUTPUTS = ("x", "f", "g", "lam_x", "lam_g")


class SensitivityError(ArithmeticError):
    """The solution has no derivative, or the point is no solution. The message says which."""


class SensitivityWarning(UserWarning):
    """A constraint is weakly active: the solution has a kink there or nearby."""


_KKT = 1e-5  # largest KKT residual of a point that is differentiated
_CLEAR = 1e3  # multiplier over distance of a clearly active limit; the inverse: inactive
_FAR = 1e12  # distance over multiplier beyond which a limit is ignored
_DUAL = 1e-9  # regularization of dependent equations, relative to a²/max|W| of a row a
_EXACT, _NEAR = 1e-6, 0.1  # residuals of an equation and of an active row, relative to their terms
_FLAT = "the Lagrangian has no curvature along a direction that they leave free"


def _singular(why: str) -> SensitivityError:
    return SensitivityError(
        f"the KKT matrix is singular at this solution, so it has no derivative: {why}"
    )


class Solution(NamedTuple):
    """A KKT point to differentiate: x and its multipliers, L = f + lam_gᵀg + lam_xᵀx."""

    x: Vector
    lam_x: Vector
    lam_g: Vector


class _System(NamedTuple):
    """Hessian W and the limits of (g; x) at a solution."""

    W: Any
    A: Any  # gradients of the limits
    lam: Vector
    soft: Vector  # distance / |λ|
    # a |diag W|⁻¹ aᵀ of a gradient a: |λ|·unit is the violation of the limit without its force. So
    # soft / unit compares limits in all units: below one a limit is active.
    unit: Vector
    active: Indices
    felt: Indices  # active ones, and those that are not clearly inactive
    clear: bool  # every limit is clearly active or clearly inactive

    def matrix(self, limits: Indices, soft: Any = 0.0) -> Any:
        A, corner = self.A[limits], -sp.diags_array(np.broadcast_to(soft, limits.shape))
        return sp.block_array([[self.W, A.T], [A, corner]])


class Sensitivities:
    """Solution derivatives of one problem, at any of its solutions.

    Args:
        program: the problem.
        weak: largest multiplier and largest distance to its bound of a constraint that is reported
            as weakly active.
    """

    def __init__(self, program: Problem, *, weak: float = 1e-4) -> None:
        self.program, self._weak = program.exact(), weak
        functions = self.program.functions
        functions.with_hessian("second")  # raises if there is none
        self.names: Any = lambda: (functions.variable_names, functions.constraint_names)

    @cached_property
    def _mixed(self) -> ca.Function:
        """(x, λ_g, p) → ∂(∇f + J_gᵀλ_g)/∂p, ∂f/∂p, ∂g/∂p."""
        program, kind = self.program, type(self.program.x)
        x, lam, p = (kind.sym("s", size) for size in (program.n, program.m, program.n_p))
        f, g = program.graph.call([x, p], True, False)
        slope = ca.gradient(f + ca.dot(lam, g), x)
        with few_directions(program.graph):
            parts = [jacobian(part, p, program.graph) for part in (slope, f, g)]
        return ca.Function("mixed", [x, lam, p], parts)

    def __call__(
        self,
        solution: Solution | Result,
        p: Vector,
        bounds: Bounds,
        wrt: Sequence[str] = INPUTS,
        slopes: tuple[Matrix, Matrix] | None = None,
        of_p: Any = slice(None),
    ) -> dict[str, Matrix]:
        """Return d(output)/d(input) by CasADi's block names, ``jac_x_p`` to ``jac_lam_g_ubg``."""
        program = self.program
        n, m = program.n, program.m
        system = self._system(solution, p, bounds)
        slope_p, f_p, g_p = (
            np.asarray(part.full())[:, of_p] for part in self._mixed(solution.x, solution.lam_g, p)
        )
        n_p = slope_p.shape[1]
        # Derivative of each limit's value (g; x), minus that of its active bound.
        by_p = np.concatenate((g_p, np.zeros((n, n_p))))
        # Bounds that depend on p move with it: d(lower)/dp and d(upper)/dp by the acting side.
        if slopes is not None:
            by_p -= np.where(system.lam[:, None] < 0, *slopes)[:, of_p]
        # The implicit function theorem for a clear active set with independent gradients, else all
        # limits with their softness.
        factor = SymmetricFactor(system.matrix(system.active)) if system.clear else None
        if factor and factor.singular:
            factor = None
        limits = system.active if factor else system.felt
        # One column per parameter, then one per active bound.
        bounds_move = any(name != "p" for name in wrt)
        moved = np.flatnonzero(bounds_move & (system.soft[limits] <= system.unit[limits]))
        right = np.zeros((n + limits.size, n_p + moved.size))
        right[:n, :n_p] = -slope_p
        right[n:, :n_p] = -by_p[limits]
        right[n + moved, n_p + np.arange(moved.size)] = 1.0
        # The right-hand side is −(L_xp; g_p) by p, and e_i by the bound of limit i.
        step = np.asarray(factor.solve(right) if factor else self._softly(system, right))

        dx, d_lam = step[:n], np.zeros((m + n, right.shape[1]))
        d_lam[limits] = step[n:]
        dg = system.A[:m] @ dx
        dg[:, :n_p] += g_p
        columns = limits[moved]  # limit of each column of a bound
        lam = system.lam[columns]
        # df = f_p dp + λᵀ(g_p dp − db): no dx is needed.
        df = np.concatenate((f_p + system.lam @ by_p, -lam[None]), axis=1)
        derivatives = {}
        for output, block in zip(OUTPUTS, (dx, df, dg, d_lam[m:], d_lam[:m]), strict=True):
            for name in wrt:
                full = block[:, :n_p]
                if name != "p":
                    first, size = (m, n) if name[-1] == "x" else (0, m)
                    kind = (columns >= m) == (name[-1] == "x")
                    # The bounds of an equation move one at a time: the derivative is that of the
                    # side which the multiplier names, zero for the other. Moved together the effect
                    # is the sum.
                    chosen = kind & ((lam >= 0) == (name[0] == "u"))
                    full = np.zeros((block.shape[0], size))
                    full[:, columns[chosen] - first] = block[:, n_p:][:, chosen]
                derivatives[f"jac_{output}_{name}"] = full
        return derivatives

    def softness(self, solution: Solution, p: Vector, bounds: Bounds) -> tuple[Vector, Vector]:
        """Return 0 for active bounds of x and of g, ∞ for inactive ones, distance / |λ| between."""
        system, m = self._system(solution, p, bounds), self.program.m
        limits = system.active if system.clear else system.felt
        soft = 0.0 * system.soft[limits] if system.clear else system.soft[limits]
        if SymmetricFactor(system.matrix(limits, soft)).singular:
            raise _singular(f"the gradients of the active constraints are dependent, or {_FLAT}")
        softness = np.full(system.soft.size, np.inf)
        softness[limits] = soft
        return softness[m:], softness[:m]

    def _softly(self, system: _System, right: Matrix) -> Matrix:
        """Solve with all limits, whose gradients may be dependent but not contradictory."""
        limits, W, n = system.felt, system.W, self.program.n
        A, soft = system.A[limits], system.soft[limits]
        size = abs(A)
        # Factored with a small dual regularization, which the refinement removes.
        dual = _DUAL * size.power(2).sum(axis=1) / ((W.nnz and abs(W).max()) or 1.0)
        K, factor = system.matrix(limits, soft), SymmetricFactor(system.matrix(limits, soft + dual))
        if factor.singular:
            raise _singular(f"besides the active constraints, {_FLAT}")
        step = np.zeros_like(right)
        # Iterative refinement with the matrix itself.
        for _ in range(5):
            step += factor.solve(right - K @ step)
        # Residuals of the rows that have to hold, against their terms, which have to cancel.
        residual = np.abs(right[n:] - A @ step[:n])
        terms = np.abs(right[n:]) + np.outer(size.sum(axis=1), np.abs(step[:n]).max(axis=0))
        allowed = np.where(soft == 0.0, _EXACT, _NEAR)[:, None] * terms + _EXACT
        # Clearly active rows alone have to hold.
        holds = soft * _CLEAR < np.minimum(system.unit[limits], 1.0)
        broken = holds & (residual > allowed).any(axis=1)
        if broken.any():
            raise _singular(
                f"{self._named(limits[broken])} on limits that contradict each other as "
                "the parameter, or one of the bounds, moves; a larger weight on controls, or on "
                "the quantities that they limit, leaves fewer of them active"
            )
        return step

    def _named(self, limits: Indices) -> str:
        """Names of limits with a verb: ``a, b and c lie``, of many the first four."""
        of_x, of_g = self.names()
        labels = [*of_g, *of_x]
        names = [*dict.fromkeys(labels[i] or "a limit of another part" for i in limits)]
        if len(names) > 5:
            names[4:] = [f"{len(names) - 4} more"]
        *some, last = names
        return f"{', '.join(some)} and {last} lie" if some else f"{last} lies"

    def _system(self, solution: Solution | Result, p: Vector, bounds: Bounds) -> _System:
        program = self.program
        fused = Fused(program.functions.with_hessian("second"), program.functions)
        data = fused(solution.x, solution.lam_g, p)
        gradient, g = fused.vector(data, 1), fused.vector(data, 2)
        of_J, of_W = program.functions.entries
        J, W = (Sparse(s, fused.part(data, i)).scipy() for s, i in ((of_J, 3), (of_W, 4)))
        x, lam_x, lam_g, rows = solution.x, solution.lam_x, solution.lam_g, J.tocsr()
        # Terms of ∇f at a settled point, whose rounding is no residual.
        inner = float((abs(W) @ np.abs(x)).max(initial=0.0))
        r = kkt_residuals(bounds, x, gradient, g, J, lam_x, lam_g, inner=inner)
        worst = max(r.feasibility, r.stationarity, r.complementarity)
        if not worst <= _KKT:
            raise SensitivityError(
                f"the point is no solution: its largest KKT residual is {worst:.2g}, above "
                f"{_KKT:.2g}; solve the problem at these parameters and bounds first"
            )
        # An equation of one variable determines it: its limits are inactive.
        alone = (bounds.lbg == bounds.ubg) & (np.diff(rows.indptr) == 1)
        loose = ~np.isin(np.arange(program.n), rows.indices[rows.indptr[:-1][alone]])
        A = sp.vstack((rows, sp.eye_array(program.n, format="csr")), format="csr")
        loose = np.concatenate((abs(rows) @ loose > 0.0, loose))
        value, lower, upper, lam = (
            np.concatenate(pair)
            for pair in ((g, x), (bounds.lbg, bounds.lbx), (bounds.ubg, bounds.ubx), (lam_g, lam_x))
        )
        equal, size = lower == upper, np.abs(lam)
        loose &= ~equal
        distance = np.minimum(np.abs(value - lower), np.abs(upper - value))
        curvature = np.abs(W.diagonal())
        most = curvature.max(initial=0.0) or 1.0
        # A variable without curvature counts with the largest one, as a guess.
        unit = A.power(2) @ (1.0 / np.where(curvature > _EXACT * most, curvature, most))
        root = np.sqrt(np.where(unit > 0.0, unit, 1.0))
        weak = loose & (distance <= self._weak * np.minimum(root, 1.0))
        weak &= size * np.maximum(root, 1.0) <= self._weak
        if weak.any():
            warn(
                f"weakly active: {self._named(np.flatnonzero(weak))} on a bound with a multiplier "
                f"of zero, to within {self._weak:.0e}: the solution has a kink there or close by, "
                "and its derivative is that of one side or between both. A smaller tol of the "
                "solver may tell which limits hold; or move p or the bound a little, or drop the "
                "constraint",
                SensitivityWarning,
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            soft = np.where(equal, 0.0, distance / size)  # NaN for a zero multiplier on a limit
        soft = np.where(weak, np.maximum(soft, unit / _CLEAR), soft)
        # By complementarity one of the two is zero up to the solver's tolerance.
        active = equal | (loose & (soft < unit) & ~weak)
        felt = active | (loose & (soft < _FAR * unit))
        # Rows without a force in variables that all lie on bounds do not determine dx: a factory
        # that omits the bounds fixes all variables and all rows at zero.
        counts = (abs(A) @ ~active[program.m :] > 0.0) | (size * root > self._weak)
        counts[program.m :] = True
        # The unit is a guess for a variable without curvature: then λ itself has to agree.
        low, high = soft < np.minimum(unit, 1.0) / _CLEAR, soft > np.maximum(unit, 1.0) * _CLEAR
        clear = ~np.any(weak | loose & ~(low | high))
        acting, near = np.flatnonzero(active & counts), np.flatnonzero(felt & counts)
        return _System(W, A, lam, soft, unit, acting, near, bool(clear))


def solution_sensitivity(
    program_or_nlp: Problem | Mapping[str, Any],
    result: Result | Any,
    p: Any = None,
    bounds: Bounds | None = None,
    *,
    wrt: Sequence[str] = INPUTS,
    weak: float = 1e-4,
) -> dict[str, Matrix]:
    """Return the derivatives of a solve's outputs with respect to its parameters and bounds.

    Args:
        program_or_nlp: the problem solved, CasADi's dictionary of it, or an ``OptimalControl``.
        result: its solution: a result, or that of an ``OptimalControl``, whose own method
            ``sensitivity`` has names and units.
        p, bounds: parameters and bounds of that solve; those of the result by default.
        wrt: the inputs, of ``p``, ``lbx``, ``ubx``, ``lbg``, ``ubg``; each is moved alone, with
            the others constant, also bounds that an ``OptimalControl`` has from its parameters.
        weak: see :class:`Sensitivities`.

    Returns:
        Matrices by CasADi's block names: ``jac_x_p`` (n×n_p), ``jac_f_p``, ``jac_g_p``,
        ``jac_lam_x_p``, ``jac_lam_g_p``, and the same with ``lbx``, ``ubx``, ``lbg``, ``ubg``.

    Raises:
        InputError: for an unknown name in ``wrt``, or p of a wrong size.
        SensitivityError: if the solution has no derivative.
    """
    for name in wrt:
        if name not in INPUTS:
            raise InputError(f"unknown input {name!r} in wrt{suggest(name, INPUTS)}")
    program = program_or_nlp
    if hasattr(program, "to_verify"):  # an optimal control problem
        program = program.to_verify(result).problem
    if not isinstance(program, Problem):
        program = Problem.from_nlp(program)
    numbers: Any = getattr(result, "program", result)
    if not (all(hasattr(result, name) for name in Solution._fields) and hasattr(numbers, "p")):
        raise InputError(
            "result must be what a Solver returned (solver.result of nlpsol), or the solution of "
            f"an OptimalControl, got {type(result).__name__}"
        )
    p = checked(numbers.p if p is None else p, program.n_p, "p")
    if bounds is None:
        bounds = getattr(numbers, "bounds", numbers)  # a program has them itself
    return Sensitivities(program, weak=weak)(result, p, bounds, wrt)
