"""Other forms of a problem, for systems with more equations than unknowns that IPOPT refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np
from scipy.optimize import least_squares

RHO, ROOT = 10.0, 1e-8
Values = dict[str, Any]


class Elastic:
    """IPOPT on min f + ρ Σ(s⁺ + s⁻), lbg ≤ g − s⁺ + s⁻ ≤ ubg, s⁺, s⁻ ≥ 0, from a feasible start.

    Its minima are those of ‖·‖₁ of the violation where there is no feasible point.
    """

    def __init__(self, nlp: Mapping[str, Any], options: Values) -> None:
        x, f, g = nlp["x"], nlp["f"], nlp["g"]
        self._n, self._m = x.numel(), g.numel()
        above, below = (type(x).sym(name, self._m) for name in ("above", "below"))
        penalty = RHO * (ca.sum1(above) + ca.sum1(below))
        form = {"x": ca.vertcat(x, above, below), "f": f + penalty, "g": g - above + below}
        self._solver = ca.nlpsol("elastic", "ipopt", form, options)
        self._functions = ca.Function("fg", [x], [f, g])
        self._elastic = 0.0

    def __call__(self, x0: Any, lbx: Any, ubx: Any, lbg: Any, ubg: Any) -> Values:
        """Solve from x0."""
        g = self._functions(x0)[1].full().ravel()
        above, below = np.maximum(g - ubg, 0.0), np.maximum(lbg - g, 0.0)
        zero, infinite = np.zeros(2 * self._m), np.full(2 * self._m, np.inf)
        answer = self._solver(
            x0=np.r_[x0, above, below], lbx=np.r_[lbx, zero], ubx=np.r_[ubx, infinite],
            lbg=lbg, ubg=ubg,
        )  # fmt: skip
        x, slacks = answer["x"][: self._n], answer["x"][self._n :]
        self._elastic = float(ca.mmax(ca.fabs(slacks))) if self._m else 0.0
        f, _ = self._functions(x)
        return {"x": x, "f": f, "lam_g": answer["lam_g"], "lam_x": answer["lam_x"][: self._n]}

    def stats(self) -> Values:
        """IPOPT's, but infeasible where elastic variables are left."""
        stats: Values = self._solver.stats()
        if stats["success"] and self._elastic > ROOT:
            stats |= {"success": False, "return_status": "Infeasible, elastic variables left"}
        return stats


class LeastSquares:
    """SciPy's trust-region least squares of equations, tolerances at rounding."""

    def __init__(self, nlp: Mapping[str, Any], options: Values) -> None:
        del options
        x, f, g = nlp["x"], nlp["f"], nlp["g"]
        self._functions = ca.Function("fg", [x], [f, g, ca.jacobian(g, x)])
        self._stats: Values = {}

    def __call__(self, x0: Any, lbx: Any, ubx: Any, lbg: Any, ubg: Any) -> Values:
        """Solve from x0, moved into the bounds.

        Raises:
            ValueError: for inequalities.
        """
        if not np.array_equal(lbg, ubg):
            raise ValueError("least squares take equations alone")

        def residuals(x: Any) -> Any:
            return np.nan_to_num(self._functions(x)[1].full().ravel() - lbg, nan=1e150)

        def jacobian(x: Any) -> Any:
            return np.nan_to_num(self._functions(x)[2].full())

        tight = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15, "x_scale": "jac", "max_nfev": 1000}
        with np.errstate(all="ignore"):
            start = np.clip(x0, np.nextafter(lbx, np.inf), np.nextafter(ubx, -np.inf))
            found = least_squares(residuals, start, jacobian, bounds=(lbx, ubx), **tight)
        root = bool(np.abs(found.fun).max() <= ROOT)
        status = "Root" if root else "Infeasible, least squares above zero"
        self._stats = {"success": root, "return_status": status, "iter_count": found.nfev}
        zero = {"lam_g": ca.DM.zeros(found.fun.size), "lam_x": ca.DM.zeros(found.x.size)}
        return {"x": ca.DM(found.x), "f": self._functions(found.x)[0], **zero}

    def stats(self) -> Values:
        """Success, words and evaluations."""
        return self._stats
