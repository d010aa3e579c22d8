"""The start of one solve: as given, or from the result of a solve nearby."""

from __future__ import annotations

from typing import Any

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.nlp_result import NlpResult
from casadi_hybrid.point.working_set import WarmStart


def start_values(warm: NlpResult | None, n: int, m: int, *given: Any) -> tuple[Any, Any, Any]:
    """(x0, lam_x0, lam_g0): as given, else those of the warm start, else None."""
    known: tuple[Any, Any, Any] = (None, None, None)
    if warm is not None:
        if not isinstance(warm, NlpResult):
            raise InputError(
                "warm_start must be the result of a solve (solver.result), got "
                f"{type(warm).__name__}; numbers go to x0, lam_x0 and lam_g0"
            )
        if (warm.x.size, warm.g.size) != (n, m):
            raise InputError(
                f"warm_start has {warm.x.size} variables and {warm.g.size} constraints, the "
                f"problem has {n} and {m}; give x0, lam_x0 and lam_g0 of the right sizes"
            )
        known = (warm.x, warm.lam_x, warm.lam_g)
    x0, lam_x0, lam_g0 = (
        fallback if value is None else value for value, fallback in zip(given, known, strict=True)
    )
    return x0, lam_x0, lam_g0


def known_solution(warm: NlpResult | None, lam_x0: Vector, lam_g0: Vector) -> WarmStart | None:
    """What the solve tries first: a solution's working set, or what multipliers say; else None."""
    if warm is not None and warm.success:
        return WarmStart(lam_x0, lam_g0, warm.working_set)
    return WarmStart(lam_x0, lam_g0) if lam_x0.any() or lam_g0.any() else None
