"""A model by name: states, controls, algebraic states, parameters, outputs and dynamics."""

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
    """Functions (x, z, u, p, t) of a model: dx/dt or the next x, algebraic rows, all outputs."""

    rate: ca.Function
    equations: ca.Function
    outputs: ca.Function

    @property
    def algebraic(self) -> ca.Function:
        """(z near, x, u, p, t) → z with 0 = equations(x, z, u, p, t)."""
        x, z, u, p, t = self.equations.sx_in()
        # CasADi's rootfinder solves for its first argument.
        rows = ca.Function("equations", [z, x, u, p, t], [self.equations(x, z, u, p, t)])
        return ca.rootfinder("algebraic", "newton", rows, {"abstol": 1e-12})


class Model:
    """Model: dx/dt = rate(x, z, u, p, t) with 0 = equations(x, z, u, p, t), or x⁺ = next(…).

    Quantities are declared first; each call returns the symbols to write the model with, a column
    of ``size`` entries. Limits, scale, unit and guess are the defaults of optimal control problems.
    A limit may be an expression of parameters that were declared before: it follows their values
    without rebuilding.

    Args:
        name: of the model, for messages.
        time_unit: of time, or of the independent variable, for messages and axes.

    Attributes:
        discrete: True if :meth:`next` defines the dynamics.
        closed: True if a program of it exists, so that only parameters and outputs may be added.

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
        kinds = [f"{kind} {', '.join(names)}" for kind, names in self.signals.items() if names]
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
        attributes = name, size, lower, upper, scale, guess, unit
        return self._limited("control", *attributes, linear=bool(linear))

    def parameter(self, name: str, value: Any = 0.0, *, unit: str = "", scale: Any = 1.0) -> Any:
        """Declare a parameter, a number or a column, whose value may change between solves."""
        values = flat(value, f"value of {name!r}")
        signal = Signal.of(name, values.size, scale=scale, unit=unit)
        return self._declare("parameter", signal, column(values, values.size, f"value of {name!r}"))

    def reference(self, name: str, value: Any = None, size: int = 1, *, unit: str = "") -> Any:
        """Declare a parameter with a value for each grid point, held over the interval after it.

        Args:
            name: of the reference.
            value: a number, a column, a matrix with a column a grid point, or a function of time if
                no duration is free. Without a value, each solve that depends on it takes one by
                name; a plant and an estimator take zero.
            size: number of entries.
            unit: for axes and tables.

        Raises:
            InputError: for a list of several numbers with ``size`` one, and for a whole number
                above 1, which may be meant as the size.
        """
        signal = Signal.of_reference(name, value, size, unit)
        return self._declare("parameter", signal, 0.0 if value is None else value)

    def rates(self, equations: Mapping[str, Any] | None = None, **named: Any) -> None:
        """Set dx/dt of states by name; a dictionary takes names that are no Python words.

        The last rate of a state counts.
        """
        self._move({**by_name(equations, "rates"), **named}, discrete=False)

    def next(self, equations: Mapping[str, Any] | None = None, **named: Any) -> None:
        """Set the values of states one step later, by name: the model is discrete."""
        self._move({**by_name(equations, "next"), **named}, discrete=True)

    def equations(self, equations: Mapping[str, Any] | None = None, **named: Any) -> None:
        """Set expressions that are zero, by a free name: the algebraic part of a DAE."""
        for name, value in {**by_name(equations, "equations"), **named}.items():
            self._forget()
            if name in self._equations:
                raise InputError(f"equations has {name!r} already")
            self._equations[name] = ca.vec(self._expression(value, f"equations[{name!r}]"))

    def output(self, name: str, value: Any, *, unit: str = "", scale: Any = 1.0) -> Any:
        """Declare an output, such as the value of a sensor; return the expression."""
        value = ca.vec(self._expression(value, f"output {name!r}"))
        signal = Signal.of(name, int(value.numel()), scale=scale, unit=unit)
        return self._declare("output", signal, expression=value)

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
        """Slices of the quantities of a kind in their column."""
        return self._places[kind]

    @cached_property
    def _places(self) -> dict[str, dict[str, slice]]:
        return {kind: places(signals) for kind, signals in self.signals.items()}

    def entry_names(self, kind: str) -> list[str]:
        """Names of the entries of a kind, one below the other."""
        return [entry for s in self.signals[kind].values() for entry in labels(s.name, s.size)]

    @property
    def unknowns(self) -> dict[str, Signal]:
        """States, algebraic states and controls by name."""
        kinds = ("state", "algebraic", "control")
        return {name: s for kind in kinds for name, s in self.signals[kind].items()}

    @property
    def equation_names(self) -> list[str]:
        """Names of the rows of the equations, one below the other."""
        sizes = {name: rows.numel() for name, rows in self._equations.items()}
        return [entry for name, size in sizes.items() for entry in labels(name, size)]

    def symbol(self, name: str) -> Any:
        """Return the symbols, or of an output the expression, by name."""
        return known(name, self._symbols, "quantity")

    def __copy__(self) -> Model:
        """Return an independent model with the same symbols."""
        other = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, dict) else value)
        # Signals lie one level deeper than the other dictionaries.
        other.signals = {kind: signals.copy() for kind, signals in self.signals.items()}
        return other

    def limited(self, limits: Mapping[str, tuple[Any, Any]]) -> Model:
        """Return a model with the same symbols and other limits (lower, upper)."""
        if not limits:
            return self
        other = copy.copy(self)
        for signals in other.signals.values():
            for name in signals.keys() & limits.keys():
                lower, upper = limits[name]
                # A number replaces the expression: the limit no longer follows parameters.
                moved = None, None
                signals[name] = replace(signals[name], lower=lower, upper=upper, moved=moved)
        other.__dict__.pop("limiting", None)
        return other

    def unlimited(self, names: Collection[str]) -> Model:
        """Return a model with the same symbols, without the limits of these quantities."""
        infinite = {name: np.full(self.unknowns[name].size, np.inf) for name in names}
        return self.limited({name: (-upper, upper) for name, upper in infinite.items()})

    def given_controls(self) -> Model:
        """Return a model with the same symbols, controls as references, and zero rates."""
        other = copy.copy(self)
        parameters = {n: replace(s, needed=False) for n, s in self.signals["parameter"].items()}
        controls = self.signals["control"]
        for name, s in controls.items():
            # Known controls of the past are references of a window.
            parameters[name] = Signal.of(name, s.size, unit=s.unit, varying=True)
        other.signals = {**self.signals, "parameter": parameters, "control": {}}
        other.values = {**self.values, **dict.fromkeys(controls, 0.0)}
        # The window's own step moves the states: these rates are never used.
        other.discrete = other.closed = False
        other._rates = {name: ca.SX.zeros(s.size) for name, s in self.signals["state"].items()}
        other._forget()
        return other

    @cached_property
    def limiting(self) -> tuple[dict[str, Signal], ca.Function]:
        """Signals with expressions as limits, and (p) → lower and upper of each in turn."""
        moving = {name: s for name, s in self.unknowns.items() if s.moved != (None, None)}
        columns = []
        for signal in moving.values():
            for limit, value in zip(signal.moved, (signal.lower, signal.upper), strict=True):
                if limit is None:
                    columns.append(ca.DM(value))
                else:
                    # A scalar expression holds for all entries.
                    columns.append(ca.repmat(limit, signal.size // limit.numel(), 1))
        return moving, ca.Function("limits", [self.stacked("parameter")], columns)

    def limits_by(self, p: Any) -> dict[str, tuple[Array, Array]]:
        """Return the limits that are expressions of parameters, a column, by name."""
        moving, function = self.limiting
        sides = [side.full().ravel() for side in function.call([p])]
        return dict(zip(moving, zip(sides[::2], sides[1::2], strict=True), strict=True))

    def refuse_later(self, names: Collection[str], made: str) -> None:
        """Raise InputError for a parameter that is not among those of a thing made before."""
        later = [name for name in self.signals["parameter"] if name not in names]
        if later:
            raise InputError(
                f"{self.name} has {', '.join(map(repr, later))} only since the {made} was made "
                f"from it; declare parameters and references before, or make the {made} anew"
            )

    def numbers(self, values: Mapping[str, Any], time: float) -> Array:
        """Return the parameters in one column; functions of time are evaluated at a time."""
        parts = [np.zeros(0)]
        for name, signal in self.signals["parameter"].items():
            value = values[name](time) if callable(values[name]) else values[name]
            parts.append(column(value, signal.size, f"value of {name!r}"))
        return np.concatenate(parts)

    def vector(
        self, kind: str, values: Any, what: str, default: Any = None, *, lost: bool = False
    ) -> Any:
        """Return a new column of all quantities of a kind, from a column or by name."""
        places = self._places[kind]
        total = next(reversed(places.values())).stop if places else 0
        # A Steady has its values in .states and .controls.
        values = getattr(values, f"{kind}s", values)
        if not isinstance(values, dict | Mapping):
            entries = flat(values, what)
            if entries.size != total:
                raise InputError(
                    f"{what} has {entries.size} entries, but {self.name} has {total} {kind} "
                    f"entries ({', '.join(places)})"
                )
            if not lost and np.isnan(entries).any():
                raise NumberError(f"{what} has a NaN; give numbers")
            return entries
        # Names left out keep the default; without one all are required.
        full = np.zeros(total) if default is None else np.array(default, dtype=float)
        for name, value in values.items():
            where = known(name, places, kind)
            full[where] = column(value, where.stop - where.start, f"{what}[{name!r}]")
        missing = [name for name in places if name not in values] if default is None else []
        if missing:
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
        # Structural rank: ∂g/∂z is singular for all values, a DAE of index above 1.
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

    def _declare(self, kind: str, signal: Signal, value: Any = None, expression: Any = None) -> Any:
        """Add a quantity; a parameter with its value, an output with its expression."""
        if kind == "parameter" and signal.name in ("x0", "guess"):
            raise InputError(f"{signal.name!r} is an argument of a solve; choose another name")
        if signal.name in self._symbols or signal.name == "time":
            raise InputError(f"{self.name} has {signal.name!r} already; give each its own name")
        self._forget(kind)
        self.signals[kind][signal.name] = signal
        if kind == "parameter":
            self.values[signal.name] = value
        symbol = ca.SX.sym(signal.name, signal.size) if expression is None else expression
        self._symbols[signal.name] = symbol
        return symbol

    def _limited(
        self, kind: str, name: str, size: int, lower: Any, upper: Any, *rest: Any, **more: Any
    ) -> Any:
        """Declare a quantity; expressions as limits are evaluated at declared parameters."""
        values, moved = [lower, upper], [None, None]
        for k, (side, limit) in enumerate((("lower", lower), ("upper", upper))):
            if isinstance(limit, ca.SX) and not limit.is_constant():
                names = [n for n, s in self.signals["parameter"].items() if not s.varying]
                symbols = ca.vertcat(ca.SX(0, 1), *(self._symbols[n] for n in names))
                unknown = (
                    f"is no parameter of {self.name}; declare it before, or limit the difference "
                    "of the two instead"
                )
                moved[k] = ca.vec(expression(limit, f"{side} of {name!r}", [symbols], unknown))
                # Evaluated at the declared parameters: the bound of a program without other values.
                p = np.concatenate([np.zeros(0), *(self.values[n] for n in names)])
                values[k] = ca.Function("limit", [symbols], [ca.densify(moved[k])])(p).full()
        signal = Signal.of(name, size, *values, *rest, **more, moved=tuple(moved))
        return self._declare(kind, signal)

    def _move(self, named: Mapping[str, Any], *, discrete: bool) -> None:
        self._forget()
        if self._rates and discrete != self.discrete:
            raise InputError(f"{self.name} has rates(…) and next(…); it is either or")
        for name, rate in named.items():
            signal = known(name, self.signals["state"], "state")
            value = ca.vec(self._expression(rate, f"the rate of {name!r}"))
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
        # What cached properties hold is stale after a declaration.
        for cached in ("moves", "limiting", "_places"):
            self.__dict__.pop(cached, None)
