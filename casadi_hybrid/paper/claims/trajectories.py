"""The equivalence theorem, its additivity corollary and its extensions, on the law itself.

Zhao, "Matrix-Valued Optimism is Matrix-Valued Augmentation", sections "Equivalence and Additivity
of Matrix-Valued correction", "Additive property of augmentation and optimism" and "Pure
matrix-valued augmented update". The paper assumes constant matrices and C = Cᵀ. With telescoped
memory its proof needs neither: the claims take matrices of any symmetry, constant or functions of
t, and steps that are numbers or matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.paper import rules
from casadi_hybrid.paper.claims.claim import (
    Measured,
    Setup,
    claim,
    counterexample,
    deviation,
    follow,
)
from casadi_hybrid.paper.iterations import Hybrid, Rule
from casadi_hybrid.paper.iterations.result import IterationHistory
from casadi_hybrid.paper.law import Correction, apply
from casadi_hybrid.paper.rules.parts import Candidate, Steps
from casadi_hybrid.problem.graph.derivatives import Derivatives
from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import Matrix

Channel = Matrix | Callable[[int], Matrix]
Pair = tuple[Channel, Channel]
Family = Callable[[float], Rule]


def rule_for(setup: Setup, split: Pair) -> Rule:
    """Return ALG(C, Ω) with the setup's steps."""
    parts = (*split, setup.eta_x, setup.eta_d)
    if not any(callable(part) for part in parts):
        return rules.ConstantRule(*parts)

    def schedule(at: Evaluation, t: int) -> Correction:
        C, Omega = (setup.square(_at(part, t), "a channel") for part in split)
        return Correction(C, Omega, _at(setup.eta_x, t), _at(setup.eta_d, t))

    return rules.ScheduleRule(schedule)


def run_of(setup: Setup, split: Pair, **options: Any) -> IterationHistory:
    """Run ALG(C, Ω), by default from ν_0, with options of ``Hybrid``."""
    return follow(setup, Hybrid(rule_for(setup, split), **{"dual_start": "effective", **options}))


def runs_of(setup: Setup, splits: Sequence[Pair], **options: Any) -> list[IterationHistory]:
    """Run splits of one correction."""
    require_one_sum(setup, splits)
    return [run_of(setup, split, **options) for split in splits]


def same(runs: Sequence[IterationHistory]) -> dict[str, float]:
    """Return the largest deviation of the other runs from the first, in x_t and in ν_t."""
    return {
        "x": max(_from_the_first(runs, "x")),
        "nu": max(_from_the_first(runs, "effective_multipliers")),
    }


def different(runs: Sequence[IterationHistory]) -> dict[str, float]:
    """Return the least deviation of the other runs from the first, in x_t."""
    return {"x": min(_from_the_first(runs, "x"))}


def _from_the_first(runs: Sequence[IterationHistory], name: str) -> list[float]:
    if len(runs) < 2:
        raise InputError("a comparison needs at least two runs; give two splits or more")
    first, *others = (getattr(run, name) for run in runs)
    return [deviation(first, other) for other in others]


@claim("Theorem 1: ALG(C,Ω) = ALG(0,C+Ω)")
def theorem_equivalence(setup: Setup, C: Matrix, Omega: Matrix) -> Measured:
    """Theorem 1: ALG(C, Ω) from μ_0, the ``dual``, is ALG(0, C + Ω) from ν_0 = μ_0 + C h(x_{−1}).

    Deviations: x; nu, ν_t^P against μ_t^H + C h(x_{t−1}^H) as in the theorem; start, x of the run
    from ν_0 with ``dual_start="effective"``.
    """
    C, Omega = setup.square(C, "C"), setup.square(Omega, "Omega")
    # ν_0 = μ_0 + C h(x_{−1}), the theorem's matching start.
    nu0 = setup.start_moved(C)
    hybrid = run_of(setup, (C, Omega), dual_start="multipliers")
    pure = run_of(nu0, (np.zeros_like(C), C + Omega), dual_start="multipliers")
    aligned = run_of(nu0, (C, Omega))
    return setup.case(_symmetry(C)), {
        "x": deviation(pure.x, hybrid.x),
        "nu": deviation(pure.mu, hybrid.mu + setup.residuals_before(hybrid) @ C.T),
        "start": deviation(pure.x, aligned.x),
    }


@claim("Additivity: C_i+Ω_i = M")
def additivity(setup: Setup, splits: Sequence[Pair]) -> Measured:
    """Corollary: splits (C_i, Ω_i) with one sum M, constant or not, have one x_t and one ν_t.

    ``dual`` is ν_0. Here and below, one split, or sums that differ, are an :class:`InputError`.
    """
    varying = any(callable(part) for pair in splits for part in (*pair, setup.eta_x, setup.eta_d))
    case = setup.case(f"{len(splits)} splits, {'M_t' if varying else 'M'}")
    return case, same(runs_of(setup, splits))


