"""A cart swings a pole up and holds it: this package."""

import casadi as ca

from casadi_hybrid.control import MPC, Collocation, Model, OptimalControl


def controller():
    model = Model("cart-pole")
    q = model.state("q", lower=-2, upper=2)
    theta = model.state("theta")
    v = model.state("v")
    w = model.state("w")
    F = model.control("F", lower=-20, upper=20)
    s, c = ca.sin(theta), ca.cos(theta)
    a = (F + 0.3 * s * (0.5 * w**2 + 9.81 * c)) / (1 + 0.3 * s**2)
    model.rates(q=v, theta=w, v=a, w=-(a * c + 9.81 * s) / 0.5)

    ocp = OptimalControl(model, duration=2.0, intervals=40, method=Collocation(degree=3))
    ocp.initial()
    distance = 10 * q**2 + 20 * (1 + c) + 0.1 * v**2 + 0.1 * w**2
    ocp.minimize("distance", sum=distance + 0.01 * F**2, end=10 * distance)
    return MPC(ocp)
