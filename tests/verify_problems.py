"""Problems for the tests of the verifier, each with what is known of its solution by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from casadi_hybrid import Problem
from casadi_hybrid.paper import make_instance
from casadi_hybrid.verify import Curvature


@dataclass(frozen=True)
class Case:
    """A problem with a start, its minimizer where it is known, and the expected verdict there.

    ``isolated`` says whether the minimizer is the only one nearby; ``close`` is how well a
    point with tiny residuals is determined.
    """

    problem: Problem
    x0: Sequence[float]
    verdict: Curvature
    solution: Sequence[float] | None = None
    p: Sequence[float] = ()
    close: float = 1e-6

    def __str__(self) -> str:
        return self.problem.name


def cases() -> list[Case]:
    return [
        *linear_constraints(),
        *nonlinear_constraints(),
        *as_many_constraints_as_variables(),
        *more_constraints_than_variables(),
        *dependent_constraints(),
        *degenerate(),
    ]


def linear_constraints() -> list[Case]:
    x = ca.SX.sym("x", 5)
    hs48 = Problem(
        x=x,
        f=(x[0] - 1) ** 2 + (x[1] - x[2]) ** 2 + (x[3] - x[4]) ** 2,
        h={"sum": ca.sum1(x) - 5, "mix": x[2] - 2 * (x[3] + x[4]) + 3},
        name="Hock-Schittkowski 48",
    )
    a, b, q = ca.MX.sym("a", 2), ca.MX.sym("b"), ca.MX.sym("q", 3)
    projection = Problem(
        x=ca.vertcat(a, b),
        f=ca.sumsqr(ca.vertcat(a, b) - q),
        h=a[0] + a[1] + b - 1,
        p=q,
        name="projection on a plane, MX, parametric",
    )
    y = ca.SX.sym("y", 2)
    scaled = Problem(
        x=y,
        f=1e6 * (y[0] - 1) ** 2 + 1e-2 * y[1] ** 2,
        h=1e5 * (y[0] - 1e-3 * y[1] - 2),
        name="badly scaled",
    )
    return [
        Case(hs48, [3, 5, -3, 2, -2], Curvature.STRICT_MINIMIZER, [1] * 5),
        Case(projection, [0] * 3, Curvature.STRICT_MINIMIZER, [0, 1, 0], p=[1, 2, 1]),
        Case(scaled, [0, 0], Curvature.STRICT_MINIMIZER, _scaled_solution()),
    ]


def _scaled_solution() -> list[float]:
    # y_0 = 2 + y_1/1000 leaves min (1 + y_1/1000)²·1e6 + y_1²/100 over y_1.
    y1 = -1e3 / (1 + 1e-2)
    return [2 + 1e-3 * y1, y1]


def nonlinear_constraints() -> list[Case]:
    x = ca.SX.sym("x", 2)
    circle = Problem(x=x, f=x[0] + x[1], h={"circle": ca.sumsqr(x) - 2}, name="circle")
    hs6 = Problem(x=x, f=(1 - x[0]) ** 2, h=10 * (x[1] - x[0] ** 2), name="Hock-Schittkowski 6")
    hs7 = Problem(
        x=x,
        f=ca.log(1 + x[0] ** 2) - x[1],
        h=(1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4,
        name="Hock-Schittkowski 7",
    )
    z = ca.MX.sym("z", 4)
    hs40 = Problem(
        x=z,
        f=-z[0] * z[1] * z[2] * z[3],
        h=ca.vertcat(z[0] ** 3 + z[1] ** 2 - 1, z[0] ** 2 * z[3] - z[2], z[3] ** 2 - z[1]),
        name="Hock-Schittkowski 40, MX",
    )
    known = [2 ** (-1 / 3), 2 ** (-1 / 2), 2 ** (-11 / 12), 2 ** (-1 / 4)]
    paper = make_instance(3, 0, n=5, m=3, radius=0.1)
    return [
        Case(circle, [-1.2, -0.5], Curvature.STRICT_MINIMIZER, [-1, -1]),
        Case(hs6, [-1.2, 1], Curvature.STRICT_MINIMIZER, [1, 1]),
        Case(hs7, [2, 2], Curvature.STRICT_MINIMIZER, [0, np.sqrt(3)]),
        Case(hs40, [0.8] * 4, Curvature.STRICT_MINIMIZER, known),
        Case(paper.problem, list(paper.x0), Curvature.STRICT_MINIMIZER, list(paper.x_star)),
    ]


def as_many_constraints_as_variables() -> list[Case]:
    x = ca.MX.sym("x", 2)
    square = Problem(
        x=x,
        f=x[0] ** 2 + 3 * x[1],
        h=ca.vertcat(x[0] * x[1] - 2, x[0] - x[1] - 1),
        name="two equations for two unknowns, MX",
    )
    paper = make_instance(5, 2, n=3, m=3, radius=0.1)
    return [
        Case(square, [1.5, 1.5], Curvature.ISOLATED_POINT, [2, 1]),
        Case(paper.problem, list(paper.x0), Curvature.ISOLATED_POINT, list(paper.x_star)),
    ]


def more_constraints_than_variables() -> list[Case]:
    x = ca.MX.sym("x")
    line = Problem(
        x=x, f=x**2, h=ca.vertcat(x - 1, x**2 - 1, x**3 - 1), name="three equations, one unknown"
    )
    y = ca.SX.sym("y", 2)
    free = Problem(
        x=y,
        f=(y[0] + 3) ** 2,
        h=ca.vertcat(y[1] - 1, 2 * y[1] - 2, y[1] ** 2 - 1),
        name="three equations for one of two unknowns",
    )
    paper = [make_instance(condition, 0) for condition in (1, 8, 13)]
    return [
        Case(line, [0.5], Curvature.ISOLATED_POINT, [1]),
        Case(free, [1, 0], Curvature.STRICT_MINIMIZER, [-3, 1]),
        *[Case(i.problem, list(i.x0), Curvature.ISOLATED_POINT, list(i.x_star)) for i in paper],
    ]


def dependent_constraints() -> list[Case]:
    x = ca.SX.sym("x", 3)
    ball = ca.sumsqr(x) - 3
    twice = Problem(
        x=x, f=ca.sum1(x), h=ca.vertcat(ball, 2 * ball), name="one constraint, given twice"
    )
    y = ca.SX.sym("y", 2)
    tangent = Problem(
        x=y,
        f=-(y[0] ** 2),
        h=ca.vertcat(y[1], y[1] - y[0] ** 2),
        name="tangent curves with one common point",
    )
    return [
        Case(twice, [-1, -0.5, -2], Curvature.STRICT_MINIMIZER, [-1, -1, -1]),
        # J has full rank at every point but the solution: near it the point looks isolated.
        Case(tangent, [0.1, 0.1], Curvature.ISOLATED_POINT, [0, 0], close=1e-4),
    ]


def degenerate() -> list[Case]:
    x = ca.SX.sym("x", 3)
    flat = Problem(x=x, f=(x[0] + x[1]) ** 2, h=x[2] - 1, name="a line of minimizers")
    quartic = Problem(x=x, f=x[0] ** 4 + x[1] ** 2, h=x[2] + x[1], name="fourth-order minimizer")
    hs26 = Problem(
        x=x,
        f=(x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 4,
        h=(1 + x[1] ** 2) * x[0] + x[2] ** 4 - 3,
        name="Hock-Schittkowski 26",
    )
    return [
        Case(flat, [1, 2, 3], Curvature.DEGENERATE),
        Case(quartic, [1, 1, 1], Curvature.DEGENERATE, [0, 0, 0], close=1e-2),
        Case(hs26, [-2.6, 2, 2], Curvature.DEGENERATE, None),
    ]
