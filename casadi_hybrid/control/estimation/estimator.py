"""Base class of estimators, the record of their steps, and the extended Kalman filter."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from casadi_hybrid.control.estimation.arrival import (
    Filter,
    Gaussian,
    Place,
    linear_sensors,
    linear_step,
)
from casadi_hybrid.control.model.model import Model
from casadi_hybrid.control.model.noise import covariance_of
from casadi_hybrid.control.model.plant import Sensors, first_guess
from casadi_hybrid.control.model.signals import (
    Array,
    by_name,
    column,
    known,
    moment,
    number,
    places_of,
)
from casadi_hybrid.control.model.steps import Integrator, RungeKutta, step_of
from casadi_hybrid.utils.errors import InputError, warn
from casadi_hybrid.utils.inputs import positive


@dataclass(frozen=True)
class Unknown:
    """Parameter of the model that is estimated; every value is a number, or one an entry.

    Attributes:
        std: standard deviation of the prior.
        guess: mean of the prior; the model's value by default.
        lower, upper: limits.
        scale: typical size; the model's by default.
        drift: standard deviation of its change over a period, so that new measurements always
            count. It enters when the window moves on; within a window the parameter is constant.
    """

    std: Any
    guess: Any = None
    lower: Any = -np.inf
    upper: Any = np.inf
    scale: Any = None
    drift: Any = 0.0


@dataclass(frozen=True)
class Record:
    """Record of one step of an estimator.

    Attributes:
        time: of the step.
        success: true if the window was solved; otherwise the estimate is a prediction.
        status: of the solver.
        iterations: of the solver.
        seconds: of the whole step.
        measured: number of measured values in the window.
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


class Estimator:
    """Base class: an estimate and the records of its steps; arguments as of :class:`MHE`."""

    _of_daes = True

    def __init__(
        self,
        model: Model,
        period: float,
        *,
        noise: Any,
        prior: Any,
        process: Any = None,
        outputs: Sequence[str] | None = None,
        x0: Any = None,
        u0: Any = None,
        free: Mapping[str, Any] | None = None,
        step: RungeKutta | Integrator | None = None,
    ) -> None:
        self.sensors = Sensors(model, outputs)
        if model.size("algebraic") and not self._of_daes:
            raise InputError(f"{model.name} has algebraic states, which EKF cannot take; use MHE")
        self.model, self.period = model, positive(period, "period")
        states, n = model.places("state"), model.size("state")
        self._noise = covariance_of(noise, self.sensors.places, "noise")
        for label, std, names in (("noise", noise, self.sensors.places), ("prior", prior, states)):
            missing = [n for n in names if n not in std] if isinstance(std, Mapping) else []
            if missing:
                raise InputError(f"{label} lacks {', '.join(map(repr, missing))}")
        # R⁻¹ weighs the measurements.
        if np.linalg.eigvalsh(self._noise)[0] <= 0.0:
            raise InputError("noise must be positive for all that is measured")
        self.unknowns = _unknowns(model, free)
        # Covariances of ξ: the states, below them the free parameters.
        self._prior = np.diag(np.append(np.zeros(n), self._stacked("std") ** 2))
        self._prior[:n, :n] = covariance_of(prior, states, "prior")
        self._process = covariance_of(process, states, "process")
        # The filter's Q also has the drift of the parameters; the window's, without, is _process.
        change = np.diag(np.append(np.zeros(n), self._stacked("drift") ** 2))
        change[:n, :n] = self._process
        self._start = first_guess(model, "state")
        self._u0 = first_guess(model, "control")
        if u0 is not None:
            self._u0 = np.asarray(model.vector("control", u0, "u0"))
        # scheme: the step of the model, Runge and Kutta's by default.
        self.scheme = step_of(model, step, RungeKutta())
        self._declared = rows = model.places("parameter")
        free_rows = [i for name in self.unknowns for i in range(rows[name].start, rows[name].stop)]
        move = linear_step(model, self.scheme, self.period)
        see = linear_sensors(model, self.sensors)
        self._filter = Filter(free_rows, self._noise, change, move, see)
        self.reset(x0)

    def __repr__(self) -> str:
        kind, measured = type(self).__name__, ", ".join(self.sensors.places)
        parts = [f"{measured} every {self.period:g}"]
        parts += [f"window {self.N}"] if hasattr(self, "N") else []
        parts.append("noise " + ", ".join(f"{std:.3g}" for std in np.sqrt(np.diag(self._noise))))
        for name, unknown in self.unknowns.items():
            parts.append(f"free {name} (std {number(unknown.std)}, drift {number(unknown.drift)})")
        return f"<{kind} of {self.model.name!r}: {', '.join(parts)}>"

    def reset(self, x0: Any = None) -> None:
        """Forget all measurements; the next step is the first.

        Args:
            x0: mean of the prior from now on, a column or by name.
        """
        if x0 is not None:
            self._start = np.asarray(self.model.vector("state", x0, "x0", self._start))
        self._mean = np.append(self._start, self._stacked("guess"))
        self.records: list[Record] = []

    def prepare(
        self, y: Any = None, u: Any = None, time: float | None = None, **parameters: Any
    ) -> None:
        """Make functions, solver and memory before the loop, by a step that is forgotten.

        The arguments are those of :meth:`step`; the estimator stays as it was.

        Raises:
            InputError: for values that do not fit.
        """
        # A shallow copy will do: a step replaces what it changes.
        twin: Any = copy(self)
        twin.records = self.records.copy()
        twin.step(y, u, time, **parameters)

    @property
    def record(self) -> Record:
        """Record of the last step."""
        if not self.records:
            raise InputError("there was no step yet; call step(y, u)")
        return self.records[-1]

    @property
    def success(self) -> bool:
        """True if the last window was solved, or the filter's estimate is finite."""
        return self.record.success

    @property
    def estimate(self) -> Array:
        """The state now, a column."""
        return self._mean[: self.model.size("state")].copy()

    @property
    def parameters(self) -> dict[str, Any]:
        """The free parameters by name, as estimated: numbers, or columns."""
        places = places_of({name: unknown.std.size for name, unknown in self.unknowns.items()})
        free = self._mean[self.model.size("state") :].copy()
        return {name: number(free[where]) for name, where in places.items()}

    def _keep(self, record: Record, instead: str) -> None:
        """Add the record of a step; warn of the first failure since the start."""
        if not record.success and all(earlier.success for earlier in self.records):
            kind = type(self).__name__
            warn(
                f"{kind} of {self.model.name}: the step at time {record.time:g} failed "
                f"({record.status}), so the estimate is {instead}; later failures are in records "
                "alone"
            )
        self.records.append(record)

    def _stacked(self, key: str) -> Array:
        return np.concatenate([np.zeros(0), *(getattr(u, key) for u in self.unknowns.values())])

    def _now(self, time: float | None) -> float:
        self.model.refuse_later(self._declared, "estimator")
        expected = self.records[-1].time + self.period if self.records else 0.0
        now = expected if time is None else moment(time)
        # The linearized step has one fixed length.
        if self.records and abs(now - expected) > 1e-6 * self.period:
            raise InputError(
                f"time is {now:g}; one period after the step before is {expected:g}. Call reset() "
                "to begin anew"
            )
        return now


