"""Callbacks at every iteration, exceptions of a user's functions, and Ctrl-C."""

import math
import pickle
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import CASES, OUTPUTS, PEER, solved
from support.cases.watched import PythonFunction, interrupted_square

from casadi_hybrid import SolveError, Solver, StopReason, nlpsol

ROSENBROCK = CASES["no constraints"][0]


class Counts(ca.Callback):
    """A callback as CasADi's solvers take it: n variables, m rows, p parameters."""

    def __init__(self, n: int, m: int, act: Any = lambda _: 0.0, p: int = 0) -> None:
        ca.Callback.__init__(self)
        self.sizes = (n, 1, m, n, m, p)  # of x, f, g, lam_x, lam_g, lam_p
        self.act, self.seen = act, []
        self.construct("counts", {})

    def get_n_in(self) -> int:
        return len(self.sizes)

    def get_n_out(self) -> int:
        return 1

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        return ca.Sparsity.dense(self.sizes[i], 1) if self.sizes[i] else ca.Sparsity(0, 0)

    def eval(self, arguments: Any) -> Any:
        self.seen.append([argument.full().ravel() for argument in arguments])
        return [self.act(len(self.seen))]


@pytest.mark.parametrize(
    ("name", "p"),
    [("no constraints", 0), ("mixed", 0), ("lower row", 0), ("parameters", 0), ("parameters", 2)],
)  # many leave lam_p empty
def test_callback_sees_every_iteration_once(name: str, p: int) -> None:
    nlp, call = CASES[name]
    nlp = {key: ca.vertcat(*part) if isinstance(part, list) else part for key, part in nlp.items()}
    n, m = nlp["x"].numel(), nlp["g"].numel() if "g" in nlp else 0
    for plugin, make, options in (("ipopt", ca.nlpsol, PEER), ("hybrid", nlpsol, {})):
        if plugin == "ipopt" and "p" in nlp and not p:
            continue  # IPOPT asks for its size
        callback = Counts(n, m, p=p)
        solver = make("s", plugin, nlp, {**options, "iteration_callback": callback})
        answer = solver(**call)
        stats = solver.stats()
        assert len(callback.seen) == stats["iter_count"] + 1
        assert {len(values) for values in stats["iterations"].values()} == {len(callback.seen)}
        assert stats["n_call_callback_fun"] == len(callback.seen)
        np.testing.assert_allclose(callback.seen[-1][0], answer["x"].full().ravel(), atol=1e-5)
    assert [values[1] for values in callback.seen] == stats["iterations"]["obj"]
    for key, last in zip(OUTPUTS, callback.seen[-1], strict=True):
        wanted = answer[key].full().ravel() if key != "lam_p" or p else np.zeros(0)
        np.testing.assert_allclose(last, wanted, atol=1e-12)


def test_callback_is_called_every_few_steps() -> None:
    callback = Counts(2, 0, lambda count: float(count >= 3))
    options = {"iteration_callback": callback, "iteration_callback_step": 4}
    solver = solved(ROSENBROCK, options, x0=[-1.2, 1])
    assert solver.stats()["stop_reason"] == "STOPPED_BY_USER"
    assert solver.stats()["iter_count"] == 8
    assert len(callback.seen) == 3


def test_statistics_describe_the_steps() -> None:
    """The history has the same columns, also without a callback, and of the class Solver."""
    records = list[Any]()
    solver = solved(ROSENBROCK, {"iteration_callback": records.append}, x0=[-1.2, 1])
    lists = solver.stats()["iterations"]
    steps = [np.abs(after.x - before.x).max() for before, after in pairwise(records)]
    assert lists["d_norm"] == pytest.approx([0, *steps])
    assert lists["obj"][0] == pytest.approx(24.2)
    assert lists["alpha_pr"][0] == lists["alpha_du"][0] == 0
    assert 0 < min(lists["alpha_pr"][1:]) < 1  # Rosenbrock's valley takes shorter steps
    assert max(lists["alpha_pr"]) <= 1
    keys = {"nu": "mu", "shift": "regularization_size", "complementarity": "compl", "f": "obj"}
    keys |= {"feasibility": "inf_pr", "stationarity": "inf_du", "t": "iter"}
    alone = solved(ROSENBROCK, x0=[-1.2, 1]).result
    whole = Solver({**ROSENBROCK}).solve([-1.2, 1], history=True)
    for history in (solver.result.history, alone.history, whole.history):
        assert all(getattr(history, name).tolist() == lists[key] for name, key in keys.items())
    assert whole.history.lam_x.shape == whole.history.x.shape


