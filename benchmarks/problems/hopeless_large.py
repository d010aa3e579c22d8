"""A thousand unknowns without constraints, and design problems of structures."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from problems.hopeless_base import Row, Trap, trap

Objective = tuple[Any, list[Row]]
INF = float("inf")


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


def truss(x: Any) -> Objective:
    """Three bars, P = σ = 2 kN/cm² (Nowcki 1974; f* = 263.8958)."""
    a, b = x[0], x[1]
    root = 2**0.5
    below = root * a**2 + 2 * a * b
    rows = [
        (2 * (root * a + b) / below, -INF, 2.0),
        (2 * b / below, -INF, 2.0),
        (2 / (root * b + a), -INF, 2.0),
    ]
    return 100 * (2 * root * a + b), rows


def welded_beam(x: Any) -> Objective:
    """Cost of a welded beam in inches and pounds (Rao, Engineering Optimization; f* = 1.7249)."""
    h, length, t, b = (x[k] for k in range(4))
    load, arm, young, shear = 6000.0, 14.0, 30e6, 12e6
    primary = load / (2**0.5 * h * length)
    moment = load * (arm + length / 2)
    radius = ca.sqrt(length**2 / 4 + ((h + t) / 2) ** 2)
    polar = 2 * 2**0.5 * h * length * (length**2 / 12 + ((h + t) / 2) ** 2)
    secondary = moment * radius / polar
    stress = ca.sqrt(primary**2 + primary * secondary * length / radius + secondary**2)
    buckling = 4.013 * young * t * b**3 / (6 * arm**2)
    buckling = buckling * (1 - t / (2 * arm) * (young / (4 * shear)) ** 0.5)
    rows = [
        (stress, -INF, 13600.0),
        (6 * load * arm / (b * t**2), -INF, 30000.0),
        (h - b, -INF, 0.0),
        (0.10471 * h**2 + 0.04811 * t * b * (14 + length), -INF, 5.0),
        (4 * load * arm**3 / (young * t**3 * b), -INF, 0.25),
        (buckling, load, INF),
    ]
    return 1.10471 * h**2 * length + 0.04811 * t * b * (14 + length), rows


def spring(x: Any) -> Objective:
    """Weight of a coil spring (Belegundu 1982, Arora; f* = 0.012665)."""
    wire, coil, turns = (x[k] for k in range(3))
    rows = [
        (1 - coil**3 * turns / (71785 * wire**4), -INF, 0.0),
        ((4 * coil**2 - wire * coil) / (12566 * (coil * wire**3 - wire**4))
         + 1 / (5108 * wire**2), -INF, 1.0),
        (1 - 140.45 * wire / (coil**2 * turns), -INF, 0.0),
        ((wire + coil) / 1.5, -INF, 1.0),
    ]  # fmt: skip
    return (turns + 2) * coil * wire**2, rows


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
        trap("truss", truss, (0.5, 0.5), "solvable", "three bars", f_star=263.8958434, lbx=0,
             ubx=1),
        trap("truss-corner", truss, (0, 0), "solvable", "starts where g is 0/0",
             f_star=263.8958434, lbx=0, ubx=1),
        trap("welded-beam", welded_beam, (1, 5, 5, 1), "solvable", "start inside",
             f_star=1.7248523, lbx=(0.1,) * 4, ubx=(2, 10, 10, 2)),
        trap("welded-beam-thin", welded_beam, (0.1,) * 4, "solvable", "starts at the lower bounds",
             f_star=1.7248523, lbx=(0.1,) * 4, ubx=(2, 10, 10, 2)),
        trap("spring", spring, (0.1, 0.5, 10), "solvable", "flat valley", f_star=0.0126652,
             lbx=(0.05, 0.25, 2), ubx=(2, 1.3, 15)),
    )  # fmt: skip
