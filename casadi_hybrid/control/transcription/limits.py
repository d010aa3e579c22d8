"""Limits of a problem that change between solves, without a new program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from casadi_hybrid.control.model.signals import Array, changeable, known, pair_of
from casadi_hybrid.control.transcription.program import Program
from casadi_hybrid.control.transcription.statement import Statement
from casadi_hybrid.utils.errors import InputError

Sides = tuple[Array, Array]


class Limits:
    """Limits of a problem, of scenarios the one in common, that are not as declared.

    ``declared`` has the limited quantities and constraints by name.
    """

    def __init__(self, ocp: Statement, prefixes: Iterable[str] = ("",)) -> None:
        self._model, self._prefixes = ocp.model, list(prefixes)
        self.declared = ocp.limitable
        self._changed: dict[str, Sides] = {}
        self._stacked: dict[str, Sides] = {
            kind: (ocp.model.limits(kind, "lower"), ocp.model.limits(kind, "upper"))
            for kind in ("state", "control")
        }

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
        """True if a limit is an expression of parameters and has not been changed."""
        moved = getattr(self.declared[name], "moved", (None, None))
        return name not in self._changed and moved[side == "upper"] is not None

    def bounds_of(self, program: Program, name: str) -> Iterator[tuple[Any, ...]]:
        """Yield the name in the program with what :meth:`Program.bounds_of` says of it."""
        for prefix in self._prefixes:
            for bounds in program.bounds_of(name, self.declared[name], prefix):
                yield f"{prefix}{name}", *bounds

    def of(self, kind: str, program: Program) -> Sides:
        """Return lower and upper of all of a kind as a program has them, one below the other."""
        if not program.limits:
            return self._stacked[kind]
        lower, upper = (side.copy() for side in self._stacked[kind])
        for name, where in self._model.places(kind).items():
            of = [program.limits.get(f"{prefix}{name}") for prefix in self._prefixes]
            if pairs := [pair for pair in of if pair is not None]:  # of scenarios the tightest
                lower[where] = np.max([pair[0] for pair in pairs], axis=0)
                upper[where] = np.min([pair[1] for pair in pairs], axis=0)
        return lower, upper
