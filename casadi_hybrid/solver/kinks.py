"""Kinks next to the point of a stalled solve: first derivatives that jump."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.problem.evaluator import Evaluator
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import EvaluationError
from casadi_hybrid.utils.inputs import Vector

Index = NDArray[np.intp]
_NEAR, _NEARER = 1e-6, 1e-8  # distances, relative to max(1, |x|)
_JUMP = 1e-3  # least jump, relative to the largest derivative of the same function


def kinks(problem: Problem, x: Vector, p: Vector) -> tuple[str, ...]:
    """Return a sentence for the function with the largest jump of a derivative across x.

    A smooth derivative changes by a hundredth of the amount on a hundredth of the distance. A jump
    stays as large. Both are taken along one fixed direction in which every variable moves.
    """
    weights = 1.0 + np.modf(0.7548776662466927 * np.arange(1, x.size + 1))[0]
    direction = weights * np.maximum(1.0, np.abs(x))
    evaluator, jumps = Evaluator(problem, p), []
    try:
        for distance in (_NEAR, _NEARER):
            sides = [_derivatives(evaluator, x + s * distance * direction) for s in (-1, 1)]
            jumps.append(np.abs(sides[1][0] - sides[0][0]))
    except EvaluationError:
        return ()
    (before, rows, columns), (after, *_) = sides
    size = np.zeros(1 + problem.m)
    np.maximum.at(size, rows, np.maximum(np.abs(before), np.abs(after)))
    near, nearer = jumps
    jump = np.where((nearer >= 0.5 * near) & (nearer > _JUMP * size[rows]), nearer, 0.0)
    k = int(np.argmax(jump))
    if not jump[k] > 0.0:
        return ()
    name = ("the objective", *problem.functions.constraint_names)[rows[k]]
    return (
        f"{name} has a kink at this point: its derivative by "
        f"{problem.functions.variable_names[columns[k]]} jumps from {before[k]:.3g} to "
        f"{after[k]:.3g}. Smooth it (fmax, fabs, norm_2 at 0, the knots of an interpolation), or "
        "state its pieces as constraints of a variable",
    )


def _derivatives(evaluator: Evaluator, x: Vector) -> tuple[Vector, Index, Index]:
    """Nonzeros of (∇fᵀ; J_g) with their rows and columns."""
    _, gradient, _, J = evaluator.first(x)
    J = J.tocoo()
    rows = np.append(np.zeros(gradient.size, dtype=int), J.row + 1)
    return np.append(gradient, J.data), rows, np.append(np.arange(gradient.size), J.col)