@claim("Telescoped memory")
def telescoped(setup: Setup, splits: Sequence[Pair]) -> Measured:
    """The memory C_opt,t h_t − C_opt,t−1 h_{t−1} of Algorithm 1 keeps additivity as C_opt varies.

    :func:`additivity`, for splits in which some C_opt varies over the iterations.
    """
    return _varying_memory(setup, splits), same(runs_of(setup, splits))


@counterexample("Untelescoped memory")
def untelescoped(setup: Setup, splits: Sequence[Pair]) -> Measured:
    """Counter-example: with the memory C_opt,t(h_t − h_{t−1}) the split changes the trajectory."""
    runs = runs_of(setup, splits, memory="untelescoped")
    return _varying_memory(setup, splits), different(runs)


@claim("Both memories, constant C_opt")
def constant_memory(setup: Setup, splits: Sequence[Pair]) -> Measured:
    """For constant C_opt both forms of the memory, over all splits, give one trajectory."""
    runs = runs_of(setup, splits) + runs_of(setup, splits, memory="untelescoped")
    return setup.case(f"{len(splits)} splits, M"), same(runs)


@counterexample("Unmatched start")
def unmatched_start(setup: Setup, splits: Sequence[Pair]) -> Measured:
    """Counter-example: one μ_0 for all splits starts them at different ν_0."""
    runs = runs_of(setup, splits, dual_start="multipliers")
    return setup.case(f"{len(splits)} splits, one μ_0"), different(runs)


@claim("AUG is descent-ascent on L_C")
def descent_ascent(setup: Setup, C: Matrix) -> Measured:
    """AUG with sym(C) is μ⁺ = μ + η_d ∇_μ L_C, then x⁺ = x − η_x ∇_x L_C(x, μ⁺).

    The law runs ALG(sym(C), 0), the recursion has C itself: hᵀC h depends on sym(C) = ½(C + Cᵀ)
    alone. The setup's ``dual`` is μ_0. Deviations: x and μ.

    Raises:
        InputError: for a wrong shape, or steps that are functions of t.
    """
    C = setup.square(C, "C")
    case = setup.case(_symmetry(C, ", sym(C)"))
    return case, _beside_gradient(setup, C, run_with=0.5 * (C + C.T))


@counterexample("AUG with C ≠ Cᵀ on L_C")
def unsymmetrized(setup: Setup, C: Matrix) -> Measured:
    """Counter-example: ALG(C, 0) with C ≠ Cᵀ does not follow the gradient of L_C."""
    C = setup.square(C, "C")
    return setup.case("C ≠ Cᵀ"), _beside_gradient(setup, C, run_with=C)


def gradient_run(setup: Setup, C: Matrix) -> tuple[Matrix, Matrix]:
    """Return x_t and μ_t, t = 0 … T, of descent and ascent on L_C by its gradient.

    CasADi differentiates L_C(x, μ) = f(x) + μᵀh(x) + ½h(x)ᵀC h(x) as a whole, so that the
    recursion shares no formula with the law.
    """
    x, mu = ca.SX.sym("x", setup.problem.n), ca.SX.sym("mu", setup.problem.m)
    f, h = setup.problem.graph(x, ca.SX.sym("p", 0))
    L = f + ca.dot(mu, h) + 0.5 * ca.bilin(ca.DM(C), h, h)
    slopes = ca.Function("slopes", [x, mu], [ca.gradient(L, x), ca.gradient(L, mu)])
    points, duals = [setup.x0], [setup.dual]
    for t in range(setup.iterations):
        # μ first, and x by the new μ: the alternating form of the law.
        rise = slopes(points[-1], duals[-1])[1].full().ravel()
        duals.append(duals[-1] + apply(_at(setup.eta_d, t), rise))
        slope = slopes(points[-1], duals[-1])[0].full().ravel()
        points.append(points[-1] - apply(_at(setup.eta_x, t), slope))
    return np.array(points), np.array(duals)


def closed_form(theta: float) -> Rule:
    """Return the paper's closed-form rule at a given θ, with its steps for θ = 1.

    The rule's own steps depend on the split through S1 and S3. Curvature below 1 on a kernel of B
    is lifted, which keeps the steps short in regions of negative curvature.
    """
    return rules.DesignRule(split=rules.GivenSplit(theta), steps=_OneStep(), kernel_floor=1.0)


