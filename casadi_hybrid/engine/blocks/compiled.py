"""The functions of a problem as machine code, made at once or in the background."""

from __future__ import annotations

import ctypes as ct
import os
import threading
import time
from ctypes import c_void_p
from typing import Any
from weakref import WeakKeyDictionary

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.engine.blocks.library import UntranslatedError, tools
from casadi_hybrid.engine.blocks.operations import flags
from casadi_hybrid.engine.blocks.tables import FunctionData, Staged
from casadi_hybrid.engine.building.build import Sources, load
from casadi_hybrid.engine.building.compiler import BuildError
from casadi_hybrid.problem.functions import Functions
from casadi_hybrid.problem.problem import Problem

_FILE = 2_000_000  # characters of one C file

ARRIVED = "they were being compiled"
"""The note of a run that had begun when they came."""


class FunctionsData(ct.Structure):
    """``blocks_functions`` of ``c/blocks.h``."""

    _fields_ = [("first", FunctionData), ("second", FunctionData)]


class Code:
    """Two functions of a problem as machine code; threads share it.

    Args:
        first, second: (x, p) → … and (x, λ, p) → …, in scalar operations.

    Attributes:
        library: what was built, or found in the cache.
        analysis, seconds: what finding the parts took, and all of it.

    Raises:
        UntranslatedError: where a function cannot be translated, or too little of it repeats.
        BuildError: where there is no compiler, or it fails.
    """

    def __init__(self, first: ca.Function, second: ca.Function) -> None:
        began = time.perf_counter()
        self._tools = tools()
        self._staged = Staged(first), Staged(second)
        self.analysis = time.perf_counter() - began
        texts = sorted(set().union(*(staged.texts for staged in self._staged)))
        loaded, self.library = load(
            Sources("functions", _files(texts), flags(sum(map(len, texts))))
        )
        addresses = {
            text: ct.cast(getattr(loaded, f"part_{k}"), c_void_p).value or 0
            for k, text in enumerate(texts)
        }
        self._addresses, self._loaded = addresses, loaded
        self.seconds = time.perf_counter() - began
        self.entries = tuple(
            ct.cast(getattr(self._tools, name), c_void_p)
            for name in ("blocks_first", "blocks_second")
        )

    def functions(self) -> tuple[FunctionsData, Any]:
        """What one thread calls them with, and what has to be kept for as long."""
        (first, kept), (second, others) = (s.function(self._addresses) for s in self._staged)
        return FunctionsData(first, second), (kept, others, self)

    def call(self, which: int, *inputs: Any) -> NDArray[np.float64]:
        """All nonzeros of the outputs of the first (0) or the second (1) function."""
        data, _kept = self.functions()
        arrays = [np.ascontiguousarray(one, dtype=float) for one in inputs]
        out = np.zeros(self._staged[which].outputs)
        run = (self._tools.blocks_first, self._tools.blocks_second)[which]
        run(ct.byref(data), *(c_void_p(one.ctypes.data) for one in (*arrays, out)))
        return out


class Compiled:
    """The machine code of a problem's functions, once it is there.

    Args:
        functions: of the problem.
        background: whether to return at once and build in a thread.

    Attributes:
        code: None as long as there is none.
        note: why there is none, a sentence; empty where there is.
    """

    def __init__(self, functions: Functions, background: bool) -> None:
        self.code: Code | None = None
        self.note = "they are being compiled"
        self._functions: Functions | None = functions
        self._thread: threading.Thread | None = None
        if background:
            self._thread = threading.Thread(target=self._build, name="compile", daemon=True)
            self._thread.start()
        else:
            self._build()

    def wait(self) -> bool:
        """Wait until it is built or refused; whether it is there."""
        if self._thread is not None:
            self._thread.join()
        return self.code is not None

    def _build(self) -> None:
        functions, self._functions = self._functions, None
        assert functions is not None
        try:
            if functions.curvature is None:
                raise UntranslatedError("the Hessian is learned on the way")
            self.code, self.note = Code(functions.first, functions.curvature), ""
        except (UntranslatedError, BuildError, MemoryError) as error:
            self.note = str(error) or "there is not enough memory"


class _Known:
    """What was asked for, for as long as the problems live."""

    def __init__(self) -> None:
        self.of: WeakKeyDictionary[Problem, Compiled] = WeakKeyDictionary()
        self._unlock()
        # A child forked off while another thread asks would wait for that thread for ever, and for
        # what is built there.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start_anew)

    def _unlock(self) -> None:
        self.lock = threading.Lock()

    def _start_anew(self) -> None:
        self._unlock()
        for problem, one in list(self.of.items()):
            if one.code is None:
                del self.of[problem]


_known = _Known()


def compile_functions(problem: Problem, background: bool) -> Compiled:
    """Have a problem's functions compiled for the engine; what is known of them already, else.

    Args:
        problem: one whose functions are in scalar operations.
        background: whether to return at once, with a thread that builds.
    """
    with _known.lock:
        found = _known.of.get(problem)
        if found is None:
            found = _known.of[problem] = Compiled(problem.functions, background)
    if not background:
        found.wait()
    return found


def compiled_of(problem: Problem) -> Compiled | None:
    """What :func:`compile_functions` has made of a problem; None where nobody has asked."""
    return _known.of.get(problem)


def _files(texts: list[str]) -> dict[str, str]:
    """C files with the parts, named in order; several where one would be long."""
    files: dict[str, str] = {}
    lines: list[str] = []
    size = 0

    def write() -> None:
        files[f"parts_{len(files)}.c"] = "#include <math.h>\n" + "".join(lines)
        lines.clear()

    for k, text in enumerate(texts):
        lines.append(text.replace("@", f"part_{k}"))
        size += len(text)
        if size > _FILE:
            write()
            size = 0
    if lines or not files:
        write()
    return files
