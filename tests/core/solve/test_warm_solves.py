"""Warm solves: loops judged by their KKT conditions, and arguments of every kind."""

import multiprocessing
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.core import CASES, OUTPUTS, Case, assert_kkt, bits, engine_answer, solved, warm

from casadi_hybrid import Problem, nlpsol
from casadi_hybrid.solver.nlpsol.solver import NlpSolver
from casadi_hybrid.utils.arrays import memory_of

INF = np.inf


def solver_of(case: Case, **options: Any) -> NlpSolver:
    return nlpsol("solver", "hybrid", case.nlp, options)


def ready(case: Case, **options: Any) -> tuple[NlpSolver, dict[str, Any]]:
    """A solver that has solved twice, and the arguments of a warm solve."""
    solver = solver_of(case, **options)
    arguments = {**case.numbers, **warm(solver(**case.numbers))}
    solver(**arguments)
    solver(**arguments)
    return solver, arguments


def same_numbers(outputs: Any, expected: Any, rtol: float = 1e-9) -> None:
    for name in OUTPUTS:
        one, other = np.array(outputs[name]), np.array(expected[name])
        assert one.shape == other.shape, name
        size = np.abs(other).max(initial=1.0)
        np.testing.assert_allclose(one, other, rtol=0, atol=rtol * size, err_msg=name)


def test_right_working_set_is_factored_once() -> None:
    """Bounds and rows on both sides; multipliers alone name the same set."""
    x, p = ca.SX.sym("x", 40), ca.SX.sym("p")
    f = ca.sumsqr(x - 3 * p * np.cos(np.arange(40))) + 0.01 * ca.sum1(x**4)
    problem = Problem(x=x, p=p, f=f, g=ca.vertcat(ca.sum1(x[:20]), ca.sum1(x[20:])))
    solver = nlpsol("solver", "hybrid", problem)
    ends = {"lbx": -1, "ubx": 1, "lbg": [2, -INF], "ubg": [INF, -2]}
    outputs, active = solver(p=1, **ends), solver.result.working_set
    assert min(np.count_nonzero(active.x == side) for side in (-1, 0, 1)) > 1
    assert active.g.tolist() == [-1, 1]
    for known in ({"warm_start": solver.result}, warm(outputs)):
        solver(p=1.0001, **known, **ends)
        assert solver.result.iterations == 1
        assert engine_answer(problem).factors == 1


@pytest.mark.parametrize("away", [1e-1, 1e-3, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7])
def test_contradicting_bound_leaves_the_set(away: float) -> None:
    """min 100 x_2 with x_2 = 1000 x_1, x_1 = p, x_1 >= 1: at p = 1 the bound carries the price 1e5
    and row and bound depend on each other. However near p is, two steps suffice."""
    x, p = ca.MX.sym("x", 2), ca.MX.sym("p")
    nlp = {"x": x, "p": p, "f": 100 * x[1], "g": ca.vertcat(x[1] - 1e3 * x[0], x[0] - p)}
    solver = nlpsol("solver", "hybrid", nlp)
    start = {"x0": [1, 1000], "lam_x0": [-1e5, 0], "lam_g0": [-100, 0]}
    found = solver(**start, p=1 + away, lbx=[1, -ca.inf], lbg=0, ubg=0)
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] <= 2
    for name, expected in (("x", [1 + away, 1e3 * (1 + away)]), ("lam_g", [-100, -1e5])):
        np.testing.assert_allclose(np.array(found[name]).ravel(), expected, rtol=1e-9)


@pytest.mark.parametrize("name", sorted(CASES))
def test_loops_stay_warm(name: str) -> None:
    """Each solve meets the conditions, from the multipliers, or the result, of the one before."""
    case = CASES[name]()
    solver, by_result = solver_of(case), solver_of(case)
    outputs = solver(**case.numbers)
    by_result(**case.numbers)
    draws, numbers, steps = np.random.default_rng(1), case.numbers, []
    for _ in range(12):
        numbers = case.moved(numbers, outputs["x"], draws)
        outputs = solver(**{**numbers, **warm(outputs)})
        result = solver.result
        assert result.success
        found = {key: np.array(value).ravel() for key, value in outputs.items()}
        assert_kkt((case.nlp, numbers), found)
        for key in ("x", "f", "g", "lam_x", "lam_g"):
            np.testing.assert_array_equal(getattr(result, key), found[key].squeeze())
        assert result.history.f[-1] == result.f
        assert len(solver.stats()["iterations"]["obj"]) == result.iterations + 1
        steps.append(result.iterations)
        again = by_result(**numbers | {"x0": None}, warm_start=by_result.result)
        same_numbers(again, outputs, 1e-6)
    assert np.median(steps) <= 4
    # At a solution there is no step, also by a solver that is new.
    known = {**numbers, "x0": None, "warm_start": solver.result}
    starts = (solver, {**numbers, **warm(outputs)}), (solver, known), (solver_of(case), known)
    for chosen, arguments in starts:
        same_numbers(chosen(**arguments), outputs)
        stats = chosen.stats()
        assert (stats["iter_count"], stats["success"]) == (0, True)
        assert all(len(values) == 1 for values in stats["iterations"].values())


