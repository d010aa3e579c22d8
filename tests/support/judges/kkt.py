"""KKT residuals and certificates from CasADi's graph and NumPy, without the package."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

INF = float("inf")
Array = np.ndarray[Any, np.dtype[np.float64]]


def numbers(value: Any) -> Array:
    """A DM, list or number as a flat array."""
    return np.array(ca.DM(value).full(), dtype=float).ravel()


def side(call: Mapping[str, Any], key: str, size: int) -> Array:
    """The bound ``key`` of a call as ``size`` numbers, with CasADi's defaults."""
    default = -INF if key.startswith("lb") else INF
    return np.broadcast_to(np.asarray(call.get(key, default), float).ravel(), (size,)).copy()


@dataclass(frozen=True)
class Values:
    """f, ∇f (n), g (m) and J_g (m×n) at a point."""

    f: float
    gradient: Array
    g: Array
    J: Array


class Judge:
    """KKT residuals and certificates of one problem in the units of its user."""

    def __init__(self, nlp: Mapping[str, Any]) -> None:
        x = nlp["x"]
        kind = type(x)
        p = nlp.get("p", kind.sym("p", 0))
        f, g = kind(nlp.get("f", 0)), nlp.get("g", kind(0, 1))
        g = ca.vertcat(*g) if isinstance(g, list) else g
        self.n, self.m = x.numel(), g.numel()
        parts = [f, ca.gradient(f, x), ca.vec(g), ca.jacobian(g, x)]
        self._functions = ca.Function("judge", [x, p], [ca.densify(part) for part in parts])

    def at(self, x: Any, p: Any = ()) -> Values:
        f, gradient, g, J = self._functions(x, ca.DM(p) if np.size(p) else ca.DM(0, 1))
        return Values(float(f), numbers(gradient), numbers(g), J.full())

    def violations(self, x: Any, call: Mapping[str, Any]) -> tuple[Array, Array]:
        """Violations of the bounds on x and g(x): positive above, negative below."""
        values = (numbers(x), self.at(x, call.get("p", ())).g)
        of_x, of_g = (
            np.maximum(value - side(call, f"ub{key}", value.size), 0.0)
            - np.maximum(side(call, f"lb{key}", value.size) - value, 0.0)
            for key, value in zip("xg", values, strict=True)
        )
        return of_x, of_g

    def feasibility(self, x: Any, call: Mapping[str, Any]) -> float:
        """The largest violation of a bound."""
        return float(max(np.abs(v).max(initial=0.0) for v in self.violations(x, call)))

    def kkt(self, found: Mapping[str, Any], call: Mapping[str, Any]) -> float:
        """The largest of violation, ‖∇f + Jᵀλ_g + λ_x‖_∞ and |λ⁺(ub − v)|, |λ⁻(v − lb)|.

        A multiplier that points to a bound that does not exist counts with its own size.
        """
        here = self.at(found["x"], call.get("p", ()))
        lam_x, lam_g = numbers(found["lam_x"]), numbers(found["lam_g"])
        worst = [self.feasibility(found["x"], call)]
        worst.append(np.abs(here.gradient + here.J.T @ lam_g + lam_x).max(initial=0.0))
        for key, value, lam in (("x", numbers(found["x"]), lam_x), ("g", here.g, lam_g)):
            low, high = side(call, f"lb{key}", value.size), side(call, f"ub{key}", value.size)
            for i in np.flatnonzero(low < high):
                bound = high[i] if lam[i] > 0 else low[i]
                distance = abs(bound - value[i]) if np.isfinite(bound) else 1.0
                worst.append(abs(lam[i]) * distance)
        return float(max(worst)) if np.isfinite([here.f, *worst]).all() else INF

    def infeasibility(self, x: Any, call: Any, weights: Any = 1.0) -> tuple[float, float]:
        """(‖v‖₂, slope) of the weighted violation v of the rows over the box lbx ≤ x ≤ ubx.

        The slope is ‖x − P(x − ∇½‖v‖²)‖ ⁄ ‖v‖ with P the projection onto the box: zero where no
        direction of the box reduces the violation to first order.
        """
        x = numbers(x)
        v = self.violations(x, call)[1] * np.asarray(weights, float)
        slope = self.at(x, call.get("p", ())).J.T @ (v * np.asarray(weights, float))
        low, high = side(call, "lbx", x.size), side(call, "ubx", x.size)
        moved = x - np.clip(x - slope, low, high)
        size = float(np.linalg.norm(v))
        return size, float(np.linalg.norm(moved)) / max(size, 1e-300)
