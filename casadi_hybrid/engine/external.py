"""The engine as a Function that CasADi calls by itself, with its own conversions of arguments."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Iterable, Mapping
from ctypes import c_int, c_longlong, c_void_p
from functools import cache, cached_property
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.arrays import address
from casadi_hybrid.basics.lock import Lock
from casadi_hybrid.basics.matrices import MatrixData, is_known
from casadi_hybrid.engine.installed import path_of
from casadi_hybrid.engine.solve import Core
from casadi_hybrid.engine.structures import pointer_of_capsule
from casadi_hybrid.engine.workspace import INPUTS, OUTPUTS
from casadi_hybrid.problem.building import BuildError

OUTPUTS_OF_CASADI = OUTPUTS[:6]

OTHER_SHAPE = -1
"""The status where an argument is not the full column that it ought to be."""


class ShapesData(ct.Structure):
    """``hybrid_shapes`` of ``adapter/adapter.h``."""

    _fields_ = [("in_", c_longlong * 3 * 8), ("out", c_longlong * 3 * 6)]

    @classmethod
    def of(cls, sizes_in: Iterable[int], sizes_out: Iterable[int]) -> ShapesData:
        """Of full columns with so many rows."""
        return cls(tuple((n, 1, 1) for n in sizes_in), tuple((n, 1, 1) for n in sizes_out))


class AdapterData(ct.Structure):
    """``hybrid_adapter`` of ``adapter/adapter.h``."""

    _fields_ = [
        ("shapes", c_void_p),
        ("in_", c_void_p * 8),
        ("there", c_int * 8),
        ("matrix", c_void_p * 8),
        ("column", c_void_p * 8),
        ("out", c_void_p * 6),
        *((name, c_void_p) for name in (
            "solve", "plan", "functions", "numbers", "options", "bytes", "doubles", "ints",
            "answer", "slope", "raw", "slopes",
        )),
        ("status", c_int),
    ]  # fmt: skip


class Entry:
    """A solver of the core as C calls it: where its numbers are read, and where they go.

    Args:
        core: the solver of one thread at a time.
        gradient: (x, λ, p) → ∂L/∂p, all entries; None where there is no p.
        evaluate: the address of what evaluates a buffer.

    Attributes:
        space: of the core.
        data, shapes: what C is handed.
    """

    def __init__(self, core: Core, gradient: ca.Function | None, evaluate: int) -> None:
        self.space = space = core.space
        self._core = core
        self.data = data = AdapterData(**core.addresses)
        if gradient is not None:
            self._differentiate(gradient, evaluate)
        inputs = [space.inputs[name] for name in INPUTS]
        outputs = [space.outputs[name] for name in OUTPUTS_OF_CASADI]
        self.shapes = ShapesData.of((one.size for one in inputs), (one.size for one in outputs))
        data.shapes = ct.addressof(self.shapes)
        data.in_[:], data.out[:] = [*map(address, inputs)], [*map(address, outputs)]

    def _differentiate(self, gradient: ca.Function, evaluate: int) -> None:
        """Have lam_p computed, by a buffer on what a solve finds."""
        space, data = self.space, self.data
        self._slopes = np.zeros(gradient.nnz_out(0))
        self._buffer, _ = gradient.buffer()
        for i, array in enumerate((space.outputs["x"], space.outputs["lam_g"], space.inputs["p"])):
            self._buffer.set_arg(i, array.data)
        self._buffer.set_res(0, self._slopes.data)
        data.slope, data.slopes = evaluate, address(self._slopes)
        data.raw = pointer_of_capsule(self._buffer._self(), None)


class External(Entry):
    """A solver of the core behind a ``ca.Function`` with the signature of CasADi's solvers.

    Attributes:
        solver: the first input of both Functions.
        ready: :attr:`function` without other inputs: they are there, or in the ``ca.DM`` whose
            addresses :attr:`matrices` has.
        there: by inputs: whether ``function`` finds it in the workspace.
        matrices: by inputs: where ``ready`` fetches it, None where it is in the workspace.
        fetches: whether ``ready`` may be given addresses.

    After a call of either :attr:`status` says whether its outputs mean anything.

    Raises:
        BuildError: where the adapter cannot be loaded.
    """

    def __init__(self, core: Core, gradient: ca.Function | None, evaluate: int) -> None:
        super().__init__(core, gradient, evaluate)
        space, data = self.space, self.data
        self._columns = [ca.DM.zeros(space.inputs[name].size) for name in INPUTS]
        self.fetches = is_known()
        if self.fetches:
            data.column[:] = [MatrixData.of(column).pattern for column in self._columns]
        self.there, self.matrices = data.there, data.matrix
        self.solver = {"solver": ca.DM(ct.addressof(data))}
        self.ready = function_of("hybrid_ready", self.shapes)

    @cached_property
    def function(self) -> ca.Function:
        """The Function; made where it is asked for, since :attr:`ready` does nearly all."""
        return function_of("hybrid_solver", self.shapes)

    @property
    def status(self) -> int:
        """How the last call ended, as in ``hybrid.h``."""
        return int(self.data.status)


@cache
def adapter() -> tuple[ct.CDLL, ca.Importer]:
    """The adapter, loaded for Python and for CasADi.

    Raises:
        BuildError: where it cannot be loaded.
    """
    path = path_of("hybrid_adapter")
    try:
        return ct.CDLL(path), ca.Importer(path, "dll")
    except (OSError, RuntimeError) as error:
        raise BuildError(f"the adapter of the core cannot be loaded: {error}") from None


def function_of(
    name: str, shapes: ShapesData, options: Mapping[str, Any] | None = None
) -> ca.Function:
    """A function of the adapter as a ``ca.Function`` of these shapes.

    Raises:
        BuildError: where the adapter cannot be loaded.
    """
    library, importer = adapter()
    with _describing.held:
        library.hybrid_describe(ct.byref(shapes))
        made = ca.external(name, importer, dict(options or {}))
        library.hybrid_describe(None)
    return made


_describing = Lock()
