"""Shooting and collocation against accurate integrations, and the names of what they build."""

from __future__ import annotations

import importlib
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"
DURATION = 1.5
START = np.array([0.4, 1.2])


@pytest.fixture
def load(monkeypatch):
    """Import a module of the scenarios' folder, as the folder's scripts do."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def pendulum(x, u):
    """A damped pendulum with a torque, nonlinear and not stiff."""
    return ca.vertcat(x[1], u[0] - 2.0 * ca.sin(x[0]) - 0.3 * x[1])


def effort(x, u):
    return x[0] ** 2 + u[0] * x[1]


def exact(inputs):
    """The states at the ends of the intervals and the integral of the effort."""
    states, cost = [START], 0.0
    for u in inputs:

        def slope(_, z, u=u):
            return [*pendulum(z, [u]).full().ravel(), effort(z, [u])]

        done = solve_ivp(
            slope, (0, DURATION / len(inputs)), [*states[-1], 0], rtol=1e-12, atol=1e-13
        )
        states.append(done.y[:2, -1])
        cost += done.y[2, -1]
    return np.array(states).T, cost


def transcribed(load, degree, intervals, inputs, unit=(1.0, 1.0)):
    """States and cost of the square system that remains when the inputs are given."""
    ocp = load("transcription").Transcription("fixed inputs")
    X = ocp.variable("state", 2, intervals + 1, unit=np.array(unit))
    U = ocp.parameter("input", np.atleast_2d(inputs))
    ocp.constrain("initial state", X[:, 0] - START)
    dt = DURATION / intervals
    options = {"degree": degree, "cost": effort, "unit": np.array(unit)}
    ocp.collocate("motion", pendulum, X, U, dt, **options)
    program = ocp.build()
    assert program.n == program.m
    x, p = program.nlp["x"], program.nlp["p"]
    root = ca.rootfinder("root", "newton", {"x": x, "p": p, "g": program.nlp["g"]})
    found = root(x0=program.x0, p=program.p)["x"]
    cost = ca.Function("cost", [x, p], [program.nlp["f"]])(found, program.p)
    return program.unpack(found), float(cost), program


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_collocation_has_the_order_of_radau(degree, load):
    coarse, fine = {1: (80, 160), 2: (10, 20), 3: (5, 10), 4: (3, 6)}[degree]
    errors, costs = [], []
    for intervals in (coarse, fine):
        inputs = np.full(intervals, 0.7)
        states, cost = exact(inputs)
        values, ours, _ = transcribed(load, degree, intervals, inputs)
        errors.append(np.abs(values["state"][:, -1] - states[:, -1]).max())
        costs.append(abs(ours - cost))
    order = 2 * degree - 1
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.35)
    assert np.log2(costs[0] / costs[1]) == pytest.approx(order, abs=0.6)


def test_collocation_follows_inputs_that_jump(load):
    inputs = np.array([1.0, -1.0, 0.5, 0.5, -2.0, 1.5, 0.0, 0.0, 1.0, -1.0])
    states, cost = exact(inputs)
    values, ours, _ = transcribed(load, 4, inputs.size, inputs)
    np.testing.assert_allclose(values["state"], states, atol=1e-7)
    assert ours == pytest.approx(cost, abs=1e-7)


def test_units_change_the_unknowns_and_not_the_answer(load):
    inputs = np.full(6, -0.4)
    plain, cost, program = transcribed(load, 3, 6, inputs)
    scaled, same, in_units = transcribed(load, 3, 6, inputs, unit=(0.1, 50.0))
    for name in ("state", "motion points"):
        np.testing.assert_allclose(scaled[name], plain[name], rtol=1e-9)
    assert same == pytest.approx(cost, rel=1e-10)
    assert program.variable_names == in_units.variable_names


def test_points_lie_on_the_solution_and_rows_have_names(load):
    inputs = np.full(4, 0.3)
    values, _, program = transcribed(load, 3, 4, inputs)
    times = ca.collocation_points(3, "radau")
    assert times[-1] == 1.0  # the last point is the end, which is no unknown of its own
    states, _ = exact(inputs)

    def slope(_, z):
        return pendulum(z, [0.3]).full().ravel()

    for k in range(4):
        h = DURATION / 4
        done = solve_ivp(slope, (0, h), states[:, k], t_eval=[h * t for t in times[:2]], rtol=1e-11)
        np.testing.assert_allclose(values["motion points"][:, 2 * k : 2 * k + 2], done.y, atol=2e-3)
    assert program.constraint_names[2:4] == ["motion[0,0]", "motion[1,0]"]
    assert program.constraint_names[-1] == "motion[1,11]"
    assert program.variable_names[-1] == "motion points[1,7]"


def test_one_point_needs_no_further_unknowns(load):
    values, _, program = transcribed(load, 1, 5, np.zeros(5))
    assert set(values) == {"state"}
    assert program.n == 12


def test_shooting_has_the_order_of_runge_kutta(load):
    transcription = load("transcription")
    inputs = np.array([0.7])
    states, _ = exact(inputs)
    ends = [
        transcription.runge_kutta(pendulum, DURATION, steps=steps)(ca.DM(START), inputs)
        for steps in (8, 16)
    ]
    errors = [np.abs(end.full().ravel() - states[:, -1]).max() for end in ends]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4, abs=0.3)


def test_plant_is_integrated_to_its_tolerance(load):
    step = load("transcription").exact_step(pendulum, 2, 1, DURATION, tolerance=1e-10)
    states, _ = exact([0.7])
    np.testing.assert_allclose(step(START, [0.7]).full().ravel(), states[:, -1], atol=1e-7)


def test_two_blocks_of_one_name_are_refused(load):
    ocp = load("transcription").Transcription("twice")
    ocp.variable("state", 2, 3)
    with pytest.raises(ValueError, match="twice has two blocks named 'state'"):
        ocp.variable("state")
