"""A copy of an optimal control problem whose limits may be exceeded at a price."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from casadi_hybrid.control.joint.scenarios import Scenarios
from casadi_hybrid.control.ocp import OptimalControl
from casadi_hybrid.control.predictive.problem import Problem, nominal, parts
from casadi_hybrid.control.program import Block, Program
from casadi_hybrid.control.signals import Array
from casadi_hybrid.control.terms import Soft

_PREFIX, _LIMITS = "violation of ", "limits of "


def softened(problem: Problem, soft: Soft) -> Problem:
    """Return the problem with limits of states and all constraints soft.

    Limits of controls and of their moves stay hard.

    Args:
        problem: constraints that are soft already keep their price. In scenarios the price counts
            with the weight of each, as all costs do.
        soft: what a violation costs, in units of the scale of the state or constraint.
    """
    if isinstance(problem, OptimalControl):
        return _softened(problem, soft)
    return Scenarios(
        _softened(problem.ocp, soft),
        problem.scenarios,
        weights=list(problem.weights.values()),
        shared=problem.shared,
        name=f"{problem.name}, softened",
        solver=problem.options,
    )


def _softened(ocp: OptimalControl, soft: Soft) -> OptimalControl:
    other = copy.copy(ocp)
    for made in ("laid", "solver"):
        other.__dict__.pop(made, None)
    other.closed = False
    other.name = f"{ocp.name}, softened"
    other.softened = list(ocp.softened)
    other.constraints = [
        constraint
        if constraint.soft or constraint.name in ocp.slewed
        else replace(constraint, soft=_priced(soft, constraint.scale))
        for constraint in ocp.constraints
    ]
    for name, signal in ocp.model.signals["state"].items():
        limited = np.isfinite(np.append(signal.lower, signal.upper)).any()
        if limited and name not in ocp.softened:
            other.soften(name, _priced(soft, signal.scale))
    return other


def violated(problem: Problem, program: Program, x: Array, near: float) -> dict[str, float]:
    """Return the largest violation of each limit of a softened program, in its own units.

    Args:
        problem: a softened one. Of scenarios the worst counts.
        program: of it, with the numbers of the solve.
        x: a point of it.
        near: what counts as none, in scaled units.
    """
    found: dict[str, float] = {}
    for label, block in violations(problem, program):
        amounts = block.read(x)
        if (amounts > near * block.scale).any():
            found[label] = max(found.get(label, 0.0), float(amounts.max()))
    return found


def violations(problem: Problem, program: Program) -> list[tuple[str, Block]]:
    """Return the unknowns that are violations, each with the name of its limit.

    Args:
        problem, program: as for :func:`violated`.
    """
    found = []
    for prefix in parts(problem):
        for name, block in program.part(prefix).variables.items():
            if name.startswith(_PREFIX):
                label = name.removeprefix(_PREFIX)
                for suffix in (" inside", " at begin", " at end"):
                    label = label.removesuffix(suffix)
                found.append((label.removeprefix(_LIMITS), block))
    return found


def prices(problem: Problem) -> set[str]:
    """Return the names of states and constraints whose limits may be exceeded at a price."""
    ocp = nominal(problem)
    return {*ocp.softened, *(c.name for c in ocp.constraints if c.soft)}


def said(amounts: Mapping[str, float], ocp: OptimalControl) -> str:
    """Return the violations as words, with the units of states."""
    states: Mapping[str, Any] = ocp.model.signals["state"]
    parts = []
    for name, amount in amounts.items():
        unit = f" {states[name].unit}" if name in states and states[name].unit else ""
        parts.append(f"{name} by {amount:.3g}{unit}")
    return ", ".join(parts)


def _priced(soft: Soft, scale: Array) -> Soft:
    least = float(np.min(scale))
    return Soft(soft.linear / least, soft.quadratic / least**2, soft.most * least)
