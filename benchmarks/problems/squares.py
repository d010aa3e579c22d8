"""Square systems g(x) = 0: published ones of up to 240 unknowns, and families up to a thousand.

The families of Moré, Garbow & Hillstrom ("Testing Unconstrained Optimization Software", ACM Trans.
Math. Softw. 7(1), 1981) start at the starts of that paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf, pi, radians, sin
from typing import Any

import casadi as ca
import numpy as np
from support.problems.published import build_problem, collection

MGH = "Moré, Garbow & Hillstrom 1981, problem {}"
CHANDRASEKHAR = "Chandrasekhar, Radiative Transfer, 1960; Kelley, SIAM, 1995, section 5.6"
BRATU = "Bratu 1914; Averick, Carter, Moré & Xue, The MINPACK-2 test problem collection, 1992"
HAIRER = "Hairer & Wanner, Solving Ordinary Differential Equations II, sections IV.1, IV.5, IV.10"
ANDERSON = "Anderson, Fundamentals of Aerodynamics, section 5.4, numerical nonlinear lifting line"
RADAU = (
    (0.19681547722366044, -0.06553542585019839, 0.023770974348220152),
    (0.39442431473908727, 0.29207341166522846, -0.041548752125997930),
    (0.37640306270046728, 0.51248582618842161, 0.11111111111111111),
)
Bound = float | Sequence[float]
Residuals = Callable[[Any], Any]


@dataclass(frozen=True)
class Square:
    """g(x) = 0 with as many equations as unknowns, within lbx ≤ x ≤ ubx.

    Attributes:
        name: short name with the number of unknowns behind it.
        x0: standard start.
        source: where the equations stand.
        build: makes x, f = 0, g and the lists lbx, ubx, lbg, ubg; new symbols at every call.
        note: the model.
    """

    name: str
    x0: tuple[float, ...]
    source: str
    build: Callable[[], dict[str, Any]] = field(repr=False)
    note: str = ""


def square(
    name: str,
    residuals: Residuals,
    x0: Sequence[float],
    *,
    source: str,
    lbx: Bound = -inf,
    ubx: Bound = inf,
    symbol: Any = ca.SX,
) -> Square:
    """Return the system residuals(x) = 0, x a column of ``symbol`` (SX or MX)."""
    start = tuple(float(value) for value in x0)
    n = len(start)

    def build() -> dict[str, Any]:
        x = symbol.sym("x", n)
        return {
            "x": x,
            "f": symbol(0),
            "g": residuals(x),
            "lbx": spread(lbx, n),
            "ubx": spread(ubx, n),
            "lbg": [0.0] * n,
            "ubg": [0.0] * n,
        }

    return Square(f"{name}-{n}", start, source, build)


def spread(bound: Bound, n: int) -> list[float]:
    """A bound for each unknown."""
    return [float(bound)] * n if isinstance(bound, (int, float)) else [float(b) for b in bound]


def of_list(residuals: Callable[[list[Any]], Sequence[Any]]) -> Residuals:
    """Residuals of the list of unknowns as residuals of the column."""
    return lambda x: ca.vertcat(*residuals(ca.vertsplit(x)))


def extended_rosenbrock(x: list[Any]) -> list[Any]:
    """Rosenbrock's valley of every two unknowns."""
    return [r for a, b in zip(x[::2], x[1::2], strict=True) for r in (10 * (b - a**2), 1 - a)]


def broyden_tridiagonal(x: list[Any]) -> list[Any]:
    """Broyden (1965): a quadratic of each unknown and its two neighbours."""
    padded = [0, *x, 0]
    return [
        (3 - 2 * b) * b - a - 2 * c + 1
        for a, b, c in zip(padded[:-2], padded[1:-1], padded[2:], strict=True)
    ]


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


def chandrasekhar(c: float, x: Any) -> Any:
    """H(μ) (1 − c/2 ∫ μ/(μ + ν) H(ν) dν) = 1 by the midpoint rule; singular at c = 1."""
    n = x.numel()
    mu = (np.arange(n) + 0.5) / n
    weights = c / (2 * n) * mu[:, None] / (mu[:, None] + mu)
    return x * (1 - ca.mtimes(ca.DM(weights), x)) - 1


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


def lift(alpha: Any) -> Any:
    """Lift coefficient of a section that stalls near 15°."""
    stall = 0.5 * (1 + ca.tanh((alpha - radians(15)) / radians(2)))
    return (1 - stall) * 2 * pi * alpha + stall * ca.sin(2 * alpha)


def lifting_line(angle: float, x: Any) -> Any:
    """Fourier coefficients of the circulation (×100) of an elliptic-like wing of aspect 8."""
    n = x.numel()
    phi = [pi * (k + 1) / (n + 1) for k in range(n)]
    rows = []
    for p in phi:
        basis = np.array([sin((k + 1) * p) for k in range(n)]) / 100
        circulation = ca.mtimes(ca.DM(basis).T, x)
        induced = ca.mtimes(ca.DM(basis * np.arange(1, n + 1)).T, x) / sin(p)
        chord = (4 / pi) / 8 * (0.35 + 0.65 * sin(p))
        rows.append(2 * circulation - chord / 2 * lift(angle - induced))
    return 100 * ca.vertcat(*rows)


