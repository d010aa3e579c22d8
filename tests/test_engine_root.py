"""The search for a root, and wider bounds, in C beside their twins in Python."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest
from engine_cases import assert_same_course, solved

from casadi_hybrid import Problem
from casadi_hybrid.attempts import compiled, one, solve
from casadi_hybrid.attempts.attempt import Attempt
from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.casadi_api import runner
from casadi_hybrid.engine.library import engine
from casadi_hybrid.standard_form.form import StandardForm

pytestmark = pytest.mark.skipif(engine() is None, reason="there is no core")

ROWS = ("obj", "inf_pr", "inf_du", "mu", "d_norm", "alpha_pr", "alpha_du")
Made = tuple[dict[str, Any], dict[str, Any]]


def decay() -> Made:
    """Two numbers that six observations of one decay share: more equations than unknowns."""
    x, times = ca.SX.sym("x", 2), np.arange(6) / 2
    seen = 3 * np.exp(-0.7 * times)
    return {"x": x, "g": x[0] * ca.exp(x[1] * times) - seen}, {"x0": [1, 0], "lbg": 0, "ubg": 0}


def inside() -> Made:
    """The same between bounds, with an inequality and a fixed variable."""
    problem, _ = decay()
    y, z = ca.SX.sym("y"), ca.SX.sym("z")
    x = ca.vertcat(problem["x"], y, z)
    g = ca.vertcat(problem["g"] * y, ca.sumsqr(x) + z)
    bounds = {"lbx": [0, -1, 2, 0.1], "ubx": [4, 0.5, 2, 9], "lbg": [0] * 6 + [-np.inf]}
    return {"x": x, "g": g}, {"x0": [1, 0, 2, 1], **bounds, "ubg": [0] * 6 + [60]}


def curved() -> Made:
    """A double root, where Gauss and Newton alone are slow."""
    x = ca.SX.sym("x", 2)
    g = ca.vertcat(x[0] ** 2 + x[1] - 1, x[0] * (x[1] - 1), (x[1] - 1) ** 2)
    return {"x": x, "g": g}, {"x0": [2, 3], "lbg": 0, "ubg": 0}


def contrary() -> Made:
    """Equations that cannot be met together."""
    x = ca.SX.sym("x", 2)
    g = ca.vertcat(x[0] ** 2 + x[1] ** 2 - 1, x[0] - 2, x[1] + 0.1 * x[0] ** 3)
    return {"x": x, "g": g}, {"x0": [1, 0.5], "lbg": 0, "ubg": 0}


PROBLEMS = [decay, inside, curved]


@pytest.mark.parametrize("made", PROBLEMS)
def test_the_same_search(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found, stats = solved(monkeypatch, made, "c")
    wanted, twin = solved(monkeypatch, made, "python")
    assert stats["engine"] == "c"
    assert_same_course(stats, twin, ROWS, rtol=1e-6)
    if made in (decay, curved):  # where an attempt is handed over its best points are seen again
        for name in ("n_call_nlp_jac_g", "n_call_nlp_hess_l"):
            assert stats[name] == twin[name]
    np.testing.assert_allclose(found["x"], wanted["x"], rtol=1e-6, atol=1e-7)


def test_the_proof_that_there_is_no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the violation is least rounding says which step is the last."""
    found, stats = solved(monkeypatch, contrary, "c")
    wanted, twin = solved(monkeypatch, contrary, "python")
    assert (stats["engine"], twin["engine"]) == ("c", "python")
    assert stats["return_status"] == twin["return_status"] == "Infeasible_Problem_Detected"
    for name in ROWS:
        one, other = (of["iterations"][name][:5] for of in (stats, twin))
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8, err_msg=name)
    np.testing.assert_allclose(found["x"], wanted["x"], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("made", PROBLEMS)
def test_a_limit_ends_both_searches_at_one_iterate(
    made: Any, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, stats = solved(monkeypatch, made, "c", {"max_iter": steps})
    wanted, twin = solved(monkeypatch, made, "python", {"max_iter": steps})
    assert (stats["engine"], stats["stop_reason"]) == ("c", "ITERATION_LIMIT")
    assert_same_course(stats, twin, ROWS, rtol=1e-6)
    np.testing.assert_allclose(found["x"], wanted["x"], rtol=1e-6, atol=1e-7)


def test_python_goes_on_inside_the_bounds_as_given() -> None:
    """Where they are widened C evaluates there too, and a logarithm may end at them."""
    x = ca.SX.sym("x", 2)
    problem = Problem.from_nlp({"x": x, "f": ca.log(x[0]), "g": x[0] + x[1]}, lbg=2)
    numbers = problem.numbers(x0=[3.0, 2.0], lbx=[1e-9, 1.0])
    form, plain = (
        StandardForm(problem, numbers.bounds, numbers.p, numbers.x0, relaxation)
        for relaxation in (1e-4, 0.0)
    )
    w = np.array([-5e-5, 1.0 - 5e-5, 3.0])
    with pytest.raises(EvaluationError):
        form.point(w)
    inside = form.within_given(w)
    np.testing.assert_array_equal(inside, [1e-9, 1.0, 3.0])
    np.testing.assert_array_equal(form.point(inside).x, plain.point(w).x)
    assert plain.within_given(w) is w


@pytest.mark.parametrize(
    "changes",
    [
        {"relaxation": 1e-8, "nu": 100.0, "push": 0.25},
        {"scaled": False},
        {"root": True, "cautious": True},
    ],
)
def test_attempts_of_every_kind(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each as the first attempt of a problem with bounds, inequalities and steep rows."""

    def first(program: Any, x0: Any, overdetermined: bool) -> Attempt:
        return Attempt(x0, 200, **changes)

    def made() -> Made:
        x = ca.SX.sym("x", 3)
        g = ca.vertcat(500 * (x[0] * x[1] - x[2]), ca.sumsqr(x))
        numbers = {"x0": [2, 3, 1], "lbx": [0.1, 0, -1], "ubx": 4, "lbg": [0, 2], "ubg": [0, 9]}
        return {"x": x, "f": x[0] + ca.exp(x[1]) - x[2], "g": g}, numbers

    taken, takes = [], compiled.takes
    monkeypatch.setattr(one, "takes", lambda attempt: taken.append(attempt) or takes(attempt))
    monkeypatch.setattr(solve, "first_attempt", first)
    monkeypatch.setattr(runner, "quick_of", lambda problem, options: None)  # has its own attempt
    _, stats = solved(monkeypatch, made, "c")
    _, twin = solved(monkeypatch, made, "python")
    assert stats["success"]
    assert stats["engine"] == "c", stats["engine_note"]
    assert all(getattr(taken[0], name) == value for name, value in changes.items())
    assert_same_course(stats, twin, ROWS, rtol=1e-6)
