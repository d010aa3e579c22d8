"""What :func:`~casadi_hybrid.verify.verify` was given to judge, read into arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Vector, sized
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
    problem: Problem, answer: Any, given: Mapping[str, Any], multipliers: Any
) -> Candidate:
    """Read a result, the answer of ``nlpsol``, an object with x, lam_x, lam_g, or plain numbers.

    Args:
        given: x0, p, lbx, ubx, lbg and ubg; what is None is taken from a result that has it, else
            from the problem.
        multipliers: lam_g in place of the answer's; lam_x is then what stationarity needs.

    Raises:
        InputError: for a wrong shape or a wrong type, naming the argument.
    """
    n, m, others = problem.n, problem.m, None
    label, of = "answer", {"x": answer}
    if isinstance(answer, Mapping):
        if "x" not in answer:
            raise InputError(
                f"answer has no entry 'x' (it has {', '.join(map(repr, answer))}); give what a "
                "solver returns, or the numbers of the point"
            )
        label, of = "answer['x']", {**answer}
    elif hasattr(answer, "x"):
        names = ("x", "lam_x", "lam_g")
        label, of, others = "answer.x", {k: getattr(answer, k, None) for k in names}, answer
    x, lam_x, lam_g = sized(of["x"], n, label), of.get("lam_x"), of.get("lam_g")
    numbers = {name: getattr(others, name, None) for name in ("x0", "p")}
    numbers |= {name: value for name, value in given.items() if value is not None}
    if given["p"] is not None:
        numbers["p"] = as_column(given["p"], problem.shapes.get("p"))
    refuse_stray_parameters(numbers["p"], problem.n_p)
    read = problem.numbers(**numbers)
    bounds, known = read.bounds, getattr(others, "bounds", None)
    if isinstance(known, Bounds):
        sides = {side: known if given[side] is None else bounds for side in vars(bounds)}
        bounds = Bounds(**{side: getattr(source, side) for side, source in sides.items()})
    pair: tuple[Vector | None, Vector] | None = None
    if multipliers is not None:
        pair = None, sized(multipliers, m, "multipliers")
    elif lam_g is not None or (lam_x is not None and m == 0):
        pair = (
            None if lam_x is None else sized(lam_x, n, "lam_x of the answer"),
            sized(lam_g, m, "lam_g of the answer") if m else np.zeros(0),
        )
    return Candidate(x, pair, read.p, bounds, None if numbers["x0"] is None else read.x0)
