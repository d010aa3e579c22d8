r"""The augmented method as descent and ascent on L_C by its gradient, and C that is not symmetric.

Zhao, "Matrix-Valued Optimism is Matrix-Valued Augmentation", sections "Pure matrix-valued augmented
update" and "Additive property of augmentation and optimism". Here

.. math::

    L_C(x, μ) = f(x) + μ^T h(x) + ½ h(x)^T C h(x)

is written as a CasADi expression and differentiated as a whole, so the recursion beside the law
shares none of its formulas.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Matrix, as_matrix
from casadi_hybrid.claims.compare import Trial, deviation, follow, judged
from casadi_hybrid.claims.record import DIFFERENT, EQUAL, Claim
from casadi_hybrid.iterations import Hybrid
from casadi_hybrid.law import apply
from casadi_hybrid.rules import ConstantRule


def descent_ascent(trial: Trial, C: Matrix, *, tolerance: float = EQUAL) -> Claim:
    """AUG is μ⁺ = μ + η_d ∇_μ L_C, then x⁺ = x − η_x ∇_x L_C(x, μ⁺), with sym(C) in its place.

    The law runs ALG(sym(C), 0), the recursion follows the gradient of L_C with C itself: a
    quadratic form sees sym(C) = ½(C + Cᵀ) only, as the paper remarks. The trial's ``dual`` is μ_0.
    Deviations: x and μ.

    Raises:
        InputError: for a wrong shape, or steps that are functions of t.
    """
    C = as_matrix(C, (trial.problem.m, trial.problem.m), "C")
    case = "C = Cᵀ" if np.array_equal(C, C.T) else "C ≠ Cᵀ, sym(C)"
    return _beside("AUG is descent-ascent on L_C", case, trial, C, 0.5 * (C + C.T), tolerance)


def unsymmetrized(trial: Trial, C: Matrix) -> Claim:
    """Counter-example: ALG(C, 0) with C ≠ Cᵀ does not follow the gradient of L_C."""
    C = as_matrix(C, (trial.problem.m, trial.problem.m), "C")
    return _beside("AUG with C ≠ Cᵀ on L_C", "C ≠ Cᵀ", trial, C, C, None)


def gradient_run(trial: Trial, C: Matrix) -> tuple[Matrix, Matrix]:
    """x_t and μ_t, t = 0 … T, of the descent and ascent on L_C by its gradient.

    Raises:
        InputError: for steps that are functions of t.
    """
    problem = trial.problem
    x, p = ca.SX.sym("x", problem.n), ca.SX.sym("p", problem.n_p)
    mu = ca.SX.sym("mu", problem.m)
    f, h = problem.graph(x, p)
    L = f + ca.dot(mu, h) + 0.5 * ca.bilin(ca.DM(C), h, h)
    slopes = ca.Function("slopes", [x, mu, p], [ca.gradient(L, x), ca.gradient(L, mu)])
    at_x, at_mu = trial.x0, trial.dual
    points, duals = [at_x], [at_mu]
    eta_x, eta_d = _steps(trial)
    for _ in range(trial.iterations):
        ascent = slopes(at_x, at_mu, trial.p)[1].full().ravel()
        at_mu = at_mu + apply(eta_d, ascent)
        descent = slopes(at_x, at_mu, trial.p)[0].full().ravel()
        at_x = at_x - apply(eta_x, descent)
        points.append(at_x)
        duals.append(at_mu)
    return np.array(points), np.array(duals)


def _beside(
    name: str, case: str, trial: Trial, C: Matrix, run_with: Matrix, tolerance: float | None
) -> Claim:
    """ALG(run_with, 0) beside the gradient of L_C; without a tolerance they have to differ."""
    rule = ConstantRule(run_with, 0.0, *_steps(trial))
    run = follow(trial, Hybrid(rule, dual_start="multipliers"))

    def compare() -> tuple[tuple[str, float], ...]:
        x, mu = gradient_run(trial, C)
        return ("x", deviation(x, run.x)), ("mu", deviation(mu, run.mu))

    bound = DIFFERENT if tolerance is None else tolerance
    return judged(name, trial.case(case), (run,), compare, bound, tolerance is None)


def _steps(trial: Trial) -> tuple[float | Matrix, float | Matrix]:
    if callable(trial.eta_x) or callable(trial.eta_d):
        raise InputError("a step is a function of t; give η_x and η_d as numbers or matrices")
    return trial.eta_x, trial.eta_d
