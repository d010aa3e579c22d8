"""The two noise theorems, and what fails without their hypotheses.

Zhao, "Matrix-Valued Optimism is Matrix-Valued Augmentation", appendix "Additive Equivalence
Theorems and Proofs". Noise enters through the ``disturb`` hook of
:class:`~casadi_hybrid.iterations.Hybrid`; it is drawn once per realization, as tables indexed by
t = −1, 0, 1, …, so two runs can be given the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Matrix, as_matrix
from casadi_hybrid.claims.compare import (
    Trajectory,
    Trial,
    deviation,
    different,
    follow,
    judged,
    same,
)
from casadi_hybrid.claims.record import DIFFERENT, EQUAL, Claim
from casadi_hybrid.claims.trajectories import Pair, require_one_sum, rule_for
from casadi_hybrid.iterations import Hybrid
from casadi_hybrid.problem.functions import Evaluation

NOISE = 1e-2  # standard deviation, in the units of ∇f and h


@dataclass(frozen=True, eq=False)
class SharedNoise:
    """Noisy oracles G_t = ∇f + ξ_t and Y_t = (1 + ζ_t) ∘ h + ζ_t; both channels read Y_t.

    The factor on h makes the noise depend on the point, which the theorem allows.

    Attributes:
        xi: (T+2)×n; row t + 1 is ξ_t.
        zeta: (T+2)×m; row t + 1 is ζ_t.
    """

    xi: Matrix
    zeta: Matrix

    @classmethod
    def draw(cls, trial: Trial, seed: int, sigma: float = NOISE) -> SharedNoise:
        """Draw one realization of independent normal noise with standard deviation ``sigma``."""
        rng = np.random.default_rng(seed)
        rows, problem = trial.iterations + 2, trial.problem
        xi, zeta = rng.standard_normal((rows, problem.n)), rng.standard_normal((rows, problem.m))
        return cls(sigma * xi, sigma * zeta)

    def __call__(self, t: int, at: Evaluation) -> Evaluation:
        """Return what the step at t sees."""
        seen = at.h + self.zeta[t + 1] * (1 + at.h)
        return replace(at, gradient=at.gradient + self.xi[t + 1], h=seen, measured=seen)


@dataclass(frozen=True, eq=False)
class MemoryNoise:
    """ĥ_t = h(x_t) + P_n ε_t in the dual channel; the augmented channel reads h(x_t) exactly.

    Attributes:
        epsilon: (T+2)×m, zero outside the noisy columns; row t + 1 is ε_t.
    """

    epsilon: Matrix

    @classmethod
    def draw(
        cls, trial: Trial, noisy: Sequence[int], seed: int, sigma: float = NOISE
    ) -> MemoryNoise:
        """Draw one realization on the residual coordinates ``noisy``."""
        rng = np.random.default_rng(seed)
        epsilon = np.zeros((trial.iterations + 2, trial.problem.m))
        noisy = list(noisy)
        epsilon[:, noisy] = sigma * rng.standard_normal((epsilon.shape[0], len(noisy)))
        return cls(epsilon)

    def __call__(self, t: int, at: Evaluation) -> Evaluation:
        """Return what the step at t sees."""
        return replace(at, measured=at.h + self.epsilon[t + 1])


def additivity_under_shared_noise(
    trial: Trial,
    splits: Sequence[Pair],
    *,
    seed: int = 0,
    sigma: float = NOISE,
    tolerance: float = EQUAL,
) -> Claim:
    """Theorem "Additivity under shared oracle noise": one realization, one trajectory.

    The trial's ``dual`` is ν_0 = μ_0 + C Y_{−1}(x_{−1}). Deviations: x and ν_t, over all splits.

    Raises:
        InputError: fewer than two splits, or splits whose sums differ.
    """
    require_one_sum(trial, splits)
    noise = SharedNoise.draw(trial, seed, sigma)
    runs = [_noisy(trial, split, noise) for split in splits]
    return same("Shared oracle noise", trial.case(f"{len(splits)} splits"), runs, tolerance)


def unshared_noise(
    trial: Trial, splits: Sequence[Pair], *, seed: int = 0, sigma: float = NOISE
) -> Claim:
    """Counter-example: a realization of its own for each split.

    Raises:
        InputError: as :func:`additivity_under_shared_noise`.
    """
    require_one_sum(trial, splits)
    runs = [
        _noisy(trial, split, SharedNoise.draw(trial, seed + i, sigma))
        for i, split in enumerate(splits)
    ]
    return different("Unshared oracle noise", trial.case(f"{len(splits)} splits"), runs)


def equivalence_under_memory_noise(
    trial: Trial,
    C1: Matrix,
    C2: Matrix,
    noisy: Sequence[int],
    *,
    seed: int = 0,
    sigma: float = NOISE,
    tolerance: float = EQUAL,
) -> Claim:
    """Theorem "Hybrid–Aug-Lag equivalence under partial residual-memory noise".

    ALG(C₁, C₂) from μ_0 = λ_0 + C₂h(x_{−1}) is ALG(C₁ + C₂, 0) from λ_0, the trial's ``dual``,
    when C₂P_n = 0. Deviations: x; dual, μ_t^H against λ_t^A + C₂h(x_{t−1}^A) as the theorem
    states it, with the exact h.

    Args:
        trial: what the runs have in common.
        C1, C2: augmented and optimistic channel of the hybrid.
        noisy: the residual coordinates that P_n projects on.
        seed, sigma: realization and standard deviation of ε.
        tolerance: bound of the deviations.

    Raises:
        InputError: when C₂P_n ≠ 0.
    """
    C1, C2 = _square(trial, C1, "C1"), _square(trial, C2, "C2")
    if C2[:, list(noisy)].any():
        raise InputError(
            "C2 has a nonzero column at a noisy coordinate, so C₂P_n ≠ 0; the theorem needs it zero"
        )
    noise = MemoryNoise.draw(trial, noisy, seed, sigma)
    full, hybrid = _memory_pair(trial, C1, C2, noise)
    return judged(
        "Memory noise, C₂P_n = 0",
        trial.case(f"{len(noisy)} noisy of {trial.problem.m}"),
        (full, hybrid),
        lambda: (
            ("x", deviation(full.x, hybrid.x)),
            ("dual", deviation(full.mu + full.h_prev @ C2.T, hybrid.mu)),
        ),
        tolerance,
    )


def visible_memory_noise(
    trial: Trial,
    C1: Matrix,
    C2: Matrix,
    noisy: Sequence[int],
    *,
    seed: int = 0,
    sigma: float = NOISE,
) -> Claim:
    """Counter-example: with C₂P_n ≠ 0 the optimistic memory feeds ε back, augmentation does not.

    ε_{−1} = 0, so that the start stays matched and the feedback alone is seen. Arguments as for
    :func:`equivalence_under_memory_noise`.
    """
    C1, C2 = _square(trial, C1, "C1"), _square(trial, C2, "C2")
    epsilon = MemoryNoise.draw(trial, noisy, seed, sigma).epsilon
    epsilon[0] = 0
    full, hybrid = _memory_pair(trial, C1, C2, MemoryNoise(epsilon))
    return judged(
        "Memory noise, C₂P_n ≠ 0",
        trial.case(f"{len(noisy)} noisy of {trial.problem.m}"),
        (full, hybrid),
        lambda: (("x", deviation(full.x, hybrid.x)),),
        DIFFERENT,
        counterexample=True,
    )


def _square(trial: Trial, value: Matrix, name: str) -> Matrix:
    return as_matrix(value, (trial.problem.m, trial.problem.m), name)


def _noisy(trial: Trial, split: Pair, noise: SharedNoise) -> Trajectory:
    return follow(trial, Hybrid(rule_for(trial, split), dual_start="effective", disturb=noise))


def _memory_pair(
    trial: Trial, C1: Matrix, C2: Matrix, noise: MemoryNoise
) -> tuple[Trajectory, Trajectory]:
    assert trial.x_prev is not None
    mu0 = trial.from_dual(trial.dual + C2 @ trial.residual(trial.x_prev))
    starts = (trial, (C1 + C2, np.zeros_like(C2))), (mu0, (C1, C2))
    full, hybrid = (
        follow(each, Hybrid(rule_for(each, split), dual_start="multipliers", disturb=noise))
        for each, split in starts
    )
    return full, hybrid
