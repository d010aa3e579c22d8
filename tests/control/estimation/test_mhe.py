"""Moving-horizon estimation, held against a Kalman filter and a least-squares fit by hand."""

from contextlib import nullcontext
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid.control import EKF, MHE, MPC, Model, OptimalControl, Plant, RungeKutta, simulate
from casadi_hybrid.utils.errors import InputError

A = np.array([[1.0, 0.1], [-0.2, 0.95]])
B = np.array([[0.0], [0.1]])
C = np.array([[1.0, 0.0], [1.0, 0.5]])
Q = np.array([[1e-3, 5e-4], [5e-4, 1e-2]])
R = np.array([[0.04, 0.01], [0.01, 0.09]])
P0 = np.array([[1.0, 0.3], [0.3, 2.0]])
M0 = np.array([0.5, 0.0])
STEPS = 14
LOST = (3, 8, 9)


def linear(bias=False, scale=1.0):
    model = Model("linear")
    x = model.state("x", 2, scale=scale)
    u = model.control("u")
    b = model.parameter("b", 0.0) if bias else 0.0
    model.next(x=ca.mtimes(ca.DM(A), x) + ca.mtimes(ca.DM(B), u + b))
    model.output("y", ca.mtimes(ca.DM(C), x))
    return model


def experiment(bias=0.0, seed=0):
    rng = np.random.default_rng(seed)
    x = np.array([1.0, -1.0])
    inputs = rng.standard_normal((STEPS, 1))
    measured = []
    for k in range(STEPS):
        y = C @ x + np.linalg.cholesky(R) @ rng.standard_normal(2)
        measured.append(None if k in LOST else y)
        x = A @ x + B @ (inputs[k] + bias) + np.linalg.cholesky(Q) @ rng.standard_normal(2)
    return measured, inputs


def kalman(measured, inputs, a, b, c, q, m, p):
    """Means and covariances of the Kalman filter after each measurement, in the textbook form."""
    for k, y in enumerate(measured):
        if k:
            m, p = a @ m + b @ inputs[k - 1], a @ p @ a.T + q
        if y is not None:
            here = np.isfinite(y)
            gain = p @ c[here].T @ np.linalg.inv(c[here] @ p @ c[here].T + R[np.ix_(here, here)])
            m, p = m + gain @ (y - c @ m)[here], p - gain @ c[here] @ p
        yield m, p


def assert_follows(mhe, measured, inputs, truth):
    for k, (mean, covariance) in enumerate(truth):
        estimate = mhe.step(measured[k], inputs[k - 1] if k else None)
        found = np.append(estimate, [*mhe.parameters.values()])
        assert np.abs(found - mean).max() < 1e-8
        assert np.abs(mhe.covariance - covariance).max() < 1e-8
    assert all(record.success for record in mhe.records)


@pytest.mark.parametrize(("window", "scale"), [(1, 1), (4, 1), (20, 1), (2, 1e7)])
def test_a_linear_model_gives_the_kalman_filter_for_any_window(window, scale):
    measured, inputs = experiment()
    measured[5][1] = np.nan  # one sensor of two
    mhe = MHE(linear(scale=scale), 1.0, window, outputs=["y"], noise=R, process=Q, prior=P0, x0=M0)
    assert_follows(mhe, measured, inputs, kalman(measured, inputs, A, B, C, Q, M0, P0))


def test_a_free_parameter_is_a_constant_state_of_the_kalman_filter():
    measured, inputs = experiment(bias=0.7)
    mhe = MHE(linear(bias=True), 1.0, 5, outputs=["y"], noise=R, process=Q, prior=P0, x0=M0,
              free={"b": {"std": 2.0, "guess": 0.1}})  # fmt: skip
    a = np.block([[A, B], [np.zeros((1, 2)), 1.0]])
    b, c = np.vstack((B, [[0.0]])), np.hstack((C, np.zeros((2, 1))))
    q, p = np.zeros((3, 3)), np.diag([0.0, 0.0, 4.0])
    q[:2, :2], p[:2, :2] = Q, P0
    truth = kalman(measured, inputs, a, b, c, q, np.append(M0, 0.1), p)
    assert_follows(mhe, measured, inputs, truth)


