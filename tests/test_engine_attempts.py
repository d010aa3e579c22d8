"""Which attempts the engine in C takes, what a result says of those it did not, and warm ones."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest
from engine_cases import CASES, needs_engine, python_only, warm

from casadi_hybrid import Derivatives, Problem, Solver, nlpsol

CASE = CASES["hs071"]()
LOOKED_AT = "every iterate is looked at"


@pytest.fixture(autouse=True)
def core() -> None:
    needs_engine()


def problem() -> Problem:
    return Problem.from_nlp(CASE.nlp)


def said(result: Any) -> tuple[str, str]:
    return result.engine, result.engine_note


def test_a_solve_in_c_has_no_note() -> None:
    solver = Solver(problem())
    first = solver.solve(**CASE.numbers)
    again = solver.solve(**{**CASE.numbers, "p": [1.02], "x0": None}, warm_start=first)
    assert said(first) == said(again) == ("c", "")
    assert again.iterations > 0


@pytest.mark.parametrize(
    "looks",
    [
        {"history": True}, {"log": 100}, {"callback": lambda progress: None},
        {"stopping": lambda progress: None},
    ],
    ids=lambda looks: next(iter(looks)),
)  # fmt: skip
@pytest.mark.parametrize("near", [False, True], ids=["cold", "warm"])
def test_where_every_iterate_is_looked_at_python_runs(looks: dict[str, Any], near: bool) -> None:
    first = Solver(problem()).solve(**CASE.numbers) if near else None
    test = looks.get("stopping")
    solver = Solver(problem(), stopping=[test]) if test else Solver(problem())
    others = {} if test else looks
    result = solver.solve(**{**CASE.numbers, "p": [1.02]}, warm_start=first, **others)
    assert result.success
    assert said(result) == ("python", LOOKED_AT)


def test_the_note_is_of_the_attempt_that_solved() -> None:
    x = ca.SX.sym("x", 2)
    f, equation = ca.sumsqr(x - 3), x[0] ** 2 + x[1] ** 2 - 1
    composite = Solver(Problem(x=x, f=f, h=equation)).solve([1, 1])
    assert said(composite) == ("c", "")
    empty = Solver(Problem(x=x, f=f, h=equation + 2)).solve([1, 1])
    assert empty.stop.name == "LOCALLY_INFEASIBLE"
    assert said(empty)[0] == "python"
    approximated = Solver(problem().with_derivatives(Derivatives("limited-memory")))
    assert said(approximated.solve(**CASE.numbers)) == ("c", "")
    limited = Solver(problem(), max_iter=2).solve(**CASE.numbers)
    assert said(limited) == ("c", "")
    nowhere = Solver(Problem(x=x, f=f + ca.log(x[0]))).solve([-1, 1])
    assert nowhere.error is not None
    word = "a function of the problem is not defined where the engine went"
    assert said(nowhere) == ("python", word)
    with python_only():
        assert said(Solver(problem()).solve(**CASE.numbers)) == ("python", "it was asked for")


def test_a_warm_start_under_a_limit_in_seconds() -> None:
    """The warm mode does not look at the time; where that has run out Python says so."""
    ample, none = (nlpsol("solver", "hybrid", CASE.nlp, {"max_time": t}) for t in (60.0, 1e-9))
    outputs = ample(**CASE.numbers)
    arguments = {**CASE.numbers, **warm(outputs), "p": [1.02]}
    found = ample(**arguments)
    assert said(ample.result) == ("c", "")
    assert ample.result.success
    assert len(ample.stats()["iterations"]["obj"]) == ample.stats()["iter_count"] + 1
    with python_only():
        expected = ample(**arguments)
    np.testing.assert_allclose(found["x"], expected["x"], rtol=1e-9)
    none(**arguments)
    assert none.result.stop.name == "TIME_LIMIT"
    assert none.result.iterations == 0


def test_a_start_without_slope_that_the_warm_mode_gives_up_is_listed_once() -> None:
    """The barrier method goes on from there, and there is nothing special about such a row."""
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "f": ca.sumsqr(x - 2) + x[0] * x[1], "g": x[0] ** 2 * x[1]}
    solver = nlpsol("solver", "hybrid", nlp)
    numbers = {"x0": [0.0, 1.0], "lam_g0": -3.0, "lbg": 0.3, "ubg": 0.3, "lbx": -2, "ubx": 2}
    solver(**numbers)
    stats = solver.stats()
    assert (stats["engine"], stats["success"], stats["engine_note"]) == ("c", True, "")
    assert stats["iterations"]["iter"] == [*range(stats["iter_count"] + 1)]


def test_statistics_of_a_warm_solve_need_no_result_and_say_what_it_says() -> None:
    solver = nlpsol("solver", "hybrid", CASE.nlp)
    outputs = solver(**CASE.numbers)
    solver(**{**CASE.numbers, **warm(outputs), "p": [1.02]})
    stats = solver.stats()
    result = solver.result
    assert result.iterations > 1
    assert stats["n_call_nlp_f"] == result.evaluations["first"] > 0
    assert stats["n_call_nlp_hess_l"] == result.evaluations["second"]
    assert (stats["success"], stats["iter_count"]) == (result.success, result.iterations)
    for name in ("hessian", "engine", "engine_note", "kernel", "detail"):
        assert stats[name] == getattr(result, name)
    assert stats["stop_reason"] == result.stop.name
    assert stats["point_status"] == result.point.name
    assert stats["t_wall_total"] == result.elapsed
    lists = stats["iterations"]
    assert lists["iter"] == list(result.history.t) == [*range(result.iterations + 1)]
    assert lists["obj"] == list(result.history.f)
    assert lists["inf_pr"][-1] == result.residuals.feasibility
