"""Warm starts of x, multipliers and working set: ``solver(..., warm_start=result)``."""

import itertools

import casadi as ca
import numpy as np
import pytest
from support.cases.core import warm
from support.cases.nlp import CASES, hock_schittkowski, parts, solved
from support.judges.kkt import Judge
from support.problems.published import HS

from casadi_hybrid import InputError, Problem, Result, Solver, nlpsol

# Bounds of every kind, equations, many variables; each solved well within its tolerance.
CHOSEN = [q for q in HS if q.number in (3, 21, 24, 35, 43, 65, 71, 76, 80, 100, 112, 113, 118)]


def check_working_set(result: Result, bounds: dict[str, np.ndarray]) -> None:
    """Assert that the working set names the sides that values and multipliers are on."""
    assert not result.working_set.x.flags.writeable
    for kind, values, lam in (("x", result.x, result.lam_x), ("g", result.g, result.lam_g)):
        sides = getattr(result.working_set, kind)
        low, high = bounds[f"lb{kind}"], bounds[f"ub{kind}"]
        limit = np.select([sides == -1, sides == 1], [low, high], values)
        assert ((sides == 2) == (low == high)).all()
        assert np.abs(values - limit).max(initial=0.0) <= 1e-4
        assert np.abs(lam[sides == 0]).max(initial=0.0) <= 1e-4
        assert ((lam * sides)[sides != 2] >= 0).all()


def test_changed_bounds_take_few_steps() -> None:
    """Every finite bound moved by up to 1e-4: the steps of all problems, warm against cold."""
    draws = np.random.default_rng(7)
    cold, warm_steps = [], []
    for problem in CHOSEN:
        nlp, call = parts(problem.build())
        bounds = {key: np.asarray(call[key], float).ravel() for key in call}
        solver = nlpsol("solver", "hybrid", nlp)
        solver(x0=problem.x0, **bounds)
        first = solver.result
        check_working_set(first, bounds)
        for kind in "xg":
            shift = 1e-4 * draws.uniform(-1.0, 1.0, bounds[f"lb{kind}"].size)
            bounds |= {key: bounds[key] + shift for key in (f"lb{kind}", f"ub{kind}")}
        solver(x0=problem.x0, **bounds)
        f = solver.result.f
        cold.append(solver.result.iterations)
        assert solver.result.success
        solver(warm_start=first, **bounds)
        warm_steps.append(solver.result.iterations)
        assert solver.result.success
        assert solver.result.f <= f + 1e-5 * max(1.0, abs(f))
    assert np.median(warm_steps) <= 2
    assert sum(warm_steps) <= 0.3 * sum(cold)


def test_arguments_go_before_the_warm_start() -> None:
    nlp, call = CASES["parameters"]
    solver = solved(nlp, **call)
    first = solver.result
    rest = {key: value for key, value in call.items() if key not in ("p", "x0")}
    answer = solver(p=[2.2, 2.9], warm_start=first, **rest)
    assert solver.result.success
    assert solver.result.x0.tolist() == first.x.tolist()
    assert solver.result.p.tolist() == [2.2, 2.9]
    assert Judge(nlp).kkt(answer, {"p": [2.2, 2.9], **rest}) <= 1e-6
    solver(p=[2.2, 2.9], warm_start=first, x0=[0.5, 0.25], lam_g0=0, **rest)
    assert solver.result.success
    assert solver.result.x0.tolist() == [0.5, 0.25]


def test_wrong_warm_start_is_refused() -> None:
    nlp, call = CASES["mixed"]
    solver = nlpsol("s", "hybrid", nlp)
    other = solved(CASES["bounds"][0])
    x = ca.SX.sym("x")
    equality = Solver(Problem(x=x, f=x, h=x - 1)).solve(0)
    for wrong in (other.result, equality, {"x": 1}):
        with pytest.raises(InputError, match=r"warm_start|variables"):
            solver(**call, warm_start=wrong)


ROWS = [[[1], [1]], [[1], [2]], [[1], [3]], [[1, 0], [0, 1], [1, -2]]]


