"""The plants and the geometry of the scenarios, against independent computations."""

from __future__ import annotations

import importlib
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from casadi_hybrid.control import Plant

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"


@pytest.fixture
def load(monkeypatch):
    """Import a module of the scenarios' folder, as the folder's scripts do."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def rates(model, x, u, p=()):
    """The model's dx/dt in numbers."""
    return np.asarray(ca.DM(model.moves.rate(x, [], u, p, 0.0))).ravel()


def test_reactor_rests_at_its_steady_states_and_the_set_point_is_unstable(load):
    module = load("reactor")
    plant = module.change(1).model
    x = ca.SX.sym("x", 3)
    slope = ca.Function("slope", [x], [ca.jacobian(plant.moves.rate(x, [], 0, [], 0), x)])
    growth = {}
    for temperature in (320.0, 350.0):
        state = list(module.steady(temperature).values())
        np.testing.assert_allclose(rates(plant, state, 0.0), 0.0, atol=1e-10)
        # Without the row of the jacket, which keeps its temperature.
        growth[temperature] = np.linalg.eigvals(slope(state).full()[:2, :2]).real.max()
    assert growth[320.0] < 0 < growth[350.0]


def test_bicycle_along_the_road_is_the_bicycle_in_time(load):
    lane = load("lane_change")
    car = lane.lane_change(1).model
    inputs = np.array([0.1, -1.5])

    def in_time(_, z):
        _, _, heading, steering, speed = z
        turn = speed * np.tan(steering) / lane.WHEELBASE
        return [speed * np.cos(heading), speed * np.sin(heading), turn, *inputs]

    begin = [0.3, -0.05, 0.02, 18.0]
    moved = solve_ivp(in_time, (0, 1.2), [0.0, *begin], rtol=1e-10, atol=1e-12).y[:, -1]
    found = solve_ivp(
        lambda _, z: rates(car, z, inputs), (0, moved[0]), begin, rtol=1e-10, atol=1e-12
    ).y[:, -1]
    np.testing.assert_allclose(found, moved[1:], rtol=1e-8)


def test_outline_of_the_car_is_its_rectangle(load):
    lane = load("lane_change")
    corners = load("roads").outline(3.0, 1.0, 0.4, *lane.CAR).T
    sides = np.linalg.norm(np.roll(corners, -1, axis=0) - corners, axis=1)
    np.testing.assert_allclose(sides, [lane.LENGTH, lane.WIDTH] * 2)
    ahead = corners[1] - corners[0]
    np.testing.assert_allclose(np.arctan2(ahead[1], ahead[0]), 0.4)
    rear = (corners[0] + corners[3]) / 2
    np.testing.assert_allclose(rear + lane.OVERHANG * ahead / lane.LENGTH, [3.0, 1.0])


def test_gap_to_the_standing_car_is_negative_for_a_collision(load):
    lane = load("lane_change")
    s, zero = np.linspace(0.0, lane.ROAD, 41), np.zeros(41)
    assert lane.gap(s, zero, zero) == pytest.approx(-0.5 * lane.WIDTH - lane.LEFT)
    beside = zero + lane.LEFT + 0.5 * lane.WIDTH + 0.3
    assert lane.gap(s, beside, zero) == pytest.approx(0.3)


