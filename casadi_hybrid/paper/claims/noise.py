"""The two noise theorems, and counter-examples to their hypotheses.

Zhao, "Matrix-Valued Optimism is Matrix-Valued Augmentation", appendix "Additive Equivalence
Theorems and Proofs". Noise is the ``disturb`` of ``paper.iterations.Hybrid``, drawn once per
realization, for t = −1, 0, 1, …, so that two runs can share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from casadi_hybrid.paper.claims import trajectories
from casadi_hybrid.paper.claims.claim import Measured, Setup, claim, counterexample, deviation
from casadi_hybrid.paper.claims.trajectories import Pair, run_of, runs_of
from casadi_hybrid.paper.iterations.result import IterationHistory
from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import Matrix

NOISE = 1e-2  # standard deviation, in the units of ∇f and h
Disturbance = Callable[[int, Evaluation], Evaluation]


def shared_noise(setup: Setup, seed: int) -> Disturbance:
    """Return noisy oracles G_t = ∇f + ξ_t and Y_t = (1 + ζ_t) ∘ h + ζ_t; both channels read Y_t.

    The factor on h makes the noise depend on the point, as the theorem allows.
    """
    rng = np.random.default_rng(seed)
    # For t = −1, 0, …, T.
    rows = setup.iterations + 2
    xi = NOISE * rng.standard_normal((rows, setup.problem.n))
    zeta = NOISE * rng.standard_normal((rows, setup.problem.m))

    def see(t: int, at: Evaluation) -> Evaluation:
        seen = at.h + zeta[t + 1] * (1 + at.h)
        return replace(at, gradient=at.gradient + xi[t + 1], h=seen, measured=seen)

    return see


def memory_noise(
    setup: Setup, noisy: Sequence[int], seed: int, *, at_start: bool = True
) -> Disturbance:
    """Return ĥ_t = h(x_t) + P_n ε_t for the dual channel; the augmented channel reads h(x_t).

    P_n projects on the residual coordinates ``noisy``; ε_{−1} = 0 unless ``at_start``.
    """
    epsilon = np.zeros((setup.iterations + 2, setup.problem.m))
    drawn = np.random.default_rng(seed).standard_normal((len(epsilon), len(noisy)))
    epsilon[:, list(noisy)] = NOISE * drawn
    epsilon[0] *= at_start  # row 0 is t = −1

    def see(t: int, at: Evaluation) -> Evaluation:
        return replace(at, measured=at.h + epsilon[t + 1])

    return see


@claim("Shared oracle noise")
def additivity_under_shared_noise(
    setup: Setup, splits: Sequence[Pair], *, seed: int = 0
) -> Measured:
    """Theorem "Additivity under shared oracle noise"; ``dual`` is ν_0 = μ_0 + C Y_{−1}(x_{−1})."""
    runs = runs_of(setup, splits, disturb=shared_noise(setup, seed))
    return setup.case(f"{len(splits)} splits"), trajectories.same(runs)


@counterexample("Unshared oracle noise")
def unshared_noise(setup: Setup, splits: Sequence[Pair], *, seed: int = 0) -> Measured:
    """Counter-example: a different realization for each split."""
    trajectories.require_one_sum(setup, splits)
    runs = [
        run_of(setup, split, disturb=shared_noise(setup, seed + i))
        for i, split in enumerate(splits)
    ]
    return setup.case(f"{len(splits)} splits"), trajectories.different(runs)


@claim("Memory noise, C₂P_n = 0")
def equivalence_under_memory_noise(
    setup: Setup, C1: Matrix, C2: Matrix, noisy: Sequence[int], *, seed: int = 0
) -> Measured:
    """Theorem "Hybrid–Aug-Lag equivalence under partial residual-memory noise".

    ALG(C₁, C₂) from μ_0 = λ_0 + C₂h(x_{−1}) is ALG(C₁ + C₂, 0) from λ_0, the setup's ``dual``,
    if C₂P_n = 0; else an ``InputError``. Deviations: x; dual, μ_t^H against λ_t^A + C₂h(x_{t−1}^A)
    with the exact h. P_n projects on the coordinates ``noisy``.
    """
    C1, C2 = setup.square(C1, "C1"), setup.square(C2, "C2")
    if C2[:, list(noisy)].any():
        raise InputError(
            "C2 has a nonzero column at a noisy coordinate, so C₂P_n ≠ 0; the theorem needs it zero"
        )
    full, hybrid = _memory_pair(setup, C1, C2, memory_noise(setup, noisy, seed))
    return setup.case(f"{len(noisy)} noisy of {setup.problem.m}"), {
        "x": deviation(full.x, hybrid.x),
        "dual": deviation(full.mu + setup.residuals_before(full) @ C2.T, hybrid.mu),
    }


@counterexample("Memory noise, C₂P_n ≠ 0")
def visible_memory_noise(
    setup: Setup, C1: Matrix, C2: Matrix, noisy: Sequence[int], *, seed: int = 0
) -> Measured:
    """Counter-example: with C₂P_n ≠ 0 the optimistic memory feeds ε back. Here ε_{−1} = 0."""
    noise = memory_noise(setup, noisy, seed, at_start=False)
    full, hybrid = _memory_pair(setup, setup.square(C1, "C1"), setup.square(C2, "C2"), noise)
    case = setup.case(f"{len(noisy)} noisy of {setup.problem.m}")
    return case, {"x": deviation(full.x, hybrid.x)}


def _memory_pair(
    setup: Setup, C1: Matrix, C2: Matrix, noise: Disturbance
) -> tuple[IterationHistory, IterationHistory]:
    """Run ALG(C₁ + C₂, 0) from λ_0, and ALG(C₁, C₂) from μ_0."""
    # λ_0 is μ_0 of the run without a memory; the other starts at μ_0 = λ_0 + C₂h(x_{−1}).
    options: dict[str, Any] = {"dual_start": "multipliers", "disturb": noise}
    full = run_of(setup, (C1 + C2, np.zeros_like(C2)), **options)
    return full, run_of(setup.start_moved(C2), (C1, C2), **options)
