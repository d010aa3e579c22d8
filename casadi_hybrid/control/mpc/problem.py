"""The problem of a predictive controller: one or scenarios of one, as stated or softened.

In the softened one limits may be exceeded at a price.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from casadi_hybrid.control.joint.scenarios import Scenarios
from casadi_hybrid.control.model.excess import in_unit
from casadi_hybrid.control.model.signals import Array
from casadi_hybrid.control.solution.ocp import OptimalControl
from casadi_hybrid.control.transcription.program import Block, Program
from casadi_hybrid.control.transcription.terms import Soft
from casadi_hybrid.utils.errors import InputError

Problem = OptimalControl | Scenarios
_DEARER = 100.0
"""The price of a limit on moves where others cost 1, so that it gives way last."""


def refuse(problem: Problem) -> None:
    """Refuse what no predictive controller can be made of."""
    if not isinstance(problem, OptimalControl | Scenarios):
        raise InputError(
            f"ocp must be an OptimalControl or Scenarios, got {type(problem).__name__}"
        )
    ocp = problem.nominal
    if not ocp.model.signals["control"]:
        raise InputError(f"{problem.name} has no control, so there is nothing to apply")
    if loose := [name for name in ocp.model.signals["state"] if name not in ocp.fixed]:
        raise InputError(
            f"{problem.name} leaves {', '.join(loose)} free at the start; call its initial()"
        )


def softened(problem: Problem, soft: Soft) -> Problem:
    """Return the problem with all limits but those of controls soft, priced by their scale.

    Those stay hard, and those of their moves give way where others do not suffice;
    constraints that are soft already keep their price. In scenarios it counts with the weight of
    each, as all costs do.
    """
    if isinstance(problem, OptimalControl):
        return _softened(problem, soft)
    return Scenarios(
        _softened(problem.ocp, soft), problem.scenarios, weights=list(problem.weights.values()),
        shared=problem.shared, name=f"{problem.name}, softened", solver=problem.options,
    )  # fmt: skip


def _softened(ocp: OptimalControl, soft: Soft) -> OptimalControl:
    other = ocp.reopened()
    other.name = f"{ocp.name}, softened"
    soft = replace(soft, scaled=True)
    last = replace(soft, linear=_DEARER * soft.linear, quadratic=_DEARER * soft.quadratic)
    other.constraints = [
        c if c.soft else replace(c, soft=last if c.name in ocp.slewed else soft)
        for c in ocp.constraints
    ]
    for name, signal in (ocp.model.signals["state"] | ocp.model.signals["algebraic"]).items():
        limited = np.isfinite(np.append(signal.lower, signal.upper)).any()
        if limited and name not in ocp.softened:
            other.soften(name, soft)
    return other


def violated(problem: Problem, program: Program, x: Array, near: float) -> dict[str, float]:
    """Return the largest violation of each limit of a softened program, in its own units.

    Of scenarios the worst counts; up to ``near``, in scaled units, it counts as none.
    """
    found: dict[str, float] = {}
    for label, block in violations(problem, program):
        amounts = block.read(x)
        if (amounts > near * block.scale).any():
            found[label] = max(found.get(label, 0.0), float(amounts.max()))
    return found


def violations(problem: Problem, program: Program) -> list[tuple[str, Block]]:
    """Return the unknowns that are violations, each with the name of its limit."""
    blocks = (block for prefix in problem.prefixed
              for block in program.part(prefix).variables.values())  # fmt: skip
    return [(block.role.quantity, block) for block in blocks if block.role.kind == "violation"]


def prices(problem: Problem) -> set[str]:
    """Return the names of what has limits that may be exceeded at a price."""
    return {c.quantity for c in problem.nominal.constraints if c.soft}


def said(amounts: Mapping[str, float], ocp: OptimalControl) -> str:
    """Return the violations as words, with the units of states and algebraic states."""
    states: Mapping[str, Any] = ocp.model.unknowns
    units = {name: states[name].unit if name in states else "" for name in amounts}
    return ", ".join(f"{name} by {in_unit(amounts[name], unit)}" for name, unit in units.items())
