"""A solver inside CasADi's graphs: the core in C solves, and numbers that are none give NaN."""

import os
import sys
import threading
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.core import OUTPUTS, Case, bits, hs071, in_graph_of, with_rows
from support.cases.watched import ended
from support.paths import ROOT

from casadi_hybrid import InputError, nlpsol
from casadi_hybrid.solver.nlpsol.function import callback, make_function
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


def test_equations_alone_are_solved_in_a_graph(by_python: list[int]) -> None:
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    nlp = {"x": x, "p": p, "f": (x[0] - p) ** 2 + x[1], "g": ca.sumsqr(x) - 1}
    solver = nlpsol("solver", "hybrid", nlp)
    given = full(solver, {"x0": [0.5, 0.7], "p": 2, "lbg": 0, "ubg": 0})
    graph = in_graph_of(solver, given)
    for value in (2.0, 0.3, -1.5):
        arguments = {**given, "p": ca.DM(value)}
        alone = solver(**arguments)
        assert solver.result.engine == "c"
        before = len(by_python)
        assert bits(graph(**arguments)) == bits(alone)
        assert len(by_python) == before
    empty = {**given, "lbg": ca.DM(-2), "ubg": ca.DM(-2)}
    alone = solver(**empty)
    assert solver.result.stop.name == "LOCALLY_INFEASIBLE"
    assert bits(graph(**empty)) == bits(alone)
    assert not by_python


