"""The trust-region subproblem in C against its optimality conditions, its dual, and brute force."""

from ctypes import c_double, c_int, c_void_p
from typing import Any

import numpy as np
import pytest
from engine_cases import core_in_pieces
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

Array = Any
norm = np.linalg.norm


def trust_region_step(e: Array, b: Array, radius: float) -> tuple[Array, float]:
    """The minimizer t of ½Σeᵢtᵢ² + bᵀt with ‖t‖ ≤ Δ, by C, and the multiplier σ of the radius."""
    function = core_in_pieces().hybrid_trust_region
    function.restype, function.argtypes = c_double, [c_int, c_void_p, c_void_p, c_double, c_void_p]
    before, t = (e.copy(), b.copy()), np.empty(e.size)
    sigma = function(e.size, e.ctypes.data, b.ctypes.data, radius, t.ctypes.data)
    assert (e.tolist(), b.tolist()) == (before[0].tolist(), before[1].tolist())
    return t, sigma


# Numbers over sixteen decades, with zeros, ties and the exact hard case among them.
decades = st.integers(-8, 8).map(lambda k: 10.0**k)
entries = st.builds(
    lambda digit, decade: digit * decade,
    st.sampled_from([0.0, 0.0, 1.0, -1.0, 1.0, 2.5, -3.0]),
    st.one_of(st.just(1.0), decades),
)
radii = st.integers(-8, 8).map(lambda k: 10.0**k)


@st.composite
def problems(draw: st.DrawFn, most: int = 6) -> tuple[Array, Array, float]:
    """(e, b, Δ): curvatures in ascending order, slopes, a radius."""
    n = draw(st.integers(1, most))
    e = np.sort(draw(st.lists(entries, min_size=n, max_size=n)))
    b = np.array(draw(st.lists(entries, min_size=n, max_size=n)))
    return e, b, draw(radii)


def model(e: Array, b: Array, t: Array) -> float:
    return float(0.5 * e @ t**2 + b @ t)


def size(e: Array, b: Array, radius: float) -> float:
    """What is one unit of the model in this problem."""
    return float(np.abs(e).max() * radius**2 + norm(b) * radius)


@settings(max_examples=400)
@given(problems())
@example((np.array([0.0, 0.0]), np.zeros(2), 1.0))
@example((np.array([-1.0, -1.0, 2.0]), np.array([0.0, 0.0, 1.0]), 1.0))
@example((np.array([-1.0, 2.0]), np.array([1e-14, 1.0]), 1.0))
@example((np.array([-1.0, 2.0]), np.array([1e-300, 1.0]), 1.0))
def test_sufficient_conditions_of_a_global_minimizer(problem: Any) -> None:
    """(e + σ)t = −b, e + σ ≥ 0, σ ≥ 0, ‖t‖ ≤ Δ, σ(Δ − ‖t‖) = 0 (Moré and Sorensen)."""
    e, b, radius = problem
    t, sigma = trust_region_step(e, b, radius)
    force = norm(b) + np.abs(e).max() * radius
    assert norm(t) <= radius * (1 + 1e-9)
    assert sigma >= 0
    assert e[0] + sigma >= -1e-13 * np.abs(e).max()
    assert np.abs((e + sigma) * t + b).max() <= 1e-9 * force
    assert sigma * (radius - norm(t)) <= 1e-9 * force


@given(problems(most=2))
def test_a_fine_grid_finds_nothing_lower(problem: Any) -> None:
    e, b, radius = problem
    t, _ = trust_region_step(e, b, radius)
    rho = radius * np.linspace(0, 1, 101)
    angle = np.linspace(0, 2 * np.pi, 721)
    if e.size == 1:
        points = np.concatenate([rho, -rho])[:, None]
    else:
        points = np.stack([np.outer(rho, f(angle)).ravel() for f in (np.cos, np.sin)], axis=1)
    values = 0.5 * points**2 @ e + points @ b
    unit = size(e, b, radius)
    assert values.min() >= model(e, b, t) - 1e-9 * unit
    assert values.min() <= model(e, b, t) + 1e-2 * unit


@given(problems(), decades, decades)
def test_units_do_not_matter(problem: Any, of_model: float, of_t: float) -> None:
    """Scaling the model leaves t; scaling t by s scales Δ by s, e by 1/s² and b by 1/s."""
    e, b, radius = problem
    t, sigma = trust_region_step(e, b, radius)
    scaled, lifted = trust_region_step(of_model * e / of_t**2, of_model * b / of_t, radius * of_t)
    # Where minimizers are not unique (the hard case) only the value is determined.
    unit = size(e, b, radius)
    assert model(e, b, scaled / of_t) == pytest.approx(model(e, b, t), abs=1e-8 * unit)
    reach = norm(b) / radius + np.abs(e).max()
    assert lifted * of_t**2 / of_model == pytest.approx(sigma, abs=1e-7 * reach)


@pytest.mark.parametrize("radius", [1e-10, 1e-3, 0.7])
@pytest.mark.parametrize("least", [-2.0, 0.0, 0.5])
def test_the_multiplier_is_the_root_of_the_secular_equation(radius: float, least: float) -> None:
    e, b = np.array([least, 1.0, 4.0]), np.array([1.0, -2.0, 0.5])

    def excess(sigma: float) -> float:
        return float(np.log(norm(b / (e + sigma)) / radius))

    low = max(0.0, -least) + 1e-9
    expected = brentq(excess, low, low + 10 * norm(b) / radius, xtol=1e-14, rtol=1e-14)
    t, sigma = trust_region_step(e, b, radius)
    assert sigma == pytest.approx(expected, rel=1e-8)
    assert t == pytest.approx(-b / (e + expected), rel=1e-8)
    assert norm(t) == pytest.approx(radius)


