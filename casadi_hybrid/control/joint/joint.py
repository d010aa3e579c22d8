"""Base of phases and scenarios: parts with names, one program, one solver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from casadi_hybrid.control.model.signals import Array, Values, by_name, column, known
from casadi_hybrid.control.solution import storing
from casadi_hybrid.control.solution.ocp import (
    OptimalControl,
    TranscribedProblem,
    ended,
    solved,
    stated,
)
from casadi_hybrid.control.solution.solution import Ended, Solution
from casadi_hybrid.control.transcription.initial_guess import refuse_guessed, start_values, state_of
from casadi_hybrid.control.transcription.parametric_bounds import followed
from casadi_hybrid.control.transcription.program import Program
from casadi_hybrid.utils.errors import InputError, suggest


@dataclass(frozen=True)
class JointSolution(Ended):
    """Solution for several horizons: ``solution["ascent"]["speed"]``.

    Each of ``parts`` is a :class:`~casadi_hybrid.control.Solution` with its own costs and
    multipliers.
    """

    parts: Mapping[str, Solution]

    def __str__(self) -> str:
        """Status, costs of each part, and flaws."""
        parts = ", ".join(f"{name} {part.objective:.6g}" for name, part in self.parts.items())
        lines = [f"{self._ending}: objective {self.objective:.6g} ({parts})"]
        for name, part in self.parts.items():
            flaws = part.cautions if self.success else part.another_guess
            lines += [f"{name}: {flaws}"] if flaws else []
        return "\n".join(filter(None, (*lines, self.explanation)))

    __repr__ = __str__

    def __getitem__(self, name: str) -> Solution:
        part: Solution = known(name, self.parts, "part")
        return part

    @property
    def first(self) -> Solution:
        """The first part: of phases the one that begins, of scenarios the nominal one."""
        return next(iter(self.parts.values()))

    @property
    def times(self) -> Array:
        """Times of the first part."""
        return self.first.times

    @property
    def states(self) -> Array:
        """States of the first part."""
        return self.first.states

    @property
    def controls(self) -> Array:
        """Controls of the first part."""
        return self.first.controls

    @property
    def duration(self) -> float:
        """From the first to the last time of all parts."""
        times = [part.times for part in self.parts.values()]
        return float(max(t[-1] for t in times) - min(t[0] for t in times))

    def save(self, path: str | Path) -> Path:
        """Write the solution to one ``.npz`` file without pickled objects; return its path.

        :meth:`Saved.read` of it has names such as ``ascent/speed`` and ``ascent/times``.
        """
        rows: dict[str, Array] = {}
        units: dict[str, str] = {}
        multipliers = dict(self.links)
        for name, part in self.parts.items():
            shown = {"times": part.times[None], **part.values}
            rows |= {f"{name}/{key}": values for key, values in shown.items()}
            multipliers |= {f"{name}/{key}": values for key, values in part.multipliers.items()}
            units |= {f"{name}/{key}": unit for key, unit in part.units.items()}
        costs = {name: part.objective for name, part in self.parts.items()}
        more = {"units": units, "costs": costs}
        return storing.Saved.of(self, self.program.name, rows, multipliers, **more).write(path)

    @property
    def links(self) -> dict[str, Array]:
        """Multipliers by name of the rows that join the parts, per physical unit."""
        # Rows that join parts belong to none of them.
        blocks = {name: b for name, b in self.program.constraints.items() if not b.part}
        return {name: b.read(self.lam_g, dual=True).ravel() for name, b in blocks.items()}


class Joint(TranscribedProblem):
    """Parts with names in one program; base class of phases and scenarios."""

    # True if a part begins when the one before it ends.
    in_turn: ClassVar[bool] = False

    def __init__(
        self, parts: Mapping[str, OptimalControl], name: str, solver: Mapping[str, Any] | None
    ) -> None:
        if not isinstance(parts, Mapping) or not parts:
            raise InputError("there must be at least one part, in a dictionary by name")
        for label, part in parts.items():
            if not isinstance(label, str) or not label or "/" in label:
                raise InputError(f"a part's name must be a text without '/', got {label!r}")
            if not isinstance(part, OptimalControl):
                raise InputError(f"{label!r} must be an OptimalControl, got {type(part).__name__}")
        self.parts = dict(parts)
        self.prefixed: dict[str, OptimalControl] = {f"{label}/": parts[label] for label in parts}
        self.own = {prefix: {} for prefix in self.prefixed}
        # Of the first part: its state is the measured one.
        self.model = next(iter(parts.values())).model
        self.name = name
        self.options = by_name(solver, "solver")

    def numbers(
        self, x0: Any = None, *, time: float = 0.0, guess: Any = None, **parameters: Any
    ) -> Program:
        """Return the program with the values of one solve.

        Args:
            x0: state at the start.
            time: at the start.
            guess: a :class:`JointSolution`, or values by part and name.
            **parameters: by name for all parts with such a parameter, except scenarios that state
                it for themselves; or a dictionary for one part by its name, which has priority.
        """
        first = next(iter(self.prefixed))
        state = state_of(self.prefixed[first], self.program.part(first), x0)
        at = float(column(time, 1, "time")[0])
        if isinstance(guess, JointSolution):
            return self.with_numbers(state, at, parameters).with_x0(guess.x)
        return self.with_numbers(state, at, parameters, by_name(guess, "guess"))

    def with_numbers(
        self, state: Array | None, time: float, parameters: Values, guess: Values | None = None
    ) -> Program:
        """Return the program with a checked state; without guesses it keeps its start."""
        program = self.program
        for label, part in self.parts.items():
            # Bounds follow parameters of all parts, so they are set once at the end.
            view = replace(program.part(f"{label}/"), following=None)
            initial = state if self._begins(label) else None
            values = self.parameters_of(label, parameters)
            start = None if guess is None else guess.get(label) or {}
            solution = start if isinstance(start, Solution) else None
            view = start_values(part, view, initial, time, None if solution else start, values)
            if solution:
                view = view.with_x0(solution.start_of(part, view)["x0"])
            program = replace(program, **view.arguments)
            if self.in_turn:  # after a free duration no time is known
                time = time + (part.length if part.free_duration is None else np.inf)
        return followed(program)  # after all: parts may have unknowns in common

    def solve(
        self, x0: Any = None, *, time: float = 0.0, guess: Any = None, **parameters: Any
    ) -> JointSolution:
        """Solve with these values; see :meth:`numbers`. A solution as the guess starts it warm."""
        for label, part in self.parts.items():
            refuse_guessed(part, x0 if self._begins(label) else None)
        program = self.numbers(x0, time=time, guess=guess, **parameters)
        warm = isinstance(guess, JointSolution)
        known = {"lam_x0": guess.lam_x, "lam_g0": guess.lam_g} if warm else {}
        return self.solution(program, *solved(self.solver, program, known))

    def to_verify(self, answer: Any) -> Any:
        """Return the program for a verifier; see :meth:`OptimalControl.to_verify`."""
        program, parts = answer.program if isinstance(answer, JointSolution) else self.program, {}
        for prefix, part in self.prefixed.items():
            limited = part.limited(program.part(prefix).limits)
            parts[prefix] = limited, self.transcriptions[prefix]
        return stated(program, parts)

    def solution(
        self, program: Program, outputs: Mapping[str, Any], stats: Any, explanation: str = ""
    ) -> JointSolution:
        """Return the result of a solver of CasADi for a program of :meth:`numbers`, by name."""
        ending, parts = ended(outputs, stats, explanation), {}
        for label, part in self.parts.items():
            view = replace(program.part(f"{label}/"), together=self._together[label])
            parts[label] = Solution.of(part, self.transcriptions[f"{label}/"], view, **ending)
        return JointSolution(parts, program=program, objective=float(outputs["f"]), **ending)

    @cached_property
    def _together(self) -> dict[str, dict[str, Array]]:
        """:attr:`Program.together` by part, without the values that a part has for itself."""
        places: dict[str, dict[str, Any]] = {}
        for label in self.parts:
            for name, block in self.program.part(f"{label}/").parameters.items():
                common = block.role.kind != "initial" or self._begins(label)
                if common and name not in self.own[f"{label}/"]:
                    # A derivative by a common parameter is the sum over its places in all parts.
                    places.setdefault(name, {})[label] = block.where
        together: dict[str, dict[str, Array]] = {label: {} for label in self.parts}
        for name, by_part in places.items():
            for label, own in by_part.items():
                together[label][name] = np.array(
                    [p for p in by_part.values() if p.size == own.size]
                )
        return together

    def _begins(self, label: str) -> bool:
        """Return if ``x0`` is the initial state of the part."""
        return not self.in_turn or label == next(iter(self.parts))

    def parameters_of(self, label: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a part: its own, and of those for all parts."""
        own, freed = self.parts[label].given, self.parts[label].freed
        values = dict(self.own[f"{label}/"])
        everyones = {name for part in self.parts.values() for name in part.given}
        for name, value in given.items():
            if name in self.parts:
                if name == label:
                    values |= dict(value)
            elif name in self.stated:
                raise InputError(
                    f"every part of {self.name} states {name!r} for itself, so that {name}= would "
                    f"change none; give one of them another: {label}={{{name!r}: …}}"
                )
            elif name in own and (name in freed or f"{label}/{name}" in self.program.parameters):
                values.setdefault(name, value)
            elif name not in everyones:
                raise InputError(
                    f"no part of {self.name} has a parameter {name!r}"
                    f"{suggest(name, [*everyones, *self.parts])}"
                )
        return values
