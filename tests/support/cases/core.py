"""Problems for tests of the core, with numbers that move, and structures of the core's pieces."""

import ctypes as ct
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.judges.kkt import Judge

from casadi_hybrid import Problem, nlpsol
from casadi_hybrid.core.binding.core import OUTPUTS, engine_of
from casadi_hybrid.core.export.core import core_sources
from casadi_hybrid.core.header import C, Headers
from casadi_hybrid.problem.building.build import Sources, load

Numbers = dict[str, Any]


def bits(outputs: Any) -> dict[str, bytes]:
    """Bytes of the outputs of a solve, by name."""
    return {name: np.array(outputs[name]).tobytes() for name in OUTPUTS}


@dataclass(frozen=True)
class Case:
    """A dictionary of ``nlpsol`` with numbers, and how they move from solve to solve."""

    nlp: dict[str, Any]
    numbers: Numbers
    moved: Callable[[Numbers, Any, np.random.Generator], Numbers]


@cache
def core_in_pieces() -> Any:
    """The core with all functions visible; the test is skipped without a compiler."""
    if shutil.which("cc") is None:
        pytest.skip("there is no compiler")
    found = load(Sources("pieces", core_sources(), ("-O0",)))
    return core.declare(C.declare(found))


def noisy_p(size: float) -> Callable[[Numbers, Any, np.random.Generator], Numbers]:
    """Parameters with noise on them."""

    def moved(numbers: Numbers, _x: Any, draws: np.random.Generator) -> Numbers:
        p = np.asarray(numbers["p"])
        return {**numbers, "p": p + size * draws.standard_normal(p.size)}

    return moved


def van_der_pol(stages: int = 12) -> Case:
    """A horizon with bounds on a state and the control; p is the state measured."""
    X, U, p = ca.SX.sym("X", 2, stages + 1), ca.SX.sym("U", stages), ca.SX.sym("p", 2)

    def step(s: ca.SX, u: ca.SX) -> ca.SX:
        return s + 0.2 * ca.vertcat((1 - s[1] ** 2) * s[0] - s[1] + u, s[0])

    rows = [X[:, 0] - p, *(X[:, k + 1] - step(X[:, k], U[k]) for k in range(stages))]
    nlp = {
        "x": ca.vertcat(ca.vec(X), U),
        "p": p,
        "f": ca.sumsqr(X) + 0.1 * ca.sumsqr(U),
        "g": ca.vertcat(*rows),
    }
    low = np.concatenate((np.tile([-0.25, -np.inf], stages + 1), -np.ones(stages)))
    low[:2] = -np.inf
    high = np.concatenate((np.full(2 * stages + 2, np.inf), np.ones(stages)))
    start = {"x0": 0.1, "p": np.array([0.0, 0.8])}
    numbers = {**start, "lbx": low, "ubx": high, "lbg": 0.0, "ubg": 0.0}

    def moved(numbers: Numbers, x: Any, draws: np.random.Generator) -> Numbers:
        state = np.asarray(x).ravel()[2:4]
        return {**numbers, "p": state + 0.02 * draws.standard_normal(2)}

    return Case(nlp, numbers, moved)


def with_rows() -> Case:
    """Rows with one bound, with two, equations, and one without a bound."""
    x, p = ca.SX.sym("x", 6), ca.SX.sym("p", 3)
    g = ca.vertcat(
        x[0] ** 2 + x[1] ** 2 + x[2],
        x[1] * x[2] - x[3],
        x[3] + x[4] + x[5] - p[2],
        ca.sin(x[0]) + x[5],
        ca.exp(x[2]) * x[4],
    )
    f = ca.sumsqr(x - ca.vertcat(p, p)) + 0.1 * ca.sum1(x**4) + x[0] * x[5]
    inf = np.inf
    lbg, ubg = np.array([-inf, -0.2, 0.0, -inf, 0.1]), np.array([1.0, 0.3, 0.0, inf, inf])
    numbers = {"x0": 0.5, "p": np.array([1.0, 0.6, 0.4]), "lbg": lbg, "ubg": ubg}
    return Case({"x": x, "p": p, "f": f, "g": g}, numbers, noisy_p(0.05))


