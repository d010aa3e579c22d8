"""Statistics of a solve under CasADi's keys, and IPOPT's words for its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from casadi_hybrid.solver.run import Run
from casadi_hybrid.utils.late import LateModule
from casadi_hybrid.utils.status import PointStatus, StopReason

if TYPE_CHECKING:
    from casadi_hybrid.solver import solve as results
    from casadi_hybrid.solver.record import record as records
    from casadi_hybrid.solver.record.answer import Ending
else:
    records = LateModule("casadi_hybrid.solver.record.record")
    results = LateModule("casadi_hybrid.solver.solve")

# IPOPT's words: scripts compare return_status with them.
_IPOPT = {
    StopReason.ITERATION_LIMIT: "Maximum_Iterations_Exceeded",
    StopReason.TIME_LIMIT: "Maximum_WallTime_Exceeded",
    StopReason.DIVERGED: "Diverging_Iterates",
    StopReason.UNBOUNDED: "Diverging_Iterates",
    StopReason.EVALUATION_ERROR: "Invalid_Number_Detected",
    StopReason.STOPPED_BY_USER: "User_Requested_Stop",
    StopReason.TARGET_REACHED: "User_Requested_Stop",
    StopReason.LOCALLY_INFEASIBLE: "Infeasible_Problem_Detected",
    StopReason.NO_MULTIPLIERS: "Restoration_Failed",
    StopReason.STALLED: "Search_Direction_Becomes_Too_Small",
}

# CasADi's words for IPOPT's.
_UNIFIED = {
    "Solve_Succeeded": "SOLVER_RET_SUCCESS",
    "Maximum_Iterations_Exceeded": "SOLVER_RET_LIMITED",
    "Maximum_WallTime_Exceeded": "SOLVER_RET_LIMITED",
    "Invalid_Number_Detected": "SOLVER_RET_NAN",
    "Infeasible_Problem_Detected": "SOLVER_RET_INFEASIBLE",
}

# Functions that IPOPT's plugin lists; it knows no nlp_fg, which others have.
LISTED = ("nlp_f", "nlp_g", "nlp_grad", "nlp_grad_f", "nlp_hess_l", "nlp_jac_g")


def unified_status(end: Ending) -> str:
    """CasADi's ``SOLVER_RET_*`` word; ``SOLVER_RET_UNKNOWN`` without a closer one."""
    # Stalled at the edge of the domain of f or g.
    at_edge = end.stop is StopReason.STALLED and end.error is not None
    return _UNIFIED.get(return_status(end), "SOLVER_RET_NAN" if at_edge else "SOLVER_RET_UNKNOWN")


def return_status(end: Ending) -> str:
    """IPOPT's word for the end of a solve; ``Internal_Error`` without one."""
    if end.success:
        return "Solve_Succeeded"
    if end.stop is StopReason.STALLED and end.point is PointStatus.INFEASIBLE_STATIONARY:
        return "Infeasible_Problem_Detected"
    return _IPOPT.get(end.stop, "Internal_Error")


def stats_of(run: Run) -> dict[str, Any]:
    """Return the statistics, a fresh dictionary under the keys of CasADi's ``stats()``."""
    end: Ending = run.__dict__.get("result") or results.end_of(run)
    # One fused call evaluates f, ∇f, g and J_g; its seconds stand under nlp_jac_g.
    calls = dict.fromkeys(LISTED, end.evaluations.get("first", 0))
    # With finite differences, trial points are evaluated without derivatives.
    for name in ("nlp_f", "nlp_g"):
        calls[name] += end.evaluations.get("values", 0)
    calls["nlp_hess_l"] = end.evaluations.get("second", 0)
    calls["nlp_grad"] = 1  # for lam_p
    wall = dict.fromkeys(LISTED, 0.0) | {"total": end.elapsed}
    wall["nlp_f"] = end.seconds.get("values", 0.0)
    wall["nlp_jac_g"] = end.seconds.get("first", 0.0)
    wall["nlp_hess_l"] = end.seconds.get("second", 0.0)
    calls["callback_fun"], wall["callback_fun"] = run.called_back
    return {
        "success": end.success,
        "return_status": return_status(end),
        "unified_return_status": unified_status(end),
        "stop_reason": end.stop.name,
        "point_status": end.point.name,
        "conditions": end.conditions.name,
        "detail": end.detail,
        "hessian": end.hessian,
        "engine": end.engine,
        # "interpreted", "staged" (for many stages at once) or "compiled". The note says why
        # requested compilation is missing.
        "functions": run.called[0],
        "functions_note": run.called[1],
        "kernel": end.kernel,
        "iter_count": end.iterations,
        # The start and one entry for each step.
        "iterations": records.listed(records.each_step(run.rows, run.said.steps)),
        "last": results.last_of(run),
        **{f"n_call_{name}": count for name, count in calls.items()},
        **{f"t_wall_{name}": seconds for name, seconds in wall.items()},
        # Processor time is wall time: nothing waits.
        **{f"t_proc_{name}": seconds for name, seconds in wall.items()},
    }
