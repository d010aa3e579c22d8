"""One residual of a point: its value, its size beside its terms, and where it is largest."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """One residual in the infinity norm.

    Attributes:
        value: unscaled.
        scaled: relative to the size of the terms it is the sum of.
        where: the constraint or the variable with the largest unscaled entry.
    """

    value: float
    scaled: float
    where: str

    def within(self, tol: float, *, scaled: bool) -> bool:
        """Whether the residual is within ``tol``; NaN never is."""
        return (self.scaled if scaled else self.value) <= tol
