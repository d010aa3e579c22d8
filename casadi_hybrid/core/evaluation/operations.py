"""CasADi's scalar operations as C, each by the formula that CasADi evaluates itself."""

from __future__ import annotations

import re
from functools import cache
from math import copysign
from pathlib import Path

import casadi as ca
import numpy as np
from numpy.typing import NDArray

_PREFIX = "OP_"
_CASE = re.compile(r"^CASE\(\d+, (\w+), (.+)\)$", re.MULTILINE)
_CASES = _CASE.findall(Path(__file__).with_name("c").joinpath("operations.h").read_text("utf-8"))
# Numbers of the operations by CasADi's names. CasADi's own numbers differ between its versions;
# code with these numbers serves all versions.
NUMBER: dict[str, int] = {name: number for number, (name, _) in enumerate(_CASES)}
# C of each operation by its number; {0} and {1} are the operands.
FORMULAS = tuple(f.replace("x[i]", "{0}").replace("y[i]", "{1}") for _, f in _CASES)
# Numbers of the instructions that are no operations.
CONSTANT, INPUT, OUTPUT = range(len(FORMULAS), len(FORMULAS) + 3)
_LONG = 200_000  # characters of C
# Flags without which bits depend on the compiler. It may merge sin and cos into sincos, or call
# another function for a power, with another last bit.
SAME_BITS = tuple(f"-fno-builtin-{name}" for name in ("sin", "cos", "pow", "exp", "log"))


def _extreme(name: str) -> str:
    """Name of the formula that CasADi's fmin or fmax follows for 0 and -0."""
    # C leaves the sign of fmin(0, −0) open: this CasADi's own answer decides.
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    probe = ca.Function("probe", [x, y], [getattr(ca, name.lower())(x, y)])
    first, second = (copysign(1.0, float(probe(zero, -zero))) for zero in (0.0, -0.0))
    negative = first < 0, second < 0
    return name + {(False, True): "_FIRST", (True, False): "_SECOND"}.get(negative, "")


@cache
def _translation() -> NDArray[np.int32]:
    """Number of each operation by CasADi's number; -1 for an operation without a formula."""
    named = {name: NUMBER[name] for name in NUMBER if hasattr(ca, _PREFIX + name)}
    named |= {name: NUMBER[_extreme(name)] for name in ("FMIN", "FMAX")}
    named |= {"CONST": CONSTANT, "INPUT": INPUT, "OUTPUT": OUTPUT}
    table = np.full(1 + max(getattr(ca, _PREFIX + name) for name in named), -1, np.int32)
    for name, number in named.items():
        table[getattr(ca, _PREFIX + name)] = number
    return table


def translated(operations: NDArray[np.int32]) -> NDArray[np.int32]:
    """Translate CasADi's numbers of operations; -1 for operations without a formula."""
    table = _translation()
    known = (operations >= 0) & (operations < table.size)
    return np.where(known, table[np.where(known, operations, 0)], np.int32(-1))


@cache
def number_in_casadi(number: int) -> int:
    """CasADi's number of an operation."""
    name = _CASES[number][0].removesuffix("_FIRST").removesuffix("_SECOND")
    return int(getattr(ca, _PREFIX + name))


def flags(size: int) -> tuple[str, ...]:
    """Flags of the compiler for ``size`` characters of C."""
    # Long straight code runs as fast under -Og as under -O2, which compiles three times as long.
    return ("-Og" if size > _LONG else "-O2", *SAME_BITS)


def name_of(operation: int) -> str:
    """Name of an operation, by CasADi's number."""
    for name in dir(ca):
        if name.startswith(_PREFIX) and getattr(ca, name) == operation:
            return name.removeprefix(_PREFIX).lower()
    return f"operation {operation}"
