"""The feedback matrix of a control law at its last step."""

import casadi as ca
import numpy as np
import pytest
import scipy.linalg

from casadi_hybrid import InputError
from casadi_hybrid.casadi_api.sensitivity import SensitivityError
from casadi_hybrid.control import MPC, Collocation, Model, OptimalControl, Scenarios

A, B = np.array([[1.0, 0.1], [0.3, 1.1]]), np.array([[0.005, 0.1], [0.1, 0.0]])
Q, R = np.diag([3.0, 1.0]), np.diag([0.5, 0.2])


def linear():
    """A linear system whose control law is Riccati's, in scales that are not one."""
    model = Model("linear")
    x = model.state("x", 2, scale=[10.0, 0.1], unit="m")
    u = model.control("u", 2, lower=-9, upper=9, scale=[0.5, 4.0], unit="N")
    model.next(x=A @ x + B @ u)
    ocp = OptimalControl(model, duration=5.0, intervals=5)
    ocp.initial()
    P = scipy.linalg.solve_discrete_are(A, B, Q, R)
    ocp.minimize("cost", sum=ca.bilin(Q, x, x) + ca.bilin(R, u, u), end=ca.bilin(P, x, x))
    return ocp, -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)


def test_of_a_linear_system_it_is_riccatis():
    ocp, riccati = linear()
    mpc = MPC(ocp)
    step = mpc.step([0.3, -0.1])
    gain = mpc.gain()
    np.testing.assert_allclose(gain.matrix, riccati, atol=1e-7)
    np.testing.assert_allclose(gain["u", "x"], riccati, atol=1e-7)
    np.testing.assert_allclose(step["u"], riccati @ [0.3, -0.1], atol=1e-6)
    assert "d u / d x" in str(gain)
    assert "N / (m)" in str(gain)
    with pytest.raises(InputError, match="there is no control 'v'"):
        gain["v", "x"]


def cart(method=None):
    """A cart with drag."""
    model = Model("cart")
    x, v = model.state("x", unit="m"), model.state("v", lower=-1, upper=1, unit="m/s")
    drag = model.parameter("drag", 0.3)
    u = model.control("force", lower=-2, upper=2, scale=2.0, unit="N")
    model.rates(x=v, v=u - drag * v**3)
    ocp = OptimalControl(model, duration=1.5, intervals=10, method=method)
    ocp.initial()
    ocp.minimize("distance", integral=x**2 + 0.1 * u**2, end=5 * x**2 + v**2)
    return ocp


def differences(mpc, x, size=1e-4):
    """Differences of the first control, by solving again."""
    columns = []
    for k in range(len(x)):
        apart = np.eye(len(x))[k] * size
        mpc.reset()
        ahead = mpc.step(np.add(x, apart))["force"]
        mpc.reset()
        columns.append((ahead - mpc.step(np.subtract(x, apart))["force"]) / (2 * size))
    mpc.reset()
    return columns


@pytest.mark.parametrize("method", [None, Collocation()], ids=str)
def test_it_is_what_differences_say(method):
    mpc = MPC(cart(method))
    by_hand = differences(mpc, [0.4, 0.2])
    mpc.step([0.4, 0.2])
    gain = mpc.gain()
    assert [gain["force", "x"], gain["force", "v"]] == pytest.approx(by_hand, rel=1e-3)


def test_of_scenarios_a_measurement_is_the_start_of_all():
    mpc = MPC(Scenarios(cart(), {"one": {}, "other": {"drag": 1.0}}))
    by_hand = differences(mpc, [0.4, 0.2])
    mpc.step([0.4, 0.2])
    np.testing.assert_allclose(mpc.gain().matrix, [by_hand], rtol=1e-3)


def test_at_a_limit_it_is_zero():
    mpc = MPC(cart())
    assert mpc.step([9.0, 0.0])["force"] == pytest.approx(-2, abs=1e-6)
    np.testing.assert_allclose(mpc.gain().matrix, 0.0, atol=1e-12)


def test_where_there_is_none_it_says_why():
    mpc = MPC(cart())
    with pytest.raises(InputError, match="the last step was not made"):
        mpc.gain()
    mpc.step([0.4, 0.2])
    mpc.step([np.nan, 0.2])
    with pytest.raises(InputError, match="the last step was last plan"):
        mpc.gain()
    few = MPC(cart(), iterations=1, tolerance=10.0)
    few.step([0.4, 0.2])
    few.step([-0.3, 0.8])
    assert few.records[-1].status == "feasible"
    with pytest.raises(SensitivityError):
        few.gain()
