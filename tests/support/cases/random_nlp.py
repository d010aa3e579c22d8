"""Random nonlinear programs with a planted KKT point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from support.judges.kkt import INF, Array, numbers

VARIABLES = ("free", "lower", "upper", "both", "fixed")
ROWS = ("equation", "lower", "upper", "both", "free")


@dataclass(frozen=True, eq=False)
class Answer:
    """A point with its objective and multipliers, in the units of one problem."""

    x: Array
    f: float
    lam_x: Array
    lam_g: Array

    @classmethod
    def of(cls, found: dict[str, Any]) -> Answer:
        x, lam_x, lam_g = (numbers(found[name]) for name in ("x", "lam_x", "lam_g"))
        return cls(x, float(found["f"]), lam_x, lam_g)


@dataclass(frozen=True, eq=False)
class Random:
    """A problem as CasADi's symbols and numbers, and the KKT point it was built around."""

    x: Any
    p: Any
    f: Any
    g: Any
    lbx: Array
    ubx: Array
    lbg: Array
    ubg: Array
    x0: Array
    values: Array
    planted: Answer | None = None

    @property
    def nlp(self) -> dict[str, Any]:
        return {"x": self.x, "p": self.p, "f": self.f, "g": self.g}

    @property
    def call(self) -> dict[str, Any]:
        return {"p": self.values, "x0": self.x0, **self.bounds}

    @property
    def bounds(self) -> dict[str, Any]:
        return {"lbx": self.lbx, "ubx": self.ubx, "lbg": self.lbg, "ubg": self.ubg}

    def at(self, x: Any) -> Any:
        """(f, g) with x put in place of the variables."""
        return ca.substitute([self.f, self.g], [self.x], [x])


def _limits(rng: Any, kind: str, value: float, active: bool) -> tuple[float, float, float]:
    """(lower, upper, multiplier) around a value; a multiplier points to an active side."""
    near = 0.0 if active else rng.uniform(0.3, 2)
    far, size = rng.uniform(0.3, 2), rng.uniform(0.5, 2)
    upper_side = kind == "upper" or (kind == "both" and rng.random() < 0.5)
    if kind == "free":
        return -INF, INF, 0.0
    if kind in {"equation", "fixed"}:
        return value, value, size * rng.choice([-1, 1])
    if upper_side:
        return (value - far if kind == "both" else -INF), value + near, size * active
    return value - near, (value + far if kind == "both" else INF), -size * active


def planted(
    seed: int,
    variables: Sequence[str],
    rows: Sequence[tuple[str, bool]],
    *,
    convex: bool = True,
    curved: bool = False,
) -> Random:
    """min ½xᵀQx + (q + p₁)ᵀx + Σx⁴/12, rows aᵢᵀx ± γ|x|²/2 + p₂ᵢ, around a random KKT point.

    At most n constraints are active, in general position, so that the multipliers are unique;
    rows and bounds that would be one more are there but not active. Where ``convex``, rows curve
    to the side that keeps the problem convex and Q ≻ 0: the point is the only solution.

    Args:
        seed: of all numbers.
        variables: one of ``VARIABLES`` per variable.
        rows: one of ``ROWS`` and whether it shall be active, per row.
        convex: else Q is indefinite and the box is bounded.
        curved: with the terms of higher order.
    """
    rng = np.random.default_rng(seed)
    n, m = len(variables), len(rows)
    x_star = rng.uniform(-2, 2, n)
    room = n
    lbx, ubx, lam_x = np.zeros(n), np.zeros(n), np.zeros(n)
    for i, kind in enumerate(variables):
        active = kind == "fixed" or (kind != "free" and room > 0 and rng.random() < 0.5)
        room -= active
        lbx[i], ubx[i], lam_x[i] = _limits(rng, kind, x_star[i], active)

    A, curve, p2 = rng.normal(size=(m, n)), np.zeros(m), rng.normal(size=m)
    lbg, ubg, lam_g = np.zeros(m), np.zeros(m), np.zeros(m)
    for i, (wanted, tight) in enumerate(rows):
        kind = "lower" if wanted == "equation" and room <= 0 else wanted
        active = kind == "equation" or (kind != "free" and tight and room > 0)
        room -= active
        side = {"upper": 1.0, "lower": -1.0}.get(kind, 0.0 if convex else 1.0)
        curve[i] = side * rng.uniform(0.1, 0.5) * curved
        value = A[i] @ x_star + curve[i] * x_star @ x_star / 2 + p2[i]
        lbg[i], ubg[i], lam_g[i] = _limits(rng, kind, value, active)

    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    eigenvalues = rng.uniform(0.5, 4, n) if convex else rng.uniform(-3, 3, n)
    Q = (Q * eigenvalues) @ Q.T
    if not convex:
        lbx, ubx = np.maximum(lbx, x_star - 4), np.minimum(ubx, x_star + 4)
    p1 = rng.normal(size=n)
    J = A + curve[:, None] * x_star
    q = -(Q @ x_star + p1 + curved * x_star**3 / 3 + J.T @ lam_g + lam_x)

    x, p = ca.SX.sym("x", n), ca.SX.sym("p", n + m)  # p₁ and p₂
    f = ca.mtimes([x.T, ca.DM(Q), x]) / 2 + ca.dot(ca.DM(q) + p[:n], x)
    f += curved * ca.sum1(x**4) / 12
    g = ca.SX(0, 1)
    for i in range(m):
        row = ca.dot(ca.DM(A[i]), x) + curve[i] * ca.sumsqr(x) / 2 + p[n + i]
        g = ca.vertcat(g, row)
    values = np.concatenate((p1, p2))
    x0 = x_star + rng.normal(size=n)
    problem = Random(x, p, f, g, lbx, ubx, lbg, ubg, x0, values)
    value = ca.Function("f", [x, p], [f])(x_star, values)
    return replace(problem, planted=Answer(x_star, float(value), lam_x, lam_g))
