"""Arguments of :func:`~casadi_hybrid.verify.verify`, read into arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from casadi_hybrid.problem.arguments import refuse_stray_parameters
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.columns import as_column
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import Vector, sized


def read_problem(
    problem: Any,
    constraint_names: Sequence[str] | None = None,
    variable_names: Sequence[str] | None = None,
) -> Problem:
    """Read a Problem or CasADi's dictionary; raises InputError for anything else."""
    if isinstance(problem, Mapping):
        return Problem.from_nlp(
            problem, constraint_names=constraint_names, variable_names=variable_names
        )
    if not isinstance(problem, Problem):
        raise InputError(
            "problem must be a Problem or a dictionary with 'x', 'f', 'g', got "
            f"{type(problem).__name__}"
        )
    # CasADi's derivatives replace those that the user gave for the solve.
    return problem.renamed(constraint_names, variable_names).exact()


@dataclass(frozen=True, eq=False)
class Stated:
    """The nonlinear program of a larger problem, such as an optimal control problem."""

    problem: Problem
    # x0, p and the bounds of its solve.
    numbers: Mapping[str, Any]
    # (x, p) → sentences on limits that are exceeded at points without a row of the program.
    exceeded: Callable[[Vector, Vector], Sequence[str]]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A point to judge; NaN or Inf in x and the multipliers are judged, not refused."""

    x: Vector
    # (lam_x, lam_g) of the answer, lam_x None if it is missing; None without lam_g.
    multipliers: tuple[Vector | None, Vector] | None
    p: Vector
    bounds: Bounds
    x0: Vector | None  # start of the solve, if it is known


def read_candidate(
    problem: Problem, answer: Any, given: Mapping[str, Any], multipliers: Any
) -> Candidate:
    """Read a result, the answer of ``nlpsol``, an object with x, lam_x, lam_g, or plain numbers."""
    n, m, result = problem.n, problem.m, None
    label, parts = "answer", {"x": answer}
    if isinstance(answer, Mapping):
        if "x" not in answer:
            raise InputError(
                f"answer has no entry 'x' (it has {', '.join(map(repr, answer))}); give the answer "
                "of a solver, or the numbers of the point"
            )
        label, parts = "answer['x']", {**answer}
    elif hasattr(answer, "x"):
        names = ("x", "lam_x", "lam_g")
        label, parts, result = "answer.x", {k: getattr(answer, k, None) for k in names}, answer
    x, lam_x, lam_g = sized(parts["x"], n, label), parts.get("lam_x"), parts.get("lam_g")
    # An argument counts first, then the result, then the problem.
    numbers = {name: getattr(result, name, None) for name in ("x0", "p")}
    numbers |= {name: value for name, value in given.items() if value is not None}
    if given["p"] is not None:
        numbers["p"] = as_column(given["p"], problem.shapes.get("p"))
    refuse_stray_parameters(numbers["p"], problem.n_p)
    read = problem.numbers(**numbers)
    bounds, known = read.bounds, getattr(result, "bounds", None)
    if isinstance(known, Bounds):
        # Bounds of the solve, except where an argument replaces them.
        bounds = replace(known, **{k: v for k, v in vars(bounds).items() if given[k] is not None})
    pair: tuple[Vector | None, Vector] | None = None
    if multipliers is not None:
        # lam_x is then chosen for stationarity.
        pair = None, sized(multipliers, m, "multipliers")
    elif lam_g is not None or (lam_x is not None and m == 0):
        lam_g = sized(lam_g, m, "lam_g of the answer") if m else np.zeros(0)
        pair = None if lam_x is None else sized(lam_x, n, "lam_x of the answer"), lam_g
    return Candidate(x, pair, read.p, bounds, None if numbers["x0"] is None else read.x0)
