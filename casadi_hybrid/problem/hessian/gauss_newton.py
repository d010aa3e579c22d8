r"""Gauss–Newton Hessian of an objective that is a sum of squares.

For f(x, p) = Σ_i w_i(p) F_i(x, p)² + q(x, p), with q at most quadratic in x, it is

    Σ_i 2w_i ∇F_i∇F_iᵀ + ∇²q,

the exact Hessian without the curvature of the residuals F_i and of the constraints. Only first
derivatives of F are needed. The squares are found in the scalar graph of f. Calls of functions
without scalar form (a ``ca.Callback``, an integrator) appear there as symbols v.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.utils.errors import InputError

_POWERS = (ca.OP_POW, ca.OP_CONSTPOW)
# Relative distance of 2f/‖F‖² from 1 or 2 that is rounding; number and seed of its points.
_AGREES = 1e-8
_POINTS, _SEED = 12, 5
_REMEDY = (
    "give residuals, a Function (x, p) → F with f = ½‖F‖² or ‖F‖², or hess_lag, or use "
    "hessian_approximation = 'limited-memory'"
)


def gauss_newton(f: Any, x: Any, p: Any, residuals: Any = None) -> Any:
    """Return the Gauss–Newton Hessian; without ``residuals`` the squares are read from f."""
    if residuals is not None:
        F = ca.densify(ca.vec(residuals))
        J = ca.jacobian(F, x)
        # ∇²(½‖F‖²) ≈ JᵀJ, twice that for ‖F‖².
        return _factor(f, F, x, p) * (J.T @ J)
    squares, weights, rest = _read(f, x, p)
    J = ca.jacobian(squares, x)
    # Σ 2w ∇F∇Fᵀ: F of a term wF², without its curvature 2wF∇²F.
    H = J.T @ (ca.diag(2 * weights) @ J)
    return H if rest is None else H + rest


def _factor(f: Any, F: Any, x: Any, p: Any) -> float:
    """Factor 1 for f = ½‖F‖², 2 for f = ‖F‖², tested at a few random points."""
    values = ca.Function("values", [x, p], [f, ca.sumsqr(F)])
    draws = np.random.default_rng(_SEED)
    ratios = []
    for _ in range(_POINTS):
        # Positive entries: roots and logarithms are defined there.
        point = draws.uniform(0.1, 1.0, x.numel()), draws.uniform(0.1, 1.0, p.numel())
        try:
            objective, square = (float(v) for v in values(*point))
        except RuntimeError:  # a callback undefined at this point
            continue
        if np.isfinite(objective) and np.isfinite(square) and square > 0.0:
            ratios.append(2.0 * objective / square)
    for factor in (1.0, 2.0):
        if ratios and np.allclose(ratios, factor, rtol=_AGREES, atol=0.0):
            return factor
    reason = f"2f/‖F‖² is {ratios[0]:.6g} at one point" if ratios else "neither is defined"
    raise InputError(
        f"residuals do not belong to f, which must be ½‖F‖² or ‖F‖²: {reason}; add the missing "
        "terms to F, each with the root of its weight"
    )


def _read(f: Any, x: Any, p: Any) -> tuple[Any, Any, Any]:
    """F and w as columns, and ∇²q or None, as expressions of the type of x."""
    if isinstance(f, ca.SX):
        return _split(f, x, x.numel())
    f, v, definitions = _without_calls(f, x, p)
    try:
        scalar = ca.Function("f", [x, v, p], [f]).expand()
    except RuntimeError as error:
        raise InputError(
            f"no sum of squares is seen in f, which has an operation without scalar form; {_REMEDY}"
        ) from error
    s = [ca.SX.sym("x", x.numel()), ca.SX.sym("v", v.numel()), ca.SX.sym("p", p.numel())]
    z = ca.vertcat(s[0], s[1])
    squares, weights, rest = _split(scalar.call(s, True, False)[0], z, x.numel())
    rest = ca.SX(x.numel(), x.numel()) if rest is None else rest
    # In SX the calls are symbols v. Called in MX with their values, F has derivatives by x again.
    back = ca.Function("squares", s, [squares, weights, rest])
    squares, weights, rest = back.call([x, definitions, p], True, False)
    return squares, weights, rest


def _without_calls(f: Any, x: Any, p: Any) -> tuple[Any, Any, Any]:
    """f, with a column v of symbols for the calls without scalar form, and the values of v."""
    try:
        ca.Function("f", [x, p], [f]).expand()
    except RuntimeError:
        lifted, symbols, definitions = ca.extract([f], {"lift_shared": False, "lift_calls": True})
        if symbols:
            # Each definition may contain the symbols before it.
            definitions, _ = ca.substitute_inplace(symbols, definitions, [])
            values = ca.vertcat(*(ca.vec(definition) for definition in definitions))
            v = ca.MX.sym("v", values.numel())
            ends = np.cumsum([0, *(symbol.numel() for symbol in symbols)]).tolist()
            pieces = zip(ca.vertsplit(v, ends), symbols, strict=True)
            parts = [ca.reshape(piece, symbol.shape) for piece, symbol in pieces]
            return ca.substitute(lifted, symbols, parts)[0], v, values
    return f, ca.MX.sym("v", 0), ca.MX(0, 1)


def _split(f: Any, z: Any, n: int) -> tuple[Any, Any, Any]:
    """F, w and ∇²q of f as a function of z = (x, v), x of size n; ∇²q is None if q is zero."""
    squares, weights, rest = [], [], []
    stack: list[tuple[Any, Any]] = [(f, ca.SX(1))]
    while stack:
        term, weight = stack.pop()
        if term.is_constant() or not ca.depends_on(term, z):
            continue
        parts = _parts(term, weight, z)
        if parts is not None:
            stack.extend(parts)
            continue
        root = _root(term)
        # A negative multiple of a square is no residual: it has to be quadratic.
        if root is None or (weight.is_constant() and float(weight) < 0.0):
            rest.append(weight * term)
        else:
            squares.append(root)
            weights.append(weight)
    if not squares:
        raise InputError(f"no square is seen in f; {_REMEDY}")
    return ca.vertcat(*squares), ca.vertcat(*weights), _quadratic(rest, z, n)


def _parts(term: Any, weight: Any, z: Any) -> list[tuple[Any, Any]] | None:
    """Weighted terms whose sum is the term; None if it is neither a sum nor a multiple."""
    op = term.op()
    if op == ca.OP_ADD:
        return [(term.dep(0), weight), (term.dep(1), weight)]
    if op == ca.OP_SUB:
        return [(term.dep(0), weight), (term.dep(1), -weight)]
    if op == ca.OP_NEG:
        return [(term.dep(0), -weight)]
    if op == ca.OP_TWICE:
        return [(term.dep(0), 2 * weight)]
    if op == ca.OP_MUL:
        for factor, other in ((0, 1), (1, 0)):
            if not ca.depends_on(term.dep(factor), z):
                return [(term.dep(other), weight * term.dep(factor))]
    if op == ca.OP_DIV and not ca.depends_on(term.dep(1), z):
        return [(term.dep(0), weight / term.dep(1))]
    return None


def _root(term: Any) -> Any:
    """Root of a term that is a square; None for any other term."""
    op = term.op()
    if op == ca.OP_SQ:
        return term.dep(0)
    if op in _POWERS and term.dep(1).is_constant():
        # F^2k is the square of F^k.
        power = float(term.dep(1))
        if power > 0.0 and power % 2.0 == 0.0:
            return term.dep(0) ** (power / 2.0)
    return None


def _quadratic(terms: list[Any], z: Any, n: int) -> Any:
    """Hessian in x of terms that are at most quadratic; None for no terms."""
    if not terms:
        return None
    for term in terms:
        H = ca.hessian(term, z)[0]
        # ∇²q must be constant, and free of calls v, whose curvature it would ignore.
        if ca.depends_on(H, z) or (z.numel() > n and ca.depends_on(term, z[n:])):
            text = str(term)
            text = text if len(text) <= 80 else f"{text[:77]}..."
            raise InputError(
                f"f is no sum of squares: of its terms {text} is neither a square nor at most "
                f"quadratic in x; {_REMEDY}"
            )
    return ca.hessian(ca.sum1(ca.vertcat(*terms)), z)[0][:n, :n]
