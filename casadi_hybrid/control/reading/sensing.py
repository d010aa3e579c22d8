"""Derivatives of the trajectories of a solution by a parameter or an initial state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.casadi_api.sensitivity import Sensitivities
from casadi_hybrid.casadi_api.sensitivity import Solution as Point
from casadi_hybrid.control.program import Program
from casadi_hybrid.control.signals import Array, known
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.problem import Problem


@dataclass(frozen=True)
class Slopes(Mapping[str, Array]):
    """d(trajectory)/d(parameter) by the name of the trajectory, in its unit per the parameter's.

    ``slopes["angle"]`` has the shape of ``solution["angle"]``; of a parameter with several entries
    it has them as its last axis, a reference all grid points, column by column. The objective and
    the duration are attributes, and found by these names as well.

    Attributes:
        of: the parameter, ``"initial angle"`` of an initial state.
        rows: by name, entries × times × entries of the parameter.
        objective, duration: their derivatives, a number an entry of the parameter.
        units: by name, such as ``"rad/kg"``.
        single: whether the parameter has one entry.
    """

    of: str
    rows: Mapping[str, Array] = field(repr=False)
    objective: Any
    duration: Any
    units: Mapping[str, str] = field(repr=False)
    single: bool = field(repr=False)

    def __getitem__(self, name: str) -> Any:
        if name in ("objective", "duration") and name not in self.rows:
            return getattr(self, name)
        rows = known(name, self.rows, "trajectory")
        rows = rows[..., 0] if self.single else rows
        return rows[0] if rows.shape[0] == 1 else rows

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        """The largest slope of each trajectory."""
        lines = [
            f"  {name:<16} {np.abs(rows).max():.3g} {self.units[name]}".rstrip()
            for name, rows in self.rows.items()
        ]
        return "\n".join([f"largest slopes by {self.of}:", *lines])


def slopes(solution: Any, name: str, weak: float) -> Slopes:
    """Return the slopes of a solution; see :meth:`Solution.sensitivity`."""
    program, model = solution.program, solution.ocp.model
    block = known(name, program.parameters, "parameter")
    bounds = Bounds(program.lbx, program.ubx, program.lbg, program.ubg)
    point = Point(solution.x, solution.lam_x, solution.lam_g)
    derivatives = Sensitivities(_problem(program), weak=weak)(point, program.p, bounds, ("p",))
    read = _reader(solution)
    values, ahead = read.call([ca.DM(solution.x), ca.DM(program.p)]), read.forward(1)
    found = []
    for place in block.where.tolist():
        dp = np.eye(1, program.p.size, place)[0]
        dx = derivatives["jac_x_p"][:, place]
        moved = ahead.call([solution.x, program.p, *values, dx, dp])
        found.append([np.asarray(part.full()) for part in moved])
    *trajectories, costs, times = (np.stack(parts, axis=-1) for parts in zip(*found, strict=True))
    rows: dict[str, Array] = {}
    kinds = ("state", "algebraic", "control", "output")
    for kind, part in zip(kinds, trajectories, strict=True):
        for label, where in model.places(kind).items():
            if label in solution:
                rows[label] = part[where, : solution[label].shape[-1]]
    per = {**solution.units, "time": model.time_unit}.get(name.removeprefix("initial "), "")
    units = {label: f"{solution.units[label] or 1}/{per or 1}".removesuffix("/1") for label in rows}
    totals = [costs.sum(axis=(0, 1)), times[0, -1] - times[0, 0]]
    single = block.where.size == 1
    objective, duration = (float(part[0]) if single else part for part in totals)
    return Slopes(name, rows, objective, duration, units, single)


def _problem(program: Program) -> Problem:
    names = program.constraint_names, program.variable_names
    if not all(map(all, names)):  # a part of several knows its own alone
        return Problem.from_nlp(dict(program.nlp))
    return Problem.from_nlp(dict(program.nlp), constraint_names=names[0], variable_names=names[1])


def _reader(solution: Any) -> ca.Function:
    """(x, p) → states, algebraic states, controls, outputs at the grid points, costs, times."""
    program, model = solution.program, solution.ocp.model
    x, p = ca.MX.sym("x", program.n), ca.MX.sym("p", program.p.size)
    X, Z, U, V, P, T, costs = solution.laid.trajectories.call([x, p])
    W = ca.horzcat(U, V[:, -1])
    z = Z if Z.shape[0] else ca.MX.nan(model.size("algebraic"), T.numel())
    own = P[: model.size("parameter"), :]
    outputs = model.moves.outputs.map(T.numel()).call([X, z, W, own, T])[0]
    return ca.Function("read", [x, p], [X, Z, W, outputs, costs, T])
