"""Derivatives of a solution with respect to parameters and bounds, by the KKT system.

Let x solve min f(x, p) s.t. lbg ≤ g(x, p) ≤ ubg, lbx ≤ x ≤ ubx with multipliers λ, μ and
L = f + λᵀg + μᵀx. Where the active rows A and active bounds B stay active, the implicit function
theorem gives, for a change dp and changes db of the active bounds,

    [ W    J_Aᵀ  E_Bᵀ ] [ dx   ]     [ L_xp dp          ]
    [ J_A  0     0    ] [ dλ_A ] = − [ g_p,A dp − db_A  ]
    [ E_B  0     0    ] [ dμ_B ]     [ −db_B            ]

with W = ∇²ₓₓL; the other multipliers stay zero. It needs independent active gradients,
W definite on their kernel, and no active row with a zero multiplier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.errors import InputError, suggest, warn
from casadi_hybrid.basics.factorization import SymmetricFactor
from casadi_hybrid.basics.inputs import Matrix, Vector
from casadi_hybrid.basics.late import LateModule
from casadi_hybrid.basics.sparse import Sparse
from casadi_hybrid.point.kkt import kkt_residuals
from casadi_hybrid.problem.bounds import Bounds, checked
from casadi_hybrid.problem.directions import few_directions, jacobian
from casadi_hybrid.problem.functions import Fused
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result.result import Result

sp = LateModule("scipy.sparse")
INPUTS = ("p", "lbx", "ubx", "lbg", "ubg")
OUTPUTS = ("x", "f", "g", "lam_x", "lam_g")


class SensitivityError(ArithmeticError):
    """The solution has no derivative here, or it is no solution. The message says which."""


class SensitivityWarning(UserWarning):
    """A constraint is weakly active: the solution has one-sided derivatives only."""


@dataclass(frozen=True, slots=True)
class Solution:
    """A KKT point to differentiate: x and its multipliers, L = f + lam_gᵀg + lam_xᵀx."""

    x: Vector
    lam_x: Vector
    lam_g: Vector


class Sensitivities:
    """Solution derivatives of one program; made once, used at any of its solutions.

    Args:
        program: the problem.
        weak: a constraint whose multiplier and whose distance to its bound are both at most this
            counts as weakly active.
        kkt_tol: largest KKT residual of a point that is differentiated.
    """

    def __init__(self, program: Problem, *, weak: float = 1e-4, kkt_tol: float = 1e-5) -> None:
        self.program = program = program.exact()
        program.functions.with_hessian("second")  # refused here where there is none
        self._weak, self._kkt_tol = weak, kkt_tol
        self.names: Any = lambda of=program.functions: (of.variable_names, of.constraint_names)

    @cached_property
    def _mixed(self) -> ca.Function:
        """(x, λ_g, p) → ∂(∇f + J_gᵀλ_g)/∂p, ∂f/∂p, ∂g/∂p, made for those who ask for numbers."""
        program, kind = self.program, type(self.program.x)
        x, lam, p = (kind.sym("s", size) for size in (program.n, program.m, program.n_p))
        f, g = program.graph.call([x, p], True, False)
        slope = ca.gradient(f + ca.dot(lam, g), x)
        with few_directions(program.graph):
            parts = [jacobian(part, p, program.graph) for part in (slope, f, g)]
        return ca.Function("mixed", [x, lam, p], parts)

    def __call__(
        self, solution: Solution, p: Vector, bounds: Bounds, wrt: Sequence[str] = INPUTS
    ) -> dict[str, Matrix]:
        """Return d(output)/d(input) by CasADi's block names, ``jac_x_p`` to ``jac_lam_g_ubg``.

        ``wrt`` names the inputs wanted; ``("p",)`` alone saves a solve per active bound.

        An equality's two bounds, when moved apart, act one at a time: the derivative is given to
        the one its multiplier's sign names, the other has zero. Their sum is what moving both
        does.

        Raises:
            SensitivityError: where the point is no KKT point, or the KKT matrix is singular.
        """
        program = self.program
        n, m, n_p = program.n, program.m, program.n_p
        gradient, J, K, at_x, at_g = self._system(solution, p, bounds)
        slope_p, f_p, g_p = (
            np.asarray(part.full()) for part in self._mixed(solution.x, solution.lam_g, p)
        )
        a, b = at_g.size, at_x.size
        # One column per parameter, then one per active bound.
        moving = any(name != "p" for name in wrt)
        right = np.zeros((n + a + b, n_p + (a + b if moving else 0)))
        right[:n, :n_p] = -slope_p
        right[n : n + a, :n_p] = -g_p[at_g]
        if moving:
            right[n:, n_p:] = np.eye(a + b)
        step = np.asarray(_factor(K).solve(right))

        dx = step[:n]
        d_lam_g, d_lam_x = np.zeros((m, right.shape[1])), np.zeros((n, right.shape[1]))
        d_lam_g[at_g], d_lam_x[at_x] = step[n : n + a], step[n + a :]
        df, dg = gradient[None, :] @ dx, J @ dx
        df[:, :n_p] += f_p
        dg[:, :n_p] += g_p
        # Of each active bound its column, which bound it is, whether the upper one acts.
        sides = {
            "x": (slice(n_p + a, None), at_x, solution.lam_x[at_x] >= 0, n),
            "g": (slice(n_p, n_p + a), at_g, solution.lam_g[at_g] >= 0, m),
        }
        derivatives = {}
        for name, block in zip(OUTPUTS, (dx, df, dg, d_lam_x, d_lam_g), strict=True):
            for of in wrt:
                full = block[:, :n_p]
                if of != "p":
                    columns, at, upper, size = sides[of[-1]]
                    chosen = upper if of[0] == "u" else ~upper
                    full = np.zeros((block.shape[0], size))
                    full[:, at[chosen]] = block[:, columns][:, chosen]
                derivatives[f"jac_{name}_{of}"] = full
        return derivatives

    def active(
        self, solution: Solution, p: Vector, bounds: Bounds
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return which bounds of x and of g are active at a solution that has derivatives.

        Raises:
            SensitivityError: where it has none: no KKT point, or a singular KKT matrix.
        """
        _, _, K, at_x, at_g = self._system(solution, p, bounds)
        _factor(K)
        return at_x, at_g

    def _system(
        self, solution: Solution, p: Vector, bounds: Bounds
    ) -> tuple[Vector, Any, Any, NDArray[np.intp], NDArray[np.intp]]:
        """∇f, J_g, the KKT matrix of the active set, and the active bounds of x and of g."""
        program = self.program
        fused = Fused(program.functions.with_hessian("second"), program.functions)
        data = fused(solution.x, solution.lam_g, p)
        gradient, g = fused.vector(data, 1), fused.vector(data, 2)
        of_J, of_W = program.functions.entries
        J, W = (Sparse(of, fused.part(data, i)).scipy() for of, i in ((of_J, 3), (of_W, 4)))
        self._check(solution, gradient, g, J, bounds)
        x, lam_x, lam_g, rows = solution.x, solution.lam_x, solution.lam_g, J.tocsr()
        # An equation of one variable gives it: limits of what is given say nothing more.
        alone = (bounds.lbg == bounds.ubg) & (np.diff(rows.indptr) == 1)
        loose = ~np.isin(np.arange(program.n), rows.indices[rows.indptr[:-1][alone]])
        at_x = self._active(x, bounds.lbx, bounds.ubx, lam_x, loose, 0)
        at_g = self._active(g, bounds.lbg, bounds.ubg, lam_g, abs(rows) @ loose > 0.0, 1)
        # Rows without a force in variables that all lie on bounds do not say how x moves: a factory
        # that leaves the bounds out fixes all variables and all rows at zero.
        free = ~np.isin(np.arange(program.n), at_x)
        at_g = at_g[(abs(rows) @ free > 0.0)[at_g] | (np.abs(lam_g[at_g]) > self._weak)]
        active = sp.vstack((rows[at_g], sp.eye_array(program.n, format="csr")[at_x]))
        return gradient, J, sp.block_array([[W, active.T], [active, None]]), at_x, at_g

    def _check(
        self, solution: Solution, gradient: Vector, g: Vector, J: Any, bounds: Bounds
    ) -> None:
        r = kkt_residuals(bounds, solution.x, gradient, g, J, solution.lam_x, solution.lam_g)
        worst = max(r.feasibility, r.stationarity, r.complementarity)
        if not worst <= self._kkt_tol:
            raise SensitivityError(
                f"the point is no solution: its largest KKT residual is {worst:.2g}, above "
                f"{self._kkt_tol:.2g}; solve the problem at these parameters and bounds first"
            )

    def _active(self, value: Vector, lower: Vector, upper: Vector, lam: Vector,
                loose: NDArray[np.bool_], kind: int) -> NDArray[np.intp]:  # fmt: skip
        equal = lower == upper
        distance = np.minimum(np.abs(value - lower), np.abs(upper - value))
        weak = ~equal & loose & (distance <= self._weak) & (np.abs(lam) <= self._weak)
        if weak.any():
            names = self.names()[kind]
            which = ", ".join(names[i] or "another part's" for i in np.flatnonzero(weak)[:4])
            warn(
                f"weakly active: {which} ({int(weak.sum())} in all) lies on a bound with a zero "
                "multiplier, where the solution has a kink; the derivative returned treats it as "
                "inactive and holds on one side only. Move p or the bound a little, or drop the "
                "constraint",
                SensitivityWarning,
            )
        # By complementarity one of the two is zero up to the solver's tolerance.
        return np.flatnonzero(equal | (loose & (np.abs(lam) > distance) & ~weak))


