"""What is kept of a step of an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Record:
    """One step of an estimator.

    Attributes:
        time: of it.
        success: whether the window was solved; without it the estimate is a prediction.
        status: the solver's word.
        iterations: of the solver.
        seconds: of the whole step.
        measured: number of measured numbers in the window.
        costs: measurements, disturbance, arrival.
        parameters: the free ones by name, as estimated.
    """

    time: float
    success: bool
    status: str
    iterations: int
    seconds: float
    measured: int
    costs: Mapping[str, float] = field(repr=False)
    parameters: Mapping[str, Any] = field(repr=False)
