"""A planar quadrotor follows a figure eight: this package."""

import casadi as ca
import numpy as np

from casadi_hybrid.control import MPC, Model, OptimalControl


def path(t):
    return [1.5 * np.sin(t), 1 + 0.5 * np.sin(2 * t)]


def controller():
    model = Model("quadrotor")
    place = model.state("place", 2)
    tilt = model.state("tilt", lower=-0.3, upper=0.3)
    speed = model.state("speed", 2)
    spin = model.state("spin")
    thrust = model.control("thrust", 2, lower=0, upper=4, guess=2.4525)
    lift = ca.sum1(thrust) / 0.5
    model.rates(
        place=speed,
        tilt=spin,
        speed=ca.vertcat(-lift * ca.sin(tilt), lift * ca.cos(tilt) - 9.81),
        spin=20 * (thrust[1] - thrust[0]),
    )

    ocp = OptimalControl(model, duration=1.5, intervals=30)
    ocp.initial()
    target = ocp.reference("target", path, size=2)
    away = 20 * ca.sumsqr(place - target) + ca.sumsqr(speed) / 10 + tilt**2 + spin**2 / 10
    ocp.minimize("tracking", sum=away + 0.1 * ca.sumsqr(thrust - 2.4525), end=5 * away)
    return MPC(ocp)
