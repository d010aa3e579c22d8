"""The extended Kalman filter, held against the textbook's recursion written by hand."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from casadi_hybrid.control import EKF, MHE, Model, Plant, RungeKutta, simulate
from casadi_hybrid.utils.errors import InputError

NOISE = 0.05
COMMON = {
    "outputs": ["seen"],
    "noise": NOISE,
    "process": {"speed": 0.02},
    "prior": {"angle": 0.2, "speed": 0.3},
    "x0": [0.5, 0.0],
}


def pendulum(**wind):
    model = Model("pendulum")
    angle, speed = model.state("angle"), model.state("speed")
    torque, length = model.control("torque"), model.parameter("length", 1.0)
    push = torque + model.reference("wind", **wind)
    model.rates(angle=speed, speed=-9.81 / length * ca.sin(angle) + push)
    model.output("seen", ca.sin(angle))
    return model


def next_state(xi, torque):
    """The pendulum and its length after a period, by another integrator."""

    def rates(_, s):
        return [s[1], -9.81 / xi[2] * np.sin(s[0]) + torque]

    motion = solve_ivp(rates, (0.0, 0.1), xi[:2], rtol=1e-11, atol=1e-11)
    return np.append(motion.y[:, -1], xi[2])


def jacobian(function, x):
    steps = 1e-6 * np.eye(x.size)
    return np.array([(function(x + e) - function(x - e)) / 2e-6 for e in steps]).T


def by_hand(measured, torques):
    m, P = np.array([0.5, 0.0, 1.0]), np.diag([0.2, 0.3, 0.4]) ** 2
    Q = np.diag([0.0, 0.02, 0.01]) ** 2
    for k, y in enumerate(measured):
        if k:
            A = jacobian(lambda xi, u=torques[k - 1]: next_state(xi, u), m)
            m, P = next_state(m, torques[k - 1]), A @ P @ A.T + Q
        if y is not None:
            H = np.array([[np.cos(m[0]), 0.0, 0.0]])
            gain = P @ H.T / (H @ P @ H.T + NOISE**2)
            m, P = m + gain @ (y - np.sin(m[:1])), P - gain @ H @ P
        yield m, P


def test_filter_is_the_recursion_of_the_textbook():
    rng = np.random.default_rng(0)
    torques = rng.standard_normal(12)
    true, measured = np.array([0.7, 0.2, 1.3]), []
    for k, torque in enumerate(torques):
        measured.append(None if k == 5 else np.sin(true[:1]) + NOISE * rng.standard_normal(1))
        true = next_state(true, torque)
    free = {"length": {"std": 0.4, "drift": 0.01}}
    ekf = EKF(pendulum(), 0.1, **COMMON, free=free, step=RungeKutta(10))
    for k, (mean, covariance) in enumerate(by_hand(measured, torques)):
        estimate = ekf.step(measured[k], [torques[k - 1]] if k else None)
        assert np.abs(np.append(estimate, ekf.parameters["length"]) - mean).max() < 1e-5
        assert np.abs(ekf.covariance - covariance).max() < 1e-5
        assert ekf.record.parameters == ekf.parameters
        assert ekf.record.measured == (0 if k == 5 else 1)
    assert ekf.success
    assert len(ekf.records) == 12


def test_loop_with_filter_is_near_moving_horizon():
    plant = Plant(pendulum(), 0.1, parameters={"length": 1.3}, outputs=["seen"])
    known = {**COMMON, "free": {"length": {"std": 0.4, "drift": 0.001}}}
    estimates, lengths = [], []

    def controller(time, x, length):
        lengths.append(length)
        return [np.sin(2.0 * time)]

    for estimator in (EKF(pendulum(), 0.1, **known), MHE(pendulum(), 0.1, 3, **known)):
        options = {"steps": 40, "x0": [0.6, 0.0], "noise": NOISE, "dropout": 0.1}
        options["parameters"] = lambda time, e=estimator: e.parameters
        for _ in range(2):  # the second begins anew
            lengths.clear()
            run = simulate(plant, controller, estimator, **options)
        assert lengths == [record.parameters["length"] for record in estimator.records]
        assert abs(lengths[-1] - 1.3) < 4.0 * np.sqrt(estimator.covariance[2, 2]) < 0.3
        estimates.append(run.estimates.values)
    assert 0.0 < np.abs(estimates[0] - estimates[1]).max() < 0.3


def test_references_follow_the_time():
    windy = EKF(pendulum(value=lambda t: 2.0 if t > 0.05 else 0.0), 0.1, noise=1e3, prior=0.1)
    calm = EKF(pendulum(), 0.1, noise=1e3, prior=0.1)
    steps = [[e.step(None, [0.0])[1] for _ in range(3)] for e in (windy, calm)]
    assert steps[0][:2] == steps[1][:2]
    assert steps[0][2] - steps[1][2] == pytest.approx(0.2, rel=0.05)


def test_algebraic_states_are_refused():
    model = Model("dae")
    model.rates(x=model.state("x") - model.algebraic("z"))
    with pytest.raises(InputError, match="algebraic states, which EKF cannot take; use MHE"):
        EKF(model, 0.1, noise=1.0, prior=1.0)
