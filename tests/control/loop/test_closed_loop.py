"""Closed loops, held against recursions written by hand."""

import sys
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from support.judges.refusals import assert_refused

from casadi_hybrid.control import EKF, Model, Plant, Run, monte_carlo, simulate
from casadi_hybrid.utils.errors import InputError

A = np.array([[1.0, 0.1], [0.0, 1.0]])
B = np.array([[0.005], [0.1]])
GAIN = np.array([[3.0, 2.5]])
COVARIANCE = np.array([[0.04, 0.03], [0.03, 0.09]])


def masses():
    model = Model("mass")
    x = model.state("x", 2, unit="m")
    u = model.control("u", unit="N", upper=0.5)
    model.next(x=ca.mtimes(ca.DM(A), x) + ca.mtimes(ca.DM(B), u))
    model.output("sum", x[0] + x[1])
    return model


def feedback(time, x):
    return -GAIN @ x


def idle(time, x):
    return 0.0


def controlled(**options):
    return simulate(Plant(masses(), 0.1), feedback, **{"steps": 20, "x0": [1.0, 0.0], **options})


@pytest.mark.parametrize(
    "push",
    [{7: [0.5, 0.0]}, {7: {"x": [0.5, 0.0]}}, lambda k, t, x: [0.5, 0.0] if k == 7 else None],
)
def test_loop_is_the_recursion_by_hand(push):
    run = controlled(push=push)
    x = np.array([1.0, 0.0])
    for k in range(20):
        x = x + (np.array([0.5, 0.0]) if k == 7 else 0.0)
        assert np.allclose(run.states[:, k], x, atol=1e-14)
        u = -GAIN @ x
        assert np.allclose(run["u"][k], u, atol=1e-13)
        x = A @ x + B @ u
    assert np.allclose(run["x"][:, -1], x, atol=1e-14)
    assert np.allclose(run.times, 0.1 * np.arange(21))
    assert run.control_times.size == 20
    assert np.allclose(run["sum"], run["x"].sum(axis=0))
    assert [*run] == [*run.keys()] == [*run.states, *run.controls.keys(), "sum"]


@pytest.mark.parametrize("delay", [1, 3])
def test_delay_shifts_inputs_or_measurements(delay):
    run = controlled(delay=delay, u0=0.25)
    assert np.array_equal(run.controls[:, delay:], run.commanded[:, :-delay])
    assert np.array_equal(run["u"][:delay], np.full(delay, 0.25))
    x = run["x"]
    assert np.allclose(x[:, 1:], A @ x[:, :-1] + B @ run.controls.values, atol=1e-14)
    run = controlled(measurement_delay=delay)
    assert np.isnan(run.measured[:, :delay]).all()
    assert np.isnan(run.commanded[0, :delay]).all()
    assert np.array_equal(run.measured[:, delay:], run.states[:, : 20 - delay])
    assert (run.status[0], run["u"][0]) == ("no measurement yet", 0.0)


@pytest.mark.parametrize("noise", ["noise", "process_noise"])
def test_noise_has_the_covariance(noise):
    options = {"steps": 4000, "x0": [0, 0], "period": 1.0, noise: COVARIANCE}
    run = simulate(lambda x, u: x, idle, **options)
    quiet = noise == "noise"
    assert np.array_equal(run.states, np.zeros((2, 4001))) == quiet
    draws = run.measured.values if quiet else np.diff(run.states.values, axis=1)
    assert np.abs(draws.mean(axis=1)).max() < 4 * 0.3 / np.sqrt(4000)
    # The standard error of an entry is at most √(2/4000) of the largest variance.
    assert np.allclose(np.cov(draws), COVARIANCE, atol=4 * 0.09 * np.sqrt(2 / 4000))


def test_lost_measurements_keep_the_last():
    seen = []

    def controller(time, x):
        seen.append(x)
        return feedback(time, x)

    options = {"steps": 200, "x0": [1, 0], "noise": 0.01}
    run = simulate(Plant(masses(), 0.1), controller, dropout=0.3, **options)
    lost = np.isnan(run.measured[0])
    assert 0.2 < lost.mean() < 0.4
    first = int(np.argmin(lost))
    assert len(seen) == 200 - first
    for k in range(first + 1, 200):
        expected = seen[k - first - 1] if lost[k] else run.measured[:, k]
        assert np.array_equal(seen[k - first], expected)
    whole = controlled(**options)
    noise = run.measured[:, ~lost] - run.states[:, :-1][:, ~lost]
    assert np.allclose(noise, (whole.measured.values - whole.states[:, :-1])[:, ~lost], atol=1e-12)


