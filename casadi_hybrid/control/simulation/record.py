"""The wiring of a loop to its plant, and the recorder of its steps.

A :class:`Plant` and a plain function look the same to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.excess import Limits
from casadi_hybrid.control.model.model import Model
from casadi_hybrid.control.model.plant import Plant
from casadi_hybrid.control.model.signals import (
    Array,
    Places,
    Signal,
    column,
    expression,
    known,
    pair_of,
    places,
    size_of,
)
from casadi_hybrid.control.mpc.step import DEFAULT, FALLBACK, LAST_PLAN
from casadi_hybrid.control.simulation.run import Run
from casadi_hybrid.control.simulation.table import Table
from casadi_hybrid.control.transcription.program import Program
from casadi_hybrid.control.transcription.terms import Constraint
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import has_method, is_callable, positive, real_array, sized

Move = Callable[[Array, Array, float], Array]


class OfPlant:
    """Wiring of a :class:`Plant`.

    Attributes:
        model: of the plant; None of a function.
        states, outputs, measured: rows of each name.
        controls: the same; None of a function until the first control tells its size.
        move, show, measure: functions (x, u, time): the state one period later, all outputs, what
            the sensors show.
        control, state: functions (value, what): a control, a change of the state, as columns, also
            from names.
        x0, u0: the state at the start, the control before any was computed; None if not known.
    """

    def __init__(self, plant: Plant, period: float | None, x0: Any, u0: Any) -> None:
        self.model, self.period = model, own = plant.model, plant.period
        if period is not None and not np.isclose(period, own, rtol=1e-12, atol=0.0):
            raise InputError(f"period is {period:g}, the plant's is {own:g}; leave it out")
        self.states, self.outputs, self.controls = map(model.places, ("state", "output", "control"))
        self.measured = plant.sensors.places
        self.move, self.show, self.measure = plant.step, plant.outputs, plant.measure
        self.control = partial(model.vector, "control")
        self.state = partial(model.vector, "state", default=np.zeros(model.size("state")))
        self.x0: Array = np.asarray(model.vector("state", x0, "x0"))
        self.u0 = plant.start() if u0 is None else np.asarray(self.control(u0, "u0"))


class OfFunction:
    """Wiring of a function (x, u) → next x, whose state is called ``x``, its control ``u``."""

    model: Any = None

    def __init__(self, plant: Any, period: float | None, x0: Any, u0: Any) -> None:
        is_callable(plant, "plant", "a Plant or a function (x, u) → next x")
        if period is None:
            raise InputError("period is needed where the plant is a function")
        self.period = positive(period, "period")
        self.control: Any = lambda value, what: column(value, np.size(value), what)
        self.x0: Array = self.control(x0, "x0")
        self.u0: Array | None = None if u0 is None else self.control(u0, "u0")
        self.states = self.measured = {"x": slice(0, self.x0.size)}
        self.controls = None if self.u0 is None else {"u": slice(0, self.u0.size)}
        self.outputs: Places = {}
        self.move: Move = lambda x, u, time: self.state(plant(x, u), "what the plant returned")
        self.show: Move = lambda x, u, time: np.zeros(0)
        self.measure: Move = lambda x, u, time: x

    def state(self, value: Any, what: str) -> Array:
        """Return a state as a column."""
        found, size = real_array(value, what).flatten(), self.x0.size
        if found.size != size:
            raise InputError(f"{what} has {found.size} entries; the state has {size}, as x0")
        return found


Wiring = OfPlant | OfFunction


def limits_of(model: Model | None, given: Mapping[str, Any] | None) -> dict[str, Signal]:
    """Return the limits of states, controls and outputs by name: those given, else the model's."""
    if given and model is None:
        raise InputError("limits are for a Plant; a plain function has no names")
    signals = {} if model is None else model.signals
    found = {**signals.get("state", {}), **signals.get("control", {}), **signals.get("output", {})}
    for name, pair in dict(given or {}).items():
        old = known(name, found, "state, control or output")
        lower, upper = pair_of(name, old.size, pair)
        found[name] = replace(old, lower=lower, upper=upper)
    return found


