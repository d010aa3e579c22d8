r"""One scalar mode of the local dynamics, the margin formula, and the stiffness example.

Zhao, "Matrix-Valued Optimism is Matrix-Valued Augmentation", appendices "Local Spectral Margin"
and "Stiffness Example: Scalar versus Matrix-Valued Augmentation". With A_M = a and B = b,
J_AL = I + E where tr E = −p, det E = q, q = η_xη_d b² and p = η_x a + q. Everything here follows
from the quadratic λ² + pλ + q = 0 of the eigenvalues of E, solved without cancellation.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from casadi_hybrid.basics.inputs import positive
from casadi_hybrid.claims.record import DIFFERENT, EQUAL, Claim

Array = NDArray[np.float64]

# The example of the paper: min −½‖x‖² s.t. diag(1000, 1)x = 0, and what it prints.
STIFF_H = -1.0
STIFF_B = np.array([1000.0, 1.0])
STIFF_C = np.array([8.96e-6, 8.96])
PRINTED_GAPS = (1e-6, 2e-3)
PRINTED_SCALAR_CURVATURE = (999999.0, 0.0)
PRINTED_WEIGHT, PRINTED_CURVATURE = 8.96, 7.96


def mode_gap(a: ArrayLike, b: ArrayLike, eta_x: ArrayLike, eta_d: ArrayLike) -> Array:
    """1 − ρ(J_AL) of the mode A_M = a, B = b; the arguments broadcast.

    Accurate to rounding also where the gap is tiny, unlike 1 − max|eigvals|. For b ≠ 0 it is
    positive exactly for η_x a > 0, η_xη_d > 0 and η_x a + ½η_xη_d b² < 2.
    """
    primal = np.multiply(eta_x, a)
    q = np.multiply(eta_x, eta_d) * np.square(b)
    p = primal + q
    discriminant = p * p - 4 * q
    root = np.sqrt(np.maximum(discriminant, 0.0))
    fast = -0.5 * (p + np.where(p < 0, -root, root))
    slow = np.divide(q, fast, out=np.zeros_like(fast), where=fast != 0)
    real = np.minimum(1 - np.abs(1 + fast), np.where(slow > -1, -slow, 2 + slow))
    # A complex pair has |λ|² = det J_AL = 1 − η_x a.
    pair = primal / (1 + np.sqrt(np.maximum(1 - primal, 0.0)))
    return np.asarray(np.where(discriminant < 0, pair, real))


def margin_rate(a: ArrayLike, b: ArrayLike, r: ArrayLike) -> Array:
    """α_M(r) = −max Re spec [−a, −b; rb, 0] of one mode, for a > 0 and r = η_d/η_x > 0."""
    a, s = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.multiply(r, np.square(b)))
    root = np.sqrt(np.maximum(a * a - 4 * s, 0.0))
    return np.asarray(np.where(a * a > 4 * s, 2 * s / (a + root), 0.5 * a))


def margin_formula(a: ArrayLike, b: ArrayLike, eta_x: ArrayLike, eta_d: ArrayLike) -> Array:
    """The paper's min{½a η_x, (b²/a) η_d}."""
    dual = np.multiply(np.square(b) / np.asarray(a), eta_d)
    return np.asarray(np.minimum(0.5 * np.multiply(a, eta_x), dual))


def margin_bounds(a: float = 1.0, b: float = 1.0, *, tolerance: float = 1e-3) -> Claim:
    """The margin formula is a lower bound of the gap, never less than half, exact at both ends.

    For small steps gap/formula lies in [1, 2]. It tends to 1 for r → 0, is 1 for r ≥ a²/(2b²) and
    2 at r = a²/(4b²), where the two real eigenvalues meet. Deviations of gap/formula at
    η_x a = 1e-9 over r b²/a² from 1e-5 to 1e5: below, under 1; above, over 2; ends, from 1 at the
    two ends.
    """
    s = np.logspace(-5, 5, 401)
    ratio = _gap_over_formula(a, b, s)
    ends = float(np.abs(ratio[[0, -1]] - 1).max())
    below, above = max(0.0, 1 - float(ratio.min())), max(0.0, float(ratio.max()) - 2)
    measured = (("below", below), ("above", above), ("ends", ends))
    return Claim("Margin formula: gap/formula in [1, 2]", f"a={a:g} b={b:g}", measured, tolerance)


