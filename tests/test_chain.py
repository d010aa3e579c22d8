"""The chain and the weak pendulum obey the physics that their docstrings promise."""

from __future__ import annotations

import importlib
from dataclasses import replace
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


def rows(program):
    """Return the rows of g at the program's start, by name and in physical units."""
    nlp = program.nlp
    g = ca.Function("g", [nlp["x"], nlp["p"]], [nlp["g"]])(program.x0, program.p)
    g = np.asarray(g).ravel()
    return {name: block.read(g) for name, block in program.constraints.items()}


def energy(chain, state):
    """Return kinetic energy, weight's and springs' potential."""
    points, speeds = chain.shape(state), state[chain.end.stop :]
    stretch = np.linalg.norm(np.diff(points, axis=1), axis=0) - chain.length
    height = points[2, 1:-1].sum()
    kinetic = 0.5 * chain.mass * speeds @ speeds
    return kinetic + chain.mass * chain.gravity * height + 0.5 * chain.stiffness * stretch @ stretch


def test_a_chain_with_its_end_held_keeps_its_energy_and_loses_it_to_drag(load):
    chain = load("chain").Chain()
    start = chain.rest.copy()
    start[chain.end.stop :] = np.linspace(-0.5, 0.5, 3 * chain.masses)
    ends = []
    for drag in (0.0, 0.01):
        plant = replace(chain, drag=drag)

        def motion(_, s, plant=plant):
            return np.asarray(ca.DM(plant.dynamics(ca.DM(s), np.zeros(3)))).ravel()

        end = solve_ivp(motion, (0, 0.5), start, rtol=1e-8, atol=1e-10).y[:, -1]
        ends.append(energy(chain, end))
    assert ends[0] == pytest.approx(energy(chain, start), abs=1e-7)
    assert ends[1] < ends[0] - 1e-3


def test_rest_is_a_fixed_point_below_the_ends_and_symmetric(load):
    chain = load("chain").Chain()
    slope = np.asarray(ca.DM(chain.dynamics(ca.DM(chain.rest), np.zeros(3)))).ravel()
    assert np.abs(slope).max() < 1e-8
    x, y, z = chain.shape(chain.rest)
    np.testing.assert_allclose(x + x[::-1], 1.0, atol=1e-9)
    np.testing.assert_allclose(y, 0.0, atol=1e-12)
    np.testing.assert_allclose(z, z[::-1], atol=1e-9)
    assert z[1:-1].max() < -0.1


def test_the_end_moves_with_the_input_and_the_wall_bounds_every_mass(load):
    module = load("chain")
    chain = module.Chain(masses=2)
    state = chain.pulled(module.PULL, 5)
    np.testing.assert_allclose(state[chain.end], module.GOAL + module.PULL, atol=1e-14)
    program = chain.program(4, state)
    lower = program.variables["state"].read(program.lbx)
    bounded = np.isfinite(lower)
    assert not bounded[:, 0].any()  # the initial state is given
    assert (lower[1 : chain.end.stop : 3, 1:] == chain.wall).all()
    assert bounded[:, 1:].sum() == 4 * (chain.masses + 1)


def test_mapped_and_unrolled_transcriptions_are_the_same_program(load):
    module, transcription = load("pendulum_limits"), load("transcription")
    step = transcription.runge_kutta(module.Pendulum().dynamics, 0.1)
    found = []
    for symbols in (ca.SX, ca.MX):
        ocp = transcription.Transcription("swing", symbols)
        X = ocp.variable("state", 2, 4, start=np.arange(8.0).reshape(2, 4), unit=[2.0, 3.0])
        U = ocp.variable("torque", 1, 3, start=0.3)
        ocp.constrain("initial state", X[:, 0] - ocp.parameter("initial", [0.1, 0.2]))
        ocp.shoot("dynamics", step, X, U)
        found.append(rows(ocp.build()))
    for name in found[0]:
        np.testing.assert_allclose(found[0][name], found[1][name], rtol=1e-13, atol=1e-14)


def test_fatrop_takes_a_mapped_program_and_finds_the_answer_of_ipopt(load):
    module, stages, solving = load("chain"), load("stages"), load("solving")
    chain = module.Chain(masses=1)
    program = chain.program(6, chain.pulled(module.PULL, 5))
    staged = stages.StagedSolver(program, solving.FATROP.options)(**program.arguments)
    ipopt = solving.make_solver(program, solving.IPOPT)(**program.arguments)
    for key in ("x", "g", "lam_g"):
        np.testing.assert_allclose(staged[key], ipopt[key], atol=1e-5)


def test_the_weak_motor_moves_the_pendulum_by_newtons_law(load):
    pendulum = load("pendulum_limits").Pendulum()
    assert pendulum.torque < 0.3 * pendulum.mass * pendulum.gravity * pendulum.length
    u, state = 0.9, np.array([0.4, -1.2])

    def exact(_, s):
        weight = pendulum.mass * pendulum.gravity * pendulum.length * np.sin(s[0])
        inertia = pendulum.mass * pendulum.length**2
        return [s[1], (u - pendulum.damping * s[1] - weight) / inertia]

    after = solve_ivp(exact, (0, 0.1), state, rtol=1e-11, atol=1e-12).y[:, -1]
    for free in (False, True):
        program = pendulum.program(50, 5.0, free=free).with_start(state=state, torque=u)
        np.testing.assert_allclose(state - rows(program)["dynamics"][:, 0], after, atol=1e-5)