def test_the_window_is_a_least_squares_fit():
    """All states of a window that holds every measurement, against one dense fit."""
    measured, inputs = experiment()
    mhe = MHE(linear(), 1.0, STEPS - 1, outputs=["y"], noise=R, process=Q, prior=P0, x0=M0)
    for k, y in enumerate(measured):
        mhe.step(y, inputs[k - 1] if k else None)
    blocks, sides = [], []

    def add(weight, row, value):
        factor = np.linalg.inv(np.linalg.cholesky(weight))
        blocks.append(factor @ row)
        sides.append(factor @ value)

    eye = np.eye(2 * STEPS)
    state = [eye[2 * k : 2 * k + 2] for k in range(STEPS)]
    add(P0, state[0], M0)
    for k, y in enumerate(measured):
        if y is not None:
            add(R, C @ state[k], y)
        if k:
            add(Q, state[k] - A @ state[k - 1], B @ inputs[k - 1])
    fit = np.linalg.lstsq(np.vstack(blocks), np.concatenate(sides), rcond=None)[0]
    assert np.abs(mhe.solution["x"] - fit.reshape(STEPS, 2).T).max() < 1e-8


def test_process_noise_of_some_states_only():
    measured, inputs = experiment()
    model = Model("two")
    s, v = model.state("s"), model.state("v")
    u = model.control("u")
    model.next(s=A[0, 0] * s + A[0, 1] * v, v=A[1, 0] * s + A[1, 1] * v + 0.1 * u)
    model.output("y", ca.mtimes(ca.DM(C), ca.vertcat(s, v)))
    mhe = MHE(model, 1.0, 3, outputs=["y"], noise=R, process={"v": 0.1}, prior=1.0,
              x0={"s": 0.5, "v": 0.0})  # fmt: skip
    truth = kalman(measured, inputs, A, B, C, np.diag([0.0, 0.01]), M0, np.eye(2))
    assert_follows(mhe, measured, inputs, truth)


def test_a_late_measurement_is_placed_where_it_was_taken():
    measured, inputs = experiment()
    mhe = MHE(linear(), 1.0, 4, outputs=["y"], noise=R, process=Q, prior=P0, x0=M0, delay=2)
    filtered = list(kalman(measured, inputs, A, B, C, Q, M0, P0))
    for k in range(STEPS):
        late = measured[k - 2] if k >= 2 else None
        estimate = mhe.step(late, inputs[k - 1] if k else None)
        if k >= 2:
            mean = filtered[k - 2][0]
            for j in (k - 2, k - 1):
                mean = A @ mean + B @ inputs[j]
            assert np.abs(estimate - mean).max() < 1e-8


def drift(**limits):
    model = Model("drift")
    model.state("position", **limits)
    model.rates(position=0)
    return model


def test_limits_of_states_are_kept():
    for measured, kept in ((-1.0, 0.0), (0.1, 0.3)):
        mhe = MHE(drift(lower=0.0), 1.0, 3, noise=1.0, prior=1.0, x0=[0.5])
        assert mhe.step([measured])[0] == pytest.approx(kept, abs=1e-6)


@pytest.mark.parametrize(("arrival", "expected"), [("fixed", 7 / 9), ("none", 1.0)])
def test_other_arrivals(arrival, expected):
    """A constant, a window of two, measured 0, 1, 1: what is left of the 0, by hand.

    The prior is 0 and all deviations are 1. At the second step the two measurements and the prior
    have the mean 1/3; the third step has the two ones, and with "fixed" a prior at that mean.
    """
    mhe = MHE(drift(lower=0.0), 1.0, 1, noise=1.0, prior=1.0, arrival=arrival)
    found = [mhe.step([y])[0] for y in (0.0, 1.0, 1.0)]
    assert found[1] == pytest.approx(1 / 3, abs=1e-6)
    assert found[2] == pytest.approx(expected, abs=1e-6)


