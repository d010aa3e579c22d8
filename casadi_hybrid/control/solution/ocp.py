"""An optimal control problem and its solver."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.signals import Array, column
from casadi_hybrid.control.solution import checking
from casadi_hybrid.control.solution.dense import Dense
from casadi_hybrid.control.solution.solution import Solution
from casadi_hybrid.control.solution.storing import renumbered
from casadi_hybrid.control.transcription.assembly import Assembly, Horizon
from casadi_hybrid.control.transcription.initial_guess import refuse_guessed, start_values, state_of
from casadi_hybrid.control.transcription.limits import Limits
from casadi_hybrid.control.transcription.naming import labels
from casadi_hybrid.control.transcription.parametric_bounds import following
from casadi_hybrid.control.transcription.program import Program
from casadi_hybrid.control.transcription.statement import Statement
from casadi_hybrid.control.transcription.transcription import Transcription, lay_phase, read
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.nlpsol.interface import nlpsol
from casadi_hybrid.verify.point import Stated

if TYPE_CHECKING:
    from casadi_hybrid.core.export.export import Export


class TranscribedProblem:
    """One program of all parts."""

    name: str
    options: dict[str, Any]
    prefixed: Any  # parts by the prefix of their names in the program
    # By prefix the values of parameters that a part states for itself.
    own: Mapping[str, Mapping[str, Any]] = MappingProxyType({"": {}})

    @cached_property
    def transcriptions(self) -> dict[str, Transcription]:
        """The program and the functions that read parts by prefix, made at the first use."""
        parts: dict[str, Statement] = self.prefixed
        kinds = [p.method.graphs(p.model) if p.unroll else ca.MX for p in parts.values()]
        # One part that needs MX makes the whole program MX.
        assembly = Assembly(self.name, ca.MX if ca.MX in kinds else ca.SX)
        horizons = self._lay(assembly)
        models = {prefix: part.model for prefix, part in parts.items()}
        program = following(assembly.build(), models)
        for part in parts.values():
            # Another term would be missing in the program.
            part.closed = part.model.closed = True
        return {
            prefix: read(p, assembly, program, *horizons[prefix]) for prefix, p in parts.items()
        }

    @property
    def program(self) -> Program:
        """The nonlinear program, with the declared values."""
        return next(iter(self.transcriptions.values())).program

    @cached_property
    def solver(self) -> Any:
        """The solver of the program, made at the first use."""
        named = labels(self.program, self.prefixed)
        return nlpsol("solver", "hybrid", dict(self.program.nlp), {**named, **self.options})

    @property
    def stated(self) -> set[str]:
        """Parameters that every part states for itself."""
        return set.intersection(*(set(values) for values in self.own.values()))

    def _lay(self, assembly: Assembly) -> dict[str, tuple[Horizon, Any]]:
        """Add the parts to a program; return their horizons and costs by prefix."""
        parts = self.prefixed.items()
        return {prefix: lay_phase(part, assembly, prefix=prefix) for prefix, part in parts}


class OptimalControl(Statement, TranscribedProblem):
    """min Σ costs over a horizon of a model, subject to its dynamics, limits and constraints.

    Costs and constraints are expressions of the model's symbols, of :meth:`parameter` and
    :meth:`reference`, of ``model.time`` and of :attr:`duration`. The problem is transcribed at the
    first use and closed from then on: other initial states, parameters, references and guesses need
    no other program.

    Args:
        model: a :class:`Model`.
        duration: of the horizon, a number or :class:`Free`.
        intervals: number of them.
        method: :class:`MultipleShooting` (the default), :class:`SingleShooting`,
            :class:`Collocation`.
        mesh: intervals + 1 increasing fractions of the duration from 0 to 1; even by default.
        unroll: True to unroll the horizon in the graph, which evaluates fastest; False to map one
            interval as a function over the horizon. True by default, except for long horizons of
            :class:`SingleShooting`.
        name: for messages; the model's by default.
        solver: options of :func:`casadi_hybrid.nlpsol`. The first solve makes the solver, which
            ``max_time`` does not count.

    Raises:
        InputError: for arguments that do not fit, by name, and for changes of a closed problem.

    Example:
        >>> from casadi_hybrid.control import Free, Model
        >>> model = Model("double integrator")
        >>> x, v = model.state("position"), model.state("speed")
        >>> u = model.control("force", lower=-1, upper=1)
        >>> model.rates(position=v, speed=u)
        >>> ocp = OptimalControl(model, duration=Free(3.0), intervals=10)
        >>> ocp.initial(position=0, speed=0)
        >>> ocp.final(position=1, speed=0)
        >>> ocp.minimize("time", end=ocp.duration)
        >>> round(ocp.solve().duration, 6)
        2.0
    """

    def numbers(
        self, x0: Any = None, *, time: float = 0.0, guess: Any = None, **parameters: Any
    ) -> Program:
        """Return the program with the values of one solve, for any solver of CasADi.

        Args:
            x0: state at the start, a column or by name; the values of :meth:`initial` by default.
            time: at the start.
            guess: values by name, or a :class:`Solution`, of another mesh too; the values of
                :meth:`guess` by default.
            **parameters: of the model and of the problem, by name.
        """
        state, at = state_of(self, self.program, x0), float(column(time, 1, "time")[0])
        if isinstance(guess, Solution):
            program = self.with_numbers(state, at, parameters)
            return program.with_x0(guess.start_of(self, program)["x0"])
        return self.with_numbers(state, at, parameters, {} if guess is None else guess)

    def with_numbers(
        self, state: Array | None, time: float, parameters: Mapping[str, Any], guess: Any = None
    ) -> Program:
        """Return the program with a checked state; without a guess it keeps its start."""
        return start_values(self, self.program, state, time, guess, parameters)

    def solve(
        self, x0: Any = None, *, time: float = 0.0, guess: Any = None, **parameters: Any
    ) -> Solution:
        """Solve with these values; see :meth:`numbers`.

        With a solution as the guess the solver starts warm from its multipliers too.

        Raises:
            InputError: for arguments that do not fit, and for a fixed state without a value.
        """
        refuse_guessed(self, x0)
        program = self.numbers(x0, time=time, guess=guess, **parameters)
        known = guess.start_of(self, program) if isinstance(guess, Solution) else {}
        return self.solution(program, *solved(self.solver, program, known))

    def export(
        self,
        folder: str | Path,
        x0: Any = None,
        name: str | None = None,
        *,
        loops: bool | None = None,
        cold: bool = True,
        **parameters: Any,
    ) -> Export:
        """Write the problem with its solver as C99: measured state in, control out, by name.

        ``NAME_control.h`` has structures in physical units, and reads trajectories of the answer;
        the folder's README has a table of them. :meth:`MPC.export` also writes the loop of steps.

        Args:
            folder: to write to.
            x0: state of the solve that is stored; the values of :meth:`initial` by default.
            name: prefix of names in C; the problem's name by default.
            loops, cold: see :meth:`NlpSolver.export`.
            **parameters: of that solve.

        Raises:
            InputError: as :meth:`NlpSolver.export`, and for a state that is free at the start.
            OSError: if the folder cannot be written to.
        """
        # The import takes long, and few call it.
        from casadi_hybrid.control.c_controller.writing import Law, export_law  # noqa: PLC0415

        program = self.numbers(x0, **parameters)
        checking.refuse_outside(self, program, "x0", "ocp")
        sides = (self.model.limits("control", side) for side in ("lower", "upper"))
        none = np.clip(np.zeros(self.model.size("control")), *sides)
        words = "zero, within the limits"
        law = Law(self, program, self.own, Limits(self), none, words, 1e-4, False)
        return export_law(self.solver, law, folder, name, loops=loops, cold=cold)

    def to_verify(self, answer: Any) -> Any:
        """Return the program for :func:`casadi_hybrid.verify.verify`, with names and units.

        Args:
            answer: a :class:`Solution` with the values and the mesh; else the declared values.

        Raises:
            InputError: for a solution of another problem.
        """
        if not isinstance(answer, Solution):
            return stated(self.program, {"": (self, self.transcriptions[""])})
        mesh = answer.ocp.fractions
        ocp = self if np.array_equal(mesh, self.fractions) else self.on_mesh(mesh)
        program = renumbered(ocp.program, answer.program)
        return stated(program, {"": (ocp.limited(program.limits), ocp.transcriptions[""])})

    def solution(
        self, program: Program, outputs: Mapping[str, Any], stats: Any, explanation: str = ""
    ) -> Solution:
        """Return the result of a solver of CasADi for a program of :meth:`numbers`, by name."""
        ending = ended(outputs, stats, explanation)
        return Solution.of(self, self.transcriptions[""], program, **ending)


def solved(
    solver: Any, program: Program, known: Mapping[str, Array]
) -> tuple[Mapping[str, Any], Mapping[str, Any], str]:
    """Solve a program, warm if multipliers are known; return outputs, stats and explanation."""
    outputs = solver(**{**known, **program.arguments})
    stats = solver.stats()
    return outputs, stats, "" if stats["success"] else str(solver.explain())


def ended(outputs: Mapping[str, Any], stats: Any, explanation: str) -> dict[str, Any]:
    """Return x, lam_x and lam_g of CasADi's outputs, with statistics and explanation."""
    point = {key: np.asarray(ca.DM(outputs[key])).ravel() for key in ("x", "lam_x", "lam_g")}
    return {**point, "stats": dict(stats), "explanation": explanation}


def stated(program: Program, parts: Mapping[str, tuple[Statement, Transcription]]) -> Stated:
    """Return a program with the values of a solve for a verifier, entries with their scales."""

    def exceeded(x: Array, p: Array) -> list[str]:
        sentences = []
        for prefix, (ocp, transcription) in parts.items():
            beyond = checking.violation(Dense(ocp, transcription, x, p), checking.POINTS)
            sentences += [f"{prefix}{excess}" for excess in beyond.noted]
        return sentences

    names: dict[str, Any] = labels(program, {prefix: ocp for prefix, (ocp, _) in parts.items()})
    problem = Problem.from_nlp(dict(program.nlp), name=program.name, **names)
    return Stated(problem, program.arguments, exceeded)
