"""CasADi's scalar operations as C, each by the formula that CasADi evaluates itself."""

from __future__ import annotations

import casadi as ca

_PREFIX = "OP_"
_INFIX = {"ADD": "+", "SUB": "-", "MUL": "*", "DIV": "/"}
_TESTS = {"LT": "<", "LE": "<=", "EQ": "==", "NE": "!=", "AND": "&&", "OR": "||"}
_OF_ONE = (
    "EXP", "LOG", "SQRT", "SIN", "COS", "TAN", "ASIN", "ACOS", "ATAN", "FLOOR", "CEIL", "FABS",
    "ERF", "SINH", "COSH", "TANH", "ASINH", "ACOSH", "ATANH", "LOG1P", "EXPM1",
)  # fmt: skip
_OF_TWO = ("POW", "FMOD", "REMAINDER", "COPYSIGN", "FMIN", "FMAX", "ATAN2", "HYPOT")
_FORMULAS = {
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

_LONG = 500_000  # characters of C
_FLAGS = (
    # A compiler that knows these would call sincos for the two, or another function for a power,
    # whose last bit may be another one.
    *(f"-fno-builtin-{name}" for name in ("sin", "cos", "pow", "exp", "log", "fmin", "fmax")),
)


def flags(size: int) -> tuple[str, ...]:
    """Of the compiler, for so many characters of C. More for long code would only take longer."""
    return ("-O1" if size > _LONG else "-O2", *_FLAGS)


def name_of(operation: int) -> str:
    """CasADi's word for an operation."""
    words = (word for word in dir(ca) if word.startswith(_PREFIX))
    found = next((word for word in words if getattr(ca, word) == operation), None)
    return f"operation {operation}" if found is None else found.removeprefix(_PREFIX).lower()