def test_a_window_that_is_not_solved_leaves_a_prediction():
    model = Model("pendulum")
    angle, speed = model.state("angle", guess=0.8), model.state("speed")
    model.rates(angle=speed, speed=-9.81 * ca.sin(angle))
    mhe = MHE(model, 0.1, 3, outputs=["angle"], noise=0.01, process=0.01, prior=1.0,
              solver={"max_iter": 0})  # fmt: skip
    with pytest.warns(UserWarning, match="MHE of pendulum: the step at time 0 failed") as told:
        first, second = (mhe.step([-2.0]) for _ in range(2))
    assert len(told) == 1
    assert not any(record.success for record in mhe.records)
    assert np.array_equal(first, [0.8, 0.0])
    assert np.allclose(second, Plant(model, 0.1, step=RungeKutta()).step(first, []))


@pytest.mark.parametrize("deviation", [1e-2, 1e-6, 1e-9])
def test_exact_sensors_are_believed(deviation):
    """A cart 5 km away, beside the Kalman filter: EKF, as the model is linear."""
    model = Model("cart")
    _, speed, force = model.state("place"), model.state("speed"), model.control("force")
    model.rates(place=speed, speed=force - 0.1 * speed)
    arguments = {"noise": deviation, "prior": 1e-3, "process": 1e-3, "outputs": ["place"]}
    made = [kind(model, 0.1, x0=[5000.0, 0.0], **arguments) for kind in (MHE, EKF)]
    plant, x = Plant(model, 0.1, step=RungeKutta()), np.array([5000.0, 0.3])
    draws = np.random.default_rng(1)
    for k in range(15):
        u = [np.sin(0.3 * k)]
        seen = x[:1] + deviation * draws.standard_normal(1)
        found, expected = (one.step(seen, u) for one in made)
        assert made[0].success
        assert np.abs(found - expected).max() < 1e-9
        x = plant.step(x, u)


def test_reset_begins_anew():
    measured, inputs = experiment()
    mhe = MHE(linear(), 1.0, 3, outputs=["y"], noise=R, process=Q, prior=P0, x0=M0)

    def estimates():
        return [mhe.step(y, inputs[k - 1] if k else None) for k, y in enumerate(measured)]

    first = estimates()
    mhe.reset()
    mhe.prepare(measured[0], u=[9.0])
    assert not mhe.records
    assert np.array_equal(first, estimates())
    mhe.reset(x0=[9.0, 9.0])
    assert not np.allclose(first[0], mhe.step(measured[0]))


def test_algebraic_states_and_unknown_drag():
    model = Model("drag")
    v = model.state("v", guess=1.0, unit="m/s")
    f = model.algebraic("force", guess=0.5)
    u = model.control("u")
    c = model.parameter("c", 0.5, unit="kg/s")
    model.rates(v=u - f)
    model.equations(law=f + 0.1 * f**3 - c * v)
    mhe = MHE(model, 0.2, 3, outputs=["v", "force"], noise=0.01, process=0.01, prior=0.5,
              free={"c": {"std": 0.5}})  # fmt: skip
    plant = Plant(model, 0.2, outputs=["v", "force"], parameters={"c": 0.8})
    run = simulate(plant, lambda time, x: 1 + np.sin(3 * time), mhe, steps=8, x0=[2.0], noise=0.01,
                   process_noise=0.01)  # fmt: skip
    assert all(record.success for record in mhe.records)
    error = run.estimation_error()
    assert np.abs(error["v"][3:]).max() < 0.05
    assert error["c"] == pytest.approx(run["c"] - 0.8)
    k = int(np.argmax(np.abs(error["v"])))
    amount = f"{abs(run.estimates['v'][k] - run['v'][k]):.3g}"
    assert str(error).endswith(f" of the scale: v by {amount} m/s at {run.times[k]:.3g} s")
    assert run["c"].tolist() == [record.parameters["c"] for record in mhe.records]
    assert (run.unit("c"), len(run.plot(["v", "c"]).axes)) == ("kg/s", 2)
    assert "true" in run.plot(["c"]).axes[0].get_legend_handles_labels()[1]
    assert "free c (std 0.5, drift 0.0)" in repr(mhe)
    assert mhe.solution.ocp.method.finer() == ""  # its step is the estimator's own
    assert repr(plant) == "<Plant of 'drag': v, force every 0.2, c = 0.8>"
    assert abs(mhe.parameters["c"] - 0.8) < 4 * np.sqrt(mhe.covariance[1, 1])
    assert mhe.record.costs.keys() == {"measurements", "disturbance", "arrival"}


