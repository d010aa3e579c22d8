"""Warm solves: loops judged by their KKT conditions, and what a call may be given."""

import multiprocessing
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.core import CASES, OUTPUTS, Case, assert_kkt, bits, solved, warm

from casadi_hybrid import Problem, nlpsol
from casadi_hybrid.solver.nlpsol.solver import NlpSolver
from casadi_hybrid.utils.arrays import memory_of

INF = np.inf


def made(case: Case, **options: Any) -> NlpSolver:
    return nlpsol("solver", "hybrid", case.nlp, {**case.options, **options})


def ready(case: Case, **options: Any) -> tuple[NlpSolver, dict[str, Any]]:
    """A solver that has solved twice, and the arguments of a solve that the engine does."""
    solver = made(case, **options)
    outputs = solver(**case.numbers)
    arguments = {**case.numbers, **warm(outputs)}
    solver(**arguments)
    solver(**arguments)
    return solver, arguments


def same_numbers(found: Any, expected: Any, rtol: float = 1e-9) -> None:
    for name in OUTPUTS:
        one, other = np.array(found[name]), np.array(expected[name])
        assert one.shape == other.shape, name
        size = np.abs(other).max(initial=1.0)
        np.testing.assert_allclose(one, other, rtol=0, atol=rtol * size, err_msg=name)


# --- loops ---------------------------------------------------------------------------------------


def test_a_working_set_that_is_right_is_factored_once() -> None:
    """Bounds and rows on both sides; by multipliers alone the same set is guessed."""
    x, p = ca.SX.sym("x", 40), ca.SX.sym("p")
    f = ca.sumsqr(x - 3 * p * np.cos(np.arange(40))) + 0.01 * ca.sum1(x**4)
    nlp = {"x": x, "p": p, "f": f, "g": ca.vertcat(ca.sum1(x[:20]), ca.sum1(x[20:]))}
    solver = nlpsol("solver", "hybrid", nlp)
    ends = {"lbx": -1, "ubx": 1, "lbg": [2, -INF], "ubg": [INF, -2]}
    outputs, active = solver(p=1, **ends), solver.result.working_set
    assert min(np.count_nonzero(active.x == side) for side in (-1, 0, 1)) > 1
    assert active.g.tolist() == [-1, 1]
    for known in ({"warm_start": solver.result}, warm(outputs)):
        solver(p=1.0001, **known, **ends)
        assert solver.result.iterations == 1
        assert solver._runner.last().said.factors == 1


@pytest.mark.parametrize("away", [1e-1, 1e-3, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7])
def test_a_bound_that_contradicts_a_row_leaves_the_set(away: float) -> None:
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
def test_a_loop(name: str) -> None:
    """Each solve meets the conditions, from the multipliers, or the result, of the one before."""
    case = CASES[name]()
    solver, by_result = made(case), made(case)
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


@pytest.mark.parametrize("name", sorted(CASES))
def test_at_a_solution_there_is_no_step(name: str) -> None:
    """From its multipliers, and from its result, also by a solver that is new."""
    solver, arguments = ready(CASES[name]())
    outputs = solver(**arguments)
    known = {**dict.fromkeys(("x0", "lam_x0", "lam_g0")), "warm_start": solver.result}
    for one, start in ((solver, warm(outputs)), (solver, known), (made(CASES[name]()), known)):
        again, stats = one(**{**arguments, **start}), one.stats()
        assert stats["iter_count"] == 0
        assert stats["success"]
        assert all(len(numbers) == 1 for numbers in stats["iterations"].values())
        same_numbers(again, outputs)


@pytest.mark.parametrize("most", [0, 1, 2, 2**31 + 5])
def test_a_limit_of_steps(most: int) -> None:
    case = CASES["hs071"]()
    outputs = made(case)(**case.numbers)
    arguments = {**case.numbers, **warm(outputs), "p": np.array([1.03])}
    whole, solver = made(case), made(case, max_iter=most)
    whole(**arguments)
    steps = whole.result.iterations
    for _ in range(2):
        solver(**arguments)
        assert solver.result.iterations == min(most, steps)
        # The last step of a solve may only make its residuals less.
        assert solver.result.success or most < steps
        if not solver.result.success:
            assert solver.result.stop.name == "ITERATION_LIMIT"


