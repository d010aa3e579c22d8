r"""Local spectra: the Jacobian J_AL of the iteration, one mode of it, and the stiffness example.

Zhao, "Matrix-Valued Optimism is Matrix-Valued Augmentation", appendices "Local Spectral Margin"
and "Stiffness Example: Scalar versus Matrix-Valued Augmentation". With A_M = H + BᵀMB the printed
Jacobian is

.. math::

    J_{AL} = \begin{bmatrix} I - \eta_x A_M & -\eta_x B^T \\
        \eta_d B (I - \eta_x A_M) & I - \eta_x \eta_d B B^T \end{bmatrix}.

**In which variables.** The law moves μ first and x second. Its linearization at a KKT point is the
printed matrix in the staggered variables (x_t, π_{t+1}), neither the one in (x_t, π_t), which is
[I − η_x A_M − η_xη_d BᵀB, −η_x Bᵀ; η_d B, I], nor, unless M = 0, the one in (x_t, ν_{t+1}) with
the effective dual. The three are similar, by π_{t+1} = π_t + η_d B x_t and
ν_{t+1} = π_{t+1} + M B x_t, so they share the gap 1 − ρ, and so does every split of M.

**One mode.** With A_M = a and B = b, J_AL = I + E, and λ² + pλ + q = 0 for E with q = η_xη_d b² and
p = η_x a + q is solved without cancellation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from casadi_hybrid.paper.claims.claim import Measured, Setup, claim, counterexample, follow
from casadi_hybrid.paper.iterations import Hybrid
from casadi_hybrid.paper.iterations.base import residuals_at
from casadi_hybrid.paper.rules import ConstantRule, LocalModel
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import Matrix, Vector, one_of, positive

Array = NDArray[np.float64]
VARIABLES = ("staggered", "aligned", "effective")
# Differences extrapolated once: truncation O(d⁴) = 1e-12, rounding 1e-16/d = 1e-13.
DIFFERENCE = 1e-3
DIFFERENCE_ERROR = 1e-9
KKT = 1e-9
# The example of the paper: min −½‖x‖² s.t. diag(1000, 1)x = 0.
STIFF_H, STIFF_B, STIFF_C = -1.0, np.array([1000.0, 1.0]), np.array([8.96e-6, 8.96])
STIFF_ETAS = np.logspace(-8, 0, 81)
STIFF_STRENGTHS = np.unique(np.concatenate([np.logspace(0, 3, 31), np.arange(1.0, 11.0)]))


def local_jacobian(H: Matrix, B: Matrix, M: Matrix, eta_x: float, eta_d: float) -> Matrix:
    """Return J_AL(η_x, η_d; M) as printed: (n+m)×(n+m), in the variables (x_t, π_{t+1})."""
    n, m = H.shape[0], B.shape[0]
    # x⁺ = E x − η_x Bᵀπ⁺, and the next π⁺ reads h at x⁺: hence E in the second row.
    E = np.eye(n) - eta_x * (H + B.T @ M @ B)
    return np.block([[E, -eta_x * B.T], [eta_d * B @ E, np.eye(m) - eta_x * eta_d * B @ B.T]])


def spectral_gap(J: Matrix) -> float:
    """Return 1 − ρ(J), positive for a contraction."""
    return 1.0 - float(np.abs(np.linalg.eigvals(J)).max())


def local_gap(H: Matrix, B: Matrix, M: Matrix, eta_x: float, eta_d: float) -> float:
    """Return 1 − ρ of J_AL on x-space × range(B), the multipliers that act on x.

    J_AL itself has the eigenvalue 1 for each of the m − rank(B) directions with Bᵀδ = 0.
    """
    # On the range of B only: a redundant row has the eigenvalue 1, which moves nothing.
    U = LocalModel(H, B).jacobian.U
    return spectral_gap(local_jacobian(H, U.T @ B, U.T @ M @ U, eta_x, eta_d))


def law_jacobian(setup: Setup, C: Matrix, Omega: Matrix, variables: str = "staggered") -> Matrix:
    """Return the law's Jacobian by differences of the loop around the setup's KKT point.

    The variables are ``"staggered"`` (x_t, π_{t+1}), ``"aligned"`` (x_t, π_t) or ``"effective"``
    (x_t, ν_{t+1}).

    Raises:
        InputError: for other variables, or steps that are not numbers.
    """
    one_of(variables, "variables", VARIABLES)
    eta_x, eta_d = _numbers(setup)
    n, point = setup.problem.n, np.concatenate([setup.x0, setup.dual])
    rule = ConstantRule(C, Omega, eta_x, eta_d)

    def step(z: Vector) -> Vector:
        x, dual = z[:n], z[n:]
        h = setup.oracle().residual(x)
        # The loop starts from (x_t, π_t); variables that look ahead need the next multiplier.
        if variables != "aligned":
            dual = dual - eta_d * h
        if variables == "effective":
            dual = dual - (C + Omega) @ h
        run = follow(replace(setup, x0=x, dual=dual, x_prev=None, iterations=2), Hybrid(rule))
        duals = run.effective_multipliers if variables == "effective" else run.multipliers
        return np.concatenate([run.x[1], duals[1 if variables == "aligned" else 2]])

    def slope(e: Vector, d: float) -> Vector:
        return (step(point + d * e) - step(point - d * e)) / (2 * d)

    # Richardson extrapolation of central differences.
    columns = [
        (4 * slope(e, DIFFERENCE / 2) - slope(e, DIFFERENCE)) / 3 for e in np.eye(point.size)
    ]
    return np.array(columns).T


@claim("J_AL is the law's Jacobian", DIFFERENCE_ERROR)
def jacobian_of_the_law(setup: Setup, C: Matrix, Omega: Matrix) -> Measured:
    """The printed J_AL is the linearization of ALG(C, Ω) in the variables (x_t, π_{t+1}).

    Deviations, largest entries: J; aligned and effective, in these variables by similarity.

    Raises:
        InputError: if (``x0``, ``dual``) is not a KKT point, or a step is not a number.
    """
    gap, forms = _similar_forms(setup, C + Omega)
    return f"n={setup.problem.n} m={setup.problem.m} gap={gap:.3f}", {
        "J" if name == "staggered" else name: _apart(law_jacobian(setup, C, Omega, name), form)
        for name, form in forms.items()
    }


@counterexample("J_AL in other variables")
def jacobian_in_other_variables(setup: Setup, C: Matrix, Omega: Matrix) -> Measured:
    """Counter-example: in (x_t, π_t) or (x_t, ν_{t+1}) the law's Jacobian is another matrix."""
    J = _similar_forms(setup, C + Omega)[1]["staggered"]
    return f"n={setup.problem.n} m={setup.problem.m}", {
        name: _apart(law_jacobian(setup, C, Omega, name), J) for name in VARIABLES[1:]
    }


