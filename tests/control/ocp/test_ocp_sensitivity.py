"""Slopes of a solution by name and the feedback matrix of a step, against solutions nearby."""

import casadi as ca
import numpy as np
import pytest
import scipy.linalg
from support.cases.controllers import cart
from support.cases.ocps import fastest, stated

from casadi_hybrid import InputError, solution_sensitivity
from casadi_hybrid.control import (
    MPC,
    Collocation,
    Free,
    Model,
    MultipleShooting,
    Scenarios,
    SingleShooting,
)
from casadi_hybrid.solver.sensitivity import SensitivityError, SensitivityWarning

METHODS = [MultipleShooting(inner=1), SingleShooting(), Collocation(2)]
NAMES = ("angle", "rate", "torque", "height")


def pendulum(method, *, linear=False, free=False):
    model = Model("pendulum")
    angle, rate = model.state("angle", scale=2.0, unit="rad"), model.state("rate", unit="rad/s")
    torque = model.control("torque", lower=-3, upper=3, scale=2.0, unit="N m", linear=linear)
    load = model.parameter("load", 1.0, unit="kg")
    bias = model.parameter("bias", [0.1, -0.1])
    wind = model.reference("wind", 0.2)
    push = torque + wind + bias[0] * rate + bias[1] * ca.cos(angle)
    model.rates(angle=rate, rate=push / load - 2 * ca.sin(angle))
    model.output("height", -load * ca.cos(angle), unit="m")
    options = {"duration": Free(1.5, 0.5, 3) if free else 1.5, "intervals": 6, "method": method}
    effort = torque**2 + rate**2 + (0.5 if free else 0)
    return stated(model, {"angle": 1.0, "rate": 0}, {"angle": 0}, integral=effort, **options)


def assert_slopes(slope, solve, entry=()):
    """Against central differences of solutions, ``solve`` by a step of the parameter."""
    more, less = solve(1e-4), solve(-1e-4)
    for name in NAMES:
        expected = (more[name] - less[name]) / 2e-4
        assert slope[name][(..., *entry)] == pytest.approx(expected, abs=2e-4), name
    for name in ("objective", "duration"):
        expected = (getattr(more, name) - getattr(less, name)) / 2e-4
        assert np.asarray(slope[name])[entry] == pytest.approx(expected, abs=2e-4), name


@pytest.mark.parametrize("linear", [False, True], ids=["held", "linear"])
@pytest.mark.parametrize("free", [False, True], ids=["fixed time", "free time"])
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_slopes_are_those_of_nearby_solutions(method, free, linear):
    ocp = pendulum(method, linear=linear, free=free)
    found = ocp.solve()
    assert found.success
    by_load, by_start = found.sensitivity("load"), found.sensitivity("initial angle")
    assert set(by_load) == set(NAMES)
    assert by_load["torque"].shape == found["torque"].shape
    assert abs(by_load["torque"]).max() > 0.1
    assert by_start["angle"][0] == pytest.approx(1.0)
    assert_slopes(by_load, lambda step: ocp.solve(load=1.0 + step))
    assert_slopes(by_start, lambda step: ocp.solve({"angle": 1.0 + step}))


def test_slopes_have_entries_units_and_names():
    ocp = pendulum(Collocation(2))
    found = ocp.solve()
    by_load, by_bias, by_wind = (found.sensitivity(name) for name in ("load", "bias", "wind"))
    assert (by_bias["angle"].shape, by_wind["torque"].shape) == ((7, 2), (6, 7))
    bias, wind = np.array([0.1, -0.1]), np.full((1, 7), 0.2)
    for i in range(2):
        assert_slopes(by_bias, lambda step, i=i: ocp.solve(bias=bias + step * np.eye(2)[i]), (i,))
    assert_slopes(by_wind, lambda step: ocp.solve(wind=wind + step * np.eye(1, 7, 3)), (3,))
    assert (by_load.units["torque"], by_load["objective"]) == ("N m/kg", by_load.objective)
    assert f"{abs(by_load['torque']).max():.3g} N m/kg" in str(by_load)
    with pytest.raises(InputError, match="no parameter 'laod'; did you mean 'load'"):
        found.sensitivity("laod")
    column = solution_sensitivity(ocp, found, wrt=["p"])["jac_x_p"]
    column = column[:, int(found.program.parameters["load"].where[0])]
    assert found.program.variables["angle"].read(column)[0] == pytest.approx(by_load["angle"])
    with pytest.raises(InputError, match="result must be what a Solver returned"):
        solution_sensitivity(ocp.program.nlp, {"x": found.x})


