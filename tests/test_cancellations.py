"""Local models of any shape and rank, and what each cancellation does to their curvature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casadi_hybrid.rules import (
    FloorCancellation,
    FullCancellation,
    GramMetric,
    LocalModel,
    NegativeCancellation,
    PartialCancellation,
)

Array = Any
norm = np.linalg.norm
eig = np.linalg.eigvalsh

CANCELLATIONS = {
    "full": FullCancellation(),
    "negative": NegativeCancellation(),
    "floor": FloorCancellation(),
    "half": PartialCancellation(0.5),
    "penalty": PartialCancellation(0.0),
}


def random_model(seed: int, n: int, m: int, r: int) -> tuple[Array, Array, Array, Array]:
    """(H, B, Y, Z): rank B = r, H indefinite with ZᵀHZ ⪰ I on Z = ker B; Y = range(Bᵀ)."""
    rng = np.random.default_rng([seed, n, m, r])
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    Y, Z = Q[:, :r], Q[:, r:]
    U = np.linalg.qr(rng.normal(size=(m, r)))[0]
    B = U @ np.diag(rng.uniform(0.3, 2, r)) @ np.linalg.qr(rng.normal(size=(r, r)))[0] @ Y.T
    G = rng.normal(size=(n, n))
    H = G + G.T
    shift = 1 - min([1.0, *eig(Z.T @ H @ Z)]) if r < n else 0.0
    return H + shift * Z @ Z.T, B, Y, Z


shapes = st.tuples(st.integers(1, 4), st.integers(1, 5)).flatmap(
    lambda s: st.tuples(st.just(s[0]), st.just(s[1]), st.integers(1, min(s)))
)
seeds = st.integers(0, 10_000)
deltas = st.sampled_from([0.05, 0.35, 3.0])


def schur(H: Array, Y: Array, Z: Array, shift: float) -> Array:
    """H_yy − H_yz (H_zz − shift·I)⁻¹ H_zy from its definition."""
    inner = Z.T @ H @ Z - shift * np.eye(Z.shape[1])
    return Y.T @ H @ Y - Y.T @ H @ Z @ np.linalg.solve(inner, Z.T @ H @ Y)


@given(seeds, shapes)
def test_spectral_facts(seed: int, shape: Any) -> None:
    H, B, Y, Z = random_model(seed, *shape)
    n, m, r = shape
    G = np.random.default_rng(seed).normal(size=(n, n))
    A = G @ G.T + np.eye(n)
    model = LocalModel(H, B)
    assert model.rank == r
    assert model.norm_B == pytest.approx(norm(B, 2))
    assert model.pinv == pytest.approx(np.linalg.pinv(B, rcond=1e-10), abs=1e-11)
    dual = eig(B @ np.linalg.inv(A) @ B.T)
    assert model.smallest_dual_curvature(A) == pytest.approx(dual[m - r], rel=1e-8)
    assert model.kernel[0] == pytest.approx(eig(Z.T @ H @ Z), abs=1e-11)
    assert eig(model.schur(0.3)) == pytest.approx(eig(schur(H, Y, Z, 0.3)), abs=1e-10)
    R = GramMetric().matrix(model)
    assert pytest.approx(Y @ Y.T, abs=1e-11) == B.T @ R @ B
    assert model.metric_curvature(R) == pytest.approx(1)


# What is left of an eigenvalue e of the Schur complement.
LEFT = {
    "full": lambda e, delta: 0 * e,
    "negative": lambda e, delta: np.maximum(e, 0),
    "floor": np.maximum,
    "half": lambda e, delta: 0.5 * e,
    "penalty": lambda e, delta: e,
}


@given(seeds, shapes, deltas, st.sampled_from(sorted(LEFT)))
def test_what_each_cancellation_leaves(seed: int, shape: Any, delta: float, name: str) -> None:
    H, B, Y, Z = random_model(seed, *shape)
    C, deficit = CANCELLATIONS[name].cancel(LocalModel(H, B), delta)
    assert pytest.approx(C.T, abs=1e-12 * (1 + norm(C))) == C
    shift = min([delta, *(0.5 * eig(Z.T @ H @ Z))])
    S = schur(H, Y, Z, shift)
    left = eig(S + Y.T @ B.T @ C @ B @ Y)
    scale = 1e-10 * (1 + norm(S, 2))
    assert left == pytest.approx(np.sort(LEFT[name](eig(S), delta)), abs=scale)
    # The deficit is what is missing to δ, no more and no less than the docstrings say.
    missing = max(0.0, delta - left[0])
    lowest = max(0.0, -eig(S)[0])
    told = {"full": delta, "negative": delta, "floor": 0.0,
            "half": delta + 0.5 * lowest, "penalty": delta + lowest}[name]  # fmt: skip
    assert deficit == pytest.approx(told, abs=scale)
    assert deficit >= missing - scale


@given(seeds, shapes, deltas, st.sampled_from(sorted(CANCELLATIONS)))
def test_no_smaller_matrix_has_the_same_effect(
    seed: int, shape: Any, delta: float, name: str
) -> None:
    """C = B⁺ᵀ(BᵀCB)B⁺ is the least of all matrices with that BᵀCB, in both norms."""
    H, B, _, _ = random_model(seed, *shape)
    C, _ = CANCELLATIONS[name].cancel(LocalModel(H, B), delta)
    pinv = np.linalg.pinv(B, rcond=1e-10)
    assert pytest.approx(pinv.T @ (B.T @ C @ B) @ pinv, abs=1e-9 * (1 + norm(C))) == C
