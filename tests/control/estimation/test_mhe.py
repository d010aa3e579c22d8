"""Moving-horizon estimation, held against a Kalman filter and a least-squares fit by hand."""

from contextlib import nullcontext
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from support.cases.ocps import stated
from support.judges.refusals import assert_refused

from casadi_hybrid.control import EKF, MHE, MPC, Model, Plant, RungeKutta, simulate
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
KNOWN = {"outputs": ["y"], "noise": R, "process": Q, "prior": P0, "x0": M0}


def linear(bias=False, scale=1.0):
    model = Model("linear")
    x, u = model.state("x", 2, scale=scale), model.control("u")
    b = model.parameter("b", 0.0) if bias else 0.0
    model.next(x=ca.mtimes(ca.DM(A), x) + ca.mtimes(ca.DM(B), u + b))
    model.output("y", ca.mtimes(ca.DM(C), x))
    return model


def experiment(bias=0.0):
    rng, x = np.random.default_rng(0), np.array([1.0, -1.0])
    inputs, measured = rng.standard_normal((STEPS, 1)), []
    for k in range(STEPS):
        y = C @ x + np.linalg.cholesky(R) @ rng.standard_normal(2)
        measured.append(None if k in LOST else y)
        x = A @ x + B @ (inputs[k] + bias) + np.linalg.cholesky(Q) @ rng.standard_normal(2)
    return measured, inputs


def kalman(measured, inputs, a=A, b=B, c=C, q=Q, m=M0, p=P0):
    """Means and covariances of the Kalman filter after each measurement, in the textbook form."""
    for k, y in enumerate(measured):
        if k:
            m, p = a @ m + b @ inputs[k - 1], a @ p @ a.T + q
        if y is not None:
            here = np.isfinite(y)
            gain = p @ c[here].T @ np.linalg.inv(c[here] @ p @ c[here].T + R[np.ix_(here, here)])
            m, p = m + gain @ (y - c @ m)[here], p - gain @ c[here] @ p
        yield m, p


def estimates(mhe, measured, inputs):
    for k, y in enumerate(measured):
        yield mhe.step(y, inputs[k - 1] if k else None)


def assert_follows(mhe, measured, inputs, truth):
    steps = estimates(mhe, measured, inputs)
    for estimate, (mean, covariance) in zip(steps, truth, strict=True):
        found = np.append(estimate, [*mhe.parameters.values()])
        assert np.abs(found - mean).max() < 1e-8
        assert np.abs(mhe.covariance - covariance).max() < 1e-8
    assert mhe.solution.states[:, -1] == pytest.approx(estimate)
    assert all(record.success for record in mhe.records)


@pytest.mark.parametrize(("window", "scale"), [(1, 1), (4, 1), (20, 1), (2, 1e7)])
def test_linear_model_gives_the_kalman_filter(window, scale):
    measured, inputs = experiment()
    measured[5][1] = np.nan  # one sensor of two
    mhe = MHE(linear(scale=scale), 1.0, window, **KNOWN)
    assert_follows(mhe, measured, inputs, kalman(measured, inputs))


def test_free_parameter_is_a_constant_state():
    measured, inputs = experiment(bias=0.7)
    mhe = MHE(linear(bias=True), 1.0, 5, **KNOWN, free={"b": {"std": 2.0, "guess": 0.1}})
    a = np.block([[A, B], [np.zeros((1, 2)), 1.0]])
    b, c = np.vstack((B, [[0.0]])), np.hstack((C, np.zeros((2, 1))))
    q, p = np.zeros((3, 3)), np.diag([0.0, 0.0, 4.0])
    q[:2, :2], p[:2, :2] = Q, P0
    truth = kalman(measured, inputs, a, b, c, q, np.append(M0, 0.1), p)
    assert_follows(mhe, measured, inputs, truth)