def check_links(wiring: Wiring, controller: Any, estimator: Any) -> None:
    """Refuse parts whose period, names or their order are not those of the part before.

    Columns have no names: where the model of who takes one knows any name in it, all must agree.
    """
    if estimator is not None:
        has_method(estimator, "estimator", "step")
    finds: Any = getattr(estimator, "model", None)
    follows: Any = getattr(getattr(controller, "ocp", None), "model", None)
    found, wanted = ([*model.signals["state"]] if isinstance(model, Model) else []
                     for model in (finds, follows))  # fmt: skip
    own, its = wiring.period, getattr(estimator, "period", wiring.period)
    if found and abs(its - own) > 1e-6 * own:
        raise InputError(f"the plant's period is {own:g}, the estimator's {its:g}; make them equal")
    taken = [*getattr(getattr(estimator, "sensors", None), "places", ())] if found else []
    seen = [*wiring.measured] if wiring.model else []
    last = ("plant measures", seen, f"give the plant outputs={wanted}, or add an estimator")
    if estimator is not None:
        last = ("estimator finds", found, "declare the same states in both models, in one order")
    for giver, given, remedy, taker, names, model in (
        ("plant measures", seen, "give both the same outputs=[…]", "estimator", taken, finds),
        (*last, "controller", wanted, follows),
    ):
        known = names and [*model.unknowns, *model.signals["output"]]
        if given != names and not set(given).isdisjoint(known):
            handed, needed = ", ".join(given), ", ".join(names)
            raise InputError(f"the {giver} {handed} and the {taker} takes {needed}; {remedy}")


def costs_of(plant: Any, cost: Any) -> dict[str, Move]:
    """Return the costs of a step by name, each a function (x, u, time) → number."""
    found: dict[str, Any] = {}
    one = {} if cost is None else {"cost": cost}
    for name, value in (cost if isinstance(cost, Mapping) else one).items():
        if not isinstance(plant, Plant) or (callable(value) and not isinstance(value, ca.SX)):
            is_callable(value, f"cost {name!r}", "a function (x, u, time) → number")
            found[name] = value
            continue
        inputs = plant.model.arguments
        said = expression(value, f"cost {name!r}", inputs, "is no symbol of the plant's model")
        function = ca.Function("cost", inputs, [said])
        if function.numel_out(0) != 1:
            raise InputError(f"cost {name!r} must be a scalar, it has {function.numel_out(0)}")
        found[name] = partial(plant.evaluate, function)
    return found