def test_seed_decides_the_run():
    noise = {"noise": 0.1, "process_noise": 0.01, "dropout": 0.2}
    run, same, other = (controlled(seed=seed, **noise) for seed in (1, 1, 2))
    assert np.array_equal(run.measured, same.measured, equal_nan=True)
    assert np.array_equal(run.states, same.states)
    assert not np.array_equal(run.states, other.states)


def cooling():
    model = Model("cooling")
    T = model.state("temperature", upper=50.0, scale=10.0, unit="K")
    heat, loss = model.control("heat"), model.parameter("loss", 0.1)
    model.rates(temperature=heat - loss * T)
    return model


def test_plant_has_its_own_parameters():
    model = cooling()
    plant = Plant(model, 2.0, parameters={"loss": 0.3})
    run = simulate(plant, idle, steps=5, x0={"temperature": 60.0})
    assert np.allclose(run["temperature"], 60.0 * np.exp(-0.3 * run.times), rtol=1e-8)
    assert model.values["loss"] == 0.1


def test_costs_and_violations_are_recorded():
    model = cooling()
    T = model.symbol("temperature")
    cost = {"far": (T - 20) ** 2, "heat": lambda x, u, time: 2.0 * u[0]}
    options = {"steps": 4, "x0": [60.0], "cost": cost, "limits": {"heat": (None, 0.75)}}
    run = simulate(Plant(model, 1.0), lambda time, x: 1.0, **options)
    assert np.allclose(run.costs["far"], (run["temperature"][:4] - 20) ** 2)
    assert run.cost == pytest.approx(run.costs["far"].sum() + 8.0)
    assert np.array_equal(run.violations["heat"][:-1], np.full(4, 0.25))
    assert run.violation == pytest.approx(1.0)  # 10 K above its limit at a scale of 10 K


def test_controller_hears_parameters_and_is_reset():
    def step(x, time, target):
        fine = target < 3
        return SimpleNamespace(control=target - x, status="ok" if fine else "poor", success=fine)

    resets = []
    controller = SimpleNamespace(step=step, reset=lambda: resets.append("reset"), deadline=8)
    parts, options = (lambda x, u: x + u, controller), {"steps": 4, "x0": [0.0], "period": 1.0}
    with pytest.warns(UserWarning, match="deadline is 8 s, the period of the loop 1 s"):
        run = simulate(*parts, parameters=lambda t: {"target": t + 1}, **options)
    assert np.array_equal(run["x"], [0, 1, 2, 3, 4])
    assert (resets, run.status) == (["reset"], ("ok", "ok", "poor", "poor"))
    assert (run.failed, run.steps[0].status) == (2, "ok")
    del controller.deadline
    run = simulate(*parts, parameters={"target": 2}, **options)
    assert np.array_equal(run["x"], [0, 2, 2, 2, 2])


def test_step_without_a_plan_has_failed():
    statuses = "solved", "last plan", "softened", "fallback"
    steps = (SimpleNamespace(control=[0.0], status=word, reason=f"{word}!") for word in statuses)
    controller = SimpleNamespace(step=lambda x, time: next(steps))
    run = simulate(lambda x, u: x, controller, steps=4, x0=[0.0], period=1.0)
    assert run.success.tolist() == [True, False, True, False]
    assert "2 without success, 1 of them: last plan!" in str(run)