@pytest.mark.parametrize(
    ("e", "b", "radius", "value"),
    [
        ([-1.0, 2.0], [0.0, 0.0], 2.0, -2.0),  # no slope at all
        ([-1.0, 2.0], [0.0, 1.0], 2.0, -0.5 * (4 - 1 / 9) + 1 / 9 - 1 / 3),
        ([-1.0, -1.0, 2.0], [0.0, 0.0, 1.0], 2.0, -0.5 * (4 - 1 / 9) + 1 / 9 - 1 / 3),  # a tie
        ([-1.0, 0.0], [0.0, 1e3], 1.0, None),  # the slope elsewhere fills the radius
    ],
)
def test_hard_case(e: Any, b: Any, radius: float, value: float | None) -> None:
    e, b = np.array(e), np.array(b)
    t, sigma = trust_region_step(e, b, radius)
    assert norm(t) == pytest.approx(radius, rel=1e-12)
    if value is not None:
        assert sigma == 1.0
        assert model(e, b, t) == pytest.approx(value)
    else:
        assert t == pytest.approx([0, -1])
        assert sigma == pytest.approx(1e3)


@pytest.mark.parametrize("tilt", [1e-3, 1e-9, 1e-15, -1e-15])
def test_near_the_hard_case_the_slope_gives_the_sign(tilt: float) -> None:
    e, b = np.array([-1.0, 2.0]), np.array([tilt, 1.0])
    t, sigma = trust_region_step(e, b, 2.0)
    assert norm(t) == pytest.approx(2)
    assert np.sign(t[0]) == -np.sign(tilt)
    near = {"abs": 1e-9 + 10 * abs(tilt)}
    assert t == pytest.approx([-np.sign(tilt) * np.sqrt(4 - 1 / 9), -1 / 3], **near)
    assert sigma == pytest.approx(1, **near)


def test_of_many_minimizers_the_shortest() -> None:
    """Along e_i = b_i = 0 the model says nothing, so the step does not move."""
    t, sigma = trust_region_step(np.array([0.0, 0.0, 2.0]), np.array([0.0, 0.0, 1.0]), 10.0)
    assert t.tolist() == [0, 0, -0.5]
    assert sigma == 0
    assert trust_region_step(np.zeros(3), np.zeros(3), 1.0)[0].tolist() == [0, 0, 0]
    # An eigenvalue that is negative by rounding is zero.
    t, _ = trust_region_step(np.array([-1e-17, 2.0]), np.array([0.0, 1.0]), 10.0)
    assert t.tolist() == [0, -0.5]


def test_a_slope_without_curvature_goes_to_the_radius() -> None:
    for radius in (1e-10, 1.0, 1e10):
        t, sigma = trust_region_step(np.zeros(2), np.array([3.0, -4.0]), radius)
        assert t == pytest.approx([-0.6 * radius, 0.8 * radius])
        assert sigma == pytest.approx(5 / radius)


def test_the_interior_minimizer_is_exact() -> None:
    """Near a solution the step must be Newton's to the last digit, or convergence is linear."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        e = np.sort(rng.uniform(0.01, 10, 5))
        b = rng.normal(size=5)
        t, sigma = trust_region_step(e, b, 2 * norm(b / e))
        assert sigma == 0
        assert np.abs(t + b / e).max() <= 1e-15 * norm(b / e)


def test_eigenvalues_far_apart_are_kept_apart() -> None:
    """σ_min² of an ill-conditioned Jacobian is 1e-18 of the largest, and it is not zero."""
    e, b = np.array([1e-18, 1e-14, 1.0]), np.array([2e-18, 3e-14, 4.0])
    t, sigma = trust_region_step(e, b, 6.0)
    assert sigma == 0
    assert t == pytest.approx([-2, -3, -4])
    t, sigma = trust_region_step(e, b, 5.2)
    assert norm(t) == pytest.approx(5.2)
    assert 0 < sigma < 1e-17
    assert t == pytest.approx(-b / (e + sigma))


def test_no_dimension() -> None:
    t, sigma = trust_region_step(np.zeros(0), np.zeros(0), 1.0)
    assert t.shape == (0,)
    assert sigma == 0


@pytest.mark.parametrize(
    ("e", "b", "radius"),
    [
        ([1.0, 4.0, 9.0], [1.0, -2.0, 0.5], 0.1),
        ([-2.0, 1.0, 4.0], [1e-3, -2.0, 0.5], 0.7),
        ([0.0, 1.0, 1e16], [0.0, 1.0, 1e12], 0.5),
    ],
)
def test_the_secular_equation_is_solved(e: list[float], b: list[float], radius: float) -> None:
    """To its accuracy also where halving a wide bracket sixty times is not enough.

    In the last case the bracket ends at 2e12 and the root is 1, so the steps must be Newton's.
    """
    t, sigma = trust_region_step(np.array(e), np.array(b), radius)
    assert norm(t) == pytest.approx(radius, rel=1e-10)
    assert sigma > 0
