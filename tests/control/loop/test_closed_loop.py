"""Closed loops, held against recursions written by hand."""

import sys
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid.control import EKF, Model, Plant, Run, RungeKutta, monte_carlo, simulate
from casadi_hybrid.utils.errors import InputError

A = np.array([[1.0, 0.1], [0.0, 1.0]])
B = np.array([[0.005], [0.1]])
GAIN = np.array([[3.0, 2.5]])


def masses(**limits):
    """A discrete double integrator with an output."""
    model = Model("mass")
    x = model.state("x", 2, unit="m", **limits)
    u = model.control("u", unit="N", upper=0.5)
    model.next(x=ca.mtimes(ca.DM(A), x) + ca.mtimes(ca.DM(B), u))
    model.output("sum", x[0] + x[1])
    return model


def feedback(time, x):
    return -GAIN @ x


@pytest.mark.parametrize(
    "push",
    [{7: [0.5, 0.0]}, {7: {"x": [0.5, 0.0]}}, lambda k, t, x: [0.5, 0.0] if k == 7 else None],
)
def test_feedback_is_the_recursion_written_by_hand(push):
    run = simulate(Plant(masses(), 0.1), feedback, steps=20, x0=[1.0, 0.0], push=push)
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
    assert "push" not in run


@pytest.mark.parametrize("delay", [1, 3])
def test_delay_shifts_the_inputs(delay):
    run = simulate(Plant(masses(), 0.1), feedback, steps=12, x0=[1, 0], delay=delay, u0=0.25)
    assert np.array_equal(run.controls[:, delay:], run.commanded[:, :-delay])
    assert np.array_equal(run["u"][:delay], np.full(delay, 0.25))
    x = run["x"]
    assert np.allclose(x[:, 1:], A @ x[:, :-1] + B @ run.controls.values, atol=1e-14)


def test_measurement_delay_hands_on_old_measurements():
    run = simulate(Plant(masses(), 0.1), feedback, steps=12, x0=[1, 0], measurement_delay=2)
    assert np.isnan(run.measured[:, :2]).all()
    assert np.isnan(run.commanded[0, :2]).all()
    assert np.array_equal(run.measured[:, 2:], run.states[:, :10])
    assert (run.status[0], run["u"][0]) == ("no measurement yet", 0.0)


COVARIANCE = np.array([[0.04, 0.03], [0.03, 0.09]])


@pytest.mark.parametrize("noise", ["noise", "process_noise"])
def test_noise_has_the_covariance(noise):
    run = simulate(lambda x, u: x, lambda time, x: 0.0, steps=4000, x0=[0, 0], period=1.0,
                   **{noise: COVARIANCE})  # fmt: skip
    if noise == "noise":
        assert np.array_equal(run.states, np.zeros((2, 4001)))
        assert np.abs(run.measured.values.mean(axis=1)).max() < 4 * 0.3 / np.sqrt(4000)
    draws = run.measured.values if noise == "noise" else np.diff(run.states.values, axis=1)
    # The standard error of an entry is at most √(2/4000) of the largest variance.
    assert np.allclose(np.cov(draws), COVARIANCE, atol=4 * 0.09 * np.sqrt(2 / 4000))


def test_noise_by_name_leaves_others_exact():
    plant = Plant(masses(), 0.1, outputs=["x", "sum"])
    run = simulate(plant, lambda time, y: 0.0, steps=50, x0=[1, 0], noise={"sum": 0.1})
    assert np.array_equal(run.measured["x"], run.states[:, :-1])
    error = run.measured["sum"] - run["sum"][:-1]
    assert 0.05 < error.std() < 0.2


