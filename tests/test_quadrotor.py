"""The quadrotor scenarios state the physics and the geometry that their docstrings promise."""

from __future__ import annotations

import importlib
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"


@pytest.fixture
def load(monkeypatch):
    """Import a module of the scenarios' folder, as its scripts do."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def test_one_interval_is_newtons_law(load):
    quadrotor = load("quadrotor")
    flight, u = quadrotor.SLALOM, np.array([3.1, 3.4])
    vehicle = flight.vehicle
    state = np.array([0.3, 0.1, 0.4, 1.0, -0.5, 0.2])

    def exact(_, s):
        lift = u.sum() / vehicle.mass
        turn = vehicle.arm * (u[1] - u[0]) / vehicle.inertia
        force = [-lift * np.sin(s[2]), lift * np.cos(s[2]) - vehicle.gravity]
        return [*s[3:], *force, turn]

    program = flight.program(60).with_start(state=state, thrust=u)
    after = solve_ivp(exact, (0, flight.duration / 60), state, rtol=1e-11, atol=1e-12).y[:, -1]
    rows = _rows(program)["dynamics"][:, 0] * quadrotor.STATE_UNIT
    np.testing.assert_allclose(state - rows, after, atol=2e-6)  # one step of order four


def test_hovering_is_an_equilibrium_and_costs_nothing(load):
    flight = load("quadrotor").TRANSFER
    program = flight.program(10).with_start(
        state=[1.0, 0.5, 0, 0, 0, 0], thrust=flight.vehicle.hover
    )
    assert np.abs(_rows(program)["dynamics"]).max() < 1e-12
    assert float(_functions(program)["f"]) == 0.0


def test_rows_of_an_obstacle_are_at_their_bound_where_the_rotors_touch_it(load):
    flight = load("quadrotor").SLALOM
    x, z, radius = flight.obstacles[1]
    reach = radius + flight.vehicle.arm
    touching = np.array([x + 0.6 * reach, z + 0.8 * reach, 0, 0, 0, 0])
    program = flight.program(10).with_start(state=touching)
    block = program.constraints["obstacle 1"]
    values = np.asarray(_functions(program)["g"]).ravel()[block.where]
    np.testing.assert_allclose(values, program.lbg[block.where], rtol=1e-12)
    assert flight.clearance(touching[:, None]) == pytest.approx(0.0, abs=1e-12)
    assert flight.clearance(np.array([[x], [z]])) == pytest.approx(-reach)


def test_velocity_of_the_lap_is_the_slope_of_its_position(load):
    lap = load("mpc_quadrotor").lap
    times, step = np.linspace(0.0, 4.0, 9), 1e-5
    slope = (lap(times + step)[:2] - lap(times - step)[:2]) / (2 * step)
    np.testing.assert_allclose(lap(times)[2:], slope, atol=1e-8)


def _functions(program):
    nlp = program.nlp
    function = ca.Function("fg", [nlp["x"], nlp["p"]], [nlp["f"], nlp["g"]], ["x", "p"], ["f", "g"])
    return function(x=program.x0, p=program.p)


def _rows(program):
    values = np.asarray(_functions(program)["g"]).ravel()
    return {
        name: values[block.where].reshape(block.shape, order="F")
        for name, block in program.constraints.items()
    }
