"""A transcription of one's own: a class with one method is all that the package needs of it."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
import pytest
from support.cases.ocps import stated

from casadi_hybrid.control import MPC, Collocation, Model, refine
from casadi_hybrid.control.transcription.assembly import each
from casadi_hybrid.control.transcription.methods import Method


@dataclass(frozen=True)
class ImplicitMidpoint(Method):
    """x⁺ = x + dt f((x + x⁺)/2, (u + v)/2, p, t + dt/2), collocation at the middle."""

    def connect(self, horizon):
        h, N = horizon, horizon.N
        state, control = (h.X[:, :-1] + h.X[:, 1:]) / 2, (h.U + h.V) / 2
        middle = [state, h.Z[:, :N], control, h.P[:, :N], h.T[:, :N] + h.dt / 2]
        (costs,) = each(h.integrand, h.assembly.kind, middle)
        middle[3] = h.P[: h.model.size("parameter"), :N]
        (rates,) = each(h.model.moves.rate, h.assembly.kind, middle)
        steps = ca.repmat(h.dt, h.model.size("state"), 1)
        h.close("dynamics", h.X[:, 1:] - h.X[:, :-1] - steps * rates)
        return ca.sum2(costs * ca.repmat(h.dt, costs.shape[0], 1))


def pendulum(method, intervals=20):
    model = Model("pendulum")
    angle, rate = model.state("angle"), model.state("rate", lower=-2.0, upper=2.0)
    torque, load = model.control("torque", lower=-4.0, upper=4.0), model.parameter("load", 0.1)
    model.rates(angle=rate, rate=torque - (5.0 + load) * ca.sin(angle) - 0.1 * model.time)
    start, effort = {"angle": 1.0, "rate": 0.0}, angle**2 + 0.1 * torque**2
    return stated(model, start, integral=effort, duration=2.0, intervals=intervals, method=method)


def test_own_method_serves_as_collocation():
    solved, known = (pendulum(m).solve() for m in (ImplicitMidpoint(), Collocation(1, "legendre")))
    assert solved.success
    assert solved.objective == pytest.approx(known.objective, rel=1e-8)
    np.testing.assert_allclose(solved.states, known.states, atol=1e-6)
    times = solved.times[:-1] + np.diff(solved.times) / 2
    np.testing.assert_allclose(solved.at(solved.times)["angle"], solved["angle"], atol=1e-12)
    middle = (solved["angle"][:-1] + solved["angle"][1:]) / 2
    np.testing.assert_allclose(solved.at(times)["angle"], middle, atol=0.02)
    assert 0.0 < solved.error().largest < 0.05
    assert solved.violation()["rate"].max() < 0.05
    assert pendulum(ImplicitMidpoint(), 40).solve(guess=solved).success
    assert refine(pendulum(ImplicitMidpoint()), tolerance=1e-3).success
    mpc = MPC(pendulum(ImplicitMidpoint()))
    assert [mpc.step([1.0, 0.0]).status for _ in range(2)] == ["solved"] * 2
