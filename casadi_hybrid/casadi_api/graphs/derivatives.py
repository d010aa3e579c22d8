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
from dataclasses import dataclass

import casadi as ca
import numpy as np

from casadi_hybrid.basics.matrices import array_of
from casadi_hybrid.casadi_api.convention import INPUTS, OUTPUTS, STARTS, Columns
from casadi_hybrid.casadi_api.sensitivity import Sensitivities, Solution
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.directions import few_directions, jacobian
from casadi_hybrid.problem.problem import Problem

_SIDES = ("lbx", "ubx", "lbg", "ubg")

Labelled = dict[str, ca.MX]


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
            return [ca.DM.nan(rows) for rows in self._rows_out]
        solution = Solution(x, lam_x, lam_g)
        soft_x, soft_g = self._sensitivities.softness(solution, p, Bounds(*bounds))
        a, b = 1.0 / (1.0 + soft_x), 2.0 / (1.0 + np.sqrt(1.0 + 4.0 * soft_g))
        sides = a * (lam_x < 0), a * (lam_x >= 0), b * (lam_g < 0), b * (lam_g >= 0)
        return [ca.DM(side) for side in sides]

    def stepwise(self) -> ca.Function:
        """The same with derivatives that are zero: steps of the active set are no slopes."""
        given = [ca.MX.sym("known", rows) for rows in self._rows_in]
        none = {"is_diff_in": [False] * len(given), "is_diff_out": [False] * len(self._rows_out)}
        return ca.Function("active", given, self.call(given), {**none, "never_inline": True})


@dataclass(frozen=True, slots=True)
class _Point:
    """What both modes need at a solution: who is active, and the matrix."""

    on: Labelled
    a: ca.MX
    i: ca.MX
    b: ca.MX
    K: ca.MX
    at: tuple[ca.MX, ...]
    values: list[ca.MX]

    def solve(self, upper: ca.MX, lower: ca.MX) -> tuple[ca.MX, ca.MX]:
        """(iy, bw) for right-hand sides, a column a direction."""
        # CasADi's own test for a singular matrix is absolute; `_Active` has made a relative one.
        step = ca.solve(self.K, ca.vertcat(upper, lower), "qr", {"eps": 0.0})
        n = upper.size1()
        return self.i * step[:n, :], self.b * step[n:, :]


class Derivatives:
    """Directional derivatives of (x0, p, bounds, lam0) → (x, f, g, lam_x, lam_g, lam_p).

    All columns; bounds of g are those of all rows (h; g). Keep the object while its functions are
    in use: CasADi holds no reference to a Python callback.

    Args:
        problem: the problem.
        inputs: names in order, with ``solver`` where a number that names the solver is one.
    """

    def __init__(self, problem: Problem, inputs: Sequence[str] = INPUTS) -> None:
        n, m, n_p = problem.n, problem.m, problem.n_p
        self._inputs = inputs
        self._rows = {"solver": 1, "x0": n, "p": n_p, "lbx": n, "ubx": n, "lbg": m, "ubg": m}
        self._rows |= {"lam_x0": n, "lam_g0": m}
        self._rows |= {"x": n, "f": 1, "g": m, "lam_x": n, "lam_g": m, "lam_p": n_p}
        self._found = _Active(problem)
        self._active = self._found.stepwise()
        kind = type(problem.x)
        x, lam, p = kind.sym("x", n), kind.sym("lam", m), kind.sym("p", n_p)
        f, g = problem.graph.call([x, p], True, False)
        L = f + ca.dot(lam, g)
        slopes = [ca.densify(ca.gradient(L, v)) if v.numel() else kind(0, 1) for v in (x, p)]
        self._slopes = ca.Function("slopes", [x, lam, p], [f, ca.densify(g), *slopes])
        with few_directions(problem.graph):
            matrices = [ca.hessian(L, x)[0], jacobian(g, x, problem.graph)]
        self._matrices = ca.Function("matrices", [x, lam, p], matrices)

    def forward(self, directions: int, name: str) -> ca.Function:
        """The Function (inputs, outputs, seeds of the inputs) → derivatives of the outputs."""
        given, known = self._symbols(self._inputs), self._symbols(OUTPUTS)
        seeds = self._symbols(self._inputs, "fwd_", directions)
        point = self._point(given, known)
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
        return _function(name, (given, known, seeds), out)

    def reverse(self, directions: int, name: str) -> ca.Function:
        """The Function (inputs, outputs, seeds of the outputs) → adjoints of the inputs."""
        given, known = self._symbols(self._inputs), self._symbols(OUTPUTS)
        seeds = self._symbols(OUTPUTS, "adj_", directions)
        point = self._point(given, known)
        back, s = self._slopes.reverse(directions), seeds

        def pulled(f: ca.MX, g: ca.MX, L: ca.MX, p: ca.MX) -> tuple[ca.MX, ...]:
            return tuple(back(*point.at, *point.values, f, g, L, p))

        to_x, to_lam, to_p = pulled(s["f"], s["g"], -(point.a > 0) * s["lam_x"], -s["lam_p"])
        to_x += s["x"]
        v, w = point.solve(point.i * to_x, point.b * (s["lam_g"] + to_lam))
        none = ca.MX.zeros(1, directions), ca.MX.zeros(self._rows["p"], directions)
        through_x, _, through_p = pulled(none[0], -w, -v, none[1])
        to_d, on = to_x + v + through_x, point.on
        adjoints = {side: on[side] * to_d if side[-1] == "x" else (on[side] > 0) * w
                    for side in _SIDES}  # fmt: skip
        adjoints["p"] = to_p + through_p
        for start in ("solver", *STARTS):
            adjoints[start] = ca.MX(self._rows[start], directions)
        out = [adjoints[label] for label in self._inputs]
        return _function(name, (given, known, seeds), out)

    def _symbols(self, labels: Sequence[str], prefix: str = "", columns: int = 1) -> Labelled:
        return {label: ca.MX.sym(prefix + label, self._rows[label], columns) for label in labels}

    def _point(self, given: Labelled, known: Labelled) -> _Point:
        at = (known["x"], known["lam_g"], given["p"])
        who = self._active(
            known["x"], known["lam_x"], known["lam_g"], given["p"], *(given[s] for s in _SIDES)
        )
        on = dict(zip(_SIDES, who, strict=True))
        a, b = on["lbx"] + on["ubx"], on["lbg"] + on["ubg"]
        W, J = self._matrices(*at)
        i = ca.sqrt(1 - a)
        free = ca.mtimes([ca.diag(b), J, ca.diag(i)])
        upper = ca.mtimes([ca.diag(i), W, ca.diag(i)]) + ca.diag(a)
        K = ca.blockcat([[upper, free.T], [free, ca.diag(b - 1)]])
        values = [known["f"], known["g"], -known["lam_x"], -known["lam_p"]]
        return _Point(on, a, i, b, K, at, values)


def _function(name: str, symbols: Sequence[Labelled], out: list[ca.MX]) -> ca.Function:
    arguments = [symbol for columns in symbols for symbol in columns.values()]
    return ca.Function(name, arguments, out)
