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
    """A parameter of the model that is estimated; every number is one, or one an entry.

    Attributes:
        std: standard deviation of the prior.
        guess: mean of the prior; the model's value by default.
        lower, upper: limits.
        scale: typical size; the model's by default.
        drift: standard deviation of its change over a period, which keeps it from being believed
            for ever; it enters when the window moves on, within a window the parameter is constant.
    """

    std: Any
    guess: Any = None
    lower: Any = -np.inf
    upper: Any = np.inf
    scale: Any = None
    drift: Any = 0.0


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


class Estimator:
    """An estimate that is asked for by name, and the records of its steps; arguments as of MHE.

    Attributes:
        model, period, sensors: of the plant.
        scheme, unknowns: the step of the model, and the free parameters by name.
        record, records: of the last step, of all since the start. A loop that runs for days deletes
            them, but for the last: ``del mhe.records[:-1]``.
    """

    _of_daes = True

    def __init__(
        self, model: Model, period: float, *, noise: Any, prior: Any, process: Any = None,
        outputs: Sequence[str] | None = None, x0: Any = None, u0: Any = None,
        free: Mapping[str, Any] | None = None, step: RungeKutta | Integrator | None = None,
    ) -> None:  # fmt: skip
        self.sensors = Sensors(model, outputs)
        if model.size("algebraic") and not self._of_daes:
            raise InputError(f"{model.name} has algebraic states, which EKF cannot take; use MHE")
        self.model, self.period = model, positive(period, "period")
        states, n = model.places("state"), model.size("state")
        self._noise = covariance_of(noise, self.sensors.places, "noise")
        for what, given, of in (("noise", noise, self.sensors.places), ("prior", prior, states)):
            if missing := [name for name in of if isinstance(given, Mapping) and name not in given]:
                raise InputError(f"{what} lacks {', '.join(map(repr, missing))}")
        if np.linalg.eigvalsh(self._noise)[0] <= 0.0:
            raise InputError("noise must be positive for all that is measured")
        self.unknowns = _unknowns(model, free)
        # Covariances of ξ: the states, below them the free parameters.
        self._prior, drift = (
            np.diag(np.append(np.zeros(n), self._stacked(key) ** 2)) for key in ("std", "drift")
        )
        self._prior[:n, :n] = covariance_of(prior, states, "prior")
        self._process = drift[:n, :n] = covariance_of(process, states, "process")
        self._start, rest = first_guess(model, "state"), first_guess(model, "control")
        self._u0 = rest if u0 is None else np.asarray(model.vector("control", u0, "u0"))
        self.scheme = step_of(model, step, RungeKutta())
        places = model.places("parameter")
        at = [i for name in self.unknowns for i in range(places[name].start, places[name].stop)]
        move = linear_step(model, self.scheme, self.period)
        self._filter = Filter(at, self._noise, drift, move, linear_sensors(model, self.sensors))
        self.reset(x0)

    def __repr__(self) -> str:
        kind, measured = type(self).__name__, ", ".join(self.sensors.places)
        said = [f"{measured} every {self.period:g}"]
        said += [f"window {self.N}"] if hasattr(self, "N") else []
        said.append("noise " + ", ".join(f"{std:.3g}" for std in np.sqrt(np.diag(self._noise))))
        said += [f"free {name} (std {number(unknown.std)}, drift {number(unknown.drift)})"
                 for name, unknown in self.unknowns.items()]  # fmt: skip
        return f"<{kind} of {self.model.name!r}: {', '.join(said)}>"

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

        The arguments are those of a step; the estimator stays as it was.

        Raises:
            InputError: for numbers that do not fit.
        """
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
        """True if the last window was solved, or the estimate of a filter is finite."""
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
        """Add the record of a step; the first without success since the start is a warning."""
        if not record.success and all(one.success for one in self.records):
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
        expected = self.records[-1].time + self.period if self.records else 0.0
        now = expected if time is None else moment(time)
        if self.records and abs(now - expected) > 1e-6 * self.period:
            raise InputError(
                f"time is {now:g}; one period after the step before is {expected:g}. Call reset() "
                "to begin anew"
            )
        return now


def _unknowns(model: Model, given: Mapping[str, Any] | None) -> dict[str, Unknown]:
    """The unknown parameters by name, in the model's order, their defaults filled in."""
    keys = [part.name for part in fields(Unknown)]
    found: dict[str, Unknown] = {}
    for name, entry in by_name(given, "free").items():
        signal = known(name, model.signals["parameter"], "parameter")
        if signal.varying:
            raise InputError(f"free[{name!r}] is a reference; only a parameter can be free")
        values = vars(entry) if isinstance(entry, Unknown) else entry
        for key in values if isinstance(values, Mapping) else ():
            known(key, dict.fromkeys(keys), f"entry of free[{name!r}],")
        if not isinstance(values, Mapping) or "std" not in values:
            raise InputError(f"free[{name!r}] must be a dictionary with 'std', got {entry!r}")
        defaults = {"guess": model.values[name], "scale": signal.scale}
        columns = {
            key: column(defaults.get(key) if n is None else n, signal.size,
                        f"free[{name!r}][{key!r}]")
            for key, n in vars(Unknown(**values)).items()
        }  # fmt: skip
        if not (columns["std"] > 0).all() or not (columns["drift"] >= 0).all():
            raise InputError(
                f"free[{name!r}] takes a positive std and a drift that is not negative"
            )
        found[name] = Unknown(**columns)
    return {name: found[name] for name in model.signals["parameter"] if name in found}


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
        """Covariance of the states and, below them, the free parameters now."""
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
        self._keep(Record(
            at, success, "filtered" if success else "not finite", 0, clock.perf_counter() - began,
            int(np.isfinite(seen).sum()), {}, self.parameters,
        ), "no number")  # fmt: skip
        return self.estimate

    def _place(self, xi: Array, control: Array, time: float, seen: Array) -> Place:
        n = self.model.size("state")
        p = self.model.numbers(self.model.values, time)
        p[self._filter.free] = xi[n:]
        return Place(xi[:n], np.zeros(0), p, control, control, time, seen)