def test_algebraic_states_are_measured():
    """dx/dt = −f with x = f + f³: t = ∫ (1 + 3 f²)/f df; unmeasured, their limit is not judged."""
    model = Model("spring")
    x, f = model.state("x"), model.algebraic("force", upper=0.1, guess=0.1)
    model.rates(x=-f)
    model.equations(law=f + f**3 - x)
    model.output("seen", f)
    plant = Plant(model, 0.5, outputs=["force"])
    assert plant.measure([2.0], []) == pytest.approx([1.0], abs=1e-10)
    (end,) = plant.measure(plant.step([2.0], []), [])
    assert np.log(1.0 / end) + 1.5 * (1.0 - end**2) == pytest.approx(0.5, abs=1e-6)
    options = {"steps": 3, "x0": [2], "limits": {"seen": (0, 0.1)}}
    run = simulate(Plant(model, 0.5), lambda time, x: [], **options)
    assert str(run).endswith("force")
    assert run.worst.name == "seen"


def test_diverging_run_is_stopped():
    options = {"steps": 50, "x0": [10.0], "period": 1.0, "cost": lambda x, u, time: 1.0}
    with np.errstate(over="ignore"):
        run = simulate(lambda x, u: x**2, idle, **options)
    assert "no longer finite after step 8" in run.stopped
    assert run.control_times.size == 9
    assert np.isnan(run["x"][-1])


@pytest.fixture(scope="module")
def noisy():
    model = cooling()
    options = {"noise": 0.5, "dropout": 0.3, "seed": 4, "cost": model.symbol("temperature")}
    return simulate(Plant(model, 1.0), lambda time, x: 1.0, steps=6, x0=[30.0], **options)


def test_run_is_saved_and_loaded(noisy, tmp_path):
    path = noisy.save(tmp_path / "deep" / "run")
    again = Run.load(path)
    assert path.suffix == ".npz"
    for name in ("states", "outputs", "controls", "commanded", "measured", "estimates"):
        array, same = getattr(noisy, name), getattr(again, name)
        assert np.array_equal(array, same, equal_nan=True)
        assert array.places == same.places
    for name in ("cost", "violation", "status"):
        assert getattr(again, name) == getattr(noisy, name)
    assert (again.steps, str(again)) == ((), str(noisy))
    assert again.limits["temperature"].unit == "K"
    other = tmp_path / "other.npz"
    np.savez(other, a=1)
    with pytest.raises(InputError, match="holds no run"):
        Run.load(other)


