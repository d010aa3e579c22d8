"""One iterate, as the core shows it."""

from __future__ import annotations

from typing import NamedTuple

from casadi_hybrid.utils.inputs import Vector


class View(NamedTuple):
    """One iterate in the user's units; the arrays are copies."""

    row: list[float]  # values of solver.record.record.LISTED, and the seconds
    x: Vector
    g: Vector
    lam_x: Vector
    lam_g: Vector
    restoring: bool  # in the restoration phase