@pytest.mark.parametrize("method", [MultipleShooting(inner=4), Collocation(3)], ids=str)
def test_slopes_with_a_limit_held_over_intervals(method):
    """A sledge in minimum time keeps its speed limit at more points than there are controls."""
    model = Model("sledge")
    drag, speed = model.parameter("drag", 0.2), model.parameter("speed", 0.5)
    _, v = model.state("x"), model.state("v", upper=speed)
    push, mass = model.control("push", lower=-1, upper=1), model.parameter("mass", 1.0)
    model.rates(x=v, v=push / mass - drag * v**2)
    options = {"duration": Free(3, 0.5, 10), "intervals": 20, "method": method}
    ocp = fastest(model, {"x": 0, "v": 0}, {"x": 1, "v": 0}, **options)
    found, h = ocp.solve(), 1e-3
    slopes = found.sensitivity("mass")
    up, down = (ocp.solve(guess=found, mass=1 + d) for d in (h, -h))
    for name in ("x", "v", "push"):
        assert slopes[name] == pytest.approx((up[name] - down[name]) / (2 * h), abs=1e-3), name
    assert slopes.duration == pytest.approx((up.duration - down.duration) / (2 * h), rel=1e-4)
    assert slopes.objective == slopes.duration
    # T = 2 √mass switches at the middle, which is a grid point; a speed at the start moves that.
    found = ocp.solve(speed=9, drag=0)
    assert found.sensitivity("mass").duration == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(SensitivityError, match="a larger weight on controls"):
        found.sensitivity("initial v")


def test_gain_of_a_linear_system_is_riccatis():
    A, B = np.array([[1.0, 0.1], [0.3, 1.1]]), np.array([[0.005, 0.1], [0.1, 0.0]])
    Q, R = np.diag([3.0, 1.0]), np.diag([0.5, 0.2])
    P = scipy.linalg.solve_discrete_are(A, B, Q, R)
    riccati = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    model = Model("linear")
    x = model.state("x", 2, scale=[10.0, 0.1], unit="m")
    u = model.control("u", 2, lower=-9, upper=9, scale=[0.5, 4.0], unit="N")
    model.next(x=A @ x + B @ u)
    costs = {"sum": ca.bilin(Q, x, x) + ca.bilin(R, u, u), "end": ca.bilin(P, x, x)}
    mpc = MPC(stated(model, duration=5.0, intervals=5, **costs))
    step, gain = mpc.step([0.3, -0.1]), mpc.gain()
    np.testing.assert_allclose(gain.matrix, riccati, atol=1e-7)
    np.testing.assert_allclose(gain["u", "x"], riccati, atol=1e-7)
    np.testing.assert_allclose(step["u"], riccati @ [0.3, -0.1], atol=1e-6)
    assert "N/m" in str(gain)
    with pytest.raises(InputError, match="there is no control 'v'"):
        gain["v", "x"]


LIMITED = {"intervals": 10, "duration": 1.5, "limit": 1, "scale": 2.0}
CARTS = [cart(**LIMITED), cart(**LIMITED, method=Collocation())]
CARTS += [Scenarios(cart(**LIMITED), {"one": {}, "other": {"drag": 1.0}})]


@pytest.mark.parametrize("ocp", CARTS, ids=["shooting", "collocation", "scenarios"])
def test_gain_is_the_difference_of_nearby_steps(ocp):
    mpc, x, forces = MPC(ocp), np.array([0.4, 0.2]), []
    for step in 1e-3 * np.vstack((np.eye(2), -np.eye(2))):
        mpc.reset()
        forces.append(mpc.step(x + step)["force"])
    mpc.reset()
    mpc.step(x)
    expected = np.subtract(forces[:2], forces[2:]) / 2e-3
    gain = mpc.gain()
    assert [gain["force", "x"], gain["force", "v"]] == pytest.approx(expected, rel=1e-3)


def test_gain_is_zero_at_a_limit():
    mpc = MPC(cart(**LIMITED))
    assert mpc.step([9.0, 0.0])["force"] == pytest.approx(-2, abs=1e-6)
    np.testing.assert_allclose(mpc.gain().matrix, 0.0, atol=1e-12)
    ocp = cart(**LIMITED)
    ocp.at_start("least speed", ocp.model.symbol("v"), lower=-1)
    ocp.path("wall", ocp.model.symbol("x"), lower=0)
    mpc = MPC(ocp)  # a measured speed at its own limit, which says nothing of what is given
    mpc.step([3.0, -1.0])
    expected = [ocp.solve([3.0 + a, -1.0 + b])["force"][0] for a, b in ((0, 0), (0, 1e-6))]
    assert mpc.gain()["force", "v"] == pytest.approx(np.diff(expected)[0] / 1e-6, rel=1e-3)
    mpc.step([0.0, 0.0], time=7.0)
    with pytest.warns(SensitivityWarning, match=r"weakly active: wall at 7\.\d+ s, wall at 7"):
        mpc.gain()


def test_missing_gain_has_a_reason():
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
