"""The last word where the engine's own factorizations are in doubt: the kernel of the Python code.

C calls it back. That is rare, so what a call costs is nothing beside a solve that Python begins
anew, and the method in C stays one.
"""

from __future__ import annotations

import ctypes as ct
import threading
from collections.abc import Callable
from ctypes import POINTER, c_double, c_int, c_void_p
from typing import TYPE_CHECKING, Any

import numpy as np

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.engine.structures import OutsideData
from casadi_hybrid.kernel.sparse import Layout

if TYPE_CHECKING:
    from casadi_hybrid.kernel.kernel import DenseKernel, SparseKernel

_NUMBERS = POINTER(c_double)
_FACTOR = ct.CFUNCTYPE(c_int, c_void_p, _NUMBERS, POINTER(c_int))
_SOLVE = ct.CFUNCTYPE(c_int, c_void_p, _NUMBERS, _NUMBERS)
_SINGULAR, _NO_ANSWER = 2, 3


class _Held(threading.local):
    """The kernel that was factored last: FERAL's may be used and dropped by no other thread."""

    kernel: DenseKernel | SparseKernel | None = None


_held = _Held()


class Outside:
    """A kernel for the matrices of one layout, in the form that C calls.

    It means what it means in the Python code: LAPACK for full matrices, else FERAL, with the same
    threshold for a singular K. Nothing is raised through C: what is raised is kept, and C has no
    answer and goes on as without such a kernel.

    Args:
        layout: of K.
        dense: whether K is to be a full matrix.

    Attributes:
        data: the structure that C reads.
        raised: since the last :meth:`end`.
    """

    def __init__(self, layout: Layout, *, dense: bool) -> None:
        raised: list[BaseException] = []
        self.raised = raised
        entries, size = layout.pattern.rows.size, layout.size

        def factor(_: Any, values: Any, negative: Any) -> int:
            return _guarded(
                lambda: _factor(layout, dense, _array(values, entries), negative), raised
            )

        def solve(_: Any, b: Any, x: Any) -> int:
            return _guarded(lambda: _solve(_array(b, size), _array(x, size)), raised)

        self._kept = _FACTOR(factor), _SOLVE(solve)
        at_factor, at_solve = (ct.cast(one, c_void_p).value for one in self._kept)
        self.data = OutsideData(at_factor, at_solve, None)

    def end(self) -> str:
        """Let the kernel go; a sentence about what was raised, or nothing.

        Raises:
            KeyboardInterrupt: where Ctrl-C came while C waited for an answer.
        """
        _held.kernel = None
        raised = self.raised.copy()
        self.raised.clear()
        for error in raised:
            if isinstance(error, KeyboardInterrupt):
                raise error
        if not raised:
            return ""
        error = raised[0]
        return f"Python's kernel was asked and raised {type(error).__name__}: {error}"


def _factor(layout: Layout, dense: bool, entries: Vector, negative: Any) -> int:
    # SciPy's LAPACK comes along, for a matrix in doubt alone.
    from casadi_hybrid.kernel.kernel import DenseKernel, SparseKernel, has_feral  # noqa: PLC0415

    n = layout.n
    _held.kernel = None  # so that a new one may take what this has used
    kernel = DenseKernel(layout.size - n, n) if dense or not has_feral() else SparseKernel(layout)
    kernel.factor_entries(layout, entries.copy())
    _held.kernel = kernel
    negative[0] = kernel.negative
    return _SINGULAR if kernel.singular else 0


def _solve(b: Vector, x: Vector) -> int:
    assert _held.kernel is not None
    x[:] = _held.kernel.solve(b.copy())
    return 0


def _guarded(work: Callable[[], int], raised: list[BaseException]) -> int:
    """What the work returns, or that there is no answer where it raises."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # C looks at what comes of it
            return work()
    except BaseException as error:  # noqa: BLE001, nothing may be raised through C
        raised.append(error)
        return _NO_ANSWER


def _array(numbers: Any, size: int) -> Vector:
    """A view of the numbers that C points to."""
    return np.ctypeslib.as_array(numbers, (size,))
