"""The plants of the scenarios against independent computations, and their stages in FATROP."""

from importlib import import_module

import casadi as ca
import numpy as np
import pytest
import solving
from scipy.integrate import solve_ivp

from casadi_hybrid.control import Free, Model, OptimalControl, Plant


def rates(model, x, u, p=()):
    return np.asarray(ca.DM(model.moves.rate(x, [], u, p, 0.0))).ravel()


def test_reactor_rests_at_its_steady_states_and_the_set_point_is_unstable():
    module = import_module("reactor")
    plant = module.change(1).model
    x = ca.SX.sym("x", 3)
    slope = ca.Function("slope", [x], [ca.jacobian(plant.moves.rate(x, [], 0, [1, 1], 0), x)])
    growth = {}
    for temperature in (320.0, 350.0):
        state = list(module.steady(plant, T=temperature, u=0).states.values())
        np.testing.assert_allclose(rates(plant, state, 0.0, [1, 1]), 0.0, atol=1e-10)
        # Without the row of the jacket, which keeps its temperature.
        growth[temperature] = np.linalg.eigvals(slope(state).full()[:2, :2]).real.max()
    assert growth[320.0] < 0 < growth[350.0]


def test_bicycle_along_the_road_is_the_bicycle_in_time():
    lane = import_module("lane_change")
    car = lane.lane_change(1).model
    inputs = np.array([0.1, -1.5])

    def in_time(_, z):
        _, _, heading, steering, speed = z
        turn = speed * np.tan(steering) / lane.WHEELBASE
        return [speed * np.cos(heading), speed * np.sin(heading), turn, *inputs]

    begin, precise = [0.3, -0.05, 0.02, 18.0], {"rtol": 1e-10, "atol": 1e-12}
    moved = solve_ivp(in_time, (0, 1.2), [0.0, *begin], **precise).y[:, -1]
    found = solve_ivp(lambda _, z: rates(car, z, inputs), (0, moved[0]), begin, **precise)
    np.testing.assert_allclose(found.y[:, -1], moved[1:], rtol=1e-8)


def test_outline_of_the_car_is_its_rectangle():
    lane = import_module("lane_change")
    corners = lane.outline(3.0, 1.0, 0.4, *lane.CAR).T
    sides = np.linalg.norm(np.roll(corners, -1, axis=0) - corners, axis=1)
    np.testing.assert_allclose(sides, [lane.LENGTH, lane.WIDTH] * 2)
    ahead = corners[1] - corners[0]
    np.testing.assert_allclose(np.arctan2(ahead[1], ahead[0]), 0.4)
    rear = (corners[0] + corners[3]) / 2
    np.testing.assert_allclose(rear + lane.OVERHANG * ahead / lane.LENGTH, [3.0, 1.0])


def test_gap_to_the_standing_car_is_negative_for_a_collision():
    lane = import_module("lane_change")
    s, zero = np.linspace(0.0, lane.ROAD, 41), np.zeros(41)
    assert lane.gap(s, zero, zero) == pytest.approx(-0.5 * lane.WIDTH - lane.LEFT)
    assert lane.gap(s, zero + lane.LEFT + 0.5 * lane.WIDTH + 0.3, zero) == pytest.approx(0.3)


def test_van_der_pol_keeps_moving_by_itself():
    module = import_module("van_der_pol")
    free = Plant(module.oscillator(1).model, 0.25).motion(module.START, np.zeros(40))
    assert np.abs(free[:, -1]).max() > 1.0


def test_tanks_are_those_of_an_integrator():
    """The estimated plant, against SciPy; with parameters that are not the declared."""
    tanks = import_module("tank_estimation").tanks()
    h, pump, leak = np.array([0.3, 0.25, 0.2]), np.array([1e-4]), np.array([2.5])
    exact = solve_ivp(lambda _, h: rates(tanks, h, pump, leak), (0, 5.0), h, rtol=1e-10, atol=1e-12)
    plant = Plant(tanks, 5.0, parameters={"leak": leak})
    np.testing.assert_allclose(plant.step(h, pump), exact.y[:, -1], atol=1e-8)


