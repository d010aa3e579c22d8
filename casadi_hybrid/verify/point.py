"""What :func:`~casadi_hybrid.verify.verify` was given to judge, read into arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Vector, as_vector
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.columns import as_column
from casadi_hybrid.problem.numbers import refuse_stray_parameters
from casadi_hybrid.problem.problem import Problem


def read_problem(
    problem: Any,
    constraint_names: Sequence[str] | None = None,
    variable_names: Sequence[str] | None = None,
) -> Problem:
    """Read a :class:`~casadi_hybrid.Problem` or CasADi's dictionary.

    Derivatives that the user gave for the solve are replaced by CasADi's where it has any.

    Raises:
        InputError: for anything else, or an entry that does not fit.
    """
    if isinstance(problem, Mapping):
        return Problem.from_nlp(
            problem, constraint_names=constraint_names, variable_names=variable_names
        )
    if not isinstance(problem, Problem):
        raise InputError(
            "problem must be a Problem or a dictionary with 'x', 'f', 'g', got "
            f"{type(problem).__name__}"
        )
    found: Problem = problem
    if constraint_names is not None:
        found = replace(found, constraint_names=constraint_names)
    if variable_names is not None:
        found = replace(found, variable_names=variable_names)
    return found.exact()


@dataclass(frozen=True, eq=False)
class Stated:
    """A problem that was stated as more than a program, such as an optimal control problem.

    ``numbers`` are ``x0``, ``p`` and the bounds of its solve; ``exceeded`` is (x, p) → by how much
    limits are exceeded where the program has no row.
    """

    problem: Problem
    numbers: Mapping[str, Any]
    exceeded: Callable[[Vector, Vector], Sequence[str]]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A point to judge; x and the multipliers may hold NaN or Inf: that is judged, not refused.

    Attributes:
        multipliers: (lam_x, lam_g) that came with it, None for a lam_x that did not; None without
            lam_g.
        bounds: of this instance.
        x0: start of the solve, None where it is not known.
    """

    x: Vector
    multipliers: tuple[Vector | None, Vector] | None
    p: Vector
    bounds: Bounds
    x0: Vector | None


def read_candidate(
    problem: Problem,
    answer: Any,
    p: Any,
    limits: tuple[Any, Any, Any, Any],
    multipliers: Any,
    x0: Any,
) -> Candidate:
    """Read a result, the answer of ``nlpsol``, an object with x, lam_x, lam_g, or plain numbers.

    What is None here is taken from a result that has it, else from the problem.

    Args:
        limits: lbx, ubx, lbg, ubg.
        multipliers: lam_g in place of the answer's; lam_x is then what stationarity needs.

    Raises:
        InputError: for a wrong shape or a wrong type, naming the argument.
    """
    n, m = problem.n, problem.m
    label, point, others = "answer", answer, None
    lam_x = lam_g = None
    if isinstance(answer, Mapping):
        if "x" not in answer:
            raise InputError(
                f"answer has no entry 'x' (it has {', '.join(map(repr, answer))}); give what a "
                "solver returns, or the numbers of the point"
            )
        lam_x, lam_g = answer.get("lam_x"), answer.get("lam_g")
        point, label = answer["x"], "answer['x']"
    elif hasattr(answer, "x"):
        lam_x, lam_g = getattr(answer, "lam_x", None), getattr(answer, "lam_g", None)
        point, label, others = answer.x, "answer.x", answer
    x = read_vector(point, n, label)
    p = getattr(others, "p", None) if p is None else as_column(p, problem.shapes.get("p"))
    refuse_stray_parameters(p, problem.n_p)
    x0 = getattr(others, "x0", None) if x0 is None else x0
    numbers = problem.numbers(x0, p, *limits)
    bounds, known = numbers.bounds, getattr(others, "bounds", None)
    if isinstance(known, Bounds):
        bounds = Bounds(
            *(
                getattr(known if given is None else bounds, label)
                for label, given in zip(("lbx", "ubx", "lbg", "ubg"), limits, strict=True)
            )
        )
    pair: tuple[Vector | None, Vector] | None = None
    if multipliers is not None:
        pair = None, read_vector(multipliers, m, "multipliers")
    elif lam_g is not None or (lam_x is not None and m == 0):
        pair = (
            None if lam_x is None else read_vector(lam_x, n, "lam_x of the answer"),
            read_vector(lam_g, m, "lam_g of the answer") if m else np.zeros(0),
        )
    return Candidate(x, pair, numbers.p, bounds, None if x0 is None else numbers.x0)


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