def test_distance_of_rectangles(load):
    distance = load("parking").distance
    square = np.array([[0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    assert distance(square, square + np.array([[1.25], [0.5]])) == pytest.approx(0.25)
    assert distance(square, square + np.array([[0.9], [0.4]])) == pytest.approx(-0.1)
    cos = np.sqrt(0.5)
    diamond = np.array([[cos, -cos], [cos, cos]]) @ (square - 0.5)
    # The corner points at the side of the other square.
    assert distance(diamond, square + np.array([[1.0], [-0.5]])) == pytest.approx(1 - cos)
    # A corner that only the turned normal separates: both shadows on the axes overlap.
    near = diamond + np.array([[1.5], [1.5]])
    assert distance(near, square) == pytest.approx(np.hypot(0.5, 0.5) - 0.5)


def test_distance_finds_every_overlap_that_points_find(load):
    parking = load("parking")
    rng = np.random.default_rng(3)
    grid = np.array([[a, b] for a in np.linspace(0, 1, 23) for b in np.linspace(0, 1, 13)]).T
    hits = 0
    for pose in rng.uniform([-3.0, 0.5, -1.5], [11.0, 4.5, 1.5], (300, 3)):
        ours = load("roads").outline(*pose, *parking.CAR)
        inside = ours[:, :1] + (ours[:, [1, 3]] - ours[:, :1]) @ grid
        for theirs in parking.PARKED:
            low, high = theirs.min(axis=1)[:, None], theirs.max(axis=1)[:, None]
            hit = bool(np.any(np.all((inside > low) & (inside < high), axis=0)))
            hits += hit
            assert not hit or parking.distance(ours, theirs) < 0
    assert hits > 50


def test_car_on_the_track_is_the_car_in_the_plane(load):
    module = load("minimum_time")
    car = module.lap(1).model
    intervals = 200
    bends, ds = module.curvature(intervals), module.LENGTH / intervals
    assert bends.sum() * ds == pytest.approx(np.pi / 2)

    def steer(s):
        return np.array([0.06 if 50 < s < 95 else 0.0, 0.5])

    # The curvature of the way changes at ends of intervals of the track.
    state, states, plane = np.array([0.5, 0.0, 12.0, 0.0]), [], np.array([0.0, 0.5, 0.0, 12.0])
    for k, bend in enumerate(bends[:110]):
        u = steer((k + 0.5) * ds)

        def along(_, z, u=u, bend=bend):
            return rates(car, z, u, [bend])

        after = solve_ivp(along, (0, ds), state, rtol=1e-9, atol=1e-11).y[:, -1]

        def in_time(_, z, u=u):
            return [z[3] * np.cos(z[2]), z[3] * np.sin(z[2]), z[3] * u[0], u[1]]

        plane = solve_ivp(in_time, (0, after[3] - state[3]), plane, rtol=1e-9, atol=1e-11).y[:, -1]
        state = after
        states.append(state)
    offset = np.zeros(intervals + 1)
    offset[110] = state[0]
    np.testing.assert_allclose(module.places(offset)[:, 110], plane[:2], atol=1e-6)
    assert state[2] == pytest.approx(plane[3])
    heading = bends[:110].sum() * ds + state[1]
    assert heading == pytest.approx(plane[2])
    assert np.abs(np.array(states)[:, 0]).max() > 1.0  # it has left the centre line


def test_van_der_pol_keeps_moving_by_itself(load):
    module = load("van_der_pol")
    free = Plant(module.oscillator(1).model, 0.25).motion(module.START, np.zeros(40))
    assert np.abs(free[:, -1]).max() > 1.0


def test_tanks_are_those_of_an_integrator(load):
    """The estimated plant, against SciPy; with parameters that are not the declared."""
    tanks = load("tank_estimation").tanks()
    h, w, p = np.array([0.3, 0.25, 0.2]), np.zeros(3), np.array([1e-4, 2.5])
    exact = solve_ivp(lambda _, h: rates(tanks, h, w, p), (0, 5.0), h, rtol=1e-10, atol=1e-12)
    plant = Plant(tanks, 5.0, parameters={"pump": p[0], "leak": p[1]})
    np.testing.assert_allclose(plant.step(h, w), exact.y[:, -1], atol=1e-8)


def test_chain_rests_where_no_force_is_left(load):
    module = load("chain")
    plant = module.chain(2)
    hold = module.rest(plant, 2)
    state = np.concatenate((hold["p"], hold["v"]))
    np.testing.assert_allclose(rates(plant, state, np.zeros(3)), 0.0, atol=1e-7)
    np.testing.assert_allclose(hold["p"][-3:], module.GOAL)
    assert (hold["p"][2:6:3] < -0.1).all()  # it hangs


def test_one_solver_moves_on_and_applies_the_last_usable_plan(load, monkeypatch):
    """The closed loops' controller: shifted starts, and what happens to a plan of no use."""
    closed, module = load("closed_loop"), load("mpc_cartpole")
    seen = {}
    monkeypatch.setattr(module, "run_all", lambda ocp, plant, **rest: seen.update(ocp=ocp, **rest))
    module.courses(6, 4, short=True)
    repeated = closed.Repeated(seen["ocp"])
    first = repeated.step([0.0, 3.0, 0.0, 0.0])
    assert first.status == "solved"
    assert first.residual < 1e-6
    np.testing.assert_array_equal(first.control, first.plan.controls[:, 0])
    monkeypatch.setattr(repeated, "residuals", lambda plan: (1.0, 1.0))
    second = repeated.step([0.0, 3.0, 0.0, 0.0])
    assert second.status == "last plan"
    assert second.used is first.plan
    np.testing.assert_array_equal(second.control, first.plan.controls[:, 1])
    repeated.reset()
    assert repeated.used is None
