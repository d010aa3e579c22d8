"""The equivalence theorem, its additivity corollary and its extensions, on the law itself.

Zhao, "Matrix-Valued Optimism is Matrix-Valued Augmentation", sections "Equivalence and Additivity
of Matrix-Valued correction" and "Additive property of augmentation and optimism". Every run is
:class:`~casadi_hybrid.iterations.Hybrid` in the solver's loop. The paper states constant matrices
and C = Cᵀ; neither is used by its proof once the memory is telescoped, so the claims here take
matrices of any symmetry, constant or functions of t, and steps that are numbers or matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Matrix, as_matrix
from casadi_hybrid.claims.compare import (
    Step,
    Trajectory,
    Trial,
    deviation,
    different,
    follow,
    judged,
    same,
)
from casadi_hybrid.claims.record import EQUAL, Claim
from casadi_hybrid.iterations import Hybrid, Rule
from casadi_hybrid.law import Correction
from casadi_hybrid.problem.derivatives import Derivatives
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.rules import (
    ConstantRule,
    DesignRule,
    GivenSplit,
    LocalModel,
    MatrixRule,
    ScheduleRule,
    StepRule,
)
from casadi_hybrid.rules.parts import Candidate, Steps

Channel = Matrix | Callable[[int], Matrix]
Pair = tuple[Channel, Channel]
Family = Callable[[float], Rule]


def rule_for(trial: Trial, split: Pair) -> Rule:
    """Return ALG(C, Ω) with the trial's steps; constant where nothing depends on t."""
    parts = (*split, trial.eta_x, trial.eta_d)
    if not any(callable(part) for part in parts):
        return ConstantRule(*parts)

    def schedule(at: Evaluation, t: int) -> Correction:
        m = at.h.size
        C, Omega = (as_matrix(_at(part, t), (m, m), "a channel") for part in split)
        return Correction(C, Omega, _at(trial.eta_x, t), _at(trial.eta_d, t))

    return ScheduleRule(schedule)


def theorem_equivalence(
    trial: Trial, C: Matrix, Omega: Matrix, *, tolerance: float = EQUAL
) -> Claim:
    """Theorem 1: ALG(C, Ω) from μ_0 is ALG(0, C + Ω) from ν_0 = μ_0 + C h(x_{−1}).

    The trial's ``dual`` is μ_0. Deviations: x, the primal trajectories; nu, ν_t^P against
    μ_t^H + C h(x_{t−1}^H) as the theorem states it; start, x of the run that is given ν_0 and
    aligns μ_0 itself (``dual_start="effective"``).
    """
    assert trial.x_prev is not None
    shape = (trial.problem.m, trial.problem.m)
    C, Omega = as_matrix(C, shape, "C"), as_matrix(Omega, shape, "Omega")
    nu0 = trial.from_dual(trial.dual + C @ trial.residual(trial.x_prev))
    rule, summed = rule_for(trial, (C, Omega)), rule_for(trial, (np.zeros_like(C), C + Omega))
    hybrid = follow(trial, Hybrid(rule, dual_start="multipliers"))
    pure = follow(nu0, Hybrid(summed, dual_start="multipliers"))
    aligned = follow(nu0, Hybrid(rule, dual_start="effective"))
    return judged(
        "Theorem 1: ALG(C,Ω) = ALG(0,C+Ω)",
        trial.case("C = Cᵀ" if np.array_equal(C, C.T) else "C ≠ Cᵀ"),
        (hybrid, pure, aligned),
        lambda: (
            ("x", deviation(pure.x, hybrid.x)),
            ("nu", deviation(pure.mu, hybrid.mu + hybrid.h_prev @ C.T)),
            ("start", deviation(pure.x, aligned.x)),
        ),
        tolerance,
    )


