"""An optimal control problem for the verifier: its program with names and units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casadi_hybrid.control.laying import Laid
from casadi_hybrid.control.program import Block, Program
from casadi_hybrid.control.reading import checking, measures
from casadi_hybrid.control.reading.dense import Dense
from casadi_hybrid.control.signals import Array
from casadi_hybrid.control.statement import Statement
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.verify.point import Stated


def stated(program: Program, parts: Mapping[str, tuple[Statement, Laid]]) -> Stated:
    """Return a program with the numbers of a solve to judge, entries named with their scales."""

    def exceeded(x: Array, p: Array) -> list[str]:
        found = []
        for prefix, (ocp, laid) in parts.items():
            beyond = checking.violation(Dense(ocp, laid, x, p), checking.POINTS)
            found += [f"{prefix}{excess}" for excess in measures.exceeded(beyond)]
        return found

    names: dict[str, Any] = labels(program, {prefix: ocp for prefix, (ocp, _) in parts.items()})
    problem = Problem.from_nlp(dict(program.nlp), name=program.name, **names)
    return Stated(problem, program.arguments, exceeded)


def labels(
    program: Program, parts: Mapping[str, Statement], *, scaled: bool = False
) -> dict[str, list[str]]:
    """Return the names of rows and unknowns with their units, as options of a solver.

    ``parts`` are the statements by the prefix of their names. With ``scaled`` only of those whose
    numbers are divided by a scale, as a message of the solver is to tell them.
    """
    units = {f"{prefix}{name}": unit for prefix, ocp in parts.items()
             for name, unit in checking.units_of(ocp).items()}  # fmt: skip
    gaps = {f"{prefix}initial {name}" for prefix, ocp in parts.items() for name in ocp.fixed}
    gaps |= {f"{prefix}final {name}" for prefix, ocp in parts.items() for name in ocp.ends}
    names = program.constraint_names  # a gap to what is given is zero, not what is given
    rows = [f"gap to {name}" if name.partition("[")[0] in gaps else name for name in names]
    return {
        "constraint_names": _labels(rows, program.constraints, units, scaled),
        "variable_names": _labels(program.variable_names, program.variables, units, scaled),
    }


def _labels(
    names: list[str], blocks: Mapping[str, Block], units: Mapping[str, str], scaled: bool
) -> list[str]:
    """The names of entries, each with its unit and with what it is divided by."""
    found = list(names)
    for name, block in blocks.items():
        if name not in units:  # of rows of several quantities
            continue
        scales: Any = block.scale.ravel(order="F")
        for place, scale in zip(block.where.tolist(), scales.tolist(), strict=True):
            if scaled and scale == 1.0:
                continue
            size = "" if scale == 1.0 else f"{scale:g}"
            unit = " ".join(filter(None, (size, units[name])))
            found[place] = f"{found[place]} (in {unit})" if unit else found[place]
    return found
