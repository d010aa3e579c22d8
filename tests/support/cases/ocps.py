"""Optimal control problems that several tests state, and the methods that solve them."""

import casadi as ca
import numpy as np

from casadi_hybrid.control import (
    Collocation,
    Free,
    Integrator,
    Model,
    MultipleShooting,
    OptimalControl,
    RungeKutta,
    SingleShooting,
)

METHODS = {
    "multiple shooting": MultipleShooting(),
    "three steps": MultipleShooting(RungeKutta(3)),
    "single shooting": SingleShooting(RungeKutta(2)),
    "cvodes": MultipleShooting(Integrator()),
    "Radau": Collocation(),
    "Radau of degree 1": Collocation(1),
    "Legendre": Collocation(2, "legendre"),
}


EVERY_METHOD = (MultipleShooting(), SingleShooting(), Collocation())
WITH_STATES = (MultipleShooting(), Collocation())  # as unknowns


def stated(model, start=(), goal=(), **options):
    """A problem of one cost, of a second in ten intervals; None leaves the start free."""
    cost = {kind: options.pop(kind) for kind in ("integral", "sum", "end") if kind in options}
    ocp = OptimalControl(model, **{"duration": 1.0, "intervals": 10, **options})
    if start is not None:
        ocp.initial(dict(start))
    ocp.final(dict(goal))
    ocp.minimize("cost", **cost)
    return ocp


def fastest(model, start, goal, **options):
    """A problem of the least time from one state to another."""
    ocp = OptimalControl(model, **{"duration": Free(2.0), **options})
    ocp.initial(start)
    ocp.final(goal)
    ocp.minimize("time", end=ocp.duration)
    return ocp


def double_integrator(*, x=(), v=(), u=(), drag=lambda x, v: 0, **options):
    """A problem with x' = v and v' = u − drag, and these symbols; options of each by name."""
    model = Model("cart")
    place, speed = model.state("x", **dict(x)), model.state("v", **dict(v))
    force = model.control("u", **dict(u))
    model.rates(x=speed, v=force - drag(place, speed))
    ocp = OptimalControl(model, **{"duration": 1.0, "intervals": 4, **options})
    return ocp, place, speed, force


def rest_to_rest(method, *, linear=False, scale=1.0, limits=np.inf, **options):
    """min ∫ u² from rest at 0 to rest at 1 in a second: u = 6 − 12 t, cost 12."""
    scales = {"x": {"scale": scale}, "v": {"scale": 3 * scale}}
    control = {"linear": linear, "scale": 10 * scale, "lower": -limits, "upper": limits}
    options = {"intervals": 8, "method": method, **options}
    ocp, _, _, u = double_integrator(**scales, u=control, **options)
    ocp.initial(x=0, v=0)
    ocp.final(x=1, v=0)
    ocp.minimize("effort", integral=u**2)
    return ocp


def detour(method, *, intervals=5, drag=0.0, fastest=np.inf, **options):
    """A point mass past a disc of radius 0.4, whose rows a coarse mesh cuts between its points."""
    model = Model("detour")
    limits = {"upper": [fastest, 9]} if fastest < np.inf else {}
    p, v = model.state("p", 2, unit="m"), model.state("v", 2, unit="m/s", **limits)
    u = model.control("u", 2, lower=-3, upper=3, unit="m/s²")
    model.rates(p=v, v=u - drag * v * ca.sqrt(ca.sumsqr(v) + 1e-3))
    ocp = OptimalControl(model, duration=3.0, intervals=intervals, method=method, **options)
    ocp.initial(p=[0, 0], v=0)
    ocp.final(p=[2, 0], v=0)
    ocp.minimize("effort", integral=ca.sumsqr(u))
    ocp.path("clearance", ca.sumsqr(p - ca.DM([1, 0.1])), lower=0.16, unit="m²")
    ocp.guess(p=lambda s: [2 * s, -0.5 * np.sin(np.pi * s)])
    return ocp


def clearance(solution, times):
    """The squared distance from the disc's centre in a detour, less 0.16."""
    p = solution.at(times)["p"]
    return (p[0] - 1) ** 2 + (p[1] - 0.1) ** 2 - 0.16