def test_lost_measurements_are_nan_and_the_last_is_kept():
    seen = []
    plant = Plant(masses(), 0.1)

    def controller(time, x):
        seen.append(x)
        return feedback(time, x)

    run = simulate(plant, controller, steps=200, x0=[1, 0], dropout=0.3, noise=0.01)
    lost = np.isnan(run.measured[0])
    assert 0.2 < lost.mean() < 0.4
    first = int(np.argmin(lost))
    assert len(seen) == 200 - first
    for k in range(first + 1, 200):
        kept = seen[k - first - 1] if lost[k] else run.measured[:, k]
        assert np.array_equal(seen[k - first], kept)
    whole = simulate(plant, controller, steps=200, x0=[1, 0], dropout=0.0, noise=0.01)
    noise = run.measured[:, ~lost] - run.states[:, :-1][:, ~lost]
    assert np.allclose(noise, (whole.measured.values - whole.states[:, :-1])[:, ~lost], atol=1e-12)


def test_the_seed_decides_the_run():
    def run(seed):
        return simulate(Plant(masses(), 0.1), feedback, steps=20, x0=[1, 0], seed=seed,
                        noise=0.1, process_noise=0.01, dropout=0.2)  # fmt: skip

    one, same, other = run(1), run(1), run(2)
    assert np.array_equal(one.states, same.states)
    assert np.array_equal(one.measured, same.measured, equal_nan=True)
    assert not np.array_equal(one.states, other.states)


def cooling(rate=0.1):
    model = Model("cooling")
    T = model.state("temperature", upper=50.0, scale=10.0, unit="K")
    heat = model.control("heat")
    loss = model.parameter("loss", rate)
    model.rates(temperature=heat - loss * T)
    return model


def test_mismatch_moves_the_plant_with_its_own_numbers():
    model = cooling(0.1)
    plant = Plant(model, 2.0, parameters={"loss": 0.3})
    run = simulate(plant, lambda time, x: 0.0, steps=5, x0={"temperature": 60.0})
    assert np.allclose(run["temperature"], 60.0 * np.exp(-0.3 * run.times), rtol=1e-8)
    assert model.values["loss"] == 0.1
    late = Plant(model, 2.0, parameters={"loss": lambda t: 0.1 if t < 4 else 0.5})
    run = simulate(late, lambda time, x: 0.0, steps=3, x0=[60.0])
    assert np.allclose(run["temperature"][2:], 60.0 * np.exp([-0.4, -1.4]), rtol=1e-8)


def test_runge_kutta_plant_has_its_order():
    exact = 60.0 * np.exp(-0.2)
    errors = [abs(Plant(cooling(), 2.0, step=RungeKutta(n)).step([60.0], [0.0])[0] - exact)
              for n in (1, 2)]  # fmt: skip
    assert 12 < errors[0] / errors[1] < 20


def test_costs_and_violations():
    model = cooling()
    T = model.symbol("temperature")
    cost = {"far": (T - 20) ** 2, "heat": lambda x, u, time: 2.0 * u[0]}
    run = simulate(Plant(model, 1.0), lambda time, x: 1.0, steps=4, x0=[60.0], cost=cost,
                   limits={"heat": (None, 0.75)})  # fmt: skip
    assert np.allclose(run.costs["far"], (run["temperature"][:4] - 20) ** 2)
    assert run.cost == pytest.approx(run.costs["far"].sum() + 8.0)
    assert np.allclose(run.violations["temperature"], np.maximum(run["temperature"] - 50, 0))
    assert np.array_equal(run.violations["heat"][:-1], np.full(4, 0.25))
    # 10 K above its limit at a scale of 10 K.
    assert run.violation == pytest.approx(1.0)


def test_parameters_reach_the_controller():
    def step(x, time, target):
        fine = target < 3
        return SimpleNamespace(control=target - x, status="ok" if fine else "poor", success=fine)

    resets = []
    controller = SimpleNamespace(step=step, reset=lambda: resets.append("reset"))
    run = simulate(lambda x, u: x + u, controller, steps=4, x0=[0.0], period=1.0,
                   parameters=lambda t: {"target": t + 1})  # fmt: skip
    assert np.array_equal(run["x"], [0, 1, 2, 3, 4])
    assert resets == ["reset"]
    assert run.status == ("ok", "ok", "poor", "poor")
    assert (run.failed, run.steps[0].status) == (2, "ok")
    fixed = simulate(lambda x, u: x + u, controller, steps=2, x0=[0.0], period=1.0,
                     parameters={"target": 2})  # fmt: skip
    assert np.array_equal(fixed["x"], [0, 2, 2])


