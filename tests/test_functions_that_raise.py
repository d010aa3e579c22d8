"""A function of the user that fails in the middle of a solve is reported, wherever it runs."""

import math
from typing import Any

import casadi as ca
import numpy as np
import pytest
from watched import PythonFunction

import casadi_hybrid as hy


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_an_integrator_that_fails_midway_is_reported_by_its_name(kind: type) -> None:
    """x' = x² from x0 ends at x0 / (1 − x0); the solver is drawn to where it has no end."""
    y = ca.SX.sym("y")
    options = {"show_eval_warnings": False, "max_num_steps": 60, "print_stats": False}
    flow = ca.integrator("flow", "cvodes", {"x": y, "ode": y**2}, 0.0, 1.0, options)
    x = kind.sym("x")
    end = flow.call([x, *([kind(0, 1)] * (flow.n_in() - 1))])[0]
    solver = hy.nlpsol("solver", "hybrid", {"x": x, "f": -end})
    with pytest.raises(RuntimeError, match="flow"):
        solver(x0=0.2)


@pytest.mark.parametrize("calls", [3, 8, 14, 20, 30, 45])
@pytest.mark.parametrize("start", ["cold", "warm"])
def test_a_model_that_raises_anywhere_ends_the_solve_soon(calls, start, capfd):
    seen, most = list[float](), np.inf

    def measure(at: Any) -> float:
        seen.append(float(ca.sumsqr(at)))
        if len(seen) > most:
            raise ValueError("the sensor broke")
        return seen[-1]

    sensor, x = PythonFunction(measure, 2), ca.MX.sym("x", 2)
    nlp = {"x": x, "f": (x[0] - 2) ** 2 + x[1] ** 2, "g": sensor(x)}
    solver = hy.nlpsol("solver", "hybrid", nlp)
    given = {"lam_g0": 3} if start == "warm" else {}
    solver(x0=0.2, ubg=1, **given)
    assert solver.stats()["success"]
    assert len(seen) > calls  # so it breaks on the way
    seen.clear()
    most = calls
    with pytest.raises(RuntimeError, match="the sensor broke"):
        solver(x0=0.2, ubg=1, **given)
    assert len(seen) < calls + 20  # once it was some five hundred
    result = solver.result
    assert result.stop is hy.StopReason.EVALUATION_ERROR
    if result.iterations:
        assert min(abs(float(result.g[0]) - one) for one in seen[:calls]) < 1e-12
        assert "defined before" in result.detail
    most = np.inf
    solver(x0=0.2, ubg=1, **given)
    assert solver.stats()["success"]
    capfd.readouterr()  # CasADi prints the traceback of each failure


@pytest.mark.parametrize("x0", [1.0, 50.0])
def test_a_model_that_raises_outside_its_domain_has_shorter_steps(x0, capfd):
    """As in IPOPT: whoever writes ``math.log`` in a callback gets the minimum all the same."""

    outside = []

    def logarithm(value: Any) -> float:
        outside.extend([1] * (float(value) <= 0))
        return math.log(value)

    log, x = PythonFunction(logarithm), ca.MX.sym("x")
    solver = hy.nlpsol("solver", "hybrid", {"x": x, "f": 30 * x - log(x)})
    assert abs(float(solver(x0=x0)["x"]) - 1 / 30) < 1e-6
    assert solver.stats()["success"]
    assert len(outside) >= 10  # so long that it was asked whether the model is broken
    capfd.readouterr()
