"""The judges, peers and tables behind the published figures of the benchmarks."""

from functools import cache
from importlib import import_module

import casadi as ca
import numpy as np
import pytest
from control_versus import loop
from peers.cases import Case, cases
from peers.judge import Judge as ColdJudge
from peers.judge import judged
from peers.solvers import claim
from peers.workers import Answer, Run, solve
from support.cases.nlp import PEER
from versus.plants import PLANTS
from warm.families import FAMILIES
from warm.judge import TOLERANCE, Judge
from warm.loop import FALSE, LEFT, RAISED, SOLVED, Call, Loop, measure
from warm.peers import NAMES, OURS, Setting, loads
from warm.report import best, report, summarize
from warm.stages import program
from warm_peers import main

HORIZON = 4


# Warm steps.
@cache
def small(name):
    return program(FAMILIES[name], HORIZON)


@cache
def solved(name):
    """A warm step of a loop and IPOPT's answer to it."""
    step = Loop(small(name)).steps(1, 1)[0]
    answer = ca.nlpsol("s", "ipopt", small(name).nlp, PEER)(**step.arguments)
    return step, {key: value.full().ravel() for key, value in answer.items()}


@pytest.mark.parametrize("name", FAMILIES)
def test_judge_accepts_solution_that_follows_plant(name):
    made = small(name)
    step, answer = solved(name)
    assert Judge(made)(answer, step.arguments["p"])[0] <= TOLERANCE
    n, wide = made.nx[0], made.nx[0] + made.nu[0]
    np.testing.assert_allclose(answer["x"][:n], step.state, atol=1e-7)
    after = made.step(step.state, made.first_input(answer["x"])).full().ravel()
    np.testing.assert_allclose(answer["x"][wide : wide + n], after, atol=1e-6)


@pytest.mark.parametrize("wrong", ["x", "lam_x", "lam_g", "sign", "slack", "nan"])
def test_judge_refuses_wrong_point(wrong):
    made = small("quadrotor")
    step, solution = solved("quadrotor")
    answer = {key: value.copy() for key, value in solution.items()}
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


def test_judge_reads_bound_multipliers_off_gradient():
    """Some plugins return the multipliers of the start; the point is judged all the same."""
    step, solution = solved("quadrotor")
    answer = {**solution, "lam_x": np.ones_like(solution["lam_x"])}
    assert Judge(small("quadrotor"))(answer, step.arguments["p"])[0] <= TOLERANCE


def test_shift_moves_every_stage_by_one():
    made = small("quadrotor")
    wide, n = np.add(made.nx, made.nu), made.nx[0]
    stages = np.repeat(np.arange(made.N + 1.0), wide)
    rows = np.repeat(np.arange(float(made.N)), [made.nx[k + 1] + made.ng[k] for k in range(made.N)])
    x, lam_x, lam_g = made.shifted(stages, stages, rows)
    np.testing.assert_array_equal(x[:-n], lam_x[:-n])
    starts = np.concatenate(([0], np.cumsum(wide)[:-1]))
    assert list(x[starts[:-1]]) == [1, 2, 3, 4]
    after = made.step(stages[-n:], np.full(len(made.family.lower), made.N - 1.0))
    np.testing.assert_array_equal(x[-n:], after.full().ravel())
    assert lam_g[0] == 1


@pytest.mark.parametrize("name", NAMES)
def test_peer_accepts_options_and_solves_a_step(name):
    if not loads(NAMES[name]):
        pytest.skip(f"this CasADi has no {NAMES[name].plugin}")
    calls = measure(small("tanks"), [NAMES[name]], [1], 1, 30.0)
    assert [call.kind for call in calls] == [SOLVED], calls


def test_failures_of_peers_are_counted():
    late = measure(small("tanks"), [NAMES[OURS]], [1], 2, 1e-9)
    assert [call.kind for call in late] == [LEFT, LEFT]
    wrong = Setting("ipopt/wrong", "ipopt", {"no_such_option": 1})
    broken = measure(small("tanks"), [wrong], [1], 1, 9.0)
    assert [call.kind for call in broken] == [RAISED]


def call(setting, step, kind=SOLVED, seconds=1e-3, f=1.0):
    residual = 1e-9 if kind == SOLVED else np.inf
    place = "f", 10, 1, step, setting
    return Call(*place, 0.1, kind, residual, f, "word", 3, seconds, seconds)


def test_best_setting_counts_and_losses_are_listed():
    calls = [call(OURS, k, seconds=2e-3) for k in range(9)] + [call(OURS, 9, "failed")]
    calls += [call("ipopt/slow", k, seconds=4e-3) for k in range(10)]
    calls += [call("ipopt/fast", k, seconds=1e-3, f=2.0) for k in range(10)]
    calls += [call("uno/wrong", k, FALSE, 1e-6) for k in range(10)]
    calls += [call("uno/right", k, kind=SOLVED if k else RAISED) for k in range(10)]
    calls += [call("alpaqa", k, LEFT) for k in range(10)]
    summary = summarize(calls)
    stars = best(summary["f", 10])
    assert stars["ipopt"].setting == "ipopt/fast"
    assert stars["ipopt"].worse == 10
    assert stars["uno"].setting == "uno/right"
    text = report(calls, summary)
    assert "step 9: failed, word; solved by ipopt/slow, ipopt/fast, uno/right" in text
    assert "uno/wrong on f N=10: false success in 10 steps" in text


def test_warm_benchmark_prints_and_writes(tmp_path, capsys):
    words = ["--quick", "--family", "van_der_pol", "--sizes", "5", "--steps", "2"]
    words += ["--solvers", "hybrid", "ipopt/mu-1e-5", "--out", str(tmp_path)]
    assert main(words) == 0
    assert "van_der_pol N=5" in capsys.readouterr().out
    for name in ("benchmark-calls.csv", "benchmark.txt", "profile.png"):
        assert (tmp_path / name).stat().st_size > 100


