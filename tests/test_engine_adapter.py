"""Solvers as functions that CasADi calls: one library for all, and each its own numbers."""

import gc
import pickle
from pathlib import Path

import casadi as ca
import numpy as np

from casadi_hybrid import Problem, nlpsol
from casadi_hybrid.casadi_api.solver import NlpSolver
from casadi_hybrid.engine import external
from casadi_hybrid.engine.library import core_sources
from casadi_hybrid.problem.building.build import Sources, load


def solver_of(a: float) -> NlpSolver:
    """The nearest point to (a, 2a) on the disc of radius 1."""
    x = ca.MX.sym("x", 2)
    nlp = {"x": x, "f": ca.sumsqr(x - ca.vertcat(a, 2 * a)), "g": ca.sumsqr(x)}
    return nlpsol("solver", "hybrid", nlp)


def answer(solver: NlpSolver) -> list[bytes]:
    found = solver(x0=0.1, ubg=1)
    return [np.array(found[name]).tobytes() for name in ("x", "f", "g", "lam_x", "lam_g", "lam_p")]


def test_each_of_many_solvers_keeps_its_own() -> None:
    numbers = np.linspace(-2, 2, 80)
    alone = [answer(solver_of(a)) for a in numbers]
    solvers = [solver_of(a) for a in numbers]
    assert [answer(solver) for solver in solvers] == alone
    assert [answer(solver) for solver in reversed(solvers)] == alone[::-1]
    del solvers[::2]
    gc.collect()
    again = [solver_of(a) for a in numbers[::2]]
    assert [answer(solver) for solver in again] == alone[::2]
    assert [answer(solver) for solver in solvers] == alone[1::2]


def test_the_adapter_is_clean_c99() -> None:
    folder = Path(external.__file__).with_name("adapter")
    files = {path.name: path.read_text("utf-8") for path in folder.glob("[ag]*.[ch]")}
    core = core_sources().files
    headers = {name: core[name] for name in core if name.endswith(".h")}
    strict = ("-O3", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wmissing-prototypes")
    loaded = load(Sources("hybrid_adapter", {**files, **headers}, strict))
    assert loaded.hybrid_ready_n_in() == 1
    assert loaded.hybrid_in_graph_n_in() == loaded.hybrid_solver_n_in() == 9


def equations() -> Problem:
    x = ca.SX.sym("x", 2)
    return Problem.from_nlp({"x": x, "f": ca.sumsqr(x - 1) * x[0], "g": x[0] * x[1]})


def test_functions_that_few_methods_call_are_made_when_one_does() -> None:
    problem = equations()
    nlpsol("solver", "hybrid", problem)(x0=[2.0, 0.5], lbg=1, ubg=1)
    functions = problem.functions
    seldom = functions.of_residual, functions.of_second
    assert all(one is not None and "made" not in vars(one) for one in seldom)
    copy = pickle.loads(pickle.dumps(problem)).functions
    at, lam = [2.0, 0.5], [3.0]
    for one in (functions, copy):
        assert one.second is not None
        assert one.second is one.second
        first, whole = one.first(at, []), one.second(at, lam, [])
        assert [str(a) for a in first] == [str(a) for a in whole[:4]]
        assert float(one.residual(at, [])) == float(first[2])
        assert str(whole[4]) == str(one.curvature(at, lam, []))
