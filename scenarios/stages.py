"""A program ordered by stage, and FATROP, which takes optimal control problems in this order only.

FATROP exploits the structure of an optimal control problem: unknowns x₀, u₀, x₁, u₁, …, x_N and
rows in the order of the stages, those that close the gap x_{k+1} = F(x_k, u_k) before the other
rows of stage k. A :class:`~program.Program` keeps whole trajectories together instead. The order
is found from the program itself:

- column c of a trajectory belongs to stage ⌊c / stride⌋;
- a row that touches one stage is a row of this stage;
- an equation that touches stages k and k + 1, the latter in one unknown with a constant factor,
  closes the gap of this unknown, which thereby is a state. It is divided by the factor.

Everything else (an unknown shared by all stages, a rate of an input, a cost that couples stages)
does not fit, and is refused: CasADi's interface would drop the entries of the Hessian silently.

Source: L. Vanroye, A. Sathya, J. De Schutter, W. Decré, "FATROP: a fast constrained optimal
control problem solver for robot trajectory optimization and control", IROS 2023.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np
from program import Block, Program


class StagedSolver:
    """A solver for the reordered program, called like one for the program itself.

    Multipliers that are handed in are ignored: the interface of FATROP takes none.

    Raises:
        ValueError: the program is not one of stages; the message says which row or unknown.
    """

    def __init__(self, program: Program, options: Mapping[str, Any]) -> None:
        x, p, f, g = (program.nlp[key] for key in ("x", "p", "f", "g"))
        columns = _stages(program.variables, program.variable_names)
        equal = program.lbg == program.ubg
        gaps, rows = _rows(ca.jacobian_sparsity(g, x), columns, equal, program.constraint_names)
        _refuse_coupling(f, g, x, columns, program.variable_names)
        last = int(columns.max())
        states = set(gaps.values())
        # The first stage has no gap of its own; its states are those of the second, one stage back.
        names = [name.split(",")[0] for name in program.variable_names]
        kinds = {names[i] for i in states}
        states |= {i for i in np.flatnonzero(columns == 0) if names[i] in kinds}

        self._x: list[int] = []
        self._g: list[int] = []
        sizes: dict[str, list[int]] = {"nx": [], "nu": [], "ng": []}
        scale = _coefficients(program, gaps)
        for k in range(last + 1):
            of_stage = np.flatnonzero(columns == k)
            own = [int(i) for i in of_stage if i in states]
            inputs = [int(i) for i in of_stage if i not in states]
            closing = {unknown: row for row, unknown in gaps.items() if columns[unknown] == k + 1}
            ordered = sorted(closing)
            path = [row for row, stage in rows.items() if stage == k]
            self._x += own + inputs
            self._g += [closing[unknown] for unknown in ordered] + path
            for key, part in (("nx", own), ("nu", inputs), ("ng", path)):
                sizes[key].append(len(part))
        self._scale = scale[self._g]
        if isinstance(x, ca.SX):
            staged = ca.SX(g)
            for row, unknown in gaps.items():
                # Written anew, so that the coefficient is 1 to the last bit.
                staged[row] = x[unknown] + ca.substitute(g[row], x[unknown], 0) / scale[row]
            nlp = {"x": x[self._x], "p": p, "f": f, "g": staged[self._g]}
        else:
            z = ca.MX.sym("z", program.n)
            f, g = ca.Function("graph", [x, p], [f, g])(z[np.argsort(self._x).tolist()], p)
            nlp = {"x": z, "p": p, "f": f, "g": g[self._g] / self._scale}
        structure = {"structure_detection": "manual", "N": last, **sizes}
        self._solver = ca.nlpsol("peer", "fatrop", nlp, {**options, **structure})

    def __call__(self, **arguments: Any) -> dict[str, Any]:
        """Return CasADi's results, in the program's own order."""
        given = {"p": arguments["p"]}
        given |= {key: np.asarray(arguments[key])[self._x] for key in ("x0", "lbx", "ubx")}
        bounds = [np.asarray(arguments[key])[self._g] / self._scale for key in ("lbg", "ubg")]
        given |= {"lbg": np.minimum(*bounds), "ubg": np.maximum(*bounds)}
        found = self._solver(**given)
        return {
            "x": _back(found["x"], self._x, 1.0),
            "f": found["f"],
            "g": _back(found["g"], self._g, self._scale),
            "lam_x": _back(found["lam_x"], self._x, 1.0),
            "lam_g": _back(found["lam_g"], self._g, 1.0 / self._scale),
        }

    def stats(self) -> dict[str, Any]:
        """Return the statistics of the last solve, with a word where FATROP has a number."""
        stats = dict(self._solver.stats())
        return {**stats, "return_status": stats["unified_return_status"]}


def _stages(blocks: Mapping[str, Block], names: Sequence[str]) -> np.ndarray:
    """Return the stage of every unknown."""
    stages = np.zeros(len(names), dtype=int)
    for name, block in blocks.items():
        if block.shape[1] == 1:
            raise ValueError(
                f"{name!r} belongs to no stage; make it a state that keeps its value, one a stage"
            )
        columns = np.repeat(np.arange(block.shape[1]) // block.stride, block.shape[0])
        stages[block.where] = columns
    return stages


def _rows(
    sparsity: Any, columns: np.ndarray, equal: np.ndarray, names: Sequence[str]
) -> tuple[dict[int, int], dict[int, int]]:
    """Return the unknown whose gap a row closes, by row, and the stage of every other row."""
    touched: list[list[int]] = [[] for _ in names]
    for row, column in zip(*sparsity.get_triplet(), strict=True):
        touched[row].append(column)
    gaps: dict[int, int] = {}
    rows: dict[int, int] = {}

    def free(unknown: int) -> bool:
        return unknown not in gaps.values()

    for row, unknowns in enumerate(touched):
        stages = columns[unknowns]
        first = int(stages.min(initial=columns.max()))
        ahead = [unknown for unknown in unknowns if columns[unknown] > first]
        if not ahead:
            rows[row] = first
        elif equal[row] and len(ahead) == 1 and stages.max() == first + 1 and free(ahead[0]):
            gaps[row] = ahead[0]
        else:
            raise ValueError(
                f"row {names[row]} couples stages {first} to {stages.max()} and does not close "
                "the gap of one unknown; carry what it needs from the stage before as a state"
            )
    return gaps, rows


def _refuse_coupling(f: Any, g: Any, x: Any, columns: np.ndarray, names: Sequence[str]) -> None:
    """Raise where the Hessian of the Lagrangian couples two stages."""
    lam = type(x).sym("lam", g.shape[0])
    gradient = ca.gradient(f + ca.dot(lam, g), x)
    for i, j in zip(*ca.jacobian_sparsity(gradient, x).get_triplet(), strict=True):
        if columns[i] != columns[j]:
            raise ValueError(
                f"{names[i]} and {names[j]}, of different stages, meet in the objective or in "
                "a nonlinear row; carry the earlier one on as a state"
            )


def _coefficients(program: Program, gaps: Mapping[int, int]) -> np.ndarray:
    """Return the constant factor of the unknown whose gap a row closes; 1 for other rows."""
    x, p, g = (program.nlp[key] for key in ("x", "p", "g"))
    slopes = ca.Function("slopes", [x, p], [ca.jacobian(g, x)])
    here, there = slopes(program.x0, program.p), slopes(program.x0 + 0.1, program.p)
    factors = np.ones(program.m)
    for row, unknown in gaps.items():
        factors[row] = here[row, unknown]
        if here[row, unknown] != there[row, unknown]:
            raise ValueError(
                f"row {program.constraint_names[row]} is not of the form x_k+1 - F(x_k, u_k); "
                "solve it for x_k+1"
            )
    return factors


def _back(values: Any, order: Sequence[int], factor: Any) -> Any:
    restored = np.zeros(len(order))
    restored[list(order)] = values.full().ravel() * factor
    return ca.DM(restored)