def test_solvers_of_one_problem_keep_options() -> None:
    problem, case = Problem.from_nlp(CASES["hs071"]().nlp), CASES["hs071"]()
    options = [{"tol": tol, "residual_tol": 1e2 * tol} for tol in (1e-2, 1e-12)]
    solvers = [nlpsol("solver", "hybrid", problem, chosen) for chosen in options]
    arguments = {**case.numbers, **warm(solvers[1](**case.numbers)), "p": np.array([1.001])}
    counts = []
    for solver, chosen in 3 * [*zip(solvers, options, strict=True)]:
        solver(**arguments)
        assert solver.result.tolerances.feasibility == chosen["residual_tol"]
        counts.append(solver.stats()["iter_count"])
    assert counts == 3 * counts[:2]
    assert counts[0] < counts[1]


EMPTY = [], ca.DM(), ca.DM(0, 1)
ARGUMENTS = {
    "steep": [{"x0": x0} for x0 in (1, True, np.float64(0.5), ca.DM(0.5), ca.DM(1, 1), ca.DM(4, 1))]
    + [{name: None} for name in ("x0", "p", "lbx", "lam_x0")]
    + [{"p": 1}, {"lbg": None, "ubg": None}],
    "no_parameter": [{"p": p} for p in (3.0, ca.DM(3.0), np.nan, *EMPTY)],
    "box": [{}, {"lbg": 0.0}, {"lbg": ca.DM(0, 1)}, {"lam_g0": ca.DM()}, {"ubg": []}],
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_are_read_as_at_first(name: str) -> None:
    """Scalars, defaults and empty values, by a solver that has solved before."""
    solver, arguments = ready(CASES[name]())
    for changes in ARGUMENTS[name]:
        expected = solver_of(CASES[name]())(**{**arguments, **changes})
        same_numbers(solver(**{**arguments, **changes}), expected)


def test_results_outlive_further_solves() -> None:
    """Any number of steps is a limit, also one that is no int of C."""
    solver, arguments = ready(CASES["with_rows"](), max_iter=2**31 + 5)
    outputs = solver(**arguments)
    result = solver.result
    assert result.success
    solver(**{**arguments, "p": np.array([0.9, 0.7, 0.5])})
    np.testing.assert_array_equal(result.x, np.array(outputs["x"]).ravel())
    np.testing.assert_array_equal(result.lam_g, np.array(outputs["lam_g"]).ravel())
    assert result.history.f[-1] == float(outputs["f"])


# --- processes ------------------------------------------------------------------------------------


def solve_in_child(solver: NlpSolver, arguments: dict[str, Any], room: Any, pipe: Any) -> None:
    room.fill(2.0)
    pipe.send((bits(solver(**arguments)), solver.result.iterations))
    pipe.close()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_child_goes_on() -> None:
    """The large memory of a solver belongs to one process alone."""
    solver, arguments = ready(CASES["with_rows"]())
    expected, room = bits(solver(**arguments)), memory_of(1 << 20, np.float64)
    room[0] = 1.0
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=solve_in_child, args=(solver, arguments, room, there))
    child.start()
    assert here.poll(30)
    assert here.recv() == (expected, solver.result.iterations)
    child.join()
    assert (child.exitcode, room[0]) == (0, 1.0)


# --- warm starts that fail ------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{"x0": np.array([-1.0, 0.3])}, {"p": -1.0}], ids=str)
def test_undefined_functions_are_reported(changes: dict[str, Any]) -> None:
    """At the start alone, or nowhere defined: as by a solver that is new."""
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    nlp = {"x": x, "p": p, "f": -ca.log(x[0]) + ca.sumsqr(x - p), "g": x[0] + x[1] + ca.log(p)}
    case = Case(nlp, {"x0": 1.0, "p": 1.0, "ubg": 1.5}, None)
    solver, arguments = ready(case)
    other = solver_of(case)
    expected = other(**arguments | changes)
    for _ in range(2):
        outputs = solver(**arguments | changes)
        assert not solver.result.success
        assert solver.result.explain() == other.result.explain()
        assert str(solver.result.error) == str(other.result.error)
        assert solver.stats()["return_status"] == other.stats()["return_status"]
        same_numbers(outputs, expected)