def look_ahead(theta: float) -> Rule:
    """Return matrix steps and the look-ahead drive with C_aug = θM, C_opt = (1 − θ)M."""
    return rules.MatrixRule(optimistic_share=1.0 - theta)


@dataclass(frozen=True, slots=True)
class _OneStep(rules.StepRule):
    """The steps of the realization C_aug = M, for any split of the candidate."""

    def choose(
        self, model: rules.LocalModel, candidate: Candidate, a_x: float, a_d: float
    ) -> Steps:
        # S1 of C_aug = M, whatever the split: steps that no split changes.
        M = candidate.C_aug + candidate.C_opt
        pure = Candidate(candidate.alpha, 1.0, M, np.zeros_like(M))
        return rules.StepRule.choose(self, model, pure, a_x, a_d)


@claim("Design rule, H at π_t")
def design_additivity(
    setup: Setup, thetas: Sequence[float], family: Family = closed_form
) -> Measured:
    """A rule that reads H_t and B_t, with H_t at the memory-free π_t: every θ is one trajectory.

    The last sentence of Theorem "Target curvature and additive realization". The setup's ``dual``
    is ν_0; its steps are not used. ``family``, :func:`closed_form` or :func:`look_ahead`, maps θ in
    [0, 1] to a rule.
    """
    case, runs = _design_runs(setup, thetas, family)
    return case, same(runs)


@claim("Design rule, H learned", 1e-8)
def learned_hessian(setup: Setup, thetas: Sequence[float]) -> Measured:
    """:func:`design_additivity` with H_t learned from first derivatives at x_0 … x_t and π_t.

    The bound leaves room for differences of gradients a short step apart.
    """
    problem = setup.problem.with_derivatives(Derivatives("limited-memory"))
    case, runs = _design_runs(replace(setup, problem=problem), thetas, closed_form)
    return case, same(runs)


@counterexample("Design rule, H at μ_t")
def printed_hessian(setup: Setup, thetas: Sequence[float]) -> Measured:
    """Counter-example: with H at μ_t, as Algorithm 1 is printed, θ changes the trajectory."""
    case, runs = _design_runs(setup, thetas, closed_form, "printed")
    return case, different(runs)


def _design_runs(
    setup: Setup, thetas: Sequence[float], family: Family, hessian_at: str = "memory_free"
) -> tuple[str, list[IterationHistory]]:
    runs = [
        follow(setup, Hybrid(family(theta), dual_start="effective", hessian_at=hessian_at))
        for theta in thetas
    ]
    return setup.case(f"{len(thetas)} θ, {getattr(family, '__name__', 'given rule')}"), runs


def _beside_gradient(setup: Setup, C: Matrix, run_with: Matrix) -> dict[str, float]:
    if callable(setup.eta_x) or callable(setup.eta_d):
        raise InputError("a step is a function of t; give η_x and η_d as numbers or matrices")
    run = run_of(setup, (run_with, np.zeros_like(C)), dual_start="multipliers")
    x, mu = gradient_run(setup, C)
    return {"x": deviation(x, run.x), "mu": deviation(mu, run.mu)}


def _symmetry(C: Matrix, otherwise: str = "") -> str:
    return "C = Cᵀ" if np.array_equal(C, C.T) else f"C ≠ Cᵀ{otherwise}"


def _at(part: Any, t: int) -> Any:
    return part(t) if callable(part) else part


def require_one_sum(setup: Setup, splits: Sequence[Pair]) -> None:
    """Reject fewer than two splits, and splits whose sums differ at some iteration."""
    if len(splits) < 2:
        raise InputError(f"additivity compares splits of one correction; {len(splits)} given")
    times = setup.iterations if any(callable(part) for pair in splits for part in pair) else 1
    for t in range(times):
        sums = [sum(setup.square(_at(part, t), "a channel") for part in pair) for pair in splits]
        # Sums of floats: equal up to rounding.
        size = 1e-9 * max(1.0, float(np.abs(sums[0]).max()))
        for i, M in enumerate(sums):
            if np.abs(M - sums[0]).max() > size:
                raise InputError(
                    f"split {i} sums to another M than split 0 at iteration {t}; "
                    "give splits (C_i, Ω_i) of one correction"
                )


def _varying_memory(setup: Setup, splits: Sequence[Pair]) -> str:
    """Return the case; reject splits in which no C_opt varies."""
    if setup.iterations < 2 or all(
        np.array_equal(_at(Omega, 0), _at(Omega, 1)) for _, Omega in splits
    ):
        raise InputError(
            "C_opt is the same at iterations 0 and 1 in every split; give a split whose "
            "optimistic channel is a function of t that varies"
        )
    return setup.case(f"{len(splits)} splits, C_opt,t")
