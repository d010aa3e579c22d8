"""The statistics of a solve under CasADi's keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.result import Result

_UNIFIED = {
    StopReason.ITERATION_LIMIT: "SOLVER_RET_LIMITED",
    StopReason.TIME_LIMIT: "SOLVER_RET_LIMITED",
    StopReason.EVALUATION_ERROR: "SOLVER_RET_NAN",
    StopReason.LOCALLY_INFEASIBLE: "SOLVER_RET_INFEASIBLE",
}


def unified_status(result: Result) -> str:
    """CasADi's ``SOLVER_RET_*`` word. What has no word there is ``SOLVER_RET_UNKNOWN``."""
    if result.success:
        return "SOLVER_RET_SUCCESS"
    stalled = result.stop is StopReason.STALLED
    if stalled and result.point is PointStatus.INFEASIBLE_STATIONARY:
        return "SOLVER_RET_INFEASIBLE"
    return _UNIFIED.get(result.stop, "SOLVER_RET_UNKNOWN")


def casadi_stats(
    result: Result, iterations: Mapping[str, Sequence[float]], process_time: float
) -> dict[str, Any]:
    """Return a fresh dictionary under the keys of CasADi's ``stats()``.

    f, ∇f, g and J_g come from one fused call, so their four counts are equal and none has a time
    of its own.
    """
    first = int(result.evaluations.get("first", 0))
    return {
        "success": result.success,
        "return_status": result.stop.name,
        "unified_return_status": unified_status(result),
        "point_status": result.point.name,
        "detail": result.detail,
        "hessian": result.hessian,
        "iter_count": result.iterations,
        "iterations": {name: list(numbers) for name, numbers in iterations.items()},
        "n_call_nlp_f": first,
        "n_call_nlp_grad_f": first,
        "n_call_nlp_g": first,
        "n_call_nlp_jac_g": first,
        "n_call_nlp_hess_l": int(result.evaluations.get("second", 0)),
        "n_call_nlp_grad": 1,  # for lam_p
        "t_wall_total": result.elapsed,
        "t_proc_total": process_time,
    }