def test_a_step_without_a_plan_is_a_failed_one():
    said = "solved", "last plan", "softened", "fallback"
    steps = (SimpleNamespace(control=[0.0], status=word, reason=f"{word}!") for word in said)
    controller = SimpleNamespace(step=lambda x, time: next(steps))
    run = simulate(lambda x, u: x, controller, steps=4, x0=[0.0], period=1.0)
    assert run.success.tolist() == [True, False, True, False]
    assert str(run).splitlines()[1] == "2 without success, 1 of them: last plan!"


def test_algebraic_states_are_measured():
    model = Model("spring")
    x = model.state("x")
    f = model.algebraic("force", guess=0.1)
    model.rates(x=-f)
    model.equations(law=f + f**3 - x)
    plant = Plant(model, 0.5, outputs=["force"])
    (force,) = plant.measure([2.0], [])
    assert force == pytest.approx(1.0, abs=1e-10)
    after = plant.step([2.0], [])
    # dx/dt = −f with x = f + f³: t = ∫ (1 + 3 f²)/f df.
    end = plant.measure(after, [])[0]
    time = np.log(1.0 / end) + 1.5 * (1.0 - end**2)
    assert time == pytest.approx(0.5, abs=1e-6)


def test_limits_of_algebraic_states_are_not_said_to_hold():
    model = Model("leak")
    x, out, u = model.state("x"), model.algebraic("out", upper=0.1), model.control("u", upper=1)
    model.rates(x=u - out)
    model.equations(law=out - x)
    model.output("seen", out)
    run = simulate(Plant(model, 0.5), lambda time, x: 1, steps=3, x0=[1], limits={"seen": (0, 0.1)})
    assert str(run).endswith("not checked, for the record does not determine them: out")
    assert run.worst.name == "seen"


def test_a_run_that_leaves_the_numbers_is_stopped():
    with np.errstate(over="ignore"):
        run = simulate(lambda x, u: x**2, lambda time, x: 0.0, steps=50, x0=[10.0], period=1.0,
                       cost=lambda x, u, time: 1.0)  # fmt: skip
    assert "no longer finite after step 8" in run.stopped
    assert run.control_times.size == 9
    assert np.isnan(run["x"][-1])


def noisy():
    model = cooling()
    return simulate(Plant(model, 1.0), lambda time, x: 1.0, steps=6, x0=[30.0], noise=0.5,
                    dropout=0.3, seed=4, cost=model.symbol("temperature"))  # fmt: skip


def test_save_and_load(tmp_path):
    run = noisy()
    path = run.save(tmp_path / "deep" / "run")
    again = Run.load(path)
    assert (path.suffix, path.exists()) == (".npz", True)
    for name in ("states", "outputs", "controls", "commanded", "measured", "estimates"):
        one, other = getattr(run, name), getattr(again, name)
        assert np.array_equal(one, other, equal_nan=True)
        assert one.places == other.places
    same = run.cost, run.violation, run.status, ()
    assert (again.cost, again.violation, again.status, again.steps) == same
    assert str(again) == str(run)
    assert again.limits["temperature"].unit == "K"
    other = tmp_path / "other.npz"
    np.savez(other, a=1)
    with pytest.raises(InputError, match="holds no run"):
        Run.load(other)


def test_pandas_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"pip install 'casadi-hybrid\[pandas\]'"):
        noisy().to_pandas()
    stand_in = SimpleNamespace(
        DataFrame=lambda columns, index: (columns, index),
        Index=lambda values, name: (list(values), name),
    )
    monkeypatch.setitem(sys.modules, "pandas", stand_in)
    run = noisy()
    columns, (times, name) = run.to_pandas()
    assert (name, times) == ("time", list(run.times))
    assert set(columns) == {"temperature", "heat", "temperature measured", "cost cost"}
    assert all(len(values) == 7 for values in columns.values())


