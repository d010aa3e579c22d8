"""The chain and the weak pendulum obey the physics that their docstrings promise."""

from __future__ import annotations

import importlib
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from casadi_hybrid.control import Free

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"


@pytest.fixture
def load(monkeypatch):
    """Import a module of the scenarios' folder, as its scripts do."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def energy(chain, state):
    """Return kinetic energy, weight's and springs' potential of three masses."""
    points, speeds = chain.shape(state[:12]), state[12:]
    stretch = np.linalg.norm(np.diff(points, axis=1), axis=0) - 0.033
    height = points[2, 1:-1].sum()
    return 0.5 * 0.033 * speeds @ speeds + 0.033 * 9.81 * height + 0.5 * stretch @ stretch


def at_rest(module, plant):
    """The state of three masses at rest, places and speeds."""
    return np.concatenate(list(module.rest(plant, 3).states.values()))


def test_a_chain_with_its_end_held_keeps_its_energy_and_loses_it_to_drag(load):
    module = load("chain")
    start = at_rest(module, module.chain(3))
    start[12:] = np.linspace(-0.5, 0.5, 9)
    ends = []
    for drag in (0.0, 0.01):
        rate = module.chain(3, drag=drag).moves.rate

        def motion(_, s, rate=rate):
            return rate(s, [], np.zeros(3), [], 0).full().ravel()

        end = solve_ivp(motion, (0, 0.5), start, rtol=1e-8, atol=1e-10).y[:, -1]
        ends.append(energy(module, end))
    assert ends[0] == pytest.approx(energy(module, start), abs=1e-7)
    assert ends[1] < ends[0] - 1e-3


def test_rest_is_a_fixed_point_below_the_ends_and_symmetric(load):
    module = load("chain")
    plant = module.chain(3)
    rest = at_rest(module, plant)
    assert np.abs(plant.moves.rate(rest, [], np.zeros(3), [], 0).full()).max() < 1e-8
    x, y, z = module.shape(rest[:12])
    np.testing.assert_allclose(x + x[::-1], 1.0, atol=1e-9)
    np.testing.assert_allclose(y, 0.0, atol=1e-12)
    np.testing.assert_allclose(z, z[::-1], atol=1e-9)
    assert z[1:-1].max() < -0.1


def test_the_end_moves_with_the_input_and_the_wall_bounds_every_mass(load):
    module = load("chain")
    plant = module.chain(2)
    state = module.pulled(plant, 2)
    np.testing.assert_allclose(state[6:9], module.GOAL + module.PULL, atol=1e-8)
    program = module.horizon(plant, 2, 4).program
    lower = program.variables["p"].read(program.lbx)
    assert (lower[1::3] == module.WALL).all()
    assert np.isfinite(lower).sum() == 5 * 3
    assert not np.isfinite(program.variables["v"].read(program.lbx)).any()


def test_fatrop_takes_a_mapped_program_and_finds_the_answer_of_ipopt(load):
    module, solving = load("chain"), load("solving")
    plant = module.chain(1)
    program = module.horizon(plant, 1, 6).numbers()
    staged = solving.make_solver(program, solving.FATROP)(**program.arguments)
    ipopt = solving.make_solver(program, solving.IPOPT)(**program.arguments)
    for key in ("x", "g", "lam_g"):
        np.testing.assert_allclose(staged[key], ipopt[key], atol=1e-5)


def test_the_weak_motor_moves_the_pendulum_by_newtons_law(load):
    module = load("pendulum_limits")
    assert module.TORQUE < 0.3 * module.WEIGHT * module.LENGTH
    u, state = 0.9, np.array([0.4, -1.2])

    def exact(_, s):
        weight = module.WEIGHT * module.LENGTH * np.sin(s[0])
        return [s[1], (u - 0.02 * s[1] - weight) / module.LENGTH**2]

    after = solve_ivp(exact, (0, 0.1), state, rtol=1e-11, atol=1e-12).y[:, -1]
    for duration in (5.0, Free(5.0)):
        program = module.swing_up("swing", 50, duration).numbers(
            guess={"theta": state[0], "omega": state[1], "u": u}
        )
        g = ca.Function("g", [program.nlp["x"], program.nlp["p"]], [program.nlp["g"]])
        defects = program.constraints["dynamics"].read(g(program.x0, program.p))
        np.testing.assert_allclose(state - defects[:, 0], after, atol=1e-5)
