"""What all estimators of states and parameters have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.estimation.beliefs import Beliefs
from casadi_hybrid.control.estimation.record import Record
from casadi_hybrid.control.loop.plant import first_guess
from casadi_hybrid.control.signals import Array


class Estimator:
    """An estimate that is asked for by name, and the records of its steps.

    Args:
        believed: of the plant, its sensors and the noise.
        x0: mean of the prior, a column or by name; by default the guesses of the model.

    Attributes:
        model, period, sensors: of the plant.
        record, records: of the last step, of all since the start. A loop that runs for days deletes
            them, but for the last: ``del mhe.records[:-1]``.
    """

    def __init__(self, believed: Beliefs, x0: Any) -> None:
        self._believed = believed
        self.model, self.period, self.sensors = believed.model, believed.period, believed.sensors
        self._start = first_guess(self.model, "state")
        self.reset(x0)

    def reset(self, x0: Any = None) -> None:
        """Forget all measurements; the next step is the first.

        Args:
            x0: mean of the prior from now on, a column or by name.
        """
        if x0 is not None:
            self._start = np.asarray(self.model.vector("state", x0, "x0", self._start))
        self._mean = self._believed.mean(self._start)
        self.records: list[Record] = []

    @property
    def record(self) -> Record:
        """Of the last step."""
        if not self.records:
            raise InputError("there was no step yet; call step(y, u)")
        return self.records[-1]

    @property
    def success(self) -> bool:
        """Whether the last window was solved; of a filter, whether its estimate is finite."""
        return self.record.success

    @property
    def estimate(self) -> Array:
        """The state now, a column."""
        return self._mean[: self.model.size("state")].copy()

    @property
    def parameters(self) -> dict[str, Any]:
        """The free parameters by name, as estimated: numbers, or columns."""
        return self._believed.parameters(self._mean)
