"""One C function: numbers, ``Solver``, graphs, maps, batches, texts, other processes.

Whatever way the numbers of a solve take, the answer has the same bits.
"""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest
from support.cases.core import CASES, OUTPUTS, bits, in_graph_of, warm

from casadi_hybrid import Opti, Problem, Solver, nlpsol
from casadi_hybrid.utils.record.parallel import in_parallel

COUNT, READ = 5, ca.Function.deserialize


def columns_of(solver, each):
    """All arguments of all solves side by side: some of CasADi's maps take a default for zero."""

    def column(name, arguments):
        value = arguments.get(name, solver.default_in(solver.index_in(name)))
        return ca.DM(value) * ca.DM.ones(solver.size_in(name))

    return {name: ca.horzcat(*(column(name, one) for one in each)) for name in solver.name_in()}


def one_by_one(call, solver, each):
    """Solve each with its arguments as columns."""
    return [call(**columns_of(solver, [arguments])) for arguments in each]


def solve_and_ask(solver, arguments):
    """Solve, and compare the record of the last call."""
    answer = solver(**arguments)
    assert solver.result.x.tobytes() == np.array(answer["x"]).tobytes()
    assert solver.result.iterations == solver.stats()["iter_count"]
    return answer


def by_graph(solver, each):
    answers = one_by_one(in_graph_of(solver, solver.name_in()), solver, each)
    assert solver.result.x.tobytes() == np.array(answers[-1]["x"]).tobytes()
    assert solver.result.iterations == solver.stats()["iter_count"]
    return answers


def by_copy(solver, each):
    copies = (copy.copy(solver), copy.deepcopy(solver), pickle.loads(pickle.dumps(solver)))
    assert {repr(other) for other in copies} == {repr(solver)}
    assert all(other.options == solver.options for other in copies)
    return [copies[k % 3](**arguments) for k, arguments in enumerate(each)]


def by_threads(solver, each):
    """Call from threads of Python, some with a copy of the solver."""
    solvers = solver, solver, pickle.loads(pickle.dumps(solver))
    with ThreadPoolExecutor(4) as pool:
        work = [pool.submit(solve_and_ask, solvers[k % 3], each[k % COUNT]) for k in range(20)]
        answers = [future.result() for future in work]
    assert [bits(answer) for answer in answers] == 4 * [bits(answer) for answer in answers[:COUNT]]
    return answers[:COUNT]


def solve(task):
    _, solver, arguments = task
    answer = solver(**arguments)
    return {name: np.array(answer[name]) for name in OUTPUTS}, solver.result.iterations


def by_process(solver, each):
    tasks = [(k, solver, arguments) for k, arguments in enumerate(each)]
    done = {task[0]: answer for task, answer in in_parallel(solve, tasks, workers=2)}
    assert done[COUNT - 1][1] == solver.stats()["iter_count"]
    return [done[k][0] for k in range(COUNT)]


def by_package(solver, each):
    """Solve by the package's own class, whose results have no lam_p."""
    ours = Solver(Problem.from_nlp(solver.oracle()))
    for arguments in each:
        result = ours.solve(**arguments)
        answer = {name: getattr(result, name) for name in OUTPUTS[:5]}
        yield {**answer, "lam_p": solver(**arguments)["lam_p"]}


def side_by_side(call):
    """Return a way that takes all solves at once, each a column."""

    def way(solver, each):
        answer = call(solver, columns_of(solver, each))
        matrices = {name: np.array(answer[name]) for name in OUTPUTS}
        return [{name: of[:, [k]] for name, of in matrices.items()} for k in range(COUNT)]

    return way


def mapped(*how):
    return side_by_side(lambda solver, columns: solver.map(COUNT, *how)(**columns))


def in_batch(threads):
    def call(solver, columns):
        batch = solver.batch(**columns, threads=threads)
        assert batch.success.all()
        return {name: getattr(batch, name) for name in OUTPUTS}

    return side_by_side(call)


WAYS = {
    "again": lambda solver, each: [solver(**arguments) for arguments in each],
    "Solver": by_package,
    "graph": by_graph,
    "map": mapped("serial"),
    "map over threads": mapped("thread", 2),
    "unrolled": mapped("unroll"),
    "inline": mapped("inline"),
    "columns": side_by_side(lambda solver, columns: solver(**columns)),
    "batch": in_batch(1),
    "batch over threads": in_batch(3),
    "copy": by_copy,
    "threads": by_threads,
    "text": lambda solver, each: one_by_one(READ(solver.serialize()), solver, each),
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
    for way, answers in WAYS.items():
        if way == "process" and name != "with_rows":
            continue  # new processes take a second
        if way == "Solver" and starts == "warm":
            continue  # it starts from results
        by_python.clear()
        for answer, wanted in zip(answers(solver, each), expected, strict=True):
            assert bits(answer) == wanted, way
        assert not (way in WITHOUT_PYTHON and by_python), way


@pytest.mark.parametrize("name", ["hybrid", "auto"])
def test_both_names_are_one_method(name):
    x = ca.SX.sym("x")
    nlp = {"x": x, "f": (x - 2) ** 2}
    opti = Opti()
    opti.minimize((opti.variable() - 2) ** 2)
    opti.solver(name)
    assert float(opti.solve().value(opti.x)) == pytest.approx(2)
    assert float(nlpsol("s", name, nlp, {"max_soc": 2})(x0=0)["x"]) == pytest.approx(2)
    assert Solver(nlp, name, max_soc=2, threads=1, mu_init=0.1).solve(0).x == pytest.approx(2)
    assert repr(Solver(nlp, name)).endswith("'hybrid')")