def test_plot_draws_a_panel_a_name(tmp_path):
    figure = noisy().plot(title="cooling", path=tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 1000
    labels = [ax.get_ylabel() for ax in figure.axes]
    assert labels == ["temperature (K)", "heat"]
    drawn = [line.get_label() for line in figure.axes[0].lines]
    assert [drawn.count(word) for word in ("true", "measured")] == [1, 1]
    assert len(noisy().plot(["heat"]).axes) == 1
    with pytest.raises(InputError, match="did you mean"):
        noisy().plot(["temprature"])


def test_entries_have_colours_that_their_limits_and_measurements_share():
    plant = Plant(masses(lower=[-1.5, -1], upper=2), 0.1)
    lines = simulate(plant, feedback, steps=20, x0=[1, 0], noise=0.05).plot(["x"]).axes[0].lines
    looks = [(line.get_color(), line.get_zorder() < 2) for line in lines]
    assert [*looks[2:4]] == [(color, True) for color, _ in looks[:2]]  # measured, behind
    limits = dict(zip((line.get_ydata()[0] for line in lines[4:7]), looks[4:7], strict=True))
    assert [limits[at] for at in (-1.5, -1, 2)] == [*looks[:2], ("#D55E00", False)]


def one_run(seed):
    """For the Monte Carlo tests; seed 2 fails, seed 3 leaves the numbers."""
    if seed == 2:
        raise ArithmeticError("seed 2 is unlucky")
    gain = 1e200 if seed == 3 else 0.5
    with np.errstate(all="ignore"):
        return simulate(lambda x, u: gain * x + u, lambda time, x: -0.3 * x, steps=10, x0=[1.0],
                        period=1.0, noise=0.1, seed=seed,
                        cost=lambda x, u, time: float(x @ x))  # fmt: skip


@pytest.mark.filterwarnings("ignore:monte_carlo")
def test_monte_carlo_is_the_same_for_any_number_of_workers():
    seeds = [4, 2, 0, 3]
    alone = monte_carlo(one_run, seeds, progress=False)
    together = monte_carlo(one_run, seeds, workers=2, progress=False)
    assert [trial.seed for trial in alone.trials] == seeds
    assert alone.column("cost").tolist()[::2] == together.column("cost").tolist()[::2]
    assert alone.errors == together.errors
    assert np.isnan(alone.column("cost")[[1, 3]]).all()
    plant = Plant(masses(), 0.1)
    with pytest.raises(InputError, match=r"make what it uses, .* inside of it"):
        monte_carlo(lambda seed: plant, 2, workers=2, progress=False)


def test_summary_of_monte_carlo():
    with pytest.warns(UserWarning, match=r"2 of 6 runs .* seed 2: ArithmeticError: seed 2 is"):
        summary = monte_carlo(one_run, range(6), progress=False)
    costs = [one_run(seed).cost for seed in (0, 1, 4, 5)]
    found = summary["cost"]
    assert (found.count, found.worst) == (4, max(costs))
    assert found.mean == pytest.approx(np.mean(costs))
    assert found.std == pytest.approx(np.std(costs, ddof=1))
    assert found.seed == (0, 1, 4, 5)[int(np.argmax(costs))]
    assert found.quantiles[1] == pytest.approx(np.median(costs))
    assert summary.errors[2] == "ArithmeticError: seed 2 is unlucky"
    assert "no longer finite" in summary.errors[3]
    table = summary.table().splitlines()
    assert table[1].startswith("cost")
    assert table[-2].startswith("seed 2:")
    assert str(summary) == repr(summary) == summary.table()
    assert [*summary] == ["cost", "violation", "failed", "steps"]
    assert dict(summary)["cost"] == found
    assert len(summary.plot().axes) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 0}, "steps"),
        ({"x0": [1.0]}, "x0 has 1 entries"),
        ({"noise": -1.0}, "noise must be standard deviations"),
        ({"noise": [[1.0, 2.0], [2.0, 1.0]]}, "noise has the eigenvalue -1; a covariance has none"),
        ({"noise": {"y": 1.0}}, "no entry of noise 'y'"),
        ({"dropout": 1.5}, "dropout"),
        ({"delay": -1}, "delay"),
        ({"push": {9: [0, 0]}}, "push has the step 9"),
        ({"push": {1: [0]}}, r"push\[1\] has 1 entries, but"),
        ({"push": [0, 1]}, "push must be a dictionary by name, got list"),
        ({"cost": ca.SX.sym("strange")}, "cost 'cost' has 'strange', which is no"),
        ({"limits": {"x": 3}}, "must be a pair"),
        ({"period": 0.3}, "period is 0.3"),
        ({"estimator": 3}, "estimator must be an object with the method 'step', got int"),
        ({"estimator": EKF(masses(), 0.2, noise=1, prior=1)}, "is 0.1, the estimator's 0.2"),
        ({"controller": 3}, "controller must be a function .*, or have step.*, got int"),
        ({"controller": lambda time, x: [1.0, 2.0]}, "the control of step 0"),
        ({"plant": 3}, "plant must be a Plant"),
        ({"cost": lambda x, u, time: x}, "cost 'cost' at time 0 has shape"),
        ({"parameters": lambda time: None}, "parameters must be .*; at 0 it returned None"),
        ({"seed": -1}, "seed"),
    ],
)
def test_arguments_are_refused_by_name(arguments, message):
    good = {"plant": Plant(masses(), 0.1), "controller": feedback, "steps": 5, "x0": [1.0, 0.0]}
    with pytest.raises(InputError, match=message):
        simulate(**{**good, **arguments})


