"""Derivatives of a solve as CasADi graphs, so that CasADi can differentiate them again.

The system of :mod:`casadi_hybrid.casadi_api.sensitivity` in symbols, with one pattern for all
active sets. With σ the distance of a limit over its |multiplier|, 0 where it clearly holds and ∞
where it clearly does not, a = 1/(1 + σ) of the bounds of x, σ = (1 − b)/b² of the rows of g and
i² = 1 − a. With r = −L_xp dp, d the change of the bounds of x times a and e that of the bounds of g
times b, all linear in the seeds, dx = iy + d and dλ = bw, where

    [ iWi + a   iJᵀb  ] [ y ]   [ i(r + d − Wd)         ]
    [ bJi       b − 1 ] [ w ] = [ e − b(g_p dp + J d)   ]

and dμ = −d(∇f + Jᵀλ) where a > 0. The matrix is symmetric, so the reverse mode solves with the same
one. σ is found in numbers and has no derivative: a second derivative holds while the active set
stays what it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from casadi_hybrid.basics.matrices import array_of
from casadi_hybrid.casadi_api.convention import INPUTS, OUTPUTS, STARTS, Columns, columns_of
from casadi_hybrid.casadi_api.sensitivity import Sensitivities, Solution
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.directions import few_directions, jacobian
from casadi_hybrid.problem.problem import Problem

_INPUTS, _SIDES = ("solver", *INPUTS), ("lbx", "ubx", "lbg", "ubg")

Columned = dict[str, ca.MX]


class _Active(Columns):
    """(x, lam_x, lam_g, p, lbx, ubx, lbg, ubg) → a and b at lbx, ubx, lbg, ubg, one side of each.

    Where the point has no derivative it raises
    :class:`~casadi_hybrid.casadi_api.sensitivity.SensitivityError`.
    """

    def __init__(self, problem: Problem) -> None:
        n, m = problem.n, problem.m
        self._sensitivities = Sensitivities(problem)
        super().__init__("active", (n, n, m, problem.n_p, n, n, m, m), (n, n, m, m))

    def eval(self, arguments: Sequence[ca.DM]) -> list[ca.DM]:
        x, lam_x, lam_g, p, *bounds = (array_of(value).ravel() for value in arguments)
        if np.isnan(x).any():  # of a solve without numbers, which has no slopes either
            return [ca.DM.nan(*shape) for shape in self._out]
        solution = Solution(x, lam_x, lam_g)
        soft_x, soft_g = self._sensitivities.softness(solution, p, Bounds(*bounds))
        a, b = 1.0 / (1.0 + soft_x), 2.0 / (1.0 + np.sqrt(1.0 + 4.0 * soft_g))
        sides = a * (lam_x < 0), a * (lam_x >= 0), b * (lam_g < 0), b * (lam_g >= 0)
        return [ca.DM(side) for side in sides]

    def stepwise(self) -> ca.Function:
        """The same with derivatives that are zero: steps of the active set are no slopes."""
        given = [ca.MX.sym("known", *shape) for shape in self._in]
        none = {"is_diff_in": [False] * len(given), "is_diff_out": [False] * len(self._out)}
        return ca.Function("active", given, self.call(given), {**none, "never_inline": True})


class _Point:
    """What both modes need at a solution: who is active, and the matrix."""

    def __init__(
        self, active: ca.Function, matrices: ca.Function, given: Columned, known: Columned
    ) -> None:
        x, lam, p = self.at = known["x"], known["lam_g"], given["p"]
        self.values = known["f"], known["g"], -known["lam_x"], -known["lam_p"]
        sides = active(x, known["lam_x"], lam, p, *map(given.get, _SIDES))
        self.on = on = dict(zip(_SIDES, sides, strict=True))
        self.a = a = on["lbx"] + on["ubx"]
        self.b = b = on["lbg"] + on["ubg"]
        self.i = i = ca.sqrt(1 - a)
        W, J = matrices(*self.at)
        free = ca.mtimes([ca.diag(b), J, ca.diag(i)])
        upper = ca.mtimes([ca.diag(i), W, ca.diag(i)]) + ca.diag(a)
        self._K = ca.blockcat([[upper, free.T], [free, ca.diag(b - 1)]])

    def solve(self, upper: ca.MX, lower: ca.MX) -> tuple[ca.MX, ca.MX]:
        """(iy, bw) for right-hand sides, a column a direction."""
        # CasADi's own test for a singular matrix is absolute; `_Active` has made a relative one.
        step = ca.solve(self._K, ca.vertcat(upper, lower), "qr", {"eps": 0.0})
        n = upper.size1()
        return self.i * step[:n, :], self.b * step[n:, :]


class Derivatives:
    """Directional derivatives of (solver, x0, p, bounds, lam0) → (x, f, g, lam_x, lam_g, lam_p).

    All columns; bounds of g are those of all rows (h; g), and the first is a number that names the
    solver. Keep the object while its functions are in use: CasADi holds no reference to a Python
    callback.
    """

    def __init__(self, problem: Problem) -> None:
        rows_in, rows_out = columns_of(problem)
        self._rows = dict(zip((*_INPUTS, *OUTPUTS), (1, *rows_in, *rows_out), strict=True))
        self._found = _Active(problem)
        self._active = self._found.stepwise()
        kind = type(problem.x)
        x, lam, p = (kind.sym(label, self._rows[label]) for label in ("x", "lam_g", "p"))
        f, g = problem.graph.call([x, p], True, False)
        L = f + ca.dot(lam, g)
        slopes = [ca.densify(ca.gradient(L, v)) if v.numel() else kind(0, 1) for v in (x, p)]
        self._slopes = ca.Function("slopes", [x, lam, p], [f, ca.densify(g), *slopes])
        with few_directions(problem.graph):
            matrices = [ca.hessian(L, x)[0], jacobian(g, x, problem.graph)]
        self._matrices = ca.Function("matrices", [x, lam, p], matrices)

    def forward(self, directions: int, name: str) -> ca.Function:
        """The Function (inputs, outputs, seeds of the inputs) → derivatives of the outputs."""
        given, known = self._symbols(_INPUTS), self._symbols(OUTPUTS)
        seeds = self._symbols(_INPUTS, directions)
        point = _Point(self._active, self._matrices, given, known)
        on, dp = point.on, seeds["p"]
        d = on["lbx"] * seeds["lbx"] + on["ubx"] * seeds["ubx"]
        e = on["lbg"] * seeds["lbg"] + on["ubg"] * seeds["ubg"]
        ahead = self._slopes.forward(directions)
        no_rows = ca.MX.zeros(self._rows["g"], directions)
        _, dg, dL, _ = ahead(*point.at, *point.values, d, no_rows, dp)
        dx, dlam = point.solve(point.i * (d - dL), e - point.b * dg)
        dx += d
        df, dg, dL, d_lam_p = ahead(*point.at, *point.values, dx, dlam, dp)
        out = [dx, df, dg, -(point.a > 0) * dL, dlam, -d_lam_p]
        return ca.Function(name, [*given.values(), *known.values(), *seeds.values()], out)

    def reverse(self, directions: int, name: str) -> ca.Function:
        """The Function (inputs, outputs, seeds of the outputs) → adjoints of the inputs."""
        given, known = self._symbols(_INPUTS), self._symbols(OUTPUTS)
        s = self._symbols(OUTPUTS, directions)
        point = _Point(self._active, self._matrices, given, known)
        back, at = self._slopes.reverse(directions), (*point.at, *point.values)
        to_x, to_lam, to_p = back(*at, s["f"], s["g"], -(point.a > 0) * s["lam_x"], -s["lam_p"])
        to_x += s["x"]
        v, w = point.solve(point.i * to_x, point.b * (s["lam_g"] + to_lam))
        none = ca.MX.zeros(1, directions), ca.MX.zeros(self._rows["p"], directions)
        through_x, _, through_p = back(*at, none[0], -w, -v, none[1])
        to_d, on = to_x + v + through_x, point.on
        adjoints = {side: on[side] * to_d if side[-1] == "x" else (on[side] > 0) * w
                    for side in _SIDES}  # fmt: skip
        adjoints["p"] = to_p + through_p
        for start in ("solver", *STARTS):
            adjoints[start] = ca.MX(self._rows[start], directions)
        out = [adjoints[label] for label in _INPUTS]
        return ca.Function(name, [*given.values(), *known.values(), *s.values()], out)

    def _symbols(self, labels: Sequence[str], columns: int = 1) -> Columned:
        return {label: ca.MX.sym(label, self._rows[label], columns) for label in labels}