def raises(error: BaseException, at: int = 3) -> Callable[[Any], None]:
    def callback(record: Any) -> None:
        if record.iter == at:
            raise error

    return callback


def test_exception_of_a_callback_keeps_the_point() -> None:
    error = KeyError("mine")
    solver = nlpsol("s", "hybrid", ROSENBROCK, {"iteration_callback": raises(error)})
    with pytest.raises(KeyError) as caught:
        solver(x0=[-1.2, 1])
    assert caught.value is error
    assert solver.result.stop is StopReason.STOPPED_BY_USER
    assert solver.stats()["iter_count"] == 3
    assert -np.inf < solver.result.f < 24.2
    # From a ca.Callback too, which CasADi would make a text of.
    as_casadi = Counts(2, 0, lambda count: 0 * (1 / (count - 3)))
    solver = nlpsol("s", "hybrid", ROSENBROCK, {"iteration_callback": as_casadi})
    with pytest.raises(ZeroDivisionError):
        solver(x0=[-1.2, 1])
    assert len(as_casadi.seen) == 3
    ignoring = {"iteration_callback": raises(error), "iteration_callback_ignore_errors": True}
    solver = nlpsol("s", "hybrid", ROSENBROCK, ignoring)
    with pytest.warns(UserWarning, match="mine"):
        solver(x0=[-1.2, 1])
    assert solver.result.success


@pytest.mark.parametrize("outside", [math.log, lambda value: math.log(max(value, 0) or math.nan)])
def test_undefined_trial_point_hides_no_exception(outside: Any) -> None:
    error, x, model = KeyError("mine"), ca.MX.sym("x"), PythonFunction(outside)
    options = {"iteration_callback": raises(error, 1)}
    # From 2 the first step leads below zero.
    solver = nlpsol("s", "hybrid", {"x": x, "f": 10 * x - model(x)}, options)
    with pytest.raises(KeyError) as caught:
        solver(x0=2)
    assert caught.value is error
    assert solver.result.evaluations["undefined"] > 0


def test_interrupt_of_a_callback_is_never_ignored() -> None:
    stopping = raises(KeyboardInterrupt())
    options = {"iteration_callback": stopping, "iteration_callback_ignore_errors": True}
    solver = nlpsol("s", "hybrid", ROSENBROCK, options)
    for kind in (KeyboardInterrupt, RuntimeError):  # the one it is, the one that CasADi makes of it
        with pytest.raises(kind, match="iteration_callback"):
            solver(x0=[-1.2, 1])
    assert solver.stats()["iter_count"] == 3


def test_assertion_of_a_model_is_kept() -> None:
    """CasADi leaves it out of scalar code without a word, so none is made of this model."""
    x = ca.MX.sym("x")
    limited = x.attachAssert(x < 3, "x must stay below three")
    solver = nlpsol("s", "hybrid", {"x": x, "f": (limited - 1) ** 2})
    with pytest.raises(RuntimeError, match="x must stay below three"):
        solver(x0=5)
    solver(x0=2)
    assert solver.result.success


def test_interrupt_of_a_model_stops_the_solve(capfd: pytest.CaptureFixture[str]) -> None:
    calls: list[Any] = []
    model, x = PythonFunction(interrupted_square(calls)), ca.MX.sym("x")
    solver = nlpsol("s", "hybrid", {"x": x, "f": (model(x) - 4) ** 2 + x**4})
    with pytest.raises(KeyboardInterrupt):
        solver(x0=3)
    assert solver.result.stop is StopReason.STOPPED_BY_USER
    assert np.isfinite(solver.result.f)
    solver(x0=3)
    assert solver.result.f < 12.25  # further than where it was stopped
    capfd.readouterr()