def mode_gap(a: ArrayLike, b: ArrayLike, eta_x: ArrayLike, eta_d: ArrayLike) -> Array:
    """Return 1 − ρ(J_AL) of the mode A_M = a, B = b, accurate also if tiny; broadcasts.

    For b ≠ 0 it is positive exactly for η_x a > 0, η_xη_d > 0 and η_x a + ½η_xη_d b² < 2.
    """
    primal = np.multiply(eta_x, a)
    q = np.multiply(eta_x, eta_d) * np.square(b)
    p = primal + q
    discriminant = p * p - 4 * q
    root = np.sqrt(np.maximum(discriminant, 0.0))
    fast = -0.5 * (p + np.where(p < 0, -root, root))
    # The product of the roots is q: no cancellation in the slow one.
    slow = np.divide(q, fast, out=np.zeros_like(fast), where=fast != 0)
    real = np.minimum(1 - np.abs(1 + fast), np.where(slow > -1, -slow, 2 + slow))
    # A complex pair has |λ|² = det J_AL = 1 − η_x a.
    pair = primal / (1 + np.sqrt(np.maximum(1 - primal, 0.0)))
    return np.asarray(np.where(discriminant < 0, pair, real))


def margin_rate(a: ArrayLike, b: ArrayLike, r: ArrayLike) -> Array:
    """Return α_M(r) = −max Re spec [−a, −b; rb, 0] of a mode, for a > 0 and r = η_d/η_x > 0."""
    a, s = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.multiply(r, np.square(b)))
    # −λ = (a − √(a² − 4s))/2 = 2s/(a + √…), without cancellation.
    root = np.sqrt(np.maximum(a * a - 4 * s, 0.0))
    return np.asarray(np.where(a * a > 4 * s, 2 * s / (a + root), 0.5 * a))