def test_process_noise_of_some_states_only():
    measured, inputs = experiment()
    model = Model("two")
    s, v, u = model.state("s"), model.state("v"), model.control("u")
    model.next(s=A[0, 0] * s + A[0, 1] * v, v=A[1, 0] * s + A[1, 1] * v + 0.1 * u)
    model.output("y", ca.mtimes(ca.DM(C), ca.vertcat(s, v)))
    own = {"process": {"v": 0.1}, "prior": 1.0, "x0": {"s": 0.5, "v": 0.0}}
    truth = kalman(measured, inputs, q=np.diag([0.0, 0.01]), p=np.eye(2))
    assert_follows(MHE(model, 1.0, 3, **{**KNOWN, **own}), measured, inputs, truth)


def test_late_measurement_counts_when_it_was_taken():
    measured, inputs = experiment()
    mhe = MHE(linear(), 1.0, 4, **KNOWN, delay=2)
    filtered = kalman(measured, inputs)
    late = [None, None, *measured[:-2]]
    for k, estimate in enumerate(estimates(mhe, late, inputs)):
        if k >= 2:
            mean, _ = next(filtered)
            for j in (k - 2, k - 1):
                mean = A @ mean + B @ inputs[j]
            assert np.abs(estimate - mean).max() < 1e-8


def drift(**limits):
    model = Model("drift")
    model.state("position", **limits)
    model.rates(position=0)
    return model


def test_limits_of_states_are_kept():
    for measured, expected in ((-1.0, 0.0), (0.1, 0.3)):
        mhe = MHE(drift(lower=0.0), 1.0, 3, noise=1.0, prior=1.0, x0=[0.5])
        assert mhe.step([measured])[0] == pytest.approx(expected, abs=1e-6)
    model = Model("tank")
    model.state("level", upper=model.parameter("cap", 1.0))
    model.rates(level=model.control("inflow"))
    mhe = MHE(model, 0.1, window=3, noise=0.05, prior=1.0, process=0.1)
    for cap in (0.5, 1.5, 1.0):
        assert mhe.step([2.0], [0.0], cap=cap) == pytest.approx([cap], abs=1e-6)


@pytest.mark.parametrize(("arrival", "expected"), [("fixed", 7 / 9), ("none", 1.0)])
def test_arrival_costs_by_hand(arrival, expected):
    """A constant, prior 0, deviations 1; at the third step "fixed" has a prior at 1/3."""
    mhe = MHE(drift(lower=0.0), 1.0, 1, noise=1.0, prior=1.0, arrival=arrival)
    _, second, third = (mhe.step([y])[0] for y in (0.0, 1.0, 1.0))
    assert (second, third) == pytest.approx((1 / 3, expected), abs=1e-6)


def test_unsolved_window_leaves_a_prediction():
    model = Model("pendulum")
    angle, speed = model.state("angle", guess=0.8), model.state("speed")
    model.rates(angle=speed, speed=-9.81 * ca.sin(angle))
    known = {"outputs": ["angle"], "noise": 0.01, "process": 0.01, "prior": 1.0}
    mhe = MHE(model, 0.1, 3, **known, solver={"max_iter": 0})
    with pytest.warns(UserWarning, match="MHE of pendulum: the step at time 0 failed") as warned:
        first, second = (mhe.step([-2.0]) for _ in range(2))
    assert len(warned) == 1
    assert not any(record.success for record in mhe.records)
    assert np.array_equal(first, [0.8, 0.0])
    assert np.allclose(second, Plant(model, 0.1, step=RungeKutta()).step(first, []))


@pytest.mark.parametrize("deviation", [1e-2, 1e-6, 1e-9])
def test_exact_sensors_are_believed(deviation):
    model = Model("cart")
    _, speed, force = model.state("place"), model.state("speed"), model.control("force")
    model.rates(place=speed, speed=force - 0.1 * speed)
    known = {"noise": deviation, "prior": 1e-3, "process": 1e-3, "outputs": ["place"]}
    mhe, ekf = (kind(model, 0.1, x0=[5000.0, 0.0], **known) for kind in (MHE, EKF))
    plant, x = Plant(model, 0.1, step=RungeKutta()), np.array([5000.0, 0.3])
    draws = np.random.default_rng(1)
    for k in range(15):
        u, seen = [np.sin(0.3 * k)], x[:1] + deviation * draws.standard_normal(1)
        assert np.abs(mhe.step(seen, u) - ekf.step(seen, u)).max() < 1e-9
        assert mhe.success
        x = plant.step(x, u)


