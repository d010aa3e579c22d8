"""The solves that go with an export: a stored start, and a loop from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from casadi_hybrid.core.binding.plan import kinds_of
from casadi_hybrid.core.export.export import Case
from casadi_hybrid.utils.errors import InputError

# Distance of the stored start from the solution, relative and absolute.
_PUSH = 1e-3
_MULTIPLIERS = "lam_x0", "lam_g0", "warm_start"
_START = "x0", "lam_x0", "lam_g0"


def gather(
    solve: Callable[..., Any],
    arguments: Mapping[str, Any],
    loop: Iterable[Mapping[str, Any]],
    *,
    cold: bool,
) -> tuple[Case | None, tuple[Case, ...]]:
    """Return the solve without multipliers or None, and the solves from a start and of the loop.

    Each change of ``loop`` begins at the answer before. Raises InputError for a solve that fails,
    and for bounds of other kinds than in the first.
    """
    plain = {key: value for key, value in arguments.items() if key not in _MULTIPLIERS}
    without_multipliers = None
    if cold and len(plain) < len(arguments):
        label = "the solve without multipliers, which an export with cold=False does without,"
        without_multipliers = _solved(solve, plain, label)
    if arguments:
        first = _solved(solve, arguments, "the solve with the given arguments")
    else:
        first = solve()
        b = first.bounds
        rows = np.isfinite(b.lbg) | np.isfinite(b.ubg)
        if not first.success or (rows.size and not rows.any()):
            raise InputError(
                "an export stores a solve, and was given no numbers of one: pass x0, p, lbx, ubx, "
                "lbg, ubg by name, of an optimal control problem **ocp.numbers(x0).arguments"
            )
    # From the solution itself the comparison in C would take no step.
    x0 = np.clip(first.x * (1.0 + _PUSH) + _PUSH, first.bounds.lbx, first.bounds.ubx)
    cases = [_warm(solve, {**arguments, "x0": x0}, first, "the solve from the stored start")]
    for number, change in enumerate(loop, 1):
        label = f"solve {number} of the loop"
        last = cases[-1].answer
        # Start values of the first solve would hide the answer before.
        others = {key: value for key, value in arguments.items() if key not in _START}
        case = _warm(solve, {**others, "x0": last.x, **change}, last, label)
        if kinds_of(case.answer.bounds) != kinds_of(first.bounds):
            raise InputError(
                f"{label} has bounds of other kinds than the first solve: a variable stays fixed "
                "or free, a row an equation, an inequality or without bounds"
            )
        cases.append(case)
    zeros = np.zeros_like(first.lam_x), np.zeros_like(first.lam_g)
    from_start = Case(
        *zeros, first if without_multipliers is None else without_multipliers, of_solution=False
    )
    return from_start if cold else None, tuple(cases)


def _warm(solve: Callable[..., Any], arguments: dict[str, Any], solution: Any, label: str) -> Case:
    """A solve from multipliers: from the arguments, else of the solution."""
    arguments = {"lam_x0": solution.lam_x, "lam_g0": solution.lam_g, **arguments}
    lam_x0, lam_g0 = (np.array(arguments[key], dtype=float).ravel() for key in _START[1:])
    # Zero multipliers alone would read as a start without multipliers.
    if not (lam_x0.any() or lam_g0.any()):  # no bound is active
        arguments["warm_start"] = solution
    return Case(lam_x0, lam_g0, _solved(solve, arguments, label))


def _solved(solve: Callable[..., Any], arguments: Mapping[str, Any], label: str) -> Any:
    result = solve(**arguments)
    if not result.success:
        raise InputError(
            f"{label} failed, and an export stores solutions: {result.explain()} "
            "Give numbers that can be solved with: x0, p and bounds, of a controller the measured "
            "state and parameters"
        )
    return result