def _unknowns(model: Model, free: Mapping[str, Any] | None) -> dict[str, Unknown]:
    """Return the unknown parameters by name, in the model's order, their defaults filled in."""
    keys = [part.name for part in fields(Unknown)]
    unknowns: dict[str, Unknown] = {}
    for name, entry in by_name(free, "free").items():
        signal = known(name, model.signals["parameter"], "parameter")
        if signal.varying:
            raise InputError(f"free[{name!r}] is a reference; only a parameter can be free")
        values = vars(entry) if isinstance(entry, Unknown) else entry
        for key in values if isinstance(values, Mapping) else ():
            known(key, dict.fromkeys(keys), f"entry of free[{name!r}],")
        if not isinstance(values, Mapping) or "std" not in values:
            raise InputError(f"free[{name!r}] must be a dictionary with 'std', got {entry!r}")
        columns = {"guess": model.values[name], "scale": signal.scale}
        columns |= {k: v for k, v in vars(Unknown(**values)).items() if v is not None}
        for key in keys:
            label = f"free[{name!r}][{key!r}]"
            columns[key] = column(columns.get(key), signal.size, label)
        if not (columns["std"] > 0).all() or not (columns["drift"] >= 0).all():
            raise InputError(
                f"free[{name!r}] takes a positive std and a drift that is not negative"
            )
        unknowns[name] = Unknown(**columns)
    return {name: unknowns[name] for name in model.signals["parameter"] if name in unknowns}


class EKF(Estimator):
    """Extended Kalman filter of states and free parameters: no window, no limits.

    A step predicts, then takes the measurement, by the formulas of
    :mod:`casadi_hybrid.control.estimation.arrival`, linearized at the mean. After a lost
    measurement the estimate is the prediction. The filter takes the arguments of :class:`MHE` and
    can replace it in :func:`simulate`: cheaper, and nearly as good if no limit matters and the
    model is nearly linear over a period.

    Args:
        model: of the plant, with the parameters that the estimator assumes; without algebraic
            states, and references as numbers or functions of time.
        period: between steps.
        noise, prior, process, outputs, x0, u0, step: as of :class:`MHE`.
        free: as of :class:`MHE`; ``lower`` and ``upper`` are ignored.

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
        """Covariance of the states and, below them, the free parameters now."""
        return self._last.covariance.copy()

    def step(self, y: Any, u: Any = None, time: float | None = None) -> Array:
        """Take a measurement, and return the estimate of the state now.

        Args:
            y, u, time: as of :meth:`MHE.step` without a delay.

        Raises:
            InputError: for values that do not fit; the estimator stays as it was.
        """
        began = clock.perf_counter()
        y = self.sensors.column(y)
        control = self._before if u is None else np.asarray(self.model.vector("control", u, "u"))
        now, estimate = self._now(time), self._last
        if self.records:
            # Predict with the control over the period that ends now, then correct.
            before = self._place(estimate.mean, control, self.records[-1].time, y)
            estimate = self._filter.moved(before, estimate)
        estimate = self._filter.measured(self._place(estimate.mean, control, now, y), estimate)
        self._last, self._mean, self._before = estimate, estimate.mean, control
        success, measured = bool(np.isfinite(self._mean).all()), int(np.isfinite(y).sum())
        status, seconds = "filtered" if success else "not finite", clock.perf_counter() - began
        record = Record(now, success, status, 0, seconds, measured, {}, self.parameters)
        self._keep(record, "no number")
        return self.estimate

    def _place(self, xi: Array, control: Array, time: float, y: Array) -> Place:
        n = self.model.size("state")
        p = self.model.numbers(self.model.values, time)
        p[self._filter.free] = xi[n:]
        return Place(xi[:n], np.zeros(0), p, control, control, time, y)
