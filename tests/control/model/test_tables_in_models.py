"""Functions of MX within a model: a network, a B-spline and a table of lines."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.cases.ocps import rest_to_rest

from casadi_hybrid.control import Collocation, MultipleShooting

GRID = np.linspace(-2, 2, 21)
RNG = np.random.default_rng(0)
WEIGHTS = RNG.normal(size=(8, 2)), RNG.normal(size=8), 0.3 * RNG.normal(size=(1, 8))


def table(plugin):
    return ca.interpolant("table", plugin, [GRID.tolist()], np.tanh(GRID).tolist())


def network():
    x = ca.MX.sym("x", 2)
    inner, bias, outer = WEIGHTS
    return ca.Function("network", [x], [ca.mtimes(outer, ca.tanh(ca.mtimes(inner, x) + bias))])


def written(x):
    inner, bias, outer = WEIGHTS
    return float((outer @ np.tanh(inner @ x + bias)).item())


def between(x):
    return np.interp(x[1], GRID, np.tanh(GRID))


MODELS = {
    "network": (lambda p, v: network()(ca.vertcat(p, v)), written, 1e-6),
    "bspline": (lambda p, v: table("bspline")(v), lambda x: float(table("bspline")(x[1])), 1e-6),
    "linear": (lambda p, v: table("linear")(v), between, 1e-4),
}


def reached(solution, drag):
    x = np.zeros(2)
    for k, u in enumerate(solution["u"]):
        span = solution.times[k : k + 2]
        motion = solve_ivp(lambda t, y, u=u: [y[1], u - drag(y)], span, x, rtol=1e-9, atol=1e-10)
        x = motion.y[:, -1]
    return x


@pytest.mark.parametrize("unroll", [True, False], ids=["unrolled", "mapped"])
@pytest.mark.parametrize("method", [MultipleShooting(), Collocation()], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_mx_functions_stand_in_a_model(name, method, unroll):
    drag, alone, near = MODELS[name]
    options = {"duration": 2.0, "intervals": 20, "unroll": unroll}
    solution = rest_to_rest(method, drag=drag, limits=3, **options).solve()
    assert solution.success
    assert reached(solution, alone) == pytest.approx([1, 0], abs=near)
    assert solution.error().largest < near