def test_python_threads_share_a_graph(by_python: list[int]) -> None:
    solver, given, graph = in_graph(hs071())
    changed = [{**given, "p": 1 + 0.01 * k} for k in range(8)]
    expected = [bits(graph(**one)) for one in changed]
    differ: list[int] = []

    def solve(mine: int) -> None:
        for last in (mine, mine + 4):
            differ.extend(k for k in range(8) if bits(graph(**changed[k])) != expected[k])
            x = graph(**changed[last])["x"].full().ravel()
            # Whatever the others have solved meanwhile, this thread asks for its own last call.
            if (solver.result.x != x).any() or (solver.result.p != 1 + 0.01 * last).any():
                differ.append(-1)

    threads = [threading.Thread(target=solve, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not differ
    assert not by_python


@pytest.mark.parametrize("make", [with_rows, hs071])
def test_derivatives_are_those_of_the_graph_without_engine(make: Any, by_python: list[int]) -> None:
    case = make()
    solver = nlpsol("solver", "hybrid", case.nlp, {"tol": 1e-10})
    problem = solver._runner.problem
    solved = callback("solver", problem, solver._runner.evaluate)
    plain = make_function("solver", problem, solved)
    given = full(solver, case.numbers)
    del given["p"]
    p = ca.MX.sym("p", solver.size1_in("p"))
    at = case.numbers["p"]
    found = []
    for each in (solver, plain):
        out = ca.Function.call(each, {**given, "p": p})
        x, merit = out["x"], ca.sumsqr(out["x"]) + out["f"]
        shown = [
            # In one Function with the values, each by itself, and through the whole solver.
            [x, out["f"], ca.jacobian(x, p), ca.gradient(merit, p), ca.hessian(merit, p)[0]],
            [ca.jacobian(ca.veccat(*(out[name] for name in OUTPUTS)), p)],
            [ca.jtimes(ca.jacobian(x, p) @ ca.MX.ones(p.numel()), p, ca.MX.ones(p.numel(), 2))],
        ]
        numbers = [ca.Function("d", [p], some)(at) for some in shown]
        inputs = solver.name_in()
        columns = [given.get(name, each.default_in(i)) for i, name in enumerate(inputs)]
        columns[inputs.index("p")] = at
        both = each.factory("both", inputs, ["x", "f", "jac:x:p", "jac:f:ubg", "jac:lam_g:p"])
        numbers += [both(*columns), each.jacobian()(*columns, *[0] * 6)]
        numbers.append(each.map(2).forward(1)(*columns, *[0] * 6, *[1] * 8))
        numbers.append(each.reverse(2)(*columns, *[0] * 6, *[1] * 6))
        flat = [ca.veccat(*some) if isinstance(some, tuple) else ca.vec(some) for some in numbers]
        found.append(np.concatenate([value.full().ravel() for value in flat]))
    with_engine, without = found
    assert np.abs(without).max() > 1
    np.testing.assert_allclose(with_engine, without, rtol=1e-10, atol=1e-10)


def test_a_text_of_a_graph_names_no_solver_of_another_process() -> None:
    solver, given, graph = in_graph(hs071())
    inner = graph.find_function("hybrid_in_graph")
    columns = [given.get(name, ca.DM.zeros(solver.size1_in(name))) for name in solver.name_in()]
    for handle in (-1.0, 0.5, 1e300, np.nan):
        with pytest.raises(RuntimeError):
            inner(handle, *columns)


def test_bounds_of_other_kinds_in_one_graph(by_python: list[int]) -> None:
    solver, given, graph = in_graph(with_rows())
    for value in (0.3, np.inf, -0.2, 0.3, np.inf):
        given["ubg"][1] = value
        assert bits(graph(**given)) == bits(solver(**given))
    assert not by_python


def test_one_that_fails_harms_no_other(by_python: list[int]) -> None:
    solver, given, graph = in_graph(hs071())
    lower = ca.horzcat(given["lbg"], ca.DM([1e4, 40]), given["lbg"])
    columns = {k: lower if k == "lbg" else ca.repmat(v, 1, 3) for k, v in given.items()}
    found = solver.map(3, "thread", 2)(**columns)
    alone = [solver(**{**given, "lbg": lower[:, k]}) for k in range(3)]
    for name in OUTPUTS:
        np.testing.assert_array_equal(found[name], ca.horzcat(*(one[name] for one in alone)))
    assert not by_python
    graph(**{**given, "lbg": lower[:, 1]})
    assert not solver.stats()["success"]
    graph(**given)
    assert solver.stats()["success"]
    graph = in_graph_of(nlpsol("strict", "hybrid", hs071().nlp, {"error_on_fail": True}), given)
    with pytest.raises(RuntimeError, match="strict failed"):
        graph(**{**given, "lbg": lower[:, 1]})
    with pytest.raises(RuntimeError, match="x0"):
        graph(**{**given, "x0": np.nan})
    assert bits(graph(**given)) == bits(alone[0])


def test_python_has_what_is_not_for_the_engine(by_python: list[int]) -> None:
    case = hs071()
    records: list[Any] = []
    watched = nlpsol("solver", "hybrid", case.nlp, {"iteration_callback": records.append})
    graph = in_graph_of(watched, full(watched, case.numbers))
    graph(**full(watched, case.numbers))
    assert len(by_python) == 1
    assert len(records) == watched.stats()["iter_count"] + 1


ALONE = """
import ctypes, os, sys
import casadi as ca, numpy as np
from support.cases.core import hs071
from casadi_hybrid import nlpsol
from casadi_hybrid.problem.bounds import Bounds
case = hs071()
solver = nlpsol("solver", "hybrid", case.nlp)
p = ca.MX.sym("p")
given = {k: v for k, v in case.numbers.items() if k != "p"}
graph = ca.Function("graph", [p], [solver(p=p, **given)["x"]]).map(8, "thread", 2)
values = 1 + 0.01 * np.arange(8.0)
expected = np.hstack([solver(p=k, **given)["x"].full() for k in values])
pool = solver._runner.pool_for_graphs()
row = np.concatenate([np.broadcast_to(case.numbers.get(k, 0.0), solver.size1_in(k))
                      for k in solver.name_in()])
for slot in (0, 1):
    pool._fill(slot, Bounds(*np.split(row, np.cumsum(pool._sizes)[:-1])[2:6]))
buffer, run = graph.buffer()
found = np.empty((8, 4))
buffer.set_arg(0, memoryview(values))
buffer.set_res(0, memoryview(found))
address = ctypes.pythonapi.PyCapsule_GetPointer
address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
# Through PyDLL this thread keeps Python's lock until both others are done.
run = ctypes.PyDLL(ca._casadi.__file__)._ZN6casadi21_function_buffer_evalEPv
run.argtypes = [ctypes.c_void_p]
run(address(buffer._self(), None))
assert (found.T == expected).all()
assert pool.data.calls == 8
child = os.fork()
if not child:
    os._exit(0 if (graph(values).full() == expected).all() else 1)
assert os.waitpid(child, 0)[1] == 0
print("done")
"""


def test_threads_solve_while_another_holds_pythons_lock() -> None:
    """And a forked process solves on. In a process of its own: it would wait for ever."""
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r})\n{ALONE}"
    done = ended([sys.executable, "-c", code], timeout=120)
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


