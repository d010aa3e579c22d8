"""Where the numbers of a ``ca.DM`` and of a function lie in memory, without CasADi's copies."""

from __future__ import annotations

import ctypes as ct
from ctypes import c_void_p
from functools import cache
from itertools import accumulate, pairwise

import casadi as ca
import numpy as np
from numpy.typing import NDArray

_NUMBER = ct.sizeof(ct.c_double)


class MatrixData(ct.Structure):
    """``hybrid_matrix`` of ``adapter/adapter.h``: CasADi's ``Matrix<double>``."""

    _fields_ = [(name, c_void_p) for name in ("head", "pattern", "begin", "end", "room")]

    @classmethod
    def of(cls, matrix: ca.DM) -> MatrixData:
        """That of a matrix, valid as long as this lives and is not changed."""
        return cls.from_address(int(matrix.this))


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


@cache
def is_known() -> bool:
    """Whether matrices lie in memory as ``MatrixData`` says; by trying, for no header says it.

    Equal patterns have to be one object, and others another one, for C tells shapes by that.
    """
    column, other = ca.DM([1.5, -2.0, 3.25]), ca.DM(np.array([4.0, 0.5, 6.0]))
    sparse = ca.DM(ca.Sparsity.triplet(4, 1, [0, 1, 3], [0, 0, 0]), [7.0, 8.0, 9.5])
    matrices = [column, other, column.T, sparse, ca.DM([1.0, 2.0]), ca.DM(0.25)]
    try:
        patterns = [MatrixData.of(matrix).pattern for matrix in matrices]
        alike = [pattern == patterns[0] for pattern in patterns]
        return alike == [True, True, *[False] * 4] and all(map(_is_read, matrices))
    except (AttributeError, TypeError, ValueError):
        return False


def _is_read(matrix: ca.DM) -> bool:
    """Whether its numbers are found; what does not look like them is not read."""
    data, count = MatrixData.of(matrix), matrix.nnz()
    if data.begin is None or data.end != data.begin + count * _NUMBER or data.room < data.end:
        return False
    found = (ct.c_double * count).from_address(data.begin)
    return bool(list(found) == matrix.nonzeros())