def additivity(trial: Trial, splits: Sequence[Pair], *, tolerance: float = EQUAL) -> Claim:
    """Corollary: splits (C_i, Ω_i) with one sum M have one x_t and one ν_t.

    The trial's ``dual`` is ν_0. Channels are matrices or functions of t.

    Raises:
        InputError: fewer than two splits, or splits whose sums differ.
    """
    require_one_sum(trial, splits)
    varying = any(callable(part) for pair in splits for part in (*pair, trial.eta_x, trial.eta_d))
    rest = f"{len(splits)} splits, {'M_t' if varying else 'M'}"
    return same("Additivity: C_i+Ω_i = M", trial.case(rest), _runs(trial, splits), tolerance)


def telescoped(trial: Trial, splits: Sequence[Pair], *, tolerance: float = EQUAL) -> Claim:
    """The memory C_opt,t h_t − C_opt,t−1 h_{t−1} of Algorithm 1 keeps additivity as C_opt varies.

    The same statement as :func:`additivity`, for splits in which it says something.

    Raises:
        InputError: as :func:`additivity`, and when no C_opt varies over the iterations.
    """
    require_one_sum(trial, splits)
    _require_varying_memory(trial, splits)
    case = trial.case(f"{len(splits)} splits, C_opt,t")
    return same("Telescoped memory", case, _runs(trial, splits), tolerance)


def untelescoped(trial: Trial, splits: Sequence[Pair]) -> Claim:
    """Counter-example: with the memory C_opt,t(h_t − h_{t−1}) the split changes the trajectory.

    Raises:
        InputError: as :func:`telescoped`.
    """
    require_one_sum(trial, splits)
    _require_varying_memory(trial, splits)
    case = trial.case(f"{len(splits)} splits, C_opt,t")
    return different("Untelescoped memory", case, _runs(trial, splits, memory="untelescoped"))


def constant_memory(trial: Trial, splits: Sequence[Pair], *, tolerance: float = EQUAL) -> Claim:
    """For constant C_opt both forms of the memory, over all splits, give one trajectory."""
    require_one_sum(trial, splits)
    runs = _runs(trial, splits) + _runs(trial, splits, memory="untelescoped")
    case = trial.case(f"{len(splits)} splits, M")
    return same("Both memories, constant C_opt", case, runs, tolerance)


def unmatched_start(trial: Trial, splits: Sequence[Pair]) -> Claim:
    """Counter-example: one μ_0 for all splits starts them at different ν_0.

    Raises:
        InputError: as :func:`additivity`.
    """
    require_one_sum(trial, splits)
    case = trial.case(f"{len(splits)} splits, one μ_0")
    return different("Unmatched start", case, _runs(trial, splits, dual_start="multipliers"))


def design_additivity(
    trial: Trial,
    thetas: Sequence[float],
    family: Family | None = None,
    *,
    tolerance: float = EQUAL,
) -> Claim:
    """A rule that reads H_t and B_t, with H_t at the memory-free π_t: every θ is one trajectory.

    This is the last sentence of Theorem "Target curvature and additive realization": θ = 1 is the
    pure realization C_aug = M_t. The trial's ``dual`` is ν_0; its steps are not used.

    Args:
        trial: what the runs have in common.
        thetas: the splits in [0, 1]; θ = 1 is C_aug = M_t, C_opt = 0.
        family: θ → rule; :func:`closed_form` by default, or :func:`look_ahead`.
        tolerance: bound of the deviations.
    """
    runs = _design_runs(trial, thetas, family, "memory_free")
    return same("Design rule, H at π_t", _design_case(trial, thetas, family), runs, tolerance)


def learned_hessian(
    trial: Trial, thetas: Sequence[float], family: Family | None = None, *, tolerance: float = 1e-8
) -> Claim:
    """:func:`design_additivity` with H_t learned from first derivatives along the run.

    What is learned depends on x_0 … x_t and is asked for at π_t, so no split can change it. The
    bound leaves room for differences of gradients a short step apart.
    """
    problem = trial.problem.with_derivatives(Derivatives("limited-memory"))
    trial = replace(trial, problem=problem)
    runs = _design_runs(trial, thetas, family, "memory_free")
    case = _design_case(trial, thetas, family)
    return same("Design rule, H learned", case, runs, tolerance)


