"""Random solves on a core that was built with sanitizers; run by ``test_engine_sanitized``.

``python engine_fuzz.py LIBRARY COUNT`` loads that core in place of the package's own, solves COUNT
times from random numbers, good and bad ones, and prints how often each status came. Searches are
attempts by the barrier method, and by composite steps where there are equations alone.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections import Counter

import casadi as ca
import numpy as np
from casadi_hybrid.attempts.in_graph import attempts_of
from engine_cases import CASES, problem_of

from casadi_hybrid import Derivatives, Problem
from casadi_hybrid.engine import library
from casadi_hybrid.engine.batch import Crew, Rows
from casadi_hybrid.engine.blocks.compiled import forms_of
from casadi_hybrid.engine.structures import PAUSED, declare
from casadi_hybrid.engine.warm import engine_of
from casadi_hybrid.engine.workspace import Workspace
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.point.working_set import WorkingSet
from casadi_hybrid.problem.evaluator import patterns_of
from casadi_hybrid.problem.hessian import blocks
from casadi_hybrid.stopping import Limits


def put_in_place(path: str) -> None:
    """The library at a path is the core of this process."""
    core = ctypes.CDLL(path)
    declare(core)
    library._core.loaded, library._core._asked = core, True


def variants(problem: Problem) -> list[Problem]:
    """With second derivatives, and without: most of the Hessian is of low rank, or nothing."""
    found = [problem]
    for blocks.LARGE in (1, 200):
        found.append(problem.with_derivatives(Derivatives("limited-memory")))
        patterns_of(found[-1])  # once for all
    return found


def spaces() -> list[tuple[Problem, Workspace, dict[str, np.ndarray]]]:
    """A workspace for each case and its variants, and the numbers of the case."""
    found = []
    made = [make() for make in CASES.values()]
    for given, problem in [(one.numbers, p) for one in made for p in variants(problem_of(one))]:
        numbers = problem.numbers(**given)
        engine = engine_of(problem)
        assert not isinstance(engine, str), engine
        space = engine.prepare(numbers.bounds)
        space.limit(Limits())
        known = {name: getattr(numbers, name) for name in ("x0", "p", "lam_x0", "lam_g0")}
        known |= {name: getattr(numbers.bounds, name) for name in ("lbx", "ubx", "lbg", "ubg")}
        found.append((problem, space, known))
    return found


def solve(
    space: Workspace, known: dict[str, np.ndarray], size: float, draws: np.random.Generator
) -> int:
    """One solve: from the last answer, or from anywhere, with noise, and at times a bad number."""
    near = draws.random() < 0.8
    for name, values in known.items():
        space.inputs[name][:] = values
    for name, last in (("x0", "x"), ("lam_x0", "lam_x"), ("lam_g0", "lam_g")):
        target, found = space.inputs[name], space.outputs[last]
        if near and np.isfinite(found).all():
            target[:] = found
        target += size * draws.standard_normal(target.size)
    space.inputs["p"][:] += size * draws.standard_normal(space.inputs["p"].size)
    if draws.random() < 0.05:
        name = draws.choice(list(space.inputs))
        if space.inputs[name].size:
            values = [np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0]
            space.inputs[name][draws.integers(space.inputs[name].size)] = draws.choice(values)
    sides = None
    if draws.random() < 0.3:
        draw = [draws.integers(-1, 3, known[name].size).astype(np.int8) for name in ("lbx", "lbg")]
        sides = WorkingSet(*draw)
    status = space.warm(sides)
    assert 0 <= space.answer.chosen <= space.answer.factors, (status, space.answer.chosen)
    return status


def equations(draws: np.random.Generator) -> Problem:
    """Equations alone of a random shape, at times dependent or without a slope somewhere."""
    n, m = (int(size) for size in draws.integers(1, 8, 2))
    x = ca.SX.sym("x", n)
    B, C = draws.standard_normal((m, n)), draws.standard_normal((m, n))
    if draws.random() < 0.3:
        B[-1], C[-1] = B[0], C[0]
    if draws.random() < 0.3:
        B[:] = 0.0
    rows = ca.mtimes(B, x) + ca.mtimes(C, x**2) - draws.standard_normal(m)
    f = (
        ca.sumsqr(x) * draws.choice([-1, 1])
        + ca.sum1(x**4)
        + draws.normal() * ca.sum1(ca.log(x + 2))
    )
    made = Problem(x=x, f=f, h=rows)
    return made.with_derivatives(Derivatives("limited-memory")) if draws.random() < 0.2 else made


def search(
    problem: Problem, space: Workspace, x0: np.ndarray, draws: np.random.Generator
) -> tuple[bool, int]:
    """An attempt without a warm start: whether by composite steps, and its status."""
    first, _, composite = attempts_of(problem, Limits())
    bounded = np.isfinite(space.inputs["lbx"]).any()
    data = first if bounded or composite is None or draws.random() < 0.4 else composite
    space.inputs["x0"][:] = x0
    cold = space.cold_mode(composite=bool(data.composite))
    cold.set(data, int(draws.integers(3)))
    status = cold.begin()
    while status == PAUSED:
        status, _ = cold.go_on()
    return bool(data.composite), status


def searches(count: int, draws: np.random.Generator) -> Counter[str]:
    """The counts of so many searches from random starts, some without a slope, some bad."""
    seen, many = Counter[str](), 10
    for _ in range(count // many):
        problem = equations(draws)
        engine = engine_of(problem)
        assert not isinstance(engine, str), engine
        bounds = {"lbx": -1.5, "ubx": 1.0} if draws.random() < 0.4 else {}
        numbers = problem.numbers(x0=0.0, **bounds)
        space = engine.prepare(numbers.bounds)
        space.fill(numbers, None)
        space.limit(Limits())
        for k in range(many):
            x0 = (k > 0) * 10.0 ** draws.uniform(-3, 2) * draws.standard_normal(problem.n)
            if draws.random() < 0.02:
                x0[0] = draws.choice([np.nan, np.inf, 1e300])
            composite, status = search(problem, space, x0, draws)
            seen[f"{'composite' if composite else 'barrier'} {status}"] += 1
    return seen


def solve_in_batches(
    problem: Problem, known: dict[str, np.ndarray], count: int, draws: np.random.Generator
) -> int:
    """So many solves at once over three threads; how many the engine did."""
    engine = engine_of(problem)
    assert not isinstance(engine, str), engine
    space = engine.spaces[0]
    numbers = np.tile(np.concatenate([known[name] for name in space.places_in]), (count, 1))
    for name in ("x0", "p", "lam_x0", "lam_g0"):
        part = numbers[:, space.places_in[name]]
        part += 10.0 ** draws.uniform(-6, 0, (count, 1)) * draws.standard_normal(part.shape)
    sides = draws.integers(-1, 3, (count, known["lbx"].size + known["lbg"].size)).astype(np.int8)
    with_sides = draws.integers(0, 2, count).astype(np.int8)
    rows = Rows(numbers, sides, with_sides, space.numbers_out.size)
    gradient, forms = problem.parameter_gradient, forms_of(problem)
    crew = Crew(engine, space.plan, problem.functions, gradient, forms)
    crew.solve(rows, Limits(), 3)
    return int(rows.in_c().sum())


def main(path: str, count: int) -> None:
    """Solve so many times; the counts of statuses go to the standard output."""
    put_in_place(path)
    draws = np.random.default_rng(1)
    prepared, seen = spaces(), Counter[int]()
    for k in range(count):
        _, space, known = prepared[k % len(prepared)]
        size = 10.0 ** draws.uniform(-6, 1)
        seen[solve(space, known, size, draws)] += 1
    in_batches = sum(solve_in_batches(problem, known, 200, draws) for problem, _, known in prepared)
    found = searches(count // 10, draws)
    print(json.dumps({"statuses": seen, "in batches": in_batches, "searches": found}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
