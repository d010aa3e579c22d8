"""Connection of a loop to its plant, and the recorder of its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

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
    """Wiring of a :class:`Plant`."""

    def __init__(self, plant: Plant, period: float | None, x0: Any, u0: Any) -> None:
        self.model, self.period = model, expected = plant.model, plant.period
        if period is not None and not np.isclose(period, expected, rtol=1e-12, atol=0.0):
            raise InputError(f"period is {period:g}, the plant's is {expected:g}; leave it out")
        # Rows by name; `controls` of a function is None until its first control tells the size.
        self.states, self.outputs, self.controls = map(model.places, ("state", "output", "control"))
        self.measured = plant.sensors.places
        # (x, u, time) → state a period later, outputs, readings of the sensors.
        self.move, self.show, self.measure = plant.step, plant.outputs, plant.measure
        # (value, label) → column, also from names.
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
        self.control: Any = lambda value, label: column(value, np.size(value), label)
        self.x0: Array = self.control(x0, "x0")
        self.u0: Array | None = None if u0 is None else self.control(u0, "u0")
        self.states = self.measured = {"x": slice(0, self.x0.size)}
        self.controls = None if self.u0 is None else {"u": slice(0, self.u0.size)}
        self.outputs: Places = {}
        self.move: Move = lambda x, u, time: self.state(plant(x, u), "what the plant returned")
        self.show: Move = lambda x, u, time: np.zeros(0)
        self.measure: Move = lambda x, u, time: x

    def state(self, value: Any, label: str) -> Array:
        """Return a state as a column."""
        state, size = real_array(value, label).flatten(), self.x0.size
        if state.size != size:
            raise InputError(f"{label} has {state.size} entries; the state has {size}, as x0")
        return state


Wiring = OfPlant | OfFunction


def check_links(wiring: Wiring, controller: Any, estimator: Any) -> None:
    """Refuse parts whose period, names or order of names differ from the part before."""
    measured = [*wiring.measured] if wiring.model else []
    follows: Any = getattr(getattr(controller, "ocp", None), "model", None)
    needed = [*follows.signals["state"]] if isinstance(follows, Model) else []
    if estimator is None:
        remedy = f"give the plant outputs={needed}, or add an estimator"
        _match("plant measures", measured, "controller", needed, follows, remedy)
        return
    has_method(estimator, "estimator", "step")
    model = getattr(estimator, "model", None)
    if not isinstance(model, Model):
        return
    period = getattr(estimator, "period", wiring.period)
    if abs(period - wiring.period) > 1e-6 * wiring.period:
        raise InputError(
            f"the plant's period is {wiring.period:g}, the estimator's {period:g}; make them equal"
        )
    sensors = [*getattr(getattr(estimator, "sensors", None), "places", ())]
    remedy = "give both the same outputs=[…]"
    _match("plant measures", measured, "estimator", sensors, model, remedy)
    remedy = "declare the same states in both models, in one order"
    _match("estimator finds", [*model.signals["state"]], "controller", needed, follows, remedy)


def _match(
    giver: str, names: list[str], taker: str, needed: list[str], model: Any, remedy: str
) -> None:
    """Refuse other names than needed, if the model of the taker knows any of them."""
    # Columns have no names: a part that calls everything otherwise may be right.
    common = {*model.unknowns, *model.signals["output"]}.intersection(names) if needed else ()
    if names != needed and common:
        raise InputError(
            f"the {giver} {', '.join(names)} and the {taker} takes {', '.join(needed)}; {remedy}"
        )


def _limits_of(model: Model | None, given: Mapping[str, Any]) -> dict[str, Signal]:
    """Return the limits of states, controls and outputs by name: those given, else the model's."""
    if given and model is None:
        raise InputError("limits are for a Plant; a plain function has no names")
    signals: dict[str, Signal] = {}
    if model is not None:
        for kind in ("state", "control", "output"):
            signals |= model.signals[kind]
    for name, pair in given.items():
        signal = known(name, signals, "state, control or output")
        lower, upper = pair_of(name, signal.size, pair)
        signals[name] = replace(signal, lower=lower, upper=upper)
    return signals