def test_reset_begins_anew():
    measured, inputs = experiment()
    mhe = MHE(linear(), 1.0, 3, **KNOWN)
    first = [*estimates(mhe, measured, inputs)]
    mhe.reset()
    mhe.prepare(measured[0], u=[9.0])
    assert not mhe.records
    assert np.array_equal(first, [*estimates(mhe, measured, inputs)])
    mhe.reset(x0=[9.0, 9.0])
    assert not np.allclose(first[0], mhe.step(measured[0]))


def test_algebraic_states_and_unknown_drag():
    model = Model("drag")
    v, f = model.state("v", guess=1.0, unit="m/s"), model.algebraic("force", guess=0.5)
    u, c = model.control("u"), model.parameter("c", 0.5, unit="kg/s")
    model.rates(v=u - f)
    model.equations(law=f + 0.1 * f**3 - c * v)
    outputs, noise = ["v", "force"], {"noise": 0.01, "process": 0.01, "prior": 0.5}
    mhe = MHE(model, 0.2, 3, outputs=outputs, **noise, free={"c": {"std": 0.5}})
    plant = Plant(model, 0.2, outputs=outputs, parameters={"c": 0.8})
    options = {"steps": 8, "x0": [2.0], "noise": 0.01, "process_noise": 0.01}
    run = simulate(plant, lambda time, x: 1 + np.sin(3 * time), mhe, **options)
    assert run.success.all()
    error = run.estimation_error()
    assert np.abs(error["v"][3:]).max() < 0.05
    assert error["c"] == pytest.approx(run["c"] - 0.8)
    assert f"v by {np.abs(error['v']).max():.3g} m/s" in str(error)
    assert run["c"].tolist() == [record.parameters["c"] for record in mhe.records]
    assert (run.unit("c"), len(run.plot(["v", "c"]).axes)) == ("kg/s", 2)
    assert abs(mhe.parameters["c"] - 0.8) < 4 * np.sqrt(mhe.covariance[1, 1])
    assert mhe.record.costs.keys() == {"measurements", "disturbance", "arrival"}


def test_references_move_with_the_window():
    model = Model("tank")
    level, offset = model.state("level"), model.reference("offset")  # zero where nobody gives it
    model.output("seen", level + offset)
    model.rates(level=model.reference("inflow", lambda t: 1.0 + np.floor(t)) - level)
    mhe, wrong = (MHE(model, 0.5, 4, noise=1e-3, prior=10.0, step=RungeKutta(2)) for _ in range(2))
    plant, options = Plant(model, 0.5, step=RungeKutta(2)), {"steps": 12, "x0": [3.0], "time": 1.0}
    run = simulate(plant, lambda time, x: [], mhe, **options)
    # The prior, 0 with a deviation of 10, weighs 1e-8 of a measurement.
    assert np.abs(run.estimation_error()).max() < 1e-7
    for k in range(12):
        wrong.step(run.measured[:, k], time=run.times[k], inflow=0.0)
    assert abs(wrong.estimate[0] - run["level"][11]) > 0.1


def test_bad_arguments_are_refused_by_name():
    assert_refused(
        ({"noise": 0.0}, "noise must be positive"),
        ({"prior": {}}, "prior lacks 'x'"),
        ({"window": 0}, "window"),
        ({"delay": 9}, "delay is 9"),
        ({"arrival": "best"}, "arrival"),
        ({"free": {"c": {"std": 1}}}, "no parameter 'c'"),
        ({"free": {"b": {"guess": 1}}}, "must be a dictionary with 'std'"),
        ({"free": {"b": {"std": 1, "lowr": 1}}}, "did you mean 'lower'"),
        by=lambda **bad: MHE(linear(bias=True), 1.0, **{"window": 3, **KNOWN, **bad}),
    )


