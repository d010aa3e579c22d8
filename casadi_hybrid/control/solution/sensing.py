"""Derivatives of the trajectories of a solution by a parameter or an initial state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.excess import quotient
from casadi_hybrid.control.model.signals import Array, ByName, known
from casadi_hybrid.control.solution.dense import by_names
from casadi_hybrid.control.transcription.parametric_bounds import slopes
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.sensitivity import Sensitivities
from casadi_hybrid.utils.errors import InputError


@dataclass(frozen=True)
class Slopes(ByName):
    """d(trajectory)/d(parameter) by the name of the trajectory, in its unit per the parameter's.

    ``slopes["angle"]`` has the shape of ``solution["angle"]``. The last axis has the entries of a
    parameter with several, all grid points of a reference, column by column. The derivatives of
    objective and duration are attributes, and entries by these names.
    """

    # The parameter, or "initial angle" of an initial state; for a part the parameter of all parts
    # that do not state it for themselves.
    of: str
    rows: Mapping[str, Array] = field(repr=False)  # entries × times × entries of the parameter
    objective: Any
    duration: Any
    units: Mapping[str, str] = field(repr=False)  # such as "rad/kg"
    single: bool = field(repr=False)  # the parameter has one entry

    def __getitem__(self, name: str) -> Any:
        if name in ("objective", "duration") and name not in self.rows:
            return getattr(self, name)
        rows = super().__getitem__(name)
        return rows[..., 0] if self.single else rows

    def __str__(self) -> str:
        """The largest slope of each trajectory."""
        lines = [
            f"  {name:<16} {np.abs(rows).max():.3g} {self.units[name]}".rstrip()
            for name, rows in self.rows.items()
        ]
        return "\n".join([f"largest slopes by {self.of}:", *lines])


def of_unknowns(sensitivities: Sensitivities, at: Any, of_p: Any) -> tuple[Array, Array]:
    """Return d(unknowns) and d(objective) by these entries of p, at a solution or a plan."""
    program = at.program
    sensitivities.names = lambda: program.names_at(at.times, at.ocp.model.time_unit)
    slopes_p = slopes(program)
    jacobians = sensitivities(at, program.p, program, ("p",), slopes_p, of_p)  # program: the bounds
    return jacobians["jac_x_p"], jacobians["jac_f_p"][0]


def slopes_of(solution: Any, name: str, weak: float) -> Slopes:
    """Return the slopes of a solution; see :meth:`Solution.sensitivity`."""
    program, model = solution.program, solution.ocp.model
    if name in solution.ocp.freed:
        raise InputError(
            f"the solver chooses {name!r}, so that nothing is a function of it; by another "
            f"parameter ask for its slope: found.sensitivity(…)[{name!r}]"
        )
    block = known(name, program.parameters, "parameter")
    sensitivities = Sensitivities(Problem.from_nlp(dict(program.nlp)), weak=weak)
    # A row for each part that has this parameter; derivatives by all of them add up.
    places = program.together.get(name, block.where[None])
    of_x, of_f = of_unknowns(sensitivities, solution, places.ravel())
    of_x = of_x.reshape(program.n, *places.shape).sum(axis=1)
    read = solution.transcription.trajectories
    values, ahead = read.call([ca.DM(solution.x), ca.DM(program.p)]), read.forward(1)
    # Chain rule: the trajectories' derivative in the direction (dx/dp, dp) of each entry.
    directions = []
    for entries, dx in zip(places.T, of_x.T, strict=True):
        dp = np.isin(np.arange(program.p.size), entries).astype(float)
        slope = ahead.call([solution.x, program.p, *values, dx, dp])
        directions.append([np.asarray(part.full()) for part in slope])
    stacked = (np.stack(parts, axis=-1) for parts in zip(*directions, strict=True))
    X, Z, U, V, P, times, costs, Y = stacked
    W = np.concatenate((U, V[:, -1:]), axis=1)
    rows = {}
    for label, part in by_names(solution.ocp, X, Z, W, P, Y).items():
        if label in solution.ocp.freed:
            rows[label] = part[:, 0]
        elif label not in solution.ocp.given:
            rows[label] = part[:, : solution[label].shape[-1]]
    per = {**solution.units, "time": model.time_unit}.get(block.role.quantity or name, "")
    units = {label: quotient(solution.units[label], per) for label in rows}
    by_x, duration_by_x = costs.sum(axis=(0, 1)), times[0, -1] - times[0, 0]
    # A part of several has its own costs; of_f is the derivative of their sum.
    joint = sum(block.where.size for block in program.variables.values()) < program.n
    totals = [by_x if joint else of_f, duration_by_x]  # multipliers are exact where x is not
    # Time-optimal: both derivatives are one number, and of_f is the more exact one.
    if np.isclose(solution.objective, solution.duration) and np.allclose(by_x, duration_by_x):
        totals[1] = totals[0]
    single = block.where.size == 1
    objective, duration = (float(part[0]) if single else part for part in totals)
    return Slopes(name, rows, objective, duration, units, single)
