"""The engine as a Function that CasADi calls by itself, with its own conversions of arguments."""

from __future__ import annotations

import ctypes as ct
import os
from contextlib import suppress
from ctypes import c_int, c_longlong, c_void_p
from functools import cache, cached_property
from weakref import finalize

import casadi as ca
import numpy as np

from casadi_hybrid.basics.arrays import address
from casadi_hybrid.basics.lock import Lock
from casadi_hybrid.basics.matrices import MatrixData, is_known
from casadi_hybrid.building import BuildError, suffix
from casadi_hybrid.engine.installed import path_of
from casadi_hybrid.engine.solve import Core
from casadi_hybrid.engine.structures import pointer_of_capsule
from casadi_hybrid.engine.workspace import INPUTS, OUTPUTS

_LIBRARY = "hybrid_adapter"
OUTPUTS_OF_CASADI = OUTPUTS[:6]

OTHER_SHAPE = -1
"""The status where an argument is not the full column that it ought to be."""


class AdapterData(ct.Structure):
    """``hybrid_adapter`` of ``adapter/adapter.h``."""

    _fields_ = [
        ("shape_in", c_void_p * 8),
        ("shape_out", c_void_p * 6),
        ("size_in", c_longlong * 8),
        ("size_out", c_longlong * 6),
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
        data: what C is handed.
    """

    def __init__(self, core: Core, gradient: ca.Function | None, evaluate: int) -> None:
        self.space = space = core.space
        self._core = core
        self.data = data = AdapterData(**core.addresses)
        if gradient is not None:
            self._differentiate(gradient, evaluate)
        inputs = [space.inputs[name] for name in INPUTS]
        outputs = [space.outputs[name] for name in OUTPUTS_OF_CASADI]
        data.in_[:], data.size_in[:] = [*map(address, inputs)], [one.size for one in inputs]
        data.out[:], data.size_out[:] = [*map(address, outputs)], [one.size for one in outputs]

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
        ready: :attr:`function` without inputs: they are there, or in the ``ca.DM`` whose addresses
            :attr:`matrices` has.
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
        # Full columns, as CasADi writes shapes.
        sizes = (*data.size_in, *data.size_out)
        self._shapes = np.array([[size, 1, 1] for size in sizes], dtype=np.int64)
        at, step = address(self._shapes), self._shapes.strides[0]
        places = range(at, at + step * len(self._shapes), step)
        data.shape_in[:], data.shape_out[:] = places[: len(INPUTS)], places[len(INPUTS) :]
        self._columns = [ca.DM.zeros(space.inputs[name].size) for name in INPUTS]
        self.fetches = is_known()
        if self.fetches:
            data.column[:] = [MatrixData.of(column).pattern for column in self._columns]
        self.there, self.matrices = data.there, data.matrix
        self._slot = _slots.take()
        finalize(self, _slots.give_back, self._slot)
        self._slot.attach(ct.addressof(data))
        self.ready = self._slot.function("hybrid_ready")

    @cached_property
    def function(self) -> ca.Function:
        """The Function; made where it is asked for, since :attr:`ready` does nearly all."""
        return self._slot.function("hybrid_solver")

    @property
    def status(self) -> int:
        """How the last call ended, as in ``hybrid.h``."""
        return int(self.data.status)


class _Slot:
    """A place for one solver in a loaded library.

    Args:
        library, importer: the library, for Python and for CasADi.
        number: of the slot.
    """

    def __init__(self, library: ct.CDLL, importer: ca.Importer, number: int) -> None:
        self._library, self._importer, self._number = library, importer, number

    def attach(self, data: int) -> None:
        """Have the functions of the slot stand for this."""
        self._library.hybrid_attach(self._number, c_void_p(data))

    def function(self, name: str) -> ca.Function:
        """A function of the slot."""
        try:
            return ca.external(f"{name}_{self._number}", self._importer)
        except RuntimeError as error:
            raise BuildError(f"the adapter of the engine cannot be loaded: {error}") from None


class _Slots:
    """Slots that no solver has: those of the library, then of copies of it. They stay loaded."""

    def __init__(self) -> None:
        self._free: list[_Slot] = []
        self._copied = False
        self._lock = Lock()

    def take(self) -> _Slot:
        """A slot for one solver.

        Raises:
            BuildError: where the adapter cannot be loaded.
        """
        with self._lock.held:
            if not self._free:
                self._free += self._more()
            return self._free.pop()

    def give_back(self, slot: _Slot) -> None:
        """A slot whose solver is gone."""
        self._free.append(slot)  # without the lock: whoever drops a solver may hold it

    def _more(self) -> list[_Slot]:
        if self._copied:
            path = _own_copy()
            try:
                library, importer = _loaded(path)
            finally:
                _unlink(path)
        else:
            library, importer = adapter()
        self._copied = True
        return [_Slot(library, importer, k) for k in reversed(range(library.hybrid_slots()))]


_slots = _Slots()


@cache
def adapter() -> tuple[ct.CDLL, ca.Importer]:
    """The adapter, loaded for Python and for CasADi.

    Raises:
        BuildError: where it cannot be loaded.
    """
    return _loaded(path_of(_LIBRARY))


def _loaded(path: str) -> tuple[ct.CDLL, ca.Importer]:
    try:
        return ct.CDLL(path), ca.Importer(path, "dll")
    except (OSError, RuntimeError) as error:
        raise BuildError(f"the adapter of the engine cannot be loaded: {error}") from None


def _own_copy() -> str:
    """A copy of the adapter: a library is loaded once for each file."""
    import shutil  # noqa: PLC0415 - for graphs, or for more solvers than a library has room for
    import tempfile  # noqa: PLC0415

    source = path_of(_LIBRARY)
    with tempfile.NamedTemporaryFile(suffix=suffix(), delete=False) as target:
        path = target.name
    shutil.copyfile(source, path)
    return path


def _unlink(path: str) -> None:
    """Remove the file of a library, which stays loaded. Windows keeps it, and the temp folder."""
    with suppress(PermissionError):
        os.unlink(path)
