"""CasADi's scalar operations as C, each by the formula that CasADi evaluates itself."""

from __future__ import annotations

from math import copysign

import casadi as ca

_PREFIX = "OP_"
_INFIX = {"ADD": "+", "SUB": "-", "MUL": "*", "DIV": "/"}
_TESTS = {"LT": "<", "LE": "<=", "EQ": "==", "NE": "!=", "AND": "&&", "OR": "||"}
_OF_ONE = (
    "EXP", "LOG", "SQRT", "SIN", "COS", "TAN", "ASIN", "ACOS", "ATAN", "FLOOR", "CEIL", "FABS",
    "ERF", "SINH", "COSH", "TANH", "ASINH", "ACOSH", "ATANH", "LOG1P", "EXPM1",
)  # fmt: skip
_OF_TWO = ("POW", "FMOD", "REMAINDER", "COPYSIGN", "ATAN2", "HYPOT")


def _extreme(name: str, sign: str) -> str:
    """The C of the smaller or the larger of two numbers.

    Of 0 and -0, which are equal, it may be the first, the second, or one of the two whatever their
    order: that hangs on the compiler of CasADi, which is asked.
    """
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    ask = ca.Function("ask", [x, y], [getattr(ca, name)(x, y)])
    negative = copysign(1.0, float(ask(0.0, -0.0))) < 0, copysign(1.0, float(ask(-0.0, 0.0))) < 0
    if negative == (False, True):
        return f"{{1}} {sign} {{0}} || {{0}} != {{0}} ? {{1}} : {{0}}"
    if negative == (True, False):
        return f"{{0}} {sign} {{1}} || {{1}} != {{1}} ? {{0}} : {{1}}"
    return f"{name}({{0}}, {{1}})"


_FORMULAS = {
    "FMIN": _extreme("fmin", "<"),
    "FMAX": _extreme("fmax", ">"),
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

FORMULAS: dict[int, str] = {
    getattr(ca, _PREFIX + name): formula
    for name, formula in _FORMULAS.items()
    if hasattr(ca, _PREFIX + name)
}
"""The C of an operation by CasADi's number of it, {0} and {1} its operands.

What is missing (``erfinv``, calls of other functions, printing) is left to the interpreter.
"""
ADD, SUBTRACT = ca.OP_ADD, ca.OP_SUB
CONSTANT, INPUT, OUTPUT = ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT

_LONG = 200_000  # characters of C
SAME_BITS = (
    # A compiler that knows these may call sincos for the two, or another function for a power,
    # whose last bit may be another one.
    *(f"-fno-builtin-{name}" for name in ("sin", "cos", "pow", "exp", "log")),
)
"""Flags without which bits would hang on the compiler."""


def cases() -> str:
    """What ``c/lanes.c`` does for each operation: the same formulas, for many numbers at once."""
    lines = []
    for number, formula in sorted(FORMULAS.items()):
        made = formula.format("x[i]", "y[i]")
        lines.append(f"case {number}:\nfor (i = 0; i < width; i++) z[i] = {made};\nbreak;\n")
    return "".join(lines)


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
