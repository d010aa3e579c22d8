"""A function of the user that fails in the middle of a solve is reported, wherever it runs."""

from __future__ import annotations

import math
from typing import Any

import casadi as ca
import numpy as np
import pytest

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


class Sensor(ca.Callback):
    """|x|², which breaks after so many calls."""

    def __init__(self, calls: float) -> None:
        ca.Callback.__init__(self)
        self.left, self.seen = calls, list[float]()
        self.construct("sensor", {"enable_fd": True})

    def get_sparsity_in(self, _i: int) -> ca.Sparsity:
        return ca.Sparsity.dense(2)

    def eval(self, arguments: Any) -> Any:
        self.seen.append(float(ca.sumsqr(arguments[0])))
        if len(self.seen) > self.left:
            raise ValueError("the sensor broke")
        return [self.seen[-1]]


@pytest.mark.parametrize("calls", [3, 8, 14, 20, 30, 45])
@pytest.mark.parametrize("start", ["cold", "warm"])
def test_a_model_that_raises_anywhere_ends_the_solve_soon(
    calls: int, start: str, capfd: pytest.CaptureFixture[str]
) -> None:
    sensor, x = Sensor(np.inf), ca.MX.sym("x", 2)
    nlp = {"x": x, "f": (x[0] - 2) ** 2 + x[1] ** 2, "g": sensor(x)}
    solver = hy.nlpsol("solver", "hybrid", nlp)
    given = {"lam_g0": 3} if start == "warm" else {}
    solver(x0=0.2, ubg=1, **given)
    assert solver.stats()["success"]
    assert len(sensor.seen) > calls  # so it breaks on the way
    sensor.seen.clear()
    sensor.left = calls
    with pytest.raises(RuntimeError, match="the sensor broke"):
        solver(x0=0.2, ubg=1, **given)
    assert len(sensor.seen) < calls + 20  # once it was some five hundred
    result = solver.result
    assert result.stop is hy.StopReason.EVALUATION_ERROR
    if result.iterations:
        assert min(abs(float(result.g[0]) - one) for one in sensor.seen[:calls]) < 1e-12
        assert "defined before" in result.detail
    sensor.left = np.inf
    solver(x0=0.2, ubg=1, **given)
    assert solver.stats()["success"]
    capfd.readouterr()  # CasADi prints the traceback of each failure


@pytest.mark.parametrize("x0", [1.0, 50.0])
def test_a_model_that_raises_outside_its_domain_has_shorter_steps(
    x0: float, capfd: pytest.CaptureFixture[str]
) -> None:
    """As in IPOPT: whoever writes ``math.log`` in a callback gets the minimum all the same."""

    class Log(ca.Callback):
        def __init__(self) -> None:
            ca.Callback.__init__(self)
            self.outside = 0
            self.construct("log", {"enable_fd": True})

        def eval(self, arguments: Any) -> Any:
            value = float(arguments[0])
            self.outside += value <= 0
            return [math.log(value)]

    log, x = Log(), ca.MX.sym("x")
    solver = hy.nlpsol("solver", "hybrid", {"x": x, "f": 30 * x - log(x)})
    assert abs(float(solver(x0=x0)["x"]) - 1 / 30) < 1e-6
    assert solver.stats()["success"]
    assert log.outside >= 10  # so long that it was asked whether the model is broken
    capfd.readouterr()
