"""Functions of a problem in parts that the engine calls: as machine code, or as lists."""

from __future__ import annotations

import ctypes as ct
from ctypes import c_void_p
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.evaluation.code import ENTRY
from casadi_hybrid.core.evaluation.composed import Composed
from casadi_hybrid.core.evaluation.library import UntranslatedError, tools
from casadi_hybrid.core.evaluation.operations import flags
from casadi_hybrid.core.evaluation.partition import MOST
from casadi_hybrid.core.evaluation.tables import FunctionData, InParts, Staged
from casadi_hybrid.problem.elements.assembly import Assemblies
from casadi_hybrid.problem.graph.functions import instructions_of
from casadi_hybrid.utils.arrays import address

_HEAD = """#include <math.h>
#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT
#endif
"""
_FILE = 2_000_000  # characters of one C file, about
_INSTRUCTION = 2.5  # nanoseconds that CasADi's interpreter takes over one
_WORTH = 0.7  # of its time is what lists may take


class FunctionsData(ct.Structure):
    """``blocks_functions`` of ``c/blocks.h``."""

    _fields_ = [("first", FunctionData), ("second", FunctionData)]


class Form:
    """The functions of a problem in parts; threads share it.

    Args:
        first, second: (x, p) → … and (x, λ, p) → …, in scalar operations or made of elements; the
            second is None where there are no second derivatives.
        assemblies: how they are made of elements, None where they are not.

    Attributes:
        staged: those that there are.
        entries: the addresses of what the engine calls in place of the two.

    Raises:
        UntranslatedError: where a function cannot be translated, or too little of it repeats.
        BuildError: where there is no compiler for what finds the parts.
    """

    def __init__(
        self, first: ca.Function, second: ca.Function | None, assemblies: Assemblies | None = None
    ) -> None:
        self._run = tools().blocks_first, tools().blocks_second
        both = [function for function in (first, second) if function is not None]
        self.staged: tuple[InParts, ...]
        if assemblies is None:
            self.staged = tuple(map(Staged, both))
        else:
            sizes = [tuple(f.nnz_in(i) for i in range(f.n_in())) for f in both]
            self.staged = tuple(map(Composed, assemblies, sizes))
        self._addresses: dict[str, int] | None = None
        self.entries = tuple(ct.cast(run, c_void_p) for run in self._run)

    def functions(self) -> tuple[FunctionsData, Any]:
        """What one thread calls them with, and what has to be kept for as long."""
        both = [one.function(self._addresses) for one in self.staged]
        return FunctionsData(*(data for data, _ in both)), (both, self)

    def call(self, which: int, *inputs: Any) -> NDArray[np.float64]:
        """All nonzeros of the outputs of the first (0) or the second (1) function."""
        data, _kept = self.functions()
        arrays = [np.ascontiguousarray(one, dtype=float) for one in inputs]
        out = np.zeros(self.staged[which].outputs)
        self._run[which](ct.byref(data), *(c_void_p(address(one)) for one in (*arrays, out)))
        return out


class Code(Form):
    """They are machine code."""

    def __init__(
        self, first: ca.Function, second: ca.Function | None, assemblies: Assemblies | None = None
    ) -> None:
        super().__init__(first, second, assemblies)
        operations = sum(staged.operations for staged in self.staged)
        if operations > 2 * MOST:
            raise UntranslatedError(
                f"the functions have {operations} operations that do not repeat, and at most "
                f"{2 * MOST} are compiled"
            )
        from casadi_hybrid.problem.building.build import Sources, load  # noqa: PLC0415 - large, and rare

        texts = sorted(set().union(*(staged.texts for staged in self.staged)))
        self._loaded = load(Sources("functions", _files(texts), flags(sum(map(len, texts)))))
        self._addresses = {
            text: ct.cast(getattr(self._loaded, f"part_{k}"), c_void_p).value or 0
            for k, text in enumerate(texts)
        }


class Lists(Form):
    """They are lists that C reads, with many parts side by side.

    Args:
        share: the part of the time of CasADi's interpreter that they may take.

    Raises:
        UntranslatedError: where they would take more.
    """

    def __init__(
        self,
        first: ca.Function,
        second: ca.Function | None,
        assemblies: Assemblies | None = None,
        *,
        share: float = _WORTH,
    ) -> None:
        super().__init__(first, second, assemblies)
        alone = _INSTRUCTION * instructions_of(first, second, assemblies)
        if sum(staged.duration for staged in self.staged) > share * alone:
            raise UntranslatedError("too little of the functions repeats")


def _files(texts: list[str]) -> dict[str, str]:
    """C files with the parts, named in order; several where one would be long."""
    files, size = [_HEAD], 0
    for k, text in enumerate(texts):
        if size > _FILE:
            files.append(_HEAD)
            size = 0
        files[-1] += text.replace(ENTRY, f"EXPORT {ENTRY}").replace("@", f"part_{k}")
        size += len(text)
    return {f"parts_{k}.c": text for k, text in enumerate(files)}