def wing(angle: float, x: Any) -> Any:
    """A bending and twisting wing in a strip-wise flow, integrated by the trapezoidal rule.

    Deflection, slope, moment and shear, twist and torque at every station; clamped at the root,
    free at the tip; the lift stalls with the local angle of attack.
    """
    n = x.numel() // 6
    parts = [x[k * n : (k + 1) * n] for k in range(6)]
    w, slope, twist = (ca.vertcat(0, part) for part in parts[:3])
    moment, shear, torque = (ca.vertcat(part, 0) for part in parts[3:])
    span = np.linspace(0, 1, n + 1)
    force = 3.0 * ca.DM(1 - 0.5 * span) * lift(angle + twist - 0.3 * slope)
    rows = []
    for state, rate in (
        (w, slope),
        (slope, 2 * moment * (1 + slope**2) ** 1.5),
        (twist, 1.5 * torque),
        (moment, -shear),
        (shear, -force),
        (torque, -0.25 * force),
    ):
        rows.append(n * (state[1:] - state[:-1]) - (rate[1:] + rate[:-1]) / 2)
    return ca.vertcat(*rows)


def radau(
    rate: Callable[[Any], Any], first: Sequence[float], times: Sequence[float], x: Any
) -> Any:
    """All steps at once of the method Radau IIA of order 5; the unknowns are the stage values."""
    size = len(first)
    before, rows = ca.DM(list(first)), []
    for k, step in enumerate(np.diff(times)):
        stages = [x[(3 * k + i) * size : (3 * k + i + 1) * size] for i in range(3)]
        rates = [rate(stage) for stage in stages]
        for stage, weights in zip(stages, RADAU, strict=True):
            slope = sum(w * r for w, r in zip(weights, rates, strict=True))
            rows.append(stage - before - float(step) * slope)
        before = stages[2]
    return ca.vertcat(*rows)


def robertson(y: Any) -> Any:
    """Robertson's kinetics."""
    slow, medium, fast = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return ca.vertcat(medium - slow, slow - medium - fast, fast)


def van_der_pol(mu: float, y: Any) -> Any:
    """Van der Pol's oscillator."""
    return ca.vertcat(y[1], mu * (1 - y[0] ** 2) * y[1] - y[0])


def brusselator(y: Any) -> Any:
    """The Brusselator with diffusion on 20 inner points, both species (problem BRUSS)."""
    n = y.numel() // 2
    u, v = ca.vertcat(1, y[:n], 1), ca.vertcat(3, y[n:], 3)
    spread = 0.02 * (n + 1) ** 2
    product = u[1:-1] ** 2 * v[1:-1]
    return ca.vertcat(
        1 + product - 4 * u[1:-1] + spread * (u[:-2] - 2 * u[1:-1] + u[2:]),
        3 * u[1:-1] - product + spread * (v[:-2] - 2 * v[1:-1] + v[2:]),
    )


def integration(
    name: str,
    rate: Callable[[Any], Any],
    first: Sequence[float],
    times: Sequence[float],
    lbx: float = -np.inf,
) -> Square:
    """The collocation equations from the initial state at every stage."""
    x0 = tuple(first) * (3 * (len(times) - 1))
    return square(
        name, partial(radau, rate, first, times), x0, source=HAIRER, symbol=ca.MX, lbx=lbx
    )


def large_squares() -> tuple[Square, ...]:
    """Return members of the families."""
    t = np.arange(1, 301) / 301
    grid = np.arange(1, 21) / 21
    bump = (*(1 + np.sin(2 * np.pi * grid)), *(3.0,) * 20)
    decades = (0, *np.logspace(-5, 4, 37))
    shock = "Burgers 1948, steady, central differences"
    return (
        square("rosenbrock", of_list(extended_rosenbrock), (-1.2, 1) * 500, source=MGH.format(21)),
        square("boundary-value", of_list(boundary_value), t * (t - 1), source=MGH.format(28)),
        square("integral-equation", integral_equation, t[2::3] * (t[2::3] - 1),
               source=MGH.format(29)),
        square("broyden-tridiagonal", of_list(broyden_tridiagonal), (-1,) * 1000,
               source=MGH.format(30)),
        square("broyden-banded", of_list(broyden_banded), (-1,) * 500, source=MGH.format(31)),
        square("chandrasekhar-0.9", partial(chandrasekhar, 0.9), (1,) * 100, symbol=ca.MX,
               source=CHANDRASEKHAR),
        square("chandrasekhar-0.9999", partial(chandrasekhar, 0.9999), (1,) * 200,
               symbol=ca.MX, source=CHANDRASEKHAR),
        square("bratu-plane", partial(bratu_plane, 6.0), (0,) * 625, symbol=ca.MX, source=BRATU),
        square("burgers", of_list(partial(burgers, 0.02)), np.linspace(1, -1, 402)[1:-1],
               source=shock),
        square("lifting-line-5", partial(lifting_line, radians(5)), (0,) * 40, source=ANDERSON),
        square("lifting-line-17", partial(lifting_line, radians(17)), (0,) * 40, source=ANDERSON),
        square("wing", partial(wing, radians(8)), (0,) * 360, symbol=ca.MX,
               source="own; beam and torsion as in static aeroelasticity"),
        integration("robertson", robertson, (1, 0, 0), decades),
        integration("robertson-positive", robertson, (1, 0, 0), decades, lbx=0),
        integration("van-der-pol-5", partial(van_der_pol, 5.0), (2, 0), np.linspace(0, 12, 101)),
        integration("brusselator", brusselator, bump, np.linspace(0, 2, 9)),
    )  # fmt: skip


SQUARES: tuple[Square, ...] = (
    *(Square(**known) for known in collection("squares", build_problem)),
    *large_squares(),
)
