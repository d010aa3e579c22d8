"""How the control law answers to the measured state, to first order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from casadi_hybrid.casadi_api.sensitivity import Sensitivities, Solution
from casadi_hybrid.control.model import Model
from casadi_hybrid.control.predictive.plan import Plan
from casadi_hybrid.control.predictive.problem import parts
from casadi_hybrid.control.signals import Array, known
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.problem import Problem


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
                numbers = ", ".join(f"{value:.4g}" for value in self.matrix[row, column].ravel())
                units = controls[control].unit or "1", states[state].unit or "1"
                lines.append(f"d {control} / d {state} = {numbers} {units[0]} / ({units[1]})")
        return "\n".join(lines)


class Gains:
    """Gains of plans; what they take is made once for each problem."""

    def __init__(self) -> None:
        self._problem: Any = None

    def at(self, plan: Plan) -> Gain:
        """Return how the first controls of a solved plan change with the state it begins at.

        By the implicit function theorem at the KKT point with the limits that are active there,
        see :mod:`casadi_hybrid.casadi_api.sensitivity`: a control at its limit has zeros.

        Raises:
            SensitivityError: where the plan is no solution, or has no derivative.
        """
        program, model = plan.program, plan.ocp.model
        if plan.problem is not self._problem:
            self._sensitivities = Sensitivities(Problem.from_nlp(dict(program.nlp)))
            self._problem = plan.problem
        bounds = Bounds(program.lbx, program.ubx, program.lbg, program.ubg)
        found = Solution(plan.x, plan.lam_x, plan.lam_g)
        dx = self._sensitivities(found, program.p, bounds, ("p",))["jac_x_p"]
        prefixes = list(parts(plan.problem))
        rows, columns = [], []
        for name, signal in model.signals["control"].items():
            block = program.variables[prefixes[0] + name]
            rows.append(block.scale[:, :1] * dx[block.where[: signal.size]])
        du = np.vstack(rows)
        for name in model.signals["state"]:  # a measurement is the start of every scenario
            begins = [program.parameters[f"{prefix}initial {name}"].where for prefix in prefixes]
            columns.append(np.sum([du[:, where] for where in begins], axis=0))
        return Gain(np.hstack(columns), model)
