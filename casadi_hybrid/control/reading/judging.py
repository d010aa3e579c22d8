"""An optimal control problem for the verifier: its program with names and units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.laying import Laid
from casadi_hybrid.control.program import Program
from casadi_hybrid.control.reading import checking
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
            found += [f"{prefix}{excess}" for excess in beyond.noted]
        return found

    names: dict[str, Any] = labels(program, {prefix: ocp for prefix, (ocp, _) in parts.items()})
    problem = Problem.from_nlp(dict(program.nlp), name=program.name, **names)
    return Stated(problem, program.arguments, exceeded)


def labels(program: Program, parts: Mapping[str, Statement]) -> dict[str, list[str]]:
    """Return the names of rows and unknowns with their units, as options of a solver.

    ``parts`` are the statements by the prefix of their names. Of a state that is fixed they say the
    number that its row counts from, or where only a solve knows it that the row is the gap to it.
    """
    units, begins = dict[str, str](), dict[str, Any]()
    for prefix, ocp in parts.items():
        own = checking.units_of(ocp, program.part(prefix) if prefix else program)
        units |= {f"{prefix}{name}": unit for name, unit in own.items()}
        begins |= {f"{prefix}initial {name}": np.nan for name in ocp.fixed}
        begins |= {f"{prefix}final {name}": ca.evalf(wanted) if wanted.is_constant() else np.nan
                   for name, wanted in ocp.ends.items()}  # fmt: skip
    return named(program, units, begins)


def named(
    program: Program, units: Mapping[str, str], begins: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, list[str]]:
    """Return the names, with the units and where the rows count from by the names of blocks."""
    of_x, of_g = program.variable_names, program.constraint_names
    for names, blocks, of in ((of_x, program.variables, {}), (of_g, program.constraints, begins)):
        for name in blocks.keys() & units.keys():  # others are of several quantities
            where, scales = blocks[name].where, blocks[name].scale.ravel(order="F")
            begin = np.broadcast_to(ca.DM(of.get(name, 0.0)).full().ravel(), where.size)
            for place, scale, zero in zip(where.tolist(), scales, begin, strict=True):
                counted = f"from {zero:g}" if np.abs(zero) > 0.0 else ""
                size = f"{scale:g}" if scale != 1.0 or (counted and not units[name]) else ""
                said = " ".join(filter(None, (size, units[name], counted)))
                label = f"gap to {names[place]}" if np.isnan(zero) else names[place]
                names[place] = f"{label} (in {said})" if said else label
    for names in (of_x, of_g):  # "a" of two entries and another "a[0]"
        seen = Counter[str]()
        for i, name in enumerate(names):
            seen[name] += 1
            names[i] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return {"constraint_names": of_g, "variable_names": of_x}
