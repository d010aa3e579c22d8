"""What an estimator believes: how the model moves, what is measured, and how certain each is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import positive
from casadi_hybrid.control.estimation.arrival import Filter
from casadi_hybrid.control.estimation.given import Unknown, deviations, stacked, unknowns
from casadi_hybrid.control.loop.noise import covariance
from casadi_hybrid.control.loop.plant import first_guess
from casadi_hybrid.control.loop.sensors import Sensors
from casadi_hybrid.control.model import Model
from casadi_hybrid.control.signals import Array
from casadi_hybrid.control.steps import DiscreteMap, Integrator, RungeKutta


@dataclass(frozen=True)
class Beliefs:
    """The checked arguments that all estimators have.

    Attributes:
        model: of the plant.
        period: between steps.
        step: of the model.
        sensors: what is measured.
        noise, disturbance: covariances of measurements, and of the states in a period.
        unknowns: the free parameters by name.
        prior: covariance at the start of ξ, the states and below them the free parameters.
        u0: the control before the first step.
        filter: the extended Kalman filter of ξ.
    """

    model: Model
    period: float
    step: Any
    sensors: Sensors
    noise: Array
    disturbance: Array
    unknowns: dict[str, Unknown]
    prior: Array
    u0: Array
    filter: Filter

    @classmethod
    def of(
        cls,
        model: Model,
        period: float,
        *,
        noise: Any,
        prior: Any,
        process: Any,
        outputs: Sequence[str] | None,
        u0: Any,
        free: Mapping[str, Any] | None,
        step: RungeKutta | Integrator | None,
    ) -> Beliefs:
        """Check the arguments of an estimator; see :class:`MHE`.

        Raises:
            InputError: for arguments that do not fit, by name.
        """
        if not isinstance(model, Model):
            raise InputError(f"model must be a Model, got {type(model).__name__}")
        period = positive(period, "period")
        sensors = Sensors(model, outputs)
        of_noise = covariance(noise, sensors.places, "noise")
        if np.linalg.eigvalsh(of_noise)[0] <= 0.0:
            raise InputError("noise must be positive for all that is measured")
        states = model.places("state")
        disturbance = covariance(process, states, "process")
        found = unknowns(model, free)
        n = model.size("state")
        full = np.diag(np.concatenate((np.zeros(n), stacked(found, "std") ** 2)))
        full[:n, :n] = covariance(deviations(model, prior, "prior"), states, "prior")
        drift = np.diag(np.concatenate((np.zeros(n), stacked(found, "drift") ** 2)))
        drift[:n, :n] = disturbance
        method: Any = step
        if model.discrete:
            method = DiscreteMap()
        elif step is None:
            method = Integrator("idas") if model.size("algebraic") else RungeKutta()
        places = model.places("parameter")
        at = [i for name in found for i in range(places[name].start, places[name].stop)]
        before = first_guess(model, "control") if u0 is None else np.asarray(
            model.vector("control", u0, "u0"))  # fmt: skip
        kalman = Filter(model, sensors, method, period, at, of_noise, drift)
        return cls(model, period, method, sensors, of_noise, disturbance, found, full, before,
                   kalman)  # fmt: skip

    def mean(self, start: Array) -> Array:
        """Return ξ at the start: these states and the guesses of the free parameters."""
        return np.concatenate((start, stacked(self.unknowns, "guess")))

    def parameters(self, now: Array) -> dict[str, Any]:
        """Return the free parameters in ξ by name: numbers, or columns."""
        found: dict[str, Any] = {}
        at = self.model.size("state")
        for name, unknown in self.unknowns.items():
            size = unknown.std.size
            values = now[at : at + size].copy()
            found[name] = float(values[0]) if size == 1 else values
            at += size
        return found
