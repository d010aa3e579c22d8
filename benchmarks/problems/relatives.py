"""Relatives of the traps that one mechanism alone brings to an end (``benchmarks/ablation.py``).

Control problems whose cost has the wrong sign, in other lengths, weights and models; and a minimum
in a corner of a half-plane with other factors of the objective, down to where rounding decides.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any

import casadi as ca

from problems.hopeless_base import Trap, trap
from problems.hopeless_control import pendulum, regulator


def van_der_pol(x: Any, u: Any) -> Any:
    """The oscillator under a force."""
    return ca.vertcat(x[1], (1 - x[0] ** 2) * x[1] - x[0] + u)


def half_plane(factor: float, n: int, x: Any) -> tuple[Any, list[Any]]:
    """The point of sum(x) <= 1 nearest to ones, its squared distance times a factor."""
    return factor * ca.sumsqr(x - 1), [(ca.sum1(x), -inf, 1.0)]


RELATIVES: tuple[Trap, ...] = (
    *(
        trap(f"sign-{rate.__name__}-{N}{'' if heavy < 0 else '-state'}",
             partial(regulator, rate, -1.0, heavy, 0.0, False), (0,) * (2 * (N + 1) + N),
             "unbounded", "a weight is negative", symbol=ca.MX)
        for rate in (pendulum, van_der_pol) for heavy in (-0.1, 0.01) for N in (10, 15, 25, 40, 60)
    ),
    *(
        trap(f"steep-{factor:.0e}-{n}", partial(half_plane, factor, n), (0,) * n, "solvable",
             "x = 1/n", f_star=factor * (n - 1) ** 2 / n, good=("solved", "honest"))
        for factor in (1e9, 1e10, 1e11, 1e12, 1e13) for n in (2, 3, 7)
    ),
)  # fmt: skip
