"""The extended Kalman filter, held against the textbook's recursion written by hand."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from casadi_hybrid.control import EKF, MHE, Model, Plant, RungeKutta, simulate
from casadi_hybrid.utils.errors import InputError

NOISE, PROCESS, PRIOR = 0.05, {"speed": 0.02}, {"angle": 0.2, "speed": 0.3}


def pendulum(**wind):
    model = Model("pendulum")
    angle, speed = model.state("angle"), model.state("speed")
    torque = model.control("torque")
    length = model.parameter("length", 1.0)
    push = model.reference("wind", **wind)
    model.rates(angle=speed, speed=-9.81 / length * ca.sin(angle) + torque + push)
    model.output("seen", ca.sin(angle))
    return model


def moved(xi, torque, seconds=0.1):
    """The pendulum and its length after a period, by another integrator."""
    after = solve_ivp(lambda _, s: [s[1], -9.81 / xi[2] * np.sin(s[0]) + torque], (0.0, seconds),
                      xi[:2], rtol=1e-11, atol=1e-11).y[:, -1]  # fmt: skip
    return np.append(after, xi[2])


def slope(function, at):
    eye = 1e-6 * np.eye(at.size)
    return np.array([(function(at + e) - function(at - e)) / 2e-6 for e in eye]).T


def by_hand(measured, torques):
    m, P = np.array([0.5, 0.0, 1.0]), np.diag([0.2, 0.3, 0.4]) ** 2
    Q = np.diag([0.0, 0.02, 0.01]) ** 2
    for k, y in enumerate(measured):
        if k:
            A = slope(lambda xi, u=torques[k - 1]: moved(xi, u), m)
            m, P = moved(m, torques[k - 1]), A @ P @ A.T + Q
        if y is not None:
            H = np.array([[np.cos(m[0]), 0.0, 0.0]])
            gain = P @ H.T / (H @ P @ H.T + NOISE**2)
            m, P = m + gain @ (y - np.sin(m[:1])), P - gain @ H @ P
        yield m, P


def filtered():
    return EKF(pendulum(), 0.1, outputs=["seen"], noise=NOISE, process=PROCESS, prior=PRIOR,
               x0=[0.5, 0.0], free={"length": {"std": 0.4, "drift": 0.01}},
               step=RungeKutta(10))  # fmt: skip


def test_it_is_the_recursion_of_the_textbook():
    rng = np.random.default_rng(0)
    torques = rng.standard_normal(12)
    true, measured = np.array([0.7, 0.2, 1.3]), []
    for k, torque in enumerate(torques):
        measured.append(None if k == 5 else np.sin(true[:1]) + NOISE * rng.standard_normal(1))
        true = moved(true, torque)
    ekf = filtered()
    for k, (mean, covariance) in enumerate(by_hand(measured, torques)):
        estimate = ekf.step(measured[k], [torques[k - 1]] if k else None)
        assert np.abs(np.append(estimate, ekf.parameters["length"]) - mean).max() < 1e-5
        assert np.abs(ekf.covariance - covariance).max() < 1e-5
        assert ekf.record.parameters == ekf.parameters
        assert ekf.record.measured == (0 if k == 5 else 1)
    assert ekf.success
    assert len(ekf.records) == 12


def test_in_a_loop_it_stands_in_for_a_moving_horizon_and_its_parameters_reach_the_controller():
    plant = Plant(pendulum(), 0.1, parameters={"length": 1.3}, outputs=["seen"])
    common = {"outputs": ["seen"], "noise": NOISE, "process": PROCESS, "prior": PRIOR,
              "x0": [0.5, 0.0], "free": {"length": {"std": 0.4, "drift": 0.001}}}  # fmt: skip
    estimates = []
    for estimator in (EKF(pendulum(), 0.1, **common), MHE(pendulum(), 0.1, 3, **common)):
        heard = []

        def controller(time, x, length, heard=heard):
            heard.append(length)
            return [np.sin(2.0 * time)]

        for _ in range(2):  # the second run begins anew
            heard.clear()
            run = simulate(
                plant, controller, estimator, steps=40, x0=[0.6, 0.0], noise=NOISE, dropout=0.1,
                parameters=lambda time, e=estimator: e.parameters,
            )  # fmt: skip
        assert heard == [record.parameters["length"] for record in estimator.records]
        assert abs(heard[-1] - 1.3) < 4.0 * np.sqrt(estimator.covariance[2, 2]) < 0.3
        estimates.append(run.estimates.values)
    assert 0.0 < np.abs(estimates[0] - estimates[1]).max() < 0.3


def test_references_follow_the_time():
    windy = EKF(pendulum(value=lambda t: 2.0 if t > 0.05 else 0.0), 0.1, noise=1e3, prior=0.1)
    calm = EKF(pendulum(), 0.1, noise=1e3, prior=0.1)
    steps = [[e.step(None, [0.0])[1] for _ in range(3)] for e in (windy, calm)]
    assert steps[0][:2] == steps[1][:2]
    assert steps[0][2] - steps[1][2] == pytest.approx(0.2, rel=0.05)


def test_what_does_not_fit_is_refused():
    dae = Model("dae")
    x, z = dae.state("x"), dae.algebraic("z")
    dae.rates(x=-z)
    dae.equations(z=z - x)
    with pytest.raises(InputError, match="algebraic states, which EKF cannot take; use MHE"):
        EKF(dae, 0.1, noise=1.0, prior=1.0)