def test_references_run_along_with_the_window():
    """A known inflow that changes, without process noise: the start alone is unknown."""
    model = Model("tank")
    level, offset = model.state("level"), model.reference("offset")  # zero where nobody gives it
    model.output("seen", level + offset)
    model.rates(level=model.reference("inflow", lambda t: 1.0 + np.floor(t)) - level)
    plant = Plant(model, 0.5, step=RungeKutta(2))
    mhe = MHE(model, 0.5, 4, noise=1e-3, prior=10.0, step=RungeKutta(2))
    run = simulate(plant, lambda time, x: [], mhe, steps=12, x0=[3.0], time=1.0)
    # The prior, 0 with a deviation of 10, weighs 1e-8 of a measurement.
    assert np.abs(run.estimation_error()).max() < 1e-7
    wrong = MHE(model, 0.5, 4, noise=1e-3, prior=10.0, step=RungeKutta(2))
    for k in range(12):
        wrong.step(run.measured[:, k], time=run.times[k], inflow=0.0)
    assert abs(wrong.estimate[0] - run["level"][11]) > 0.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise": 0.0}, "noise must be positive"),
        ({"prior": {}}, "prior lacks 'x'"),
        ({"noise": {}}, "noise lacks 'y'"),
        ({"window": 0}, "window"),
        ({"delay": 9}, "delay is 9"),
        ({"arrival": "best"}, "arrival"),
        ({"outputs": "y"}, "outputs must be a list"),
        ({"free": {"c": {"std": 1}}}, "no parameter 'c'"),
        ({"free": ["b"]}, "free must be a dictionary by name, got list"),
        ({"free": {"b": {"guess": 1}}}, "must be a dictionary with 'std'"),
        ({"free": {"b": {"std": 1, "lowr": 1}}}, "did you mean 'lower'"),
        ({"process": {"z": 1}}, "no entry of process 'z'"),
        ({"x0": [1.0]}, "x0 has 1 entries"),
    ],
)
def test_arguments_are_refused_by_name(arguments, message):
    good = {"window": 3, "outputs": ["y"], "noise": R, "process": Q, "prior": P0}
    with pytest.raises(InputError, match=message):
        MHE(linear(bias=True), 1.0, **{**good, **arguments})


@pytest.mark.parametrize(("made", "asked"), [(MHE, "covariance"), (EKF, "success")])
def test_a_bad_step_leaves_the_estimator_as_it_was(made, asked):
    measured, inputs = experiment()
    known = {"noise": R, "process": Q, "prior": P0, "x0": M0}
    one, twin = (made(linear(), 1.0, outputs=["y"], **known) for _ in range(2))
    with pytest.raises(InputError, match="no step yet"):
        getattr(one, asked)
    one.step(measured[0], time=2.0)
    twin.step(measured[0], time=2.0)
    for arguments, message in (
        (([1.0], 0.0), "y must have 2 finite entries"),
        ((measured[1], [1.0, 2.0]), "u has 2"),
        ((measured[1], inputs[0], 9.0), "one period after the step before is 3"),
        ((measured[1], inputs[0], np.nan), "time must be a finite number"),
    ):
        with pytest.raises(InputError, match=message):
            one.step(*arguments)
    with pytest.raises((InputError, TypeError), match="'nonsense'"):
        one.step(measured[1], inputs[0], nonsense=1.0)
    assert np.array_equal(one.estimate, twin.estimate)
    assert len(one.records) == 1
    assert np.array_equal(one.step(measured[1], inputs[0]), twin.step(measured[1], inputs[0]))


