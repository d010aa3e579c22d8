"""Random solves on a core that was built with sanitizers; run by ``test_sanitized``.

``PYTHONPATH=tests python tests/support/fuzz/solve.py LIBRARY COUNT`` loads that core in place of
the package's own. COUNT solves start from random numbers, good and bad ones, with and without
multipliers. The script prints how often each reason to stop, each method and each refusal came.
"""

import ctypes
import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
from support.cases.core import CASES, problem_of
from support.cases.ldl_pieces import Fixed, factored, random_problem, whole

from casadi_hybrid import Derivatives, Problem
from casadi_hybrid.core.binding import core as binding
from casadi_hybrid.core.binding.batch import Rows, solve_rows
from casadi_hybrid.core.binding.core import Core, engine_of
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.point.limits import Limits
from casadi_hybrid.problem.point.working_set import WorkingSet
from casadi_hybrid.solver.solve import STOPS

LIMITS = Limits(max_iter=400)
Known = dict[str, np.ndarray]


def put_in_place(path: str) -> ctypes.CDLL:
    """Make the library at a path the core of this process."""
    loaded = C.declare(ctypes.CDLL(path))
    binding.engine = lambda: loaded
    return loaded


def prepared(problem: Problem, **given: object) -> tuple[Problem, Core, Known]:
    """The solver of a problem within bounds of these kinds, and the numbers it was given."""
    numbers = problem.numbers(**given)
    core = engine_of(problem).core(numbers.bounds, LIMITS)
    known = {name: getattr(numbers, name) for name in ("x0", "p", "lam_x0", "lam_g0")}
    known |= {name: getattr(numbers.bounds, name) for name in ("lbx", "ubx", "lbg", "ubg")}
    return problem, core, known


def equations(draws: np.random.Generator) -> tuple[Problem, Core, Known]:
    """Equations alone of a random shape, at times dependent, too many, or without a slope."""
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
        + draws.choice([0.0, 1.0]) * ca.sum1(x**4)
        + draws.normal() * ca.sum1(ca.log(x + 2))
    )
    bounds = {"lbx": -1.5, "ubx": 1.0} if draws.random() < 0.4 else {}
    return prepared(Problem(x=x, f=f, h=rows), x0=0.0, **bounds)


def fill(core: Core, known: Known, draws: np.random.Generator) -> None:
    """Numbers near the last answer, or anywhere, with noise, and at times a bad one."""
    size = 10.0 ** draws.uniform(-6, 1)
    parts, near, warm = core.parts, draws.random() < 0.6, draws.random() < 0.6
    for name, values in known.items():
        parts[name][:] = values
    for name, last in (("x0", "x"), ("lam_x0", "lam_x"), ("lam_g0", "lam_g")):
        target, found = parts[name], parts[last]
        if name != "x0" and not warm:
            continue
        if near and np.isfinite(found).all():
            target[:] = found
        target += size * draws.standard_normal(target.size)
    parts["p"][:] += size * draws.standard_normal(parts["p"].size)
    if draws.random() < 0.05:
        name = draws.choice([name for name in known if parts[name].size])
        values = [np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0]
        parts[name][draws.integers(parts[name].size)] = draws.choice(values)


def solve(core: Core, known: Known, draws: np.random.Generator) -> Iterator[str]:
    """One solve; what it has come to, in words."""
    sides = None
    fill(core, known, draws)
    if draws.random() < 0.2:
        draw = [draws.integers(-1, 3, known[name].size).astype(np.int8) for name in ("lbx", "lbg")]
        sides = WorkingSet(*draw)
    core.begin_with(sides)
    begun, status = core.solve(LIMITS), core.data.status
    if begun is None:
        yield f"refused {status}"
        return
    said = core.answer
    assert 0 <= said.chosen <= said.factors, (status, said.chosen)
    assert said.steps <= LIMITS.max_iter
    yield STOPS[said.stop].name
    yield f"method {said.method}"


def solve_in_batches(problem: Problem, core: Core, known: Known, count: int, draws: Any) -> int:
    """So many solves at once over three threads; how many were solved."""
    numbers = np.zeros((count, core.numbers.size))
    for name, values in known.items():
        numbers[:, core.places[name]] = values
    for name in ("x0", "p", "lam_x0", "lam_g0"):
        part = numbers[:, core.places[name]]
        part += 10.0 ** draws.uniform(-6, 0, (count, 1)) * draws.standard_normal(part.shape)
    sides = draws.integers(-1, 3, (count, known["lbx"].size + known["lbg"].size)).astype(np.int8)
    with_sides = draws.integers(0, 2, count).astype(np.int8)
    rows = Rows(numbers, sides, with_sides, core.places)
    solve_rows(engine_of(problem, rows=True), problem.numbers(**known).bounds, LIMITS, rows, 3)
    return int(rows.verdicts()[0].sum())


def factor(core: ctypes.CDLL, count: int) -> None:
    """Random systems with exactly the memory that is asked for, by chosen pivots and fixed ones."""
    for seed in range(count):
        system = random_problem(seed)
        b = np.cos(np.arange(len(whole(system))))
        for one in (factored(core, system), Fixed(core, system)):
            if not one.found.doubtful:
                one.solve(b)


def main(path: str, count: int) -> None:
    """Solve so many times; the counts go to the standard output."""
    loaded = put_in_place(path)
    draws, seen = np.random.default_rng(1), Counter[str]()
    made = [(problem_of(one), one.numbers) for one in (make() for make in CASES.values())]
    cases = [prepared(problem, **given) for problem, given in made]
    learned = [(p.with_derivatives(Derivatives("limited-memory")), given) for p, given in made]
    cases += [prepared(problem, **given) for problem, given in learned]
    for _ in range(count // 2):
        seen.update(solve(*cases[draws.integers(len(cases))][1:], draws))
    for _ in range(count // 20):
        _, core, known = equations(draws)
        for _ in range(10):
            seen.update(solve(core, known, draws))
    in_c = [one for one in cases if not isinstance(engine_of(one[0]), str)]
    in_batches = sum(solve_in_batches(*one, 50, draws) for one in in_c)
    factor(loaded, count)
    print(json.dumps({"seen": seen, "in batches": in_batches}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
