"""An optimal control problem for the verifier: its program with names and units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casadi_hybrid.control.laying import Laid
from casadi_hybrid.control.program import Program
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
    program: Program, parts: Mapping[str, Statement], *, less: bool = False
) -> dict[str, list[str]]:
    """Return the names of rows and unknowns with their units, as options of a solver.

    ``parts`` are the statements by the prefix of their names. With ``less`` rows say what they
    subtract from a state, as a message of the solver is to tell them.
    """
    units = {f"{prefix}{name}": unit for prefix, ocp in parts.items()
             for name, unit in checking.units_of(ocp).items()}  # fmt: skip
    names, zeros = program.constraint_names, dict[int, float]()
    for prefix, ocp in parts.items() if less else ():
        for name, number in (dict.fromkeys(f"initial {n}" for n in ocp.fixed) | ocp.ends).items():
            block = program.constraints.get(prefix + name)
            for i, place in enumerate(block.where.tolist() if block else ()):
                if number is None:
                    names[place] += " − given"
                else:
                    zeros[place] = number[i]
    found = {"constraint_names": names, "variable_names": program.variable_names}
    for labelled, blocks in zip(
        found.values(), (program.constraints, program.variables), strict=True
    ):
        for name, block in blocks.items():
            if name not in units:  # of rows of several quantities
                continue
            scales = block.scale.ravel(order="F").tolist()
            for place, scale in zip(block.where.tolist(), scales, strict=True):
                zero = zeros.get(place) if labelled is names else None
                begin = f"from {zero:g}" if zero else ""
                size = "" if scale == 1.0 and (units[name] or not zero) else f"{scale:g}"
                if unit := " ".join(filter(None, (size, units[name], begin))):
                    labelled[place] += f" (in {unit})"
    return found