@pytest.mark.parametrize("tol", [1e-4, 1e-12, 1e-15])
def test_other_tolerances(tol: float) -> None:
    case = CASES["with_rows"]()
    outputs = made(case)(**case.numbers)
    numbers = {**case.numbers, "p": case.numbers["p"] + 0.03}
    solver = made(case, tol=tol)
    found = solver(**numbers, **{key: warm(outputs)[key] for key in ("lam_x0", "lam_g0")})
    if tol > 1e-15:
        assert solver.result.success
    kkt = {key: np.array(value).ravel() for key, value in found.items()}
    assert_kkt((case.nlp, numbers), kkt, max(1e-6, 10 * tol))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        *(("steep", numbers) for numbers in (
            {"x0": 1}, {"x0": True}, {"x0": np.float64(0.5)}, {"x0": np.int64(1)},
            {"x0": [1, 0, 1, 0]}, {"x0": np.array([1, 0, 1, 0])}, {"x0": ca.DM(0.5)},
            {"x0": ca.DM(1, 1)}, {"p": 1}, {"p": None}, {"lbx": None}, {"x0": None},
            {"lbg": None, "ubg": None}, {"lam_x0": None}, {"x0": ca.DM(4, 1)},
            {"x0": np.array(0.5)},
        )),
        *(("no_parameter", {"p": p}) for p in (3.0, ca.DM(3.0), [], ca.DM(0, 1), ca.DM(), np.nan)),
        *(("box", rows) for rows in (
            {}, {"lbg": 0.0}, {"lbg": ca.DM(0, 1)}, {"lam_g0": ca.DM()}, {"ubg": []},
        )),
    ],
    ids=str,
)  # fmt: skip
def test_single_numbers_and_defaults_are_as_at_first(name: str, changes: dict[str, Any]) -> None:
    solver, arguments = ready(CASES[name]())
    expected = made(CASES[name]())(**{**arguments, **changes})
    same_numbers(solver(**{**arguments, **changes}), expected)


def test_two_solvers_of_one_problem_keep_their_options() -> None:
    case = CASES["hs071"]()
    problem = Problem.from_nlp(case.nlp)
    rough, fine = (
        nlpsol(f"tol{k}", "hybrid", problem, {"tol": t, "residual_tol": 1e2 * t})
        for k, t in enumerate((1e-2, 1e-12))
    )
    outputs = fine(**case.numbers)
    rough(**case.numbers)
    arguments = {**case.numbers, **warm(outputs), "p": np.array([1.001])}
    steps = {rough: set(), fine: set()}
    for _ in range(3):
        for solver in (rough, fine):
            solver(**arguments)
            steps[solver].add(solver.stats()["iter_count"])
            assert solver.result.tolerances == solver._runner.limits.tolerances
    assert len(steps[rough]) == len(steps[fine]) == 1
    assert steps[rough] < steps[fine] or min(steps[rough]) < min(steps[fine])


def test_a_result_stays_what_it_was() -> None:
    """Also where it is made after further calls have used the same memory."""
    solver, arguments = ready(CASES["with_rows"]())
    solver(**arguments)
    run = solver._runner.last()
    expected = solver(**arguments)
    solver(**{**arguments, "p": np.array([0.9, 0.7, 0.5])})
    np.testing.assert_array_equal(run.result.x, np.array(expected["x"]).ravel())
    np.testing.assert_array_equal(run.result.lam_g, np.array(expected["lam_g"]).ravel())


def _in_child(solver: NlpSolver, arguments: dict[str, Any], pipe: Any) -> None:
    outputs = {name: np.array(value) for name, value in solver(**arguments).items()}
    pipe.send((outputs, solver.result.iterations))
    pipe.close()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_goes_on() -> None:
    solver, arguments = ready(CASES["with_rows"]())
    expected = solver(**arguments)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_in_child, args=(solver, arguments, there))
    child.start()
    assert here.poll(30)
    found, steps = here.recv()
    child.join()
    assert bits(found) == bits(expected)
    assert steps == solver.result.iterations


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_the_room_of_a_large_problem_is_of_its_process_alone() -> None:
    room = memory_of(1 << 20, np.float64)
    room[0] = 1.0
    child = multiprocessing.get_context("fork").Process(target=room.fill, args=(2.0,))
    child.start()
    child.join()
    assert (child.exitcode, room[0]) == (0, 1.0)


@pytest.mark.parametrize("changes", [{"x0": np.array([-1.0, 0.3])}, {"p": -1.0}], ids=str)
def test_a_function_that_is_not_defined_at_the_start_or_nowhere(changes: dict[str, Any]) -> None:
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    nlp = {"x": x, "p": p, "f": -ca.log(x[0]) + ca.sumsqr(x - p), "g": x[0] + x[1] + ca.log(p)}
    case = Case(nlp, {"x0": 1.0, "p": 1.0, "ubg": 1.5}, None)
    solver, arguments = ready(case)
    arguments |= changes
    other = made(case)
    expected = other(**arguments)
    for _ in range(2):
        found = solver(**arguments)
        assert not solver.result.success
        assert solver.result.explain() == other.result.explain()
        assert str(solver.result.error) == str(other.result.error)
        assert solver.stats()["return_status"] == other.stats()["return_status"]
        same_numbers(found, expected)


