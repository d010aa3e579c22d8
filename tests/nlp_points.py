"""KKT points of small programs with their multipliers, computed by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from typing import Any

import casadi as ca

from casadi_hybrid.verify import Curvature

BOUNDS = ("lbx", "ubx", "lbg", "ubg")


@dataclass(frozen=True)
class Known:
    """min f s.t. lbg ≤ g ≤ ubg, lbx ≤ x ≤ ubx, a KKT point of it and what the point is.

    Attributes:
        name: for the test's id.
        f, g: formulas of x (and p where there are parameters).
        x, lam_x, lam_g: the point; multipliers None where they are not unique.
        verdict: the second-order verdict.
        inertia: of the Hessian of L on the kernel of the binding rows.
        strong, weak: names of the active inequalities.
        bounds: those that are not infinite.
        p: parameter values.
    """

    name: str
    f: Callable[..., Any]
    g: Callable[..., Sequence[Any]]
    x: Sequence[float]
    lam_x: Sequence[float] | None
    lam_g: Sequence[float] | None
    verdict: Curvature
    inertia: tuple[int, int, int]
    strong: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()
    bounds: dict[str, Any] = field(default_factory=dict)
    p: Sequence[float] = ()

    def nlp(self, kind: Any = ca.SX) -> dict[str, Any]:
        """The problem in ``ca.SX`` or ``ca.MX`` symbols."""
        x, p = kind.sym("x", len(self.x)), kind.sym("p", len(self.p))
        arguments = (x, p) if self.p else (x,)
        g = self.g(*arguments)
        return {
            "x": x,
            "p": p,
            "f": self.f(*arguments),
            "g": ca.vertcat(*g) if g else kind(0, 1),
        }

    @property
    def instance(self) -> dict[str, Any]:
        """Parameters and bounds, as ``nlpsol`` and the verifier take them."""
        return {**self.bounds, "p": list(self.p)}

    @property
    def minimizer(self) -> bool:
        """Whether the verifier should accept the point."""
        return self.verdict is not Curvature.NEGATIVE_CURVATURE

    def __str__(self) -> str:
        return self.name


STRICT, VERTEX = Curvature.STRICT_MINIMIZER, Curvature.VERTEX
CONE, FLAT = Curvature.CRITICAL_CONE, Curvature.DEGENERATE
NEGATIVE, POINT = Curvature.NEGATIVE_CURVATURE, Curvature.ISOLATED_POINT

KNOWN = (
    Known("no constraint", lambda x: (x[0] - 3) ** 2 + x[1] ** 2, lambda x: [],
          (3, 0), (0, 0), (), STRICT, (2, 0, 0)),
    Known("a lower bound", lambda x: (x[0] + 1) ** 2 + x[1] ** 2, lambda x: [],
          (0, 0), (-2, 0), (), STRICT, (1, 0, 0), ("x[0]",), bounds={"lbx": [0, -inf]}),
    Known("an upper bound, weak", lambda x: (x[0] - 1) ** 2 + x[1] ** 2, lambda x: [],
          (1, 0), (0, 0), (), STRICT, (2, 0, 0), (), ("x[0]",), {"ubx": [1, 5]}),
    Known("a row at its upper bound", lambda x: (x[0] - 2) ** 2 + (x[1] - 2) ** 2,
          lambda x: [x[0] + x[1]], (1, 1), (0, 0), (2,), STRICT, (1, 0, 0), ("g",),
          bounds={"lbg": -7, "ubg": 2}),
    Known("a row at its lower bound", lambda x: x[0] ** 2 + x[1] ** 2,
          lambda x: [x[0] * x[1]], (2, 2), (0, 0), (-2,), STRICT, (1, 0, 0), ("g",),
          bounds={"lbg": 4, "ubg": 9}),
    Known("an equation and a bound", ca.sumsqr, lambda x: [x[0] + x[1] + x[2]],
          (2, 0.5, 0.5), (-3, 0, 0), (-1,), STRICT, (1, 0, 0), ("x[0]",),
          bounds={"lbx": [2, -inf, -inf], "lbg": 3, "ubg": 3}),
    Known("a fixed variable", lambda x: (x[0] - 5) ** 2 + (x[1] - x[0]) ** 2, lambda x: [],
          (1, 1), (8, 0), (), STRICT, (1, 0, 0), bounds={"lbx": [1, -inf], "ubx": [1, inf]}),
    Known("an equation alone", lambda x: x[0] + x[1], lambda x: [ca.sumsqr(x)],
          (-1, -1), (0, 0), (0.5,), STRICT, (1, 0, 0), bounds={"lbg": 2, "ubg": 2}),
    Known("a linear program's vertex", lambda x: -x[0] - 2 * x[1],
          lambda x: [x[0] + x[1]], (0, 4), (-1, 0), (2,), VERTEX, (0, 0, 0),
          ("x[0]", "g"), bounds={"lbx": 0, "ubg": 4}),
    Known("a single feasible point", lambda x: x[0] - x[1], lambda x: [x[0] + x[1], x[0] - x[1]],
          (1.5, 0.5), (0, 0), (0, -1), POINT, (0, 0, 0), bounds={"lbg": [2, 1], "ubg": [2, 1]}),
    Known("a parameter", lambda x, p: (x[0] - p[0]) ** 2 + (x[1] - p[0]) ** 2,
          lambda x, p: [p[1] * (x[0] + x[1])], (1, 1), (0, 0), (2,), STRICT, (1, 0, 0), ("g",),
          bounds={"ubg": 4}, p=(3, 2)),
    Known("a bound holds a saddle's falling direction", lambda x: x[0] ** 2 - x[1] ** 2 - x[1],
          lambda x: [], (0, 1), (0, 3), (), STRICT, (1, 0, 0), ("x[1]",),
          bounds={"ubx": [inf, 1]}),
    Known("a saddle", lambda x: x[0] ** 2 - x[1] ** 2, lambda x: [], (0, 0), (0, 0), (),
          NEGATIVE, (1, 1, 0), bounds={"lbx": -4, "ubx": 4}),
    Known("a saddle along an active row", lambda x: -x[0] * x[1] + x[2], lambda x: [x[2]],
          (0, 0, 0), (0, 0, 0), (-1,), NEGATIVE, (1, 1, 0), ("g",), bounds={"lbg": 0}),
    Known("a maximizer on a circle", lambda x: x[0] + x[1], lambda x: [ca.sumsqr(x)],
          (1, 1), (0, 0), (-0.5,), NEGATIVE, (0, 1, 0), bounds={"lbg": 2, "ubg": 2}),
    Known("curvature comes from the constraint", lambda x: x[1], lambda x: [x[1] - x[0] ** 2],
          (0, 0), (0, 0), (-1,), STRICT, (1, 0, 0), ("g",), bounds={"lbg": 0}),
    Known("the constraint bends the wrong way", lambda x: x[1], lambda x: [x[1] + x[0] ** 2],
          (0, 0), (0, 0), (-1,), NEGATIVE, (0, 1, 0), ("g",), bounds={"lbg": 0}),
    Known("negative curvature outside the critical cone",
          lambda x: ca.sumsqr(x) + 4 * x[0] * x[1], lambda x: [], (0, 0), (0, 0), (), CONE,
          (1, 1, 0), (), ("x[0]", "x[1]"), {"lbx": 0}),
    Known("negative curvature inside the critical cone",
          lambda x: ca.sumsqr(x) - 4 * x[0] * x[1], lambda x: [], (0, 0), (0, 0), (), NEGATIVE,
          (1, 1, 0), (), ("x[0]", "x[1]"), {"lbx": 0}),
    Known("negative curvature into a weak bound", lambda x: -(x[0] ** 2) + x[1] ** 2,
          lambda x: [], (0, 0), (0, 0), (), NEGATIVE, (1, 1, 0), (), ("x[0]",),
          {"lbx": [0, -inf]}),
    Known("copositive, no more", lambda x: x[0] * x[1], lambda x: [], (0, 0), (0, 0), (), FLAT,
          (1, 1, 0), (), ("x[0]", "x[1]"), {"lbx": 0}),
    Known("flat", lambda x: x[0] ** 4 + x[1] ** 2, lambda x: [x[0]], (0, 0), (0, 0), (0,), FLAT,
          (1, 0, 1), bounds={"lbg": -1}),
    Known("a row twice", lambda x: (x[0] - 2) ** 2 + (x[1] - 2) ** 2,
          lambda x: [x[0] + x[1], 3 * (x[0] + x[1])], (1, 1), (0, 0), None, STRICT, (1, 0, 0),
          ("g[0]", "g[1]"), bounds={"ubg": [2, 6]}),
    Known("three rows through a vertex", lambda x: -x[0] - x[1],
          lambda x: [x[0] + 2 * x[1], 2 * x[0] + x[1], x[0] + x[1]], (1, 1), (0, 0), None, VERTEX,
          (0, 0, 0), ("g[0]", "g[1]", "g[2]"), bounds={"ubg": [3, 3, 2]}),
    Known("multipliers chosen for their curvature", lambda x: x[1],
          lambda x: [x[1] - x[0] ** 2, x[1] + x[0] ** 2], (0, 0), (0, 0), None, STRICT, (1, 0, 0),
          ("g[0]", "g[1]"), bounds={"lbg": 0}),
    Known("distance to a circle", lambda x: (x[0] - 3) ** 2 + (x[1] - 4) ** 2,
          lambda x: [ca.sqrt(ca.sumsqr(x))], (0.6, 0.8), (0, 0), (8,), STRICT, (1, 0, 0), ("g",),
          bounds={"ubg": 1}),
    Known("an eigenvalue problem", lambda x: -(x[0] ** 2) - 2 * x[1] ** 2 - 3 * x[2] ** 2,
          lambda x: [ca.sumsqr(x), x[2]], (0, 1, 0), (0, 0, 0), (2, 0), STRICT, (1, 0, 0),
          bounds={"lbg": [1, 0], "ubg": [1, 0]}),
    Known("the middle eigenvector", lambda x: -(x[0] ** 2) - 2 * x[1] ** 2 - 3 * x[2] ** 2,
          lambda x: [ca.sumsqr(x)], (0, 1, 0), (0, 0, 0), (2,), NEGATIVE, (1, 1, 0),
          bounds={"lbg": 1, "ubg": 1}),
    Known("irrational numbers", lambda x: -x[0] * x[1], lambda x: [x[0] ** 2 + 2 * x[1] ** 2],
          (1, 1 / sqrt(2)), (0, 0), (1 / (2 * sqrt(2)),), STRICT, (1, 0, 0), ("g",),
          bounds={"ubg": 2, "lbx": 0}),
)  # fmt: skip
