"""A solver as a text that ``ca.Function.deserialize`` reads, and the solver out of such a text.

CasADi writes down no Python code, but external functions: the path of a library and the words that
configure it. So the text holds the path of a library of the package (``stored.c``), and the pickle
of the solver as its word. When CasADi reads the text, the library asks the Python of the process
for the solver. A process without Python or without the library at its path cannot read the text.
:func:`runner_of` needs neither: it finds the pickle.
"""

from __future__ import annotations

import base64
import ctypes as ct
import hashlib
import pickle
import re
import zlib

import casadi as ca
import numpy as np

from casadi_hybrid.core.binding.externals import without_c
from casadi_hybrid.core.binding.functions import copied
from casadi_hybrid.core.library import load
from casadi_hybrid.solver.nlpsol.function import make_function
from casadi_hybrid.solver.nlpsol.runner import Runner
from casadi_hybrid.solver.options.convention import INPUTS, OUTPUTS, columns_of
from casadi_hybrid.utils.errors import InputError, last_line
from casadi_hybrid.utils.matrices import array_of

_NAME = "hybrid_stored"
_BEGIN, _END = b"casadi-hybrid-solver:", b";"
_WRONG = "text must be what NlpSolver.serialize returned"
# A Function that was read may be in any graph, and CasADi does not report the end of the last one.
_KEPT: dict[tuple[float, ...], Runner] = {}


def function_of(runner: Runner) -> ca.Function:
    """Return the solver as a Function that CasADi can write down, for :func:`runner_of` too."""
    pickled = pickle.dumps(runner)
    word = _BEGIN + base64.b64encode(zlib.compress(pickled)) + _END
    try:  # CasADi writes callbacks down, but does not read them
        _KEPT[_key(word)] = pickle.loads(pickled)
    except RuntimeError as error:
        raise InputError(
            f"{runner.name} cannot be written: CasADi does not read its functions back "
            f"({last_line(error)}); a function in Python has to be built again where it is needed"
        ) from None
    inner = ca.external(_NAME, load(_NAME)._name, {"config_args": [word.decode("ascii")]})
    first, second = _key(word)
    key = ca.vertcat(without_c(first), second)
    return make_function(runner.name, runner.problem, lambda columns: inner.call([*columns, key]))


def runner_of(text: str) -> Runner:
    """Return the solver in a text of CasADi; refuse other text. A pickle: take texts you trust."""
    # CasADi writes two letters a byte, the lower half first.
    begin, end = ("".join(chr(97 + c % 16) + chr(97 + c // 16) for c in w) for w in (_BEGIN, _END))
    pattern = f"{begin}(?:[a-p]{{2}})*?{end}"
    match = re.search(pattern, text) if isinstance(text, str) else None
    if match is None:
        raise InputError(_WRONG)
    halves = np.frombuffer(match[0].encode(), np.uint8).reshape(-1, 2) - 97
    return _unpacked((halves[:, 0] + 16 * halves[:, 1]).tobytes())


def _unpacked(word: bytes) -> Runner:
    try:
        pickled = zlib.decompress(base64.b64decode(word[len(_BEGIN) : -len(_END)], validate=True))
    except (ValueError, zlib.error):
        raise InputError(_WRONG) from None
    runner: Runner = pickle.loads(pickled)
    return runner


def _key(word: bytes) -> tuple[float, ...]:
    """Two numbers that name a solver: 96 bits of its checksum, each half an exact integer."""
    digest = hashlib.sha256(word).digest()
    # 48 bits fit into the 53 of a float.
    return tuple(float(int.from_bytes(digest[i : i + 6], "big")) for i in (0, 6))


def configure(word_at: int, shapes_at: int, _interrupted: int) -> None:
    """Read the solver of a word, and write the shapes of its inputs and outputs; C calls this."""
    word = ct.string_at(word_at)
    _KEPT[_key(word)] = runner = _KEPT.get(_key(word)) or _unpacked(word)
    rows_in, rows_out = columns_of(runner.problem)
    # CasADi's compressed pattern: rows, columns, and 1 for dense. The key is the last input.
    shapes = np.array([(rows, 1, 1) for rows in (*rows_in, 2, *rows_out)], np.int64)
    ct.memmove(shapes_at, shapes.ctypes.data, shapes.nbytes)


def evaluate(arguments_at: int, results_at: int, interrupted: int) -> None:
    """Solve with the solver that the last argument names; C calls this."""
    arguments = (ct.c_void_p * (len(INPUTS) + 1)).from_address(arguments_at)
    results = (ct.c_void_p * len(OUTPUTS)).from_address(results_at)
    try:
        runner = _KEPT[tuple(copied(arguments[-1], 2))]
        sizes_in, sizes_out = columns_of(runner.problem)
        columns = [ca.DM(copied(arguments[i], size)) for i, size in enumerate(sizes_in)]
        for i, column in enumerate(runner.evaluate(columns)):
            target = results[i]
            if target:  # CasADi passes NULL for an unused output
                ct.memmove(target, array_of(column).ctypes.data, 8 * sizes_out[i])
    # No exception passes through C: the library has Python raise this one again.
    except KeyboardInterrupt:
        ct.c_int.from_address(interrupted).value = 1
