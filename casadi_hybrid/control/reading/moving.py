"""A solution on another mesh or by another method: where a solve there begins."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.methods import points_of
from casadi_hybrid.control.program import Block, Program
from casadi_hybrid.control.signals import Array, between
from casadi_hybrid.control.solution import Solution
from casadi_hybrid.control.statement import Statement


def start_of(ocp: Statement, program: Program, solution: Solution) -> dict[str, Array]:
    """Return ``x0``, ``lam_x0`` and ``lam_g0`` of a solution, moved where its mesh is another.

    By another method, or of a problem with other constraints, it is ``x0`` alone: some multipliers
    without the others lead away from it.

    States and controls are read from the trajectory at the new points. Multipliers are those of the
    old interval that is there: the costates, of the dynamics, as they are; those of limits in
    proportion to the length of the interval, for they are parts of an integral.

    Raises:
        InputError: for a solution with other states or controls.
    """
    old = solution.program
    alike = _shapes(old) == _shapes(program)
    if alike and np.array_equal(solution.ocp.fractions, ocp.fractions):
        return {"x0": solution.x, "lam_x0": solution.lam_x, "lam_g0": solution.lam_g}
    if _quantities(solution.ocp) != _quantities(ocp):
        raise InputError(
            f"guess is a solution of {solution.ocp.name}, whose states and controls are not those "
            f"of {ocp.name}: {_quantities(solution.ocp)}, not {_quantities(ocp)}"
        )
    fractions, before = ocp.fractions, solution.ocp.fractions
    middles = (fractions[:-1] + fractions[1:]) / 2
    k = np.searchsorted(before, middles, side="right") - 1
    ratio = np.diff(fractions) / np.diff(before)[k]

    def moved(of: str, values: Array, found: Array, *, dual: bool) -> Array:
        blocks: Mapping[str, Block] = getattr(program, of)
        for name, block in blocks.items():
            source = getattr(old, of).get(name)
            if source is None or _shape(source) != _shape(block):
                continue
            rows = values[source.where].reshape(source.shape, order="F")
            if block.stride:
                stride = block.stride
                columns = np.arange(block.shape[1])
                last = columns >= fractions[:-1].size * stride
                at = np.minimum(columns // stride, k.size - 1)
                of_old = np.where(last, source.shape[1] - 1, k[at] * stride + columns % stride)
                rows = rows[:, np.minimum(of_old, source.shape[1] - 1)]
                if dual and name not in ("dynamics", "continuity") and block.shape[1] > 1:
                    rows = rows * ratio[at]
            found[block.where] = rows.ravel(order="F")
        return found

    start = moved("variables", solution.x, program.x0.copy(), dual=False)
    for inside in (False, True):
        values = _read(ocp, program, solution, inside=inside)
        start = _written(start, program.variables, values)
    if not alike:
        return {"x0": start}
    return {
        "x0": start,
        "lam_x0": moved("variables", solution.lam_x, np.zeros(program.n), dual=True),
        "lam_g0": moved("constraints", solution.lam_g, np.zeros(program.m), dual=True),
    }


def _read(
    ocp: Statement, program: Program, solution: Solution, *, inside: bool
) -> dict[str, Array]:
    """The trajectories at the new grid points, or at the points between them, by block."""
    at, found = ocp.fractions, {}
    for name in ocp.model.unknowns:
        label = f"{name} inside" if inside else name
        block = program.variables.get(label)
        if block is not None:
            if inside:
                at = between(ocp.fractions, points_of(ocp.method)[: block.stride])
            found[label] = sampled(solution, at)[name][:, : block.shape[1]]
    return found


def sampled(solution: Solution, fractions: Array) -> Mapping[str, Array]:
    """Return every quantity at fractions of the duration, as matrices by name."""
    dense = solution.dense
    times = solution.times[0] + fractions * solution.duration
    return dense.samples(*dense.locate(np.clip(times, *solution.times[[0, -1]]))).rows


def _written(x: Array, blocks: Mapping[str, Block], values: Mapping[str, Array]) -> Array:
    for name, rows in values.items():
        x[blocks[name].where] = (rows / blocks[name].scale).ravel(order="F")
    return x


def _shapes(program: Program) -> list[dict[str, tuple[int, int]]]:
    """What does not depend on the mesh: names, entries and points an interval of the blocks."""
    return [
        {name: _shape(block) for name, block in blocks.items()}
        for blocks in (program.variables, program.constraints)
    ]


def _shape(block: Block) -> tuple[int, int]:
    return block.shape[0], block.stride


def _quantities(ocp: Statement) -> dict[str, int]:
    """States, algebraic states and controls with their sizes."""
    return {name: signal.size for name, signal in ocp.model.unknowns.items()}
