"""The collection of square systems g(x) = 0, from two to a thousand unknowns."""

from __future__ import annotations

from problems.squares_base import Square
from problems.squares_classic import classic_squares
from problems.squares_mechanics import mechanics_squares
from problems.squares_power import power_squares
from problems.squares_process import process_squares

SQUARES: tuple[Square, ...] = (
    *classic_squares(),
    *process_squares(),
    *mechanics_squares(),
    *power_squares(),
)

__all__ = ["SQUARES", "Square"]