def chained(nowhere: bool, steep: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """A chain; with variables that stand in no row, or with a row of its own for large numbers."""
    x, u, p, e = ca.SX.sym("x", 21), ca.SX.sym("u", 20), ca.SX.sym("p"), ca.SX.sym("e", 3)
    rows = [x[0] - p, x[1:] - x[:-1] - 0.1 * (u - x[:-1] ** 3), 1e4 * x[1:] + x[:-1]]
    f = ca.sumsqr(x) + 0.1 * ca.sumsqr(u)
    equal, inf = np.zeros(21), np.inf
    low, high = [equal, np.full(20, -inf)], [equal, np.full(20, 9e3)]
    if steep:
        rows.append(1e3 * e - ca.vertcat(1, 2, 3) * 1e8)
        low.append(np.zeros(3))
        high.append(np.zeros(3))
    nlp = {"x": ca.vertcat(x, u, e) if nowhere or steep else ca.vertcat(x, u), "p": p, "f": f}
    bounds = np.concatenate((np.full(21, -inf), np.full(20, -1.0), np.zeros(3)))
    upper = np.concatenate((np.full(21, inf), np.ones(20), np.full(3, inf)))
    numbers = {"lbg": np.concatenate(low), "ubg": np.concatenate(high), "p": 0.5, "x0": 2.5}
    size = nlp["x"].numel()
    return {**nlp, "g": ca.vertcat(*rows)}, {**numbers, "lbx": bounds[:size], "ubx": upper[:size]}


def test_a_variable_that_stands_nowhere_stays_where_it_is() -> None:
    """Where a barrier pushed it, it went as far as 1e5, and its size hid what rounding left."""
    nlp, numbers = chained(nowhere=True, steep=False)
    alone, fewer = chained(nowhere=False, steep=False)
    solver, plain = nlpsol("solver", "hybrid", nlp), nlpsol("plain", "hybrid", alone)
    found, wanted = solver(**numbers), plain(**fewer)
    for p in (0.5, 0.6, 0.7):
        arguments = {**numbers, **warm(found), "p": p}
        found, wanted = solver(**arguments), plain(**{**fewer, **warm(wanted), "p": p})
        stats = solver.stats()
        assert stats["success"]
        assert stats["iter_count"] == plain.stats()["iter_count"]
        np.testing.assert_array_equal(found["x"][41:], np.full((3, 1), 2.5))
        np.testing.assert_array_equal(found["lam_x"][41:], np.zeros((3, 1)))
        np.testing.assert_allclose(found["x"][:41], wanted["x"], rtol=1e-9, atol=1e-9)


def test_what_rounding_explains_is_asked_row_by_row() -> None:
    """Large numbers in some rows say nothing of the others."""
    nlp, numbers = chained(nowhere=False, steep=True)
    solver = nlpsol("solver", "hybrid", nlp)
    found = solver(**numbers)
    for p in (0.6, 0.7):
        found = solver(**{**numbers, **warm(found), "p": p})
        stats = solver.stats()
        assert stats["success"]
        assert stats["iter_count"] > 1
        states, controls = np.split(found["x"].full().ravel(), [21, 41])[:2]
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
def test_where_active_sets_give_up_the_barrier_goes_on(nlp: Any, numbers: dict[str, Any]) -> None:
    """And the start is listed once."""
    solver, found = solved((nlp, numbers))
    stats = solver.stats()
    assert stats["success"]
    assert stats["iterations"]["iter"] == [*range(stats["iter_count"] + 1)]
    assert_kkt((nlp, numbers), found)


@pytest.mark.parametrize("large", [1e6, 1e8, 1e10])
def test_implausible_multipliers_cost_few_steps(large: float) -> None:
    x = ca.SX.sym("x", 3)
    g = ca.vertcat(x[0] * x[1] - 2, ca.sumsqr(x))
    solver = nlpsol("s", "hybrid", {"x": x, "f": ca.sumsqr(x - 1) + ca.exp(x[0]), "g": g})
    given = {"x0": 3, "lbg": 0, "ubg": [0, 6], "lbx": 0.1, "ubx": 5}
    solver(**given)
    alone = solver.stats()["iter_count"]
    solver(**given, lam_g0=large, lam_x0=-large)
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] <= alone + 2
