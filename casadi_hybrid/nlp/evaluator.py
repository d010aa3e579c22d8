"""A program's functions at fixed parameters, as arrays, counted."""

from __future__ import annotations

from typing import Any

import numpy as np

from casadi_hybrid.functions import Fused
from casadi_hybrid.inputs import Vector
from casadi_hybrid.nlp.program import Program

Operator = Any  # numpy.ndarray or scipy.sparse.csc_array: both have @, .T and .data


class Evaluator:
    """The program's functions at fixed parameters, counted. One per solve and thread."""

    def __init__(self, program: Program, p: Vector, *, dense: bool) -> None:
        functions = program.functions
        self.program = program
        self.p = p
        self.dense = dense
        self._first = Fused(functions.first, functions)
        self._second = Fused(functions.second, functions)
        self.counts = {"first": 0, "second": 0, "undefined": 0}

    def first(self, x: Vector) -> tuple[float, Vector, Vector, Operator]:
        """Return f, ∇f, g, J_g."""
        self.counts["first"] += 1
        fused = self._first
        data = fused(x, self.p)
        J = fused.dense(data, 3) if self.dense else fused.sparse(data, 3)
        return float(data[0]), fused.vector(data, 1), fused.vector(data, 2), J

    def hessian(self, x: Vector, multipliers: Vector) -> Operator:
        """Return ∇²ₓₓ(f + λᵀg)."""
        self.counts["second"] += 1
        fused = self._second
        data = fused(x, multipliers, self.p)
        return fused.dense(data, 4) if self.dense else fused.sparse(data, 4)

    def hessian_pattern(self) -> Operator:
        """Zeros on the pattern of ∇²ₓₓL."""
        fused = self._second
        return fused.sparse(np.zeros(fused.size), 4)
