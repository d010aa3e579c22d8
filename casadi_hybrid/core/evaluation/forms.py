"""Functions of a problem in parts that the core calls: as machine code, or as programs."""

from __future__ import annotations

import ctypes as ct
from ctypes import c_void_p
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.evaluation.code import ENTRY
from casadi_hybrid.core.evaluation.composed import Composed
from casadi_hybrid.core.evaluation.library import BLOCKS, UntranslatedError, tools
from casadi_hybrid.core.evaluation.operations import flags
from casadi_hybrid.core.evaluation.partition import MOST
from casadi_hybrid.core.evaluation.tables import InParts, Staged
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
FILE = 2_000_000
"""Characters of one C file, approximately."""
_INSTRUCTION = 2.5  # nanoseconds of one in CasADi's interpreter
_WORTH = 0.7  # largest time of programs relative to the interpreter


class Form:
    """Functions (x, p) → … and (x, λ, p) → … of a problem in parts, shared by threads.

    Raises UntranslatedError if too little repeats, BuildError without the C of this folder.
    """

    staged: tuple[InParts, ...]  # the functions in parts, one or two
    # Compiled parts by their text; None for programs.
    _addresses: dict[str, int] | None = None

    def __init__(
        self, first: ca.Function, second: ca.Function | None, assemblies: Assemblies | None = None
    ) -> None:
        functions = [function for function in (first, second) if function is not None]
        if assemblies is None:
            self.staged = tuple(map(Staged, functions))
        else:
            sizes = [tuple(f.nnz_in(i) for i in range(f.n_in())) for f in functions]
            self.staged = tuple(map(Composed, assemblies, sizes))
        self._entries = tools().blocks_first, tools().blocks_second
        self.entries = tuple(ct.cast(entry, c_void_p) for entry in self._entries)

    def functions(self) -> tuple[Any, Any]:
        """``blocks_functions`` for one thread, and the objects that it points to."""
        # Tables are shared; each thread has a v of its own.
        both = [staged.function(self._addresses) for staged in self.staged]
        return BLOCKS.blocks_functions(*(data for data, _ in both)), (both, self)

    def call(self, which: int, *inputs: Any) -> NDArray[np.float64]:
        """Evaluate the first (0) or the second (1) function: all nonzeros of its outputs."""
        data, _kept = self.functions()
        arrays = [np.ascontiguousarray(values, dtype=float) for values in inputs]
        out = np.zeros(self.staged[which].outputs)
        self._entries[which](ct.byref(data), *map(address, (*arrays, out)))
        return out


class Code(Form):
    """Functions as machine code."""

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

        # Sorted, equal functions give equal files, which the cache of libraries knows.
        texts = sorted(set().union(*(staged.texts for staged in self.staged)))
        self._loaded = load(Sources("functions", _files(texts), flags(sum(map(len, texts)))))
        self._addresses = {
            text: ct.cast(getattr(self._loaded, f"part_{k}"), c_void_p).value or 0
            for k, text in enumerate(texts)
        }


class Lists(Form):
    """Functions as programs that C interprets, with many parts side by side."""

    def __init__(
        self, first: ca.Function, second: ca.Function | None, assemblies: Assemblies | None = None
    ) -> None:
        super().__init__(first, second, assemblies)
        interpreted = _INSTRUCTION * instructions_of(first, second, assemblies)
        if sum(staged.duration for staged in self.staged) > _WORTH * interpreted:
            raise UntranslatedError("too little of the functions repeats")


def _files(texts: list[str]) -> dict[str, str]:
    """C files with the parts, named in order; several if one would be long."""
    files, size = [_HEAD], 0
    for k, text in enumerate(texts):
        if size > FILE:
            files.append(_HEAD)
            size = 0
        files[-1] += text.replace(ENTRY, f"EXPORT {ENTRY}").replace("@", f"part_{k}")
        size += len(text)
    return {f"parts_{k}.c": text for k, text in enumerate(files)}
