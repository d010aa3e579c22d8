"""Whether the loaded core computes what it should: asked by ``casadi-hybrid doctor``."""

from __future__ import annotations

import ctypes
from fractions import Fraction

from casadi_hybrid.engine.structures import INTERFACE


def self_test(core: ctypes.CDLL) -> str:
    """Run small computations on the core.

    Args:
        core: what :func:`~casadi_hybrid.engine.library.engine` returned.

    Returns:
        An empty text where all went well, else a sentence about the first that did not.
    """
    for check in (_interface, _arithmetic):
        fault = check(core)
        if fault:
            return fault
    return ""


def _interface(core: ctypes.CDLL) -> str:
    found = int(core.hybrid_interface_version())
    return "" if found == INTERFACE else f"its interface is {found}, not {INTERFACE}"


def _arithmetic(core: ctypes.CDLL) -> str:
    """Products are rounded before they are subtracted, as they are in Python."""
    difference = core.hybrid_rounded_difference
    difference.argtypes, difference.restype = [ctypes.c_double] * 3, ctypes.c_double
    a = 1.0 + 2.0**-30
    exact = Fraction(a) * Fraction(a) - Fraction(a * a)
    found = difference(a, a, a * a)
    if found == 0.0:
        return ""
    how = "fused products" if found == float(exact) else "numbers of another precision"
    return f"its arithmetic is not that of Python: it has {how}, a difference of {found:.3g}"
