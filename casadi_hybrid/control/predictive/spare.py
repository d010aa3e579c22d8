"""What is applied where there is no plan for a measurement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.ocp import OptimalControl
from casadi_hybrid.control.predictive.step import DEFAULT, FALLBACK
from casadi_hybrid.control.signals import Array

Fallback = Callable[[Array, float], Any]


class Spare:
    """A user's function, then zero.

    Args:
        ocp: the problem, whose controls these are.
        fallback: a function (x, time) → controls; None where there is none.
    """

    def __init__(self, ocp: OptimalControl, fallback: Fallback | None) -> None:
        self._model, self._fallback = ocp.model, fallback
        self._lower, self._upper = (ocp.model.limits("control", w) for w in ("lower", "upper"))

    def clipped(self, control: Array) -> Array:
        """Return controls within their limits."""
        return np.clip(control, self._lower, self._upper)

    def control(self, state: Array, time: float) -> tuple[Array, str, str]:
        """Return the controls, their status, and how the function has failed where it has."""
        failed = ""
        if self._fallback is not None:
            try:
                return self._asked(self._fallback(state, time)), FALLBACK, ""
            except Exception as error:  # noqa: BLE001, the loop goes on without it
                failed = f"the fallback failed: {type(error).__name__}: {error}"
        none = np.zeros(self._lower.size)
        inside = (self._lower <= 0.0) & (self._upper >= 0.0)
        bounded = np.isfinite(self._lower) & np.isfinite(self._upper)
        with np.errstate(invalid="ignore"):
            middle = np.where(bounded, (self._lower + self._upper) / 2, none)
        return np.where(inside, none, middle), DEFAULT, failed

    def _asked(self, value: Any) -> Array:
        """The controls that a fallback returned.

        Raises:
            InputError: where they are no finite numbers of the right shape.
        """
        control: Array = self._model.vector("control", value, "its answer")
        if not np.isfinite(control).all():
            raise InputError("its answer is not finite")
        return control