class Recorder:
    """The steps of a loop, and what they are measured by; limits as of :func:`limits_of`."""

    def __init__(self, plant: Any, wiring: Wiring, limits: Any, cost: Any, estimator: Any) -> None:
        self.wiring, self.estimator, self.costs = wiring, estimator, costs_of(plant, cost)
        self.limits, self.fixed = limits_of(wiring.model, limits), limits or {}
        self.plant = plant
        found, model = getattr(estimator, "parameters", ()), getattr(estimator, "model", None)
        theirs = model.signals["parameter"] if isinstance(model, Model) else {}
        self.free = {name: theirs[name] for name in found if name in theirs}
        own = plant.model.signals["parameter"] if isinstance(plant, Plant) else {}
        self.true = {name: plant.parameters[name] for name, signal in self.free.items()
                     if name in own and own[name].size == signal.size}  # fmt: skip
        self.stopped = ""
        self._steps: list[dict[str, Any]] = []

    def step(
        self, time: float, x: Array, applied: Array, before: Array, heard: Any, **rest: Any
    ) -> None:
        """Note one step, ``before`` being the control that held until then."""
        shown = self.wiring.show(x, before, time)
        found = [self.estimator.parameters[name] for name in self.free]
        rest["estimated"] = bool(getattr(self.estimator, "success", True))
        rest["estimate"] = None if self.estimator is None else np.hstack([heard, *found])
        costs = {name: sized(cost(x, applied, time), 1, f"cost {name!r} at time {time:g}")[0]
                 for name, cost in self.costs.items()}  # fmt: skip
        self._steps.append({"time": time, "x": x, "applied": applied, "outputs": shown, **rest,
                            "costs": costs})  # fmt: skip

    def run(self, x: Array, time: float) -> Run:
        """Return the run that ends at the state x."""
        wiring, K = self.wiring, len(self._steps)
        rows = {key: [step[key] for step in self._steps] for key in self._steps[0]}
        applied, end = rows["applied"], time + K * wiring.period
        rows["x"].append(None if self.stopped else x)
        rows["outputs"].append(None if self.stopped else wiring.show(x, applied[-1], end))
        begins = np.array(rows["time"])
        times = np.append(begins, end)
        controls = {"u": slice(0, applied[-1].size)} if wiring.controls is None else wiring.controls
        states = Table(wiring.states, _matrix(rows["x"]), times)
        estimates = _matrix(rows["estimate"])
        free = places(self.free)
        n = estimates.shape[0] - size_of(free)
        found = dict(wiring.states) if n == x.size else {"estimate": slice(0, n)} if n else {}
        found |= {name: slice(n + where.start, n + where.stop) for name, where in free.items()}
        first = applied[0] if wiring.u0 is None else wiring.u0
        held = Table(controls, np.array([first, *applied, applied[-1]]).T, times)
        named, without_plan = wiring.model is not None, (LAST_PLAN, FALLBACK, DEFAULT)
        paths, constraints, changed, unchecked, references = _path_constraints(
            rows["answer"], states, held, named=named
        )
        asked = filter(None, (getattr(answer, "asked", None) for answer in rows["answer"]))
        models = wiring.model, *(problem.model for problem, *_ in asked)
        unseen = [name for model in filter(None, models)
                  for name, signal in model.signals["algebraic"].items() if name not in self.fixed
                  and np.isfinite([signal.lower, signal.upper]).any()]  # fmt: skip
        if wiring.model and wiring.model.limiting[0]:  # where the controller says no other ones
            each = (wiring.model.numbers(self.plant.parameters, t) for t in times)
            own = map(wiring.model.limits_by, each)
            changed = [a | b for a, b in zip(own, changed or [{}] * times.size, strict=True)]
        return Run(
            states=states,
            outputs=Table(wiring.outputs, _matrix(rows["outputs"]), times),
            controls=Table(controls, _matrix(applied), begins),
            commanded=Table(controls, _matrix(rows["command"], applied[-1].size), begins),
            measured=Table(wiring.measured, _matrix(rows["arrived"], size_of(wiring.measured)),
                           begins),
            estimates=Table(found, estimates, begins),
            constraints=Table.of(paths, times),
            references=Table.of(references, times),
            parameters=Table.of({
                name: np.array([column(true(t) if callable(true) else true, self.free[name].size,
                                       name) for t in begins]).T
                for name, true in self.true.items()
            }, begins),
            costs={name: np.array([costs[name] for costs in rows["costs"]]) for name in self.costs},
            limits={name: self._limit(name, limit, changed) for name, limit in
                    {**self.free, **self.limits, **constraints}.items()},
            unchecked=tuple(dict.fromkeys([*unseen, *unchecked])),
            status=tuple(map(_status, rows["answer"])),
            success=np.array([bool(getattr(answer, "success", _status(answer) not in without_plan))
                              for answer in rows["answer"]]) & rows["estimated"],
            seconds=np.array(rows["seconds"]),
            steps=tuple(rows["answer"]),
            stopped=self.stopped,
            time_unit="" if wiring.model is None else wiring.model.time_unit,
        )  # fmt: skip

    def _limit(self, name: str, limit: Any, changed: Sequence[Mapping[str, Any]]) -> Limits:
        """The limits of a quantity, with a column a time where the controller's have changed."""
        sides = [(limit.lower, limit.upper)]
        if name not in self.fixed and any(name in at for at in changed):
            sides = [at.get(name, sides[0]) for at in changed]
        lower, upper = (np.stack(side, axis=1) for side in zip(*sides, strict=True))
        return Limits(lower, upper, limit.scale, limit.unit)


