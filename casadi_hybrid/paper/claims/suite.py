"""All claims and counter-examples on three shapes of problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from casadi_hybrid.paper.claims import design, noise, spectra, trajectories
from casadi_hybrid.paper.claims.claim import Claim, Setup, attempted
from casadi_hybrid.paper.claims.trajectories import Pair
from casadi_hybrid.paper.experiment import Instance, make_instance
from casadi_hybrid.utils.inputs import Matrix, count

# (n, m): more variables than constraints, as many, and the paper's.
SHAPES = ((5, 3), (4, 4), (3, 5))
CONDITION = 2.0
# Runs that contract and still move after 200 steps (‖h‖ between 1e-3 and 1e-6).
STRENGTH, ETA_X, ETA_D = 10.0, 0.03, 0.5
# With a learned Hessian later steps learn rounding only; a counter-example needs few steps.
LEARNING, SHORT = 20, 60
THETAS = (1.0, 0.0, 0.3, 0.7)
# Claims on one mode and on the paper's small examples, without a problem of the class.
ALONE: tuple[Callable[..., Claim], ...] = (
    spectra.margin_bounds,
    spectra.margin_equality,
    spectra.margin_expansion,
    spectra.margin_double_root,
    spectra.stiffness,
    spectra.stiffness_curvature,
    spectra.unstable_penalty,
    design.weights_of_other_metrics,
)


def check_all(seed: int = 0, iterations: int = 200, models: int = 6) -> tuple[Claim, ...]:
    """Measure every claim and every counter-example; an exception makes a failed claim.

    Args:
        seed: chooses the problem instances, the matrices and the noise.
        iterations: steps of every trajectory, at least 10 to separate the counter-examples.
        models: local models (H, B) of each claim on the closed-form rule, at least 1.

    Raises:
        InputError: for a number out of range.
    """
    claims = [claim for n, m in SHAPES for claim in check_shape(n, m, seed, iterations, models)]
    return (*claims, *map(attempted, ALONE))


def check_shape(
    n: int, m: int, seed: int = 0, iterations: int = 200, models: int = 6
) -> tuple[Claim, ...]:
    """Measure the claims that depend on n and m; arguments and exceptions as :func:`check_all`."""
    count(seed, "seed")
    count(iterations, "iterations", at_least=10)
    count(models, "models", at_least=1)
    rng = np.random.default_rng((seed, n, m))
    instance = make_instance(CONDITION, seed, n=n, m=m)
    M = random_correction(m, rng)
    setup = setup_of(instance, rng, iterations)
    return (
        *_trajectories(setup, M, rng),
        *_noise(setup, M, rng, seed),
        *_spectra(instance, M, rng),
        *check_designs(n, m, models, seed),
    )


def setup_of(instance: Instance, rng: np.random.Generator, iterations: int = 200) -> Setup:
    """Return a setup from the instance's start, with x_{−1} ≠ x_0."""
    # With x_{−1} = x_0 an unmatched memory at the start would not show.
    x_prev = instance.x0 + 0.05 * rng.standard_normal(instance.problem.n)
    start = (instance.x0, instance.multipliers0, x_prev)
    return Setup(instance.problem, *start, ETA_X, ETA_D, iterations)


def random_correction(m: int, rng: np.random.Generator) -> Matrix:
    """Return 10 I plus a random part of size about 1, neither symmetric nor skew."""
    W = rng.standard_normal((m, m))
    return STRENGTH * np.eye(m) + W @ W.T / m + 0.5 * (W - W.T)


def random_splits(M: Matrix, rng: np.random.Generator) -> list[Pair]:
    """Return seven splits of M: ends, unsymmetric, diagonal, beyond an end, symmetric, half."""
    W = rng.standard_normal(M.shape)
    diagonal = np.diag(rng.uniform(0, STRENGTH, len(M)))
    return [(C, M - C) for C in (M, 0 * M, W, diagonal, 2 * M, W + W.T, 0.5 * M)]


def varying_splits(M: Matrix, rng: np.random.Generator) -> list[Pair]:
    """Return (M_t, 0), (0, M_t), and four C_opt,t = N_0 + 0.3 sin(ωt) N_1.

    M_t = (1 + 0.2 sin 0.3t)M. Under a larger variation untelescoped memory diverges.
    """

    def total(t: int) -> Matrix:
        return np.asarray((1 + 0.2 * np.sin(0.3 * t)) * M)

    def split(omega: float) -> Pair:
        N0, N1 = rng.standard_normal(M.shape), rng.standard_normal(M.shape)

        def optimistic(t: int) -> Matrix:
            return np.asarray(N0 + 0.3 * np.sin(omega * t) * N1)

        return (lambda t: total(t) - optimistic(t)), optimistic

    return [(total, 0 * M), (0 * M, total), *map(split, rng.uniform(0.5, 1.5, 4))]


