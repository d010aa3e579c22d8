"""The benchmark command: families, guesses, peers, the judge, and what it prints and writes."""

import csv
from functools import cache

import casadi as ca
import numpy as np
import pytest
from warm.families import FAMILIES
from warm.judge import TOLERANCE, Judge
from warm.loop import NOISE, Loop
from warm.measure import FALSE, LEFT, RAISED, SOLVED, Call, Plan, measure
from warm.peers import NAMES, OURS, Setting, loads
from warm.stages import program
from warm.summary import best, lost_steps, ratios, summarize
from warm.table import report
from warm_peers import main

SHORT = 4


@cache
def small(name, N=SHORT):
    return program(FAMILIES[name], N)


@cache
def first_steps(name, count=2, N=SHORT):
    return Loop(small(name, N)).steps(1, count)


@cache
def solved(name):
    """A warm step of a loop and IPOPT's answer to it."""
    made, step = small(name), first_steps(name)[0]
    options = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "tol": 1e-10}}
    found = ca.nlpsol("s", "ipopt", made.nlp, options)(**step.arguments)
    return step, {key: value.full().ravel() for key, value in found.items()}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_solution_starts_at_the_measured_state_and_goes_where_the_plant_goes(name):
    made = small(name)
    step, found = solved(name)
    assert Judge(made)(found, step.arguments["p"])[0] <= TOLERANCE
    n, wide = made.nx[0], made.nx[0] + made.nu[0]
    assert np.allclose(found["x"][:n], step.state, atol=1e-7)
    after = made.step(step.state, made.first_input(found["x"])).full().ravel()
    assert np.allclose(found["x"][wide : wide + n], after, atol=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_measured_states_are_the_plants_but_for_one_percent(name):
    made = small(name)
    first, second = first_steps(name)
    _, found = solved(name)
    after = made.step(first.state, made.first_input(found["x"])).full().ravel()
    away = np.abs(second.state - after) / np.array(made.family.scale)
    assert 0 < away.max() < 5 * NOISE


def test_the_same_seed_gives_the_same_calls_and_another_gives_others():
    made = small("van_der_pol")
    again, other = Loop(made).steps(1, 2), Loop(made).steps(2, 2)
    for one, two in zip(first_steps("van_der_pol"), again, strict=True):
        assert all(
            np.array_equal(one.arguments[key].full(), two.arguments[key].full())
            for key in one.arguments
        )
    assert not np.array_equal(other[0].state, again[0].state)


@pytest.mark.parametrize("name", ["quadrotor", "linear"])
def test_a_shift_moves_every_stage_by_one(name):
    """Numbered stages: what belonged to stage k + 1 belongs to stage k afterwards."""
    made = small(name)
    wide, n = np.add(made.nx, made.nu), made.nx[0]
    along = np.repeat(np.arange(made.N + 1.0), wide)
    rows = [made.nx[k + 1] + made.ng[k] for k in range(made.N)]
    across = np.repeat(np.arange(float(made.N)), rows)
    x, lam_x, lam_g = made.shifted(along, along, across)
    assert np.array_equal(x[:-n], lam_x[:-n])
    after = made.step(along[-n:], np.full(len(made.family.lower), made.N - 1.0))
    assert np.array_equal(x[-n:], after.full().ravel())
    states = np.split(x, np.cumsum(wide)[:-1])
    assert [stage[0] for stage in states[:-1]] == [1, 2, 3, 4]
    assert [stage[n] for stage in states[:-1]] == [1, 2, 3, 3]
    gaps = np.split(lam_g, np.cumsum(rows)[:-1])
    assert [stage[0] for stage in gaps] == [1, 2, 3, 3]
    assert gaps[0][n] == 0  # of x_0 = x̂: what was the multiplier of the first gap
    assert made.ng[1] == 0 or gaps[1][n] == 2


def test_the_guess_of_a_problem_that_stays_the_same_is_its_solution():
    """At rest without noise nothing moves, so the shifted solution solves the next problem."""
    made = small("linear")
    loop, rest = Loop(made), np.zeros(7)
    sharp = loop._sharp(loop._solve(rest, first_steps("linear")[0].arguments | {"p": rest}, 1, 0))
    x, lam_x, lam_g = made.shifted(*sharp)
    assert Judge(made)({"x": x, "lam_x": lam_x, "lam_g": lam_g}, rest)[0] <= TOLERANCE
    assert not lam_x.any()


@pytest.mark.parametrize("wrong", ["x", "lam_x", "lam_g", "sign", "slack", "nan"])
def test_the_judge_refuses_a_wrong_point(wrong):
    made, name = small("quadrotor"), "quadrotor"
    step, found = solved(name)
    answer = {key: value.copy() for key, value in found.items()}
    if wrong == "x":
        answer["x"][0] += 1e-4
    elif wrong == "lam_x":  # a multiplier of x_0, which has no bound
        answer["lam_x"][0] += 1e-3
        answer["lam_g"][made.nx[0]] -= 1e-3
    elif wrong == "lam_g":
        answer["lam_g"][0] += 1e-3
    elif wrong == "sign":
        answer["lam_g"] *= -1
    elif wrong == "slack":  # of a row that is far from its bound
        answer["lam_g"][-1 - made.nx[0]] -= 1e-3
    else:
        answer["x"][0] = np.nan
    assert not Judge(made)(answer, step.arguments["p"])[0] <= TOLERANCE


def test_the_judge_reads_multipliers_of_bounds_off_the_slope():
    """Some plugins return those that they were given; the point is none the worse for it."""
    step, found = solved("quadrotor")
    answer = {**found, "lam_x": np.ones_like(found["lam_x"])}
    assert Judge(small("quadrotor"))(answer, step.arguments["p"])[0] <= TOLERANCE


@pytest.mark.parametrize("name", NAMES)
def test_a_plugin_accepts_its_options_and_solves_a_step(name):
    setting = NAMES[name]
    if not loads(setting):
        pytest.skip(f"this CasADi has no {setting.plugin}")
    calls = measure(small("tanks"), [setting], Plan([1], 1, 30.0), lambda _: None)
    assert [call.kind for call in calls] == [SOLVED], calls


def call(setting, step, kind=SOLVED, seconds=1e-3, f=1.0):
    finite = 1e-9 if kind == SOLVED else np.inf
    return Call("f", 10, 1, step, setting, kind, seconds, seconds, 0.1, 3, finite, f, "word")


def test_the_best_setting_counts_and_losses_are_printed():
    calls = [call(OURS, k, seconds=2e-3) for k in range(9)]
    calls += [call(OURS, 9, "failed"), call(f"{OURS}/tol-1e-6", 0, seconds=1e-6)]
    calls += [call("ipopt/slow", k, seconds=4e-3) for k in range(10)]
    calls += [call("ipopt/fast", k, seconds=1e-3, f=2.0) for k in range(10)]
    calls += [call("uno/wrong", k, FALSE, 1e-6) for k in range(10)]
    calls += [call("uno/right", k, kind=SOLVED if k else RAISED) for k in range(10)]
    calls += [call("alpaqa", k, LEFT) for k in range(10)]
    summary = summarize(calls)
    stars = best(summary["f", 10])
    assert stars["ipopt"].setting == "ipopt/fast"
    assert stars["uno"].setting == "uno/right"
    assert stars[OURS].setting == OURS
    assert stars["ipopt"].worse == 10
    found = ratios(summary)
    assert found["ipopt"]["f", 10] == (pytest.approx(0.5), True)
    assert np.isnan(found["alpaqa"]["f", 10][0])
    assert [(one.step, names) for one, names in lost_steps(calls)] == [
        (9, ["ipopt/slow", "ipopt/fast", "uno/right"])
    ]
    text = report(calls, summary)
    assert "we lose" in text
    assert "1 of 10 steps not solved, 1 of them solved by a peer" in text
    assert "uno/wrong on f N=10: false success in 10 steps" in text


def test_a_setting_whose_time_is_up_is_left_out():
    calls = measure(small("tanks"), [NAMES[OURS]], Plan([1], 2, 1e-9), lambda _: None)
    assert [one.kind for one in calls] == [LEFT, LEFT]


def test_a_solver_that_cannot_be_built_is_shown_as_such():
    wrong = Setting("ipopt/wrong", lambda _: {"no_such_option": 1}, "ipopt")
    calls = measure(small("tanks"), [wrong], Plan([1], 1, 9.0), lambda _: None)
    assert [one.kind for one in calls] == [RAISED]
    assert calls[0].word


def test_compiled_solvers_solve_the_same_step(compiler, tmp_path, monkeypatch):
    """Whole solvers are generated where CasADi can, functions otherwise."""
    monkeypatch.chdir(tmp_path)
    settings = [NAMES[name] for name in (OURS, "sqpmethod/qrqp")]
    calls = measure(small("tanks", 2), settings, Plan([1], 1, 9.0, True), lambda _: None)
    assert [one.kind for one in calls] == [SOLVED] * 2, calls
    assert not list(tmp_path.iterdir())


def test_the_command_prints_and_writes(tmp_path, capsys):
    words = ["--quick", "--family", "van_der_pol", "--sizes", "5", "--steps", "2"]
    words += ["--solvers", "hybrid", "ipopt/mu-1e-5", "--out", str(tmp_path)]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "van_der_pol N=5" in out
    assert "The best setting of each solver" in out
    with (tmp_path / "benchmark-calls.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 3  # steps, settings: hybrid with both of its own, and IPOPT
    assert {row["kind"] for row in rows} == {SOLVED}
    assert all(float(row["residual"]) <= TOLERANCE for row in rows)
    for name in ("benchmark.txt", "benchmark.csv", "profile.png", "times.png"):
        assert (tmp_path / name).stat().st_size > 100
