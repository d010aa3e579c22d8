"""The start of one solve: as given, or from the result of a solve nearby."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from casadi_hybrid.problem.arguments import Numbers
from casadi_hybrid.problem.point.working_set import WorkingSet
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import InputError

if TYPE_CHECKING:
    from casadi_hybrid.solver.result import Result


def start_values(
    warm: Result, problem: Problem, x0: Any, lam_x0: Any, lam_g0: Any
) -> tuple[Any, ...]:
    """(x0, lam_x0, lam_g0): as given, else those of the warm start.

    Raises:
        InputError: for another object, or the result of a problem of another size.
    """
    from casadi_hybrid.solver.result import Result  # noqa: PLC0415 - not for a first solve

    n, m = problem.n, problem.m
    if not isinstance(warm, Result):
        raise InputError(
            "warm_start must be the result of a solve (solver.result), got "
            f"{type(warm).__name__}; numbers go to x0, lam_x0 and lam_g0"
        )
    if (warm.x.size, warm.g.size) != (n, m):
        raise InputError(
            f"warm_start has {warm.x.size} variables and {warm.g.size} constraints, the "
            f"problem has {n} and {m}; give x0, lam_x0 and lam_g0 of the right sizes"
        )
    x, lam_x, lam_g = warm.last.values() if warm.last else (warm.x, warm.lam_x, warm.lam_g)
    return (
        x if x0 is None else x0,
        lam_x if lam_x0 is None else lam_x0,
        lam_g if lam_g0 is None else lam_g0,
    )


def read_start(
    problem: Problem, warm: Result | None, x0: Any, lam_x0: Any, lam_g0: Any, **others: Any
) -> tuple[Numbers, WorkingSet | None]:
    """The checked numbers of one solve, and the working set that it tries first."""
    if warm is not None:
        x0, lam_x0, lam_g0 = start_values(warm, problem, x0, lam_x0, lam_g0)
    numbers = problem.numbers(x0=x0, lam_x0=lam_x0, lam_g0=lam_g0, **others)
    return numbers, warm.working_set if warm is not None and warm.success else None
