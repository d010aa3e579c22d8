"""A problem for predictive controllers, its closed loop, and the solves in it."""

from functools import partial

import numpy as np

from casadi_hybrid.control import Model, OptimalControl
from casadi_hybrid.solver.nlpsol.solver import NlpSolver

DT = 0.1


def cart(*, intervals=15, limit=1.5, linear=False, scale=1.0, wall=None, **options):
    """A cart with drag to be brought to a goal."""
    model = Model("cart")
    x, v = model.state("x", unit="m"), model.state("v", lower=-limit, upper=limit, unit="m/s")
    u = model.control("force", lower=-2, upper=2, linear=linear, scale=scale, unit="N")
    model.rates(x=v, v=u - model.parameter("drag", 0.3) * v**3)
    options = {"duration": DT * intervals, **options}
    ocp = OptimalControl(model, intervals=intervals, **options)
    goal = ocp.reference("goal", 0.0)
    ocp.initial()
    ocp.minimize("distance", integral=(x - goal) ** 2 + 0.1 * u**2, end=5 * (x - goal) ** 2 + v**2)
    if wall is not None:
        ocp.path("room", x, upper=wall)
    return ocp


def next_state(x, u):
    """The state of the cart a period later, with a disturbance that the model does not know."""
    for _ in range(4):
        x = x + DT / 4 * np.array([x[1], u - 0.3 * x[1] ** 3 + 0.05])
    return x


def closed_loop(mpc, x, steps):
    """Steps and states of the cart under its controller."""
    answers, states = [], [np.array(x, dtype=float)]
    for _ in range(steps):
        answers.append(mpc.step(states[-1]))
        states.append(next_state(states[-1], answers[-1]["force"]))
    return answers, np.array(states)


class Solves:
    """All solves with limits while a test runs.

    Attributes:
        solvers, arguments: of each solve, in order.
    """

    def __init__(self, monkeypatch):
        self.solvers, self.arguments = [], []
        self.disturb(None)
        within = NlpSolver.within

        def watched(solver, *limits, **arguments):
            self.solvers.append(solver)
            self.arguments.append(arguments)
            act, only = self.disturbance
            if act is None or only not in (None, solver):
                return within(solver, *limits, **arguments)
            return act(partial(within, solver), limits, arguments)

        monkeypatch.setattr(NlpSolver, "within", watched)

    def disturb(self, act, only=None):
        """Let a function (solve, limits, arguments) → result answer, for one solver or all."""
        self.disturbance = act, only
