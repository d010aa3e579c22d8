"""How the correction grows with the condition number, at the solution itself.

The paper bounds ‖C_can‖ by ‖H‖‖B†‖² and explains by it why exact cancellation fails. Here both are
measured at (x*, μ*), with ‖M‖ of the closed form and the least ‖M‖ of any rule that reaches δ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from casadi_hybrid.paper import printed
from casadi_hybrid.paper.generator import make_instance
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.rules import (
    Cancellation,
    DesignRule,
    FullCancellation,
    LeastNormCancellation,
    LeastShare,
    LocalModel,
)
from casadi_hybrid.rules.spectra import symmetric_norm


@dataclass(frozen=True, slots=True)
class Growth:
    """Medians over instances at one condition level, all in the 2-norm at (x*, μ*).

    Attributes:
        condition: κ.
        cancellation: ‖C_can‖.
        bound: ‖H‖‖B†‖².
        closed: ‖C_can + αR‖, the closed form's M.
        least: the least ‖M‖ with H + BᵀMB ⪰ δI, whatever the rule.
        share: the γ of partial cancellation with the least ‖γC_can + α(γ)R‖.
        partial: that norm.
        below_one: share of instances in which that γ is below 1.
        ratio: the largest ‖C_can‖/(‖H‖‖B†‖²) of all instances.
        beyond: share of instances whose ``closed`` exceeds M_max.
        least_beyond: share of instances whose ``least`` exceeds M_max.
    """

    condition: float
    cancellation: float
    bound: float
    closed: float
    least: float
    share: float
    partial: float
    below_one: float
    ratio: float
    beyond: float
    least_beyond: float


def growth(
    conditions: Iterable[float], seeds: Iterable[int], shape: tuple[int, int]
) -> tuple[Growth, ...]:
    """Measure every level."""
    chosen = list(seeds)
    return tuple(_level(condition, chosen, shape) for condition in conditions)


def _level(condition: float, seeds: Sequence[int], shape: tuple[int, int]) -> Growth:
    found = np.array([_norms(condition, seed, shape) for seed in seeds])
    C, bound, closed, least, share, partial = (float(v) for v in np.median(found, axis=0))
    limit = DesignRule().M_max
    return Growth(
        condition,
        C,
        bound,
        closed,
        least,
        share,
        partial,
        below_one=float(np.mean(found[:, 4] < 1.0)),
        ratio=float(np.max(found[:, 0] / found[:, 1])),
        beyond=float(np.mean(found[:, 2] > limit)),
        least_beyond=float(np.mean(found[:, 3] > limit)),
    )


def _norms(condition: float, seed: int, shape: tuple[int, int]) -> tuple[float, ...]:
    instance = make_instance(condition, seed, n=shape[0], m=shape[1])
    at = Oracle(instance.problem.functions, np.zeros(0)).second(
        instance.x_star, instance.multipliers_star
    )
    assert at.hessian is not None
    H = at.hessian
    model = LocalModel(H, at.B)
    rule = DesignRule()
    delta = rule.strength.delta
    R = rule.metric.matrix(model)

    def total(cancellation: Cancellation) -> float:
        C, deficit = cancellation.cancel(model, delta)
        return symmetric_norm(C + rule.strength.alpha(model, R, deficit) * R)

    full, partial = FullCancellation(), LeastShare()
    return (
        symmetric_norm(full.cancel(model, delta).C),
        symmetric_norm(H) * float(np.linalg.norm(model.pinv, 2)) ** 2,
        total(full),
        total(LeastNormCancellation()),
        partial.share(model, delta),
        total(partial),
    )


def growth_exponent(rows: Sequence[Growth], name: str) -> float:
    """The power of κ that joins the medians of the least and the largest level."""
    first, last = rows[0], rows[-1]
    if len(rows) < 2:
        raise ArithmeticError("a power of the condition number needs two levels or more")
    return float(
        np.log(getattr(last, name) / getattr(first, name))
        / np.log(last.condition / first.condition)
    )


def growth_rows(rows: Sequence[Growth], *, compare: bool) -> list[list[str]]:
    """The rows of its table, heading first."""
    head = ["cond", "‖C_can‖", "‖H‖‖B†‖²", "‖M‖ closed", "‖M‖ partial", "least ‖M‖", "γ < 1"]
    head += ["‖M‖ > M_max", "least > M_max"]
    found = [head + (["printed max‖M_t‖"] if compare else [])]
    for row in rows:
        numbers = [row.cancellation, row.bound, row.closed, row.partial, row.least]
        parts = (row.below_one, row.beyond, row.least_beyond)
        shares = [f"{100 * share:.0f} %" for share in parts]
        value = printed.NORM_M["closed-u"].get(int(row.condition))
        last = ["–" if value is None else f"{value:g}"] if compare else []
        found.append([f"{row.condition:g}", *(f"{v:.2f}" for v in numbers), *shares, *last])
    return found
