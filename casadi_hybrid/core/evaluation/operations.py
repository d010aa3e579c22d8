"""CasADi's scalar operations as C, each by the formula that CasADi evaluates itself."""

from __future__ import annotations

from functools import cache
from math import copysign

import casadi as ca
import numpy as np
from numpy.typing import NDArray

_PREFIX = "OP_"
_INFIX = {"ADD": "+", "SUB": "-", "MUL": "*", "DIV": "/"}
_TESTS = {"LT": "<", "LE": "<=", "EQ": "==", "NE": "!=", "AND": "&&", "OR": "||"}
_OF_ONE = (
    "EXP", "LOG", "SQRT", "SIN", "COS", "TAN", "ASIN", "ACOS", "ATAN", "FLOOR", "CEIL", "FABS",
    "ERF", "SINH", "COSH", "TANH", "ASINH", "ACOSH", "ATANH", "LOG1P", "EXPM1",
)  # fmt: skip
_OF_TWO = ("POW", "FMOD", "REMAINDER", "COPYSIGN", "ATAN2", "HYPOT")


# Of 0 and -0, which are equal, the smaller and the larger may be the first, the second, or one of
# the two whatever their order: that hangs on the compiler of CasADi, which is asked (`_extreme`).
_FORMULAS = {
    "FMIN": "fmin({0}, {1})",
    "FMIN_FIRST": "{1} < {0} || {0} != {0} ? {1} : {0}",
    "FMIN_SECOND": "{0} < {1} || {1} != {1} ? {0} : {1}",
    "FMAX": "fmax({0}, {1})",
    "FMAX_FIRST": "{1} > {0} || {0} != {0} ? {1} : {0}",
    "FMAX_SECOND": "{0} > {1} || {1} != {1} ? {0} : {1}",
    "ASSIGN": "{0}",
    "LIFT": "{0}",
    "NEG": "-{0}",
    "SQ": "{0} * {0}",
    "TWICE": "2.0 * {0}",
    "INV": "1.0 / {0}",
    "NOT": "(double)!{0}",
    "CONSTPOW": "pow({0}, {1})",
    "SIGN": "{0} < 0 ? -1.0 : {0} > 0 ? 1.0 : {0}",
    "IF_ELSE_ZERO": "{0} == 0 ? 0.0 : {1}",
    **{name: f"{{0}} {sign} {{1}}" for name, sign in _INFIX.items()},
    **{name: f"(double)({{0}} {sign} {{1}})" for name, sign in _TESTS.items()},
    **{name: f"{name.lower()}({{0}})" for name in _OF_ONE},
    **{name: f"{name.lower()}({{0}}, {{1}})" for name in _OF_TWO},
}
NUMBER: dict[str, int] = {name: number for number, name in enumerate(_FORMULAS)}
"""The operations by names like CasADi's, numbered here: its own numbers differ between versions,
and what is compiled once serves all of them."""
FORMULAS: tuple[str, ...] = tuple(_FORMULAS.values())
"""The C of an operation by its number, {0} and {1} its operands.

What is missing (``erfinv``, calls of other functions, printing) is left to the interpreter.
"""
CONSTANT, INPUT, OUTPUT = range(len(FORMULAS), len(FORMULAS) + 3)
"""Instructions that are no operation, by numbers as these."""


def _extreme(name: str) -> str:
    """The formula by which CasADi's fmin or fmax goes, in the words of the table above."""
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    ask = ca.Function("ask", [x, y], [getattr(ca, name.lower())(x, y)])
    negative = copysign(1.0, float(ask(0.0, -0.0))) < 0, copysign(1.0, float(ask(-0.0, 0.0))) < 0
    return name + {(False, True): "_FIRST", (True, False): "_SECOND"}.get(negative, "")


@cache
def _translation() -> NDArray[np.int32]:
    """By CasADi's number of an operation that of this file, -1 where it has none."""
    named = {name: NUMBER[name] for name in NUMBER if hasattr(ca, _PREFIX + name)}
    named |= {name: NUMBER[_extreme(name)] for name in ("FMIN", "FMAX")}
    named |= {"CONST": CONSTANT, "INPUT": INPUT, "OUTPUT": OUTPUT}
    table = np.full(1 + max(getattr(ca, _PREFIX + name) for name in named), -1, np.int32)
    for name, number in named.items():
        table[getattr(ca, _PREFIX + name)] = number
    return table


def translated(operations: NDArray[np.int32]) -> NDArray[np.int32]:
    """CasADi's numbers as those of this file, -1 for operations without a formula."""
    table = _translation()
    known = (operations >= 0) & (operations < table.size)
    return np.where(known, table[np.where(known, operations, 0)], np.int32(-1))


@cache
def number_in_casadi(number: int) -> int:
    """CasADi's number of an operation of this file."""
    name = list(NUMBER)[number].removesuffix("_FIRST").removesuffix("_SECOND")
    return int(getattr(ca, _PREFIX + name))


_LONG = 200_000  # characters of C
SAME_BITS = (
    # A compiler that knows these may call sincos for the two, or another function for a power,
    # whose last bit may be another one.
    *(f"-fno-builtin-{name}" for name in ("sin", "cos", "pow", "exp", "log")),
)
"""Flags without which bits would hang on the compiler."""


def cases() -> str:
    """``c/operations.h``: the same formulas as cases of ``c/lanes.c``, for many numbers at once."""
    lines = ["/* Written by operations.py, `cases`: a test holds the two together. */"]
    made = (formula.format("x[i]", "y[i]") for formula in FORMULAS)
    return "\n".join([*lines, *(f"CASE({k}, {formula})" for k, formula in enumerate(made)), ""])


def flags(size: int) -> tuple[str, ...]:
    """Of the compiler, for so many characters of C.

    Long straight code runs as fast under -Og as under -O2, which takes three times as long over it.
    """
    return ("-Og" if size > _LONG else "-O2", *SAME_BITS)


def name_of(operation: int) -> str:
    """CasADi's word for an operation."""
    words = (word for word in dir(ca) if word.startswith(_PREFIX))
    found = next((word for word in words if getattr(ca, word) == operation), None)
    return f"operation {operation}" if found is None else found.removeprefix(_PREFIX).lower()
