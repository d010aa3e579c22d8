"""Names of the unknowns and rows of a program, with units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.transcription.program import Program
from casadi_hybrid.control.transcription.statement import Statement
from casadi_hybrid.problem.graph.expressions import Label


def labels(program: Program, parts: Mapping[str, Statement]) -> dict[str, list[str]]:
    """Return the names of rows and unknowns with their units, as options of a solver.

    ``parts`` are the statements by the prefix of their names. Of a state that is fixed they say the
    number that its row counts from, or where only a solve knows it that the row is the gap to it.
    """
    units, begins = dict[str, str](), dict[str, Any]()
    for prefix, ocp in parts.items():
        own = units_of(ocp, program.part(prefix) if prefix else program)
        units |= {f"{prefix}{name}": unit for name, unit in own.items()}
        begins |= {f"{prefix}initial {name}": np.nan for name in ocp.fixed}
        begins |= {
            f"{prefix}final {name}": ca.evalf(wanted) if wanted.is_constant() else np.nan
            for name, wanted in ocp.ends.items()
        }
    return named(program, units, begins)


def named(
    program: Program, units: Mapping[str, str], begins: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, list[str]]:
    """Return the names, with the units and where the rows count from by the names of blocks."""
    of_x, of_g = program.variable_names, program.constraint_names
    for names, blocks, of in ((of_x, program.variables, {}), (of_g, program.constraints, begins)):
        for name in blocks.keys() & units.keys():  # others are of several quantities
            where, scales = blocks[name].where, blocks[name].scale.ravel(order="F").tolist()
            begin = np.broadcast_to(ca.DM(of.get(name, 0.0)).full().ravel(), where.size)
            for place, scale, zero in zip(where.tolist(), scales, begin.tolist(), strict=True):
                if np.isnan(zero):
                    names[place] = Label(f"gap to {names[place]}", scale, units[name])
                else:
                    names[place] = Label(names[place], scale, units[name], zero)
    for names in (of_x, of_g):  # "a" of two entries and another "a[0]"
        seen = Counter[str]()
        for i, name in enumerate(names):
            seen[name] += 1
            names[i] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return {"constraint_names": of_g, "variable_names": of_x}


def units_of(ocp: Statement, program: Program) -> dict[str, str]:
    """The unit of each block of a program that is of one quantity, by the block's name."""
    of = {"duration": ocp.model.time_unit}
    of |= {name: s.unit for kind in ocp.model.signals.values() for name, s in kind.items()}
    of |= {c.quantity: c.unit for c in ocp.constraints}
    blocks = (*program.variables.items(), *program.constraints.items())
    return {
        name: of[block.role.quantity]
        for name, block in blocks
        if block.role.quantity in of and block.role.kind != "violation"
    }
