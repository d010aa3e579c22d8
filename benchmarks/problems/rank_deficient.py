"""Problems whose constraint Jacobian loses rank at the solution, at a chosen condition number.

Let u = x − x*, let r be the rank wanted, and let U (m×r), N (m×(m−r)), V (n×r) and Z (n×(n−r))
have orthonormal columns with UᵀN = 0 and VᵀZ = 0. With Σ from 1 down to 1/κ every problem has

    h(x) = U g(u) + N q(u),   g(u) = ΣVᵀu + ε_nl A φ(u),   φ(u) = (u_i², u_i u_{i+1}),

where q and its gradient vanish at u = 0. So J_h(x*) = UΣVᵀ has rank r, and h = 0 means g = 0 and
q = 0: the constraints are consistent at x* however many they are. Multipliers exist by
construction. Three kinds of q:

``"dependent"``
    q(u) = ½(wᵀg)²: the m constraints are functions of the r numbers g. J_h has rank ≤ r everywhere
    and the feasible set is g = 0, a manifold of dimension n − r near x*. x* is a strict local
    minimizer with second-order sufficiency; its multipliers fill an affine space of dimension
    m − r.
``"isolated"``
    q(u) = ½uᵀQu, Q ≻ 0: x* is the only feasible point, and solves the problem for any f. The
    system h = 0 is singular: Newton's method converges linearly with factor ½, and
    ‖u‖ ≤ (2‖h‖/λ_min(Q))^½, so that ‖h‖ = 1e-8 places x only within 2e-4 of x*.
``"crossing"``
    q(u) = ½uᵀQu, Q with both signs on ker J_h(x*) (one such row, and n − r ≥ 2): the feasible set
    is a cone through x* to first order, smooth elsewhere, and x* is a strict local minimizer. There
    may be others, at which J_h has full rank, and one of these may be nearer to the start.

The objective f = aᵀu + ½uᵀH₀u + c₁ Σ_i sin(u_i + u_{i+1}) + c₂ Σ_i u_i⁴ is bounded below on ℝⁿ;
a makes (x*, μ*) a KKT point, and H₀ is shifted on ker J_h(x*) so that ZᵀHZ ⪰ ½I there for the
Hessian H of the Lagrangian.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.paper.experiment.generator import (
    FITTED,
    Instance,
    checked,
    lift_on,
    phi,
    start,
    value_at,
)
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import Matrix, Vector, count, one_of

KINDS = ("dependent", "isolated", "crossing")


def make_rank_deficient(
    condition: float,
    seed: int,
    *,
    n: int = 5,
    m: int = 3,
    rank: int | None = None,
    kind: str = "dependent",
    radius: float = 1.0,
) -> Instance:
    """Return a problem with rank J_h(x*) = ``rank`` < min(n, m) and a known KKT point (x*, μ*).

    Args:
        condition: κ ≥ 1, the ratio of the largest to the smallest nonzero singular value of
            J_h(x*).
        seed: instance number ≥ 0.
        n, m: numbers of variables and constraints, each at least 2.
        rank: r ≥ 1; min(n, m) − 1 by default.
        kind: ``"dependent"``, ``"isolated"`` or ``"crossing"`` (see the module's docstring).
        radius: distance of the start from x*; that of the multipliers from μ* is 0.2.

    Raises:
        InputError: for a number out of range, or a kind that this shape and rank do not admit.
    """
    one_of(kind, "kind", KINDS)
    level = checked(condition, seed=(seed, 0), n=(n, 2), m=(m, 2))
    r = min(n, m) - 1 if rank is None else count(rank, "rank", at_least=1)
    if r >= min(n, m):
        raise InputError(f"rank must be below min(n, m) = {min(n, m)}, got {r}")
    if not admits(kind, n, m, r):
        raise InputError(
            f"kind 'crossing' needs m − rank = 1 and n − rank ≥ 2, got n={n}, m={m}, rank={r}"
        )
    rng = np.random.default_rng([round(1000 * condition), seed, n, m, r, KINDS.index(kind)])
    W = np.linalg.qr(rng.standard_normal((n, n)))[0]
    V, Z = W[:, :r], W[:, r:]
    UN = np.linalg.qr(rng.standard_normal((m, m)))[0]
    U, N = UN[:, :r], UN[:, r:]
    A = rng.standard_normal((r, 2 * n - 1))
    A /= np.linalg.norm(A, 2)
    x_star = 0.5 * rng.standard_normal(n)
    mu_star = 0.5 * rng.standard_normal(m)
    sigma = condition ** -np.linspace(0.0, 1.0, r)
    B_star = (U * sigma) @ V.T

    x = ca.SX.sym("x", n)
    u = x - x_star
    g = ca.mtimes((V * sigma).T, u) + FITTED.eps_nl * ca.mtimes(A, phi(u))
    q = [_vanishing(kind, u, g, W, n - r, rng) for _ in range(m - r)]
    h = ca.mtimes(U, g) + ca.mtimes(N, ca.vertcat(*q))
    f = _objective(x, u, h, x_star, mu_star, Z, rng) - _dot(B_star.T @ mu_star, u)
    x0, mu0 = start((x_star, mu_star), (radius, 0.2), rng)
    name = f"{kind} n={n} m={m} rank={r} cond={condition:g} #{seed}"
    problem = Problem(x=x, f=f, h=h, name=name)
    return Instance(problem, x_star, mu_star, B_star, x0, mu0, level, seed)


def admits(kind: str, n: int, m: int, rank: int) -> bool:
    """Whether there are problems of this kind with these numbers."""
    return kind != "crossing" or (m - rank == 1 and n - rank >= 2)


def _vanishing(kind: str, u: Any, g: Any, W: Matrix, kernel: int, rng: np.random.Generator) -> Any:
    """One entry of q: zero with zero gradient at u = 0."""
    if kind == "dependent":
        return 0.5 * _dot(rng.standard_normal(g.numel()), g) ** 2
    eigenvalues = rng.uniform(0.5, 1.0, u.numel())
    if kind == "crossing":
        eigenvalues[-kernel:] *= np.resize([1.0, -1.0], kernel)
    return 0.5 * ca.dot(u, ca.mtimes((W * eigenvalues) @ W.T, u))


def _objective(
    x: Any, u: Any, h: Any, x_star: Vector, mu_star: Vector, Z: Matrix, rng: np.random.Generator
) -> Any:
    """f up to its gradient at x*, which is zero here; ∇²L(x*, μ*) ⪰ ½I on range(Z)."""
    n = u.numel()
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    H0 = (Q * np.resize([1.0, -0.5, -1.5], n)) @ Q.T
    c = rng.uniform(0.05, 0.2, 2)
    smooth = c[0] * ca.sum1(ca.sin(u[:-1] + u[1:])) + c[1] * ca.sumsqr(u**2)
    f = 0.5 * ca.dot(u, ca.mtimes(H0, u)) + smooth
    hessian = value_at(ca.hessian(f + ca.dot(mu_star, h), x)[0], x, x_star)
    lift = lift_on(Z, hessian)
    slope = value_at(ca.gradient(f, x), x, x_star).ravel()
    return f + 0.5 * ca.dot(u, ca.mtimes(lift, u)) - _dot(slope, u)


def _dot(numbers: Vector, expression: Any) -> Any:
    return ca.dot(ca.DM(numbers), expression)
