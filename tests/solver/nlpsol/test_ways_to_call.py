"""One C function: numbers, ``Solver``, graphs, maps, batches, texts, other processes.

Whatever way the numbers of a solve take, the answer has the same bits.
"""

import copy
import gc
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.core import CASES, OUTPUTS, bits, in_graph_of, warm

from casadi_hybrid import Opti, Solver, nlpsol
from casadi_hybrid.solver.nlpsol.solver import NlpSolver
from casadi_hybrid.utils.record.parallel import in_parallel

Numbers = dict[str, Any]
COUNT = 5


def columns_of(solver: NlpSolver, each: list[Numbers]) -> Numbers:
    """All arguments of all solves side by side: some of CasADi's maps take a default for zero."""
    default = {name: solver.default_in(i) for i, name in enumerate(solver.name_in())}
    return {
        name: ca.horzcat(
            *(
                ca.DM(one.get(name, default[name])) * ca.DM.ones(solver.size_in(name))
                for one in each
            )
        )
        for name in default
    }


def one_by_one(call: Callable[..., Any], solver: NlpSolver, each: list[Numbers]) -> list[Any]:
    """Each with its arguments as columns."""
    return [call(**columns_of(solver, [one])) for one in each]


def by_graph(solver: NlpSolver, each: list[Numbers]) -> list[Any]:
    found = one_by_one(in_graph_of(solver, solver.name_in()), solver, each)
    assert solver.result.x.tobytes() == np.array(found[-1]["x"]).tobytes()
    assert solver.result.iterations == solver.stats()["iter_count"]
    return found


def by_copy(solver: NlpSolver, each: list[Numbers]) -> list[Any]:
    made = (copy.copy(solver), copy.deepcopy(solver), pickle.loads(pickle.dumps(solver)))
    assert {repr(one) for one in made} == {repr(solver)}
    assert all(one.options == solver.options for one in made)
    return [made[k % 3](**one) for k, one in enumerate(each)]


def by_threads(solver: NlpSolver, each: list[Numbers]) -> list[Any]:
    """Of Python, some with a copy of the solver; each asks for its own last call."""
    made = solver, solver, pickle.loads(pickle.dumps(solver))

    def solve(k: int) -> Any:
        one = made[k % 3]
        found = one(**each[k % COUNT])
        assert one.result.x.tobytes() == np.array(found["x"]).tobytes()
        assert one.result.iterations == one.stats()["iter_count"]
        return found

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(solve, range(4 * COUNT)))
    assert [bits(one) for one in found] == 4 * [bits(one) for one in found[:COUNT]]
    return found[:COUNT]


def by_text(solver: NlpSolver, each: list[Numbers]) -> list[Any]:
    return one_by_one(ca.Function.deserialize(solver.serialize()), solver, each)


def solve(task: tuple[int, NlpSolver, Numbers]) -> tuple[Numbers, int]:
    _, solver, numbers = task
    found = solver(**numbers)
    return {name: np.array(found[name]) for name in OUTPUTS}, solver.result.iterations


def by_process(solver: NlpSolver, each: list[Numbers]) -> list[Any]:
    tasks = [(k, solver, one) for k, one in enumerate(each)]
    done = {task[0]: answer for task, answer in in_parallel(solve, tasks, workers=2)}
    assert done[COUNT - 1][1] == solver.stats()["iter_count"]
    return [done[k][0] for k in range(COUNT)]


def by_package(nlp: dict[str, Any], each: list[Numbers]) -> list[Any]:
    found, solver, ours = [], nlpsol("solver", "hybrid", nlp), Solver(nlp)
    for one in each:
        result = ours.solve(**one)
        lam_p = solver(**one)["lam_p"]  # which a result has not
        found.append({**{name: getattr(result, name) for name in OUTPUTS[:5]}, "lam_p": lam_p})
    return found


def side_by_side(call: Callable[..., Any]) -> Callable[[NlpSolver, list[Numbers]], list[Any]]:
    """A call that takes all solves at once, each a column."""

    def through(solver: NlpSolver, each: list[Numbers]) -> list[Any]:
        found = call(solver, columns_of(solver, each))
        matrices = {name: np.array(found[name]) for name in OUTPUTS}
        return [{k: of[:, [i]] for k, of in matrices.items()} for i in range(COUNT)]

    return through


