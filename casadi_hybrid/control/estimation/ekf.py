"""The extended Kalman filter as an estimator."""

from __future__ import annotations

import time as clock
from typing import Any

import numpy as np

from casadi_hybrid.control.estimation.arrival import Gaussian, Place
from casadi_hybrid.control.estimation.estimator import Estimator, Record
from casadi_hybrid.control.signals import Array


class EKF(Estimator):
    """The extended Kalman filter of states and free parameters: no window, no limits.

    A step predicts, then takes the measurement, by the formulas of
    :mod:`casadi_hybrid.control.estimation.arrival`, linearized at the mean; a measurement that was
    lost leaves the prediction. It takes the arguments of :class:`MHE` and can stand in for it in
    :func:`simulate`: nearly as good where no limit matters and a period is nearly linear, cheaper.

    Args:
        model: of the plant, its parameters as the estimator believes them; without algebraic
            states, and references as numbers or functions of time.
        period: between steps.
        noise, prior, process, outputs, x0, u0, step: as of :class:`MHE`.
        free: as there; of ``lower`` and ``upper`` no notice is taken.

    Raises:
        InputError: for arguments that do not fit, by name.

    Attributes:
        record, records: of the last step, of all since the start.

    Source: A. H. Jazwinski, "Stochastic processes and filtering theory", Academic Press (1970).

    Example:
        >>> from casadi_hybrid.control import Model
        >>> model = Model("drift")
        >>> x = model.state("position")
        >>> model.rates(position=0)
        >>> ekf = EKF(model, 1.0, noise=1.0, prior=1.0)
        >>> [round(float(ekf.step([y], [])[0]), 6) for y in (1.0, 1.0, 1.0)]
        [0.5, 0.666667, 0.75]
    """

    _of_daes = False

    def reset(self, x0: Any = None) -> None:
        """Forget all measurements; the next step is the first. See :meth:`Estimator.reset`."""
        super().reset(x0)
        self._last = Gaussian(self._mean, self._prior)
        self._before = self._u0

    @property
    def covariance(self) -> Array:
        """Of the states and, below them, the free parameters now."""
        return self._last.covariance.copy()

    def step(self, y: Any, u: Any = None, time: float | None = None) -> Array:
        """Take a measurement, and return the estimate of the state now.

        Args:
            y, u, time: as of :meth:`MHE.step`, where there is no delay.

        Raises:
            InputError: for numbers that do not fit; the estimator stays as it was.
        """
        began = clock.perf_counter()
        seen = self.sensors.column(y)
        control = self._before if u is None else np.asarray(self.model.vector("control", u, "u"))
        at, now = self._now(time), self._last
        if self.records:
            before = self._place(now.mean, control, self.records[-1].time, seen)
            now = self._filter.moved(before, now)
        now = self._filter.measured(self._place(now.mean, control, at, seen), now)
        self._last, self._mean, self._before = now, now.mean, control
        success = bool(np.isfinite(now.mean).all())
        self.records.append(Record(
            at, success, "filtered" if success else "not finite", 0, clock.perf_counter() - began,
            int(np.isfinite(seen).sum()), {}, self.parameters,
        ))  # fmt: skip
        return self.estimate

    def _place(self, xi: Array, control: Array, time: float, seen: Array) -> Place:
        """Return a point at which the filter linearizes."""
        n = self.model.size("state")
        p = self.model.numbers(self.model.values, time)
        p[self._filter.free] = xi[n:]
        return Place(xi[:n], np.zeros(0), p, control, control, time, seen)
