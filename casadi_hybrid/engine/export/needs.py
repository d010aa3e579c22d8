"""What the C of a problem's functions needs beyond the three headers that an export has.

CasADi writes calls of functions that somebody else is to link, and includes whatever a part asks
for. Both are found in its text, whatever part they come from, so that nothing is written that does
not compile; where it is known which part it is, that is what the refusal names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import casadi as ca

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.engine.blocks.operations import name_of

HEADERS = ("math.h", "string.h", "float.h")
"""All that an export includes."""
_C99 = frozenset((
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign"),
    *("cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "fdim", "floor", "fma"),
    *("fmax", "fmin", "fmod", "hypot", "isfinite", "isinf", "isnan", "ldexp", "lgamma", "log"),
    *("log10", "log1p", "log2", "nearbyint", "pow", "remainder", "rint", "round", "signbit"),
    *("sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc"),
    *("memcmp", "memcpy", "memmove", "memset"),
))  # fmt: skip
"""Functions of C99 in those headers."""
_WORDS = frozenset((
    *("for", "if", "return", "sizeof", "switch", "while"),
    *("char", "double", "float", "int", "long", "unsigned", "void"),  # before (*function)
))  # fmt: skip
_PRINTS = tuple(
    getattr(ca, name) for name in ("OP_PRINTME", "OP_MONITOR", "OP_DUMP") if hasattr(ca, name)
)  # CasADi 3.7 has no OP_DUMP
_FOREIGN = {
    "GenericExternal": "the external function {}",
    "External": "the external function {}",
    "CallbackInternal": "{}, which is Python code (a ca.Callback)",
    "ThreadMap": "the map {} over threads",
}
"""What is known by its class; others are refused by CasADi, or are found in the text."""
_NO_CODE = re.compile(
    r'/\*.*?\*/|//[^\n]*|^[ \t]*#[^\n]*|"(?:[^"\\\n]|\\.)*"', re.DOTALL | re.MULTILINE
)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]+)[>\"]", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_BODY = re.compile(r"\b([A-Za-z_]\w*)\s*\((?:[^(){};]|\([^(){};]*\))*\)\s*\{")
_OPENMP = re.compile(r"^[ \t]*#pragma omp [^\n]*\n", re.MULTILINE)
_ERFINV = re.compile(r"\berfinv\s*\(")
# CasADi's own formula: there is none in C99.
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
    """Look for functions that CasADi writes no C for."""
    found = [
        _FOREIGN[kind].format(repr(one.name()))
        for one in _every(functions)
        if (kind := one.class_name()) in _FOREIGN
    ]
    if found:
        _refuse(f"there is no C for {_listed(found)}")


def with_own(text: str, name: str) -> str:
    """The text with what C99 lacks and can be written: ``erfinv`` by CasADi's formula.

    Maps with OpenMP become loops, with the same numbers: a pragma is a warning where it is unknown.
    """
    text = _OPENMP.sub("", text)
    own = f"{name}_erfinv"
    changed, count = _ERFINV.subn(f"{own}(", text)
    return f"{_ERFINV_TEXT.format(name=own)}{changed}" if count else text


def refuse_unwritten(text: str, functions: Iterable[ca.Function]) -> None:
    """Look in the text for other headers, and for calls of what is not in it.

    Args:
        text: what CasADi wrote.
        functions: of which it is.
    """
    headers = set(_INCLUDE.findall(text)) - set(HEADERS)
    if headers:
        _refuse(
            f"{_listed(_printing(functions)) or 'a part of the problem'} needs {_listed(headers)}"
        )
    code = _NO_CODE.sub(" ", text)
    there = _C99 | _WORDS | set(_MACRO.findall(text)) | set(_BODY.findall(code))
    missing = set(_CALL.findall(code)) - there
    if missing:
        _refuse(f"a part of the problem calls {_listed(missing)}, which is nowhere in C")


def _refuse(why: str) -> None:
    raise InputError(
        f"an export has {', '.join(HEADERS[:-1])} and {HEADERS[-1]} and nothing else, and {why}; "
        "leave it out, or state it as a graph of CasADi's operations"
    )


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(set(words)))


def _printing(functions: Iterable[ca.Function]) -> Iterator[str]:
    """What prints or writes files, by its operation and the function it stands in."""
    for one in _every(functions):
        if one.is_a("SXFunction") or one.is_a("MXFunction"):
            ids = {one.instruction_id(k) for k in range(one.n_instructions())}
            yield from (f"{name_of(k)} (in {one.name()!r})" for k in ids if k in _PRINTS)


def _every(functions: Iterable[ca.Function]) -> Iterator[ca.Function]:
    """The functions and all that are called in them."""
    for one in functions:
        yield one
        yield from one.find_functions()
