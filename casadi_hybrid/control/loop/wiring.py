"""What a loop needs of a plant, the same for a :class:`Plant` and for a plain function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError, last_line
from casadi_hybrid.basics.inputs import positive
from casadi_hybrid.control.loop.plant import Plant
from casadi_hybrid.control.loop.table import Places
from casadi_hybrid.control.signals import Array, Signal, column, known, pair_of

Move = Callable[[Array, Array, float], Array]


@dataclass(frozen=True)
class Wiring:
    """The names and the functions (x, u, time) of a plant.

    Attributes:
        states, outputs, measured: rows of each name.
        controls: the same; None of a function until the first control tells its size.
        move, show, measure: the state one period later, all outputs, what the sensors show.
        control: a control as a column, from a column or by name.
        u0: the control before any was computed; None where it is not known.
    """

    period: float
    states: Places
    outputs: Places
    measured: Places
    controls: Places | None
    move: Move
    show: Move
    measure: Move
    control: Callable[[Any, str], Array]
    x0: Array
    u0: Array | None
    time_unit: str = ""


def wire(plant: Any, period: float | None, x0: Any, u0: Any) -> Wiring:
    """Return the wiring of a plant."""
    if isinstance(plant, Plant):
        return _of_plant(plant, period, x0, u0)
    if not callable(plant):
        raise InputError(
            f"plant must be a Plant or a function (x, u) → next x, got {type(plant).__name__}"
        )
    if period is None:
        raise InputError("period is needed where the plant is a function")
    start = column(x0, np.size(x0), "x0")
    places = {"x": slice(0, start.size)}
    before = None if u0 is None else column(u0, np.size(u0), "u0")

    def move(x: Array, u: Array, time: float) -> Array:
        after = plant(x, u)
        after = np.array(after.full() if isinstance(after, ca.DM) else after, dtype=float).ravel()
        if after.size != start.size:
            raise InputError(
                f"plant returned {after.size} entries; the state has {start.size}, as x0"
            )
        return after

    return Wiring(
        period=positive(period, "period"),
        states=places,
        outputs={},
        measured=places,
        controls=None if before is None else {"u": slice(0, before.size)},
        move=move,
        show=lambda x, u, time: np.zeros(0),
        measure=lambda x, u, time: x,
        control=_plain,
        x0=start,
        u0=before,
    )


def _plain(value: Any, what: str) -> Array:
    return column(value, np.size(value), what)


def _of_plant(plant: Plant, period: float | None, x0: Any, u0: Any) -> Wiring:
    model = plant.model
    if period is not None and not np.isclose(period, plant.period, rtol=1e-12, atol=0.0):
        raise InputError(f"period is {period:g}, the plant's is {plant.period:g}; leave it out")
    return Wiring(
        period=plant.period,
        states=model.places("state"),
        outputs=model.places("output"),
        measured=plant.sensors.places,
        controls=model.places("control"),
        move=plant.step,
        show=plant.outputs,
        measure=plant.measure,
        control=lambda value, what: np.asarray(model.vector("control", value, what)),
        x0=np.asarray(model.vector("state", x0, "x0")),
        u0=plant.start() if u0 is None else np.asarray(model.vector("control", u0, "u0")),
        time_unit=model.time_unit,
    )


def limits_of(plant: Any, given: Mapping[str, Any] | None) -> dict[str, Signal]:
    """Return the limits of states, controls and outputs by name: those given, else the model's."""
    found: dict[str, Signal] = {}
    if isinstance(plant, Plant):
        for kind in ("state", "control", "output"):
            found |= plant.model.signals[kind]
    elif given:
        raise InputError("limits are for a Plant; a plain function has no names")
    for name, pair in dict(given or {}).items():
        old = known(name, found, "state, control or output")
        lower, upper = pair_of(name, old.size, pair)
        found[name] = replace(old, lower=lower, upper=upper)
    return found


def costs_of(plant: Any, cost: Any) -> dict[str, Move]:
    """Return the costs of a step by name, each a function (x, u, time) → number."""
    if cost is None:
        return {}
    named = dict(cost) if isinstance(cost, Mapping) else {"cost": cost}
    found: dict[str, Any] = {}
    for name, value in named.items():
        if callable(value) and not isinstance(value, ca.SX):
            found[name] = value
            continue
        if not isinstance(plant, Plant):
            raise InputError(f"cost {name!r} must be a function (x, u, time) → number")
        try:
            function = ca.Function("cost", plant.model.arguments, [ca.SX(value)])
        except (NotImplementedError, RuntimeError) as error:
            raise InputError(
                f"cost {name!r} must be an expression of the plant's model: {last_line(error)}"
            ) from None
        if function.numel_out(0) != 1:
            raise InputError(f"cost {name!r} must be a scalar, it has {function.numel_out(0)}")
        found[name] = _cost(plant, function)
    return found


def _cost(plant: Plant, function: ca.Function) -> Move:
    return lambda x, u, time: plant.evaluate(function, x, u, time)