def test_a_run_says_what_happened_where_it_is_printed():
    model = Model("tank", time_unit="min")
    level = model.state("level", 2, lower=[0.0, -1.0], scale=[10.0, 0.1], unit="m")
    flow = model.control("flow", lower=None, upper=3.0, scale=2.0, unit="l/min")
    model.next(level=level + ca.vertcat(flow, -0.25))
    plant = Plant(model, 0.5)
    run = simulate(plant, lambda time, x: [2.0 + 4.0 * time], steps=3, x0=[1.0, -0.5])
    worst = run.worst
    assert (worst.name, worst.side, worst.time) == ("level[1]", "lower", 1.5)
    assert worst.scaled == run.violation == pytest.approx(2.5)  # in m less than that of flow
    assert run.violations["flow"].tolist()[:3] == [0.0, 1.0, 3.0]
    assert str(run).splitlines() == [
        "3 steps from time 0 to 1.5 min: 3 computed",
        "states: level -1.25 to 13 m",
        "controls: flow 2 to 6 l/min",
        f"largest violation 2.5 of the scale: {worst}",
    ]
    assert str(worst) == "level[1] is 0.25 m below its limit -1 m at 1.5 min"
    assert [ax.get_xlabel() for ax in run.plot().axes] == ["", "time (min)"]
    free = simulate(plant, lambda time, x: [2.0 + 4.0 * time], steps=3, x0=[1.0, -0.5],
                    limits={"level": (None, None), "flow": (None, 6.0)})  # fmt: skip
    assert (free.worst, free.violation) == (None, 0.0)
    bare = simulate(lambda x, u: x, lambda time, x: [1.0], steps=2, x0=[1.0], period=1.0)
    assert str(bare).splitlines()[1:3] == ["states: x 1 to 1", "controls: u 1 to 1"]


def test_bad_plants_and_seeds_are_refused():
    for model, period, options, said in (
        (masses(), 0.1, {"outputs": ["x", "x"]}, "outputs names 'x' twice"),
        (cooling(), 0.1, {"parameters": {"los": 1.0}}, "no parameter 'los'"),
        (cooling(), 0.0, {}, "period"),
    ):
        with pytest.raises(InputError, match=said):
            Plant(model, period, **options)
    with pytest.raises(InputError, match="different"):
        monte_carlo(one_run, [1, 1])


def test_a_deadline_longer_than_a_period_is_doubted():
    law = SimpleNamespace(step=lambda x, time: -0.4 * x, deadline=8)
    with pytest.warns(UserWarning, match="deadline is 8 s, the period of the loop 0.01 s"):
        simulate(lambda x, u: x + u, law, steps=2, x0=[1.0], period=0.01)
