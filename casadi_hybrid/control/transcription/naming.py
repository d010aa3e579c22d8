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
    """Return the names of rows and unknowns with their units, as options of a solver."""
    units, origins = dict[str, str](), dict[str, Any]()
    for prefix, ocp in parts.items():
        for name, unit in units_of(ocp, program.part(prefix) if prefix else program).items():
            units[f"{prefix}{name}"] = unit
        # NaN marks a value known only at a solve: its row is named as the gap to the value.
        origins |= {f"{prefix}initial {name}": np.nan for name in ocp.fixed}
        for name, end in ocp.ends.items():
            origins[f"{prefix}final {name}"] = ca.evalf(end) if end.is_constant() else np.nan
    return named(program, units, origins)


def named(
    program: Program, units: Mapping[str, str], origins: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, list[str]]:
    """Return the names of entries, with units and origins of rows by the names of blocks."""
    of_x, of_g = program.variable_names, program.constraint_names
    for names, blocks, of in ((of_x, program.variables, {}), (of_g, program.constraints, origins)):
        for name in blocks.keys() & units.keys():  # others are of several quantities
            where, scales = blocks[name].where, blocks[name].scale.ravel(order="F").tolist()
            origin = np.broadcast_to(ca.DM(of.get(name, 0.0)).full().ravel(), where.size)
            for place, scale, zero in zip(where.tolist(), scales, origin.tolist(), strict=True):
                # The row of a fixed state has the value from which it counts as its origin.
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
    """Return the unit of each block of a program that is of one quantity, by the block's name."""
    units = {"duration": ocp.model.time_unit}
    for signals in ocp.model.signals.values():
        units |= {name: signal.unit for name, signal in signals.items()}
    units |= {c.quantity: c.unit for c in ocp.constraints}
    roles = {
        name: block.role for name, block in {**program.variables, **program.constraints}.items()
    }
    return {
        name: units[role.quantity]
        for name, role in roles.items()
        if role.quantity in units and role.kind != "violation"
    }
