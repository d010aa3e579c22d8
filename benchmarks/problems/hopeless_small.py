"""Small traps: no multipliers, no minimizer, no feasible point, values that are not finite.

Textbook cases without a source of their own, unless one is named.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any

import casadi as ca
import numpy as np

from problems.hopeless_base import EITHER, Row, Trap, both_ways, trap
from problems.squares_base import of_list
from problems.squares_classic import bratu_line

Objective = tuple[Any, list[Row]]


def sines(seed: int, x: Any) -> Objective:
    """Σ sin(aᵢᵀx) with 20 random directions, 20 unknowns."""
    directions = np.random.default_rng(seed).normal(size=(20, x.numel()))
    return ca.sum1(ca.sin(ca.mtimes(ca.DM(directions), x))), []


def geometric(x: Any) -> Objective:
    """The box of least surface with volume at least 100, in logarithms; f* = 6·100^(2/3)."""
    pairs = (x[0] + x[1], x[1] + x[2], x[0] + x[2])
    return 2 * sum(ca.exp(p) for p in pairs), [(100 * ca.exp(-ca.sum1(x)), -inf, 1.0)]


def powers(x: Any) -> Objective:
    """A geometric program of Duffin, Peterson & Zener: 40/(xyz) + 40yz s.t. xz/2 + xy/4 ≤ 1."""
    a, b, c = (x[k] for k in range(3))
    return 40 / (a * b * c) + 40 * b * c, [(a * c / 2 + a * b / 4, -inf, 1.0)]


def no_minimizer() -> tuple[Trap, ...]:
    """Unbounded problems, and bounded ones whose infimum is not attained."""
    away = "infimum {} at infinity, not attained"
    return (
        trap("point-as-disc", lambda x: (ca.sum1(x), [(ca.sumsqr(x), -inf, 0.0)]), (1, 1),
             "solvable", "x = 0 is the only point; no multipliers", f_star=0.0, good=EITHER),
        trap("point-as-disc-far", lambda x: (ca.sum1(x), [(ca.sumsqr(x), -inf, 0.0)]),
             (100, -30), "solvable", "as before", f_star=0.0, good=EITHER),
        trap("hyperbola", lambda x: (x[0] - x[1], [(x[0] * x[1], 0.0, 1.0)]), (1, 1),
             "unbounded", "x0 = 0, x1 to infinity"),
        trap("hyperbola-origin", lambda x: (x[0] - x[1], [(x[0] * x[1], 0.0, 1.0)]), (0, 0),
             "unbounded", "as before, x0 a vertex of the set"),
        trap("exp-decay", lambda x: (ca.exp(-x), []), (0,), "solvable", away.format(0),
             good=("solved", "honest"), f_star=0.0),
        trap("bell-tail", lambda x: (1 / (1 + x**2), []), (1,), "solvable", away.format(0),
             good=("solved", "honest"), lbx=1, f_star=0.0),
        trap("hyperbola-tail", lambda x: (x[0], [(x[0] * x[1], 1.0, inf)]), (1, 1), "solvable",
             away.format(0), good=("solved", "honest"), lbx=0, f_star=0.0),
        trap("root-decay", lambda x: (-ca.sqrt(x), []), (1,), "unbounded",
             "f to −∞, f' to 0", good=EITHER, lbx=0),
        trap("log-decay", lambda x: (-ca.log(x), []), (1,), "unbounded", "f to −∞, f' to 0",
             good=EITHER, lbx=0),
        trap("linear", lambda x: (x[0] + x[1], [(x[0] - x[1], 0.0, 0.0)]), (1, 0), "unbounded",
             "a line"),
        trap("cubic", lambda x: (ca.sum1(x**3), [(ca.sum1(x), -1.0, inf)]), (1, 1), "unbounded",
             "along (1, −1); 0 is stationary", good=("verdict", "solved")),
        trap("saddle", lambda x: (x[0] ** 2 - x[1] ** 2, []), (1, 0), "unbounded",
             "starts on the ridge x1 = 0, where 0 is stationary", good=("verdict", "solved")),
    )  # fmt: skip


def no_feasible_point() -> tuple[Trap, ...]:
    """Problems without a feasible point, and one that is stuck away from its own."""
    nodes = 50
    return (
        trap("box-too-small", lambda x: (ca.sum1(x), [(ca.sum1(x), 3.0, inf)]), (0.5, 0.5),
             "infeasible", "0 ≤ x ≤ 1, x0 + x1 ≥ 3", lbx=0, ubx=1),
        trap("no-real-root", lambda x: (x, [(x**2 + 1, -inf, 0.0)]), (3,), "infeasible",
             "x² + 1 ≤ 0"),
        trap("sine-of-two", lambda x: (x**2, [(ca.sin(x) - 2, 0.0, 0.0)]), (0.3,), "infeasible",
             "sin x = 2"),
        trap("exp-negative", lambda x: (x**2, [(ca.exp(x), -inf, -1.0)]), (1,), "infeasible",
             "exp x ≤ −1, least violation at −∞", good=("verdict", "honest")),
        trap("two-discs", lambda x: (x[1], [(ca.sumsqr(x), -inf, 1.0),
             (ca.sumsqr(x - ca.DM([5, 0])), -inf, 1.0)]), (2, 3), "infeasible", "disjoint discs"),
        trap("parallel-lines", lambda x: (ca.sumsqr(x), [(x[0] + x[1], 0.0, 0.0),
             (x[0] + x[1], 1.0, 1.0)]), (3, 1), "infeasible", "two parallel lines"),
        trap("gap-of-1e-4", lambda x: (ca.sumsqr(x), [(x[0] + x[1], -inf, 0.0),
             (x[0] + x[1], 1e-4, inf)]), (3, 1), "infeasible", "a gap of 1e-4"),
        trap("bratu-too-hot", lambda x: (ca.SX(0), [(of_list(partial(bratu_line, 4.0))(x), 0.0,
             0.0)]), (0,) * nodes, "infeasible", "λ = 4 is above the fold at 3.51"),
        trap("root-behind-hill", lambda x: (x**2, [(x**3 - 3 * x + 30, 0.0, 0.0)]), (2,),
             "solvable", "root −3.41; least violation in between", good=("solved", "verdict"),
             f_star=11.751375),
    )  # fmt: skip


def scales() -> tuple[Trap, ...]:
    """Large factors, overflow at far starts, values that are not finite at the start."""
    steep = lambda x: (1e12 * ca.sumsqr(x - 1), [(x[0] + x[1], -inf, 1.0)])  # noqa: E731
    volume = 6 * 100 ** (2 / 3)
    at_zero = "{} at the start alone"
    return (
        trap("steep", steep, (0, 0), "solvable", "x = (½, ½); multiplier 1e12", f_star=5e11,
             good=("solved", "honest")),
        trap("steep-mild", lambda x: (1e6 * ca.sumsqr(x - 1), [(x[0] + x[1], -inf, 1.0)]),
             (0, 0), "solvable", "x = (½, ½); multiplier 1e6", f_star=5e5),
        trap("flat", lambda x: (1e-8 * ca.sumsqr(x - 1), [(x[0] + x[1], -inf, 1.0)]), (9, 9),
             "solvable", "x = (½, ½); every |∇f| < 1e-6", f_star=5e-9),
        trap("geometric-50", geometric, (50, 50, 50), "solvable", "box; f(x0) = 1e44",
             f_star=volume),
        trap("geometric-300", geometric, (300, 300, 300), "solvable", "box; f(x0) = 1e261",
             f_star=volume),
        trap("geometric-low", geometric, (-200, -200, -200), "solvable", "box; g(x0) = 1e262",
             f_star=volume),
        trap("geometric-over", geometric, (400, 400, 400), "solvable", "box; f(x0) overflows",
             f_star=volume, good=("solved", "honest")),
        trap("powers", powers, (1e-3,) * 3, "solvable", "x = (2, 1, ½), f = 60", f_star=60.0,
             lbx=1e-12),
        trap("powers-far", powers, (1e-9, 1e9, 1e3), "solvable", "as before", f_star=60.0,
             lbx=1e-12),
        trap("power-3/2", lambda x: (ca.sum1(x**1.5 - x), []), (0, 0), "solvable",
             at_zero.format("f'' = ∞"), f_star=-8 / 27, lbx=0),
        trap("abs-3/2", lambda x: (ca.sum1(ca.fabs(x) ** 1.5 - x), []), (0, 0), "solvable",
             at_zero.format("f'' NaN"), f_star=-8 / 27),
        trap("norm", lambda x: (ca.sqrt(ca.sumsqr(x)), [(ca.sum1(x), 1.0, inf)]), (0, 0),
             "solvable", at_zero.format("f' NaN"), f_star=0.5**0.5),
        trap("entropy", lambda x: (ca.dot(x, ca.log(x)), [(ca.sum1(x), 1.0, 1.0)]), (0,) * 5,
             "solvable", at_zero.format("f NaN"), f_star=-np.log(5), lbx=0),
        trap("root-row", lambda x: (ca.sumsqr(x - 2), [(ca.sqrt(x[0]) + x[1], -inf, 2.0)]),
             (0, 0), "solvable", at_zero.format("g' = ∞"), lbx=0),
    )  # fmt: skip


def equations_twice() -> tuple[Trap, ...]:
    """Equations written as two inequalities."""
    return (
        trap("twice-circle", lambda x: (ca.sum1(x), both_ways(ca.sumsqr(x) - 2)), (2, 0.5),
             "solvable", "x = (−1, −1)", f_star=-2.0),
        trap("twice-parabola", lambda x: ((1 - x[0]) ** 2, both_ways(10 * (x[1] - x[0] ** 2))),
             (-1.2, 1), "solvable", "Rosenbrock's valley as an equation", f_star=0.0),
        trap("twice-linear", lambda x: (ca.sumsqr(x), both_ways(ca.sum1(x) - 3)), (0,) * 3,
             "solvable", "x = 1", f_star=3.0),
        trap("twice-root", lambda x: (ca.SX(0), both_ways(ca.vertcat(x[0] ** 2 + x[1] ** 2 - 4,
             x[0] * x[1] - 1))), (2, 1), "solvable", "a square system", f_star=0.0),
        trap("twice-infeasible", lambda x: (x[0], both_ways(ca.sumsqr(x) + 1)), (1, 1),
             "infeasible", "x² + y² = −1"),
    )  # fmt: skip


def small_traps() -> tuple[Trap, ...]:
    """Return all of them, and the sums of sines within bounds."""
    waves = tuple(
        trap(f"sines-{seed}", partial(sines, seed), (0.5,) * 20, "solvable",
             "many local minima", lbx=-3, ubx=3)
        for seed in range(5)
    )  # fmt: skip
    return (*no_minimizer(), *no_feasible_point(), *scales(), *equations_twice(), *waves)
