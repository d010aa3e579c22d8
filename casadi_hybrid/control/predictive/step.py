"""What one step of a predictive controller returns, and what is kept of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from casadi_hybrid.control.joint.joint import JointSolution
from casadi_hybrid.control.loop.table import aligned
from casadi_hybrid.control.predictive.plan import Plan
from casadi_hybrid.control.signals import Array, known, number
from casadi_hybrid.control.solution import Solution

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
        iterations: of all solves of the step.
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


@dataclass(frozen=True)
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
    """

    control: Array
    status: str
    reason: str
    violated: Mapping[str, float]
    record: Record
    _plan: Plan | None = field(repr=False)
    _stats: Mapping[str, Any] = field(repr=False)
    _places: Mapping[str, slice] = field(repr=False)

    def __getitem__(self, name: str) -> Any:
        """Return a control by name: a number, or a vector where it has several entries."""
        return number(self.control[known(name, self._places, "control")])

    @cached_property
    def plan(self) -> Solution | JointSolution | None:
        """The plan that the control is from, read when it is asked for; None where there is none.

        Of the status ``"last plan"`` it is an earlier step's, with that step's times. Of scenarios
        it has all of them by name.
        """
        return None if self._plan is None else self._plan.solution(self._stats)


_COLUMNS = (
    ("time", "{:.6g}"), ("status", "{}"), ("iterations", "{}"), ("seconds", "{:.2e}"),
    ("warm", "{}"), ("engine", "{}"), ("kernel", "{}"), ("active", "{}"), ("violation", "{:.1e}"),
    ("objective", "{:.6g}"), ("stationarity", "{:.1e}"), ("reason", "{}"),
)  # fmt: skip


def arrays(records: Sequence[Record]) -> dict[str, Any]:
    """Return one array for each field of the records, one entry a step."""
    found: dict[str, Any] = {
        part.name: np.array([getattr(record, part.name) for record in records])
        for part in fields(Record)
        if part.name != "active_names"
    }
    names = np.empty(len(records), dtype=object)
    names[:] = [record.active_names for record in records]
    return {**found, "active_names": names}


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
    return aligned(rows)
