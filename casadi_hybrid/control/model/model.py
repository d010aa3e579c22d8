"""A model by name: states, controls, algebraic states, parameters, outputs and what moves them."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.signals import (
    Array,
    Guess,
    NumberError,
    Signal,
    by_name,
    column,
    expression,
    flat,
    known,
    places,
)
from casadi_hybrid.problem.graph.expressions import labels
from casadi_hybrid.utils.errors import InputError, warn


@dataclass(frozen=True)
class Moves:
    """The functions (x, z, u, p, t) of a model: dx/dt or the next x, what is zero, all outputs."""

    rate: ca.Function
    equations: ca.Function
    outputs: ca.Function

    @property
    def algebraic(self) -> ca.Function:
        """(z near, x, u, p, t) → z with 0 = equations(x, z, u, p, t)."""
        x, z, u, p, t = self.equations.sx_in()
        rows = ca.Function("equations", [z, x, u, p, t], [self.equations(x, z, u, p, t)])
        return ca.rootfinder("algebraic", "newton", rows, {"abstol": 1e-12})


class Model:
    """A plant: dx/dt = rate(x, z, u, p, t) with 0 = equations(x, z, u, p, t), or x⁺ = next(…).

    Quantities are declared first; each call returns the symbols to write the model with, a column
    of ``size`` entries. What is declared here (limits, scale, unit, guess) is what an optimal
    control problem of the model begins with. A limit may be an expression of parameters that were
    declared before: it follows their values without rebuilding.

    Args:
        name: of the model, for messages.
        time_unit: of time, or of what stands in its place, for messages and axes.

    Attributes:
        discrete: whether :meth:`next` said how it moves.
        closed: whether a program of it exists, so that parameters and outputs alone may be added.

    Raises:
        InputError: for a name used twice, bad limits, free symbols, a missing rate: by the
            argument's name.

    Example:
        >>> model = Model("double integrator")
        >>> x = model.state("position", unit="m")
        >>> v = model.state("speed", lower=-1, upper=1, unit="m/s")
        >>> u = model.control("force", lower=-0.5, upper=0.5, unit="N")
        >>> model.rates(position=v, speed=u)
    """

    def __init__(self, name: str = "model", *, time_unit: str = "s") -> None:
        if not isinstance(name, str) or not name:
            raise InputError(f"name must be a non-empty text, got {name!r}")
        self.name = name
        self.time_unit = time_unit
        self.time: Any = ca.SX.sym("time")
        self.signals: dict[str, dict[str, Signal]] = {
            kind: {} for kind in ("state", "algebraic", "control", "parameter", "output")
        }
        self.values: dict[str, Any] = {}
        self._symbols: dict[str, Any] = {}
        self._rates: dict[str, Any] = {}
        self._equations: dict[str, Any] = {}
        self.discrete = self.closed = False

    def __repr__(self) -> str:
        """Quantities by kind and name."""
        kinds = [
            f"{kind} {', '.join(signals)}" for kind, signals in self.signals.items() if signals
        ]
        return f"<Model {self.name!r}: {'; '.join(kinds) or 'empty'}>"

    def state(
        self,
        name: str,
        size: int = 1,
        *,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        scale: Any = 1.0,
        guess: Guess = 0.0,
        unit: str = "",
    ) -> Any:
        """Declare a state; see :class:`Signal`, and :class:`Method` for where limits hold."""
        return self._limited("state", name, size, lower, upper, scale, guess, unit)

    def algebraic(
        self,
        name: str,
        size: int = 1,
        *,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        scale: Any = 1.0,
        guess: Guess = 0.0,
        unit: str = "",
    ) -> Any:
        """Declare an algebraic state; as many rows of :meth:`equations` determine them."""
        return self._limited("algebraic", name, size, lower, upper, scale, guess, unit)

    def control(
        self,
        name: str,
        size: int = 1,
        *,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        scale: Any = 1.0,
        guess: Guess = 0.0,
        unit: str = "",
        linear: bool = False,
    ) -> Any:
        """Declare a control: held over an interval, or ``linear`` between the grid points."""
        own = name, size, lower, upper, scale, guess, unit
        return self._limited("control", *own, linear=bool(linear))

    def parameter(self, name: str, value: Any = 0.0, *, unit: str = "", scale: Any = 1.0) -> Any:
        """Declare a number, or a column of numbers, that may change between solves."""
        values = flat(value, f"value of {name!r}")
        signal = Signal.of(name, values.size, scale=scale, unit=unit)
        numbers = column(values, values.size, f"value of {name!r}")
        return self._declare("parameter", signal, numbers=numbers)

    def reference(self, name: str, value: Any = None, size: int = 1, *, unit: str = "") -> Any:
        """Declare a parameter with a value for each grid point, held over the interval after it.

        Args:
            name: of it.
            value: a number, a column, a matrix with a column a grid point, or a function of time,
                where no duration is free. Without one, every solve that depends on it takes one by
                name; a plant and an estimator take zero.
            size: number of entries.
            unit: of it.

        Raises:
            InputError: for a list of several numbers where ``size`` is one, and for a whole number
                above 1, which may be meant as the size.
        """
        signal = Signal.of_reference(name, value, size, unit)
        return self._declare("parameter", signal, numbers=0.0 if value is None else value)

    def rates(self, equations: Mapping[str, Any] | None = None, **named: Any) -> None:
        """Say dx/dt of states by name; names that are no Python words come in a dictionary.

        Of a state that has a rate the new one holds.
        """
        self._move({**by_name(equations, "rates"), **named}, discrete=False)

    def next(self, equations: Mapping[str, Any] | None = None, **named: Any) -> None:
        """Say the value of states one step later, by name: the model is a discrete one."""
        self._move({**by_name(equations, "next"), **named}, discrete=True)

    def equations(self, equations: Mapping[str, Any] | None = None, **named: Any) -> None:
        """Say what is zero, by a name of one's own: the algebraic part of a DAE."""
        for name, value in {**by_name(equations, "equations"), **named}.items():
            self._forget()
            if name in self._equations:
                raise InputError(f"equations has {name!r} already")
            self._equations[name] = ca.vec(self._expression(value, f"equations[{name!r}]"))

    def output(self, name: str, value: Any, *, unit: str = "", scale: Any = 1.0) -> Any:
        """Declare an output, what a sensor would show; return the expression."""
        value = ca.vec(self._expression(value, f"output {name!r}"))
        signal = Signal.of(name, int(value.numel()), scale=scale, unit=unit)
        return self._declare("output", signal, value)

    def size(self, kind: str) -> int:
        """Number of entries of all ``state``, ``control``, … together."""
        slices = self._places[kind]
        return next(reversed(slices.values())).stop if slices else 0

    def stacked(self, kind: str) -> Any:
        """Return the symbols of a kind, or the outputs, one below the other as declared."""
        return ca.vertcat(ca.SX(0, 1), *(self._symbols[name] for name in self.signals[kind]))

    def limits(self, kind: str, what: str) -> Any:
        """Return ``lower``, ``upper`` or ``scale`` of all of a kind, one below the other."""
        parts = [getattr(signal, what) for signal in self.signals[kind].values()]
        return np.concatenate(parts) if parts else np.zeros(0)

    def places(self, kind: str) -> Mapping[str, slice]:
        """Slices of each of a kind in the column of all of them."""
        return self._places[kind]

    @cached_property
    def _places(self) -> dict[str, dict[str, slice]]:
        return {kind: places(signals) for kind, signals in self.signals.items()}

    def entry_names(self, kind: str) -> list[str]:
        """The entries of all of a kind, one below the other."""
        return [entry for s in self.signals[kind].values() for entry in labels(s.name, s.size)]

    @property
    def unknowns(self) -> dict[str, Signal]:
        """States, algebraic states and controls by name."""
        kinds = ("state", "algebraic", "control")
        return {name: s for kind in kinds for name, s in self.signals[kind].items()}

    @property
    def equation_names(self) -> list[str]:
        """The rows of the equations, one below the other."""
        return [
            entry for name, rows in self._equations.items() for entry in labels(name, rows.numel())
        ]

    def symbol(self, name: str) -> Any:
        """Return the symbols, or of an output the expression, by name."""
        return known(name, self._symbols, "quantity")

    def __copy__(self) -> Model:
        """Return the same model, with the same symbols; what is added to one is not the other's."""
        other = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, dict) else value)
        other.signals = {kind: signals.copy() for kind, signals in self.signals.items()}
        return other

    def limited(self, limits: Mapping[str, tuple[Any, Any]]) -> Model:
        """Return the same model, with the same symbols, with other limits (lower, upper)."""
        if not limits:
            return self
        other = copy.copy(self)
        for signals in other.signals.values():
            for name in signals.keys() & limits.keys():
                new = dict(zip(("lower", "upper"), limits[name], strict=True))
                signals[name] = replace(signals[name], **new, moved=(None, None))
        other.__dict__.pop("limiting", None)
        return other

    def unlimited(self, names: Collection[str]) -> Model:
        """Return the same model, with the same symbols, without the limits of these."""
        sizes = {name: np.full(self.unknowns[name].size, np.inf) for name in names}
        return self.limited({name: (-none, none) for name, none in sizes.items()})

    def given_controls(self) -> Model:
        """Return a model with the same symbols, whose controls are references and which rests."""
        other = copy.copy(self)
        controls = {
            name: Signal.of(name, s.size, unit=s.unit, varying=True)
            for name, s in self.signals["control"].items()
        }
        given = {name: replace(s, needed=False) for name, s in self.signals["parameter"].items()}
        other.signals = {**self.signals, "parameter": given | controls, "control": {}}
        other.values = {**self.values, **dict.fromkeys(controls, 0.0)}
        other.discrete = other.closed = False
        other._rates = {name: ca.SX.zeros(s.size) for name, s in self.signals["state"].items()}
        other._forget()
        return other

    @cached_property
    def limiting(self) -> tuple[dict[str, Signal], ca.Function]:
        """Signals with expressions as limits, and (p) → lower and upper of each in turn."""
        moving = {
            name: signal
            for signals in self.signals.values()
            for name, signal in signals.items()
            if signal.moved != (None, None)
        }
        columns = [
            ca.DM(numbers) if given is None else ca.repmat(given, signal.size // given.numel(), 1)
            for signal in moving.values()
            for given, numbers in zip(signal.moved, (signal.lower, signal.upper), strict=True)
        ]
        return moving, ca.Function("limits", [self.stacked("parameter")], columns)

    def limits_by(self, p: Any) -> dict[str, tuple[Array, Array]]:
        """Return the limits that are expressions of parameters, a column, by name."""
        moving, function = self.limiting
        found = [side.full().ravel() for side in function.call([p])]
        return dict(zip(moving, zip(found[::2], found[1::2], strict=True), strict=True))

    def numbers(self, values: Mapping[str, Any], time: float) -> Array:
        """Return the parameters in one column at a time, of which a value may be a function."""
        parts = [np.zeros(0)]
        for name, signal in self.signals["parameter"].items():
            value = values[name](time) if callable(values[name]) else values[name]
            parts.append(column(value, signal.size, f"value of {name!r}"))
        return np.concatenate(parts)

    def vector(
        self, kind: str, values: Any, what: str, default: Any = None, *, lost: bool = False
    ) -> Any:
        """Return one new column of numbers for all of a kind, from a column or from names.

        Args:
            kind: ``state``, ``control``, ….
            values: a column of all entries, a dictionary by name, or a :class:`Steady`.
            what: the argument, for messages.
            default: the column that names left out are taken from; without it they are required.
            lost: whether a column may have NaN.
        """
        own = self._places[kind]
        total = next(reversed(own.values())).stop if own else 0
        values = getattr(values, f"{kind}s", values)
        if not isinstance(values, dict | Mapping):
            given = flat(values, what)
            if given.size != total:
                raise InputError(
                    f"{what} has {given.size} entries, but {self.name} has {total} {kind} "
                    f"entries ({', '.join(own)})"
                )
            if not lost and np.isnan(given).any():
                raise NumberError(f"{what} has a NaN; give numbers")
            return given
        full = np.zeros(total) if default is None else np.array(default, dtype=float)
        for name, value in values.items():
            where = known(name, own, kind)
            full[where] = column(value, where.stop - where.start, f"{what}[{name!r}]")
        if default is None and (missing := [name for name in own if name not in values]):
            raise InputError(f"{what} lacks {', '.join(map(repr, missing))}")
        return full

    @cached_property
    def moves(self) -> Moves:
        """The functions, built at the first use."""
        states = self.signals["state"]
        missing = [name for name in states if name not in self._rates]
        if missing or not states:
            raise InputError(
                f"{self.name} does not say how {', '.join(map(repr, missing)) or 'it'} moves; "
                "call its rates(…), or next(…) of a discrete model"
            )
        equations = ca.vertcat(ca.SX(0, 1), *self._equations.values())
        unknown = self.size("algebraic")
        if equations.numel() != unknown:
            raise InputError(
                f"{self.name} has {unknown} algebraic states and {equations.numel()} rows of "
                "equations; it takes as many"
            )
        if ca.sprank(ca.jacobian(equations, self.stacked("algebraic"))) < unknown:
            warn(
                f"the equations of {self.name} do not determine its algebraic states, so the index "
                "of the DAE is above 1: integrators fail, and collocation loses accuracy. "
                "Differentiate the equations by time until the algebraic states stand in them"
            )
        rates = ca.vertcat(*(self._rates[name] for name in states))
        parts = {"rate": rates, "equations": equations, "outputs": self.stacked("output")}
        return Moves(*(ca.Function(name, self.arguments, [part]) for name, part in parts.items()))

    @property
    def arguments(self) -> list[Any]:
        """The stacked symbols (x, z, u, p, t), the arguments of every function of the model."""
        kinds = ("state", "algebraic", "control", "parameter")
        return [*(self.stacked(kind) for kind in kinds), self.time]

    def _declare(self, kind: str, signal: Signal, value: Any = None, numbers: Any = None) -> Any:
        if kind == "parameter" and signal.name in ("x0", "guess"):
            raise InputError(f"{signal.name!r} is an argument of a solve; choose another name")
        if signal.name in self._symbols or signal.name == "time":
            raise InputError(f"{self.name} has {signal.name!r} already; give each its own name")
        self._forget(kind)
        self.signals[kind][signal.name] = signal
        if kind == "parameter":
            self.values[signal.name] = numbers
        self._symbols[signal.name] = ca.SX.sym(signal.name, signal.size) if value is None else value
        return self._symbols[signal.name]

    def _limited(
        self, kind: str, name: str, size: int, lower: Any, upper: Any, *rest: Any, **more: Any
    ) -> Any:
        """Declare what has limits, of which expressions are evaluated at declared parameters."""
        values, moved = [lower, upper], [None, None]
        for k, (side, given) in enumerate((("lower", lower), ("upper", upper))):
            if isinstance(given, ca.SX) and not given.is_constant():
                own = {n: s for n, s in self.signals["parameter"].items() if not s.varying}
                symbols = ca.vertcat(ca.SX(0, 1), *(self._symbols[n] for n in own))
                unknown = (
                    f"is no parameter of {self.name}; declare it before, or limit the difference "
                    "of the two instead"
                )
                moved[k] = ca.vec(expression(given, f"{side} of {name!r}", [symbols], unknown))
                p = np.concatenate([np.zeros(0), *(self.values[n] for n in own)])
                values[k] = ca.Function("limit", [symbols], [ca.densify(moved[k])])(p).full()
        signal = Signal.of(name, size, *values, *rest, **more, moved=tuple(moved))
        return self._declare(kind, signal)

    def _move(self, named: Mapping[str, Any], *, discrete: bool) -> None:
        self._forget()
        if self._rates and discrete != self.discrete:
            raise InputError(f"{self.name} has rates(…) and next(…); it is either or")
        for name, given in named.items():
            signal = known(name, self.signals["state"], "state")
            value = ca.vec(self._expression(given, f"the rate of {name!r}"))
            if value.numel() != signal.size:
                raise InputError(
                    f"the rate of {name!r} has {value.numel()} entries; the state has {signal.size}"
                )
            self._rates[name] = value
        self.discrete = discrete

    def _expression(self, value: Any, what: str) -> Any:
        unknown = f"{self.name} does not know; declare it first"
        return expression(value, what, self.arguments, unknown)

    def _forget(self, kind: str = "") -> None:
        if self.closed and kind not in ("parameter", "output"):
            raise InputError(f"{self.name} is closed: a program of it exists; make another Model")
        for made in ("moves", "limiting", "_places"):
            self.__dict__.pop(made, None)
