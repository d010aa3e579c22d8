"""A solver in fresh processes: what is sent there gives the same answers, to the last bit."""

from __future__ import annotations

import numpy as np
from nlp_cases import CASES, OUTPUTS, numbers

from casadi_hybrid import Result, nlpsol
from casadi_hybrid.basics.parallel import in_parallel
from casadi_hybrid.casadi_api.solver import NlpSolver

Task = tuple[int, NlpSolver, tuple[float, float]]


def solve(task: Task) -> tuple[dict[str, np.ndarray], Result]:
    _, solver, p = task
    found = solver(**{**CASES["parameters"][1], "p": p})
    return {key: numbers(found[key]) for key in OUTPUTS}, solver.result


def test_processes_give_the_answers_of_this_one() -> None:
    solver = nlpsol("s", "hybrid", CASES["parameters"][0])
    tasks = [(k, solver, (2 + 0.3 * k, 3 - 0.2 * k)) for k in range(6)]
    done = {}
    for task, answer in in_parallel(solve, tasks, workers=2):
        done[task[0]] = answer
    assert sorted(done) == [*range(6)]
    for task in tasks:
        here, result = solve(task)
        there, sent = done[task[0]]
        assert all((here[key] == there[key]).all() for key in OUTPUTS)
        assert sent.success
        assert sent.iterations == result.iterations
        assert (sent.working_set.g == result.working_set.g).all()
        assert sent.explain() == result.explain()
