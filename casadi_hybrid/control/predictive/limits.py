"""Limits that change between the steps of a controller; the program stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.predictive.problem import Problem, nominal, parts
from casadi_hybrid.control.program import Program
from casadi_hybrid.control.signals import Array, column, known

Sides = tuple[Array, Array]


class Limits:
    """The limits of a problem that are not as declared.

    Args:
        problem: whose these are; scenarios have them in common.
    """

    def __init__(self, problem: Problem) -> None:
        ocp = nominal(problem)
        self._model, self._prefixes = ocp.model, list(parts(problem))
        kinds = ("state", "algebraic", "control")
        self._declared: dict[str, Any] = {
            **{constraint.name: constraint for constraint in ocp.constraints},
            **{name: s for kind in kinds for name, s in ocp.model.signals[kind].items()},
        }
        self._changed: dict[str, Sides] = {}
        self._sides: dict[str, Sides] = {
            kind: (ocp.model.limits(kind, "lower"), ocp.model.limits(kind, "upper"))
            for kind in kinds
        }

    def change(self, given: Mapping[str, Any]) -> None:
        """Take pairs by name; see :meth:`MPC.limits`."""
        changed = dict(self._changed)
        for name, pair in given.items():
            declared = known(name, self._declared, "state, control or constraint")
            if pair is None:
                changed.pop(name, None)
                continue
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise InputError(f"limits of {name!r} must be a pair (lower, upper), got {pair!r}")
            changed[name] = _checked(name, declared, *pair)
        self._changed = changed

    def put_into(self, program: Program) -> Program:
        """Return the program with the limits that have changed."""
        for prefix in self._prefixes if self._changed else ():
            for name, sides in self._changed.items():
                program = program.with_limits(name, self._declared[name], *sides, prefix)
        return program

    def of(self, kind: str, program: Program) -> Sides:
        """Return lower and upper of all of a kind as a program has them, one below the other."""
        if not program.limits:
            return self._sides[kind]
        lower, upper = (side.copy() for side in self._sides[kind])
        for name, where in self._model.places(kind).items():
            sides = program.limits.get(f"{self._prefixes[0]}{name}")
            if sides is not None:
                lower[where], upper[where] = sides
        return lower, upper


def _checked(name: str, declared: Any, lower: Any, upper: Any) -> Sides:
    """The pair as columns.

    Raises:
        InputError: for what does not fit.
    """
    size = declared.lower.size
    sides = (
        column(-np.inf if lower is None else lower, size, f"lower limit of {name!r}"),
        column(np.inf if upper is None else upper, size, f"upper limit of {name!r}"),
    )
    for side, limit, was in zip(
        ("lower", "upper"), sides, (declared.lower, declared.upper), strict=True
    ):
        if (np.isfinite(limit) & ~np.isfinite(was)).any():
            raise InputError(
                f"{name!r} was declared without {side}=, so that there is no {side} limit to "
                "change; declare one, as wide as you like"
            )
    if (sides[0] > sides[1]).any():
        at = int(np.argmax(sides[0] > sides[1]))
        raise InputError(
            f"the lower limit of {name!r} is {sides[0][at]:g}, above its upper, {sides[1][at]:g}"
        )
    return sides
