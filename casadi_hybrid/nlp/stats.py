"""The statistics of a solve under CasADi's keys, and what there is to say about a failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from casadi_hybrid.nlp.residuals import violations
from casadi_hybrid.nlp.result import NlpResult
from casadi_hybrid.nlp.standard import Bounds
from casadi_hybrid.status import PointStatus, StopReason

_UNIFIED = {
    StopReason.ITERATION_LIMIT: "SOLVER_RET_LIMITED",
    StopReason.TIME_LIMIT: "SOLVER_RET_LIMITED",
    StopReason.EVALUATION_ERROR: "SOLVER_RET_NAN",
    StopReason.LOCALLY_INFEASIBLE: "SOLVER_RET_INFEASIBLE",
}


def unified_status(result: NlpResult) -> str:
    """CasADi's ``SOLVER_RET_*`` word. What has no word there is ``SOLVER_RET_UNKNOWN``."""
    if result.success:
        return "SOLVER_RET_SUCCESS"
    stalled = result.stop is StopReason.STALLED
    if stalled and result.point is PointStatus.INFEASIBLE_STATIONARY:
        return "SOLVER_RET_INFEASIBLE"
    return _UNIFIED.get(result.stop, "SOLVER_RET_UNKNOWN")


def casadi_stats(
    result: NlpResult, iterations: Mapping[str, Sequence[float]], process_time: float
) -> dict[str, Any]:
    """Return a fresh dictionary under the keys of CasADi's ``stats()``.

    f, ∇f, g and J_g come from one fused call, so their four counts are equal.
    """
    first = int(result.evaluations.get("first", 0))
    return {
        "success": result.success,
        "return_status": result.stop.name,
        "unified_return_status": unified_status(result),
        "point_status": result.point.name,
        "detail": result.detail,
        "iter_count": result.iterations,
        "iterations": {name: list(numbers) for name, numbers in iterations.items()},
        "n_call_nlp_f": first,
        "n_call_nlp_grad_f": first,
        "n_call_nlp_g": first,
        "n_call_nlp_jac_g": first,
        "n_call_nlp_hess_l": int(result.evaluations.get("second", 0)),
        "t_wall_total": result.elapsed,
        "t_proc_total": process_time,
    }


def worst_violations(
    result: NlpResult,
    bounds: Bounds,
    constraint_names: Sequence[str],
    variable_names: Sequence[str],
    *,
    at_most: int = 5,
) -> tuple[str, ...]:
    """Name the bounds violated by more than the tolerance, the worst first.

    Each entry reads ``name = value, below its lower bound 1 by 0.5``.
    """
    found: list[tuple[float, str]] = []
    for names, values, lower, upper in (
        (constraint_names, result.g, bounds.lbg, bounds.ubg),
        (variable_names, result.x, bounds.lbx, bounds.ubx),
    ):
        excess = violations(values, lower, upper)
        for i in np.flatnonzero(np.abs(excess) > result.tolerances.feasibility):
            size = float(abs(excess[i]))
            side, bound = (
                ("below its lower", lower[i]) if excess[i] < 0 else ("above its upper", upper[i])
            )
            if lower[i] == upper[i]:
                side = side.split()[0] + " its"
            value = f"{names[int(i)]} = {values[i]:.6g}"
            found.append((size, f"{value}, {side} bound {bound:.6g} by {size:.3g}"))
    found.sort(key=lambda entry: -entry[0])
    return tuple(text for _, text in found[:at_most])


def explain(
    result: NlpResult,
    bounds: Bounds,
    constraint_names: Sequence[str],
    variable_names: Sequence[str],
) -> str:
    """Say in sentences how a solve ended; where x violates a bound, name the worst ones."""
    r = result.residuals
    lines = [
        f"Stopped after {result.iterations} iterations: {result.stop.value}.",
        f"The point: {result.point.value}.",
        f"Residuals: violation {r.feasibility:.2e}, stationarity {r.stationarity:.2e}, "
        f"complementarity {r.complementarity:.2e} (each at most {result.tolerances.feasibility:g} "
        "at a solution).",
    ]
    if result.detail:
        lines.append(f"Detail: {result.detail}.")
    worst = worst_violations(result, bounds, constraint_names, variable_names)
    if worst:
        lines.append("Worst violations:")
        lines += [f"  {text}" for text in worst]
    return "\n".join(lines)