def _costs_of(plant: Any, cost: Any) -> dict[str, Move]:
    """Return the costs of a step by name, each a function (x, u, time) → number."""
    functions: dict[str, Any] = {}
    single = {} if cost is None else {"cost": cost}
    for name, value in (cost if isinstance(cost, Mapping) else single).items():
        label = f"cost {name!r}"
        if not isinstance(plant, Plant) or (callable(value) and not isinstance(value, ca.SX)):
            is_callable(value, label, "a function (x, u, time) → number")
            functions[name] = value
            continue
        inputs = plant.model.arguments
        stated = expression(value, label, inputs, "is no symbol of the plant's model")
        if stated.numel() != 1:
            raise InputError(f"{label} must be a scalar, it has {stated.numel()}")
        functions[name] = partial(plant.evaluate, ca.Function("cost", inputs, [stated]))
    return functions


class Recorder:
    """Recorder of the steps of a loop, and their measures: costs and limits."""

    def __init__(self, plant: Any, wiring: Wiring, limits: Any, cost: Any, estimator: Any) -> None:
        self.plant, self.wiring, self.estimator = plant, wiring, estimator
        self.costs = _costs_of(plant, cost)
        self.fixed = dict(limits or {})
        self.limits = _limits_of(wiring.model, self.fixed)
        model = getattr(estimator, "model", None)
        declared = model.signals["parameter"] if isinstance(model, Model) else {}
        names = [name for name in getattr(estimator, "parameters", ()) if name in declared]
        self.free = {name: declared[name] for name in names}
        true = plant.model.signals["parameter"] if isinstance(plant, Plant) else {}
        self.true = {
            name: plant.parameters[name]
            for name, signal in self.free.items()
            if name in true and true[name].size == signal.size
        }
        self.stopped = ""
        self._steps: list[dict[str, Any]] = []

    def step(
        self, time: float, x: Array, applied: Array, before: Array, heard: Any, **rest: Any
    ) -> None:
        """Note one step, ``before`` being the control that held until then."""
        estimate = None
        if self.estimator is not None:
            free = [self.estimator.parameters[name] for name in self.free]
            estimate = np.hstack([heard, *free])
        costs = {
            name: sized(cost(x, applied, time), 1, f"cost {name!r} at time {time:g}")[0]
            for name, cost in self.costs.items()
        }
        estimated = bool(getattr(self.estimator, "success", True))
        outputs = self.wiring.show(x, before, time)
        self._steps.append(
            {"time": time, "x": x, "applied": applied, "outputs": outputs, "costs": costs}
            | {"estimate": estimate, "estimated": estimated, **rest}
        )

    def run(self, x: Array, time: float) -> Run:
        """Return the run that ends at the state x."""
        wiring, K = self.wiring, len(self._steps)
        rows = {key: [step[key] for step in self._steps] for key in self._steps[0]}
        applied, answers, end = rows["applied"], rows["answer"], time + K * wiring.period
        # A state that is not finite ends the run and is not shown: NaN.
        rows["x"].append(None if self.stopped else x)
        rows["outputs"].append(None if self.stopped else wiring.show(x, applied[-1], end))
        begins = np.array(rows["time"])
        times = np.append(begins, end)
        controls = wiring.controls
        if controls is None:
            controls = {"u": slice(0, applied[-1].size)}
        states = Table(wiring.states, _matrix(rows["x"]), times)
        # Outputs at a time see the control before it, path constraints the one after it.
        first = applied[0] if wiring.u0 is None else wiring.u0
        held = Table(controls, np.array([first, *applied, applied[-1]]).T, times)
        paths = _path_record(answers, states, held, named=wiring.model is not None)
        limits = self._limits_at(times, paths.limits)
        status = [_status(answer) for answer in answers]
        # An answer without `success` has it by its status.
        decided = [word not in (LAST_PLAN, FALLBACK, DEFAULT) for word in status]
        success = [getattr(a, "success", d) for a, d in zip(answers, decided, strict=True)]
        return Run(
            states=states,
            outputs=Table(wiring.outputs, _matrix(rows["outputs"]), times),
            controls=Table(controls, _matrix(applied), begins),
            commanded=Table(controls, _matrix(rows["command"], applied[-1].size), begins),
            measured=Table(
                wiring.measured, _matrix(rows["arrived"], size_of(wiring.measured)), begins
            ),
            estimates=self._estimates(_matrix(rows["estimate"]), begins),
            constraints=Table.of(paths.values, times),
            references=Table.of(paths.references, times),
            parameters=self._true_parameters(begins),
            costs={name: np.array([costs[name] for costs in rows["costs"]]) for name in self.costs},
            limits={
                name: self._limit(name, signal, limits)
                for name, signal in {**self.free, **self.limits, **paths.constraints}.items()
            },
            unchecked=tuple(dict.fromkeys([*self._unseen(answers), *paths.unchecked])),
            status=tuple(status),
            success=np.array(success, dtype=bool) & rows["estimated"],
            seconds=np.array(rows["seconds"]),
            steps=tuple(answers),
            stopped=self.stopped,
            time_unit="" if wiring.model is None else wiring.model.time_unit,
        )

    def _estimates(self, values: Array, begins: Array) -> Table:
        """Return the table of the estimator's states, under the plant's names, and parameters."""
        free = places(self.free)
        n = values.shape[0] - size_of(free)
        names: dict[str, slice] = {}
        if n:
            same = n == self.wiring.x0.size
            names = dict(self.wiring.states) if same else {"estimate": slice(0, n)}
        names |= {name: slice(n + where.start, n + where.stop) for name, where in free.items()}
        return Table(names, values, begins)

    def _true_parameters(self, begins: Array) -> Table:
        rows = {}
        for name, true in self.true.items():
            values = [true(t) if callable(true) else true for t in begins]
            rows[name] = np.array([column(v, self.free[name].size, name) for v in values]).T
        return Table.of(rows, begins)

    def _unseen(self, answers: Sequence[Any]) -> list[str]:
        """Return the names of algebraic states with limits, which the record does not have."""
        asked = filter(None, (getattr(answer, "asked", None) for answer in answers))
        models = filter(None, (self.wiring.model, *(problem.model for problem, *_ in asked)))
        return [
            name
            for model in models
            for name, signal in model.signals["algebraic"].items()
            if name not in self.fixed and np.isfinite([signal.lower, signal.upper]).any()
        ]

    def _limits_at(
        self, times: Array, changed: Sequence[Mapping[str, Any]]
    ) -> Sequence[Mapping[str, Any]]:
        """Return for each time the limits that are not as declared; the controller's come first."""
        model = self.wiring.model
        if model is None or not model.limiting[0]:
            return changed
        own = [model.limits_by(model.numbers(self.plant.parameters, time)) for time in times]
        return [{**a, **b} for a, b in zip(own, changed or [{}] * times.size, strict=True)]

    def _limit(self, name: str, signal: Any, changed: Sequence[Mapping[str, Any]]) -> Limits:
        """Return the limits of a quantity, with a column a time where they have changed."""
        pairs = [(signal.lower, signal.upper)]
        if name not in self.fixed and any(name in limits for limits in changed):
            pairs = [limits.get(name, pairs[0]) for limits in changed]
        lower, upper = (np.stack(side, axis=1) for side in zip(*pairs, strict=True))
        return Limits(lower, upper, signal.scale, signal.unit)


