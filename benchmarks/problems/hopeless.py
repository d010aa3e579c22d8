"""The collection of hopeless cases and traps, each with what is known to be true of it."""

from __future__ import annotations

from typing import Any

from support.problems.published import build_problem, collection

from problems.hopeless_base import GOOD, Trap
from problems.hopeless_control import control_traps
from problems.hopeless_large import large_traps


def small_trap(truth: str, good: tuple[str, ...] = (), f_star: Any = None, **known: Any) -> Trap:
    """Return a trap of a line of the table."""
    known.pop("source")
    return Trap(truth=truth, good=good or GOOD[truth], f_star=f_star, **known)


SMALL = tuple(small_trap(**known) for known in collection("hopeless", build_problem))
TRAPS: tuple[Trap, ...] = (*SMALL, *control_traps(), *large_traps())

__all__ = ["TRAPS", "Trap"]