def batch(threads: int) -> Callable[[NlpSolver, Numbers], Any]:
    def call(solver: NlpSolver, columns: Numbers) -> Any:
        found = solver.batch(**columns, threads=threads)
        assert found.success.all()
        return {name: getattr(found, name) for name in OUTPUTS}

    return call


def mapped(*how: Any) -> Callable[[NlpSolver, Numbers], Any]:
    return lambda solver, columns: solver.map(COUNT, *how)(**columns)


WAYS: dict[str, Callable[[Any, list[Numbers]], list[Any]]] = {
    "again": lambda solver, each: [solver(**one) for one in each],
    "Solver": by_package,
    "graph": by_graph,
    "map": side_by_side(mapped("serial")),
    "map over threads": side_by_side(mapped("thread", 2)),
    "unrolled": side_by_side(mapped("unroll")),
    "inline": side_by_side(mapped("inline")),
    "columns": side_by_side(lambda solver, columns: solver(**columns)),
    "batch": side_by_side(batch(1)),
    "batch over threads": side_by_side(batch(3)),
    "copy": by_copy,
    "threads": by_threads,
    "text": by_text,
    "process": by_process,
}
WITHOUT_PYTHON = {"graph", "map", "map over threads", "unrolled", "inline"}


@pytest.mark.parametrize("starts", ["cold", "warm"])
@pytest.mark.parametrize("name", CASES)
def test_bits_are_equal_in_every_way(name, starts, by_python):
    case = CASES[name]()
    solver = nlpsol("solver", "hybrid", case.nlp)
    numbers, draws = case.numbers, np.random.default_rng(2)
    outputs, each, expected = solver(**numbers), [], []
    for _ in range(COUNT):
        numbers = case.moved(numbers, outputs["x"], draws)
        each.append({**numbers, **(warm(outputs) if starts == "warm" else {})})
        outputs = solver(**each[-1])
        expected.append(bits(outputs))
    for way, through in WAYS.items():
        if way == "process" and name != "with_rows":
            continue  # new processes take a second
        if way == "Solver" and starts == "warm":
            continue  # it starts from results
        by_python.clear()
        subject = case.nlp if way == "Solver" else solver
        for found, wanted in zip(through(subject, each), expected, strict=True):
            assert bits(found) == wanted, way
        assert not (way in WITHOUT_PYTHON and by_python), way


def python_calls(function: Callable[[], Any]) -> list[str]:
    """The calls of Python functions; those of CasADi 3.7 for each DM are not counted."""
    seen: list[str] = []

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_back.f_code.co_filename != ca.casadi.__file__:
            seen.append(frame.f_code.co_name)

    gc.collect()  # a finalizer of another test's objects is no call of ours
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return seen[1:]


def test_numbers_take_eight_python_calls():
    """One is CasADi's, which enters C."""
    case = CASES["with_rows"]()
    solver = nlpsol("solver", "hybrid", case.nlp)
    again = case.numbers | warm(solver(**case.numbers))
    solver(**again)
    seen = python_calls(lambda: solver(**again))
    assert "call" in seen, "CasADi's"
    assert len(seen) <= 8, seen


def test_solver_takes_fifty_python_calls():
    case = CASES["with_rows"]()
    solver = Solver(case.nlp)
    before = solver.solve(**case.numbers)
    cold = python_calls(lambda: solver.solve(**case.numbers))
    bounds = {name: value for name, value in case.numbers.items() if name != "x0"}
    warmed = python_calls(lambda: solver.solve(**bounds, warm_start=before))
    assert len(cold) <= 50, cold
    assert len(warmed) <= 50, warmed


@pytest.mark.parametrize("name", ["hybrid", "auto"])
def test_both_names_are_one_method(name: str):
    x = ca.SX.sym("x")
    nlp = {"x": x, "f": (x - 2) ** 2}
    opti = Opti()
    opti.minimize((opti.variable() - 2) ** 2)
    opti.solver(name)
    assert float(opti.solve().value(opti.x)) == pytest.approx(2)
    assert float(nlpsol("s", name, nlp, {"max_soc": 2})(x0=0)["x"]) == pytest.approx(2)
    assert Solver(nlp, name, max_soc=2, threads=1, mu_init=0.1).solve(0).x == pytest.approx(2)
    assert repr(Solver(nlp, name)).endswith("'hybrid')")
