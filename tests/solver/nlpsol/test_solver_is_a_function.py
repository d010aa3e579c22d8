"""A solver of nlpsol is a ca.Function wherever a script treats it as one."""

import copy
import gc
import pickle
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from casadi.tools import entry, struct_symSX
from support.cases.watched import PythonFunction, ended

from casadi_hybrid import InputError, Problem, nlpsol
from casadi_hybrid.solver.nlpsol.solver import NlpSolver

QUIET = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-11}
ARGUMENTS = {"p": [1, 2], "ubg": [1, 0.5], "x0": [0.1, 0.2]}
EVERY = [0, [1, 2], -np.inf, np.inf, -np.inf, [1, 0.5], 0, 0]


def nlp():
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 2)
    f = (x[0] - p[0]) ** 2 + p[1] * x[1] ** 2 + x[0] * x[1] * p[0]
    return {"x": x, "p": p, "f": f, "g": ca.vertcat(x[0] + x[1] * p[1], x[0] ** 2)}


@pytest.fixture(scope="module")
def solvers():
    return nlpsol("S", "hybrid", nlp(), {"tol": 1e-11}), ca.nlpsol("S", "ipopt", nlp(), QUIET)


def assert_same(ours, theirs, atol=1e-6):
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        ours, theirs = [ours[label] for label in theirs], list(theirs.values())
    if isinstance(theirs, list | tuple):
        assert type(ours) is type(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert_same(mine, other, atol)
        return
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours.full(), theirs.full(), atol=atol)


def graph_of(call, size=2):
    """A function of a symbol that calls a solver."""
    q = ca.MX.sym("q", size)
    return ca.Function("graph", [q], [call(q)])


def test_inputs_and_outputs_as_in_casadi(solvers):
    ours, theirs = solvers
    assert isinstance(ours, ca.Function)
    assert str(ours) == str(theirs).replace("IpoptInterface", "NlpSolver")
    assert (ours.name_in(), ours.name_out()) == (theirs.name_in(), theirs.name_out())
    for side, names in (("in", theirs.name_in()), ("out", theirs.name_out())):
        for i, name in enumerate(names):
            for question in ("size", "size1", "size2", "numel", "nnz", "sparsity"):
                mine, other = (getattr(solver, f"{question}_{side}") for solver in solvers)
                assert mine(i) == mine(name) == other(i)
            assert getattr(ours, f"index_{side}")(name) == i
    assert [ours.default_in(i) for i in range(8)] == [theirs.default_in(i) for i in range(8)]


