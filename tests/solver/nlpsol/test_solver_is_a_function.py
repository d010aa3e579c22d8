"""What nlpsol returns is a ca.Function wherever a script treats it as one."""

import copy
import gc
import pickle
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from casadi.tools import entry, struct_symSX
from support.cases.watched import PythonFunction

from casadi_hybrid import InputError, Problem, nlpsol
from casadi_hybrid.solver.nlpsol.solver import NlpSolver

QUIET = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-11}
GIVEN = {"p": [1, 2], "ubg": [1, 0.5], "x0": [0.1, 0.2]}


def nlp() -> dict[str, Any]:
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 2)
    f = (x[0] - p[0]) ** 2 + p[1] * x[1] ** 2 + x[0] * x[1] * p[0]
    return {"x": x, "p": p, "f": f, "g": ca.vertcat(x[0] + x[1] * p[1], x[0] ** 2)}


@pytest.fixture(scope="module")
def solvers() -> tuple[NlpSolver, ca.Function]:
    return nlpsol("S", "hybrid", nlp(), {"tol": 1e-11}), ca.nlpsol("S", "ipopt", nlp(), QUIET)


Solvers = tuple[NlpSolver, ca.Function]


def same(ours: Any, theirs: Any, atol: float = 1e-6) -> None:
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        ours, theirs = [ours[label] for label in theirs], list(theirs.values())
    if isinstance(theirs, list | tuple):
        assert type(ours) is type(theirs)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other, atol)
        return
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours.full(), theirs.full(), atol=atol)


def test_it_answers_what_a_function_is_asked(solvers: Solvers):
    ours, theirs = solvers
    assert isinstance(ours, ca.Function)
    assert str(ours) == str(theirs).replace("IpoptInterface", "NlpSolver")
    for i in range(8):
        name = theirs.name_in(i)
        assert ours.name_in(i) == name
        for which in (i, name):
            for ask in ("size_in", "size1_in", "size2_in", "numel_in", "nnz_in", "sparsity_in"):
                assert getattr(ours, ask)(which) == getattr(theirs, ask)(which)
        assert ours.index_in(name) == i
        assert ours.default_in(i) == theirs.default_in(i)
    for i in range(6):
        name = theirs.name_out(i)
        assert ours.name_out(i) == name
        assert ours.size_out(name) == ours.size_out(i) == theirs.size_out(i)
        assert ours.index_out(name) == i


def test_its_functions_are_those_of_casadis_solvers(solvers: Solvers, tmp_path: Path):
    ours, theirs = solvers
    assert ours.get_function() == theirs.get_function()
    for name in theirs.get_function():
        mine, other = ours.get_function(name), theirs.get_function(name)
        assert str(mine) == str(other)
        numbers = [ca.DM(range(1, n + 1)) for n in (mine.numel_in(i) for i in range(mine.n_in()))]
        same(mine.call(numbers), other.call(numbers), 1e-12)
    assert str(ours.oracle()) == str(theirs.oracle())
    with pytest.raises(InputError, match="did you mean 'nlp_jac_g'"):
        ours.get_function("nlp_jac")