def printed_hessian(trial: Trial, thetas: Sequence[float], family: Family | None = None) -> Claim:
    """Counter-example: with H at μ_t, as Algorithm 1 is printed, θ changes M_t and the trajectory.

    Arguments as for :func:`design_additivity`.
    """
    runs = _design_runs(trial, thetas, family, "printed")
    return different("Design rule, H at μ_t", _design_case(trial, thetas, family), runs)


def closed_form(theta: float) -> Rule:
    """The paper's closed-form rule at a given θ, with the steps it gives to θ = 1.

    The rule's own steps read the split through S1 and S3, so they would differ between θ. On a
    kernel of B the design lifts curvature below 1, which keeps the steps short where the runs
    cross a region of negative curvature.
    """
    return DesignRule(split=GivenSplit(theta), steps=_OneStep(), kernel_floor=1.0)


def look_ahead(theta: float) -> Rule:
    """Matrix steps P = A_M⁻¹ and D, and the look-ahead drive, with C_aug = θM, C_opt = (1 − θ)M."""
    return MatrixRule(optimistic_share=1.0 - theta)


@dataclass(frozen=True, slots=True)
class _OneStep(StepRule):
    """The steps of the realization C_aug = M, whatever the split of the candidate."""

    def choose(self, model: LocalModel, candidate: Candidate, a_x: float, a_d: float) -> Steps:
        M = candidate.C_aug + candidate.C_opt
        pure = Candidate(candidate.alpha, 1.0, M, np.zeros_like(M))
        return StepRule.choose(self, model, pure, a_x, a_d)


def _design_runs(
    trial: Trial, thetas: Sequence[float], family: Family | None, hessian_at: str
) -> list[Trajectory]:
    chosen = closed_form if family is None else family
    return [
        follow(trial, Hybrid(chosen(theta), dual_start="effective", hessian_at=hessian_at))
        for theta in thetas
    ]


def _design_case(trial: Trial, thetas: Sequence[float], family: Family | None) -> str:
    chosen = closed_form if family is None else family
    return trial.case(f"{len(thetas)} θ, {getattr(chosen, '__name__', 'given rule')}")


def _runs(trial: Trial, splits: Sequence[Pair], **options: Any) -> list[Trajectory]:
    chosen = {"dual_start": "effective", **options}
    return [follow(trial, Hybrid(rule_for(trial, split), **chosen)) for split in splits]


def _at(part: Channel | Step, t: int) -> Any:
    return part(t) if callable(part) else part


def require_one_sum(trial: Trial, splits: Sequence[Pair]) -> None:
    """Refuse fewer than two splits, and splits whose sums differ at some iteration."""
    if len(splits) < 2:
        raise InputError(f"additivity compares splits of one correction; {len(splits)} given")
    times = trial.iterations if any(callable(part) for pair in splits for part in pair) else 1
    shape = (trial.problem.m, trial.problem.m)
    for t in range(times):
        first, *others = (
            as_matrix(_at(C, t), shape, "a channel") + as_matrix(_at(Omega, t), shape, "a channel")
            for C, Omega in splits
        )
        size = 1e-9 * max(1.0, float(np.abs(first).max()))
        for i, M in enumerate(others, start=1):
            if np.abs(M - first).max() > size:
                raise InputError(
                    f"split {i} sums to another M than split 0 at iteration {t}; "
                    "give splits (C_i, Ω_i) of one correction"
                )


def _require_varying_memory(trial: Trial, splits: Sequence[Pair]) -> None:
    if trial.iterations < 2 or all(
        np.array_equal(_at(Omega, 0), _at(Omega, 1)) for _, Omega in splits
    ):
        raise InputError(
            "C_opt is the same at iterations 0 and 1 in every split; give a split whose "
            "optimistic channel is a function of t that varies"
        )
