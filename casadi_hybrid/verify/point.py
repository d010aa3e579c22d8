"""What :func:`~casadi_hybrid.verify.verify` was given to judge, read into arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Vector, as_vector
from casadi_hybrid.problem.bounds import Bounds, checked, make_bounds
from casadi_hybrid.problem.columns import Shapes, as_column, as_columns
from casadi_hybrid.problem.problem import Problem, check_expression
from casadi_hybrid.problem.program import Program


@dataclass(frozen=True, eq=False)
class Subject:
    """A problem as the verifier sees it, whichever way it was given.

    Attributes:
        program: its functions and sizes.
        kind: ``ca.SX`` or ``ca.MX``.
        graph: (x, p) → f, c.
        limits: lbx, ubx, lbg, ubg where nobody gives others.
        shapes: of what came as a row or a matrix.
        numbers: how p and x0 are read: CasADi repeats a single number, a Problem does not.
    """

    program: Program
    kind: Any
    graph: ca.Function
    limits: tuple[Any, Any, Any, Any]
    shapes: Shapes
    numbers: Callable[[Any, int, str], Vector]


def read_problem(
    problem: Any,
    constraint_names: Sequence[str] | None = None,
    variable_names: Sequence[str] | None = None,
) -> Subject:
    """Read a :class:`~casadi_hybrid.Problem` or CasADi's dictionary.

    Raises:
        InputError: for anything else, or an entry that does not fit.
    """
    if isinstance(problem, Problem):
        if constraint_names is not None:
            problem = replace(problem, constraint_names=constraint_names)
        if variable_names is not None:
            problem = replace(problem, variable_names=variable_names)
        program = Program(problem.functions, problem.n, problem.m, problem.n_p, problem.name)
        graph = ca.Function("graph", [problem.x, problem.p], [problem.f, problem.h])
        limits = (-np.inf, np.inf, 0.0, 0.0)
        return Subject(program, type(problem.x), graph, limits, {}, as_vector)
    if not isinstance(problem, Mapping):
        raise InputError(
            "problem must be a Problem or a dictionary with 'x', 'f', 'g', got "
            f"{type(problem).__name__}"
        )
    nlp, shapes = as_columns(problem)
    program = Program.from_dict(
        nlp, constraint_names=constraint_names, variable_names=variable_names
    )
    kind = type(nlp["x"])
    p = nlp.get("p", kind(0, 1))
    f = check_expression(nlp.get("f", 0), "f", kind)
    g = check_expression(nlp.get("g", kind(0, 1)), "g", kind)
    graph = ca.Function("graph", [nlp["x"], p if p.numel() else kind.sym("p", 0)], [f, g])
    return Subject(program, kind, graph, (-np.inf, np.inf, -np.inf, np.inf), shapes, checked)


@dataclass(frozen=True, eq=False)
class Candidate:
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


def read_candidate(
    subject: Subject,
    answer: Any,
    p: Any,
    limits: tuple[Any, Any, Any, Any],
    multipliers: Any,
    x0: Any,
) -> Candidate:
    """Read a result, the answer of ``nlpsol``, an object with x, lam_x, lam_g, or plain numbers.

    What is None here is taken from a result that has it, else from the problem.

    Args:
        subject: the problem.
        answer: what to judge.
        p: parameter values.
        limits: lbx, ubx, lbg, ubg.
        multipliers: lam_g in place of the answer's; lam_x is then what stationarity needs.
        x0: start.

    Raises:
        InputError: for a wrong shape or a wrong type, naming the argument.
    """
    program = subject.program
    n, m, n_p = program.n, program.m, program.n_p
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
    p = getattr(others, "p", None) if p is None else as_column(p, subject.shapes.get("p"))
    if p is None and n_p:
        raise InputError(f"p is missing; the problem has {n_p} parameter(s)")
    x0 = getattr(others, "x0", None) if x0 is None else x0
    known = getattr(others, "bounds", None)
    usual = subject.limits
    if isinstance(known, Bounds):
        usual = known.lbx, known.ubx, known.lbg, known.ubg
    bounds = make_bounds(
        program, *(b if a is None else a for a, b in zip(limits, usual, strict=True))
    )
    pair: tuple[Vector | None, Vector] | None = None
    if multipliers is not None:
        pair = None, read_vector(multipliers, m, "multipliers")
    elif lam_g is not None or (lam_x is not None and m == 0):
        pair = (
            None if lam_x is None else read_vector(lam_x, n, "lam_x of the answer"),
            read_vector(lam_g, m, "lam_g of the answer") if m else np.zeros(0),
        )
    return Candidate(
        x,
        pair,
        subject.numbers([] if p is None else p, n_p, "p"),
        bounds,
        None if x0 is None else subject.numbers(x0, n, "x0"),
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
