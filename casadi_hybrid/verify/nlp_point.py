"""What :func:`~casadi_hybrid.verify.verify_nlp` was given to judge, read into arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.problem.bounds import Bounds, checked, make_bounds
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.verify.point import read_vector


@dataclass(frozen=True, eq=False)
class NlpCandidate:
    """A point to judge; x and the multipliers may hold NaN or Inf: that is judged, not refused.

    Attributes:
        x: the point.
        multipliers: (lam_x, lam_g) that came with it, None for a lam_x that did not; None without
            lam_g.
        p: parameter values.
        bounds: of this instance.
        x0: start of the solve, None where it is not known.
    """

    x: Vector
    multipliers: tuple[Vector | None, Vector] | None
    p: Vector
    bounds: Bounds
    x0: Vector | None


def read_nlp_candidate(
    program: Problem, answer: Any, p: Any, limits: tuple[Any, Any, Any, Any], x0: Any
) -> NlpCandidate:
    """Read the answer of ``nlpsol``, an object with x, lam_x and lam_g, or plain numbers.

    Args:
        program: the problem.
        answer: what to judge.
        p: parameter values.
        limits: lbx, ubx, lbg, ubg.
        x0: start, or None.

    Raises:
        InputError: for a wrong shape or a wrong type, naming the argument.
    """
    label, lam_x, lam_g = "answer", None, None
    if isinstance(answer, Mapping):
        if "x" not in answer:
            raise InputError(
                f"answer has no entry 'x' (it has {', '.join(map(repr, answer))}); give what a "
                "solver returns, or the numbers of the point"
            )
        lam_x, lam_g = answer.get("lam_x"), answer.get("lam_g")
        answer, label = answer["x"], "answer['x']"
    elif hasattr(answer, "x"):
        lam_x, lam_g = getattr(answer, "lam_x", None), getattr(answer, "lam_g", None)
        answer, label = answer.x, "answer.x"
    bounds = make_bounds(program, *limits)
    if p is None and program.n_p:
        raise InputError(f"p is missing; the problem has {program.n_p} parameter(s)")
    multipliers = None
    if lam_g is not None or (lam_x is not None and program.m == 0):
        multipliers = (
            None if lam_x is None else read_vector(lam_x, program.n, "lam_x of the answer"),
            read_vector(lam_g, program.m, "lam_g of the answer") if program.m else np.zeros(0),
        )
    return NlpCandidate(
        read_vector(answer, program.n, label),
        multipliers,
        checked([] if p is None else p, program.n_p, "p"),
        bounds,
        None if x0 is None else checked(x0, program.n, "x0"),
    )
