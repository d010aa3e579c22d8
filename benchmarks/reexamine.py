"""Whether the status of a failed run is right, asked of SciPy and IPOPT at the point it ended.

Nothing is taken from the run but x, the multipliers and the words: f, ∇f, h, J_h and H come from
the problem's generated functions through CasADi, multipliers from NumPy's least squares, designs
from the paper's formulas in NumPy.

What confirms the *point*:

* INFEASIBLE_STATIONARY: ‖h‖_∞ above the tolerance, ‖J_hᵀh‖ ≤ 1e-6 ‖J_h‖‖h‖ (or ≤ 1e-4 ‖h‖ where
  J_h itself vanishes), and least squares started there lowers ‖h‖₂² by less than a thousandth;
* FEASIBLE_NOT_STATIONARY: ‖h‖_∞ within tolerance (where a run ended UNBOUNDED, far out, within
  tolerance·‖x‖_∞), and no multipliers make ‖∇f + J_hᵀλ‖_∞ so;
* FRITZ_JOHN_POINT: ‖h‖_∞ within tolerance, the run's multipliers leave ∇f + J_hᵀλ ≠ 0, and
  J_hᵀλ/‖λ‖ ≈ 0 for some λ;
* STATIONARY_NOT_FEASIBLE: h ≠ 0, and the run's multipliers make ∇f + J_hᵀλ vanish;
* NOT_CONVERGED: h ≠ 0, the run's multipliers leave ∇f + J_hᵀλ ≠ 0, and the point is not one that
  would be INFEASIBLE_STATIONARY;
* UNDEFINED: a function is NaN or Inf there.

What confirms the *stop*:

* LOCALLY_INFEASIBLE: least squares started there lowers ‖h‖₂² by less than a thousandth;
* UNBOUNDED: farther out on the ray from the start f is lower at points restored to h = 0, or IPOPT
  says that its iterates diverge;
* DIVERGED: the last iterate is beyond the divergence limit, or not finite;
* NO_MULTIPLIERS: the same of the multipliers, and J_hᵀλ/‖λ‖ ≈ 0 for some λ;
* DESIGN_INFEASIBLE: the ‖M‖, the curvature on ker J_h or the singular A_M of the message,
  computed anew at the last iterate;
* EVALUATION_ERROR: a function is NaN or Inf at the start, where the run ended;
* ITERATION_LIMIT, STALLED: the returned point is no KKT point with the run's own multipliers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space, orth
from scipy.optimize import least_squares

from casadi_hybrid import PointStatus, Problem, Progress, Result, StopReason
from casadi_hybrid.paper.iterations.stopping import IterationProgress
from casadi_hybrid.verify import run_ipopt

Array = NDArray[np.float64]
LIMIT = 1e10
norm = np.linalg.norm


@dataclass(frozen=True, eq=False)
class Facts:
    """What was found at a point: by the functions, by least squares, by IPOPT.

    Attributes:
        largest, norm2: ‖h‖_∞ and ‖h‖₂².
        slope: ‖J_hᵀh‖ / (‖J_h‖_F ‖h‖), or ‖J_hᵀh‖ / (100 ‖h‖) where that is less.
        given, fitted: ‖∇f + J_hᵀλ‖_∞ with the run's and with fitted multipliers.
        weakest: least ‖J_hᵀλ‖/‖λ‖.
        squares: least ‖h‖₂² that SciPy reached from there.
        ipopt: IPOPT's word, and whether what it found is a KKT point.
    """

    largest: float
    norm2: float
    slope: float
    given: float
    fitted: float
    weakest: float
    squares: float
    ipopt: str

    @property
    def still(self) -> bool:
        """Whether ‖h‖ is stationary and least squares found nothing to gain."""
        return self.slope <= 1e-6 and self.stays

    @property
    def stays(self) -> bool:
        """Whether least squares found nothing to gain."""
        return self.squares >= self.norm2 * (1 - 1e-3)


def values(problem: Problem, x: Any) -> tuple[float, Array, Array, Array]:
    """f, ∇f, h and J_h at x."""
    f, gradient, h, B = problem.functions.first(x, [])
    return float(f), gradient.full().ravel(), h.full().ravel(), B.full()


def facts(problem: Problem, result: Result) -> Facts:
    """Recompute everything at the returned point, and start SciPy and IPOPT there."""
    with np.errstate(all="ignore"):
        f, gradient, h, B = values(problem, result.x)
        if not all(np.isfinite(part).all() for part in (f, gradient, h, B)):
            return Facts(*[np.nan] * 7, "")
        fit = np.linalg.lstsq(B.T, -gradient, rcond=1e-12)[0]
        squares = _least_squares(problem, result.x)
        ipopt = run_ipopt(problem, np.array(result.x), np.zeros(0))
    scale = max(float(norm(B)), 100.0) * float(norm(h))
    solved = "KKT" if ipopt.merit <= 1e-6 else "no KKT"
    return Facts(
        float(np.abs(h).max()),
        float(h @ h),
        float(norm(B.T @ h) / scale) if scale else 0.0,
        float(np.abs(gradient + B.T @ result.lam_g).max()),
        float(np.abs(gradient + B.T @ fit).max()),
        float(np.linalg.svd(B.T, compute_uv=False)[-1]) if B.shape[0] <= B.shape[1] else 0.0,
        float(2 * squares.cost),
        f"{ipopt.form}: {ipopt.status} ({solved})",
    )


def confirmed(problem: Problem, result: Result, last: Progress | None, found: Facts) -> bool:
    """Whether both words of the status are right."""
    return point_is_right(result, found) and stop_is_right(problem, result, last, found)


def point_is_right(result: Result, found: Facts) -> bool:
    """Check what the point is said to be."""
    tol = result.tolerances
    far = result.stop is StopReason.UNBOUNDED
    size = max(1.0, float(np.abs(result.x).max())) if far else 1.0
    feasible = found.largest <= tol.feasibility * size
    match result.point:
        case PointStatus.INFEASIBLE_STATIONARY:
            return not feasible and found.still
        case PointStatus.FEASIBLE_NOT_STATIONARY:
            return feasible and found.fitted > tol.stationarity
        case PointStatus.FRITZ_JOHN_POINT:
            return feasible and found.given > tol.stationarity and found.weakest <= 1e-5
        case PointStatus.STATIONARY_NOT_FEASIBLE:
            return not feasible and found.given <= tol.stationarity
        case PointStatus.NOT_CONVERGED:
            return not feasible and found.given > tol.stationarity and not found.still
        case PointStatus.UNDEFINED:
            return bool(np.isnan(found.largest))
        case _:
            return False


def _dual(last: Progress) -> np.ndarray:
    """μ of an iteration, the multipliers of the default method."""
    return last.state.mu if isinstance(last, IterationProgress) else last.multipliers


def stop_is_right(problem: Problem, result: Result, last: Progress | None, found: Facts) -> bool:
    """Check why the run is said to have ended."""
    if last is None:
        return result.stop is StopReason.EVALUATION_ERROR and bool(np.isnan(found.largest))
    match result.stop:
        case StopReason.LOCALLY_INFEASIBLE:
            return found.stays
        case StopReason.UNBOUNDED:
            return "Diverging" in found.ipopt or falls_along_the_ray(problem, result)
        case StopReason.NO_MULTIPLIERS:
            return found.weakest <= 1e-5 and not float(np.abs(_dual(last)).max()) <= LIMIT
        case StopReason.DIVERGED:
            end = np.concatenate([last.x, _dual(last)])
            return not float(np.abs(end).max()) <= LIMIT
        case StopReason.DESIGN_INFEASIBLE:
            return design_is_infeasible(problem, result, last)
        case StopReason.ITERATION_LIMIT | StopReason.STALLED:
            tol = result.tolerances
            return max(found.largest / tol.feasibility, found.given / tol.stationarity) > 1
        case _:
            return False


def falls_along_the_ray(problem: Problem, result: Result) -> bool:
    """Whether f goes on falling over points on {h = 0} beyond x, seen from the start."""
    direction = result.x - result.x0
    heights = [values(problem, result.x)[0]]
    for factor in (1.0, 3.0, 10.0):
        point = _least_squares(problem, result.x + factor * direction).x
        f, _, h, _ = values(problem, point)
        if np.abs(h).max() > 1e-6 * (1 + np.abs(point).max()):
            return False
        heights.append(f)
    return all(after < before for before, after in pairwise(heights))


def design_is_infeasible(problem: Problem, result: Result, last: Progress) -> bool:
    """Compute the reason of the message anew from H and J_h at the last iterate."""
    parts = problem.functions.second(last.x, last.multipliers, [])
    B, H = parts[3].full(), parts[4].full()
    Z = null_space(B, rcond=1e-10)
    if stated := re.search(r"has curvature (\S+) along", result.detail):
        least = float(np.linalg.eigvalsh(Z.T @ H @ Z)[0])
        return least <= 0 and bool(np.isclose(least, float(stated[1]), rtol=1e-2))
    if stated := re.search(
        r"needs ‖M‖ = (\S+), above the norm budget M_max = (\S+);", result.detail
    ):
        whitened = result.method == "whitened"
        size = correction_norm(H, whiten(B) if whitened else B, 3.0 if whitened else 0.35)
        return size > float(stated[2]) and bool(np.isclose(size, float(stated[1]), rtol=1e-2))
    if "singular to working precision" in result.detail:
        # The eigenvalues themselves are rounding; that the numbers are that large is not.
        return bool(max(norm(H, 2), norm(last.x)) > 1e6)
    return False


def whiten(B: Array) -> Array:
    """(BBᵀ)^{+½}B: the nearest partial isometry."""
    U, sigma, Vt = np.linalg.svd(B, full_matrices=False)
    kept = sigma > 1e-10 * sigma[0]
    return np.asarray(U[:, kept] @ Vt[kept])


def correction_norm(H: Array, B: Array, delta: float) -> float:
    """‖−B⁺ᵀYSYᵀB⁺ + δ/λ_min(BᵀB) I‖₂: the paper's correction with full cancellation."""
    Y, Z = orth(B.T, rcond=1e-10), null_space(B, rcond=1e-10)
    S = Y.T @ H @ Y
    if Z.shape[1]:
        Hzz, Hyz = Z.T @ H @ Z, Y.T @ H @ Z
        reachable = min(delta, 0.5 * float(np.linalg.eigvalsh(Hzz)[0]))
        S = S - Hyz @ np.linalg.solve(Hzz - reachable * np.eye(len(Hzz)), Hyz.T)
    lift = np.linalg.pinv(B, rcond=1e-10).T @ Y
    alpha = delta / float(np.linalg.eigvalsh(Y.T @ B.T @ B @ Y)[0])
    return float(norm(-lift @ S @ lift.T + alpha * np.eye(len(B)), 2))


def _least_squares(problem: Problem, start: Any) -> Any:
    def h(x: Array) -> Array:
        return np.nan_to_num(problem.functions.residual(x, []).full().ravel(), nan=1e150)

    def jacobian(x: Array) -> Array:
        return np.nan_to_num(values(problem, x)[3])

    tight = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15, "x_scale": "jac"}
    return least_squares(h, np.array(start), jacobian, method="trf", max_nfev=1000, **tight)
