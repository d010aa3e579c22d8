r"""Local spectra: the Jacobian J_AL of the iteration, its gap, and the target curvature.

Zhao, "Matrix-Valued Optimism is Matrix-Valued Augmentation", appendices "Local Spectral Margin"
and "Proof of the Closed-Form Design Guarantee". With A_M = H + BᵀMB the printed Jacobian is

.. math::

    J_{AL} = \begin{bmatrix} I - \eta_x A_M & -\eta_x B^T \\
        \eta_d B (I - \eta_x A_M) & I - \eta_x \eta_d B B^T \end{bmatrix}.

**In which variables.** The law moves μ first and x second. Its linearization at a KKT point is
the printed matrix in the staggered variables (x_t, π_{t+1}): the multiplier one step ahead of x.
It is neither the one in (x_t, π_t), which is

    [I − η_x A_M − η_xη_d BᵀB, −η_x Bᵀ; η_d B, I],

nor, unless M = 0, the one in (x_t, ν_{t+1}) with the effective dual. The three are similar, by
π_{t+1} = π_t + η_d B x_t and ν_{t+1} = π_{t+1} + M B x_t, so they share ρ and the gap 1 − ρ, and
so does every split of M.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Matrix, Vector, one_of
from casadi_hybrid.claims.compare import Trial, follow
from casadi_hybrid.claims.record import DIFFERENT, EQUAL, Claim
from casadi_hybrid.iterations import Hybrid
from casadi_hybrid.point.residuals import residuals_at
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.rules import (
    ClosedFormSplit,
    ConstantRule,
    FixedMetric,
    FullCancellation,
    GivenSplit,
    IdentityMetric,
    LocalModel,
    Split,
    StepRule,
    TargetCurvature,
)
from casadi_hybrid.rules.parts import Undivided

VARIABLES = ("staggered", "aligned", "effective")
# Central differences of steps d and d/2 with one extrapolation: truncation O(d⁴) = 1e-12 and
# rounding 1e-16/d = 1e-13 on entries of size 1.
DIFFERENCE = 1e-3
DIFFERENCE_ERROR = 1e-9
KKT = 1e-9


def local_jacobian(H: Matrix, B: Matrix, M: Matrix, eta_x: float, eta_d: float) -> Matrix:
    """J_AL(η_x, η_d; M) as printed: (n+m)×(n+m), in the variables (x_t, π_{t+1})."""
    n, m = H.shape[0], B.shape[0]
    kept = np.eye(n) - eta_x * (H + B.T @ M @ B)
    return np.block([[kept, -eta_x * B.T], [eta_d * B @ kept, np.eye(m) - eta_x * eta_d * B @ B.T]])


def spectral_gap(J: Matrix) -> float:
    """1 − ρ(J): positive for a contraction."""
    return 1.0 - float(np.abs(np.linalg.eigvals(J)).max())


def local_gap(H: Matrix, B: Matrix, M: Matrix, eta_x: float, eta_d: float) -> float:
    """1 − ρ of J_AL on what x can see of the multipliers: x-space × range(B).

    J_AL has the eigenvalue 1 for every direction with Bᵀδ = 0, m − rank(B) of them, so its own
    gap is never positive when m > n: there the multiplier is not unique, and x never meets it.
    """
    model = LocalModel(H, B)
    U = model.jacobian.U
    return spectral_gap(local_jacobian(H, U.T @ B, U.T @ M @ U, eta_x, eta_d))


def law_jacobian(trial: Trial, C: Matrix, Omega: Matrix, variables: str = "staggered") -> Matrix:
    """The Jacobian of the law itself, by differences of the solver's loop around a KKT point.

    Args:
        trial: ``x0`` and ``dual`` are the KKT point; the steps must be numbers.
        C, Omega: the split that is run.
        variables: ``"staggered"`` (x_t, π_{t+1}), ``"aligned"`` (x_t, π_t) or ``"effective"``
            (x_t, ν_{t+1}).

    Raises:
        InputError: for other variables, or steps that are not numbers.
    """
    one_of(variables, "variables", VARIABLES)
    n = trial.problem.n
    point = np.concatenate([trial.x0, trial.dual])

    def step(z: Vector) -> Vector:
        return _one_step(trial, C, Omega, variables, z[:n], z[n:])

    columns = []
    for e in np.eye(point.size):
        coarse, fine = (
            (step(point + d * e) - step(point - d * e)) / (2 * d)
            for d in (DIFFERENCE, DIFFERENCE / 2)
        )
        columns.append((4 * fine - coarse) / 3)
    return np.array(columns).T


def jacobian_of_the_law(
    trial: Trial, C: Matrix, Omega: Matrix, *, tolerance: float = DIFFERENCE_ERROR
) -> Claim:
    """The printed J_AL is the linearization of ALG(C, Ω) in the variables (x_t, π_{t+1}).

    Deviations: J, the largest entry of the difference; aligned and effective, the same for the
    other two choices of variables after the similarity that the module's text gives.

    Raises:
        InputError: when (``x0``, ``dual``) is not a KKT point, or a step is not a number.
    """
    gap, forms = _similar_forms(trial, C + Omega)
    measured = tuple(
        ("J" if name == "staggered" else name, float(np.abs(found - forms[name]).max()))
        for name in VARIABLES
        for found in [law_jacobian(trial, C, Omega, name)]
    )
    case = f"n={trial.problem.n} m={trial.problem.m} gap={gap:.3f}"
    return Claim("J_AL is the law's Jacobian", case, measured, tolerance)


def jacobian_in_other_variables(trial: Trial, C: Matrix, Omega: Matrix) -> Claim:
    """Counter-example: in (x_t, π_t) or (x_t, ν_{t+1}) the law's Jacobian is another matrix.

    Arguments as for :func:`jacobian_of_the_law`.
    """
    J = _similar_forms(trial, C + Omega)[1]["staggered"]
    measured = tuple(
        (name, float(np.abs(law_jacobian(trial, C, Omega, name) - J).max()))
        for name in VARIABLES[1:]
    )
    case = f"n={trial.problem.n} m={trial.problem.m}"
    return Claim("J_AL in other variables", case, measured, DIFFERENT, True)


def target_curvature(
    H: Matrix,
    B: Matrix,
    delta: float,
    R: Matrix | None = None,
    *,
    thetas: Sequence[float] = (0.0, 0.3, 1.0),
    tolerance: float = EQUAL,
) -> Claim:
    """Theorem: H + BᵀMB ⪰ δI with M = C_can + αR, and C_aug + C_opt = M for every θ.

    M and the splits come from the pieces of the design rule. Deviations, relative to
    max(1, ‖H‖₂ + ‖B‖₂²‖M‖₂): short, by how much λ_min(H + BᵀMB) misses δ; least, its distance
    from δ (α is the least of its family); cancel, ‖H + BᵀC_can B‖. Relative to max(1, ‖M‖₂): sum,
    ‖C_aug + C_opt − M‖ over the given θ and the closed-form θ.

    Args:
        H: n×n, symmetric.
        B: m×n, full column rank.
        delta: target curvature δ > 0.
        R: residual metric, symmetric positive definite; I by default.
        thetas: splits in [0, 1].
        tolerance: bound of the deviations.

    Raises:
        InputError: when rank B < n, or R is not symmetric positive definite.
    """
    model = LocalModel(H, B)
    if model.rank < model.n:
        raise InputError(
            f"B has rank {model.rank} < n = {model.n}; the theorem assumes full column rank, and "
            "no M changes the curvature on ker B"
        )
    C_can, deficit = FullCancellation().cancel(model, delta)
    metric = (IdentityMetric() if R is None else FixedMetric(R)).matrix(model)
    alpha = TargetCurvature(delta).alpha(model, metric, deficit)
    M = C_can + alpha * metric
    undivided = Undivided(model, C_can, alpha, metric, StepRule())
    splits: list[Split] = [*(GivenSplit(theta) for theta in thetas), ClosedFormSplit()]
    candidates = [candidate for split in splits for candidate in split.candidates(undivided)]
    scale = max(1.0, _norm(H) + _norm(B) ** 2 * _norm(M))
    smallest = _smallest_eigenvalue(H + B.T @ M @ B)
    sums = [_norm(candidate.C_aug + candidate.C_opt - M) for candidate in candidates]
    measured = (
        ("short", max(0.0, delta - smallest) / scale),
        ("least", abs(smallest - delta) / scale),
        ("cancel", _norm(H + B.T @ C_can @ B) / scale),
        ("sum", max(sums) / max(1.0, _norm(M))),
    )
    case = f"n={model.n} m={model.m} δ={delta:g} ‖M‖={_norm(M):.3g}"
    return Claim("Target curvature H+BᵀMB ⪰ δI", case, measured, tolerance)


def unreachable_curvature(
    H: Matrix, B: Matrix, delta: float, strengths: Sequence[float] = (1.0, 1e2, 1e4)
) -> Claim:
    """Counter-example: without full column rank no M lifts H on ker B.

    For z ∈ ker B, zᵀ(H + BᵀMB)z = zᵀHz whatever M is. Deviations: δ − λ_min(H + BᵀMB) for
    M = −B†ᵀHB† + α(BBᵀ)⁺ with each strength α.
    """
    model = LocalModel(H, B)
    pinv = model.pinv
    corrections = [pinv.T @ (alpha * np.eye(model.n) - H) @ pinv for alpha in strengths]
    measured = tuple(
        (f"α={alpha:g}", delta - _smallest_eigenvalue(H + B.T @ M @ B))
        for alpha, M in zip(strengths, corrections, strict=True)
    )
    case = f"n={model.n} m={model.m} δ={delta:g} rank={model.rank}"
    return Claim("Target curvature, rank B < n", case, measured, DIFFERENT, True)


def _one_step(
    trial: Trial, C: Matrix, Omega: Matrix, variables: str, x: Vector, dual: Vector
) -> Vector:
    """One step of the law from (x_t, dual), in the given variables."""
    h = trial.residual(x)
    # The loop starts from (x_t, π_t); the variables that look ahead need one step more of the
    # multiplier, so two steps are run and x_{t+1} is read from the first.
    if variables != "aligned":
        dual = dual - _numbers(trial)[1] * h
    if variables == "effective":
        dual = dual - (C + Omega) @ h
    start = replace(trial, x0=x, dual=dual, x_prev=None, iterations=2)
    run = follow(start, Hybrid(ConstantRule(C, Omega, trial.eta_x, trial.eta_d)))
    duals = run.effective if variables == "effective" else run.multipliers
    return np.concatenate([run.x[1], duals[1 if variables == "aligned" else 2]])


def _numbers(trial: Trial) -> tuple[float, float]:
    """The steps, which J_AL needs to be numbers."""
    if not isinstance(trial.eta_x, float | int) or not isinstance(trial.eta_d, float | int):
        raise InputError("eta_x and eta_d must be numbers here; J_AL is printed for those")
    return float(trial.eta_x), float(trial.eta_d)


def _similar_forms(trial: Trial, M: Matrix) -> tuple[float, dict[str, Matrix]]:
    """The gap at the trial's KKT point, and J_AL in each choice of variables."""
    eta_x, eta_d = _numbers(trial)
    at = Oracle(trial.problem.functions, trial.p).second(trial.x0, trial.dual)
    assert at.hessian is not None
    residuals = residuals_at(at, trial.dual)
    worst = max(residuals.feasibility, residuals.stationarity)
    if worst > KKT:
        raise InputError(
            f"(x0, dual) has the KKT residual {worst:.1e}; J_AL is the linearization at a KKT "
            f"point, so give one with at most {KKT:.0e}"
        )
    J = local_jacobian(at.hessian, at.B, M, eta_x, eta_d)
    return local_gap(at.hessian, at.B, M, eta_x, eta_d), {
        "staggered": J,
        "aligned": _shear(-eta_d * at.B) @ J @ _shear(eta_d * at.B),
        "effective": _shear(M @ at.B) @ J @ _shear(-M @ at.B),
    }


def _shear(block: Matrix) -> Matrix:
    """[I, 0; block, I]."""
    m, n = block.shape
    return np.block([[np.eye(n), np.zeros((n, m))], [block, np.eye(m)]])


def _norm(A: Matrix) -> float:
    return float(np.linalg.norm(A, 2))


def _smallest_eigenvalue(A: Matrix) -> float:
    return float(np.linalg.eigvalsh(0.5 * (A + A.T))[0])