@pytest.mark.parametrize(("kind", "attribute"), [(MHE, "covariance"), (EKF, "success")])
def test_bad_step_leaves_the_estimator_alone(kind, attribute):
    measured, inputs = experiment()
    estimator, twin = (kind(linear(), 1.0, **KNOWN) for _ in range(2))
    with pytest.raises(InputError, match="no step yet"):
        getattr(estimator, attribute)
    twin.prepare([5.0, 5.0])
    for each in (estimator, twin):
        each.step(measured[0], time=2.0)
    assert_refused(
        ({"y": [1.0]}, "y must have 2 finite entries"),
        ({"u": [1.0, 2.0]}, "u has 2"),
        ({"time": 9.0}, "one period after the step before is 3"),
        ({"time": np.nan}, "time must be a finite number"),
        by=lambda **bad: estimator.step(**{"y": measured[1], "u": inputs[0], **bad}),
    )
    with pytest.raises((InputError, TypeError), match="'nonsense'"):
        estimator.step(measured[1], inputs[0], nonsense=1.0)
    assert np.array_equal(estimator.estimate, twin.estimate)
    assert len(estimator.records) == 1
    for seen, u in zip(measured[1:], inputs, strict=False):
        steps = [each.step(seen, u) for each in (estimator, twin)]
        assert np.array_equal(*steps)
        del estimator.records[:-1]  # all but the last may go


def test_wild_measurement_leaves_with_the_window():
    mhe = MHE(drift(), 1.0, window=3, noise=0.1, process=0.1, prior=1.0)
    solved, failed = [], pytest.warns(UserWarning, match="the step at time 2 failed")
    for y in (1.0, 1.0, 1e300, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        with failed if y > 1 else nullcontext():
            estimate = mhe.step([y], [])
        solved.append(mhe.success)
        assert estimate == pytest.approx([1.0], abs=0.1)
    assert solved == [True] * 2 + [False] * 4 + [True] * 4


def cart(names="xv"):
    model = Model("cart")
    _, speed = [model.state(name) for name in names]
    model.rates(**dict(zip(names, (speed, model.control("force")), strict=True)))
    return model


@pytest.mark.parametrize(
    ("measured", "names", "sees", "message"),
    [
        ("vx", "xv", "", "plant measures v, x and the controller takes x, v"),
        ("v", "xv", "x", "plant measures v and the estimator takes x"),
        ("x", "vx", "x", "estimator finds x, v and the controller takes v, x"),
        ("vx", "pq", "", ""),
    ],
)
def test_parts_of_a_loop_agree_on_names(measured, names, sees, message):
    model = cart(names)
    ocp = stated(model, integral=model.symbol("force") ** 2)
    mhe = MHE(cart(), 0.1, outputs=[*sees], noise=0.1, prior=0.1) if sees else None
    with pytest.raises(InputError, match=message) if message else nullcontext():
        simulate(Plant(cart(), 0.1, outputs=[*measured]), MPC(ocp), mhe, steps=1, x0=[1, 0])


def test_nearly_known_states_are_solved():
    model = Model("wall")
    wall = model.state("wall", unit="K", scale=30.0, guess=320.0)
    model.rates(wall=-(wall - 320) / 0.2)
    mhe, plant = MHE(model, 0.5, window=4, noise=0.2, prior=1.0, process=1e-4), Plant(model, 0.5)
    run = simulate(plant, lambda t, x: [], mhe, steps=60, x0=[321.0], noise=0.2)
    assert run.success.all()
    blind = SimpleNamespace(step=lambda y, u, time: y, success=False)
    run = simulate(plant, lambda t, x: [], blind, steps=3, x0=[321.0])
    assert "3 without success: the estimator did not solve" in str(run)
