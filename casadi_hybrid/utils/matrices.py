"""Numbers of a ``ca.DM`` and of a function without CasADi's copies."""

from __future__ import annotations

import ctypes as ct
from itertools import accumulate, pairwise

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.utils.casadi_internals import MatrixData, is_known


class Buffered:
    """A function behind CasADi's buffer: a call takes a tenth of the time.

    Not shareable between threads.

    Attributes:
        buffer: CasADi's; ``evaluate`` calls the function by it.
        inputs: where it reads the nonzeros of its inputs.
        out: where it writes those of all outputs, side by side; ``parts`` says whose are where.
    """

    def __init__(self, function: ca.Function) -> None:
        self.buffer, self.evaluate = function.buffer()
        self.inputs = [np.zeros(function.nnz_in(i)) for i in range(function.n_in())]
        ends = accumulate((function.nnz_out(i) for i in range(function.n_out())), initial=0)
        self.parts = [slice(*both) for both in pairwise(ends)]
        self.out = np.zeros(function.nnz_out())
        for i, array in enumerate(self.inputs):
            self.buffer.set_arg(i, array.data)
        for i, part in enumerate(self.parts):
            self.buffer.set_res(i, self.out[part].data)

    def __call__(self, *values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The nonzeros of all outputs, an array of their own."""
        for target, value in zip(self.inputs, values, strict=True):
            target[:] = value
        self.evaluate()
        return self.out.copy()


def array_of(matrix: ca.DM) -> NDArray[np.float64]:
    """A copy of a matrix, zeros filled in; of a long dense one in a tenth of CasADi's time."""
    if not matrix.nnz() or not matrix.is_dense() or not is_known():
        return np.asarray(matrix.full())
    rows, columns = matrix.shape
    there = (ct.c_double * (rows * columns)).from_address(MatrixData.of(matrix).begin)
    return np.ascontiguousarray(np.array(there).reshape(columns, rows).T)