def varying_metrics(setup: Setup, rng: np.random.Generator) -> Setup:
    """Return the setup with matrix steps P_t and D_t that vary around its numbers."""
    sizes = setup.problem.n, setup.problem.m
    P, D = (np.diag(rng.uniform(0.7, 1.3, size)) + 0.05 for size in sizes)
    return replace(
        setup,
        eta_x=lambda t: ETA_X * (1 + 0.2 * np.sin(t)) * P,
        eta_d=lambda t: ETA_D * (1 + 0.2 * np.cos(t)) * D,
    )


def _trajectories(setup: Setup, M: Matrix, rng: np.random.Generator) -> Iterator[Claim]:
    C = rng.standard_normal(M.shape)
    splits, varying = random_splits(M, rng), varying_splits(M, rng)
    few, short = (_shorter(setup, most) for most in (LEARNING, SHORT))
    yield attempted(trajectories.theorem_equivalence, setup, C + C.T, M - C - C.T)
    yield attempted(trajectories.theorem_equivalence, setup, C, M - C)
    yield attempted(trajectories.additivity, setup, splits)
    yield attempted(trajectories.additivity, varying_metrics(setup, rng), varying)
    yield attempted(trajectories.telescoped, setup, varying)
    yield attempted(trajectories.constant_memory, setup, splits[:4])
    yield attempted(trajectories.design_additivity, setup, THETAS)
    yield attempted(trajectories.design_additivity, setup, THETAS, trajectories.look_ahead)
    yield attempted(trajectories.learned_hessian, few, THETAS[:3])
    yield attempted(trajectories.descent_ascent, short, 0.5 * (M + M.T))
    yield attempted(trajectories.descent_ascent, short, M)
    yield attempted(trajectories.unsymmetrized, short, M)
    yield attempted(trajectories.printed_hessian, short, THETAS)
    yield attempted(trajectories.untelescoped, short, varying[:4])
    yield attempted(trajectories.unmatched_start, short, splits[:4])


def _shorter(setup: Setup, most: int) -> Setup:
    return replace(setup, iterations=min(most, setup.iterations))


def check_designs(n: int, m: int, models: int = 6, seed: int = 0) -> Iterator[Claim]:
    """Measure the claims on the closed-form rule on local models; some need n ≤ m."""
    yield attempted(design.step_rule, n, m, models, seed)
    yield attempted(design.weights, n, m, models, seed)
    # On one or two models the closed form may be optimal.
    yield attempted(design.optimal_split_of_other_metrics, n, m, max(models, 6), seed)
    if n <= m:
        for measured in (design.theta_balances, design.cancellation_norm, design.optimal_split):
            yield attempted(measured, n, m, models, seed)


def _noise(setup: Setup, M: Matrix, rng: np.random.Generator, seed: int) -> Iterator[Claim]:
    splits, varying = random_splits(M, rng), varying_splits(M, rng)
    yield attempted(noise.additivity_under_shared_noise, setup, splits[:5], seed=seed)
    yield attempted(noise.additivity_under_shared_noise, setup, varying, seed=seed)
    yield attempted(noise.unshared_noise, _shorter(setup, SHORT), splits[:4], seed=seed)
    noisy = range(len(M) // 2)
    visible = rng.standard_normal(M.shape)
    blind = visible.copy()
    # C₂P_n = 0: the memory does not see the noisy coordinates.
    blind[:, noisy] = 0
    yield attempted(noise.equivalence_under_memory_noise, setup, M - blind, blind, noisy, seed=seed)
    yield attempted(noise.visible_memory_noise, setup, M - visible, visible, noisy, seed=seed)


def _spectra(instance: Instance, M: Matrix, rng: np.random.Generator) -> Iterator[Claim]:
    B, star = instance.B_star, (instance.x_star, instance.multipliers_star)
    m, n = B.shape
    at_solution = Setup(instance.problem, *star, eta_x=ETA_X, eta_d=ETA_D)
    C = rng.standard_normal((m, m))
    yield attempted(spectra.jacobian_of_the_law, at_solution, C, M - C)
    yield attempted(spectra.jacobian_in_other_variables, at_solution, C, M - C)
    S = rng.standard_normal((n, n))
    H = S + S.T - 2 * np.eye(n)
    W = rng.standard_normal((m, m))
    if m >= n:
        yield attempted(design.target_curvature, H, B, 0.35)
        yield attempted(design.target_curvature, H, B, 0.35, np.eye(m) + W @ W.T)
    else:
        # −I is negative on every kernel; a random H need not be.
        yield attempted(design.unreachable_curvature, -np.eye(n), B, 0.35)