def margin_formula(a: ArrayLike, b: ArrayLike, eta_x: ArrayLike, eta_d: ArrayLike) -> Array:
    """Return the paper's min{½a η_x, (b²/a) η_d}."""
    dual = np.multiply(np.square(b) / np.asarray(a), eta_d)
    return np.asarray(np.minimum(0.5 * np.multiply(a, eta_x), dual))


@claim("Margin formula: gap/formula in [1, 2]", 1e-3)
def margin_bounds(a: float = 1.0, b: float = 1.0) -> Measured:
    """For small steps gap/formula lies in [1, 2]: the formula is a lower bound, exact at both ends.

    The ratio tends to 1 for r → 0, is 1 for r ≥ a²/(2b²) and 2 at r = a²/(4b²), the double root.
    Deviations at η_x a = 1e-9 over r b²/a² from 1e-5 to 1e5: below 1; above 2; ends, from 1.
    """
    ratio = _gap_over_formula(a, b, np.logspace(-5, 5, 401))
    return f"a={a:g} b={b:g}", {
        "below": max(0.0, 1 - float(ratio.min())),
        "above": max(0.0, float(ratio.max()) - 2),
        "ends": _apart(ratio[[0, -1]], 1),
    }


@counterexample("Margin formula as an equality")
def margin_equality(a: float = 1.0, b: float = 1.0) -> Measured:
    """Counter-example: the formula is not the gap at the double root r = a²/(4b²)."""
    ratio = _gap_over_formula(a, b, np.array([0.25]))
    return f"a={a:g} b={b:g} r=a²/4b²", {"ratio": _apart(ratio, 1)}


@claim("ρ = 1 − η_x α_M + O(η_x²)", 0.05)
def margin_expansion(a: float = 1.0, b: float = 1.0) -> Measured:
    """ρ = 1 − η_x α_M(r) + O(η_x²) for a simple dominant eigenvalue of S_M(r).

    Deviations: the order of |gap − η_x α_M| from 2, for r b²/a² = 0.1 (real) and 1 (a pair).
    """
    orders = {"real": _order(a, b, 0.1), "complex": _order(a, b, 1.0)}
    return f"a={a:g} b={b:g}", {name: abs(order - 2) for name, order in orders.items()}


@counterexample("ρ = 1 − η_x α_M + O(η_x²), double root", bound=0.25)
def margin_double_root(a: float = 1.0, b: float = 1.0) -> Measured:
    """Counter-example: at the double root r = a²/(4b²) the error is of order 3/2, not 2."""
    return f"a={a:g} b={b:g} r=a²/4b²", {"order": 2 - _order(a, b, 0.25)}


class BestGap(NamedTuple):
    """The largest gap over a grid, with its c, η_x and η_d."""

    gap: float
    c: float
    eta_x: float
    eta_d: float


def stiffness_example(
    etas: Array = STIFF_ETAS, strengths: Array = STIFF_STRENGTHS
) -> tuple[BestGap, BestGap]:
    """Return the best gaps with C = cI and with the paper's matrix (c = 1) on its stiff example.

    ρ² ≥ |det J_AL| limits the gap of the weak mode to about ½a η_x, and the strong mode is stable
    only for η_x a + ½η_xη_d b² < 2. For any steps the gap is at most (c − 1)/(10⁶c − 1) < 1e-6 for
    C = cI, and 2.0e-3 for the matrix. ``etas``: values of η_x and η_d; ``strengths``: of c in cI.
    """

    def best(C: Array, c: Array) -> BestGap:
        strong, weak = (entry * c[:, None, None] for entry in C)
        # The example decouples: the gap is the lesser of its two modes.
        gaps = _two_modes(strong, weak, etas[:, None], etas[None, :])
        k, i, j = np.unravel_index(np.argmax(gaps), gaps.shape)
        return BestGap(*(float(value) for value in (gaps[k, i, j], c[k], etas[i], etas[j])))

    return best(np.ones(2), strengths), best(STIFF_C, np.ones(1))


@claim("Stiffness: gaps 1e-6 and 2e-3", 0.05)
def stiffness(etas: Array = STIFF_ETAS) -> Measured:
    """The gaps are the printed 1e-6 (scalar) and 2e-3 (matrix). Deviations: relative."""
    scalar, matrix = (best.gap for best in stiffness_example(etas))
    deviations = {"scalar": abs(scalar / 1e-6 - 1), "matrix": abs(matrix / 2e-3 - 1)}
    return f"gaps {scalar:.2e}, {matrix:.2e}", deviations