@pytest.mark.parametrize("multiples", ROWS, ids=str)
def test_dependent_rows_keep_least_multipliers(multiples: list[list[float]]) -> None:
    """min ‖y − a‖² s.t. rows A y = b, several times: y = a − Aᵀμ, 2μ = Mᵀλ."""
    M = np.array(multiples)
    A, a = np.array([[1.3, -0.7, 0.4], [0.0, 0.5, -1.1]])[: M.shape[1]], np.array([1.0, 2, 3])
    y = ca.SX.sym("y", 3)
    nlp = {"x": y, "f": ca.sumsqr(y - a), "g": ca.mtimes(ca.DM(M @ A), y)}
    solver, before = nlpsol("s", "hybrid", nlp), {}
    for b in np.linspace(0.1, 3, 30):
        rows = M @ np.full(M.shape[1], b)
        answer = solver(lbg=rows, ubg=rows, **before)
        assert solver.result.success
        if before:
            mu = np.linalg.solve(A @ A.T, A @ a - b)
            assert solver.result.iterations <= 1
            assert answer["x"].full().ravel() == pytest.approx(a - A.T @ mu, abs=1e-8)
            assert M.T @ answer["lam_g"].full().ravel() == pytest.approx(2 * mu, abs=1e-6)
            assert np.abs(solver.result.lam_g).max() < 10
        before = {"warm_start": solver.result}


@pytest.mark.parametrize("size", [1e4, 1e9, 1e13, 1e15, 1e17])
def test_multipliers_that_cancel_prove_nothing(size: float) -> None:
    """Given along the null space of two equal rows they leave no residual, and prove nothing."""
    y, row, a = ca.SX.sym("y", 3), np.array([1.3, -0.7, 0.4]), np.array([1.0, 2, 3])
    nlp = {"x": y, "f": ca.sumsqr(y - a), "g": ca.mtimes(ca.DM([row, row]), y)}
    solver = nlpsol("s", "hybrid", nlp)
    found = solver(x0=[1 / 1.3, 0, 0], lam_g0=[size, -size], lbg=1, ubg=1)
    assert solver.result.success
    right = a - row * (a @ row - 1) / (row @ row)
    assert found["x"].full().ravel() == pytest.approx(right, abs=1e-6)


@pytest.mark.parametrize("tol", [1e-8, 1e-16])
def test_unattainable_tolerance_ends_soon(tol: float) -> None:
    """A tolerance that nothing meets, as do-mpc's example of a differentiator asks for."""
    x, p = ca.SX.sym("x", 4), ca.SX.sym("p")
    f = ca.sumsqr(ca.sin(x) - p * ca.DM([0.3, 0.1, -0.2, 0.7])) + 0.1 * ca.exp(x[0] * x[1])
    g = ca.vertcat(x[0] + x[1] ** 3, x[2] * x[3])
    nlp = {"x": x, "p": p, "f": f, "g": g}
    solver = nlpsol("s", "hybrid", nlp, {"tol": tol})
    bounds = {"lbg": [0.1, -0.1], "ubg": [0.1, 9.0], "lbx": -2, "ubx": [2, 2, 2, 0.5]}
    found = solver(x0=0.2, p=1.0, **bounds)
    first = solver.result
    found = solver(**warm(found), p=1.05, **bounds)
    assert first.success
    assert solver.result.success
    assert solver.result.iterations <= 6
    assert Judge(nlp).kkt(found, {"p": 1.05, **bounds}) <= max(tol, 1e-12)


def test_working_sets_do_not_cycle() -> None:
    """min ½xᵀHx − pᵀx, x ≥ 0: at p = (2, 1, −3) sets changed all at once come back to themselves.

    From whatever set, one step on the right one solves a quadratic program.
    """
    H = ca.DM([[4, 5, -5], [5, 9, -5], [-5, -5, 7]])
    x, p = ca.SX.sym("x", 3), ca.SX.sym("p", 3)
    solver = nlpsol("s", "hybrid", {"x": x, "p": p, "f": 0.5 * ca.dot(x, H @ x) - ca.dot(p, x)})
    for before in itertools.product((-3, 2), repeat=3):
        solver(p=before, lbx=0)
        solver(p=[2, 1, -3], lbx=0, warm_start=solver.result)
        assert solver.result.success
        assert solver.result.iterations <= 1


def test_slow_first_steps_are_followed() -> None:
    """Newton's method on 0.009 arctan(x) = 0 from 1.3: 1.3, −1.16, 0.94, −0.54, 0.1, …

    The second and the third step leave more than half of the error of the first.
    """
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    f = x[0] + (x[1] - 2) ** 2
    solver = nlpsol("solver", "hybrid", {"x": x, "p": p, "f": f, "g": 0.009 * ca.atan(x[0] - p)})
    bounds = {"ubx": [ca.inf, 1], "lbg": 0, "ubg": 0}
    found = solver(x0=[0.1, 0], p=0, **bounds)
    found = solver(p=-1.3, **bounds, **warm(found))
    assert solver.result.success
    assert float(found["x"][0]) == pytest.approx(-1.3, abs=1e-9)
    stats = solver.stats()
    assert stats["iter_count"] <= 6  # 10 where the first of these steps ends it
    assert max(stats["iterations"]["mu"]) < 1e-5