def chained(more: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """A chain of 21 states and 20 controls; three variables more, in a "steep" row or "nowhere"."""
    x, u, p, e = ca.SX.sym("x", 21), ca.SX.sym("u", 20), ca.SX.sym("p"), ca.SX.sym("e", 3)
    rows = [x[0] - p, x[1:] - x[:-1] - 0.1 * (u - x[:-1] ** 3), 1e4 * x[1:] + x[:-1]]
    low, high = np.r_[np.zeros(21), np.full(20, -INF)], np.r_[np.zeros(21), np.full(20, 9e3)]
    if more == "steep":
        rows.append(1e3 * e - ca.vertcat(1, 2, 3) * 1e8)
        low, high = np.r_[low, np.zeros(3)], np.r_[high, np.zeros(3)]
    variables = ca.vertcat(x, u, e) if more else ca.vertcat(x, u)
    nlp = {"x": variables, "p": p, "f": ca.sumsqr(x) + 0.1 * ca.sumsqr(u), "g": ca.vertcat(*rows)}
    size = variables.numel()
    lbx = np.r_[np.full(21, -INF), np.full(20, -1.0), np.zeros(3)][:size]
    ubx = np.r_[np.full(21, INF), np.ones(20), np.full(3, INF)][:size]
    return nlp, {"lbg": low, "ubg": high, "lbx": lbx, "ubx": ubx, "p": 0.5, "x0": 2.5}


def test_variable_that_stands_nowhere_stays() -> None:
    """A barrier would push it to 1e5, and its size would hide what rounding left."""
    (nlp, numbers), (alone, fewer) = chained("nowhere"), chained()
    solver, plain = nlpsol("solver", "hybrid", nlp), nlpsol("plain", "hybrid", alone)
    outputs, expected = solver(**numbers), plain(**fewer)
    for p in (0.5, 0.6, 0.7):
        outputs = solver(**{**numbers, **warm(outputs), "p": p})
        expected = plain(**{**fewer, **warm(expected), "p": p})
        assert solver.stats()["success"]
        assert solver.stats()["iter_count"] == plain.stats()["iter_count"]
        np.testing.assert_array_equal(outputs["x"][41:], np.full((3, 1), 2.5))
        np.testing.assert_array_equal(outputs["lam_x"][41:], np.zeros((3, 1)))
        np.testing.assert_allclose(outputs["x"][:41], expected["x"], rtol=1e-9, atol=1e-9)


def test_rounding_is_judged_row_by_row() -> None:
    """Large numbers in some rows excuse nothing in the others."""
    nlp, numbers = chained("steep")
    solver = nlpsol("solver", "hybrid", nlp)
    outputs = solver(**numbers)
    for p in (0.6, 0.7):
        outputs = solver(**{**numbers, **warm(outputs), "p": p})
        assert solver.stats()["success"]
        assert solver.stats()["iter_count"] > 1
        states, controls = np.split(outputs["x"].full().ravel(), [21, 41])[:2]
        step = states[:-1] + 0.1 * (controls - states[:-1] ** 3)
        np.testing.assert_allclose(states[1:], step, atol=1e-6)


X = ca.SX.sym("x", 2)
DOMAIN = {"x": X, "f": 1e2 * X[0] - ca.log(X[0]) + X[1] ** 2, "g": X[0] + X[1]}
POWER = {"x": X, "f": ca.fabs(X[0]) ** 1.5 + (X[0] - 1) ** 2 + X[1] ** 2, "g": X[0] + X[1]}
FLAT = {"x": X, "f": ca.sumsqr(X - 2) + X[0] * X[1], "g": X[0] ** 2 * X[1]}


@pytest.mark.parametrize(
    ("nlp", "numbers"),
    [
        # A full step leads to where a logarithm is not defined.
        (DOMAIN, {"x0": [2, 1], "lam_g0": -1.0, "lbg": 1}),
        (DOMAIN, {"x0": [1e-3, 1], "lam_g0": -1.0, "lbg": 1}),
        # The Hessian is not defined at the start.
        (POWER, {"x0": [0, 1], "lam_g0": -1.0, "lbg": 1}),
        # A row has no slope there, which is nothing special to the barrier method.
        (FLAT, {"x0": [0, 1], "lam_g0": -3.0, "lbg": 0.3, "ubg": 0.3, "lbx": -2, "ubx": 2}),
    ],
)
def test_barrier_follows_failed_active_sets(nlp: Any, numbers: dict[str, Any]) -> None:
    """The start is listed once."""
    solver, found = solved((nlp, numbers))
    stats = solver.stats()
    assert stats["success"]
    assert stats["iterations"]["iter"] == [*range(stats["iter_count"] + 1)]
    assert_kkt((nlp, numbers), found)
