"""The paper's problem class: every property the paper states, measured on the generated graphs."""

from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from scipy.linalg import null_space

from casadi_hybrid import InputError
from casadi_hybrid.paper.experiment import CONDITIONS, Instance, make_instance
from casadi_hybrid.paper.experiment.generator import FITTED
from casadi_hybrid.problem.oracle import Oracle

# n, m and the condition number: the paper's shape at all levels, others at two.
SHAPES = [(3, 5, condition) for condition in (*CONDITIONS, 1.5, 1e4)]
SHAPES += [
    (n, m, condition)
    for n, m in ((3, 3), (3, 2), (1, 1), (1, 3), (2, 1), (2, 4), (4, 2), (5, 5), (7, 3), (6, 9))
    for condition in (1, 5)
]


@cache
def made(condition: float, seed: int, n: int = 3, m: int = 5) -> tuple[Instance, Oracle]:
    instance = make_instance(condition, seed, n=n, m=m)
    return instance, Oracle(instance.problem.functions, np.zeros(0))


@pytest.mark.parametrize(("n", "m", "condition"), SHAPES)
def test_constructed_point_is_a_kkt_point(n: int, m: int, condition: float) -> None:
    """h(x*) = 0, J_h(x*) = B*, ∇f(x*) + B*ᵀμ* = 0 and cond(B*) = κ exactly."""
    instance, oracle = made(condition, 2, n, m)
    assert (instance.problem.n, instance.problem.m) == (n, m)
    at = oracle.second(instance.x_star, instance.multipliers_star)
    assert np.abs(at.h).max() < 1e-15
    assert pytest.approx(instance.B_star, abs=1e-15) == at.B
    assert np.abs(at.gradient + at.B.T @ instance.multipliers_star).max() < 1e-13
    sigma = np.linalg.svd(at.B, compute_uv=False)
    assert sigma == pytest.approx(condition ** -np.linspace(0, 1, min(n, m)))
    if m < n:  # x* is a strict minimizer: curvature on ker B* is positive
        Z = null_space(at.B)
        assert np.linalg.eigvalsh(Z.T @ at.hessian @ Z)[0] >= 0.5 - 1e-12


@pytest.mark.parametrize("condition", CONDITIONS)
def test_start_has_its_radii(condition: float) -> None:
    instance, _ = made(condition, 1)
    assert np.linalg.norm(instance.x0 - instance.x_star) == pytest.approx(0.5)
    assert np.linalg.norm(instance.multipliers0 - instance.multipliers_star) == pytest.approx(0.2)
    other = make_instance(condition, 1, radius=0.1, recipe=replace(FITTED, multiplier_radius=0.0))
    assert np.linalg.norm(other.x0 - other.x_star) == pytest.approx(0.1)
    assert np.array_equal(other.multipliers0, other.multipliers_star)
    assert np.array_equal(other.x_star, instance.x_star)


@pytest.mark.parametrize("seed", range(3))
def test_h_has_the_papers_form(seed: int) -> None:
    """h = B*u + 0.2 A(u_1², u_2², u_3², u_1u_2, u_2u_3) with ‖A‖₂ = 1, fitted from values of h."""
    instance, oracle = made(3, seed)
    u = np.random.default_rng(0).normal(size=(40, 3))
    phi = np.stack([u[:, 0] ** 2, u[:, 1] ** 2, u[:, 2] ** 2, u[:, 0] * u[:, 1], u[:, 1] * u[:, 2]])
    values = np.array([oracle.residual(instance.x_star + row) for row in u])
    rest = values - u @ instance.B_star.T
    A, *_ = np.linalg.lstsq(0.2 * phi.T, rest, rcond=None)
    assert pytest.approx(rest, abs=1e-13) == 0.2 * phi.T @ A
    assert np.linalg.norm(A, 2) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(3))
def test_f_has_the_papers_form(seed: int) -> None:
    """f − its four nonlinear terms is ½xᵀH₀x + qᵀx with eigenvalues 1, −½, −1.5, and c > 0."""
    _, oracle = made(2, seed)
    x = np.random.default_rng(1).normal(size=(60, 3))
    a, b, d = x.T
    quadratic = [x[:, i] * x[:, j] for i, j in combinations_with_replacement(range(3), 2)]
    smooth = [np.sin(2 * a), -np.cos(b * d), d**4, -np.sin(a + d)]
    basis = np.stack([*smooth, *quadratic, *x.T]).T
    values = np.array([oracle.first(row).f for row in x])
    coefficients, *_ = np.linalg.lstsq(basis, values, rcond=None)
    assert basis @ coefficients == pytest.approx(values, abs=1e-12)
    c, quad = coefficients[:4], coefficients[4:10]
    assert ((c >= 0.05) & (c <= 0.2)).all()
    H0 = np.zeros((3, 3))
    for (i, j), value in zip(combinations_with_replacement(range(3), 2), quad, strict=True):
        H0[i, j] += value
        H0[j, i] += value
    assert np.linalg.eigvalsh(H0) == pytest.approx([-1.5, -0.5, 1.0])


def test_instances_are_repeatable_and_distinct() -> None:
    def numbers(condition: float, seed: int) -> tuple[Any, ...]:
        instance = make_instance(condition, seed)
        assert (instance.condition, instance.seed) == (condition, seed)
        arrays = (instance.x_star, instance.multipliers_star, instance.B_star, instance.x0)
        point = Oracle(instance.problem.functions, np.zeros(0)).first(instance.x0)
        return (*(a.tobytes() for a in arrays), point.f, point.h.tobytes())

    assert numbers(3, 1) == numbers(3, 1)
    assert len({numbers(kappa, seed) for kappa in CONDITIONS for seed in range(5)}) == 30


def test_wrong_argument_is_named() -> None:
    wrong = {"condition": (0.5, -1, np.nan, "2"), "seed": (-1, 0.5), "n": (0, 2.5), "m": (0,)}
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(InputError, match=f"^{name} .*{value!r}"):
                make_instance(**{"condition": 2, "seed": 0, name: value})
