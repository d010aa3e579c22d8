"""The step of the kernel is a step of the law, for every split of the correction.

With P = (W + D + BᵀMB)⁻¹ and the look-ahead drive v = (BPBᵀ + R)⁻¹(h − Bw), the law's step solves

    [ W + D   Bᵀ ] [ dx ]     [ g + Bᵀπ ]
    [   B    −E  ] [ dy ] = − [    h    ],    E = (R⁻¹ + M)⁻¹.

R → ∞ is the step without a drive, E = M⁻¹; R = 0 is the Newton–KKT step, E = 0.
"""

import numpy as np
import pytest

from casadi_hybrid.paper.law import Correction, State, advance
from casadi_hybrid.problem.graph.functions import Evaluation

N, M_ROWS = 7, 4


def setting(seed: int):
    """An indefinite W, a diagonal D, B of full rank, a positive definite M, and a state."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((N, N))
    W = W + W.T
    D = np.diag(rng.uniform(0.0, 2.0, N))
    B = rng.standard_normal((M_ROWS, N))
    # The correction and D together make the augmented curvature positive definite.
    least = np.linalg.eigvalsh(W)[0]
    D = D + max(0.0, 1.0 - least) * np.eye(N)
    root = rng.standard_normal((M_ROWS, M_ROWS))
    M = root @ root.T + 0.5 * np.eye(M_ROWS)
    h = rng.standard_normal(M_ROWS)
    x, pi = rng.standard_normal(N), rng.standard_normal(M_ROWS)
    at = Evaluation(x, 0.0, rng.standard_normal(N), h, B, W, h)
    h_before = rng.standard_normal(M_ROWS)
    return W, D, B, M, at, pi, h_before


def law_step(theta: float, setting_, drive, lookahead: bool):
    """dx of the law from (x, π) with C_aug = θM, after a step that left C_opt h_before behind."""
    W, D, B, M, at, pi, h_before = setting_
    P = np.linalg.inv(W + D + B.T @ M @ B)
    memory = (1 - theta) * M @ h_before
    state = State(at.x, pi + memory, memory, pi)
    correction = Correction(theta * M, (1 - theta) * M, P, drive, lookahead)
    return advance(state, at, correction, memory).x - at.x


def kernel_step(setting_, E: np.ndarray):
    """dx of the kernel; a full E is brought to a multiple of I by a change of rows."""
    W, D, B, _, at, pi, _ = setting_
    force = at.gradient + B.T @ pi
    if E.any():
        # K(D, I) in rows scaled by L⁻¹ with E = LLᵀ is K(D, E).
        L = np.linalg.cholesky(E)
        B, h, e = np.linalg.solve(L, B), np.linalg.solve(L, at.h), 1.0
    else:
        h, e = at.h, 0.0
    K = np.block([[W + D, B.T], [B, -e * np.eye(M_ROWS)]])
    assert np.count_nonzero(np.linalg.eigvalsh(K) < 0) == M_ROWS
    return np.linalg.solve(K, -np.concatenate((force, h)))[:N]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("theta", [0.0, 0.5, 1.0])
def test_the_correction_is_the_inverse_of_the_lower_block(theta, seed):
    given = setting(seed)
    step = law_step(theta, given, np.zeros((M_ROWS, M_ROWS)), lookahead=False)
    np.testing.assert_allclose(step, kernel_step(given, np.linalg.inv(given[3])), rtol=1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("theta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 1e3])
def test_the_look_ahead_law_is_the_kernel_with_a_smaller_lower_block(size, theta, seed):
    given = setting(seed)
    W, D, B, M, *_ = given
    P = np.linalg.inv(W + D + B.T @ M @ B)
    drive = np.linalg.inv(B @ P @ B.T + size * np.eye(M_ROWS))
    E = np.linalg.inv(np.eye(M_ROWS) / size + M) if size else np.zeros((M_ROWS, M_ROWS))
    step = law_step(theta, given, drive, lookahead=True)
    np.testing.assert_allclose(step, kernel_step(given, E), rtol=1e-7, atol=1e-9)