def test_ctrl_c_while_casadi_makes_its_matrices_is_no_other_error(monkeypatch) -> None:
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
def test_the_other_columns_are_solved(how: str) -> None:
    s = solver()
    p = np.array([[1.0, np.nan, 2.0]])
    with pytest.warns(UserWarning, match=r"s in a graph: p\[0\] is nan, so its outputs are NaN"):
        found = s.map(3, how)(x0=0, p=p, lbg=-ca.inf, ubg=1)
    for k in (0, 2):
        alone = s(x0=0, p=p[0, k], ubg=1)
        for name in OUTPUTS:
            np.testing.assert_array_equal(found[name][:, k], alone[name])
    assert all(np.isnan(found[name][:, 1].full()).all() for name in OUTPUTS)


def test_so_are_their_derivatives() -> None:
    P = ca.MX.sym("P", 1, 3)
    x = solver().map(3, "thread")(x0=0, p=P, lbg=-ca.inf, ubg=1)["x"]
    merit = ca.sumsqr(x)
    shown = [ca.jacobian(x, P), ca.gradient(merit, P), ca.hessian(merit, P)[0]]
    slopes = ca.Function("slopes", [P], shown)
    J, gradient, hessian = (part.full() for part in slopes([0.1, 0.2, 0.3]))
    with pytest.warns(UserWarning, match="p\\[0\\] is nan"):
        partly = [part.full() for part in slopes([0.1, np.nan, 0.3])]
    np.testing.assert_array_equal(partly[0][[0, 1, 4, 5]], J[[0, 1, 4, 5]])
    np.testing.assert_array_equal(partly[1].ravel()[[0, 2]], gradient.ravel()[[0, 2]])
    np.testing.assert_array_equal(partly[2][[0, 2]][:, [0, 2]], hessian[[0, 2]][:, [0, 2]])
    assert np.isnan(partly[0][[2, 3], 1]).all()
    assert np.isnan(partly[1].ravel()[1])
    assert np.isnan(partly[2][1, 1])


@pytest.mark.parametrize("bad", [(np.nan, 1), (np.inf, 1), (1, np.nan)])
def test_statistics_say_that_it_failed(bad: tuple[float, float]) -> None:
    s = solver()
    F = graph(s)
    with pytest.warns(UserWarning, match="its outputs are NaN"):
        assert np.isnan(F(bad).full()).all()
    assert not s.stats()["success"]
    assert s.stats()["return_status"] == "Invalid_Number_Detected"
    assert "finite numbers are needed" in s.stats()["detail"]
    assert "[0] is " in s.explain()
    assert np.isfinite(F([1, 1]).full()).all()
    assert s.stats()["success"]


def test_what_is_raised_is_raised_still(capfd: pytest.CaptureFixture[str]) -> None:
    for p, said in ((np.nan, r"p\[0\] is nan"), ([[1, np.nan, 2]], r"column 1: p\[0\] is nan")):
        with pytest.raises(InputError, match=said):
            solver()(p=p)
    with pytest.raises(RuntimeError, match=r"p\[0\] is nan"):
        graph(solver(error_on_fail=True))([np.nan, 1])
    assert capfd.readouterr().err.count("(p): ") == 2  # beside the traceback of each failure
    with pytest.raises(RuntimeError):
        graph(solver())([1, -np.inf])
    assert "Ill-posed problem" in capfd.readouterr().err


def test_a_stored_solver_does_the_same() -> None:
    read = ca.Function.deserialize(solver().serialize())
    with pytest.warns(UserWarning, match=r"p\[0\] is nan, so its outputs are NaN"):
        assert np.isnan(read(p=np.nan, ubg=1)["x"].full()).all()
    assert np.isfinite(read(p=1, ubg=1)["x"].full()).all()