def test_c_code_of_the_problem(solvers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ours, theirs = solvers
    with pytest.raises(InputError, match=r"export\(folder\) writes it whole"):
        ours.generate("solver.c")
    written = Path(ours.generate_dependencies("ours.c")).read_text()
    expected = Path(theirs.generate_dependencies("theirs.c")).read_text()
    for name in theirs.get_function():
        assert f"int {name}(" in expected
        assert f"int {name}(" in written


@pytest.mark.parametrize("form", ["live", "stored", "mapped"])
def test_graphs_around_solvers_do_not_compile(solvers, compiler, tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    solver = solvers[0]
    made = {"live": lambda: solver, "mapped": lambda: solver.map(1, "unroll")}
    made["stored"] = lambda: ca.Function.deserialize(solver.serialize())
    q = ca.MX.sym("q", 2)
    x = made[form]()(p=q, ubg=[1, 0.5], x0=[0.1, 0.2])["x"]
    graph = ca.Function("graph", [q], [x])
    same(graph([1, 2]), solvers[1](**GIVEN)["x"])
    assert "#error" in Path(graph.generate("graph.c")).read_text()
    with pytest.raises(RuntimeError, match="Compilation failed"):
        ca.Function("graph", [q], [x], {"jit": True, "compiler": "shell"})


def test_calls_with_lists_and_dictionaries(solvers: Solvers):
    ours, theirs = solvers
    same(ours.call({"p": [1, 2]}), theirs.call({"p": [1, 2]}))
    every = [0, [1, 2], -np.inf, np.inf, -np.inf, 1, 0, 0]
    same(ours.call(every), theirs.call(every))
    same(ours(*every), theirs(*every))
    p = ca.MX.sym("p", 2)
    every[1] = p
    named = [ca.Function("f", [p], [s.call({"p": p})["x"]])([1, 2]) for s in solvers]
    same(*named)
    listed = [ca.Function("f", [p], s.call(every)[:5])([1, 2]) for s in solvers]
    same(*listed)
    with pytest.raises(InputError, match="a dictionary or a list of x0, p"):
        ours.call([1, 2])
    with pytest.raises(InputError, match="name the arguments to leave some out"):
        ours(0, [1, 2])
    with pytest.raises(InputError, match="all arguments by position, or all by name"):
        ours(*every, x0=3)
    with pytest.raises(InputError, match="warm_start is for numbers"):
        ours(p=p, warm_start=ours.result)


def test_mapaccum_and_factory(solvers: Solvers):
    P = ca.DM([[1, 1.1, 0.2], [2, 2.1, 2]])
    limits = ca.repmat(ca.DM([1, 0.5]), 1, 3)
    for make in ("map", "mapaccum"):
        made = [getattr(solver, make)(3) for solver in solvers]
        same(*(one(p=P, ubg=limits) for one in made))
        same(*(one(p=P)["x"] for one in made))  # what is left out is free, and not fixed to zero
    inputs = solvers[0].name_in()
    made = solvers[0].factory("J", inputs, ["x", "jac:x:p", "jac:f:ubg"])
    arguments = [0, [1, 2], -np.inf, np.inf, -np.inf, [1, 0.5], 0, 0]
    x, by_p, by_ubg = made(*arguments)
    same(x, solvers[0](**GIVEN)["x"])
    np.testing.assert_allclose(by_ubg, -solvers[0](**GIVEN)["lam_g"].T, atol=1e-7)
    assert by_p.shape == (2, 2)
    F = solvers[0].forward(1)
    assert F.size_in("fwd_p") == (2, 1)
    assert solvers[0].jacobian().size_out("jac_x_p") == (2, 2)
    assert solvers[0].jac_sparsity(0, 0).nnz() == 0


def test_factory_defaults_are_casadis_zeros(solvers: Solvers):
    """What it is not given is zero there: x stays, and no row of fixed variables is in its way."""
    for names in (["x0", "p"], ["x0", "p", "ubg"]):
        given = dict(zip(names, (0, [1, 2], 0), strict=False))
        same(*(s.factory("F", names, ["x", "jac:x:p"])(**given) for s in solvers))


def graph_of_a_temporary() -> ca.Function:
    p = ca.MX.sym("p", 2)
    solver = nlpsol("S", "hybrid", nlp(), {"tol": 1e-11})
    x = solver(p=p, ubg=[1, 0.5])["x"]
    return ca.Function("graph", [p], [x, ca.jacobian(x, p), ca.hessian(x[1], p)[0]])


def test_a_graph_outlives_its_solver():
    made = graph_of_a_temporary()
    mapped = nlpsol("S", "hybrid", nlp()).map(2)
    copied = ca.Function(nlpsol("S", "hybrid", nlp()))
    gc.collect()
    assert made([1, 2])[0].full() == pytest.approx(np.array([[0.707107], [-0.176777]]), abs=1e-5)
    assert mapped(p=ca.DM([[1, 2], [2, 1]]))["x"].shape == (2, 2)
    assert copied(p=[1, 2], ubg=[1, 0.5])["x"].full()[0, 0] == pytest.approx(0.707107, abs=1e-5)


def test_numbers_alone_leave_nothing_behind():
    problem = Problem.from_nlp(nlp())
    solver = nlpsol("S", "hybrid", problem)
    solver(**GIVEN)
    assert solver.size1_in("p") == 2
    solver.get_function("nlp_f")
    solver.stats()
    gone = weakref.ref(problem)
    del solver, problem
    gc.collect()
    assert gone() is None


def test_copies_files_and_texts(solvers, tmp_path):
    ours, path = solvers[0], str(tmp_path / "solver.txt")
    expected = ours(**GIVEN)["x"].full()
    ours.save(path)
    read = NlpSolver.load(path), NlpSolver.deserialize(ours.serialize())
    for made in (pickle.loads(pickle.dumps(ours)), *read):
        assert isinstance(made, NlpSolver)
        assert made(**GIVEN)["x"].full().tolist() == expected.tolist()
        q = ca.MX.sym("q", 2)
        graph = ca.Function("graph", [q], [made(p=q, ubg=[1, 0.5], x0=[0.1, 0.2])["x"]])
        assert graph([1, 2]).full().tolist() == expected.tolist()
    with pytest.raises(InputError, match=r"NlpSolver\.serialize"):
        NlpSolver.deserialize("not one")


class Standing:
    """What stands for an expression, as the structures of casadi.tools do."""

    def __init__(self, expression: Any) -> None:
        self.__MX__ = lambda: expression


def test_structures_stand_for_symbols(solvers: Solvers):
    q, scalar = ca.MX.sym("q", 2), ca.SX.sym("s", 2)
    structure = struct_symSX([entry("both", shape=2)])
    array = np.array([scalar[0], scalar[1]])
    for given, symbols in ((Standing(q), q), (structure, structure.cat), (array, scalar)):
        graphs = []
        for solver in solvers:
            for found in (
                solver(p=given, ubg=[1, 0.5], x0=[0.1, 0.2])["x"],
                solver.call({"p": given, "ubg": [1, 0.5], "x0": [0.1, 0.2]})["x"],
            ):
                graphs.append(ca.Function("graph", [symbols], [found])([1, 2]))
        for graph in graphs[:-1]:
            same(graph, graphs[-1])
    for bad in ([scalar[0], 1.0], [q[0], q[1]]):
        with pytest.raises(InputError, match=r"p\[0\] is the CasADi symbol .* ca\.vertcat"):
            solvers[0](p=bad)


def test_casadi_reads_what_a_solver_wrote(solvers: Solvers, tmp_path: Path):
    """Also where nobody has imported this package, and within graphs that CasADi writes down."""
    ours = solvers[0]
    expected = {label: value.full().tolist() for label, value in ours(**GIVEN).items()}
    q = ca.MX.sym("q", 2)
    for options in ({}, {"debug": True}):
        text = ours.serialize(options)
        read = ca.Function.deserialize(text)
        assert read.name() == ours.name()
        assert read.name_in() == ours.name_in()
        assert read.default_in(3) == np.inf
        found = read(**GIVEN)
        assert {label: value.full().tolist() for label, value in found.items()} == expected
        assert NlpSolver.deserialize(text)(**GIVEN)["x"].full().tolist() == expected["x"]
        graph = ca.Function("graph", [q], [read(p=q, ubg=[1, 0.5], x0=[0.1, 0.2])["x"]])
        again = ca.Function.deserialize(graph.serialize())
        assert again([1, 2]).full().tolist() == expected["x"]
    other = nlpsol("other", "hybrid", {"x": q, "f": ca.sumsqr(q - 3)})
    both = [ca.Function.deserialize(each.serialize()) for each in (ours, other)]
    assert both[0](**GIVEN)["x"].full().tolist() == expected["x"]
    np.testing.assert_allclose(both[1]()["x"], [[3], [3]], atol=1e-6)
    ours.save(str(tmp_path / "solver.casadi"))
    script = (
        "import sys, casadi as ca\n"
        "read = ca.Function.load(sys.argv[1])\n"
        f"print(read(**{GIVEN})['x'].full().tolist())\n"
        "print('stored' in globals())\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "solver.casadi")]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.splitlines() == [str(expected["x"]), "False"]


def test_a_stored_solver_that_fails_says_why(solvers, capfd):
    read = ca.Function.deserialize(solvers[0].serialize())
    with pytest.raises(RuntimeError, match="Evaluation failed"):
        read(lbx=2, ubx=1)
    assert "lbx[0] = 2" in capfd.readouterr().err


def test_python_code_is_not_written_down():
    x, squares = ca.MX.sym("x", 2), PythonFunction(ca.sumsqr, 2)
    solver = nlpsol("S", "hybrid", {"x": x, "f": squares(x)})
    with pytest.raises(InputError, match=r"S cannot be written: .*'CallbackInternal'.* Python"):
        solver.serialize()


def test_defaults_of_a_problem_hold_in_graphs_and_maps():
    """Several default numbers for one input: CasADi knows one, and none is taken for zero."""
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 2)
    problem = Problem(
        x=x, f=ca.sumsqr(x - p), h={"line": x[0] - 2 * x[1]}, g={"row": (None, x[0], 5)}, p=p,
        lbx=[-1, 0.25], ubx=[np.inf, 3], p0=[3, 4], x0=[1, 2],
    )  # fmt: skip
    solver = nlpsol("S", "hybrid", problem)
    expected = solver()["x"].full()
    np.testing.assert_allclose(expected, [[4.0], [2.0]], atol=1e-6)
    u = ca.MX.sym("u")
    np.testing.assert_allclose(ca.Function("g", [u], [solver(ubg=u)["x"]])(5), expected)
    np.testing.assert_allclose(solver.map(2)()["x"], np.hstack([expected] * 2))
    np.testing.assert_allclose(ca.Function(solver)()["x"], expected)
    with_a_block = ca.Function("g", [u], [solver(ubg={"row": 3}, lam_x0=u)["x"]])
    np.testing.assert_allclose(with_a_block(0), [[3], [1.5]], atol=1e-6)
    slope = ca.Function("j", [u], [ca.jacobian(solver(ubg=u)["x"], u)])
    np.testing.assert_allclose(slope(3), [[1], [0.5]], atol=1e-6)
    np.testing.assert_allclose(solver.map(2).jacobian().size_out("jac_x_p"), (4, 4))


def test_a_solver_within_a_solver():
    """The outer one, ours and IPOPT, takes exact second derivatives of the inner solution."""
    x, p, q = ca.SX.sym("x", 2), ca.SX.sym("p"), ca.MX.sym("q")
    f = (x[0] - p) ** 2 + ca.exp(x[1]) - x[1] * p
    inner = nlpsol("inner", "hybrid", {"x": x, "p": p, "f": f, "g": ca.sum1(x)}, {"tol": 1e-11})
    best = inner(p=q, ubg=1.2, x0=0.1)["x"]
    outer = {"x": q, "f": (best[0] - 0.3) ** 2 + (q - 1) ** 2 + best[1] ** 2}
    ours, theirs = nlpsol("outer", "hybrid", outer), ca.nlpsol("outer", "ipopt", outer, QUIET)
    same(ours(x0=0.5)["x"], theirs(x0=0.5)["x"])
    assert ours.stats()["iter_count"] <= 10  # Newton's pace


def test_a_solver_may_stand_among_scalar_symbols(solvers: Solvers):
    q = ca.SX.sym("q", 2)
    graphs = [ca.Function("g", [q], [solver(p=q)["x"] + 1]) for solver in solvers]
    same(graphs[0]([1, 2]), graphs[1]([1, 2]))


def test_what_is_mapped_is_pickled_and_copied(solvers: Solvers):
    P = ca.DM([[1, 2], [2, 1]])
    for made in (solvers[0].map(2), solvers[0].map(2, "thread", 2)):
        for other in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
            same(other(p=P)["x"], made(p=P)["x"])
