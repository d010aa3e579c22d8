"""The paper's synthetic problem class: nonlinear equality constraints with a chosen condition.

h(x) = B*u + ε_nl A φ(u) with u = x − x*, so h(x*) = 0 and J_h(x*) = B* = UΣVᵀ exactly, and
f(x) = ½xᵀH₀x + qᵀx + φ-terms with q chosen so that (x*, μ*) is a KKT point (appendix
"Experimental Details").

The paper prints f for n = 3 and leaves the distributions open: the :class:`Recipe` was fitted to
its tables. For other n the nonlinear terms are repeated on further coordinates. For m < n a quartic
term in every coordinate bounds f below, and a shift of H₀ on ker B* makes x* a strict local
minimizer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from scipy.linalg import null_space

from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import Matrix, Vector, count, positive

CONDITIONS = (1, 2, 3, 5, 8, 13)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Distributions of an instance that the paper leaves open. The defaults were fitted.

    x* and μ* are ``spread`` and ``multiplier_spread`` times standard normal numbers, ``curvature``
    are the eigenvalues of H₀, repeated for n > 3, c_i = least + width·Uᵖᵒʷᵉʳ with U uniform on
    [0, 1], ``radius`` and ``multiplier_radius`` the distances of the start from x* and μ*.
    """

    eps_nl: float = 0.2
    spread: float = 0.5
    multiplier_spread: float = 0.5
    curvature: tuple[float, ...] = (1.0, -0.5, -1.5)
    least: float = 0.05
    width: float = 0.15
    power: float = 4.0
    radius: float = 0.5
    multiplier_radius: float = 0.2


FITTED = Recipe()


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem of the class with its known solution and the start of the runs.

    Attributes:
        x_star, multipliers_star: the constructed KKT point.
        B_star: J_h(x*), with singular values from 1 down to 1/κ.
        x0, multipliers0: start.
        condition, seed: κ_B, and the number of the instance within this level.
    """

    problem: Problem
    x_star: Vector
    multipliers_star: Vector
    B_star: Matrix
    x0: Vector
    multipliers0: Vector
    condition: float
    seed: int


def checked(condition: float, **counts: tuple[int, int]) -> float:
    """Return κ as a float; :class:`InputError` for κ < 1 or a count below its (count, least)."""
    if positive(condition, "condition") < 1:
        raise InputError(f"condition must be at least 1, got {condition!r}")
    for name, (value, least) in counts.items():
        count(value, name, at_least=least)
    return float(condition)


def make_instance(
    condition: float,
    seed: int,
    *,
    n: int = 3,
    m: int = 5,
    radius: float | None = None,
    recipe: Recipe = FITTED,
) -> Instance:
    """Return instance number ``seed`` at condition level κ.

    Args:
        condition, seed: κ_B ≥ 1 of J_h(x*), and a number ≥ 0: drawn with 1000κ + seed.
        n, m: numbers of variables and constraints (paper: 3 and 5).
        radius: distance of the start from x*; the recipe's by default.
        recipe: all other distributions.

    Raises:
        InputError: for a number out of range.
    """
    level = checked(condition, seed=(seed, 0), n=(n, 1), m=(m, 1))
    rng = np.random.default_rng(round(1000 * condition) + seed)
    r = min(m, n)
    U = np.linalg.qr(rng.standard_normal((m, r)))[0]
    V = np.linalg.qr(rng.standard_normal((n, r)))[0]
    A = rng.standard_normal((m, 2 * n - 1))
    A /= np.linalg.norm(A, 2)  # ‖A‖ = 1, so that ε_nl measures the nonlinear part
    x_star = recipe.spread * rng.standard_normal(n)
    mu_star = recipe.multiplier_spread * rng.standard_normal(m)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    rng.uniform(size=3)  # drawn by the fitted recipe and not used
    c = recipe.least + recipe.width * rng.uniform(size=4) ** recipe.power
    away = recipe.radius if radius is None else radius
    x0, mu0 = start((x_star, mu_star), (away, recipe.multiplier_radius), rng)

    # From 1 to 1/κ in equal ratios: (1, κ^−½, κ^−1) for r = 3, as in the paper.
    B_star = (U * level ** -np.linspace(0.0, 1.0, r)) @ V.T
    # Indefinite by default: the curvature that a correction has to cancel.
    H0 = (Q * np.resize(recipe.curvature, n)) @ Q.T
    x = ca.SX.sym("x", n)
    h = ca.mtimes(B_star, x - x_star) + recipe.eps_nl * ca.mtimes(A, phi(x - x_star))
    smooth = _varphi(x, c)
    if m < n:
        smooth += c[2] * ca.sumsqr(x**2)
        curvature = value_at(ca.hessian(smooth + ca.dot(mu_star, h), x)[0], x, x_star)
        # Second-order sufficiency: ZᵀH(x*, μ*)Z ≻ 0 on ker B*.
        H0 = H0 + lift_on(null_space(B_star), H0 + curvature)
    # Stationarity at (x*, μ*).
    q = -H0 @ x_star - value_at(ca.gradient(smooth, x), x, x_star).ravel() - B_star.T @ mu_star
    f = 0.5 * ca.dot(x, ca.mtimes(H0, x)) + ca.dot(q, x) + smooth
    problem = Problem(x=x, f=f, h=h, name=f"synthetic n={n} m={m} cond={condition:g} #{seed}")
    return Instance(problem, x_star, mu_star, B_star, x0, mu0, level, seed)


def start(
    star: tuple[Vector, Vector], away: tuple[float, float], rng: np.random.Generator
) -> list[Vector]:
    """Return points at these distances from (x*, μ*), in random directions."""
    directions = [rng.standard_normal(point.size) for point in star]
    return [
        point + distance * d / np.linalg.norm(d)
        for point, distance, d in zip(star, away, directions, strict=True)
    ]


def phi(u: Any) -> Any:
    """Return (u_1², …, u_n², u_1u_2, …, u_{n−1}u_n), the paper's φ for n = 3."""
    return ca.vertcat(u**2, u[:-1] * u[1:]) if u.numel() > 1 else u**2


def _varphi(x: Any, c: Vector) -> Any:
    """Return the paper's nonlinear terms on (x_1, x_2, x_3), and on the next triples."""
    n = x.numel()
    total = 0
    for i in range(0, n, 3):
        a, b, d = x[i], x[(i + 1) % n], x[(i + 2) % n]
        total += c[0] * ca.sin(2 * a) - c[1] * ca.cos(b * d) + c[2] * d**4 - c[3] * ca.sin(a + d)
    return total


def lift_on(Z: Matrix, hessian: Matrix) -> Matrix:
    """Return the matrix that, added to H, turns the eigenvalues e of ZᵀHZ into max(|e|, ½)."""
    # |e| keeps the size of a curvature, ½ keeps x* isolated.
    values, vectors = np.linalg.eigh(Z.T @ hessian @ Z)
    W = Z @ vectors
    return np.asarray((W * (np.maximum(np.abs(values), 0.5) - values)) @ W.T)


def value_at(expression: Any, x: Any, value: Vector) -> Matrix:
    """Evaluate an expression at x = value."""
    return np.asarray(ca.Function("at", [x], [expression])(value).full())
