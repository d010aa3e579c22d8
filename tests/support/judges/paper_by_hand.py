"""The paper's problem class and its recursions, written in NumPy from the paper's formulas.

Nothing here comes from the package: first derivatives are worked out by hand, spectra are NumPy's,
and each recursion is the display of the paper it cites (Zhao, "Matrix-Valued Optimism is
Matrix-Valued Augmentation"). The tests compare the package with these.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from support.cases.graphs import complex_step

Array = Any


@dataclass(frozen=True)
class ByHand:
    """f and h of the appendix "Experimental Details", n = 3 and m = 5, with derivatives by hand."""

    H0: Array
    q: Array
    c: Array
    B_star: Array
    A: Array
    x_star: Array
    eps: float = 0.2

    def f(self, x: Array) -> float:
        c1, c2, c3, c4 = self.c
        a, b, d = x
        smooth = c1 * np.sin(2 * a) - c2 * np.cos(b * d) + c3 * d**4 - c4 * np.sin(a + d)
        return 0.5 * x @ self.H0 @ x + self.q @ x + smooth

    def gradient(self, x: Array) -> Array:
        c1, c2, c3, c4 = self.c
        a, b, d = x
        smooth = [
            2 * c1 * np.cos(2 * a) - c4 * np.cos(a + d),
            c2 * d * np.sin(b * d),
            c2 * b * np.sin(b * d) + 4 * c3 * d**3 - c4 * np.cos(a + d),
        ]
        return self.H0 @ x + self.q + np.array(smooth)

    def h(self, x: Array) -> Array:
        u1, u2, u3 = u = x - self.x_star
        phi = np.array([u1 * u1, u2 * u2, u3 * u3, u1 * u2, u2 * u3])
        return self.B_star @ u + self.eps * self.A @ phi

    def jacobian(self, x: Array) -> Array:
        u1, u2, u3 = x - self.x_star
        phi = np.array([[2 * u1, 0, 0], [0, 2 * u2, 0], [0, 0, 2 * u3], [u2, u1, 0], [0, u3, u2]])
        return self.B_star + self.eps * self.A @ phi

    def hessian(self, x: Array, lam: Array) -> Array:
        """∇²ₓₓ(f + λᵀh), by the complex step on the gradient, which is exact to rounding."""
        return complex_step(lambda z: self.gradient(z) + self.jacobian(z).T @ lam, x)

    def symbolic(self, kind: Any = ca.SX) -> dict[str, Any]:
        """The same problem as CasADi expressions: keyword arguments of ``Problem``."""
        c1, c2, c3, c4 = map(float, self.c)
        x = kind.sym("x", 3)
        u = x - ca.DM(self.x_star)
        phi = ca.vertcat(u[0] ** 2, u[1] ** 2, u[2] ** 2, u[0] * u[1], u[1] * u[2])
        f = 0.5 * ca.bilin(ca.DM(self.H0), x, x) + ca.dot(ca.DM(self.q), x)
        f += c1 * ca.sin(2 * x[0]) - c2 * ca.cos(x[1] * x[2])
        f += c3 * x[2] ** 4 - c4 * ca.sin(x[0] + x[2])
        h = ca.mtimes(ca.DM(self.B_star), u) + self.eps * ca.mtimes(ca.DM(self.A), phi)
        return {"x": x, "f": f, "h": h}


def instance(condition: float = 3.0, seed: int = 0) -> tuple[ByHand, Array, Array]:
    """A problem of the class with its own random data, and a start (x_0, μ_0) near (x*, μ*)."""
    rng = np.random.default_rng([seed, 77])
    U = np.linalg.qr(rng.normal(size=(5, 3)))[0]
    V = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    B_star = U @ np.diag([1, condition**-0.5, 1 / condition]) @ V.T
    A = rng.normal(size=(5, 5))
    A /= np.linalg.norm(A, 2)
    x_star, mu_star = 0.5 * rng.normal(size=3), 0.5 * rng.normal(size=5)
    H0 = Q @ np.diag([1.0, -0.5, -1.5]) @ Q.T
    bare = ByHand(H0, np.zeros(3), rng.uniform(0.05, 0.2, 4), B_star, A, x_star)
    q = -bare.gradient(x_star) - B_star.T @ mu_star
    problem = ByHand(H0, q, bare.c, B_star, A, x_star)
    return problem, x_star + 0.2 * rng.normal(size=3), mu_star + 0.1 * rng.normal(size=5)


class Designed(NamedTuple):
    """The decision of "Closed-Form Hybrid Correction Design" at one iterate."""

    C_aug: Array
    C_opt: Array
    eta_x: Any
    eta_d: Any
    margin: float
    norm_M: float


@dataclass(frozen=True)
class PaperDesign:
    """The design of the paper for R = I, with its constants; ``theta`` picks a realization.

    ``theta``: "balance" for the paper's formula, "augmented" and "optimistic" for the endpoints,
    or a number. ``strength`` multiplies α.
    """

    theta: Any = "balance"
    weighted: bool = True
    strength: float = 1.0
    delta: float = 0.35
    kappa_x: float = 0.08
    kappa_p: float = 0.20
    kappa_omega: float = 8.0

    def __call__(self, H: Array, B: Array) -> Designed:
        return next(self.designs(H, B, [self.theta]))

    def designs(self, H: Array, B: Array, thetas: list[Any]) -> Iterator[Designed]:
        """One design for each entry of ``thetas``; they share the target correction M."""
        pinv = np.linalg.pinv(B)
        BtB = B.T @ B
        beta = np.linalg.norm(B, 2) ** 2
        C_can = -pinv.T @ H @ pinv
        R = np.eye(len(B))
        alpha = self.strength * self.delta / np.linalg.eigvalsh(BtB)[0]
        M = C_can + alpha * R
        norm_M = np.linalg.norm(M, 2)
        A = H + B.T @ M @ B
        a_x = a_d = 1.0
        if self.weighted:
            a_x = 0.5 * np.linalg.eigvalsh(A)[0]
            # The nonzero eigenvalues: the last n of m.
            a_d = np.linalg.eigvalsh(B @ np.linalg.inv(A) @ B.T)[-B.shape[1]]
        balance = np.sqrt(a_d * self.kappa_p / (a_x * beta))
        for name in thetas:
            theta = name
            if name == "balance":
                top = self.kappa_x * np.linalg.norm(R, 2) * beta
                theta = top / (top + self.kappa_p * self.kappa_omega * np.linalg.norm(BtB, 2))
            if name == "augmented":
                C_aug, C_opt = M, 0 * M
            elif name == "optimistic":
                C_aug, C_opt = 0 * M, M
            else:
                C_aug, C_opt = C_can + theta * alpha * R, (1 - theta) * alpha * R
            eta_x = balance
            if C_aug.any():
                eta_x = min(eta_x, self.kappa_x / np.linalg.norm(H + B.T @ C_aug @ B, 2))
            if C_opt.any():
                most = self.kappa_p * self.kappa_omega / (np.linalg.norm(C_opt, 2) * beta)
                eta_x = min(eta_x, most)
            eta_d = self.kappa_p / (eta_x * beta)
            yield Designed(C_aug, C_opt, eta_x, eta_d, min(a_x * eta_x, a_d * eta_d), norm_M)


@dataclass(frozen=True)
class PaperGrid:
    """The grid oracle: the largest margin over θ = 0, 0.1, …, 1 and α = 4, 2, 1 times the rule's.

    The weighted margin does not depend on α, so ties are the rule and not the exception: among
    margins equal to 1e-9 the largest α wins, then the smallest θ.
    """

    weighted: bool = True
    budget: float = 300.0

    def __call__(self, H: Array, B: Array) -> Designed:
        thetas = [k / 10 for k in range(11)]
        every = [
            design
            for strength in (4.0, 2.0, 1.0)
            for design in PaperDesign(weighted=self.weighted, strength=strength).designs(
                H, B, thetas
            )
        ]
        allowed = [d for d in every if d.norm_M <= self.budget]
        most = max(d.margin for d in allowed)
        return next(d for d in allowed if d.margin >= most * (1 - 1e-9))


Trajectory = Iterator[tuple[Array, Array]]
Rule = Callable[[Array, Array], Designed]


def algorithm_1(
    problem: ByHand,
    rule: Rule,
    x: Array,
    mu: Array,
    *,
    printed: bool = True,
    telescoped: bool = True,
) -> Trajectory:
    """Algorithm 1. ``printed``: H at μ_t and h_{−1} = h_0, C_opt,−1 = C_opt,0 at the start.

    Otherwise H is taken at μ_t − C_opt,t−1 h_{t−1} and the start has no memory (C_opt,−1 = 0).
    ``telescoped=False`` writes the memory as C_opt,t(h_t − h_{t−1}) instead.
    """
    h_before = problem.h(x)
    C_before = np.zeros((5, 5))
    if printed:
        C_before = rule(problem.hessian(x, mu), problem.jacobian(x)).C_opt
    while True:
        yield x, mu
        h, B = problem.h(x), problem.jacobian(x)
        d = rule(problem.hessian(x, mu if printed else mu - C_before @ h_before), B)
        memory = C_before @ h_before if telescoped else d.C_opt @ h_before
        mu = mu + np.dot(d.eta_d, h) + d.C_opt @ h - memory
        x = x - np.dot(d.eta_x, problem.gradient(x) + B.T @ (mu + d.C_aug @ h))
        h_before, C_before = h, d.C_opt


def alg(
    problem: ByHand, C: Array, Omega: Array, P: Any, D: Any, x: Array, mu: Array, x_before: Array
) -> Trajectory:
    """ALG(C, Ω), (HYB) in the paper, from x_{−1}, x_0, μ_0; P and D are η_x I and η_d I."""
    h_before = problem.h(x_before)
    while True:
        yield x, mu
        h, B = problem.h(x), problem.jacobian(x)
        mu = mu + D @ h + Omega @ (h - h_before)
        x = x - P @ (problem.gradient(x) + B.T @ (mu + C @ h))
        h_before = h


def saddle(problem: ByHand, x: Array, mu: Array) -> tuple[Array, Array]:
    """The saddle operator F(x, μ) = (∇f + Bᵀμ, −h)."""
    return problem.gradient(x) + problem.jacobian(x).T @ mu, -problem.h(x)


def gda(problem: ByHand, eta_x: float, eta_d: float, x: Array, mu: Array) -> Trajectory:
    """z⁺ = z − ηF(z)."""
    while True:
        yield x, mu
        Fx, Fm = saddle(problem, x, mu)
        x, mu = x - eta_x * Fx, mu - eta_d * Fm


def ogda(problem: ByHand, eta: float, x: Array, mu: Array, x_before: Array) -> Trajectory:
    """z⁺ = z − 2ηF(z_t) + ηF(z_{t−1}), with μ_{−1} = μ_0."""
    Gx, Gm = saddle(problem, x_before, mu)
    while True:
        yield x, mu
        Fx, Fm = saddle(problem, x, mu)
        x, mu = x - 2 * eta * Fx + eta * Gx, mu - 2 * eta * Fm + eta * Gm
        Gx, Gm = Fx, Fm


def extragradient(problem: ByHand, eta: float, x: Array, mu: Array) -> Trajectory:
    """z̃ = z − ηF(z), z⁺ = z − ηF(z̃)."""
    while True:
        yield x, mu
        Fx, Fm = saddle(problem, x, mu)
        Fx, Fm = saddle(problem, x - eta * Fx, mu - eta * Fm)
        x, mu = x - eta * Fx, mu - eta * Fm


def pdhg(problem: ByHand, tau: float, sigma: float, x: Array, mu: Array) -> Trajectory:
    """x⁺ = x − τ(∇f + Bᵀμ), μ⁺ = μ + σh(2x⁺ − x)."""
    while True:
        yield x, mu
        new = x - tau * saddle(problem, x, mu)[0]
        x, mu = new, mu + sigma * problem.h(2 * new - x)


def linearized_al(
    problem: ByHand, eta: float, c: float, s: float, x: Array, mu: Array
) -> Trajectory:
    """x⁺ = x − η∇ₓ(L + c‖h‖²/2), μ⁺ = μ + sh(x⁺)."""
    while True:
        yield x, mu
        x = x - eta * saddle(problem, x, mu + c * problem.h(x))[0]
        mu = mu + s * problem.h(x)