def with_fixed() -> Case:
    """Three of eight variables are fixed, one at a value that moves."""
    x, p = ca.SX.sym("x", 8), ca.SX.sym("p", 2)
    g = ca.vertcat(x[0] * x[1] + x[2] ** 2 - x[3], ca.sum1(x), x[4] * x[5] - x[6])
    f = ca.sumsqr(x - p[0]) + p[1] * x[0] * x[7] + ca.exp(-x[5])
    low, high = np.full(8, -2.0), np.full(8, 2.0)
    low[[1, 4, 6]] = high[[1, 4, 6]] = 0.5, -0.3, 0.1
    numbers = {"x0": 0.1, "p": np.array([0.7, 0.4]), "lbx": low, "ubx": high}
    numbers |= {"lbg": np.array([0.0, -1.0, -np.inf]), "ubg": np.array([0.0, 2.5, 0.2])}

    def moved(numbers: Numbers, _x: Any, draws: np.random.Generator) -> Numbers:
        new = noisy_p(0.05)(numbers, _x, draws)
        new["lbx"], new["ubx"] = new["lbx"].copy(), new["ubx"].copy()
        new["lbx"][4] = new["ubx"][4] = -0.3 + 0.1 * draws.standard_normal()
        return new

    return Case({"x": x, "p": p, "f": f, "g": g}, numbers, moved)


def steep() -> Case:
    """Large gradients of the objective and of a row: both are scaled."""
    x, p = ca.SX.sym("x", 4), ca.SX.sym("p", 4)
    f = 3e4 * ca.sumsqr(x - p) + 1e3 * x[0] ** 4
    g = ca.vertcat(500 * (x[0] + 2 * x[1] ** 2), x[2] - x[3], 1e4 * x[3])
    numbers = {"x0": 1.0, "p": np.array([1.0, 1.5, -0.5, 0.8]), "lbx": -1.0, "ubx": 2.0}
    numbers |= {"lbg": np.array([-np.inf, 0.0, -1e4]), "ubg": np.array([900.0, 0.0, 1e3])}
    return Case({"x": x, "p": p, "f": f, "g": g}, numbers, noisy_p(0.02))


def hs071() -> Case:
    """Problem 71 of Hock and Schittkowski, with a parameter on its product."""
    x, p = ca.SX.sym("x", 4), ca.SX.sym("p", 1)
    f = x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]
    g = ca.vertcat(p * x[0] * x[1] * x[2] * x[3], ca.sumsqr(x))
    start = {"x0": np.array([1.0, 5.0, 5.0, 1.0]), "p": np.array([1.0])}
    rows = {"lbg": np.array([25.0, 40.0]), "ubg": np.array([np.inf, 40.0])}
    numbers = {**start, "lbx": 1.0, "ubx": 5.0, **rows}
    return Case({"x": x, "p": p, "f": f, "g": g}, numbers, noisy_p(0.01))


def box() -> Case:
    """Bounds alone: no row at all."""
    x, p = ca.SX.sym("x", 5), ca.SX.sym("p", 5)
    f = ca.sumsqr(x - p) + x[0] * x[1] + ca.sum1(ca.cosh(x))
    numbers = {"x0": 0.0, "p": np.array([1.0, -1.0, 4.0, 0.2, -4.0]), "lbx": -0.6, "ubx": 0.8}
    return Case({"x": x, "p": p, "f": f}, numbers, noisy_p(0.1))


def no_parameter() -> Case:
    """No parameter: a bound moves."""
    x = ca.MX.sym("x", 3)
    f = (x[0] - 1) ** 2 + (x[1] - 2) ** 2 + x[2] ** 4 + x[2]
    numbers = {"x0": 0.0, "lbg": 0.0, "ubg": 2.0}

    def moved(numbers: Numbers, _x: Any, draws: np.random.Generator) -> Numbers:
        return {**numbers, "ubg": 2.0 + 0.1 * draws.standard_normal()}

    return Case({"x": x, "f": f, "g": ca.sum1(x)}, numbers, moved)


