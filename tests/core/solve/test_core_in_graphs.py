"""A solver inside CasADi's graphs: the core in C solves, and arguments with NaN give NaN."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.core import OUTPUTS, Case, bits, hs071, in_graph_of, with_rows
from support.cases.watched import ended
from support.paths import TESTS

from casadi_hybrid import InputError, nlpsol
from casadi_hybrid.solver.nlpsol.solver import NlpSolver


def full(solver: NlpSolver, arguments: dict[str, Any]) -> dict[str, Any]:
    columns = {name: ca.DM(value) for name, value in arguments.items()}
    for name, column in columns.items():
        rows = solver.size1_in(name)
        columns[name] = column if column.size1() == rows else ca.DM.ones(rows) * column
    return columns


def in_graph(case: Case) -> tuple[NlpSolver, dict[str, Any], ca.Function]:
    """A solver, its arguments as columns, and all its outputs as a Function of them."""
    solver = nlpsol("solver", "hybrid", case.nlp)
    given = full(solver, case.numbers)
    return solver, given, in_graph_of(solver, given)


def test_equations_are_solved_in_graph(by_python: list[int]) -> None:
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    nlp = {"x": x, "p": p, "f": (x[0] - p) ** 2 + x[1], "g": ca.sumsqr(x) - 1}
    numbers = {"x0": [0.5, 0.7], "p": 2, "lbg": 0, "ubg": 0}
    solver, given, graph = in_graph(Case(nlp, numbers, None))
    infeasible = {"lbg": ca.DM(-2), "ubg": ca.DM(-2)}
    for changes in ({"p": 2.0}, {"p": 0.3}, {"p": -1.5}, infeasible):
        arguments = given | changes
        alone = solver(**arguments)
        assert solver.result.engine == "c"
        assert bits(graph(**arguments)) == bits(alone)
    assert solver.result.stop.name == "LOCALLY_INFEASIBLE"
    assert not by_python


def test_threads_of_python_share_graph(by_python: list[int]) -> None:
    """Each thread is told of its own last call."""
    solver, given, graph = in_graph(hs071())
    changed = [{**given, "p": 1 + 0.01 * k} for k in range(8)]
    expected = [bits(graph(**arguments)) for arguments in changed]

    def solve(k: int) -> bool:
        same = [bits(graph(**changed[i])) == expected[i] for i in range(8)]
        x = graph(**changed[k])["x"].full().ravel()
        return all(same) and (solver.result.x == x).all() and solver.result.p == 1 + 0.01 * k

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(solve, range(8)))
    assert not by_python


def test_foreign_handles_raise() -> None:
    solver, given, graph = in_graph(hs071())
    inner = graph.find_function("hybrid_in_graph")
    columns = [given.get(name, ca.DM.zeros(solver.size1_in(name))) for name in solver.name_in()]
    for handle in (-1.0, 0.5, 1e300, np.nan):
        with pytest.raises(RuntimeError):
            inner(handle, *columns)


def test_graph_takes_any_kind_of_bound(by_python: list[int]) -> None:
    solver, given, graph = in_graph(with_rows())
    for value in (0.3, np.inf, -0.2, 0.3, np.inf):
        given["ubg"][1] = value
        assert bits(graph(**given)) == bits(solver(**given))
    assert not by_python


def test_failed_solve_harms_no_other() -> None:
    solver, given, graph = in_graph(hs071())
    failing, alone = {**given, "lbg": ca.DM([1e4, 40])}, bits(solver(**given))
    for arguments, success in ((failing, False), (given, True)):
        graph(**arguments)
        assert solver.stats()["success"] == success
    graph = in_graph_of(nlpsol("strict", "hybrid", hs071().nlp, {"error_on_fail": True}), given)
    for wrong, name in ((failing, "strict"), ({**given, "x0": np.nan}, "x0")):
        with pytest.raises(RuntimeError, match=name):
            graph(**wrong)
        assert bits(graph(**given)) == alone


# Through PyDLL a thread keeps Python's lock until the others are done.
ALONE = """
import ctypes, os
import casadi as ca, numpy as np
from support.cases.core import hs071
from casadi_hybrid import nlpsol
from casadi_hybrid.core.binding.in_graph import Pool
from casadi_hybrid.core.header import C
from casadi_hybrid.utils.casadi_internals import address_of, trigger
pools, function = [], Pool.function
Pool.function = lambda pool, *others: pools.append(pool) or function(pool, *others)
case = hs071()
solver = nlpsol("solver", "hybrid", case.nlp)
p = ca.MX.sym("p")
given = {k: v for k, v in case.numbers.items() if k != "p"}
one = ca.Function("graph", [p], [solver(p=p, **given)["x"]])
graph, values = one.map(8, "thread", 2), 1 + 0.01 * np.arange(8.0)
expected = np.hstack([solver(p=k, **given)["x"].full() for k in values])
slots = (C.hybrid_slot * 2).from_address(pools[0].data.slot)
while not slots[1].adapter:
    one.map(400, "thread", 2)(np.tile(values, 50))  # until both threads have memory
