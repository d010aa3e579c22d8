"""Access to the numbers of a ``ca.DM`` and of a function without CasADi's copies."""

from __future__ import annotations

import ctypes as ct
from itertools import accumulate, pairwise

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.utils.casadi_internals import MatrixData, is_known


class Buffered:
    """Function with CasADi's buffer, ten times faster to call; not shareable between threads."""

    def __init__(self, function: ca.Function) -> None:
        # The buffer has addresses alone: function and arrays must live as long.
        self.buffer, self.evaluate = function.buffer()
        self.inputs = [np.zeros(function.nnz_in(i)) for i in range(function.n_in())]  # nonzeros
        ends = accumulate((function.nnz_out(i) for i in range(function.n_out())), initial=0)
        # Nonzeros of the outputs lie one after another.
        self.parts = [slice(*ends_of_part) for ends_of_part in pairwise(ends)]
        self.out = np.zeros(function.nnz_out())
        for i, array in enumerate(self.inputs):
            self.buffer.set_arg(i, array.data)
        for i, part in enumerate(self.parts):
            self.buffer.set_res(i, self.out[part].data)

    def __call__(self, *values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the nonzeros of all outputs in a fresh array."""
        for target, value in zip(self.inputs, values, strict=True):
            target[:] = value
        self.evaluate()
        return self.out.copy()


def array_of(matrix: ca.DM) -> NDArray[np.float64]:
    """Dense copy of a matrix; for a long dense one ten times faster than CasADi."""
    if not matrix.nnz() or not matrix.is_dense() or not is_known():
        return np.asarray(matrix.full())
    rows, columns = matrix.shape
    entries = (ct.c_double * (rows * columns)).from_address(MatrixData.of(matrix).begin)
    # CasADi stores columns. np.array copies, since the matrix may be gone before the array.
    return np.ascontiguousarray(np.array(entries).reshape(columns, rows).T)
