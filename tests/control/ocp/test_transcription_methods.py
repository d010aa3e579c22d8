"""Shooting and collocation against accurate integrations, and the names of what they build."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.cases.ocps import stated

from casadi_hybrid.control import Collocation, Model, MultipleShooting, RungeKutta
from casadi_hybrid.utils.errors import InputError

DURATION = 1.5
START = np.array([0.4, 1.2])


def slope(x, u):
    return [x[1], u - 2.0 * np.sin(x[0]) - 0.3 * x[1], x[0] ** 2 + u * x[1]]


def exact(inputs):
    states, cost, span = [START], 0.0, (0, DURATION / len(inputs))
    for u in inputs:
        z0 = [*states[-1], 0]
        end = solve_ivp(lambda _, z, u=u: slope(z, u), span, z0, rtol=1e-12, atol=1e-13).y[:, -1]
        states.append(end[:2])
        cost += end[2]
    return np.array(states).T, cost


def solved(method, inputs, *, unroll=True):
    """Solution and unknowns of the square system that remains when the inputs are given."""
    plant = Model("pendulum")
    angle, rate = plant.state("angle"), plant.state("rate")
    u = plant.reference("torque", np.append(inputs, 0.0))
    plant.rates(angle=rate, rate=u - 2.0 * ca.sin(angle) - 0.3 * rate)
    steps = {"duration": DURATION, "intervals": len(inputs), "method": method, "unroll": unroll}
    start = {"angle": START[0], "rate": START[1]}
    ocp = stated(plant, start, integral=angle**2 + u * rate, **steps)
    program = ocp.program
    assert program.n == program.m
    nlp = program.nlp
    root = ca.rootfinder("root", "newton", {"x": nlp["x"], "p": nlp["p"], "g": nlp["g"]})
    x = root(x0=program.x0, p=program.p)["x"].full().ravel()
    dual = np.zeros(program.n)
    solution = ocp.solution(program, {"x": x, "lam_x": dual, "lam_g": dual}, {})
    return solution, program.unpack(x)


@pytest.mark.parametrize(
    ("method", "coarse", "order"),
    [
        (Collocation(1), 40, 1),
        (Collocation(2), 10, 3),
        (Collocation(3), 5, 5),
        (Collocation(1, "legendre"), 20, 2),
        (Collocation(2, "legendre"), 8, 4),
        (MultipleShooting(), 40, 4),
        (MultipleShooting(RungeKutta(3)), 14, 4),
    ],
)
def test_methods_have_their_order(method, coarse, order):
    errors = []
    for times in (1, 2):  # of as many intervals, with jumps between them
        inputs = np.repeat(np.linspace(1.0, 0.4, coarse), times)
        states, cost = exact(inputs)
        solution, _ = solved(method, inputs)
        miss = np.abs(solution.states[:, -1] - states[:, -1]).max()
        errors.append((miss, abs(solution.objective - cost)))
    assert np.log2(errors[0][0] / errors[1][0]) == pytest.approx(order, abs=0.4)
    # The error of the cost may change its sign between the two.
    assert np.log2(errors[0][1] / errors[1][1]) > order - 0.7


def test_collocation_points_lie_on_the_solution():
    inputs = np.full(4, 0.3)
    solution, blocks = solved(Collocation(3), inputs)
    first, second, last = ca.collocation_points(3, "radau")
    assert last == 1.0  # the last point is the end, which is no unknown of its own
    at, states = [DURATION / 4 * t for t in (first, second)], exact(inputs)[0]
    for k in range(4):
        span, z0 = (0, DURATION / 4), states[:, k]
        motion = solve_ivp(lambda _, z: slope(z, 0.3)[:2], span, z0, t_eval=at, rtol=1e-11)
        inside = [blocks[f"{name} inside"][0, 2 * k : 2 * k + 2] for name in ("angle", "rate")]
        np.testing.assert_allclose(inside, motion.y, atol=2e-3)
    names = solution.program.constraint_names
    assert {"initial angle", "dynamics of angle[0,0]", "dynamics of rate[3,2]"} <= set(names)
    assert set(solved(Collocation(1), inputs)[1]) == {"angle", "rate"}  # the only point: the end


def test_controls_of_a_solution_are_a_guess():
    plant = Model("block")
    v = plant.state("v")
    u = plant.control("u", 2, lower=-1, upper=1)
    ramp = plant.control("ramp", linear=True)
    plant.rates(v=u[0] + u[1] + ramp)
    cost = ca.sumsqr(u) + ramp**2 + v
    ocp = stated(plant, {"v": 0}, {"v": 1}, integral=cost, intervals=3)
    found = ocp.solve()
    program = ocp.numbers(guess={"u": found["u"], "ramp": found["ramp"]})
    np.testing.assert_allclose(program.unpack(program.x0)["u"], found["u"], rtol=1e-12)
    np.testing.assert_allclose(program.unpack(program.x0)["ramp"][0], found["ramp"], rtol=1e-12)
    for name, wrong in (("ramp", found["ramp"][:-1]), ("u", np.zeros((2, 2)))):
        with pytest.raises(InputError, match=f"guess of '{name}' has the shape"):
            ocp.numbers(guess={name: wrong})
