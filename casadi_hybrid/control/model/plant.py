"""Plant: a model from one sampling time to the next, and its sensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.model import Model
from casadi_hybrid.control.model.signals import (
    Array,
    Places,
    by_name,
    column,
    known,
    numbers,
    places_of,
)
from casadi_hybrid.control.model.steps import Integrator, RungeKutta, plain_step, step_of
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import positive


class Sensors:
    """The measured quantities of a model, one below the other."""

    def __init__(self, model: Model, outputs: Sequence[str] | None = None) -> None:
        if not isinstance(model, Model):
            raise InputError(f"model must be a Model, got {type(model).__name__}")
        if isinstance(outputs, str):
            raise InputError(f"outputs must be a list of names, got the text {outputs!r}")
        self.model = model
        values: dict[str, Any] = {}
        # Measured states (all by default), algebraic states or outputs.
        for name in model.signals["state"] if outputs is None else outputs:
            if name in values:
                raise InputError(f"outputs names {name!r} twice")
            values[name] = ca.vec(ca.SX(model.symbol(name)))
        if not values:
            raise InputError("outputs is empty; name at least one quantity that is measured")
        self.places: Places = places_of({name: value.numel() for name, value in values.items()})
        column = ca.vertcat(*values.values())
        self.size = int(column.numel())
        self.function = ca.Function("sensors", model.arguments, [column])

    def column(self, y: Any, what: str = "y") -> Array:
        """Return a measurement (a column, by name, or None) as a column; NaN for a lost entry."""
        if y is not None and not isinstance(y, Mapping):
            return _numbers(y, self.size, what)
        values = np.full(self.size, np.nan)
        for name, value in by_name(y, what).items():
            where = known(name, self.places, "measured quantity")
            if value is not None:
                values[where] = _numbers(value, where.stop - where.start, f"{what}[{name!r}]")
        return values


def _numbers(value: Any, size: int, what: str) -> Array:
    """Return a column that may have NaN."""
    entries = numbers(value, what).ravel()
    if entries.size != size or np.isinf(entries).any():
        raise InputError(f"{what} must have {size} finite entries, or NaN for what was lost")
    return entries


class Plant:
    """Plant under control: a model from one sample to the next, the control held between.

    It has its own parameters, so that the controller's model can be wrong.

    Args:
        model: of it.
        period: between samples; of a discrete model the time that one step stands for.
        step: :class:`Integrator` or :class:`RungeKutta`; by default CVODES, IDAS where the model
            has algebraic states, and a discrete model's own step.
        parameters: values by name that differ from the model's: numbers, or functions of time,
            whose value at the beginning of a period holds over it.
        outputs: names of the measured quantities; all states by default.

    Raises:
        InputError: for arguments that do not fit, by name.

    Example:
        >>> model = Model("cooling")
        >>> T = model.state("temperature", unit="K")
        >>> k = model.parameter("loss", 0.1)
        >>> model.rates(temperature=-k * T)
        >>> plant = Plant(model, 1.0, parameters={"loss": 0.2})
        >>> print(f"{plant.step([100.0], [])[0]:.6f}")
        81.873075
    """

    def __init__(
        self,
        model: Model,
        period: float,
        *,
        step: RungeKutta | Integrator | None = None,
        parameters: Mapping[str, Any] | None = None,
        outputs: Sequence[str] | None = None,
    ) -> None:
        self.model = model
        self.period = positive(period, "period")
        self.sensors = Sensors(model, outputs)
        self.parameters = dict(model.values)
        for name, value in dict(parameters or {}).items():
            signal = known(name, model.signals["parameter"], "parameter")
            if not callable(value):
                column(value, signal.size, f"parameters[{name!r}]")
            self.parameters[name] = value
        self._step = plain_step(step_of(model, step, Integrator()), model)
        self._algebraic = model.moves.algebraic if model.size("algebraic") else None
        self.reset()

    def reset(self) -> None:
        """Reset the algebraic states to their guesses."""
        self._z = first_guess(self.model, "algebraic")

    def __repr__(self) -> str:
        """Measurements, period and own parameters."""
        line = f"{', '.join(self.sensors.places)} every {self.period:g}"
        for name, value in self.parameters.items():
            if value is not self.model.values[name]:
                line += f", {name} = {'a function of time' if callable(value) else value}"
        return f"<Plant of {self.model.name!r}: {line}>"

    def step(self, x: Any, u: Any, time: float = 0.0, *, period: float | None = None) -> Array:
        """Return the state one period after ``time``.

        Args:
            x: state at ``time``, a column or by name.
            u: control over the period, a column or by name.
            time: at the beginning.
            period: another one than the plant's, which does not matter to a discrete model.
        """
        x, z, u, p = self._arguments(x, u, time)
        # The step takes controls at both ends: a held control is the same at both.
        return np.array(self._step(x, z, u, u, p, time, period or self.period)[0]).ravel()

    def motion(self, x0: Any, controls: Any, time: float = 0.0) -> Array:
        """Return the states under known controls, without feedback.

        Args:
            x0: state at ``time``, a column or by name.
            controls: one column a period; of a single control a vector.
            time: at the beginning.

        Returns:
            The states at the beginning and at the end of every period, a column a time.

        Raises:
            InputError: for arguments that do not fit, by name.
        """
        columns = np.atleast_2d(np.asarray(controls, dtype=float)).T
        states = [np.asarray(self.model.vector("state", x0, "x0"))]
        for k, u in enumerate(columns):
            states.append(self.step(states[-1], u, time + k * self.period))
        return np.array(states).T

    def measure(self, x: Any, u: Any, time: float = 0.0) -> Array:
        """Return the measurement without noise, the entries of ``outputs`` in one column."""
        return self.evaluate(self.sensors.function, x, u, time)

    def outputs(self, x: Any, u: Any, time: float = 0.0) -> Array:
        """Return all outputs of the model in one column."""
        return self.evaluate(self.model.moves.outputs, x, u, time)

    def start(self) -> Array:
        """Return the control before the first step: the guesses of the model."""
        return first_guess(self.model, "control")

    def evaluate(self, function: ca.Function, x: Any, u: Any, time: float = 0.0) -> Array:
        """Return a function (x, z, u, p, t) with the plant's algebraic states and parameters."""
        return np.array(function(*self._arguments(x, u, time), time)).ravel()

    def _arguments(self, x: Any, u: Any, time: float) -> tuple[Array, Array, Array, Array]:
        self.model.refuse_later(self.parameters, "plant")
        x = self.model.vector("state", x, "x")
        u = self.model.vector("control", u, "u")
        p = self.model.numbers(self.parameters, time)
        if self._algebraic is not None:
            # Newton starts at the last algebraic states, so that it stays on their branch.
            self._z = np.array(self._algebraic(self._z, x, u, p, time)).ravel()
        return x, self._z, u, p


def first_guess(model: Model, kind: str) -> Array:
    """Return the guesses of all of a kind at the beginning of a horizon, one below the other."""
    parts = [np.zeros(0)]
    for name, signal in model.signals[kind].items():
        # A guess may be a function of s, or have a column a grid point: take the first.
        value = np.asarray(signal.guess(0.0) if callable(signal.guess) else signal.guess)
        if value.ndim == 2 or value.size not in (1, signal.size):
            value = value[..., :1]
        one = value.item() if value.size == 1 else value
        parts.append(column(one, signal.size, f"guess of {name!r}"))
    return np.concatenate(parts)
