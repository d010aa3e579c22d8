"""Growth of the correction with the condition number, at the solution.

At (x*, μ*): the paper's bound ‖C_can‖ ≤ ‖H‖‖B†‖², ‖M‖ of the closed form, and the least ‖M‖ of any
rule that reaches δ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.paper import rules
from casadi_hybrid.paper.experiment import printed
from casadi_hybrid.paper.experiment.generator import make_instance
from casadi_hybrid.paper.rules.spectra import symmetric_norm
from casadi_hybrid.problem.oracle import Oracle

# Medians over instances of 2-norms at (x*, μ*), and shares of instances, by condition level.
Norms = dict[float, dict[str, float]]
_MEDIANS = ("‖C_can‖", "‖H‖‖B†‖²", "‖M‖ closed", "‖M‖ partial", "least ‖M‖")
RATIO, ZEROS = "largest ‖C_can‖/(‖H‖‖B†‖²)", "zero eigenvalues of S_M"


def norms_at_solutions(
    conditions: Iterable[float], seeds: Sequence[int], shape: tuple[int, int]
) -> Norms:
    """Measure every level: see :data:`Norms`, and the largest ratio and the least count of all."""
    limit, norms = rules.DesignRule().M_max, {}
    for condition in conditions:
        rows = np.array([_measure(condition, seed, shape) for seed in seeds])
        C, bound, closed, _, least, zeros = rows.T
        norms[condition] = {
            **dict(zip(_MEDIANS, np.median(rows, axis=0).tolist(), strict=False)),
            "‖M‖ > M_max": float(np.mean(closed > limit)),
            "least > M_max": float(np.mean(least > limit)),
            RATIO: float(np.max(C / bound)),
            ZEROS: float(zeros.min()),
        }
    return norms


def _measure(condition: float, seed: int, shape: tuple[int, int]) -> tuple[float, ...]:
    instance = make_instance(condition, seed, n=shape[0], m=shape[1])
    star = instance.x_star, instance.multipliers_star
    at = Oracle(instance.problem.functions, np.zeros(0)).second(*star)
    H, B = at.hessian, at.B
    assert H is not None
    model, rule = rules.LocalModel(H, B), rules.DesignRule()
    delta, R = rule.strength.delta, rule.metric.matrix(model)

    def total(cancellation: rules.Cancellation) -> NDArray[np.float64]:
        C, deficit = cancellation.cancel(model, delta)
        return C + rule.strength.alpha(model, R, deficit) * R

    full = rules.FullCancellation()
    cancellations = full, rules.LeastShare(), rules.LeastNormCancellation()
    # S_M(1) of appendix E, whose Hurwitz property the appendix assumes.
    S_M = np.block([[-H - B.T @ total(full) @ B, -B.T], [B, np.zeros((len(B), len(B)))]])
    return (
        symmetric_norm(full.cancel(model, delta).C),
        symmetric_norm(H) * float(np.linalg.norm(model.pinv, 2)) ** 2,
        *(symmetric_norm(total(cancellation)) for cancellation in cancellations),
        # m > n: Bᵀ has a kernel, and with it S_M zero eigenvalues.
        float(np.sum(np.abs(np.linalg.eigvals(S_M)) <= 1e-9)),
    )


def power(conditions: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope of log(value) against log κ by least squares; NaN for one level."""
    if len(conditions) < 2:
        return np.nan
    # v = a κᵖ is a line of slope p in logarithms.
    return float(np.polyfit(np.log(conditions), np.log(values), 1)[0])


def norm_rows(norms: Norms, *, compare: bool) -> list[list[str]]:
    """Return the rows of the table, heading first; the last has the power of κ of each column."""
    columns = [["cond", *(f"{c:g}" for c in norms), "power of cond"]]
    for name in _MEDIANS:
        values = [row[name] for row in norms.values()]
        columns.append([name, *(f"{v:.2f}" for v in (*values, power(list(norms), values)))])
    for name in ("‖M‖ > M_max", "least > M_max"):
        columns.append([name, *(f"{100 * row[name]:.0f} %" for row in norms.values()), ""])
    if compare:
        printed_norms = {c: printed.NORM_M["closed-u"].get(int(c)) for c in norms}
        known = {c: value for c, value in printed_norms.items() if value is not None}
        texts = ["–" if value is None else f"{value:g}" for value in printed_norms.values()]
        slope = power(list(known), list(known.values()))
        columns.append(["printed max‖M_t‖", *texts, f"{slope:.2f}"])
    return [list(row) for row in zip(*columns, strict=True)]