before = pools[0].data.calls
buffer, _ = graph.buffer()
found = np.empty((8, 4))
buffer.set_arg(0, memoryview(values))
buffer.set_res(0, memoryview(found))
ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(trigger())(address_of(buffer))
assert (found.T == expected).all()
assert pools[0].data.calls == before + 8
child = os.fork()
if not child:
    os._exit(0 if (graph(values).full() == expected).all() else 1)
assert os.waitpid(child, 0)[1] == 0
print("done")
"""


def test_graphs_need_no_lock_of_python() -> None:
    """A forked process solves on. In a process of its own: it would wait for ever."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    done = ended([sys.executable, "-c", ALONE], timeout=120, env=environment)
    assert done.stdout.split() == ["done"], done.stderr


LONG = """
import os, signal, sys, threading, time
import casadi as ca
from casadi_hybrid import nlpsol
x, p = ca.SX.sym("x", 300), ca.SX.sym("p")
f = ca.sum1(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2) + p
solver = nlpsol("solver", "hybrid", {"x": x, "p": p, "f": f})
q = ca.MX.sym("q")
graph = ca.Function("graph", [q], [solver(x0=-1.2, p=q)["x"]])
solve = graph if sys.argv[1] == "graph" else lambda p: solver(x0=-1.2, p=p)["x"]
expected = solve(0).full()
pressing = True

def press():  # again and again: CasADi may lose an interrupt while it converts an argument
    while pressing:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)

presser = threading.Timer(0.5, press)
presser.start()
try:
    while True:
        solve(0)
except KeyboardInterrupt:
    pressing = False
presser.join()
assert (solve(0).full() == expected).all()
print("done")
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no such signal")
@pytest.mark.parametrize("where", ["graph", "numbers"])
def test_ctrl_c_is_raised_wherever_it_arrives(where: str) -> None:
    """Mostly while C solves. Where it were lost, the process would not end."""
    done = ended([sys.executable, "-c", LONG, where], timeout=60)
    assert done.stdout.split() == ["done"], done.stderr


def test_ctrl_c_inside_casadi_stays_itself(monkeypatch) -> None:
    """CasADi 3.7 makes a SystemError of it, with the interrupt as the first of its causes."""
    x = ca.SX.sym("x")
    solver = nlpsol("solver", "hybrid", {"x": x, "f": (x - 1) ** 2})
    for x0 in range(3):
        solver(x0=x0)
    made, attach = [], ca.DM.__setattr__

    def interrupted(self, name, value):
        made.append(name)
        if len(made) == 3:
            raise KeyboardInterrupt
        attach(self, name, value)

    monkeypatch.setattr(ca.DM, "__setattr__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        solver(x0=4)
    assert float(solver(x0=4)["x"]) == pytest.approx(1)


def solver(**options: Any) -> Any:
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p) + x[0] ** 4, "g": ca.sum1(x)}
    return nlpsol("s", "hybrid", nlp, options)


def graph(of: Any) -> ca.Function:
    """(p, ubg) → all outputs."""
    t = ca.MX.sym("t", 2)
    found = of(p=t[0], ubg=t[1])
    return ca.Function("graph", [t], [ca.veccat(*(found[name] for name in OUTPUTS))])


@pytest.mark.parametrize("how", ["serial", "thread"])
def test_nan_spoils_one_column(how: str) -> None:
    s, p = solver(), np.array([[1.0, np.nan, 2.0]])
    with pytest.warns(UserWarning, match=r"p\[0\]"):
        found = s.map(3, how)(x0=0, p=p, lbg=-ca.inf, ubg=1)
    for k in (0, 2):
        alone = s(x0=0, p=p[0, k], ubg=1)
        for name in OUTPUTS:
            np.testing.assert_array_equal(found[name][:, k], alone[name])
    assert all(np.isnan(found[name][:, 1].full()).all() for name in OUTPUTS)


@pytest.mark.parametrize("bad", [(np.nan, 1), (np.inf, 1), (1, np.nan)])
def test_bad_numbers_in_graph_are_reported(bad: tuple[float, float]) -> None:
    s = solver()
    F = graph(s)
    with pytest.warns(UserWarning, match="NaN"):
        assert np.isnan(F(bad).full()).all()
    assert not s.stats()["success"]
    assert s.stats()["return_status"] == "Invalid_Number_Detected"
    assert "[0] is " in s.explain()
    assert np.isfinite(F([1, 1]).full()).all()
    assert s.stats()["success"]


def test_bad_numbers_raise_outside_graphs() -> None:
    """In graphs too with ``error_on_fail``, and where no value can be meant."""
    for p, name in ((np.nan, r"p\[0\]"), ([[1, np.nan, 2]], r"column 1: p\[0\]")):
        with pytest.raises(InputError, match=name):
            solver()(p=p)
    with pytest.raises(RuntimeError, match=r"p\[0\]"):
        graph(solver(error_on_fail=True))([np.nan, 1])
    with pytest.raises(RuntimeError):
        graph(solver())([1, -np.inf])
