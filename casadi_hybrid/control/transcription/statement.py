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
    """The declarations of an optimal control problem; see :class:`OptimalControl`.

    Attributes:
        model, method, name: as given.
        options: of the solver.
        length: the duration, or where a free one begins.
        fractions: of the grid points, from 0 to 1.
        even: whether all intervals are equally long.
        signals, values: parameters and references of the problem by name.
        costs, constraints: in the order of declaration.
        fixed: states that are fixed at the start, with their numbers.
        ends: states that are fixed at the end, with their expressions.
        cycles: states that end as they began.
        freed: parameters of the model that the solver chooses.
        guesses: by name.
        softened: states and algebraic states whose limits are soft.
        lagged: of what :meth:`previous` returned, by name, the control's name.
        slewed: constraints that limit moves of controls.
        closed: whether the program exists, so that nothing may be added.
    """

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
        self.fixed: dict[str, Any] = {}
        self.ends: dict[str, Any] = {}
        self.cycles: list[str] = []
        self.freed: dict[str, Signal] = {}
        self.guesses: dict[str, Guess] = {}
        self.lagged: dict[str, str] = {}
        self.slewed: list[str] = []
        self.softened: list[str] = []
        self._symbols: dict[str, Any] = {}
        self.closed = False
        self.options = by_name(solver, "solver")

    def __repr__(self) -> str:
        """Content by name."""
        length = "free duration" if self.free_duration else f"duration {self.length:g}"
        said = [f"{length} in {self.intervals} intervals, {type(self.method).__name__}"]
        for kind, parts in (("costs", self.costs), ("constraints", self.constraints)):
            if parts:
                said.append(f"{kind} {', '.join(part.name for part in parts)}")
        if self.fixed:
            said.append(f"at the start {', '.join(self.fixed)} fixed")
        return f"<{type(self).__name__} {self.name!r}: {'; '.join(said)}>"

    @property
    def nominal(self) -> Self:
        """The problem, of scenarios the one that they have in common."""
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
        """Their declared values by name."""
        return {**self.model.values, **self.values}

    def parameter(self, name: str, value: Any = 0.0, *, unit: str = "") -> Any:
        """Add numbers for costs and constraints that may change between solves."""
        values = flat(value, f"value of {name!r}")
        return self._declare(Signal.of(name, values.size, unit=unit), values)

    def lacking(self, given: Collection[str]) -> list[str]:
        """Return the references without a value, on which dynamics, costs or constraints depend."""
        names = [n for n, signal in self.given.items() if signal.needed and n not in given]
        if not names:
            return names
        moves, arguments = self.model.moves, self.model.arguments
        said = [moves.rate(*arguments), moves.equations(*arguments)]
        said += [ca.vertcat(c.integral, c.sum, c.start, c.end) for c in self.costs]
        said += [constraint.expression for constraint in self.constraints]
        return [
            n
            for n in names
            if ca.depends_on(
                ca.vertcat(*said), self._symbols[n] if n in self.signals else self.model.symbol(n)
            )
        ]

    def reference(self, name: str, value: Any = None, size: int = 1, *, unit: str = "") -> Any:
        """Add numbers that differ from grid point to grid point; see :meth:`Model.reference`."""
        signal = Signal.of_reference(name, value, size, unit)
        return self._declare(signal, 0.0 if value is None else value)

    def previous(self, control: str) -> Any:
        """Return a control as it is on the interval before, to price or to limit its changes.

        On the first interval it is a parameter with the name of the control and ``_previous``, what
        was applied last, by default the control's guess. In a later phase it is the last one of
        the phase before, where that has the control.

        Raises:
            InputError: where there is no such control, or it runs linearly.
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
        """Price or limit how far a control moves from one interval to the next.

        Adds Σₖ price·(uₖ − uₖ₋₁)² over the intervals, and |uₖ − uₖ₋₁| ≤ limit on each, with u₋₁ as
        in :meth:`previous`. A rate of r a second is a limit of r times the length of an interval.
        Cost and constraint are called ``moves of …``.

        Args:
            control: its name; one that is held.
            price, limit: a number, or one an entry, in the control's unit.

        Raises:
            InputError: as :meth:`previous`, and for numbers that are not positive.
        """
        change = self.model.symbol(control) - self.previous(control)
        signal, label = self.model.signals["control"][control], f"moves of {control}"
        given = {"price": price, "limit": limit}
        if price is None and limit is None:
            raise InputError(f"moves({control!r}) does nothing; give price, limit or both")
        for what, value in given.items():
            if value is not None:
                given[what] = column(value, signal.size, f"{what} of {label}")
                if not (given[what] > 0).all():
                    raise InputError(f"{what} of {label} must be positive, got {value!r}")
        if price is not None:
            self.minimize(label, sum=ca.dot(ca.DM(given["price"]), change**2))
        if limit is not None:
            self.path(
                label,
                change,
                lower=-given["limit"],
                upper=given["limit"],
                scale=signal.scale,
                unit=signal.unit,
                at="intervals",
            )
            self.slewed.append(label)

    def initial(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Fix states at the start; without any, all that are not. Of two calls the last one counts.

        The numbers are those of a solve without ``x0``; states left out of an argument keep them. A
        state without one has to be given to each solve.
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
            wanted = self.own_expression(value, f"final {name!r}")
            gap, label = self.model.symbol(name) - wanted, f"final {name}"
            if name in self.ends:
                self.constraints = [c for c in self.constraints if c.name != label]
            self.ends[name] = wanted
            self.at_end(label, gap, equal=0.0, scale=signal.scale, unit=signal.unit)

    def periodic(self, *names: str) -> None:
        """Let states end as they began, whatever that is; without names all of them."""
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
        for key, given in parts.items():
            part = self.own_expression(0 if given is None else given, f"{key} of {name!r}")
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
        method; ``at`` asks for fewer, see :class:`Constraint`. One limit alone may be an
        expression: it is subtracted, and zero limits the difference.
        """
        one_of(at, f"at of {name!r}", AT)
        self._constrain(name, "path", expression, lower, upper, equal, scale, soft, unit, at)

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
        self._constrain(name, "start", expression, lower, upper, equal, scale, soft, unit)

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
        self._constrain(name, "end", expression, lower, upper, equal, scale, soft, unit)

    def soften(self, name: str, soft: Soft | float) -> None:
        """Make the declared limits of a state or algebraic state soft: exceeded at a price.

        They hold where hard limits do.
        """
        states = self.model.signals["state"] | self.model.signals["algebraic"]
        signal = known(name, states, "state or algebraic state")
        if not np.isfinite([signal.lower, signal.upper]).any():
            raise InputError(f"{name!r} has no limit that could be soft; give the state one")
        at = "inside" if name in self.model.signals["state"] else "unknowns"
        self._constrain(
            f"limits of {name}",
            "path",
            self.model.symbol(name),
            signal.lower,
            signal.upper,
            None,
            signal.scale,
            soft,
            signal.unit,
            at,
            name,
        )
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

        A solve begins at ``guess``, by default at the value that it was declared with.
        """
        self._open()
        signal = known(name, self.model.signals["parameter"], "parameter")
        if signal.varying:
            raise InputError(f"{name!r} is a reference; only a parameter can be free")
        if self.model.limiting[0] and ca.depends_on(
            ca.vertcat(*self.model.limiting[1](self.model.stacked("parameter"))),
            self.model.symbol(name),
        ):
            raise InputError(f"{name!r} is in a limit of the model; it cannot be free")
        guess = self.model.values[name] if guess is None else guess
        self.freed[name] = Signal.of(name, signal.size, lower, upper, scale, guess, signal.unit)

    def guess(self, values: Mapping[str, Guess] | None = None, /, **named: Guess) -> None:
        """Say where a solve begins: numbers, a column a grid point, or a function of s in [0, 1].

        By default a state with an initial value runs straight to its final one; others begin as
        the model says.
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
        """Return the problem as it is with other limits (lower, upper), to read a solution by."""
        if not limits:
            return self
        made = object.__new__(type(self))
        vars(made).update(vars(self) | {"model": self.model.limited(limits)})
        made.constraints = [
            replace(c, lower=limits[c.name][0], upper=limits[c.name][1]) if c.name in limits else c
            for c in self.constraints
        ]
        return made

    def reopened(self) -> Self:
        """Return the same problem without its program, to be changed; this one stays as it is."""
        made = object.__new__(type(self))
        for name, value in vars(self).items():
            if name not in ("transcriptions", "solver"):  # made at the first use
                setattr(made, name, value.copy() if isinstance(value, dict | list) else value)
        made.closed = False
        return made

    __copy__ = reopened

    def on_mesh(self, fractions: Any) -> Self:
        """Return the same problem on another mesh; this one stays as it is.

        Guesses and references that have a column a grid point go along: guesses linearly between
        the grid points, references held after them.

        Args:
            fractions: increasing, from 0 to 1, one more than there will be intervals.

        Raises:
            InputError: for fractions that are none.
        """
        mesh = _fractions(fractions, np.size(fractions) - 1)
        made = self.reopened()
        made._set_mesh(mesh)
        old = self.fractions
        for name, signal in self.given.items():
            if signal.varying:
                made.values[name] = moved_to(self.declared[name], signal.size, old, mesh, held=True)
        for name, signal in self.model.unknowns.items():
            guess = self.guesses.get(name, signal.guess)
            if (moved := moved_to(guess, signal.size, old, mesh)) is not guess:
                made.guesses[name] = moved
        return made

    def expression_function(self, expressions: list[Any], name: str = "expression") -> ca.Function:
        """Return the function (x, z, u, p, t) of expressions; p: model's, own, duration."""
        own = [self._symbols[name] for name in self.signals]
        x, z, u, p, t = self.model.arguments
        p = ca.vertcat(p, *own, self.duration)
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
        lower: Any,
        upper: Any,
        equal: Any,
        scale: Any,
        soft: Any,
        unit: str,
        at: str = "inside",
        of: str = "",
    ) -> None:
        self._open()
        if not isinstance(name, str) or not name:
            raise InputError(f"name must be a non-empty text, got {name!r}")
        if any(constraint.name == name for constraint in self.constraints):
            raise InputError(f"{self.name} has a constraint {name!r} already; name each its own")
        states = self.model.signals["state"]
        own = {f"{what} {state}" for what in ("initial", "final", "periodic") for state in states}
        own |= {f"limits of {unknown}" for unknown in self.model.unknowns} if not of else set()
        taken = self._names - self.model.signals["output"].keys()  # a limit on an output
        if name in taken | own.difference(f"final {state}" for state in self.ends):
            raise InputError(
                f"{self.name} has {name!r} already: limits, multipliers and plans could not tell "
                "them apart; give the constraint a name of its own"
            )
        if equal is not None:
            if lower is not None or upper is not None:
                raise InputError(f"{name!r} has equal and a limit; give one or the other")
            lower = upper = equal
        elif lower is None and upper is None:
            raise InputError(f"{name!r} has no limit; give lower, upper or equal")
        expression = self.own_expression(expression, repr(name))
        given = [side for side in (lower, upper) if side is not None]
        less = given[0] is given[-1] and isinstance(given[0], ca.SX) and not given[0].is_constant()
        if less:
            expression -= self.own_expression(given[0], f"limit of {name!r}")
            lower, upper = (None if side is None else 0 for side in (lower, upper))
        expression = ca.vec(expression)
        size = int(expression.numel())
        sides, typical = pair_of(name, size, (lower, upper)), sizes(name, size, scale)
        price = Soft.of(soft, f"soft of {name!r}")
        self.constraints.append(
            Constraint(name, place, expression, *sides, typical, price, at, unit, less, of)
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
    """Return numbers with a column for each fraction of a mesh on another one.

    What has no such columns (a number, a column, a function) is returned as it is.
    """
    if callable(value) or value is None:
        return value
    rows = np.asarray(value, dtype=float)
    if rows.ndim == 1 and size == 1 and rows.size == old.size:
        rows = rows[None, :]
    if rows.ndim != 2 or rows.shape[1] != old.size or old.size == 1:
        return value
    if held:
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