def _matrix(columns: list[Any], size: int = 0) -> Array:
    """Return the columns side by side, NaN for None; ``size`` rows of NaN if all are None."""
    rows = next((column.size for column in columns if column is not None), size)
    full = [np.full(rows, np.nan) if column is None else column for column in columns]
    return np.array(full, dtype=float).T.reshape(rows, len(columns))


def _status(answer: Any) -> str:
    return "no measurement yet" if answer is None else str(getattr(answer, "status", "computed"))


class PathRecord(NamedTuple):
    """Path constraints and references of an :class:`MPC` along a run, a column a time."""

    values: dict[str, Array]
    constraints: dict[str, Constraint]
    # For each time the limits that are not as declared, by name.
    limits: Sequence[Mapping[str, Any]]
    # Constraints that the record does not determine.
    unchecked: tuple[str, ...]
    references: dict[str, Array]


def _path_record(answers: Sequence[Any], states: Table, held: Table, *, named: bool) -> PathRecord:
    """Return the path constraints of the steps along K + 1 states."""
    asked = [getattr(answer, "asked", None) for answer in answers]
    first = next(filter(None, asked), None)
    if first is None:
        return PathRecord({}, {}, (), (), {})
    # `held`: controls before the first step, in the K steps, and the last once more.
    ocp, model, prefix = first[0].nominal, first[0].model, next(iter(first[0].prefixed))
    # A step that states no problem is judged by the last one stated.
    latest = list(accumulate([*asked, None], lambda old, new: new or old, initial=first))[1:]
    programs = [program.part(prefix) for _, program, _ in latest]
    paths: dict[str, Constraint] = {}
    for constraint in ocp.constraints:
        if constraint.place == "path" and not constraint.of:  # of a state: judged as its own
            taken = constraint.name in states or constraint.name in held
            paths[f"path {constraint.name}" if taken else constraint.name] = constraint
    chosen = [*map(model.symbol, ocp.freed)] + [ocp.duration] * bool(ocp.free_duration)
    unseen = ca.vertcat(model.stacked("algebraic"), *chosen)
    # Algebraic states and free quantities of the plan are not those of the plant.
    seen = {name: c for name, c in paths.items() if not ca.depends_on(c.expression, unseen)}
    slices = places(ocp.given)
    columns = [
        _given(ocp, program, courses, time)
        for program, (*_, courses), time in zip(programs, latest, states.times, strict=True)
    ]
    P = np.array(columns).T
    references = {name: P[slices[name]].copy() for name, s in ocp.given.items() if s.varying}
    X, W = states.values, held.values
    try:
        if named:
            X = np.vstack([states.rows(name) for name in model.signals["state"]])
            W = np.vstack([held.rows(name) for name in model.signals["control"]])
        for name, control in ocp.lagged.items():
            # The previous control is the one that the plant had, not the one of the plan.
            P[slices[name]] = W[model.places("control")[control], :-1]
        function = ocp.expression_function([c.expression for c in seen.values()])
        z = np.zeros((model.size("algebraic"), len(programs)))
        values = function.map(len(programs)).call([X, z, W[:, 1:], P, states.times[None]])
    except (InputError, RuntimeError):  # the plant has other states or controls
        return PathRecord({}, {}, (), tuple(paths), references)
    rows = {name: value.full() for name, value in zip(seen, values, strict=True)}
    unchecked = tuple(name for name in paths if name not in seen)
    return PathRecord(rows, seen, [program.limits for program in programs], unchecked, references)


def _given(ocp: Any, program: Program, courses: Mapping[str, Any], time: float) -> Array:
    """Return parameters and length of a step; references are those at the time, or the first."""
    begin = program.parameters["time"].read(program.p)[0, 0]
    # A time at a grid point but for rounding belongs to the interval after it.
    grid = begin + ocp.length * (ocp.fractions - 1e-9)
    k = max(int(np.searchsorted(grid, time, side="right")) - 1, 0)
    values = program.stacked(ocp.given, k)
    for name, course in courses.items():
        with suppress(Exception):  # a function may not be defined at the end of the run
            values[places(ocp.given)[name]] = np.ravel(course(time))
    return np.append(values, ocp.length)