def margin_equality(a: float = 1.0, b: float = 1.0) -> Claim:
    """Counter-example: the formula is not the gap where the eigenvalues meet, r = a²/(4b²).

    Deviation: |gap/formula − 1| at η_x a = 1e-9.
    """
    off = float(np.abs(_gap_over_formula(a, b, np.array([0.25])) - 1)[0])
    case = f"a={a:g} b={b:g} r=a²/4b²"
    return Claim("Margin formula as an equality", case, (("ratio", off),), DIFFERENT, True)


def margin_expansion(a: float = 1.0, b: float = 1.0, *, tolerance: float = 0.05) -> Claim:
    """ρ = 1 − η_x α_M(r) + O(η_x²) where the dominant eigenvalue of S_M(r) is simple.

    Deviations: the order of |gap − η_x α_M| from 2, measured between η_x a = 1e-3 and 5e-4, for
    r b²/a² = 0.1 (real eigenvalues) and 1 (a complex pair).
    """
    measured = (("real", abs(_order(a, b, 0.1) - 2)), ("complex", abs(_order(a, b, 1.0) - 2)))
    return Claim("ρ = 1 − η_x α_M + O(η_x²)", f"a={a:g} b={b:g}", measured, tolerance)


def margin_double_root(a: float = 1.0, b: float = 1.0) -> Claim:
    """Counter-example: at the double root r = a²/(4b²) the error is of order 3/2, not 2.

    The bound is a quarter: half of the loss of order.
    """
    measured = (("order", 2 - _order(a, b, 0.25)),)
    case = f"a={a:g} b={b:g} r=a²/4b²"
    return Claim("ρ = 1 − η_x α_M + O(η_x²), double root", case, measured, 0.25, True)


def _gap_over_formula(a: float, b: float, s: Array) -> Array:
    positive(a, "a")
    positive(b, "b")
    eta_x = 1e-9 / a
    eta_d = s * a * a / (b * b) * eta_x
    return np.asarray(mode_gap(a, b, eta_x, eta_d) / margin_formula(a, b, eta_x, eta_d))


def _order(a: float, b: float, s: float) -> float:
    positive(a, "a")
    positive(b, "b")
    eta_x = np.array([1e-3, 5e-4]) / a
    r = s * a * a / (b * b)
    error = np.abs(mode_gap(a, b, eta_x, r * eta_x) - eta_x * margin_rate(a, b, r))
    return float(np.log2(error[0] / error[1]))


@dataclass(frozen=True, slots=True)
class Stiffness:
    """The best gaps of the stiffness example over a grid, and where they were found."""

    scalar_gap: float
    scalar_c: float
    scalar_eta_x: float
    scalar_eta_d: float
    matrix_gap: float
    matrix_eta_x: float
    matrix_eta_d: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"best gap: scalar {self.scalar_gap:.3g} (c={self.scalar_c:.3g}, "
            f"eta_x={self.scalar_eta_x:.3g}, eta_d={self.scalar_eta_d:.3g}), matrix "
            f"{self.matrix_gap:.3g} (eta_x={self.matrix_eta_x:.3g}, eta_d={self.matrix_eta_d:.3g})"
        )


def stiffness_example(steps: Array | None = None, strengths: Array | None = None) -> Stiffness:
    """Scalar against matrix-valued augmentation on the paper's stiff example, over step grids.

    No finer grid does much better: ρ² ≥ |det J_AL| limits the gap of the weak mode to about
    ½a η_x, and the strong mode is stable only for η_x a + ½η_xη_d b² < 2. For C = cI that is a
    gap of at most (c − 1)/(10⁶c − 1) < 1e-6, whatever the steps; for the matrix, 2.0e-3.

    Args:
        steps: values of both η_x and η_d; logspace(−8, 0, 81) by default.
        strengths: values of c; logspace(0, 3, 31) and 1, …, 10 by default.
    """
    eta = np.logspace(-8, 0, 81) if steps is None else steps
    if strengths is None:
        strengths = np.unique(np.concatenate([np.logspace(0, 3, 31), np.arange(1.0, 11.0)]))
    eta_x, eta_d = eta[:, None], eta[None, :]
    scalar = _two_modes(strengths[:, None, None], strengths[:, None, None], eta_x, eta_d)
    k, i, j = np.unravel_index(np.argmax(scalar), scalar.shape)
    matrix = _two_modes(STIFF_C[0], STIFF_C[1], eta_x, eta_d)
    u, v = np.unravel_index(np.argmax(matrix), matrix.shape)
    numbers = (scalar[k, i, j], strengths[k], eta[i], eta[j], matrix[u, v], eta[u], eta[v])
    return Stiffness(*(float(number) for number in numbers))


