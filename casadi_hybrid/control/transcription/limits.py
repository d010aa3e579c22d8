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
    """Limits of a problem that differ from the declared ones; of scenarios the common ones."""

    def __init__(self, ocp: Statement, prefixes: Iterable[str] = ("",)) -> None:
        self._model, self._prefixes = ocp.model, list(prefixes)
        self.declared = ocp.limitable  # limited quantities and constraints by name
        self._changed: dict[str, Sides] = {}
        self._stacked: dict[str, Sides] = {
            kind: (ocp.model.limits(kind, "lower"), ocp.model.limits(kind, "upper"))
            for kind in ("state", "control")
        }

    def change(self, pairs: Mapping[str, Any]) -> None:
        """Take pairs by name; see :meth:`MPC.limits`."""
        changed = dict(self._changed)
        for name, pair in pairs.items():
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
                program = program.with_limits(f"{prefix}{name}", *pair)
        return program

    def now(self, name: str) -> Sides:
        """Return the present limits of a state, control or constraint."""
        declared = self.declared[name]
        return self._changed.get(name, (declared.lower, declared.upper))

    def follows(self, name: str, side: str) -> bool:
        """Return if a limit is an expression of parameters and has not been changed."""
        moved = getattr(self.declared[name], "moved", (None, None))
        return name not in self._changed and moved[side == "upper"] is not None

    def bounds_of(self, program: Program, name: str) -> Iterator[tuple[Any, ...]]:
        """Yield the name in the program, with the entries of :meth:`Program.bounds_of`."""
        for label in (f"{prefix}{name}" for prefix in self._prefixes):
            for bounds in program.bounds_of(label):
                yield label, *bounds

    def of(self, kind: str, program: Program) -> Sides:
        """Return lower and upper limits of a kind in a program, one below the other."""
        if not program.limits:
            return self._stacked[kind]
        lower, upper = (side.copy() for side in self._stacked[kind])
        for name, where in self._model.places(kind).items():
            labels = (f"{prefix}{name}" for prefix in self._prefixes)
            if pairs := [program.limits[label] for label in labels if label in program.limits]:
                lower[where] = np.max([pair[0] for pair in pairs], axis=0)  # the tightest
                upper[where] = np.min([pair[1] for pair in pairs], axis=0)
        return lower, upper