# Cold problems.
def kind(data, x0, **answer):
    case = Case("case", "hs", lambda: data, x0, None)
    return judged(case, ColdJudge(data), Answer("returned", **answer)).kind


def projection(target=2.0):
    """min (x1 − target)² + x2² subject to x1 + x2 = 1, x1 ≤ 0.5: x* = (0.5, 0.5)."""
    x = ca.SX.sym("x", 2)
    data = {"x": x, "f": (x[0] - target) ** 2 + x[1] ** 2, "g": x[0] + x[1]}
    return data | {"lbx": [-np.inf] * 2, "ubx": [0.5, np.inf], "lbg": [1.0], "ubg": [1.0]}


@pytest.mark.parametrize(
    ("lam_g", "lam_x"),
    [((-1.0,), (4.0, 0.0)), ((np.nan,), (np.nan, np.nan)), ((0.0,), (0.0, 0.0))],
    ids=["given", "none", "zero"],
)
def test_cold_judge_accepts_solution(lam_g, lam_x):
    residual = ColdJudge(projection()).residual((0.5, 0.5), lam_g, lam_x)
    assert residual == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("x", [(0.5, 0.51), (0.4, 0.6), (0.6, 0.4), (np.nan, 0.5)])
def test_cold_judge_refuses_other_points(x):
    answer = {"x": x, "lam_g": (-1.0,), "lam_x": (4.0, 0.0)}
    assert kind(projection(), (0.0, 0.0), claim="success", **answer) == "false"
    assert kind(projection(), (0.0, 0.0), claim="failed", **answer) == "honest"
    assert kind(projection(), (0.0, 0.0), claim="infeasible", **answer) == "wrong"


def test_cold_judge_refuses_wrong_sign():
    """x1 ≤ 0.5 pulls at (0.5, 0.5) when the target is −2: the point is no minimizer."""
    answer = {"x": (0.5, 0.5), "lam_g": (-1.0,), "lam_x": (-4.0, 0.0)}
    assert kind(projection(-2.0), (0.0, 0.0), claim="success", **answer) == "false"


def test_cold_judge_confirms_proofs_alone():
    x = ca.SX.sym("x")
    free = {"lbx": [-np.inf], "ubx": [np.inf]}
    gap = {"x": x, "f": x, "g": ca.vertcat(x**2 + 1, x), "lbg": [0, -5], "ubg": [0, 5], **free}
    empty = {"lam_g": (0.0, 0.0), "lam_x": (0.0,), "claim": "infeasible"}
    assert kind(gap, (3.0,), x=(0.0,), **empty) == "verdict"
    assert kind(gap, (3.0,), x=(1.0,), **empty) == "wrong"
    ray = {"x": x, "f": -x, "g": ca.SX(0, 1), "lbg": [], "ubg": [], "lbx": [0], "ubx": [np.inf]}
    assert kind(ray, (1.0,), x=(1e11,), lam_x=(0.0,), claim="unbounded") == "verdict"
    assert kind(ray, (1.0,), x=(1e3,), lam_x=(0.0,), claim="unbounded") == "wrong"


@pytest.mark.parametrize(
    ("stats", "word"),
    [
        ({"success": True, "return_status": "infeasible"}, "success"),
        ({"return_status": "Infeasible_Problem_Detected"}, "infeasible"),
        ({"return_status": "Diverging_Iterates"}, "unbounded"),
        ({"return_status": "Maximum_Iterations_Exceeded"}, "limit"),
        ({"return_status": None, "unified_return_status": "SOLVER_RET_LIMITED"}, "limit"),
        ({"return_status": "Converged with feasible KKT point"}, "failed"),
    ],
)
def test_statistics_become_claims(stats, word):
    assert claim(stats) == word


@pytest.mark.parametrize("solver", ["hybrid", "ipopt", "sqpmethod qrqp", "uno filtersqp"])
def test_cold_peer_solves_a_problem(solver, capfd):
    case = next(case for case in cases("hs") if case.name == "HS35")
    answer = solve(Run(solver), case)
    assert judged(case, ColdJudge(case.build()), answer).kind == "solved"
    assert answer.iterations > 0


# Controllers compared with do-mpc and rockit.
@pytest.mark.parametrize("problem", PLANTS)
def test_compared_controller_solves_as_ipopt_does(problem):
    plant = PLANTS[problem]
    after = plant.after()
    made = loop(problem, "hybrid")
    for _ in range(3):
        made.advance(plant, after)
    assert made.failed == 0
    plan = import_module(f"versus.{problem}_hybrid").controller().step(plant.x0).plan
    peer = ca.nlpsol("peer", "ipopt", dict(plan.program.nlp), PEER)(**plan.program.arguments)
    objective = plan.objective - plan.costs.get("soft limits", 0.0)  # zeros cost about 1e-7
    assert objective == pytest.approx(float(peer["f"]), rel=1e-6)
    # Model and plant are written apart: one interval later they are at the same state.
    reached = after(np.array(plant.x0, dtype=float), plan.controls[:, 0])
    np.testing.assert_allclose(plan.states[:, 1], reached, rtol=1e-3, atol=2e-3)


def test_cost_of_loop_is_that_of_controller():
    plant = PLANTS["quadrotor"]
    made = loop("quadrotor", "hybrid")
    made.advance(plant, plant.after())
    x, u = np.array(plant.x0, dtype=float), made.before
    assert made.cost == pytest.approx(0.1 * np.sum((u - 2.4525) ** 2), abs=1e-12)
    assert plant.cost(x, u, None, np.pi / 2) == pytest.approx(20 * 1.5**2 + made.cost)
