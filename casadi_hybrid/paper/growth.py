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
from casadi_hybrid.rules import DesignRule, FullCancellation, LeastNormCancellation, LocalModel
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
        ratio: the largest ‖C_can‖/(‖H‖‖B†‖²) of all instances.
        beyond: share of instances whose ``closed`` exceeds M_max.
        least_beyond: share of instances whose ``least`` exceeds M_max.
    """

    condition: float
    cancellation: float
    bound: float
    closed: float
    least: float
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
    C, bound, closed, least = np.median(found, axis=0)
    limit = DesignRule().budget
    return Growth(
        condition,
        float(C),
        float(bound),
        float(closed),
        float(least),
        ratio=float(np.max(found[:, 0] / found[:, 1])),
        beyond=float(np.mean(found[:, 2] > limit)),
        least_beyond=float(np.mean(found[:, 3] > limit)),
    )


def _norms(condition: float, seed: int, shape: tuple[int, int]) -> tuple[float, ...]:
    instance = make_instance(condition, seed, n=shape[0], m=shape[1])
    at = Oracle(instance.problem.functions, np.zeros(0)).second(
        instance.x_star, instance.multipliers_star
    )
    model = LocalModel(at.hessian, at.B)
    rule = DesignRule()
    delta = rule.strength.delta
    C, deficit = FullCancellation().cancel(model, delta)
    R = rule.metric.matrix(model)
    M = C + rule.strength.alpha(model, R, deficit) * R
    bound = symmetric_norm(at.hessian) * np.linalg.norm(model.pinv, 2) ** 2
    least = LeastNormCancellation().cancel(model, delta).C
    return symmetric_norm(C), float(bound), symmetric_norm(M), symmetric_norm(least)


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
    head = [
        "cond",
        "‖C_can‖",
        "‖H‖‖B†‖²",
        "‖M‖ closed",
        "least ‖M‖",
        "‖M‖ > M_max",
        "least > M_max",
    ]
    found = [head + (["printed max‖M_t‖"] if compare else [])]
    for row in rows:
        numbers = [row.cancellation, row.bound, row.closed, row.least]
        shares = [f"{100 * share:.0f} %" for share in (row.beyond, row.least_beyond)]
        value = printed.NORM_M["closed-u"].get(int(row.condition))
        last = ["–" if value is None else f"{value:g}"] if compare else []
        found.append([f"{row.condition:g}", *(f"{v:.2f}" for v in numbers), *shares, *last])
    return found
