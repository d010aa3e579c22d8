"""A thousand unknowns without constraints."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from problems.hopeless_base import Row, Trap, trap

Objective = tuple[Any, list[Row]]


def genrose(x: Any) -> Objective:
    """Chained valley of Rosenbrock with the second weight at one (CUTEst GENROSE; Toint 1978)."""
    return 1 + 100 * ca.sumsqr(x[1:] - x[:-1] ** 2) + ca.sumsqr(x[1:] - 1), []


def chained_wood(x: Any) -> Objective:
    """Wood's function on overlapping fours (CUTEst CHAINWOO; Conn, Gould & Toint 1988)."""
    a, b, c, d = x[0:-2:2], x[1:-2:2], x[2::2], x[3::2]
    f = 100 * ca.sumsqr(b - a**2) + ca.sumsqr(1 - a) + 90 * ca.sumsqr(d - c**2)
    return f + ca.sumsqr(1 - c) + 10 * ca.sumsqr(b + d - 2) + 0.1 * ca.sumsqr(b - d) + 1, []


def fletcher(x: Any) -> Objective:
    """Chained valley of Fletcher (CUTEst FLETCHCR; Buckley, TR 1989CS-3, problem 79)."""
    return 100 * ca.sumsqr(x[1:] - x[:-1] + 1 - x[:-1] ** 2), []


def chained_sines(x: Any) -> Objective:
    """A chain of sin(3 xᵢ) = xᵢ₊₁ in the sense of least squares, with a weak pull to two."""
    return 10 * ca.sumsqr(x[1:] - 2 * ca.sin(3 * x[:-1])) + 0.01 * ca.sumsqr(x - 2), []


def large_traps() -> tuple[Trap, ...]:
    """Return all of them; the chains from their published starts."""
    n = 1000
    wood = (-3, -1, -3, -1, *(-2, 0) * (n // 2 - 2))
    ramp = tuple(np.arange(1, n + 1) / (n + 1))
    return (
        trap("genrose-1000", genrose, ramp, "solvable", "least value 1", f_star=1.0,
             symbol=ca.MX),
        trap("chained-wood-1000", chained_wood, wood, "solvable", "least value 1, local minima",
             f_star=1.0, symbol=ca.MX),
        trap("fletcher-1000", fletcher, (0,) * n, "solvable", "least value 0", f_star=0.0,
             symbol=ca.MX),
        trap("chained-sines-1000", chained_sines, (0.5,) * n, "solvable", "many local minima",
             symbol=ca.MX),
    )  # fmt: skip
