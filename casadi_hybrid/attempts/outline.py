"""What the engine says of a solve that it has made, for statistics: no result is made for that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from casadi_hybrid.attempts.attempt import WARM_NU
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.course.rows import held, take
from casadi_hybrid.engine.solved import ColdSolve
from casadi_hybrid.engine.structures import AnswerData
from casadi_hybrid.problem.problem import Problem

SVD = "svd"
"""The kernel of composite steps: the engine's own singular values."""


class Outline(NamedTuple):
    """What statistics say of a solve by the engine, without its :class:`Result`: that takes as long
    as a small problem is solved in, and most who ask for statistics ask for nothing else.
    """

    iterations: int
    evaluations: Mapping[str, int]
    seconds: Mapping[str, float]
    elapsed: float
    hessian: str
    kernel: str
    success: bool = True
    stop: StopReason = StopReason.CONVERGED
    point: PointStatus = PointStatus.KKT_POINT
    error: Exception | None = None
    detail: str = ""
    engine: str = "c"
    engine_note: str = ""


def outline_of(
    problem: Problem, said: AnswerData, cold: ColdSolve | None
) -> tuple[Outline, list[tuple[Any, ...]]]:
    """That of a solve with this answer, and its iterates as they are recorded."""
    hessian = problem.functions.hessian
    if cold is None:
        kernel, rows = kernel_of(said), rows_of(said)
        return Outline(said.steps, *spent_in(said), said.elapsed, hessian, kernel), rows
    runs = [said] if cold.warm is None else [cold.warm, said]
    rows = [] if cold.warm is None else [first_row(cold.warm)]
    take(cold.rows, rows, [])
    spent = spent_in(*runs, undefined=cold.undefined)
    kernel = SVD if cold.composite else kernel_of(said)
    return Outline(said.steps, *spent, said.elapsed, hessian, kernel), rows


def rows_of(said: AnswerData) -> list[tuple[Any, ...]]:
    """The two iterates of a warm solve as they are recorded: the first, which stays until the last
    step, and the last.
    """
    rows = [first_row(said)]
    if said.steps:
        for _ in range(said.steps - 1):
            rows.append(held(rows[-1]))
        rows.append(_row(said.steps, said.end, 0.0, said.moved, 1.0, 1.0))
    return rows


def first_row(said: AnswerData) -> tuple[Any, ...]:
    """The first iterate of the warm mode as it is recorded."""
    return _row(0, said.start, WARM_NU)


def _row(t: int, at: Any, nu: float, moved: float = 0.0, *parts: float) -> tuple[Any, ...]:
    known = (at.f, at.feasibility, at.stationarity, at.complementarity)
    return (t, *known, nu, moved, *(parts or (0.0, 0.0)), 0.0)


def spent_in(*runs: AnswerData, undefined: int = 0) -> tuple[dict[str, int], dict[str, float]]:
    """The evaluations of the problem's functions in runs on the engine, and their seconds, by kind.

    Args:
        *runs: what C says of each.
        undefined: trial points in them at which a function was not defined.
    """
    evaluations = {
        "first": sum(said.firsts for said in runs),
        "second": sum(said.seconds for said in runs),
        "undefined": undefined,
    }
    seconds = {
        "first": sum(said.in_firsts for said in runs),
        "second": sum(said.in_seconds for said in runs),
    }
    return evaluations, seconds


def kernel_of(said: AnswerData) -> str:
    """The kernel that had the last word at least once."""
    return "ldl" if said.chosen else "ldl-fixed"
