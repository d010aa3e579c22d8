"""Refuse problems whose functions need more than the three headers of an export."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import casadi as ca

from casadi_hybrid.core.evaluation.operations import name_of
from casadi_hybrid.utils.errors import InputError

# Headers that an export includes.
HEADERS = ("math.h", "string.h", "float.h")
_PRINTS = tuple(
    getattr(ca, name) for name in ("OP_PRINTME", "OP_MONITOR", "OP_DUMP") if hasattr(ca, name)
)  # CasADi 3.7 has no OP_DUMP
# Functions known by their class; CasADi itself refuses others.
_FOREIGN = {
    "GenericExternal": "the external function {}",
    "External": "the external function {}",
    "CallbackInternal": "{}, which is Python code (a ca.Callback)",
    "ThreadMap": "the map {} over threads",
}
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]+)[>\"]", re.MULTILINE)
_OPENMP = re.compile(r"^[ \t]*#pragma omp [^\n]*\n", re.MULTILINE)
_ERFINV = re.compile(r"\berfinv\s*\(")
# CasADi's formula; C99 has no erfinv.
_ERFINV_TEXT = """\
#include <math.h>
static double {name}(double x) {{
    double y, z;
    if (x >= 1)
        return x == 1 ? INFINITY : NAN;
    if (x <= -1)
        return x == -1 ? -INFINITY : NAN;
    if (x < -0.7) {{
        z = sqrt(-log((1.0 + x) / 2.0));
        return -(((1.641345311 * z + 3.429567803) * z - 1.624906493) * z - 1.970840454) /
               ((1.637067800 * z + 3.543889200) * z + 1.0);
    }}
    if (x < 0.7) {{
        z = x * x;
        y = x * (((-0.140543331 * z + 0.914624893) * z - 1.645349621) * z + 0.886226899) /
            ((((-0.329097515 * z + 0.012229801) * z + 1.442710462) * z - 2.118377725) * z + 1.0);
    }} else {{
        z = sqrt(-log((1.0 - x) / 2.0));
        y = (((1.641345311 * z + 3.429567803) * z - 1.624906493) * z - 1.970840454) /
            ((1.637067800 * z + 3.543889200) * z + 1.0);
    }}
    y = y - (erf(y) - x) / (2.0 / sqrt(3.14159265358979323846) * exp(-y * y));
    y = y - (erf(y) - x) / (2.0 / sqrt(3.14159265358979323846) * exp(-y * y));
    return y;
}}
"""


def refuse_foreign(functions: Iterable[ca.Function]) -> None:
    """Refuse functions that CasADi writes no C for."""
    foreign = [
        _FOREIGN[function.class_name()].format(repr(function.name()))
        for function in _with_called(functions)
        if function.class_name() in _FOREIGN
    ]
    if foreign:
        _refuse(f"there is no C for {_listed(foreign)}")


def with_own(text: str, name: str) -> str:
    """Add ``erfinv``, which C99 lacks, by CasADi's formula, and remove pragmas of OpenMP."""
    # A map without its pragma is a loop with the same numbers; an unknown pragma warns.
    text = _OPENMP.sub("", text)
    erfinv = f"{name}_erfinv"
    changed, count = _ERFINV.subn(f"{erfinv}(", text)
    return f"{_ERFINV_TEXT.format(name=erfinv)}{changed}" if count else text


def refuse_unwritten(text: str, functions: Iterable[ca.Function]) -> None:
    """Refuse C that includes other headers; name the operation that prints, if there is one."""
    headers = set(_INCLUDE.findall(text)) - set(HEADERS)
    if headers:
        _refuse(
            f"{_listed(_printing(functions)) or 'a part of the problem'} needs {_listed(headers)}"
        )


def _refuse(why: str) -> None:
    raise InputError(
        f"an export has {', '.join(HEADERS[:-1])} and {HEADERS[-1]} and nothing else, and {why}; "
        "leave it out, or state it as a graph of CasADi's operations"
    )


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(set(words)))


def _printing(functions: Iterable[ca.Function]) -> Iterator[str]:
    """Operations that print or write files, each with its function."""
    for function in _with_called(functions):
        if function.is_a("SXFunction") or function.is_a("MXFunction"):
            ids = {function.instruction_id(k) for k in range(function.n_instructions())}
            yield from (f"{name_of(k)} (in {function.name()!r})" for k in ids if k in _PRINTS)


def _with_called(functions: Iterable[ca.Function]) -> Iterator[ca.Function]:
    """The functions and all functions that they call."""
    for function in functions:
        yield function
        yield from function.find_functions()