def jumped(radius: float):
    """From the solution on the unit circle, with its multipliers, to that on another circle."""
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    waves = ca.cos(4 * x[0]) + 0.1 * (x[1] - 1) ** 2
    solver = nlpsol("solver", "hybrid", {"x": x, "p": p, "f": waves, "g": ca.sumsqr(x) - p**2})
    first = solver(x0=[0.3, 0.4], p=1, lbg=0, ubg=0)
    solver(x0=first["x"], lam_x0=first["lam_x"], lam_g0=first["lam_g"], p=radius, lbg=0, ubg=0)
    return solver


def test_first_step_far_outside_is_rejected() -> None:
    """The step would lead to f = −0.355 on the circle of radius √3; the least is −0.971."""
    near, far = jumped(np.sqrt(1.5)), jumped(np.sqrt(3.0))
    assert near.result.success
    assert near.result.x[1] < 0.0  # where the last one was
    assert max(near.stats()["iterations"]["mu"]) < 1e-5
    assert far.result.success
    assert far.result.f == pytest.approx(-0.97053, abs=1e-5)
    assert max(far.stats()["iterations"]["mu"]) == 1e-3  # the barrier, from far away


def test_barrier_begins_wide_far_away() -> None:
    """A path around a disc that was elsewhere: with a small ν iterates would hug its old edge.

    Where the Lagrangian bends downwards on the way, ν is that of a cold start.
    """
    X, p = ca.MX.sym("X", 2, 20), ca.MX.sym("p", 2)
    corners = ca.horzcat(ca.DM([0, 0]), X, ca.DM([4, 0]))
    g = ca.vec((X[0, :] - p[0]) ** 2 + (X[1, :] - p[1]) ** 2)
    nlp = {"x": ca.vec(X), "p": p, "f": ca.sumsqr(corners[:, 1:] - corners[:, :-1]), "g": g}
    solver = nlpsol("path", "hybrid", nlp)
    straight = np.vstack([np.linspace(0, 4, 22)[1:-1], np.zeros(20)]).T.ravel()
    known = warm(solver(x0=straight, p=[1, -0.9], lbg=1))
    barriers = []
    for place in ([1.01, -0.9], [3, 0.1], [1, 0.1]):
        solver(p=place, lbg=1, **known)
        assert solver.result.success
        barriers.append(solver.stats()["iterations"]["mu"])
    near, far, _ = barriers
    assert max(near) < 1e-5
    assert far[1] == 1e-3  # the first row is that of the active set
    assert max(barriers[1]) == max(barriers[2]) == 0.1


def test_feasible_start_beats_infeasible_iterates() -> None:
    """No active set is tried, as f bends downwards, and each step leaves the curve x₁ = x₀²."""
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "f": ca.cos(x[0]) - x[1] ** 2, "g": x[1] - x[0] ** 2}
    solver = nlpsol("s", "hybrid", nlp, {"max_iter": 2})
    solver(x0=[1, 1], lam_x0=[0.3, 0], lam_g0=2, lbx=-2, ubx=2, lbg=0, ubg=0)
    found = solver.result
    assert (found.iterations, found.success) == (2, False)
    np.testing.assert_array_equal(found.x, [1, 1])
    assert found.residuals.feasibility == 0.0
    assert abs(found.last["x0"][1] - found.last["x0"][0] ** 2) > 1e-6


@pytest.mark.parametrize("door", ["numbers", "last", "warm_start"])
def test_short_calls_add_up_to_a_long_one(door: str) -> None:
    x = ca.SX.sym("x", 3)
    rows = ca.vertcat(x[0] + x[1] * ca.exp(x[2]) + x[2] ** 3 - 2, ca.sin(x[0]) - x[1])
    flat = {"x": x, "f": ca.sumsqr(x), "g": rows}  # at the start ∇f is 0
    problems = [(flat, {"x0": np.zeros(3), "lbg": 0, "ubg": 0})]
    for nlp, call in (*problems, *map(hock_schittkowski, (85, 89, 111, 116, 117))):
        numbers, bounds = {"x0": call["x0"]}, {key: call[key] for key in call if key != "x0"}
        solver, short = nlpsol("s", "hybrid", nlp), nlpsol("s", "hybrid", nlp, {"max_iter": 4})
        most, spent = 1.5 * solver.within(**call).iterations, 0
        before = {}
        while not spent or (spent <= most and not short.result.success):
            answer = short(**bounds, **(before or numbers))
            spent += short.result.iterations
            assert nlp is not flat or short.result.residuals.feasibility < 1.0  # 2 at the start
            numbers = short.stats()["last"]
            if door == "numbers":
                numbers = warm(answer)
            before = {"warm_start": short.result} if door == "warm_start" else {}
        assert short.result.success
        assert spent <= most
