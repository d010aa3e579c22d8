"""Second derivatives of a solution: what CasADi differentiates twice, against differences."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from derivative_cases import CASES

from casadi_hybrid import Problem, nlpsol
from casadi_hybrid.casadi_api.solver import NlpSolver

OUTPUTS = ("x", "f", "g", "lam_x", "lam_g", "lam_p")
TIGHT = {"tol": 1e-12, "residual_tol": 1e-7}


def derivatives(name: str) -> tuple[ca.Function, np.ndarray]:
    """θ → a number made of all outputs, its gradient and its Hessian; and the θ to look at."""
    nlp, call, at = CASES[name]()
    solver = nlpsol("solver", "hybrid", nlp, TIGHT)
    t = ca.MX.sym("t", len(at))
    found = solver(**call(t))
    parts = [ca.vec(found[label]) for label in OUTPUTS]
    # Weights that are no two the same, so that no entry can stand for another.
    stacked = ca.vertcat(*parts)
    weights = np.cos(np.arange(stacked.numel()))
    value = ca.dot(weights, stacked) + 0.1 * ca.dot(weights, stacked**2)
    hessian, gradient = ca.hessian(value, t)
    return ca.Function("all", [t], [value, gradient, hessian]), np.array(at)


def slopes(function: ca.Function, output: int, at: np.ndarray, step: float) -> np.ndarray:
    """Central differences of fourth order of one output."""

    def moved(by: np.ndarray) -> np.ndarray:
        return np.asarray(function.call([at + by])[output].full()).ravel()

    columns = [
        (8 * (moved(d) - moved(-d)) - (moved(2 * d) - moved(-2 * d))) / (12 * step)
        for d in np.eye(at.size) * step
    ]
    return np.array(columns).T


def errors(name: str) -> tuple[float, float, float]:
    """Relative errors of gradient and Hessian, and the largest entry of the Hessian."""
    function, at = derivatives(name)
    _, gradient, hessian = (part.full() for part in function(at))
    values_only = ca.Function("value", [t := ca.MX.sym("t", at.size)], [function(t)[0]])
    first = slopes(values_only, 0, at, 1e-3)
    gradient_only = ca.Function("gradient", [t], [function(t)[1]])
    second = slopes(gradient_only, 0, at, 1e-3)
    scale = [1 + np.abs(part).max() for part in (gradient, hessian)]
    return (
        float(np.abs(gradient.ravel() - first.ravel()).max() / scale[0]),
        float(np.abs(hessian - second).max() / scale[1]),
        float(np.abs(hessian).max()),
    )


@pytest.mark.parametrize("name", ["upper row", "bound that moves"])
def test_first_and_second_derivatives_against_differences(name: str) -> None:
    first, second, size = errors(name)
    assert first < 1e-6
    assert second < 1e-6
    assert size > 1e-2  # there is something to be seen


@pytest.mark.slow
def test_the_table_of_all_problems(capsys: pytest.CaptureFixture[str]) -> None:
    """Run it with ``pytest -m slow -k table_of_all`` to see the table."""
    rows = {name: errors(name) for name in CASES}
    with capsys.disabled():
        print(f"\n{'problem':28} {'gradient':>9} {'Hessian':>9} {'largest':>9}")
        for name, (first, second, size) in rows.items():
            print(f"{name:28} {first:9.1e} {second:9.1e} {size:9.2g}")
    assert max(first for first, _, _ in rows.values()) < 1e-6
    assert max(second for _, second, _ in rows.values()) < 1e-6


def test_in_closed_form() -> None:
    """min (x − p)² s.t. x ≤ b² is b² where it binds: Hessians of x and of the multiplier."""
    x, p = ca.SX.sym("x"), ca.SX.sym("p")
    solver = nlpsol("solver", "hybrid", {"x": x, "p": p, "f": (x - p) ** 4}, TIGHT)
    t = ca.MX.sym("t", 2)
    found = solver(p=t[0], ubx=t[1] ** 2)
    of_x, of_lam = (ca.hessian(found[key], t)[0] for key in ("x", "lam_x"))
    hessians = ca.Function("hessians", [t], [of_x, of_lam])([3.0, 1.2])
    # x = b², λ = 4(p − b²)³ with b = t₁.
    d, b = 3.0 - 1.44, 1.2
    np.testing.assert_allclose(hessians[0], [[0, 0], [0, 2]], atol=1e-7)
    expected = [[24 * d, -48 * b * d], [-48 * b * d, 96 * b**2 * d - 24 * d**2]]
    np.testing.assert_allclose(hessians[1], expected, rtol=1e-6)


def test_forward_over_reverse_and_reverse_over_reverse_agree() -> None:
    nlp, call, at = CASES["everything"]()
    solver = nlpsol("solver", "hybrid", nlp, TIGHT)
    t, seed = ca.MX.sym("t", len(at)), ca.MX.sym("seed", len(at))
    x = ca.sumsqr(solver(**call(t))["x"])
    slope = ca.gradient(x, t)
    products = [ca.jtimes(slope, t, seed), ca.jtimes(slope, t, seed, True)]
    forward, reverse = ca.Function("products", [t, seed], products)(at, [1, -2, 0.5, 3])
    np.testing.assert_allclose(forward, reverse, rtol=1e-8, atol=1e-10)


def test_equations_of_a_problem_and_compiled_functions() -> None:
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    problem = Problem(
        x=x, f=ca.sumsqr(x - p), h={"circle": ca.sumsqr(x) - p}, g={"row": (None, x[0], 0.6)}, p=p
    )
    plain = {"x": x, "p": p, "f": problem.f, "g": ca.vertcat(ca.sumsqr(x) - p, x[0])}
    t = ca.MX.sym("t")

    def hessian(solver: NlpSolver, **call: object) -> float:
        found = solver(p=t, x0=[0.5, 1], **call)
        made = ca.Function("h", [t], [ca.hessian(found["x"][1] + found["lam_g"][0], t)[0]])
        return float(made(1.3))

    expected = hessian(nlpsol("s", "hybrid", plain, TIGHT), lbg=[0, -np.inf], ubg=[0, 0.6])
    assert abs(expected) > 0.1
    assert hessian(nlpsol("s", "hybrid", problem, TIGHT)) == pytest.approx(expected, rel=1e-6)
    compiled = nlpsol("s", "hybrid", plain, {**TIGHT, "jit": True})
    found = hessian(compiled, lbg=[0, -np.inf], ubg=[0, 0.6])
    assert found == pytest.approx(expected, rel=1e-6)