def stiffness(example: Stiffness | None = None, *, tolerance: float = 0.05) -> Claim:
    """The gaps are the printed 1e-6 (scalar) and 2e-3 (matrix). Deviations: relative."""
    found = stiffness_example() if example is None else example
    gaps = (found.scalar_gap, found.matrix_gap)
    measured = tuple(
        (what, abs(gap / printed - 1))
        for what, gap, printed in zip(("scalar", "matrix"), gaps, PRINTED_GAPS, strict=True)
    )
    case = f"gaps {gaps[0]:.2e}, {gaps[1]:.2e}"
    return Claim("Stiffness: gaps 1e-6 and 2e-3", case, measured, tolerance)


def stiffness_curvature(*, tolerance: float = EQUAL) -> Claim:
    """The thresholds printed for the stiff example: c ≥ 1, diag(999999, 0), 8.96 I and 7.96 I.

    Deviations: threshold, |c − 1| for the least c with −I + cBᵀB ⪰ 0; scalar, −I + BᵀB from
    diag(999999, 0), relative; weight, BᵀC_mat B from 8.96 I; matrix, −I + BᵀC_mat B from 7.96 I;
    gap, the best 1 − ρ(J_AL) at c = 1, which no steps make positive.
    """
    B, C, H = np.diag(STIFF_B), np.diag(STIFF_C), STIFF_H * np.eye(2)
    low, high = 0.0, 1e3
    while high - low > 1e-14 * high:
        c = 0.5 * (low + high)
        stable = np.linalg.eigvalsh(H + c * B.T @ B)[0] >= 0
        low, high = (low, c) if stable else (c, high)
    strong, weak = PRINTED_SCALAR_CURVATURE
    eta = np.logspace(-8, 0, 81)
    at_threshold = _two_modes(1.0, 1.0, eta[:, None], eta[None, :])
    measured = (
        ("threshold", abs(high - 1.0)),
        ("scalar", float(np.abs(H + B.T @ B - np.diag([strong, weak])).max()) / strong),
        ("weight", float(np.abs(B.T @ C @ B - PRINTED_WEIGHT * np.eye(2)).max())),
        ("matrix", float(np.abs(H + B.T @ C @ B - PRINTED_CURVATURE * np.eye(2)).max())),
        ("gap", max(0.0, float(at_threshold.max()))),
    )
    return Claim("Stiffness: c ≥ 1, 999999, 8.96, 7.96", "as printed", measured, tolerance)


def unstable_penalty(strength: float = 0.999) -> Claim:
    """Counter-example: with c < 1 every pair of steps is unstable. Deviation: ρ(J_AL) − 1, least.

    Over η_x, η_d from 1e-8 to 1, on the weak mode; in units of η_x.
    """
    eta = np.logspace(-8, 0, 81)
    eta_x = eta[:, None]
    gap = mode_gap(STIFF_H + STIFF_B[1] ** 2 * strength, STIFF_B[1], eta_x, eta[None, :])
    measured = (("growth", float((-gap / eta_x).min())),)
    return Claim("Stiffness: a penalty c < 1", f"c={strength:g}", measured, DIFFERENT, True)


def _two_modes(strong: ArrayLike, weak: ArrayLike, eta_x: Array, eta_d: Array) -> Array:
    gaps = [
        mode_gap(STIFF_H + b * b * np.asarray(c), b, eta_x, eta_d)
        for c, b in zip((strong, weak), STIFF_B, strict=True)
    ]
    return np.minimum(*gaps)
