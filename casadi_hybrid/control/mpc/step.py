"""Answers of a predictive controller, their telemetry, and the gain of the control law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from casadi_hybrid.control.joint.joint import JointSolution
from casadi_hybrid.control.model.excess import quotient
from casadi_hybrid.control.model.model import Model
from casadi_hybrid.control.model.signals import Array, known, number
from casadi_hybrid.control.mpc.plan import Plan
from casadi_hybrid.control.solution.sensing import of_unknowns
from casadi_hybrid.control.solution.solution import Solution
from casadi_hybrid.control.transcription.program import Program
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.sensitivity import Sensitivities
from casadi_hybrid.utils.output.text import aligned


@dataclass(frozen=True)
class Gain:
    """The matrix ∂u₀/∂x of a control law, in the units of the controls and states.

    ``gain["force", "angle"]`` is a number, or a matrix where one of them has several entries;
    ``print`` shows all with their units.

    Attributes:
        matrix: a row a control, a column a state, in the order of the model.
        model: whose these are.
    """

    matrix: Array
    model: Model = field(repr=False)

    def __getitem__(self, pair: tuple[str, str]) -> float | Array:
        control, state = pair
        rows, columns = self.model.places("control"), self.model.places("state")
        part = self.matrix[known(control, rows, "control"), known(state, columns, "state")]
        return float(part[0, 0]) if part.size == 1 else part

    def __str__(self) -> str:
        controls, states = self.model.signals["control"], self.model.signals["state"]
        lines = []
        for control, row in self.model.places("control").items():
            for state, column in self.model.places("state").items():
                part = self.matrix[row, column]
                numbers = "; ".join(", ".join(f"{value:.4g}" for value in line) for line in part)
                unit = quotient(controls[control].unit, states[state].unit)
                lines.append(f"d {control} / d {state} = {numbers} {unit}")
        return "\n".join(lines)


def gain_at(plan: Plan, made: dict[Any, Sensitivities]) -> Gain:
    """Return how the first controls of a solved plan change with the state it begins at.

    By the implicit function theorem at the KKT point with the limits that are active there,
    see :mod:`casadi_hybrid.solver.sensitivity`: a control at its limit has zeros. What it
    takes is ``made`` once for each problem.
    """
    program, model = plan.program, plan.ocp.model
    if plan.problem not in made:
        made[plan.problem] = Sensitivities(Problem.from_nlp(dict(program.nlp)))
    prefixes = list(plan.problem.prefixed)
    begins = [program.parameters[f"{prefix}initial {name}"].where
              for prefix in prefixes for name in model.signals["state"]]  # fmt: skip
    dx, _ = of_unknowns(made[plan.problem], plan, np.concatenate(begins))
    rows = []
    for name, signal in model.signals["control"].items():
        block = program.variables[prefixes[0] + name]
        rows.append(block.scale[:, :1] * dx[block.where[: signal.size]])
    du = np.vstack(rows)  # a measurement is the start of every scenario
    return Gain(du.reshape(du.shape[0], len(prefixes), -1).sum(axis=1), model)


SOLVED = "solved"
FEASIBLE = "feasible"
SOFTENED = "softened"
LAST_PLAN = "last plan"
FALLBACK = "fallback"
DEFAULT = "default"


@dataclass(frozen=True)
class Record:
    """The telemetry of one step.

    Attributes:
        time: of the measurement.
        status: see :class:`Step`.
        reason: why it is not ``solved``; empty where it is.
        iterations: of all solves of the step; one that was ended within is none.
        seconds: from the call to the answer.
        warm: whether the solver began at the last plan.
        engine, kernel: what ran the iteration and solved its linear systems, of the last solve.
        active: number of limits that are active in the plan found.
        active_names: of the variables and constraints whose limits these are.
        violation: largest violation of a bound or row at the point found, in scaled units,
            recomputed from the program's functions; NaN where that was not evaluated.
        objective: f there.
        feasibility, stationarity, complementarity: residuals of the KKT conditions there.
    """

    time: float
    status: str
    reason: str
    iterations: int
    seconds: float
    warm: bool
    engine: str = ""
    kernel: str = ""
    active: int = 0
    active_names: tuple[str, ...] = ()
    violation: float = np.nan
    objective: float = np.nan
    feasibility: float = np.nan
    stationarity: float = np.nan
    complementarity: float = np.nan


@dataclass(frozen=True, repr=False)
class Step:
    """The answer to one measurement.

    ``status`` is one of

    - ``"solved"``: the first input of a plan that solves the problem,
    - ``"feasible"``: of a plan that the solver was stopped at, which holds the dynamics and all
      limits within the controller's tolerance,
    - ``"softened"``: of a plan that violates the limits named in :attr:`violated`, as little as
      their price demands; none where it needs to violate none after all,
    - ``"last plan"``: the input that the last of these plans has for this time,
    - ``"fallback"``: what the user's function says,
    - ``"default"``: the controller's ``default``; the reason says which numbers.

    Attributes:
        control: all controls, one below the other.
        status: a word.
        reason: a sentence, why the status is not ``solved``; empty where it is.
        violated: of a softened plan by how much each limit is exceeded, in its unit.
        record: the telemetry.
        asked: the problem, its program with the numbers and limits of the step, and the references
            that are functions of time.
    """

    control: Array
    status: str
    reason: str
    violated: Mapping[str, float]
    record: Record
    asked: tuple[Any, Program, Mapping[str, Any]] = field(repr=False)
    _plan: Plan | None = field(repr=False)

    def __repr__(self) -> str:
        """The status, the controls with their units, and the reason, in one line."""
        signals = self.asked[0].model.signals["control"]
        shown = (f"{name} {', '.join(f'{value:.6g}' for value in np.atleast_1d(self[name]))}"
                 f" {signal.unit}".rstrip() for name, signal in signals.items())  # fmt: skip
        said = f"{self.status} at {self.record.time:.6g}: {'; '.join(shown)}"
        return f"{said} ({self.reason})" if self.reason else said

    def __getitem__(self, name: str) -> Any:
        """Return a control by name: a number, or a vector where it has several entries."""
        places = self.asked[0].model.places("control")
        return number(self.control[known(name, places, "control")])

    @cached_property
    def plan(self) -> Solution | JointSolution | None:
        """The plan that the control is from, read when it is asked for; None where there is none.

        Of the status ``"last plan"`` it is an earlier step's, with that step's times. Of scenarios
        it has all of them by name.
        """
        return None if self._plan is None else self._plan.solution()


_COLUMNS = (
    ("time", "{:.6g}"), ("status", "{}"), ("iterations", "{}"), ("seconds", "{:.2e}"),
    ("warm", "{}"), ("engine", "{}"), ("kernel", "{}"), ("active", "{}"), ("violation", "{:.1e}"),
    ("objective", "{:.6g}"), ("stationarity", "{:.1e}"), ("reason", "{}"),
)  # fmt: skip


def arrays(records: Sequence[Record]) -> dict[str, Any]:
    """Return one array for each field of the records, one entry a step."""
    values = {part.name: [getattr(r, part.name) for r in records] for part in fields(Record)}
    names = np.fromiter(values.pop("active_names"), dtype=object)
    return {name: np.array(column) for name, column in values.items()} | {"active_names": names}


def table(records: Sequence[Record]) -> str:
    """Return the records as text, one line a step, columns aligned."""
    rows = [[name for name, _ in _COLUMNS]]
    for record in records:
        row = []
        for name, form in _COLUMNS:
            value = getattr(record, name)
            if isinstance(value, bool):
                value = "yes" if value else "no"
            missing = isinstance(value, float) and np.isnan(value)
            row.append("-" if missing or value == "" else form.format(value))
        rows.append(row)
    return "\n".join(aligned(rows))
