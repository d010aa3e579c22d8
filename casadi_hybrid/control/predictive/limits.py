"""What a step of a controller is given: limits that may change between steps, and measurements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.program import Program
from casadi_hybrid.control.signals import Array, changeable, known, numbers, pair_of
from casadi_hybrid.control.statement import Statement

Sides = tuple[Array, Array]


class Limits:
    """The limits of a problem, of scenarios the one in common, that are not as declared.

    ``declared`` is what has limits, by name.
    """

    def __init__(self, ocp: Statement, prefixes: Iterable[str] = ("",)) -> None:
        self._model, self._prefixes = ocp.model, list(prefixes)
        self.declared = ocp.limitable
        self._changed: dict[str, Sides] = {}

    def change(self, given: Mapping[str, Any]) -> None:
        """Take pairs by name; see :meth:`MPC.limits`."""
        changed = dict(self._changed)
        for name, pair in given.items():
            declared = known(name, self.declared, "state, control or constraint")
            if pair is None:
                changed.pop(name, None)
                continue
            if getattr(declared, "less", False):
                raise InputError(
                    f"the limit of {name!r} is an expression, which numbers cannot replace; change "
                    "the parameters in it, or limit one by another constraint"
                )
            changed[name] = pair_of(name, declared.lower.size, pair)
            changeable(name, changed[name], declared)
        self._changed = changed

    def put_into(self, program: Program) -> Program:
        """Return the program with the limits that have changed."""
        for prefix in self._prefixes if self._changed else ():
            for name, pair in self._changed.items():
                program = program.with_limits(name, self.declared[name], *pair, prefix)
        return program

    def now(self, name: str) -> Sides:
        """Return the limits of a state, control or constraint as they are."""
        declared = self.declared[name]
        return self._changed.get(name, (declared.lower, declared.upper))

    def follows(self, name: str, side: str) -> bool:
        """Whether a limit is an expression of parameters and has not been changed."""
        moved = getattr(self.declared[name], "moved", (None, None))
        return name not in self._changed and moved[side == "upper"] is not None

    def bounds_of(self, program: Program, name: str) -> Iterator[tuple[Any, ...]]:
        """Yield the name in the program with what :meth:`Program.bounds_of` says of it."""
        for prefix in self._prefixes:
            for bounds in program.bounds_of(name, self.declared[name], prefix):
                yield f"{prefix}{name}", *bounds

    def of(self, kind: str, program: Program) -> Sides:
        """Return lower and upper of all of a kind as a program has them, one below the other."""
        lower, upper = (self._model.limits(kind, side) for side in ("lower", "upper"))
        for name, where in self._model.places(kind).items() if program.limits else ():
            of = [program.limits.get(f"{prefix}{name}") for prefix in self._prefixes]
            if pairs := [pair for pair in of if pair is not None]:  # of scenarios the tightest
                lower[where] = np.max([pair[0] for pair in pairs], axis=0)
                upper[where] = np.min([pair[1] for pair in pairs], axis=0)
        return lower, upper


def measured(
    ocp: Statement, x: Any, parameters: Mapping[str, Any]
) -> tuple[Array, dict[str, Any], str]:
    """Return the state as a column, the parameters, and what is not finite in them, in words.

    Where numbers are not finite the declared ones stand, of states zeros, so that the shapes can be
    checked and limits are those that were declared.
    """
    flaws: list[str] = []
    if isinstance(x, Mapping):
        x = {name: _clean(name, value, f"the measured {name}", flaws, {})
             for name, value in x.items()}  # fmt: skip
    else:
        x = _clean("", x, "the measured state", flaws, {})
    state: Array = ocp.model.vector("state", x, "x")
    given = {
        name: _clean(name, value, f"the parameter {name}", flaws, ocp.declared)
        for name, value in parameters.items()
    }
    return state, given, "; ".join(flaws)


def limited(
    ocp: Statement, state: Array, limits: Sides, tolerance: float
) -> tuple[Array, dict[str, float]]:
    """Return the state, and by how much it exceeds each of its hard limits that it does.

    What exceeds a limit by no more than the tolerance begins at the limit: of a problem that has no
    feasible point by as little the solver would look for one for long, and in vain.
    """
    amounts, state = {}, state.copy()
    for name, where in ocp.model.places("state").items():
        if name in ocp.softened:
            continue
        signal, values = ocp.model.signals["state"][name], state[where]
        lower, upper = (side[where] for side in limits)
        over = np.maximum(lower - values, values - upper)
        if (over > tolerance * signal.scale).any():
            amounts[name] = float(over.max())
        else:
            state[where] = np.clip(values, lower, upper)
    return state, amounts


def _clean(name: str, value: Any, what: str, flaws: list[str], declared: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):  # of one scenario
        return {own: _clean(own, part, f"{what}: {own}", flaws, declared)
                for own, part in value.items()}  # fmt: skip
    if callable(value):
        return value
    try:
        found = numbers(value, what)
    except InputError:
        return value  # whoever reads it says what is wrong with it
    wrong = ~np.isfinite(found)
    if wrong.any():
        flaws.append(f"{what} has {found[wrong].ravel()[0]:g}")
        known = declared.get(name, 0.0)
        fits = not callable(known) and np.size(known) in (1, found.size)
        found[wrong] = np.resize(known if fits else 0.0, found.shape)[wrong]
    return found
