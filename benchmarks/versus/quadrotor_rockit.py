"""A planar quadrotor follows a figure eight: rockit."""

import casadi as ca
import numpy as np
from rockit import MultipleShooting, Ocp


def path(t):
    return [1.5 * np.sin(t), 1 + 0.5 * np.sin(2 * t)]


def controller():
    ocp = Ocp(T=1.5)
    place = ocp.state(2)
    tilt = ocp.state()
    speed = ocp.state(2)
    spin = ocp.state()
    thrust = ocp.control(2)
    lift = ca.sum1(thrust) / 0.5
    ocp.set_der(place, speed)
    ocp.set_der(tilt, spin)
    ocp.set_der(speed, ca.vertcat(-lift * ca.sin(tilt), lift * ca.cos(tilt) - 9.81))
    ocp.set_der(spin, 20 * (thrust[1] - thrust[0]))
    x = ca.vertcat(place, tilt, speed, spin)
    x0 = ocp.parameter(6)
    ocp.set_value(x0, ca.DM.zeros(6))
    target = ocp.parameter(2, grid="control", include_last=True)
    ocp.set_value(target, ca.DM.zeros(2, 31))
    ocp.subject_to(ocp.at_t0(x) == x0)
    ocp.subject_to(-0.3 <= (tilt <= 0.3), include_first=False)
    ocp.subject_to(0 <= (thrust <= 4), include_last=False)
    away = 20 * ca.sumsqr(place - target) + ca.sumsqr(speed) / 10 + tilt**2 + spin**2 / 10
    ocp.add_objective(ocp.sum(away + 0.1 * ca.sumsqr(thrust - 2.4525)) + 5 * ocp.at_tf(away))
    quiet = {"ipopt": {"print_level": 0, "sb": "yes"}, "print_time": False, "expand": True}
    ocp.solver("ipopt", quiet)
    ocp.method(MultipleShooting(N=30, intg="rk"))
    plan = [ocp.sample(x, grid="control")[1], ocp.sample(thrust, grid="control-")[1]]
    targets = ocp.sample(target, grid="control")[1]
    solve = ocp.to_function("solve", [x0, targets, *plan], plan)
    start = [ca.DM.zeros(6, 31), 2.4525 * ca.DM.ones(2, 30)]
    dt, k = 0.05, 0

    def step(x):
        nonlocal k
        ahead = np.transpose([path(dt * i) for i in range(k, k + 31)])
        start[:] = solve(x, ahead, *start)
        k += 1
        return start[1][:, 0]

    return step
