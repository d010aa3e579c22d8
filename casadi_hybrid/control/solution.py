"""A solution by name and in physical units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from casadi_hybrid.control.laying import Laid
from casadi_hybrid.control.program import Program
from casadi_hybrid.control.signals import Array, known
from casadi_hybrid.control.statement import Statement


@dataclass(frozen=True)
class Solution:
    """What a solver found for an optimal control problem.

    ``solution["speed"]`` is a trajectory: of a quantity with one entry a vector, else a matrix with
    a column a time. States, algebraic states, parameters and outputs are at :attr:`times`; a
    control that is held has one value for each interval, :attr:`control_times`.

    Attributes:
        ocp: the problem.
        laid: its functions.
        program: with the numbers of the solve.
        x, lam_x, lam_g: the point and the multipliers, in the program's scaled unknowns.
        objective: f.
        times: of the grid points.
        values: every trajectory by name, as matrices.
        costs: by name.
        stats: the solver's; ``success``, ``return_status``, ``iter_count``, ….
        explanation: in sentences, what is wrong with a point that is no solution.
    """

    ocp: Statement = field(repr=False)
    laid: Laid = field(repr=False)
    program: Program = field(repr=False)
    x: Array = field(repr=False)
    lam_x: Array = field(repr=False)
    lam_g: Array = field(repr=False)
    objective: float
    times: Array = field(repr=False)
    values: Mapping[str, Array] = field(repr=False)
    costs: Mapping[str, float]
    stats: Mapping[str, Any] = field(repr=False)
    explanation: str = ""

    @classmethod
    def of(
        cls,
        ocp: Statement,
        laid: Laid,
        program: Program,
        x: Array,
        lam_x: Array,
        lam_g: Array,
        stats: Mapping[str, Any],
        explanation: str = "",
    ) -> Solution:
        """Read a point of the program."""
        X, Z, U, _, P, T, costs = (
            np.asarray(part.full(), dtype=float) for part in laid.trajectories(x, program.p)
        )
        model = ocp.model
        values: dict[str, Array] = {}
        for kind, rows in (("state", X), ("algebraic", Z), ("control", U)):
            for name, where in model.places(kind).items():
                if rows.shape[0]:
                    block = program.variables.get(name)
                    linear = kind == "control" and model.signals[kind][name].linear
                    values[name] = block.read(x) if linear and block else rows[where]
        at = 0
        for name, signal in {**model.signals["parameter"], **ocp.signals}.items():
            values[name] = P[at : at + signal.size]
            at += signal.size
        found = {cost.name: float(v) for cost, v in zip(ocp.costs, costs.ravel(), strict=True)}
        return cls(
            ocp,
            laid,
            program,
            x,
            lam_x,
            lam_g,
            sum(found.values()),
            T.ravel(),
            values,
            found,
            stats,
            explanation,
        )

    def __getitem__(self, name: str) -> Array:
        """Return a trajectory by name."""
        if name in self.ocp.model.signals["output"]:
            return _plain(self._output(name))
        return _plain(known(name, self.values, "trajectory"))

    def __contains__(self, name: str) -> bool:
        return name in self.values or name in self.ocp.model.signals["output"]

    @property
    def success(self) -> bool:
        """Whether the solver says that the point is a solution."""
        return bool(self.stats["success"])

    @property
    def iterations(self) -> int:
        """Steps of the solver."""
        return int(self.stats["iter_count"])

    @property
    def duration(self) -> float:
        """From the first to the last time."""
        return float(self.times[-1] - self.times[0])

    @property
    def control_times(self) -> Array:
        """The beginnings of the intervals."""
        return self.times[:-1]

    @property
    def states(self) -> Array:
        """All states, one below the other, a column a time."""
        return self._stacked("state")

    @property
    def controls(self) -> Array:
        """All controls at the beginning of each interval, one below the other."""
        rows = [self.values[name] for name in self.ocp.model.signals["control"]]
        N = self.times.size - 1
        return np.vstack([row[:, :N] for row in rows]) if rows else np.zeros((0, N))

    @property
    def multipliers(self) -> dict[str, Array]:
        """By the name of the constraint, and of the variable for its limits, per physical unit.

        Positive where an upper limit holds the point back, negative where a lower one does.
        """
        program = self.program
        rows = {name: block.read(self.lam_g, dual=True)
                for name, block in program.constraints.items()}  # fmt: skip
        bounds = {name: block.read(self.lam_x, dual=True)
                  for name, block in program.variables.items()}  # fmt: skip
        return {name: _plain(value) for name, value in {**bounds, **rows}.items()}

    def _stacked(self, kind: str) -> Array:
        return np.vstack([self.values[name] for name in self.ocp.model.signals[kind]])

    def _output(self, name: str) -> Array:
        model = self.ocp.model
        X, Z, _, _, P, T, _ = self.laid.trajectories(self.x, self.program.p)
        U = self.controls
        U = np.hstack((U, U[:, -1:]))
        for control, where in model.places("control").items():
            if model.signals["control"][control].linear:
                U[where] = self.values[control]
        Z = Z if Z.shape[0] else np.full((model.size("algebraic"), self.times.size), np.nan)
        own = P[: model.size("parameter"), :]
        rows = np.asarray(model.moves.outputs.map(self.times.size)(X, Z, U, own, T).full())
        return rows[model.places("output")[name]]


def _plain(rows: Array) -> Array:
    return rows[0] if rows.shape[0] == 1 else rows