def test_one_solver_moves_on_and_applies_the_last_usable_plan(monkeypatch):
    """The closed loops' controller: shifted starts, and what happens to a plan of no use."""
    closed, module = import_module("closed_loop"), import_module("mpc_cartpole")
    seen = {}
    monkeypatch.setattr(module, "run_all", lambda ocp, plant, **rest: seen.update(ocp=ocp, **rest))
    module.courses(6, 4, short=True)
    repeated = closed.Repeated(seen["ocp"], closed.WARM_IPOPT)
    control, (plan,) = repeated.step([0.0, 3.0, 0.0, 0.0]).control, repeated.plans
    assert closed.kkt_residual(plan)[1] < 1e-6
    np.testing.assert_array_equal(control, plan.controls[:, 0])
    monkeypatch.setattr(closed, "kkt_residual", lambda plan: (1.0, 1.0))
    second = repeated.step([0.0, 3.0, 0.0, 0.0]).control
    assert repeated.plans == [plan, None]
    np.testing.assert_array_equal(second, plan.controls[:, 1])


# The quadrotor.

NAMES = ("x", "z", "theta", "vx", "vz", "omega")


def test_one_interval_is_newtons_law():
    quadrotor, u = import_module("quadrotor"), np.array([3.1, 3.4])
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


def test_wind_drags_at_the_vehicle():
    quadrotor = import_module("quadrotor")
    model = quadrotor.vehicle(wind=-1.5, drag=0.2)
    rate = model.moves.rate([0, 0, 0, 1, 2, 0], [], [quadrotor.HOVER] * 2, [], 0).full().ravel()
    np.testing.assert_allclose(rate[3:5] * quadrotor.MASS, [-0.2 * 2.5, -0.2 * 2], atol=1e-12)


def test_hovering_is_an_equilibrium_and_costs_nothing():
    quadrotor = import_module("quadrotor")
    rest = {"x": 1.0, "z": 0.5, "theta": 0, "vx": 0, "vz": 0, "omega": 0}
    program = quadrotor.flight("transfer", 10, 2.0).numbers(guess=rest)
    found = _functions(program)
    assert np.abs(program.constraints["dynamics"].read(found["g"])).max() < 1e-12
    assert float(found["f"]) == 0.0


def test_rows_of_an_obstacle_are_at_their_bound_where_the_rotors_touch_it():
    quadrotor = import_module("quadrotor")
    x, z, radius = quadrotor.DISCS[1]
    reach = radius + quadrotor.ARM
    touching = {"x": x + 0.6 * reach, "z": z + 0.8 * reach}
    program = quadrotor.flight("slalom", 10, 2.6, quadrotor.DISCS).numbers(guess=touching)
    block = program.constraints["obstacle 1"]
    values = np.asarray(_functions(program)["g"]).ravel()[block.where]
    np.testing.assert_allclose(values, program.lbg[block.where], rtol=1e-12)
    assert min(quadrotor.gaps(*touching.values(), quadrotor.DISCS)) == pytest.approx(0, abs=1e-12)
    assert min(quadrotor.gaps(x, z, quadrotor.DISCS)) == pytest.approx(-reach)


def test_velocity_of_the_lap_is_the_slope_of_its_position():
    lap = import_module("mpc_quadrotor").lap
    times, step = np.linspace(0.0, 4.0, 9), 1e-5
    slope = (lap(times + step)[:2] - lap(times - step)[:2]) / (2 * step)
    np.testing.assert_allclose(lap(times)[2:], slope, atol=1e-8)


def _functions(program):
    nlp = program.nlp
    function = ca.Function("fg", [nlp["x"], nlp["p"]], [nlp["f"], nlp["g"]], ["x", "p"], ["f", "g"])
    return function(x=program.x0, p=program.p)


# The chain and the weak pendulum.