def test_pandas_is_optional(noisy, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pip install"):
        noisy.to_pandas()
    stand_in = SimpleNamespace(DataFrame=lambda columns, index: columns, Index=lambda *_, **__: 0)
    monkeypatch.setitem(sys.modules, "pandas", stand_in)
    columns = noisy.to_pandas()
    assert set(columns) == {"temperature", "heat", "temperature measured", "cost cost"}
    assert all(len(values) == 7 for values in columns.values())


def test_plot_draws_a_panel_a_name(noisy, tmp_path):
    figure = noisy.plot(title="cooling", path=tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 1000
    assert [ax.get_ylabel() for ax in figure.axes] == ["temperature (K)", "heat"]
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert [labels.count(word) for word in ("true", "measured")] == [1, 1]
    assert len(noisy.plot(["heat"]).axes) == 1
    with pytest.raises(InputError, match="did you mean"):
        noisy.plot(["temprature"])


def noisy_decay(seed):
    if seed == 2:
        raise ArithmeticError("seed 2 is unlucky")
    gain, cost = 1e200 if seed == 3 else 0.5, lambda x, u, time: float(x @ x)
    options = {"steps": 10, "x0": [1.0], "period": 1.0, "noise": 0.1, "seed": seed, "cost": cost}
    with np.errstate(all="ignore"):
        return simulate(lambda x, u: gain * x + u, lambda time, x: -0.3 * x, **options)


@pytest.mark.filterwarnings("ignore:monte_carlo")
def test_monte_carlo_is_independent_of_workers():
    seeds = [4, 2, 0, 3]
    alone = monte_carlo(noisy_decay, seeds, progress=False)
    together = monte_carlo(noisy_decay, seeds, workers=2, progress=False)
    assert [trial.seed for trial in alone.trials] == seeds
    assert alone.column("cost").tolist()[::2] == together.column("cost").tolist()[::2]
    assert alone.errors == together.errors
    assert np.isnan(alone.column("cost")[[1, 3]]).all()
    plant = Plant(masses(), 0.1)
    with pytest.raises(InputError, match="make what it uses"):
        monte_carlo(lambda seed: plant, 2, workers=2, progress=False)


def test_monte_carlo_has_a_summary():
    with pytest.warns(UserWarning, match="2 of 6 runs .* seed 2: ArithmeticError"):
        summary = monte_carlo(noisy_decay, range(6), progress=False)
    costs = {seed: noisy_decay(seed).cost for seed in (0, 1, 4, 5)}
    cost, values = summary["cost"], [*costs.values()]
    assert (cost.count, cost.worst, cost.seed) == (4, max(values), max(costs, key=costs.get))
    statistics = np.mean(values), np.std(values, ddof=1), np.median(values)
    assert (cost.mean, cost.std, cost.quantiles[1]) == pytest.approx(statistics)
    assert summary.errors[2] == "ArithmeticError: seed 2 is unlucky"
    assert "no longer finite" in summary.errors[3]
    assert str(summary) == summary.table()
    assert all(word in str(summary) for word in ("cost", "failed steps", "seed 2:"))
    assert [*summary] == ["cost", "violation", "failed", "steps"]
    assert len(summary.plot().axes) == 2


def test_bad_arguments_are_refused_by_name():
    good = {"plant": Plant(masses(), 0.1), "controller": feedback, "steps": 5, "x0": [1.0, 0.0]}
    assert_refused(
        ({"steps": 0}, "steps"),
        ({"x0": [1.0]}, "x0 has 1 entries"),
        ({"noise": -1.0}, "noise must be standard deviations"),
        ({"noise": [[1.0, 2.0], [2.0, 1.0]]}, "noise has the eigenvalue -1"),
        ({"dropout": 1.5}, "dropout"),
        ({"push": {9: [0, 0]}}, "push has the step 9"),
        ({"cost": ca.SX.sym("strange")}, "cost 'cost' has 'strange', which is no"),
        ({"period": 0.3}, "period is 0.3"),
        ({"estimator": 3}, "estimator must be an object with the method 'step', got int"),
        ({"estimator": EKF(masses(), 0.2, noise=1, prior=1)}, "is 0.1, the estimator's 0.2"),
        ({"controller": 3}, "controller must be a function .*, or have step.*, got int"),
        ({"controller": lambda time, x: [1.0, 2.0]}, "the control of step 0"),
        ({"plant": 3}, "plant must be a Plant"),
        ({"cost": lambda x, u, time: x}, "cost 'cost' at time 0 has shape"),
        ({"parameters": lambda time: None}, "parameters must be .*; at 0 it returned None"),
        by=lambda **bad: simulate(**{**good, **bad}),
    )
    assert_refused(
        (lambda: Plant(masses(), 0.1, outputs=["x", "x"]), "outputs names 'x' twice"),
        (lambda: Plant(cooling(), 0.1, parameters={"los": 1.0}), "no parameter 'los'"),
        (lambda: monte_carlo(noisy_decay, [1, 1]), "different"),
    )


def test_printed_run_names_its_worst_violation():
    model = Model("tank", time_unit="min")
    level = model.state("level", 2, lower=[0.0, -1.0], scale=[10.0, 0.1], unit="m")
    flow = model.control("flow", lower=None, upper=3.0, scale=2.0, unit="l/min")
    model.next(level=level + ca.vertcat(flow, -0.25))
    parts, options = (Plant(model, 0.5), lambda t, x: [2 + 4 * t]), {"steps": 3, "x0": [1.0, -0.5]}
    run = simulate(*parts, **options)
    worst = run.worst
    assert (worst.name, worst.side, worst.time) == ("level[1]", "lower", 1.5)
    assert worst.scaled == run.violation == pytest.approx(2.5)  # in m less than that of flow
    assert run.violations["flow"].tolist()[:3] == [0.0, 1.0, 3.0]
    for part in ("0 to 1.5 min", "level -1.25 to 13 m", "flow 2 to 6 l/min", str(worst)):
        assert part in str(run)
    assert [ax.get_xlabel() for ax in run.plot().axes] == ["", "time (min)"]
    free = simulate(*parts, limits={"level": (None, None), "flow": (None, 6.0)}, **options)
    assert (free.worst, free.violation) == (None, 0.0)
