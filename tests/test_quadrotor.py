"""The quadrotor scenarios state the physics and the geometry that their docstrings promise."""

from __future__ import annotations

import importlib
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

NAMES = ("x", "z", "theta", "vx", "vz", "omega")
FOLDER = Path(__file__).resolve().parent.parent / "scenarios"


@pytest.fixture
def load(monkeypatch):
    """Import a module of the scenarios' folder, as its scripts do."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def test_one_interval_is_newtons_law(load):
    quadrotor, u = load("quadrotor"), np.array([3.1, 3.4])
    state = np.array([0.3, 0.1, 0.4, 1.0, -0.5, 0.2])

    def exact(_, s):
        lift = u.sum() / quadrotor.MASS
        turn = quadrotor.ARM * (u[1] - u[0]) / quadrotor.INERTIA
        return [*s[3:], -lift * np.sin(s[2]), lift * np.cos(s[2]) - 9.81, turn]

    ocp = quadrotor.flight("slalom", 60, 2.6)
    program = ocp.numbers(guess=dict(zip(NAMES, state, strict=True)) | {"u": u})
    after = solve_ivp(exact, (0, 2.6 / 60), state, rtol=1e-11, atol=1e-12).y[:, -1]
    defects = program.constraints["dynamics"].read(_functions(program)["g"])
    np.testing.assert_allclose(state - defects[:, 0], after, atol=2e-6)  # one step of order four


def test_wind_drags_at_the_vehicle(load):
    quadrotor = load("quadrotor")
    model = quadrotor.vehicle(wind=-1.5, drag=0.2)
    rate = model.moves.rate([0, 0, 0, 1, 2, 0], [], [quadrotor.HOVER] * 2, [], 0).full().ravel()
    np.testing.assert_allclose(rate[3:5] * quadrotor.MASS, [-0.2 * 2.5, -0.2 * 2], atol=1e-12)


def test_hovering_is_an_equilibrium_and_costs_nothing(load):
    quadrotor = load("quadrotor")
    rest = {"x": 1.0, "z": 0.5, "theta": 0, "vx": 0, "vz": 0, "omega": 0}
    program = quadrotor.flight("transfer", 10, 2.0).numbers(guess=rest)
    found = _functions(program)
    assert np.abs(program.constraints["dynamics"].read(found["g"])).max() < 1e-12
    assert float(found["f"]) == 0.0


def test_rows_of_an_obstacle_are_at_their_bound_where_the_rotors_touch_it(load):
    quadrotor = load("quadrotor")
    x, z, radius = quadrotor.DISCS[1]
    reach = radius + quadrotor.ARM
    touching = {"x": x + 0.6 * reach, "z": z + 0.8 * reach}
    program = quadrotor.flight("slalom", 10, 2.6, quadrotor.DISCS).numbers(guess=touching)
    block = program.constraints["obstacle 1"]
    values = np.asarray(_functions(program)["g"]).ravel()[block.where]
    np.testing.assert_allclose(values, program.lbg[block.where], rtol=1e-12)
    assert quadrotor.clearance(**touching) == pytest.approx(0.0, abs=1e-12)
    assert quadrotor.clearance(x, z) == pytest.approx(-reach)


def test_velocity_of_the_lap_is_the_slope_of_its_position(load):
    lap = load("mpc_quadrotor").lap
    times, step = np.linspace(0.0, 4.0, 9), 1e-5
    slope = (lap(times + step)[:2] - lap(times - step)[:2]) / (2 * step)
    np.testing.assert_allclose(lap(times)[2:], slope, atol=1e-8)


def _functions(program):
    nlp = program.nlp
    function = ca.Function("fg", [nlp["x"], nlp["p"]], [nlp["f"], nlp["g"]], ["x", "p"], ["f", "g"])
    return function(x=program.x0, p=program.p)