@claim("Stiffness: c ≥ 1, 999999, 8.96, 7.96")
def stiffness_curvature() -> Measured:
    """The thresholds printed for the stiff example: c ≥ 1, diag(999999, 0), 8.96 I and 7.96 I.

    Deviations: threshold, |c − 1| for the least c with −I + cBᵀB ⪰ 0; scalar, −I + BᵀB from
    diag(999999, 0), relative; weight, BᵀC_mat B from 8.96 I; matrix, −I + BᵀC_mat B from 7.96 I;
    gap, the positive part of the best 1 − ρ(J_AL) at c = 1.
    """
    B, C, H = np.diag(STIFF_B), np.diag(STIFF_C), STIFF_H * np.eye(2)
    least = brentq(lambda c: np.linalg.eigvalsh(H + c * B.T @ B)[0], 0.0, 1e3, xtol=1e-14)
    scalar, weight = np.diag([999999.0, 0.0]), B.T @ C @ B
    at_threshold = _two_modes(1.0, 1.0, STIFF_ETAS[:, None], STIFF_ETAS[None, :])
    return "as printed", {
        "threshold": abs(least - 1.0),
        "scalar": _apart(H + B.T @ B, scalar) / 999999.0,
        "weight": _apart(weight, 8.96 * np.eye(2)),
        "matrix": _apart(H + weight, 7.96 * np.eye(2)),
        "gap": max(0.0, float(at_threshold.max())),
    }


@counterexample("Stiffness: a penalty c < 1")
def unstable_penalty(strength: float = 0.999) -> Measured:
    """Counter-example: with c < 1 every pair of steps is unstable.

    Deviation: the least (ρ(J_AL) − 1)/η_x on the weak mode, over η_x, η_d from 1e-8 to 1.
    """
    eta_x, b = STIFF_ETAS[:, None], STIFF_B[1]
    gap = mode_gap(STIFF_H + b**2 * strength, b, eta_x, STIFF_ETAS[None, :])
    return f"c={strength:g}", {"growth": float((-gap / eta_x).min())}


def _numbers(setup: Setup) -> tuple[float, float]:
    """Return the steps; J_AL needs them to be numbers."""
    if not isinstance(setup.eta_x, float | int) or not isinstance(setup.eta_d, float | int):
        raise InputError("eta_x and eta_d must be numbers here; J_AL is printed for those")
    return float(setup.eta_x), float(setup.eta_d)


def _similar_forms(setup: Setup, M: Matrix) -> tuple[float, dict[str, Matrix]]:
    """Return the gap at the setup's KKT point, and J_AL in each choice of variables."""
    eta_x, eta_d = _numbers(setup)
    at = setup.oracle().second(setup.x0, setup.dual)
    assert at.hessian is not None
    residuals = residuals_at(at, setup.dual)
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
    """Return [I, 0; block, I]."""
    m, n = block.shape
    return np.block([[np.eye(n), np.zeros((n, m))], [block, np.eye(m)]])


def _apart(A: Matrix, B: Matrix | float) -> float:
    """Return the largest entry of a difference."""
    return float(np.abs(A - B).max())


def _gap_over_formula(a: float, b: float, s: Array) -> Array:
    eta_x = 1e-9 / positive(a, "a")
    eta_d = s * (a / positive(b, "b")) ** 2 * eta_x
    return np.asarray(mode_gap(a, b, eta_x, eta_d) / margin_formula(a, b, eta_x, eta_d))


def _order(a: float, b: float, s: float) -> float:
    """Return the order of |gap − η_x α_M(r)| at r = s a²/b²."""
    eta_x = np.array([1e-3, 5e-4]) / positive(a, "a")
    r = s * (a / positive(b, "b")) ** 2
    # Halving η_x divides an error of order p by 2ᵖ.
    error = np.abs(mode_gap(a, b, eta_x, r * eta_x) - eta_x * margin_rate(a, b, r))
    return float(np.log2(error[0] / error[1]))


def _two_modes(strong: ArrayLike, weak: ArrayLike, eta_x: Array, eta_d: Array) -> Array:
    gaps = [
        mode_gap(STIFF_H + b * b * np.asarray(c), b, eta_x, eta_d)
        for c, b in zip((strong, weak), STIFF_B, strict=True)
    ]
    return np.minimum(*gaps)
