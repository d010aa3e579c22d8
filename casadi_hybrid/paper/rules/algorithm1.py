"""Algorithm 1 of the paper in one function, in its letters and its order.

The method ``"algorithm-1"`` runs the same by parts, :mod:`casadi_hybrid.paper.law` and
:class:`~casadi_hybrid.paper.rules.design.DesignRule`, and is tested against this function.
Zhao, "Closed-Form Hybrid Correction Design" and appendix G.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.linalg import eigvalsh, inv, norm, pinv

from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.utils.inputs import Matrix, Vector


class Printed(NamedTuple):
    """Iterate x_{t+1}, μ_{t+1}, and the algorithm's choices."""

    x: Vector
    mu: Vector
    C_aug: Matrix
    C_opt: Matrix
    eta_x: float
    eta_d: float
    alpha: float
    theta: float
    a_x: float
    a_d: float


def algorithm_1(
    at: Evaluation,
    mu_t: Vector,
    h_before: Vector,
    C_opt_before: Matrix,
    R: Matrix | None = None,
    *,
    delta: float = 0.35,
    kappa_x: float = 0.08,
    kappa_p: float = 0.20,
    kappa_omega: float = 8.0,
) -> Printed:
    """Take one iteration from x_t, μ_t, h_{t−1}, C_opt,t−1, with B_t of full column rank.

    ``at`` has ∇f, h, B at x_t, H at (x_t, μ_t). R = I by default; rank and M_max are not checked.
    """
    H, B = np.asarray(at.hessian), at.B  # line 1
    R = np.eye(len(B)) if R is None else R
    B_pinv, BRB, beta = pinv(B), B.T @ R @ B, norm(B, 2) ** 2
    C_can = -B_pinv.T @ H @ B_pinv  # line 2
    alpha = delta / eigvalsh(BRB)[0]  # line 3
    M = C_can + alpha * R
    aug, opt = kappa_x * norm(R, 2) * beta, kappa_p * kappa_omega * norm(BRB, 2)
    theta = float(aug / (aug + opt))  # line 4
    C_aug, C_opt = C_can + theta * alpha * R, (1 - theta) * alpha * R  # line 5
    A_M = H + B.T @ M @ B  # line 6, with its margin under S1–S3 as in appendix G
    a_x, a_d = eigvalsh(A_M)[0] / 2, eigvalsh(B @ inv(A_M) @ B.T)[-len(H)]
    U_x, L_d = kappa_x / norm(H + B.T @ C_aug @ B, 2), norm(C_opt, 2) / kappa_omega
    eta_x = min(float(a_d * kappa_p / (a_x * beta)) ** 0.5, U_x, kappa_p / (beta * L_d))
    eta_d = kappa_p / (eta_x * beta)
    h = at.h  # line 7
    mu = mu_t + eta_d * h + C_opt @ h - C_opt_before @ h_before  # line 8
    x = at.x - eta_x * (at.gradient + B.T @ (mu + C_aug @ h))  # line 9
    return Printed(x, mu, C_aug, C_opt, eta_x, eta_d, alpha, theta, a_x, a_d)
