"""Steps of a predictive controller, their telemetry, and the gain of the control law."""

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
    """Matrix ∂u₀/∂x of a control law, in the units of the controls and states.

    ``gain["force", "angle"]`` is a number, or a matrix if one of them has several entries;
    ``print`` shows all with their units.

    Attributes:
        matrix: a row a control, a column a state, in the order of the model.
        model: of these controls and states.
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
                rows = [", ".join(f"{v:.4g}" for v in line) for line in self.matrix[row, column]]
                unit = quotient(controls[control].unit, states[state].unit)
                lines.append(f"d {control} / d {state} = {'; '.join(rows)} {unit}")
        return "\n".join(lines)


def gain_at(plan: Plan, cache: dict[Any, Sensitivities]) -> Gain:
    """Return the derivative of a plan's first controls with respect to its initial state."""
    program, model = plan.program, plan.ocp.model
    if plan.problem not in cache:
        cache[plan.problem] = Sensitivities(Problem.from_nlp(dict(program.nlp)))
    prefixes = list(plan.problem.prefixed)
    # Implicit function theorem at the KKT point: a control at its limit has zeros.
    names = [f"{prefix}initial {name}" for prefix in prefixes for name in model.signals["state"]]
    states = np.concatenate([program.parameters[name].where for name in names])
    dx, _ = of_unknowns(cache[plan.problem], plan, states)
    rows = []
    for name, signal in model.signals["control"].items():
        block = program.variables[prefixes[0] + name]
        # u = scale·û; parameters have no scale.
        rows.append(block.scale[:, :1] * dx[block.where[: signal.size]])
    du = np.vstack(rows)  # a measurement is the start of every scenario
    # The chain rule: one measurement moves the initial states of all scenarios.
    return Gain(du.reshape(du.shape[0], len(prefixes), -1).sum(axis=1), model)


SOLVED = "solved"
FEASIBLE = "feasible"
SOFTENED = "softened"
LAST_PLAN = "last plan"
FALLBACK = "fallback"
DEFAULT = "default"


@dataclass(frozen=True)
class Record:
    """Telemetry of one step.

    Attributes:
        time: of the measurement.
        status: see :class:`Step`.
        reason: why the status is not ``solved``; else empty.
        iterations: of all solves of the step, without unfinished ones.
        seconds: from the call to the answer.
        warm: true if the solver began at the last plan.
        engine, kernel: of the iteration and of its linear systems, in the last solve.
        active: number of active limits at the returned point.
        active_names: variables and constraints of these limits.
        violation: largest violation of a bound or row at the returned point, in scaled units, by
            the program's functions; NaN if not evaluated.
        objective: f at the returned point.
        feasibility, stationarity, complementarity: KKT residuals at the returned point.
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
    """Answer to one measurement.

    ``status`` is one of

    - ``"solved"``: the first input of a plan that solves the problem,
    - ``"feasible"``: the first input of an unfinished plan, which satisfies the dynamics and all
      limits within the controller's tolerance,
    - ``"softened"``: the first input of a plan that violates the limits in :attr:`violated` as
      little as their weights demand,
    - ``"last plan"``: the input of the last of these plans for this time,
    - ``"fallback"``: the answer of the user's function,
    - ``"default"``: the controller's ``default``; the reason has its values.

    Attributes:
        control: all controls, one below the other.
        status: a word.
        reason: why the status is not ``solved``; else empty.
        violated: excess over each limit in a softened plan, in its unit.
        record: the telemetry.
        asked: the problem, its program with the values and limits of the step, and the references
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
        controls = []
        for name, signal in self.asked[0].model.signals["control"].items():
            values = ", ".join(f"{value:.6g}" for value in np.atleast_1d(self[name]))
            controls.append(f"{name} {values} {signal.unit}".rstrip())
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.status} at {self.record.time:.6g}: {'; '.join(controls)}{reason}"

    def __getitem__(self, name: str) -> Any:
        """Return a control by name: a number, or a vector of several entries."""
        places = self.asked[0].model.places("control")
        return number(self.control[known(name, places, "control")])

    @cached_property
    def plan(self) -> Solution | JointSolution | None:
        """The plan of the control, read at the first access; None without one.

        A ``"last plan"`` has the times of an earlier step. Of scenarios it has all by name.
        """
        return None if self._plan is None else self._plan.solution()


_COLUMNS = "time status iterations seconds warm engine kernel active violation objective"
_COLUMNS += " stationarity reason"
_FORMATS = {"seconds": ".2e", "violation": ".1e", "stationarity": ".1e"}


def arrays(records: Sequence[Record]) -> dict[str, Any]:
    """Return one array for each field of the records, one entry a step."""
    values = {part.name: [getattr(r, part.name) for r in records] for part in fields(Record)}
    names = np.fromiter(values.pop("active_names"), dtype=object)
    return {name: np.array(column) for name, column in values.items()} | {"active_names": names}


def table(records: Sequence[Record]) -> str:
    """Return the records as text, one line a step, columns aligned."""
    columns = _COLUMNS.split()
    rows = [[_cell(name, getattr(record, name)) for name in columns] for record in records]
    return "\n".join(aligned([columns, *rows]))


def _cell(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "-" if np.isnan(value) else format(value, _FORMATS.get(name, ".6g"))
    return str(value) or "-"