def energy(chain, state):
    """Return kinetic energy, weight's and springs' potential of three masses."""
    points, speeds = chain.shape(state[:12]), state[12:]
    stretch = np.linalg.norm(np.diff(points, axis=1), axis=0) - 0.033
    height = points[2, 1:-1].sum()
    return 0.5 * 0.033 * speeds @ speeds + 0.033 * 9.81 * height + 0.5 * stretch @ stretch


def at_rest(module, plant):
    return np.concatenate(list(module.rest(plant, 3).states.values()))


def test_a_chain_with_its_end_held_keeps_its_energy():
    module = import_module("chain")
    plant = module.chain(3)
    start = at_rest(module, plant)
    start[12:] = np.linspace(-0.5, 0.5, 9)

    def motion(_, s):
        return plant.moves.rate(s, [], np.zeros(3), [], 0).full().ravel()

    end = solve_ivp(motion, (0, 0.5), start, rtol=1e-8, atol=1e-10).y[:, -1]
    assert energy(module, end) == pytest.approx(energy(module, start), abs=1e-7)


def test_rest_is_a_fixed_point_below_the_ends_and_symmetric():
    module = import_module("chain")
    plant = module.chain(3)
    rest = at_rest(module, plant)
    assert np.abs(plant.moves.rate(rest, [], np.zeros(3), [], 0).full()).max() < 1e-8
    x, y, z = module.shape(rest[:12])
    np.testing.assert_allclose(x + x[::-1], 1.0, atol=1e-9)
    np.testing.assert_allclose(y, 0.0, atol=1e-12)
    np.testing.assert_allclose(z, z[::-1], atol=1e-9)
    assert z[1:-1].max() < -0.1


def test_the_end_moves_with_the_input_and_the_wall_bounds_every_mass():
    module = import_module("chain")
    plant = module.chain(2)
    state = module.pulled(plant, 2)
    np.testing.assert_allclose(state[6:9], module.GOAL + module.PULL, atol=1e-8)
    program = module.horizon(2, 4).program
    lower = program.variables["p"].read(program.lbx)
    assert (lower[1::3] == module.WALL).all()
    assert np.isfinite(lower).sum() == 5 * 3
    assert not np.isfinite(program.variables["v"].read(program.lbx)).any()


def test_the_weak_motor_moves_the_pendulum_by_newtons_law():
    module = import_module("pendulum_limits")
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


def swing(*, scale=1.0, duration=2.4, unroll=True, soft=None):
    """A swing of a pendulum with a motor to 1 rad, with a limited motor and a limited rate."""
    plant = Model("swing")
    angle, rate = plant.state("angle", scale=scale), plant.state("rate", scale=0.7 * scale)
    u = plant.control("torque", lower=-1.0, upper=0.8)
    plant.rates(angle=rate, rate=u - ca.sin(angle))
    ocp = OptimalControl(plant, duration=duration, intervals=8, unroll=unroll)
    ocp.initial(angle=0.1, rate=-0.1)
    ocp.final(angle=1, rate=0)
    ocp.path("swing", angle**2 + rate, upper=1.5, soft=soft)
    ocp.minimize("effort", integral=u**2)
    return ocp


@pytest.mark.parametrize("case", [{}, {"scale": 3.1}, {"unroll": False}, {"soft": 10.0}])
def test_point_and_multipliers_are_those_of_ipopt(case):
    program = swing(**case).numbers()
    staged = solving.make_solver(program, solving.FATROP)
    found = staged(**program.arguments)
    reference = solving.make_solver(program, solving.IPOPT)(**program.arguments)
    assert staged.stats()["success"]
    assert solving.stopped(staged.stats()) == "SOLVER_RET_SUCCESS"
    for key in ("x", "f", "g", "lam_x", "lam_g"):
        np.testing.assert_allclose(found[key].full(), reference[key].full(), atol=1e-4)
    assert np.abs(found["lam_x"].full()).max() > 1e-2  # the limit of the motor is active
