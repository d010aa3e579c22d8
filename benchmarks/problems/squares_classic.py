"""Square systems of the literature on equation solvers, at sizes up to 1,000.

Those of Moré, Garbow & Hillstrom ("Testing Unconstrained Optimization Software", ACM Trans. Math.
Softw. 7(1), 1981) start at the starts of that paper. Small ones that the second collection of
Schittkowski has as well are here only at other sizes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from problems.squares_base import Square, of_list, square
from problems.systems_mgh_formulas import chebyquad
from problems.systems_own import (
    broyden_tridiagonal,
    extended_rosenbrock,
    powell_singular,
    trigonometric,
)

MGH = "Moré, Garbow & Hillstrom 1981, problem {}"
CHANDRASEKHAR = "Chandrasekhar, Radiative Transfer, 1960; Kelley, SIAM, 1995, section 5.6"
BRATU = "Bratu 1914; Averick, Carter, Moré & Xue, The MINPACK-2 test problem collection, 1992"


def extended_powell(x: list[Any]) -> list[Any]:
    """Powell's singular function of every four unknowns."""
    return [row for k in range(0, len(x), 4) for row in powell_singular(x[k : k + 4])]


def powell_badly_scaled(x: list[Any]) -> list[Any]:
    """Powell (1970): a root at (1.098e-5, 9.106)."""
    return [1e4 * x[0] * x[1] - 1, ca.exp(-x[0]) + ca.exp(-x[1]) - 1.0001]


def broyden_banded(x: list[Any]) -> list[Any]:
    """Broyden (1971): five neighbours below, one above."""
    n = len(x)
    rows = []
    for i in range(n):
        near = [x[j] * (1 + x[j]) for j in range(max(0, i - 5), min(n, i + 2)) if j != i]
        rows.append(x[i] * (2 + 5 * x[i] ** 2) + 1 - sum(near))
    return rows


def boundary_value(x: list[Any]) -> list[Any]:
    """u'' = (u + t + 1)³/2, u(0) = u(1) = 0, by differences (Moré & Cosnard 1979)."""
    n = len(x)
    h = 1 / (n + 1)
    u = [0, *x, 0]
    return [
        2 * u[i] - u[i - 1] - u[i + 1] + h**2 * (u[i] + i * h + 1) ** 3 / 2 for i in range(1, n + 1)
    ]


def integral_equation(x: Any) -> Any:
    """The same boundary value problem as an integral equation (Moré & Cosnard 1979)."""
    n = x.numel()
    t = np.arange(1, n + 1) / (n + 1)
    low, high = np.minimum.outer(t, t), np.maximum.outer(t, t)
    return x + ca.mtimes(low * (1 - high), (x + t + 1) ** 3) / (2 * (n + 1))


def brown_almost_linear(x: list[Any]) -> list[Any]:
    """Brown (1969): n − 1 linear equations and one product."""
    n, total, product = len(x), sum(x), 1
    for xi in x:
        product = product * xi
    return [*(xi + total - (n + 1) for xi in x[:-1]), product - 1]


def chandrasekhar(c: float, x: Any) -> Any:
    """H(μ) (1 − c/2 ∫ μ/(μ + ν) H(ν) dν) = 1 by the midpoint rule; singular at c = 1."""
    n = x.numel()
    mu = (np.arange(n) + 0.5) / n
    weights = c / (2 * n) * mu[:, None] / (mu[:, None] + mu)
    return x * (1 - ca.mtimes(ca.DM(weights), x)) - 1


def bratu_line(load: float, x: list[Any]) -> list[Any]:
    """u'' + λ eᵘ = 0 on (0, 1), u = 0 at the ends; no solution for λ > 3.5138."""
    h, u = 1 / (len(x) + 1), [0, *x, 0]
    return [
        (u[i - 1] - 2 * u[i] + u[i + 1]) / h**2 + load * ca.exp(u[i]) for i in range(1, len(x) + 1)
    ]


def bratu_plane(load: float, x: Any) -> Any:
    """Δu + λ eᵘ = 0 on the unit square, u = 0 at its sides; no solution for λ > 6.81."""
    side = round(x.numel() ** 0.5)
    u = ca.reshape(x, side, side)
    row = ca.DM(1, side)
    wide = ca.vertcat(row, u, row)
    column = ca.DM(side, 1)
    high = ca.horzcat(column, u, column)
    around = wide[:-2, :] + wide[2:, :] + high[:, :-2] + high[:, 2:]
    return ca.vec((side + 1) ** 2 * (around - 4 * u) + load * ca.exp(u))


def burgers(viscosity: float, x: list[Any]) -> list[Any]:
    """u u' = ν u'' on (−1, 1), u = 1 and −1 at the ends: a shock of width ν in the middle."""
    h, u = 2 / (len(x) + 1), [1, *x, -1]
    return [
        u[i] * (u[i + 1] - u[i - 1]) / 2 - viscosity / h * (u[i - 1] - 2 * u[i] + u[i + 1])
        for i in range(1, len(x) + 1)
    ]


def classic_squares() -> tuple[Square, ...]:
    """Return the systems."""
    t = np.arange(1, 301) / 301
    return (
        square("rosenbrock", of_list(extended_rosenbrock), (-1.2, 1) * 500, source=MGH.format(21)),
        square("powell-singular", of_list(extended_powell), (3, -1, 0, 1) * 50,
               source=MGH.format(22)),
        square("powell-scaled", of_list(powell_badly_scaled), (0, 1), source=MGH.format(3)),
        square("brown-linear", of_list(brown_almost_linear), (0.5,) * 10, source=MGH.format(27)),
        square("brown-linear", of_list(brown_almost_linear), (0.5,) * 40, source=MGH.format(27)),
        square("boundary-value", of_list(boundary_value), t * (t - 1), source=MGH.format(28)),
        square("integral-equation", integral_equation, t[2::3] * (t[2::3] - 1),
               source=MGH.format(29)),
        square("broyden-tridiagonal", of_list(broyden_tridiagonal), (-1,) * 1000,
               source=MGH.format(30)),
        square("broyden-banded", of_list(broyden_banded), (-1,) * 500, source=MGH.format(31)),
        square("trigonometric", of_list(trigonometric), (1 / 50,) * 50, source=MGH.format(26)),
        square("chebyquad", of_list(partial(chebyquad, 9)), [j / 10 for j in range(1, 10)],
               source=MGH.format(35)),
        square("chandrasekhar-0.9", partial(chandrasekhar, 0.9), (1,) * 100, symbol=ca.MX,
               source=CHANDRASEKHAR),
        square("chandrasekhar-0.9999", partial(chandrasekhar, 0.9999), (1,) * 200,
               symbol=ca.MX, source=CHANDRASEKHAR),
        square("bratu-line", of_list(partial(bratu_line, 3.5)), (0,) * 200, source=BRATU),
        square("bratu-plane", partial(bratu_plane, 6.0), (0,) * 625, symbol=ca.MX, source=BRATU),
        square("burgers", of_list(partial(burgers, 0.02)), np.linspace(1, -1, 402)[1:-1],
               source="Burgers 1948, steady, central differences"),
    )  # fmt: skip
