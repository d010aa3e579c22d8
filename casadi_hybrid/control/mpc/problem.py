"""Problem of a predictive controller: one or scenarios of one, as stated or softened."""

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
# Factor of the weights of limits on control increments, which give way last.
_LAST = 100.0


def refuse(problem: Problem) -> None:
    """Refuse a problem of which no predictive controller can be made."""
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
    """Return the problem with all limits soft except those of controls, weighted by their scale."""
    if isinstance(problem, OptimalControl):
        return _softened(problem, soft)
    options: dict[str, Any] = {"shared": problem.shared, "solver": problem.options}
    # A violation in a scenario counts with the scenario's weight, as all costs do.
    weights, name = list(problem.weights.values()), f"{problem.name}, softened"
    ocp = _softened(problem.ocp, soft)
    return Scenarios(ocp, problem.scenarios, weights=weights, name=name, **options)


def _softened(ocp: OptimalControl, soft: Soft) -> OptimalControl:
    other = ocp.reopened()
    other.name = f"{ocp.name}, softened"
    soft = replace(soft, scaled=True)
    last = replace(soft, linear=_LAST * soft.linear, quadratic=_LAST * soft.quadratic)
    other.constraints = [
        # Constraints that are soft already keep their weight.
        c if c.soft else replace(c, soft=last if c.name in ocp.slewed else soft)
        for c in ocp.constraints
    ]
    for name, signal in (ocp.model.signals["state"] | ocp.model.signals["algebraic"]).items():
        limited = np.isfinite(np.append(signal.lower, signal.upper)).any()
        if limited and name not in ocp.softened:
            other.soften(name, soft)
    return other


def violated(problem: Problem, program: Program, x: Array, tolerance: float) -> dict[str, float]:
    """Return the largest violation of each limit of a softened program, in its own units."""
    largest: dict[str, float] = {}
    for label, block in violations(problem, program):
        amounts = block.read(x)
        # The tolerance is in scaled units. Of scenarios the worst counts.
        if (amounts > tolerance * block.scale).any():
            largest[label] = max(largest.get(label, 0.0), float(amounts.max()))
    return largest


def violations(problem: Problem, program: Program) -> list[tuple[str, Block]]:
    """Return the unknowns that are violations, each with the name of its limit."""
    parts = (program.part(prefix) for prefix in problem.prefixed)
    blocks = (block for part in parts for block in part.variables.values())
    return [(block.role.quantity, block) for block in blocks if block.role.kind == "violation"]


def soft_names(problem: Problem) -> set[str]:
    """Return the names of quantities with soft limits."""
    return {c.quantity for c in problem.nominal.constraints if c.soft}


def in_words(amounts: Mapping[str, float], ocp: OptimalControl) -> str:
    """Return violations in words, with the units of states and algebraic states."""
    states: Mapping[str, Any] = ocp.model.unknowns
    units = {name: states[name].unit if name in states else "" for name in amounts}
    return ", ".join(f"{name} by {in_unit(amounts[name], unit)}" for name, unit in units.items())
