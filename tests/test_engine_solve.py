"""One solve: its numbers with or without an observer, its result, Ctrl-C and limits of time."""

import os
import signal
import threading
from typing import Any

import casadi as ca
import numpy as np
import pytest
from engine_cases import CASES, needs_engine, warm

from casadi_hybrid import Problem, Solver, StopReason, nlpsol
from casadi_hybrid.basics.errors import Interrupted

CASE = CASES["hs071"]()
Numbers = dict[str, Any]


@pytest.fixture(autouse=True)
def core() -> None:
    needs_engine()


def problem() -> Problem:
    return Problem.from_nlp(CASE.nlp)


@pytest.mark.parametrize(
    "looks",
    [
        {"history": True}, {"log": 100}, {"callback": lambda progress: None},
        {"stopping": lambda progress: None},
    ],
    ids=lambda looks: next(iter(looks)),
)  # fmt: skip
@pytest.mark.parametrize("near", [False, True], ids=["cold", "warm"])
def test_who_looks_on_changes_no_bit(looks: Numbers, near: bool) -> None:
    first = Solver(problem()).solve(**CASE.numbers) if near else None
    test = looks.get("stopping")
    solver = Solver(problem(), stopping=[test]) if test else Solver(problem())
    numbers = {**CASE.numbers, "p": [1.02]}
    result = solver.solve(**numbers, warm_start=first, **({} if test else looks))
    alone = Solver(problem()).solve(**numbers, warm_start=first)
    assert result.success
    assert (result.engine, result.iterations) == ("c", alone.iterations)
    for name in ("x", "lam_x", "lam_g"):
        np.testing.assert_array_equal(getattr(result, name), getattr(alone, name))
    rows = np.searchsorted(alone.history.t, result.history.t)  # steps on a set are no iterates
    np.testing.assert_array_equal(result.history.f, alone.history.f[rows])
    assert result.history.t[-1] == result.iterations


def test_a_solve_under_a_limit_in_seconds() -> None:
    ample, none = (nlpsol("solver", "hybrid", CASE.nlp, {"max_time": t}) for t in (60.0, 1e-9))
    outputs = ample(**CASE.numbers)
    arguments = {**CASE.numbers, **warm(outputs), "p": [1.02]}
    found = ample(**arguments)
    assert ample.result.success
    assert len(ample.stats()["iterations"]["obj"]) == ample.stats()["iter_count"] + 1
    wanted = nlpsol("solver", "hybrid", CASE.nlp)(**arguments)
    np.testing.assert_array_equal(found["x"].full(), wanted["x"].full())
    none(**arguments)
    assert none.result.stop.name == "TIME_LIMIT"
    assert none.result.iterations == 0


def test_a_start_without_slope_that_the_active_sets_give_up_is_listed_once() -> None:
    """The barrier method goes on from there, and there is nothing special about such a row."""
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "f": ca.sumsqr(x - 2) + x[0] * x[1], "g": x[0] ** 2 * x[1]}
    solver = nlpsol("solver", "hybrid", nlp)
    numbers = {"x0": [0.0, 1.0], "lam_g0": -3.0, "lbg": 0.3, "ubg": 0.3, "lbx": -2, "ubx": 2}
    solver(**numbers)
    stats = solver.stats()
    assert stats["success"]
    assert stats["iterations"]["iter"] == [*range(stats["iter_count"] + 1)]


def test_statistics_of_a_warm_solve_say_what_its_result_says() -> None:
    solver = nlpsol("solver", "hybrid", CASE.nlp)
    outputs = solver(**CASE.numbers)
    solver(**{**CASE.numbers, **warm(outputs), "p": [1.02]})
    stats, result = solver.stats(), solver.result
    assert result.iterations > 1
    assert stats["n_call_nlp_f"] == result.evaluations["first"] > 0
    assert stats["n_call_nlp_hess_l"] == result.evaluations["second"]
    assert (stats["success"], stats["iter_count"]) == (result.success, result.iterations)
    for name in ("hessian", "engine", "kernel", "detail"):
        assert stats[name] == getattr(result, name)
    assert stats["stop_reason"] == result.stop.name
    assert stats["point_status"] == result.point.name
    assert stats["t_wall_total"] == result.elapsed
    lists = stats["iterations"]
    assert lists["iter"] == list(result.history.t) == [*range(result.iterations + 1)]
    assert lists["obj"] == list(result.history.f)
    assert lists["inf_pr"][-1] == result.residuals.feasibility
    assert not any(lists["regularization_size"])  # of steps on active sets


def valley(n: int = 20) -> tuple[Numbers, Numbers]:
    """Rosenbrock's function in a chain, from the other side of the valley."""
    x = ca.SX.sym("x", n)
    terms = 100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2
    return {"x": x, "f": ca.sum1(terms), "g": x[0] + x[1]}, {"x0": [-1.2, 1.0] * (n // 2)}


@pytest.mark.skipif(os.name == "nt", reason="there is no such signal")
@pytest.mark.parametrize("equations", [False, True])
@pytest.mark.parametrize("after", [1, 3])
def test_ctrl_c_keeps_the_best_point(after: int, equations: bool) -> None:
    """Pressed at an iterate; the next solve is as if nothing had been."""
    nlp, numbers = valley()
    if equations:  # by composite steps
        numbers |= {"lbg": 0, "ubg": 0}
    assert threading.current_thread() is threading.main_thread()
    whole = Solver(Problem.from_nlp(nlp)).solve(**numbers)
    solver, seen = Solver(Problem.from_nlp(nlp)), list[int]()

    def pressed(progress: Any) -> None:
        seen.append(progress.t)
        if len(seen) == after + 1:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as caught:
        solver.solve(**numbers, callback=pressed)
    assert isinstance(caught.value, Interrupted)
    result = caught.value.result
    assert result.stop is StopReason.STOPPED_BY_USER
    assert result.iterations <= after
    assert len(seen) == after + 1
    again = solver.solve(**numbers)
    np.testing.assert_array_equal(again.x, whole.x)
