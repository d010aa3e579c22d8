"""Derivatives of a solve as CasADi graphs, so that CasADi can differentiate them again.

The system of :mod:`casadi_hybrid.solver.sensitivity` in symbols, with one pattern for all
active sets. With σ the distance of a limit over its |multiplier|, 0 where it clearly holds and ∞
where it clearly does not, a = 1/(1 + σ) of the bounds of x, σ = (1 − b)/b² of the rows of g and
i² = 1 − a. With r = −L_xp dp, d the change of the bounds of x times a and e that of the bounds of g
times b, all linear in the seeds, dx = iy + d and dλ = bw, where

    [ iWi + a   iJᵀb  ] [ y ]   [ i(r + d − Wd)         ]
    [ bJi       b − 1 ] [ w ] = [ e − b(g_p dp + J d)   ]

and dμ = −d(∇f + Jᵀλ) where a > 0. The matrix is symmetric, so the reverse mode solves with the same
one. σ is computed in numbers and has no derivative: a second derivative holds while the active set
stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.graph.directions import few_directions, jacobian
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.options.convention import INPUTS, OUTPUTS, Columns, columns_of
from casadi_hybrid.solver.sensitivity import Sensitivities, Solution
from casadi_hybrid.utils.matrices import array_of

_INPUTS, _SIDES = ("solver", *INPUTS), ("lbx", "ubx", "lbg", "ubg")


class _Active(Columns):
    """(x, lam_x, lam_g, p, lbx, ubx, lbg, ubg) → a and b at lbx, ubx, lbg, ubg."""

    def __init__(self, problem: Problem) -> None:
        n, m = problem.n, problem.m
        self._sensitivities = Sensitivities(problem)
        super().__init__("active", (n, n, m, problem.n_p, n, n, m, m), (n, n, m, m))

    def eval(self, arguments: Sequence[ca.DM]) -> list[ca.DM]:
        x, lam_x, lam_g, p, *bounds = (array_of(value).ravel() for value in arguments)
        if np.isnan(x).any():  # the solve had no values, so there are no slopes either
            return [ca.DM.nan(*shape) for shape in self._out]
        solution = Solution(x, lam_x, lam_g)
        # Raises a SensitivityError if the point has no derivative.
        soft_x, soft_g = self._sensitivities.softness(solution, p, Bounds(*bounds))
        # b is the root of σ = (1 − b)/b² in a form without cancellation; σ = ∞ gives 0.
        a, b = 1.0 / (1.0 + soft_x), 2.0 / (1.0 + np.sqrt(1.0 + 4.0 * soft_g))
        # The sign of a multiplier names the side: positive at an upper bound.
        sides = a * (lam_x < 0), a * (lam_x >= 0), b * (lam_g < 0), b * (lam_g >= 0)
        return [ca.DM(side) for side in sides]


def _symbols(labels: Sequence[str], rows: dict[str, int], columns: int = 1) -> dict[str, ca.MX]:
    return {label: ca.MX.sym(label, rows[label], columns) for label in labels}


class _Point:
    """Symbols, active limits and matrix at a solution, for both modes."""

    def __init__(self, of: Derivatives, seeded: Sequence[str], directions: int) -> None:
        inputs, outputs = _symbols(_INPUTS, of.rows), _symbols(OUTPUTS, of.rows)
        self.seeds = _symbols(seeded, of.rows, directions)
        self.symbols = [*inputs.values(), *outputs.values(), *self.seeds.values()]
        x, lam_x, lam, p = outputs["x"], outputs["lam_x"], outputs["lam_g"], inputs["p"]
        # Arguments and results of Derivatives._slopes, whose signs are those of ∇L.
        self.at = x, lam, p, outputs["f"], outputs["g"], -lam_x, -outputs["lam_p"]
        sides = of.active(x, lam_x, lam, p, *(inputs[side] for side in _SIDES))
        self.on = on = dict(zip(_SIDES, sides, strict=True))
        self.a = a = on["lbx"] + on["ubx"]
        self.b = b = on["lbg"] + on["ubg"]
        self.i = i = ca.sqrt(1 - a)
        W, J = of.matrices(x, lam, p)
        free = ca.mtimes([ca.diag(b), J, ca.diag(i)])
        upper = ca.mtimes([ca.diag(i), W, ca.diag(i)]) + ca.diag(a)
        self._K = ca.blockcat([[upper, free.T], [free, ca.diag(b - 1)]])

    def solve(self, upper: ca.MX, lower: ca.MX) -> tuple[ca.MX, ca.MX]:
        """(iy, bw) for right-hand sides, a column a direction."""
        # CasADi's test for a singular matrix is absolute; the relative one is in _Active.
        step = ca.solve(self._K, ca.vertcat(upper, lower), "qr", {"eps": 0.0})
        n = upper.size1()
        return self.i * step[:n, :], self.b * step[n:, :]


class Derivatives:
    """Directional derivatives of (solver, x0, p, bounds, lam0) → (x, f, g, lam_x, lam_g, lam_p)."""

    def __init__(self, problem: Problem) -> None:
        rows_in, rows_out = columns_of(problem)
        # All are columns. Bounds of g are those of all rows (h; g); the first input names the
        # solver.
        self.rows = dict(zip((*_INPUTS, *OUTPUTS), (1, *rows_in, *rows_out), strict=True))
        # CasADi holds no reference to a Python callback: this object has to outlive its functions.
        self._callback = _Active(problem)
        symbols = self._callback.mx_in()
        # The sides are constant but for steps of the active set, which are no slopes.
        constant = {"is_diff_in": [False] * 8, "is_diff_out": [False] * 4, "never_inline": True}
        self.active = ca.Function("active", symbols, self._callback.call(symbols), constant)
        kind = type(problem.x)
        x, lam, p = (kind.sym(label, self.rows[label]) for label in ("x", "lam_g", "p"))
        f, g = problem.graph.call([x, p], True, False)
        L = f + ca.dot(lam, g)
        slopes = [ca.densify(ca.gradient(L, v)) if v.numel() else kind(0, 1) for v in (x, p)]
        self._slopes = ca.Function("slopes", [x, lam, p], [f, ca.densify(g), *slopes])
        with few_directions(problem.graph):
            matrices = [ca.hessian(L, x)[0], jacobian(g, x, problem.graph)]
        self.matrices = ca.Function("matrices", [x, lam, p], matrices)

    def forward(self, directions: int, name: str) -> ca.Function:
        """The Function (inputs, outputs, seeds of the inputs) → derivatives of the outputs."""
        point = _Point(self, _INPUTS, directions)
        on, seeds, dp = point.on, point.seeds, point.seeds["p"]
        d = on["lbx"] * seeds["lbx"] + on["ubx"] * seeds["ubx"]
        e = on["lbg"] * seeds["lbg"] + on["ubg"] * seeds["ubg"]
        # Twice along the slopes: first for the right-hand side, with x moved by d alone, then along
        # the step for the outputs.
        ahead = self._slopes.forward(directions)
        _, dg, dL, _ = ahead(*point.at, d, 0, dp)
        dx, dlam = point.solve(point.i * (d - dL), e - point.b * dg)
        dx += d
        df, dg, dL, d_lam_p = ahead(*point.at, dx, dlam, dp)
        out = [dx, df, dg, -(point.a > 0) * dL, dlam, -d_lam_p]
        return ca.Function(name, point.symbols, out)

    def reverse(self, directions: int, name: str) -> ca.Function:
        """The Function (inputs, outputs, seeds of the outputs) → adjoints of the inputs."""
        point = _Point(self, OUTPUTS, directions)
        back, at, s = self._slopes.reverse(directions), point.at, point.seeds
        to_x, to_lam, to_p = back(*at, s["f"], s["g"], -(point.a > 0) * s["lam_x"], -s["lam_p"])
        to_x += s["x"]
        # The transposed system is the same one, as the matrix is symmetric.
        v, w = point.solve(point.i * to_x, point.b * (s["lam_g"] + to_lam))
        through_x, _, through_p = back(*at, 0, -w, -v, 0)
        to_d, on = to_x + v + through_x, point.on
        adjoints = {side: on[side] * to_d for side in ("lbx", "ubx")}
        adjoints |= {side: (on[side] > 0) * w for side in ("lbg", "ubg")}
        adjoints["p"] = to_p + through_p
        # Adjoints of the solver's number and of the starts are zero.
        out = [adjoints.get(label, ca.MX(self.rows[label], directions)) for label in _INPUTS]
        return ca.Function(name, point.symbols, out)
