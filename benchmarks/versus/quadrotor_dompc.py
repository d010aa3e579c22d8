"""A planar quadrotor follows a figure eight: do-mpc."""

import casadi as ca
import do_mpc
import numpy as np


def path(t):
    return [1.5 * np.sin(t), 1 + 0.5 * np.sin(2 * t)]


def controller():
    model = do_mpc.model.Model("discrete")
    place = model.set_variable("_x", "place", (2, 1))
    tilt = model.set_variable("_x", "tilt")
    speed = model.set_variable("_x", "speed", (2, 1))
    spin = model.set_variable("_x", "spin")
    thrust = model.set_variable("_u", "thrust", (2, 1))
    target = model.set_variable("_tvp", "target", (2, 1))

    def rate(x):
        lift = ca.sum1(thrust) / 0.5
        drive = ca.vertcat(-lift * ca.sin(x[2]), lift * ca.cos(x[2]) - 9.81)
        return ca.vertcat(x[3:5], x[5], drive, 20 * (thrust[1] - thrust[0]))

    dt = 0.05
    x = ca.vertcat(place, tilt, speed, spin)
    k1 = rate(x)
    k2 = rate(x + dt / 2 * k1)
    k3 = rate(x + dt / 2 * k2)
    k4 = rate(x + dt * k3)
    after = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    model.set_rhs("place", after[:2])
    model.set_rhs("tilt", after[2])
    model.set_rhs("speed", after[3:5])
    model.set_rhs("spin", after[5])
    away = 20 * ca.sumsqr(place - target) + ca.sumsqr(speed) / 10 + tilt**2 + spin**2 / 10
    model.set_expression("away", away)
    model.set_expression("effort", 0.1 * ca.sumsqr(thrust - 2.4525))
    model.setup()

    mpc = do_mpc.controller.MPC(model)
    mpc.settings.n_horizon = 30
    mpc.settings.t_step = dt
    mpc.settings.supress_ipopt_output()
    mpc.set_objective(mterm=5 * model.aux["away"], lterm=model.aux["away"] + model.aux["effort"])
    mpc.set_rterm(thrust=0)
    mpc.bounds["lower", "_x", "tilt"] = -0.3
    mpc.bounds["upper", "_x", "tilt"] = 0.3
    mpc.bounds["lower", "_u", "thrust"] = 0
    mpc.bounds["upper", "_u", "thrust"] = 4
    ahead = mpc.get_tvp_template()

    def targets(now):
        for k in range(31):
            ahead["_tvp", k] = path(now + k * dt)
        return ahead

    mpc.set_tvp_fun(targets)
    mpc.setup()
    mpc.u0 = np.array([2.4525, 2.4525])
    mpc.set_initial_guess()
    return mpc
