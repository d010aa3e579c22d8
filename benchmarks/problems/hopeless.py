"""The collection of hopeless cases and traps, each with what is known to be true of it."""

from __future__ import annotations

from problems.hopeless_base import Trap
from problems.hopeless_control import control_traps
from problems.hopeless_large import large_traps
from problems.hopeless_small import small_traps

TRAPS: tuple[Trap, ...] = (*small_traps(), *control_traps(), *large_traps())

__all__ = ["TRAPS", "Trap"]
