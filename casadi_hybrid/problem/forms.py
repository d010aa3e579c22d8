"""Conversion of every form of a nonlinear program that CasADi accepts to one dictionary.

The forms are a dictionary, a ``ca.Function`` (x, p) → (f, g), a file or ``ca.Importer`` with such
a function in machine or C code, a ``ca.NlpBuilder``, and AMPL's ``.nl`` files. The entries of a
dictionary may be structures of ``casadi.tools``, or NumPy arrays of expressions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.utils.errors import InputError, last_line, suggest

_KEYS = ("x", "p", "f", "g")
# Largest number of bytes of a header line of an ``.nl`` file.
_LINE = 1000
_FORMS = (
    "a dictionary with 'x', 'p', 'f', 'g', a ca.Function (x, p) → (f, g), a ca.NlpBuilder, or the "
    "name of a file with one"
)


@dataclass(frozen=True)
class Form:
    """A nonlinear program as symbols and expressions by ``x``, ``p``, ``f`` and ``g``."""

    entries: dict[str, Any]
    oracle: ca.Function | None = None  # foreign code with derivatives of its own; None for a graph
    numbers: dict[str, Any] = field(default_factory=dict)  # defaults in an .nl file


def read_form(nlp: Any) -> Form:
    """Convert a nonlinear program of any of CasADi's forms to symbols and expressions.

    A file is an ``.nl`` file, a ``.c`` file, or a shared library. The latter two have a function
    ``nlp`` and, as ``solver.generate_dependencies`` writes them, its derivatives.
    """
    if isinstance(nlp, ca.NlpBuilder):
        return Form(_of_builder(nlp))
    if isinstance(nlp, os.PathLike) or (isinstance(nlp, str) and nlp):
        return _of_file(str(nlp))
    if isinstance(nlp, ca.Importer):
        return _of_function(_external(nlp, "the ca.Importer"))
    if isinstance(nlp, ca.Function):
        return _of_function(nlp)
    if not isinstance(nlp, Mapping):
        raise InputError(f"nlp must be {_FORMS}; got {type(nlp).__name__}")
    for key in nlp:
        if key not in _KEYS:
            raise InputError(f"unknown entry {key!r} of the problem{suggest(key, _KEYS)}")
    if "x" not in nlp:
        raise InputError("the problem has no 'x'; give its variables")
    entries = {key: expression_of(value) for key, value in nlp.items()}
    if is_nothing(entries.get("f", 0)):
        entries["f"] = 0.0
    if isinstance(entries.get("f"), ca.SX | ca.MX) and not entries["f"].nnz():
        raise InputError(
            "f has no entry, as a matrix without nonzeros has none; a dense scalar is needed: "
            "leave f out where there is nothing to minimize"
        )
    return Form(entries)


def expression_of(value: Any) -> Any:
    """Convert a structure of ``casadi.tools`` or an array to an expression; others stay."""
    if isinstance(value, ca.SX | ca.MX | ca.DM):
        return value
    # Structures of casadi.tools convert themselves by these methods.
    for method in ("__SX__", "__MX__", "__DM__"):
        if hasattr(value, method):
            return getattr(value, method)()
    if not isinstance(value, np.ndarray) and hasattr(value, "__array__"):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return ca.DM(np.asarray(value, dtype=np.float64))
    if isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.ndim in (1, 2):
        rows = value[:, np.newaxis] if value.ndim == 1 else value
        try:
            return ca.vertcat(*(ca.horzcat(*row) for row in rows))
        except NotImplementedError:  # raised by CasADi for entries that are no expressions
            return value
    return value


def is_nothing(value: Any) -> bool:
    """True for the placeholders of a missing objective or parameter: ``[]``, ``SX()``, …."""
    if isinstance(value, ca.SX | ca.MX | ca.DM):
        return bool(value.is_empty())
    return isinstance(value, list | tuple) and not value


def _of_builder(builder: ca.NlpBuilder) -> dict[str, Any]:
    """Expressions of a builder; its bounds and its start are ignored, as by CasADi."""
    return {"x": ca.vertcat(*builder.x), "f": builder.f, "g": ca.vertcat(*builder.g)}


def _of_function(nlp: ca.Function) -> Form:
    if (nlp.name_in(), nlp.name_out()) != (["x", "p"], ["f", "g"]):
        raise InputError(
            f"the Function {nlp.name()!r} has inputs {', '.join(nlp.name_in())} and outputs "
            f"{', '.join(nlp.name_out())}; a problem has inputs x, p and outputs f, g: "
            "ca.Function(name, [x, p], [f, g], ['x', 'p'], ['f', 'g'])"
        )
    kind = ca.SX if nlp.is_a("SXFunction") else ca.MX
    x, p = (kind.sym(label, nlp.sparsity_in(i)) for i, label in enumerate("xp"))
    graph = nlp.is_a("SXFunction") or nlp.is_a("MXFunction")
    # A graph is inlined, to be differentiated as a whole; foreign code has to be called.
    f, g = nlp.call([x, p], graph, not graph)
    return Form({"x": x, "p": p, "f": f, "g": g}, None if graph else nlp)


def _of_file(name: str) -> Form:
    if not os.path.isfile(name):
        raise InputError(f"nlp is {name!r}, which is no file; give {_FORMS}")
    if name.endswith(".nl"):
        return _of_nl(name)
    if not name.endswith(".c"):
        # A whole path: the loader looks for a bare name in the folders of the system alone.
        return _of_function(_external(os.path.realpath(name), name))
    try:
        compiled = ca.Importer(name, "shell")
    except RuntimeError as error:
        raise InputError(f"{name} cannot be compiled: {last_line(error)}") from None
    return _of_function(_external(compiled, name))


def _external(library: Any, name: str) -> ca.Function:
    try:
        return ca.external("nlp", library)
    except RuntimeError as error:
        raise InputError(
            f"{name} gives no function 'nlp', (x, p) → (f, g): {last_line(error)}. "
            "solver.generate_dependencies writes its C code"
        ) from None


def _of_nl(name: str) -> Form:
    with open(name, "rb") as file:
        header = [file.readline(_LINE).partition(b"#")[0].split() for _ in range(10)]
    # CasADi reads a malformed header for ever, or allocates whatever memory it states.
    if not header[0] or any(not line or not all(map(bytes.isdigit, line)) for line in header[1:]):
        raise InputError(f"{name} cannot be read: its header is not ten lines of whole numbers")
    size = os.path.getsize(name)
    # The second line of the format begins with the numbers of variables and of rows.
    n, m = (int(word) for word in [*header[1], b"0"][:2])
    if n + m > size:
        raise InputError(
            f"{name} cannot be read: its header has {n} variables and {m} rows, and the file "
            f"{size} bytes, less than one for each"
        )
    builder = ca.NlpBuilder()
    try:
        builder.import_nl(name, {"verbose": False})
    except (RuntimeError, UnicodeDecodeError) as error:
        raise InputError(f"{name} cannot be read: {last_line(error)}") from None
    if any(builder.discrete):
        i = list(builder.discrete).index(True)
        raise InputError(
            f"{name} has integer variables, x[{i}] the first; only real variables are supported; "
            "use a mixed-integer solver such as bonmin"
        )
    numbers: dict[str, Any] = {
        "lbx": builder.x_lb,
        "ubx": builder.x_ub,
        "lbg": builder.g_lb,
        "ubg": builder.g_ub,
        "x0": builder.x_init,
        "lam_g0": _multipliers(name, builder.lambda_init),
    }
    return Form(_of_builder(builder), None, {k: v for k, v in numbers.items() if len(v)})


def _multipliers(name: str, duals: list[float]) -> list[float]:
    """Multipliers of the minimized f, from the duals of a file."""
    if not any(duals):
        return duals
    # AMPL's dual is the change of the objective by a bound. If f is minimized, the multiplier is
    # the opposite; if an objective is maximized, CasADi minimizes its negative.
    with open(name, "rb") as file:
        maximized = any(
            line.split(b"#")[0].split()[1:] == [b"1"] for line in file if line[:1] == b"O"
        )
    return duals if maximized else [-dual for dual in duals]
