"""What :func:`~casadi_hybrid.verify.verify` was given to judge, read into arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Vector, as_vector
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result


@dataclass(frozen=True, eq=False)
class Candidate:
    """A point to judge. x and the multipliers may hold NaN or Inf: that is judged, not refused.

    Attributes:
        x: the point.
        multipliers: the multipliers that came with it, None without.
        p: parameter values.
        x0: start of the solve, None where it is not known.
    """

    x: Vector
    multipliers: Vector | None
    p: Vector
    x0: Vector | None


def read_candidate(problem: Problem, point: Any, p: Any, multipliers: Any, x0: Any) -> Candidate:
    """Read a :class:`~casadi_hybrid.result.Result`, an answer of ``nlpsol`` or plain numbers.

    Raises:
        InputError: for a wrong shape or a wrong type, naming the argument.
    """
    label = "result_or_point"
    if isinstance(point, Result):
        if multipliers is None:
            multipliers = point.lam_g
        x0 = point.x0 if x0 is None else x0
        p = point.p if p is None else p
        point, label = point.x, "result_or_point.x"
    elif isinstance(point, Mapping):
        if "x" not in point:
            raise InputError(
                f"result_or_point has no entry 'x' (it has {', '.join(map(repr, point))}); "
                "give a Result, the answer of a CasADi solver, or the numbers of the point"
            )
        if multipliers is None:
            multipliers = point.get("lam_g")
        point, label = point["x"], "result_or_point['x']"
    if p is None and problem.n_p:
        raise InputError(f"p is missing; the problem has {problem.n_p} parameter(s)")
    return Candidate(
        read_vector(point, problem.n, label),
        None if multipliers is None else read_vector(multipliers, problem.m, "multipliers"),
        as_vector([] if p is None else p, problem.n_p, "p"),
        None if x0 is None else as_vector(x0, problem.n, "x0"),
    )


def read_vector(value: Any, size: int, name: str) -> Vector:
    """Like :func:`~casadi_hybrid.basics.inputs.as_vector`, but NaN and Inf pass."""
    if isinstance(value, ca.SX | ca.MX):
        return as_vector(value, size, name)
    try:
        array = np.asarray(value.full() if isinstance(value, ca.DM) else value)
        bad = ~np.isfinite(array)
    except (TypeError, ValueError):
        return as_vector(value, size, name)
    vector = as_vector(np.where(bad, 0.0, array), size, name)
    vector[np.broadcast_to(bad.ravel(), size)] = array[bad]
    return vector