def test_a_wild_measurement_is_forgotten_when_it_leaves_the_window():
    mhe = MHE(drift(), 1.0, window=3, noise=0.1, process=0.1, prior=1.0)
    solved = []
    for y in (1.0, 1.0, 1e300, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        told = "MHE of drift: the step at time 2 failed"
        with pytest.warns(UserWarning, match=told) if y > 1 else nullcontext():
            estimate = mhe.step([y], [])
        solved.append(mhe.success)
        assert estimate == pytest.approx([1.0], abs=0.1)
    assert solved == [True] * 2 + [False] * 4 + [True] * 4


@pytest.mark.parametrize("made", [MHE, EKF])
def test_records_may_be_deleted_but_for_the_last(made):
    one, other = (made(drift(), 1.0, noise=0.1, prior=1.0) for _ in range(2))
    other.prepare([5.0])
    for k in range(14):
        assert one.step([np.sin(k)], []).tolist() == other.step([np.sin(k)], []).tolist()
        del one.records[:-1]


def test_a_window_has_the_limits_that_its_parameters_give():
    model = Model("tank")
    model.state("level", upper=model.parameter("cap", 1.0))
    model.rates(level=model.control("inflow"))
    mhe = MHE(model, 0.1, window=3, noise=0.05, prior=1.0, process=0.1)
    for now in (0.5, 1.5, 1.0):
        assert mhe.step([2.0], [0.0], cap=now) == pytest.approx([now], abs=1e-6)


def cart(names="xv"):
    """Of the states with these names the second is the rate of the first."""
    model = Model("cart")
    _, speed = [model.state(name) for name in names]
    model.rates(**dict(zip(names, (speed, model.control("force")), strict=True)))
    return model


@pytest.mark.parametrize(
    ("measured", "names", "sees", "said"),
    [
        ("vx", "xv", "", "plant measures v, x and the controller takes x, v; give .* outputs="),
        ("v", "xv", "x", "plant measures v and the estimator takes x; give both .* outputs="),
        ("x", "vx", "x", "estimator finds x, v and the controller takes v, x; declare the same"),
        ("vx", "pq", "", ""),
    ],
)
def test_a_column_goes_to_a_part_that_takes_these_names(measured, names, sees, said):
    ocp = OptimalControl(cart(names), duration=1.0, intervals=5)
    ocp.initial()
    ocp.minimize("effort", integral=ocp.model.symbol("force") ** 2)
    mhe = MHE(cart(), 0.1, outputs=[*sees], noise=0.1, prior=0.1) if sees else None
    with pytest.raises(InputError, match=said) if said else nullcontext():
        simulate(Plant(cart(), 0.1, outputs=[*measured]), MPC(ocp), mhe, steps=1, x0=[1, 0])


def test_windows_are_solved_whose_state_is_known_to_its_rounding():
    """A wall at 320 K that forgets: its deviation comes down to 1e-4 K."""
    model = Model("wall")
    wall = model.state("wall", unit="K", scale=30.0, guess=320.0)
    model.rates(wall=-(wall - 320) / 0.2)
    mhe = MHE(model, 0.5, window=4, noise=0.2, prior=1.0, process=1e-4)
    run = simulate(Plant(model, 0.5), lambda t, x: [], mhe, steps=60, x0=[321.0], noise=0.2)
    assert run.success.all()
    assert "controls" not in str(run)
    blind = SimpleNamespace(step=lambda y, u, time: y, success=False)
    run = simulate(Plant(model, 0.5), lambda t, x: [], blind, steps=3, x0=[321.0])
    assert "3 without success: the estimator did not solve" in str(run)