def test_parts_and_their_c_code(solvers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ours, theirs = solvers
    assert ours.get_function() == theirs.get_function()
    written = Path(ours.generate_dependencies("ours.c")).read_text()
    for name in theirs.get_function():
        mine, other = ours.get_function(name), theirs.get_function(name)
        assert str(mine) == str(other)
        numbers = [ca.DM(range(1, n + 1)) for n in (mine.numel_in(i) for i in range(mine.n_in()))]
        assert_same(mine.call(numbers), other.call(numbers), 1e-12)
        assert f"int {name}(" in written
    assert str(ours.oracle()) == str(theirs.oracle())
    with pytest.raises(InputError, match="'nlp_jac_g'"):
        ours.get_function("nlp_jac")
    with pytest.raises(InputError, match="export"):
        ours.generate("solver.c")


@pytest.mark.parametrize("form", ["live", "stored", "mapped"])
def test_graphs_around_solvers_do_not_compile(solvers, compiler, tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    solver = solvers[0]
    stored, mapped = ca.Function.deserialize(solver.serialize()), solver.map(1, "unroll")
    solver = {"live": solver, "stored": stored, "mapped": mapped}[form]
    q = ca.MX.sym("q", 2)
    x = solver(p=q, ubg=[1, 0.5], x0=[0.1, 0.2])["x"]
    graph = ca.Function("graph", [q], [x])
    assert_same(graph([1, 2]), solvers[1](**ARGUMENTS)["x"])
    assert "#error" in Path(graph.generate("graph.c")).read_text()
    with pytest.raises(RuntimeError, match="Compilation failed"):
        ca.Function("graph", [q], [x], {"jit": True, "compiler": "shell"})


def test_calls_with_lists_and_dictionaries(solvers):
    ours, theirs = solvers
    assert_same(ours.call({"p": [1, 2]}), theirs.call({"p": [1, 2]}))
    assert_same(ours.call(EVERY), theirs.call(EVERY))
    assert_same(ours(*EVERY), theirs(*EVERY))
    p = ca.MX.sym("p", 2)
    graphs = [
        ca.Function("f", [p], [s.call({"p": p})["x"], *s.call([0, p, *EVERY[2:]])[:5]])
        for s in solvers
    ]
    assert_same(*(graph([1, 2]) for graph in graphs))
    for arguments, named, message in (
        ([0, [1, 2]], {}, "name the arguments"),
        (EVERY, {"x0": 3}, "all arguments by position, or all by name"),
        ([], {"p": ca.MX.sym("p", 2), "warm_start": ours.result}, "warm_start"),
    ):
        with pytest.raises(InputError, match=message):
            ours(*arguments, **named)
    with pytest.raises(InputError, match="x0, p"):
        ours.call([1, 2])


def test_mapaccum_and_factory(solvers):
    P = ca.DM([[1, 1.1, 0.2], [2, 2.1, 2]])
    limits = ca.repmat(ca.DM([1, 0.5]), 1, 3)
    for make in ("map", "mapaccum"):
        mapped = [getattr(solver, make)(3) for solver in solvers]
        assert_same(*(function(p=P, ubg=limits) for function in mapped))
        assert_same(*(function(p=P)["x"] for function in mapped))  # the rest is free, not zero
    ours = solvers[0]
    answer = ours(**ARGUMENTS)
    x, by_p, by_ubg = ours.factory("J", ours.name_in(), ["x", "jac:x:p", "jac:f:ubg"])(*EVERY)
    assert_same(x, answer["x"])
    np.testing.assert_allclose(by_ubg, -answer["lam_g"].T, atol=1e-7)
    assert by_p.shape == (2, 2)
    assert ours.forward(1).size_in("fwd_p") == (2, 1)
    assert ours.jacobian().size_out("jac_x_p") == (2, 2)
    assert ours.jac_sparsity(0, 0).nnz() == 0
    # What a factory is not given is zero: x stays, and no row of fixed variables is in its way.
    for names in (["x0", "p"], ["x0", "p", "ubg"]):
        numbers = dict(zip(names, (0, [1, 2], 0), strict=False))
        assert_same(*(s.factory("F", names, ["x", "jac:x:p"])(**numbers) for s in solvers))


def test_graphs_outlive_their_solver():
    p = ca.MX.sym("p", 2)
    x = nlpsol("S", "hybrid", nlp(), {"tol": 1e-11})(p=p, ubg=[1, 0.5])["x"]
    graph = ca.Function("graph", [p], [x, ca.jacobian(x, p), ca.hessian(x[1], p)[0]])
    del x
    mapped = nlpsol("S", "hybrid", nlp()).map(2)
    copied = ca.Function(nlpsol("S", "hybrid", nlp()))
    gc.collect()
    x = [[0.707107], [-0.176777]]
    np.testing.assert_allclose(graph([1, 2])[0], x, atol=1e-5)
    assert mapped(p=ca.DM([[1, 2], [2, 1]]))["x"].shape == (2, 2)
    np.testing.assert_allclose(copied(p=[1, 2], ubg=[1, 0.5])["x"], x, atol=1e-5)


def test_numbers_alone_leave_nothing_behind():
    problem = Problem.from_nlp(nlp())
    solver = nlpsol("S", "hybrid", problem)
    solver(**ARGUMENTS)
    assert solver.size1_in("p") == 2
    solver.get_function("nlp_f")
    solver.stats()
    batch, reference = solver.batch(**ARGUMENTS), weakref.ref(problem)
    del solver, problem
    gc.collect()
    assert batch.result(0).success
    del batch
    gc.collect()
    assert reference() is None


def test_maps_are_pickled_and_copied(solvers):
    P = ca.DM([[1, 2], [2, 1]])
    for mapped in (solvers[0].map(2), solvers[0].map(2, "thread", 2)):
        for other in (pickle.loads(pickle.dumps(mapped)), copy.deepcopy(mapped)):
            assert_same(other(p=P)["x"], mapped(p=P)["x"])


def test_structures_stand_for_symbols(solvers):
    q, scalar = ca.MX.sym("q", 2), ca.SX.sym("s", 2)
    structure = struct_symSX([entry("both", shape=2)])
    array = np.array([scalar[0], scalar[1]])
    expected = solvers[1](**ARGUMENTS)["x"]
    standing = SimpleNamespace(__MX__=lambda: q)  # as the structures of casadi.tools
    for value, symbols in ((standing, q), (structure, structure.cat), (array, scalar)):
        arguments = {**ARGUMENTS, "p": value}
        for solver in solvers:
            for x in (solver(**arguments)["x"], solver.call(arguments)["x"]):
                assert_same(ca.Function("graph", [symbols], [x + 1])([1, 2]), expected + 1)
    for bad in ([scalar[0], 1.0], [q[0], q[1]]):
        with pytest.raises(InputError, match=r"p\[0\] is the CasADi symbol"):
            solvers[0](p=bad)


def test_casadi_reads_what_a_solver_wrote(solvers, tmp_path, capfd):
    """Processes that have not imported this package read it too, as graphs of CasADi do."""
    ours, file = solvers[0], str(tmp_path / "solver.casadi")
    ours.save(file)
    texts = ours.serialize(), ours.serialize({"debug": True})
    expected = {label: value.full().tolist() for label, value in ours(**ARGUMENTS).items()}
    by_package = [NlpSolver.load(file), *map(NlpSolver.deserialize, texts)]
    by_casadi = [ca.Function.load(file), *map(ca.Function.deserialize, texts)]
    assert all(isinstance(read, NlpSolver) for read in by_package)
    for read in by_package + by_casadi:
        assert (read.name(), read.name_in()) == (ours.name(), ours.name_in())
        assert read.default_in(3) == np.inf
        answer = read(**ARGUMENTS)
        assert {label: value.full().tolist() for label, value in answer.items()} == expected
        graph = graph_of(lambda q, s=read: s(**{**ARGUMENTS, "p": q})["x"])
        assert graph([1, 2]).full().tolist() == expected["x"]
    again = ca.Function.deserialize(graph.serialize())
    assert again([1, 2]).full().tolist() == expected["x"]
    script = (
        "import sys, casadi as ca\n"
        "read = ca.Function.load(sys.argv[1])\n"
        f"print(read(**{ARGUMENTS})['x'].full().tolist())\n"
    )
    process = ended([sys.executable, "-c", script, file], timeout=60)
    assert process.stdout.splitlines() == [str(expected["x"])], process.stderr
    with pytest.raises(RuntimeError, match="Evaluation failed"):
        by_casadi[0](lbx=2, ubx=1)
    assert "lbx[0] = 2" in capfd.readouterr().err
    with pytest.raises(InputError, match=r"NlpSolver\.serialize"):
        NlpSolver.deserialize("not one")
    x, squares = ca.MX.sym("x", 2), PythonFunction(ca.sumsqr, 2)
    with pytest.raises(InputError, match="S cannot be written"):  # with code of Python
        nlpsol("S", "hybrid", {"x": x, "f": squares(x)}).serialize()


def test_defaults_hold_in_graphs_and_maps():
    """Several default numbers for one input: CasADi knows one, and none is taken for zero."""
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 2)
    rows = {"h": {"line": x[0] - 2 * x[1]}, "g": {"row": (None, x[0], 5)}}
    values = {"lbx": [-1, 0.25], "ubx": [np.inf, 3], "p0": [3, 4], "x0": [1, 2]}
    problem = Problem(x=x, f=ca.sumsqr(x - p), p=p, **rows, **values)
    solver = nlpsol("S", "hybrid", problem)
    expected = solver()["x"].full()
    np.testing.assert_allclose(expected, [[4.0], [2.0]], atol=1e-6)
    np.testing.assert_allclose(graph_of(lambda u: solver(ubg=u)["x"], 1)(5), expected)
    np.testing.assert_allclose(solver.map(2)()["x"], np.hstack([expected] * 2))
    np.testing.assert_allclose(ca.Function(solver)()["x"], expected)
    with_a_block = graph_of(lambda u: solver(ubg={"row": 3}, lam_x0=u)["x"], 1)
    np.testing.assert_allclose(with_a_block(0), [[3], [1.5]], atol=1e-6)
    slope = graph_of(lambda u: ca.jacobian(solver(ubg=u)["x"], u), 1)
    np.testing.assert_allclose(slope(3), [[1], [0.5]], atol=1e-6)
    np.testing.assert_allclose(solver.map(2).jacobian().size_out("jac_x_p"), (4, 4))


def test_solver_within_a_solver():
    """The outer one, ours and IPOPT, takes exact second derivatives of the inner solution."""
    x, p, q = ca.SX.sym("x", 2), ca.SX.sym("p"), ca.MX.sym("q")
    f = (x[0] - p) ** 2 + ca.exp(x[1]) - x[1] * p
    inner = nlpsol("inner", "hybrid", {"x": x, "p": p, "f": f, "g": ca.sum1(x)}, {"tol": 1e-11})
    best = inner(p=q, ubg=1.2, x0=0.1)["x"]
    outer = {"x": q, "f": (best[0] - 0.3) ** 2 + (q - 1) ** 2 + best[1] ** 2}
    ours, theirs = nlpsol("outer", "hybrid", outer), ca.nlpsol("outer", "ipopt", outer, QUIET)
    assert_same(ours(x0=0.5)["x"], theirs(x0=0.5)["x"])
    assert ours.stats()["iter_count"] <= 10  # Newton's pace
