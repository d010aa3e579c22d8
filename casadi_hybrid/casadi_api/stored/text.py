"""A solver as a text that ``ca.Function.deserialize`` reads, and the solver out of such a text.

CasADi writes down no Python code. What it does write is an external function: the path of its
library and the words it was configured with. So the text holds the path of a library of the package
(``stored.c``) and the pickle of the solver as its word; where CasADi reads it, the library asks the
Python of that process for the solver. In a process without Python, or where the library is not at
its place, CasADi cannot read it. :func:`runner_of` needs neither: it finds the pickle.
"""

from __future__ import annotations

import base64
import ctypes as ct
import hashlib
import pickle
import re
import sys
import zlib
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError, last_line
from casadi_hybrid.basics.matrices import array_of
from casadi_hybrid.casadi_api.convention import INPUTS, columns_of
from casadi_hybrid.casadi_api.graphs.function import make_function
from casadi_hybrid.casadi_api.runner import Runner
from casadi_hybrid.engine.externals import without_c
from casadi_hybrid.engine.functions import copied
from casadi_hybrid.engine.library import load

_NAME = "hybrid_stored"
_FAILED, _DONE, _INTERRUPTED = range(3)  # what the hooks return
_BEGIN, _END = b"casadi-hybrid-solver:", b";"
_Pointers = ct.POINTER(ct.c_void_p)
_Configure = ct.CFUNCTYPE(ct.c_int, ct.c_char_p, ct.POINTER(ct.c_longlong))
_Evaluate = ct.CFUNCTYPE(ct.c_int, _Pointers, _Pointers)
_WRONG = "text must be what NlpSolver.serialize returned"
# A Function that was read may be in any graph, and nobody says when the last one has gone.
_KEPT: dict[tuple[float, ...], Runner] = {}


class _Hooks(ct.Structure):
    """``hybrid_stored_hooks`` of ``stored.c``."""

    _fields_ = [("configure", _Configure), ("evaluate", _Evaluate)]


def function_of(runner: Runner) -> ca.Function:
    """The solver as a Function that CasADi can write down, for :func:`runner_of` too."""
    pickled = pickle.dumps(runner)
    word = _BEGIN + base64.b64encode(zlib.compress(pickled)) + _END
    try:  # CasADi writes callbacks down, but does not read them
        _KEPT[_key(word)] = pickle.loads(pickled)
    except RuntimeError as error:
        raise InputError(
            f"{runner.name} cannot be written: CasADi does not read its functions back "
            f"({last_line(error)}); a function in Python has to be built again where it is needed"
        ) from None
    library = load(_NAME)
    attach(ct.addressof(_Hooks.in_dll(library, f"{_NAME}_entries")))
    inner = ca.external(_NAME, library._name, {"config_args": [word.decode("ascii")]})
    first, second = _key(word)
    key = ca.vertcat(without_c(first), second)
    return make_function(runner.name, runner.problem, lambda given: inner.call([*given, key]))


def runner_of(text: str) -> Runner:
    """The solver in what CasADi wrote; other text is refused. A pickle: take texts you trust."""
    # CasADi writes two letters a byte, the lower half first.
    begin, end = ("".join(chr(97 + c % 16) + chr(97 + c // 16) for c in w) for w in (_BEGIN, _END))
    pattern = f"{begin}(?:[a-p]{{2}})*?{end}"
    found = re.search(pattern, text) if isinstance(text, str) else None
    if found is None:
        raise InputError(_WRONG)
    halves = np.frombuffer(found[0].encode(), np.uint8).reshape(-1, 2) - 97
    return _unpacked((halves[:, 0] + 16 * halves[:, 1]).tobytes())


def attach(address: int) -> None:
    """Give the hooks of a loaded library what it calls; one that CasADi has loaded asks itself."""
    hooks = _Hooks.from_address(address)
    hooks.evaluate = _EVALUATE
    hooks.configure = _CONFIGURE  # the last, since it says that both are there


def _unpacked(word: bytes) -> Runner:
    try:
        pickled = zlib.decompress(base64.b64decode(word[len(_BEGIN) : -len(_END)], validate=True))
    except (ValueError, zlib.error):
        raise InputError(_WRONG) from None
    runner: Runner = pickle.loads(pickled)
    return runner


def _key(word: bytes) -> tuple[float, ...]:
    """Numbers that name a solver: 96 bits of its checksum, each half a whole number exactly."""
    digest = hashlib.sha256(word).digest()
    return tuple(float(int.from_bytes(digest[i : i + 6], "big")) for i in (0, 6))


def _configure(word: bytes, shapes: Any) -> int:
    """Read a solver; its shapes as CasADi writes those of full columns."""
    try:
        _KEPT[_key(word)] = runner = _KEPT.get(_key(word)) or _unpacked(word)
    except Exception as error:  # noqa: BLE001 - C cannot pass it on
        return _say(f"a stored solver cannot be read: {type(error).__name__}: {error}")
    rows_in, rows_out = columns_of(runner.problem)
    for i, rows in enumerate((*rows_in, 2, *rows_out)):
        shapes[3 * i], shapes[3 * i + 1], shapes[3 * i + 2] = rows, 1, 1
    return _DONE


def _evaluate(arguments: Any, results: Any) -> int:
    """Solve with the solver that the last argument names; nobody needs a result that is NULL."""
    try:
        runner = _KEPT[tuple(copied(arguments[len(INPUTS)], 2))]
        rows_in, rows_out = columns_of(runner.problem)
        columns = [ca.DM(copied(arguments[i], rows)) for i, rows in enumerate(rows_in)]
        for i, column in enumerate(runner.evaluate(columns)):
            if results[i]:
                ct.memmove(results[i], array_of(column).ctypes.data, 8 * rows_out[i])
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - C cannot pass it on
        return _say(f"{type(error).__name__}: {error}")
    return _DONE


def _say(sentence: str) -> int:
    print(f"casadi_hybrid: {sentence}", file=sys.stderr, flush=True)
    return _FAILED


_CONFIGURE, _EVALUATE = _Configure(_configure), _Evaluate(_evaluate)  # C keeps no reference
