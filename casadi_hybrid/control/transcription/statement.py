"""The statement of an optimal control problem: horizon, costs, constraints, parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Self

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.model import Model
from casadi_hybrid.control.model.signals import (
    Array,
    Guess,
    Signal,
    by_name,
    column,
    expression,
    finite,
    flat,
    known,
    pair_of,
    sizes,
    spread,
)
from casadi_hybrid.control.model.steps import Free
from casadi_hybrid.control.transcription.methods import Method, MultipleShooting
from casadi_hybrid.control.transcription.terms import AT, SAME, SOFT, Constraint, Cost, Soft
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import count, one_of, positive


class Statement:
    """The declarations of an optimal control problem; see :class:`OptimalControl`."""

    def __init__(
        self,
        model: Model,
        *,
        duration: float | Free,
        intervals: int,
        method: Method | None = None,
        mesh: Any = None,
        unroll: bool | None = None,
        name: str | None = None,
        solver: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(model, Model):
            raise InputError(f"model must be a Model, got {type(model).__name__}")
        self.model = model
        self.name = name or model.name
        self.free_duration = duration if isinstance(duration, Free) else None
        if isinstance(duration, Free):
            self.length = duration.guess
        elif isinstance(duration, tuple | list):
            raise InputError(
                f"duration must be a number, or Free(guess, lower, upper) for one that the solver "
                f"chooses, got {duration!r}"
            )
        else:
            self.length = positive(duration, "duration")
        self.intervals = count(intervals, "intervals", at_least=1)
        self.method: Method = MultipleShooting() if method is None else method
        if not isinstance(self.method, Method):
            raise InputError(
                "method must be MultipleShooting(), SingleShooting() or Collocation(), got "
                f"{method!r}"
            )
        short = self.intervals <= self.method.unrolled
        self.unroll = bool(short if unroll is None else unroll)
        self._set_mesh(_fractions(mesh, self.intervals))
        self.duration: Any = ca.SX.sym("duration")
        self.signals: dict[str, Signal] = {}
        self.values: dict[str, Any] = {}
        self.costs: list[Cost] = []
        self.constraints: list[Constraint] = []
        self.fixed: dict[str, Any] = {}  # states fixed at the start, with their values
        self.ends: dict[str, Any] = {}  # states fixed at the end, with their expressions
        self.cycles: list[str] = []  # periodic states
        self.freed: dict[str, Signal] = {}  # parameters of the model that the solver chooses
        self.guesses: dict[str, Guess] = {}
        self.lagged: dict[str, str] = {}  # control, by the name of its parameter of previous()
        self.slewed: list[str] = []  # constraints that limit control increments
        self.softened: list[str] = []  # states and algebraic states with soft limits
        self._symbols: dict[str, Any] = {}
        self.closed = False  # True once the program exists: nothing may be added
        self.options = by_name(solver, "solver")

    def __repr__(self) -> str:
        """Content by name."""
        length = "free duration" if self.free_duration else f"duration {self.length:g}"
        parts = [f"{length} in {self.intervals} intervals, {type(self.method).__name__}"]
        for kind, terms in (("costs", self.costs), ("constraints", self.constraints)):
            if terms:
                parts.append(f"{kind} {', '.join(term.name for term in terms)}")
        if self.fixed:
            parts.append(f"at the start {', '.join(self.fixed)} fixed")
        return f"<{type(self).__name__} {self.name!r}: {'; '.join(parts)}>"

    @property
    def nominal(self) -> Self:
        """The problem; of scenarios the common one."""
        return self

    @property
    def prefixed(self) -> dict[str, Self]:
        """The parts of the program by the prefix of their names; the first is the nominal one."""
        return {"": self}

    @property
    def limitable(self) -> dict[str, Any]:
        """Quantities and constraints with limits, by name."""
        return {**{c.name: c for c in self.constraints}, **self.model.unknowns}

    @property
    def given(self) -> dict[str, Signal]:
        """Parameters and references by name, the model's first."""
        return {**self.model.signals["parameter"], **self.signals}

    @property
    def declared(self) -> dict[str, Any]:
        """Declared values of parameters and references by name."""
        return {**self.model.values, **self.values}

    def parameter(self, name: str, value: Any = 0.0, *, unit: str = "") -> Any:
        """Add a parameter of costs and constraints, whose values may change between solves."""
        values = flat(value, f"value of {name!r}")
        return self._declare(Signal.of(name, values.size, unit=unit), values)

    def lacking(self, values: Collection[str]) -> list[str]:
        """Return the references without a value on which dynamics, costs or constraints depend."""
        names = [n for n, signal in self.given.items() if signal.needed and n not in values]
        if not names:
            return names
        moves, arguments = self.model.moves, self.model.arguments
        terms = [moves.rate(*arguments), moves.equations(*arguments)]
        terms += [ca.vertcat(c.integral, c.sum, c.start, c.end) for c in self.costs]
        terms += [constraint.expression for constraint in self.constraints]
        symbols = {
            n: self._symbols[n] if n in self.signals else self.model.symbol(n) for n in names
        }
        return [n for n in names if ca.depends_on(ca.vertcat(*terms), symbols[n])]

    def reference(self, name: str, value: Any = None, size: int = 1, *, unit: str = "") -> Any:
        """Add a parameter with a value for each grid point; see :meth:`Model.reference`."""
        signal = Signal.of_reference(name, value, size, unit)
        return self._declare(signal, 0.0 if value is None else value)

    def previous(self, control: str) -> Any:
        """Return a control on the interval before, for a weight or a limit on its changes.

        On the first interval it is the parameter ``CONTROL_previous``: the control applied last, by
        default the guess. In a later phase it is the last control of the phase before, if that has
        the control.

        Raises:
            InputError: for an unknown control, and for one that runs linearly.
        """
        name = f"{control}_previous"
        if name in self._symbols and name in self.lagged:
            return self._symbols[name]
        signal = known(control, self.model.signals["control"], "control")
        if signal.linear:
            raise InputError(
                f"{control!r} runs linearly, without jumps; previous() is of controls that are held"
            )
        value = spread(signal.guess, signal.size, np.zeros(1), f"guess of {control!r}")[:, 0]
        self.lagged[name] = control
        return self._declare(replace(signal, name=name, scale=np.ones(signal.size)), value)

    def moves(self, control: str, *, price: Any = None, limit: Any = None) -> None:
        """Weight or limit the increments of a control from one interval to the next.

        Adds Σₖ price·(uₖ − uₖ₋₁)² over the intervals, and |uₖ − uₖ₋₁| ≤ limit on each, with u₋₁ as
        in :meth:`previous`. A rate of r a second is a limit of r times the length of an interval.
        Cost and constraint have the name ``moves of …``.

        Args:
            control: name of a control that is held.
            price, limit: a number, or one an entry, in the control's unit.

        Raises:
            InputError: as :meth:`previous`, and for numbers that are not positive.
        """
        change = self.model.symbol(control) - self.previous(control)
        signal, label = self.model.signals["control"][control], f"moves of {control}"
        weights = {"price": price, "limit": limit}
        if price is None and limit is None:
            raise InputError(f"moves({control!r}) does nothing; give price, limit or both")
        for what, value in weights.items():
            if value is not None:
                weights[what] = column(value, signal.size, f"{what} of {label}")
                if not (weights[what] > 0).all():
                    raise InputError(f"{what} of {label} must be positive, got {value!r}")
        if price is not None:
            self.minimize(label, sum=ca.dot(ca.DM(weights["price"]), change**2))
        if limit is not None:
            sides = -weights["limit"], weights["limit"], None
            # One row an interval: a held control changes only at grid points.
            attributes = {"unit": signal.unit, "at": "intervals"}
            self._constrain(label, "path", change, sides, signal.scale, None, **attributes)
            self.slewed.append(label)

    def initial(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Fix states at the start; without arguments all others. Of two calls the last one counts.

        A solve takes these values for states without a value in ``x0``. A state fixed without a
        value needs one in each solve.
        """
        self._open()
        states = self.model.signals["state"]
        others = dict.fromkeys(name for name in states if name not in self.fixed)
        for name, value in ({**by_name(values, "initial"), **named} or others).items():
            signal = known(name, states, "state")
            if value is not None:
                finite(value, signal.size, f"initial {name!r}")
            self.fixed[name] = value

    def final(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Fix states at the end, to numbers or expressions of parameters; the last call counts."""
        self._open()
        for name, value in {**by_name(values, "final"), **named}.items():
            signal = known(name, self.model.signals["state"], "state")
            if not isinstance(value, ca.SX | ca.MX | str):
                finite(value, signal.size, f"final {name!r}")
            target = self.own_expression(value, f"final {name!r}")
            gap, label = self.model.symbol(name) - target, f"final {name}"
            if name in self.ends:
                self.constraints = [c for c in self.constraints if c.name != label]
            self.ends[name] = target
            # The target is subtracted, so that it may depend on parameters without moving bounds.
            self.at_end(label, gap, equal=0.0, scale=signal.scale, unit=signal.unit)

    def periodic(self, *names: str) -> None:
        """Let states end at their initial values; without names all of them."""
        self._open()
        states = self.model.signals["state"]
        for name in names or states:
            known(name, states, "state")
            if name in self.fixed or name in self.ends:
                raise InputError(f"{name!r} is fixed at an end already; it cannot be periodic too")
            if name not in self.cycles:
                self.cycles.append(name)

    def minimize(
        self,
        name: str,
        *,
        integral: Any = None,
        sum: Any = None,
        start: Any = None,
        end: Any = None,
    ) -> None:
        """Add a cost: an integral over time, a sum over the intervals, at the start, at the end.

        The sum takes each interval once, at its beginning.
        """
        self._open()
        if not isinstance(name, str) or not name:
            raise InputError(
                f"the first argument is the cost's name, got {name!r}. The call is "
                'minimize("effort", integral=expression), or sum=, start=, end='
            )
        if name in (SOFT, *(cost.name for cost in self.costs)):
            raise InputError(f"{self.name} has a cost {name!r} already; give each its own name")
        parts = {"integral": integral, "sum": sum, "start": start, "end": end}
        if all(part is None for part in parts.values()):
            raise InputError(f"{name!r} costs nothing; give integral, sum, start or end")
        for key, value in parts.items():
            part = self.own_expression(0 if value is None else value, f"{key} of {name!r}")
            if part.numel() != 1:
                raise InputError(f"{key} of {name!r} must be a scalar, it has {part.numel()}")
            parts[key] = part
        self.costs.append(Cost(name, **parts))

    def path(
        self,
        name: str,
        expression: Any,
        *,
        lower: Any = None,
        upper: Any = None,
        equal: Any = None,
        soft: Soft | float | None = None,
        scale: Any = 1.0,
        unit: str = "",
        at: str = "inside",
    ) -> None:
        """Add lower ≤ expression ≤ upper along the horizon, where declared limits hold.

        These are the grid points, the points of a collocation, and the ``inner`` points of the
        method; ``at`` selects fewer, see :class:`Constraint`. One limit alone may be an
        expression: it is subtracted, and zero limits the difference.
        """
        one_of(at, f"at of {name!r}", AT)
        sides = lower, upper, equal
        self._constrain(name, "path", expression, sides, scale, soft, unit=unit, at=at)

    def at_start(
        self,
        name: str,
        expression: Any,
        *,
        lower: Any = None,
        upper: Any = None,
        equal: Any = None,
        soft: Soft | float | None = None,
        scale: Any = 1.0,
        unit: str = "",
    ) -> None:
        """Add lower ≤ expression ≤ upper at the start."""
        self._constrain(name, "start", expression, (lower, upper, equal), scale, soft, unit=unit)

    def at_end(
        self,
        name: str,
        expression: Any,
        *,
        lower: Any = None,
        upper: Any = None,
        equal: Any = None,
        soft: Soft | float | None = None,
        scale: Any = 1.0,
        unit: str = "",
    ) -> None:
        """Add lower ≤ expression ≤ upper at the end."""
        self._constrain(name, "end", expression, (lower, upper, equal), scale, soft, unit=unit)

    def soften(self, name: str, soft: Soft | float) -> None:
        """Make the declared limits of a state or algebraic state soft, where hard limits hold."""
        states = self.model.signals["state"] | self.model.signals["algebraic"]
        signal = known(name, states, "state or algebraic state")
        if not np.isfinite([signal.lower, signal.upper]).any():
            raise InputError(f"{name!r} has no limit that could be soft; give the state one")
        # An algebraic state between its unknowns is not part of the program.
        at = "inside" if name in self.model.signals["state"] else "unknowns"
        label, sides = f"limits of {name}", (signal.lower, signal.upper, None)
        attributes = {"unit": signal.unit, "at": at, "of": name}
        symbol = self.model.symbol(name)
        self._constrain(label, "path", symbol, sides, signal.scale, soft, **attributes)
        self.softened.append(name)

    def free(
        self,
        name: str,
        *,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        scale: Any = 1.0,
        guess: Guess = None,
    ) -> None:
        """Let the solver choose a parameter of the model, one value for the whole horizon.

        A solve begins at ``guess``, by default the declared value.
        """
        self._open()
        signal = known(name, self.model.signals["parameter"], "parameter")
        if signal.varying:
            raise InputError(f"{name!r} is a reference; only a parameter can be free")
        moving, function = self.model.limiting
        limits = ca.vertcat(*function(self.model.stacked("parameter"))) if moving else ca.SX()
        # A bound is a number in a solve: it cannot move with an unknown.
        if ca.depends_on(limits, self.model.symbol(name)):
            raise InputError(f"{name!r} is in a limit of the model; it cannot be free")
        guess = self.model.values[name] if guess is None else guess
        self.freed[name] = Signal.of(name, signal.size, lower, upper, scale, guess, signal.unit)

    def guess(self, values: Mapping[str, Guess] | None = None, /, **named: Guess) -> None:
        """Set the initial guess: numbers, a column a grid point, or a function of s in [0, 1].

        By default a state with an initial value runs straight to its final one; others have the
        guesses of the model.
        """
        for name, value in {**by_name(values, "guess"), **named}.items():
            names = {**self.model.unknowns, **self.freed, "duration": None}
            known(name, names, "state, control or free one")
            if name in self.model.unknowns and not callable(value):
                self.guessed(name, value)  # refused here where its size is wrong
            self.guesses[name] = value

    def guessed(self, name: str, value: Any) -> Array:
        """Return a guess of a state, algebraic state or control at the grid points."""
        signal = self.model.unknowns[name]
        held = name in self.model.signals["control"] and not signal.linear
        return spread(value, signal.size, self.fractions, f"guess of {name!r}", held=held)

    def limited(self, limits: Mapping[str, Any]) -> Self:
        """Return the problem with its program and other limits (lower, upper) of a solution."""
        if not limits:
            return self
        # No constructor: the copy shares the built program.
        other = object.__new__(type(self))
        vars(other).update(vars(self) | {"model": self.model.limited(limits), "constraints": []})
        for c in self.constraints:
            lower, upper = limits.get(c.name, (c.lower, c.upper))
            other.constraints.append(replace(c, lower=lower, upper=upper))
        return other

    def reopened(self) -> Self:
        """Return a copy of the problem without its program, to be changed."""
        other = object.__new__(type(self))
        # Entries of lists and dictionaries are replaced, never changed: one level is enough.
        for name, value in vars(self).items():
            if name not in ("transcriptions", "solver"):  # cached at the first use
                setattr(other, name, value.copy() if isinstance(value, dict | list) else value)
        other.closed = False
        return other

    __copy__ = reopened

    def on_mesh(self, fractions: Any) -> Self:
        """Return a copy of the problem on another mesh.

        Guesses with a column a grid point are interpolated; references are held after their grid
        point.

        Args:
            fractions: increasing, from 0 to 1, one more than there will be intervals.

        Raises:
            InputError: for other fractions.
        """
        mesh, old = _fractions(fractions, np.size(fractions) - 1), self.fractions
        other = self.reopened()
        other._set_mesh(mesh)
        for name, signal in self.given.items():
            if signal.varying:
                value = self.declared[name]
                other.values[name] = moved_to(value, signal.size, old, mesh, held=True)
        for name, signal in self.model.unknowns.items():
            guess = self.guesses.get(name, signal.guess)
            moved = moved_to(guess, signal.size, old, mesh)
            if moved is not guess:
                other.guesses[name] = moved
        return other

    def expression_function(self, expressions: list[Any], name: str = "expression") -> ca.Function:
        """Return the function (x, z, u, p, t) of expressions; p: model's, own, duration."""
        x, z, u, p, t = self.model.arguments
        p = ca.vertcat(p, *(self._symbols[name] for name in self.signals), self.duration)
        return ca.Function(name, [x, z, u, p, t], expressions)

    def _set_mesh(self, fractions: Array) -> None:
        lengths = np.diff(fractions)
        self.fractions, self.intervals = fractions, lengths.size
        self.even = bool(np.ptp(lengths) <= SAME * lengths[0])

    def _constrain(
        self,
        name: str,
        place: str,
        expression: Any,
        limits: tuple[Any, Any, Any],
        scale: Any,
        soft: Any,
        **attributes: Any,
    ) -> None:
        """Add a constraint with limits (lower, upper, equal) and attributes of it."""
        self._open()
        self._refuse_taken(name, attributes.get("of", ""))
        lower, upper, equal = limits
        if equal is not None:
            if lower is not None or upper is not None:
                raise InputError(f"{name!r} has equal and a limit; give one or the other")
            lower = upper = equal
        elif lower is None and upper is None:
            raise InputError(f"{name!r} has no limit; give lower, upper or equal")
        expression = self.own_expression(expression, repr(name))
        limit = upper if lower is None else lower
        single = upper is None or limit is upper
        # expression ≤ limit(p) becomes expression − limit(p) ≤ 0: bounds stay numbers.
        less = single and isinstance(limit, ca.SX) and not limit.is_constant()
        if less:
            expression -= self.own_expression(limit, f"limit of {name!r}")
            lower, upper = (None if side is None else 0 for side in (lower, upper))
        expression = ca.vec(expression)
        size = int(expression.numel())
        columns = *pair_of(name, size, (lower, upper)), sizes(name, size, scale)
        penalty = Soft.of(soft, f"soft of {name!r}")
        self.constraints.append(
            Constraint(name, place, expression, *columns, penalty, less=less, **attributes)
        )

    def _refuse_taken(self, name: str, softened: str) -> None:
        """Refuse a name that a quantity, a constraint or a block of the program has."""
        if not isinstance(name, str) or not name:
            raise InputError(f"name must be a non-empty text, got {name!r}")
        if any(constraint.name == name for constraint in self.constraints):
            raise InputError(f"{self.name} has a constraint {name!r} already; name each its own")
        states = self.model.signals["state"]
        taken = {f"{what} {state}" for what in ("initial", "final", "periodic") for state in states}
        taken.difference_update(f"final {state}" for state in self.ends)
        if not softened:
            taken.update(f"limits of {unknown}" for unknown in self.model.unknowns)
        if name in taken or name in self._names - self.model.signals["output"].keys():
            raise InputError(
                f"{self.name} has {name!r} already: limits, multipliers and plans could not tell "
                "them apart; give the constraint a name of its own"
            )

    def _declare(self, signal: Signal, value: Any) -> Any:
        self._open()
        if signal.name in {*self._names, "x0", "guess", *(c.name for c in self.constraints)}:
            raise InputError(f"{self.name} has {signal.name!r} already; give each its own name")
        self.signals[signal.name] = signal
        self.values[signal.name] = value
        self._symbols[signal.name] = ca.SX.sym(signal.name, signal.size)
        return self._symbols[signal.name]

    @property
    def _names(self) -> set[str]:
        """Names that no constraint may have."""
        of_model = (name for kind in self.model.signals.values() for name in kind)
        rows = "dynamics", "continuity", "equations", "equations at grid points"
        return {*self._symbols, *of_model, "time", "duration", *rows}

    def own_expression(self, value: Any, what: str) -> Any:
        """Return an expression of symbols of the problem and its model, and of no others."""
        arguments = [*self.model.arguments, *self._symbols.values(), self.duration]
        unknown = (
            f"{self.name} does not know; declare it in the model, or by parameter(…) or "
            "reference(…)"
        )
        return expression(value, what, arguments, unknown)

    def _open(self) -> None:
        if self.closed:
            raise InputError(
                f"{self.name} is closed: its program exists. State all before that, or state more "
                "in what reopened() returns; other numbers are arguments of solve(x0, …)"
            )


def moved_to(value: Any, size: int, old: Any, new: Any, *, held: bool = False) -> Any:
    """Return values with a column a grid point on another mesh; others unchanged."""
    if callable(value) or value is None:
        return value
    rows = np.asarray(value, dtype=float)
    if rows.ndim == 1 and size == 1 and rows.size == old.size:
        rows = rows[None, :]
    if rows.ndim != 2 or rows.shape[1] != old.size or old.size == 1:
        return value
    if held:
        # A held value lasts until the next old grid point.
        return rows[:, np.clip(np.searchsorted(old, new, side="right") - 1, 0, old.size - 1)]
    return np.stack([np.interp(new, old, row) for row in rows])


def _fractions(mesh: Any, intervals: int) -> Any:
    if mesh is None:
        return np.linspace(0.0, 1.0, intervals + 1)
    fractions = np.asarray(mesh, dtype=float).ravel()
    ordered = fractions.size == intervals + 1 and bool((np.diff(fractions) > 0).all())
    if not ordered or fractions[0] != 0.0 or fractions[-1] != 1.0:
        raise InputError(
            f"mesh must be {intervals + 1} increasing numbers from 0 to 1, one more than intervals"
        )
    return fractions