def test_failed_solve_and_early_question_raise() -> None:
    x = ca.SX.sym("x")
    nlp = {"x": x, "f": x, "g": ca.vertcat(x + 1, x - 2)}
    solver = nlpsol("s", "hybrid", nlp, {"error_on_fail": True})
    for ask in (solver.stats, solver.explain, lambda: solver.result):
        with pytest.raises(RuntimeError):
            ask()
    with pytest.raises(SolveError) as caught:
        solver(lbg=0, ubg=0)
    assert not caught.value.result.success
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(("kind", "x0"), [(ca.SX, 0.2), (ca.MX, 2.0)])
def test_failing_integrator_is_named(kind: Any, x0: float) -> None:
    """x' = x² from x0 ends at x0 / (1 − x0); the solver is drawn to where it has no end."""
    y = ca.SX.sym("y")
    options = {"show_eval_warnings": False, "max_num_steps": 60, "print_stats": False}
    flow = ca.integrator("flow", "cvodes", {"x": y, "ode": y**2}, 0.0, 1.0, options)
    x, p = kind.sym("x"), kind.sym("p")
    solver = nlpsol("solver", "hybrid", {"x": x, "p": p, "f": -flow(x0=x + p)["xf"]})
    with pytest.raises(RuntimeError, match="flow") as caught:
        solver(x0=x0)
    assert caught.value.__notes__


@pytest.mark.parametrize("calls", [0, 3, 30])
@pytest.mark.parametrize("error", [ValueError, OverflowError, KeyError])
@pytest.mark.parametrize("start", [{}, {"lam_g0": 3}], ids=["cold", "warm"])
def test_exception_of_a_model_comes_out_whole(calls, error, start, capfd):
    """And soon; where the model is defined again the solver is as good as before."""
    squares, most = list[float](), np.inf

    def measure(at: Any) -> float:
        squares.append(float(ca.sumsqr(at)))
        if len(squares) > most:
            raise error("the sensor broke")
        return squares[-1]

    sensor, x = PythonFunction(measure, 2), ca.MX.sym("x", 2)
    nlp = {"x": x, "f": (x[0] - 2) ** 2 + x[1] ** 2, "g": sensor(x)}
    solver = nlpsol("solver", "hybrid", nlp)
    solver(x0=0.2, ubg=1, **start)
    assert solver.stats()["success"]
    assert len(squares) > calls  # so it breaks on the way
    squares.clear()
    most = calls
    with pytest.raises(RuntimeError, match=r"(?s)model.*the sensor broke"):
        solver(x0=0.2, ubg=1, **start)
    assert len(squares) < calls + 20  # once it was some five hundred
    result = solver.result
    assert result.stop is StopReason.EVALUATION_ERROR
    assert solver.stats()["unified_return_status"] == "SOLVER_RET_NAN"
    assert "the sensor broke" in result.error.raised
    assert calls or result.error.x.tolist() == [0.2, 0.2]
    if result.iterations:
        assert np.abs(np.array(squares[:calls]) - result.g[0]).min() < 1e-12
    most = np.inf
    solver(x0=0.2, ubg=1, **start)
    assert solver.stats()["success"]
    capfd.readouterr()  # CasADi prints the traceback of each failure


@pytest.mark.parametrize("x0", [1.0, 50.0])
def test_model_raising_outside_its_domain_is_solved(x0, capfd):
    """A callback with ``math.log`` has shorter steps, as in IPOPT, and its minimum is found."""
    outside = []

    def logarithm(value: Any) -> float:
        outside.extend([1] * (float(value) <= 0))
        return math.log(value)

    log, x = PythonFunction(logarithm), ca.MX.sym("x")
    solver = nlpsol("solver", "hybrid", {"x": x, "f": 30 * x - log(x)})
    assert abs(float(solver(x0=x0)["x"]) - 1 / 30) < 1e-6
    assert solver.stats()["success"]
    assert len(outside) >= 10  # so long that it was asked whether the model is broken
    capfd.readouterr()
