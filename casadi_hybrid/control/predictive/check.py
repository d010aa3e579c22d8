"""By how much a point violates a program, from the program's own functions, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.program import Block, Program
from casadi_hybrid.control.signals import Array


class Check:
    """The rows and bounds of one program.

    Args:
        program: with any numbers; its graph and names are used.
    """

    def __init__(self, program: Program) -> None:
        nlp = program.nlp
        self._rows = ca.Function("rows", [nlp["x"], nlp["p"]], [ca.densify(nlp["g"])])
        self._buffer: _Buffer | None = None
        self._names = {"x": list(program.variables), "g": list(program.constraints)}
        self._owner = {
            "x": _owners(program.variables, program.n),
            "g": _owners(program.constraints, program.m),
        }

    def rows(self, program: Program, x: Array) -> Array:
        """Evaluate g. Raises RuntimeError where a function of the model raises."""
        if self._buffer is None:  # a call by way of matrices takes ten times as long
            self._buffer = _Buffer(self._rows)
        return self._buffer(x, program.p)

    @staticmethod
    def largest(program: Program, x: Array, g: Array) -> float:
        """The largest violation of a bound or row in the program's scaled units; NaN for NaN."""
        parts = (program.lbx - x, x - program.ubx, program.lbg - g, g - program.ubg)
        return float(max(part.max(initial=0.0) for part in parts)) if _finite(x, g) else np.nan

    def active(self, program: Program, x: Array, g: Array, near: float) -> tuple[int, list[str]]:
        """How many limits are active, and of which variables and constraints."""
        count, names = 0, []
        for key, values, lower, upper in (
            ("x", x, program.lbx, program.ubx),
            ("g", g, program.lbg, program.ubg),
        ):
            at = (lower < upper) & ((values <= lower + near) | (values >= upper - near))
            count += int(np.count_nonzero(at))
            owners = np.bincount(self._owner[key][at], minlength=len(self._names[key]))
            names += [name for name, n in zip(self._names[key], owners, strict=True) if n]
        return count, names


class _Buffer:
    """A function with one dense output behind fixed places for its inputs and its output."""

    def __init__(self, function: ca.Function) -> None:
        self._kept, self._evaluate = function.buffer()
        self._inputs = [np.zeros(function.nnz_in(i)) for i in range(function.n_in())]
        self._output = np.zeros(function.nnz_out(0))
        for i, array in enumerate(self._inputs):
            self._kept.set_arg(i, array.data)
        self._kept.set_res(0, self._output.data)

    def __call__(self, *values: Array) -> Array:
        for target, value in zip(self._inputs, values, strict=True):
            target[:] = value
        self._evaluate()
        return self._output.copy()


def _owners(blocks: Mapping[str, Block], size: int) -> Any:
    owner = np.zeros(size, dtype=int)
    for i, block in enumerate(blocks.values()):
        owner[block.where] = i
    return owner


def _finite(*arrays: Array) -> bool:
    return all(bool(np.isfinite(array).all()) for array in arrays)