def corridor(N: int = 5) -> tuple[dict[str, Any], Numbers]:
    """Inequalities on one side and both, an equation, a row without bounds, a fixed variable."""
    x, p = ca.SX.sym("x", N), ca.SX.sym("p")
    rows = [x[k] * x[k + 1] for k in range(N - 1)]
    g = ca.vertcat(*rows, ca.sum1(x) - p, ca.sumsqr(x), ca.exp(x[0]))
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x - ca.DM(range(N))) + ca.sin(x[1]), "g": g}
    lbg = np.r_[np.full(N - 1, -np.inf), 0.0, -np.inf, 0.1]
    ubg = np.r_[np.linspace(0.3, 2.0, N - 1), 0.0, np.inf, 3.0]
    lbx, ubx = np.full(N, -np.inf), np.full(N, 2.5)
    lbx[3] = ubx[3] = 0.5
    arguments = {"x0": 0.5, "p": 2.0, "lbx": lbx, "ubx": ubx, "lbg": lbg, "ubg": ubg}
    return nlp, arguments


MADE = van_der_pol, with_rows, with_fixed, steep, hs071, box, no_parameter
CASES = {made.__name__: made for made in MADE}


def problem_of(case: Case) -> Problem:
    return Problem.from_nlp(case.nlp)


def engine_answer(problem: Problem) -> Any:
    """The ``hybrid_answer`` of this thread's last solve of a problem."""
    return engine_of(problem).cores[0].answer


def warm(outputs: Any) -> Numbers:
    """The arguments of a warm start from outputs."""
    return {"x0": outputs["x"], "lam_x0": outputs["lam_x"], "lam_g0": outputs["lam_g"]}


def in_graph_of(solver: Any, arguments: Iterable[str]) -> ca.Function:
    """All outputs as a Function of these arguments."""
    symbols = {name: ca.MX.sym(name, solver.sparsity_in(name)) for name in arguments}
    found = ca.Function.call(solver, symbols)
    names, outputs = list(symbols), list(found)
    return ca.Function("graph", [*symbols.values()], [*found.values()], names, outputs)


def solved(
    made: tuple[dict[str, Any], Numbers], options: dict[str, Any] | None = None, **given: Any
) -> tuple[Any, dict[str, Any]]:
    """The solver, and the outputs of one solve as arrays."""
    problem, numbers = made
    solver = nlpsol("solver", "hybrid", problem, options or {})
    outputs = solver(**{**numbers, **given})
    return solver, {name: value.full().ravel() for name, value in outputs.items()}


def assert_kkt(made: tuple[dict[str, Any], Numbers], found: Numbers, tol: float = 1e-6) -> None:
    """The KKT conditions by CasADi's derivatives, relative to large multipliers."""
    problem, arguments = made
    lam = np.concatenate((found["lam_x"], found["lam_g"], [1.0]))
    assert Judge(problem).kkt(found, arguments) <= tol * np.abs(lam).max()


def assert_cut_short(made: tuple[dict[str, Any], Numbers], most: int) -> None:
    """A limit of steps ends a run on its way: its first iterates are those without the limit."""
    rows = solved(made)[0].stats()["iterations"]
    steps = min(most, len(rows["iter"]) - 2)
    stats = solved(made, {"max_iter": steps})[0].stats()
    assert (stats["stop_reason"], stats["iter_count"]) == ("ITERATION_LIMIT", steps)
    for name, numbers in stats["iterations"].items():
        np.testing.assert_array_equal(numbers[:steps], rows[name][:steps], err_msg=name)


# Structures of the core's own headers: Arena is hybrid_arena, PointData hybrid_point.

POINTER, NUMBER, WHOLE = ct.c_void_p, ct.c_double, ct.c_int
core = Headers(*(text for name, text in core_sources().items() if name.endswith(".h")))
Arena, PointData, TrialData = core.hybrid_arena, core.hybrid_point, core.hybrid_trial
BoundMultipliersData, LowRankData = core.hybrid_bound_multipliers, core.hybrid_low_rank
FormData, KktData = core.hybrid_form, core.hybrid_kkt
FilterPairData = core.hybrid_filter_pair