def solution_sensitivity(
    program_or_nlp: Problem | Mapping[str, Any],
    result: Result | Any,
    p: Any = None,
    bounds: Bounds | None = None,
    *,
    wrt: Sequence[str] = INPUTS,
    weak: float = 1e-4,
) -> dict[str, Matrix]:
    """Derivatives of a solve's outputs with respect to its parameters and bounds.

    Args:
        program_or_nlp: the problem solved, CasADi's dictionary of it, or an ``OptimalControl``.
        result: its solution: a result, or that of an ``OptimalControl``, whose own method
            ``sensitivity`` has names and units.
        p, bounds: parameters and bounds of that solve; where not given, those of the result.
        wrt: the inputs wanted, of ``p``, ``lbx``, ``ubx``, ``lbg``, ``ubg``.
        weak: see :class:`Sensitivities`.

    Returns:
        Matrices by CasADi's block names: ``jac_x_p`` (n×n_p), ``jac_f_p``, ``jac_g_p``,
        ``jac_lam_x_p``, ``jac_lam_g_p``, and the same with ``lbx``, ``ubx``, ``lbg``, ``ubg``.

    Raises:
        InputError: for an unknown name in ``wrt``, or p of a wrong size.
        SensitivityError: where the solution has no derivative.
    """
    for name in wrt:
        if name not in INPUTS:
            raise InputError(f"unknown input {name!r} in wrt{suggest(name, INPUTS)}")
    stated = program_or_nlp
    if hasattr(stated, "to_verify"):  # an optimal control problem, and what knows its numbers
        stated = stated.to_verify(result).problem
    program = stated if isinstance(stated, Problem) else Problem.from_nlp(stated)
    numbers: Any = getattr(result, "program", result)
    missing = [name for name in ("x", "lam_x", "lam_g") if not hasattr(result, name)]
    if missing or not hasattr(numbers, "p"):
        raise InputError(
            "result must be what a Solver returned (solver.result of nlpsol), or the solution of "
            f"an OptimalControl, got {type(result).__name__}"
        )
    p = checked(numbers.p if p is None else p, program.n_p, "p")
    if bounds is None:
        bounds = getattr(numbers, "bounds", numbers)  # a program has them itself
    solution = Solution(result.x, result.lam_x, result.lam_g)
    return Sensitivities(program, weak=weak)(solution, p, bounds, wrt)


def _factor(K: Any) -> SymmetricFactor:
    """Factor K, refusing a singular one."""
    factor = SymmetricFactor(K)
    if factor.singular:
        raise SensitivityError(
            "the KKT matrix is singular at this solution, so it has no derivative: the gradients "
            "of the active constraints are dependent, or the Lagrangian has no curvature along a "
            "direction they leave free"
        )
    return factor