def _matrix(columns: list[Any], size: int = 0) -> Array:
    """The columns side by side, NaN for None; without any but None ``size`` rows of NaN."""
    rows = next((column.size for column in columns if column is not None), size)
    full = [np.full(rows, np.nan) if column is None else column for column in columns]
    return np.array(full, dtype=float).T.reshape(rows, len(columns))


def _status(answer: Any) -> str:
    return "no measurement yet" if answer is None else str(getattr(answer, "status", "computed"))


def _path_constraints(
    answers: Sequence[Any], states: Table, held: Table, *, named: bool
) -> tuple[dict[str, Array], dict[str, Constraint], Sequence[Mapping[str, Any]], tuple[str, ...],
           dict[str, Array]]:  # fmt: skip
    """Return the path constraints of the steps of an :class:`MPC` along K + 1 states.

    ``held`` are controls: before the first step, in the K steps, and the last once more. Where they
    are not ``named`` as in the model, the order is the same. What is returned: values by name, a
    column a time; what they are of; for each time the limits that were not as declared, by name;
    the names of those that the record does not determine; references by name, as in the steps.
    """
    asked = [getattr(answer, "asked", None) for answer in answers]
    if (first := next(filter(None, asked), None)) is None:
        return {}, {}, (), (), {}
    ocp, model, prefix = first[0].nominal, first[0].model, next(iter(first[0].prefixed))
    lasting = list(accumulate([*asked, None], lambda old, new: new or old, initial=first))[1:]
    programs = [program.part(prefix) for _, program, _ in lasting]
    paths = {f"path {c.name}" if c.name in states or c.name in held else c.name: c
             for c in ocp.constraints
             if c.place == "path" and not c.of}  # of a state: judged as its own  # fmt: skip
    chosen = [*map(model.symbol, ocp.freed)] + [ocp.duration] * bool(ocp.free_duration)
    unseen = ca.vertcat(model.stacked("algebraic"), *chosen)
    seen = {name: c for name, c in paths.items() if not ca.depends_on(c.expression, unseen)}
    X, W = states.values, held.values
    P = np.array([_given(ocp, part, courses, time) for part, (*_, courses), time in
                  zip(programs, lasting, states.times, strict=True)]).T  # fmt: skip
    asked_for = {name: P[at].copy() for name, at in places(ocp.given).items()
                 if ocp.given[name].varying}  # fmt: skip
    try:
        if named:
            X, W = (np.vstack([table.rows(name) for name in model.signals[kind]])
                    for kind, table in (("state", states), ("control", held)))  # fmt: skip
        for name, control in ocp.lagged.items():
            P[places(ocp.given)[name]] = W[model.places("control")[control], :-1]
        function = ocp.expression_function([c.expression for c in seen.values()])
        z = np.zeros((model.size("algebraic"), len(programs)))
        found = function.map(len(programs)).call([X, z, W[:, 1:], P, states.times[None]])
    except (InputError, RuntimeError):  # the plant has other states or controls
        return {}, {}, (), tuple(paths), asked_for
    rows = {name: value.full() for name, value in zip(seen, found, strict=True)}
    unchecked = tuple(name for name in paths if name not in seen)
    return rows, seen, [program.limits for program in programs], unchecked, asked_for


def _given(ocp: Any, part: Program, courses: Mapping[str, Any], time: float) -> Array:
    """The parameters of a step and the length; references are those at the time, or the first."""
    grid = part.parameters["time"].read(part.p)[0, 0] + ocp.length * (ocp.fractions - 1e-9)
    values = part.stacked(ocp.given, max(int(np.searchsorted(grid, time, side="right")) - 1, 0))
    for name, course in courses.items():
        with suppress(Exception):  # at the end, which no step was asked
            values[places(ocp.given)[name]] = np.ravel(course(time))
    return np.append(values, ocp.length)
