"""KKT systems whose factorization is in doubt: they count as singular.

Pieces are compared with eigenvalues and residuals by NumPy, in units up to 1e±12. Whole solves run
on a core whose factorizations and solutions are spoiled between its files.
"""

import ctypes as ct
from collections import Counter
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.core import assert_kkt, engine_answer, solved, warm
from support.cases.ldl_pieces import equilibrated
from support.judges.standard_form import Form, Kkt, view, whole

from casadi_hybrid import Problem, nlpsol
from casadi_hybrid.core.binding import core, ldl
from casadi_hybrid.core.export.core import core_sources
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.building.build import Sources, load

SINGULAR, ACCURATE = 2, 1e-10


class System(Kkt):
    """K for one pattern of (W, A), no entry pinned; W may have a change of low rank."""

    def __init__(self, W: np.ndarray, A: np.ndarray, U: Any = (), w: Any = ()) -> None:
        x = ca.SX.sym("x", A.shape[1])
        f = 0.5 * ca.bilin(ca.sparsify(ca.DM(W)), x, x)
        self.problem = Problem(x=x, f=f, g=ca.mtimes(ca.sparsify(ca.DM(A)), x))
        super().__init__(Form(self.problem, self.problem.numbers(lbg=0.0, ubg=0.0)), (U, w))
        data = self.form.data
        self.n, self.m = data.n, data.m
        self.W = W[whole(data.W_rows, data.nnz_W), whole(data.W_cols, data.nnz_W)]
        self.A = A[whole(data.A_rows, data.nnz_A), whole(data.A_cols, data.nnz_A)]

    def factor(self, epsilon: float) -> int:
        numbers = ct.c_double(0.0), ct.c_double(epsilon)
        return self.call("hybrid_factor_pinned", self.W, self.A, *numbers, self.at)

    def solve(self, b: np.ndarray) -> tuple[int, int, np.ndarray]:
        """Statuses of the solution alone and with the correction of its rows, and the latter."""
        view(self.data.right, b.size)[:] = b
        first = self.call("hybrid_solve_refined", self.at)
        force, c = np.split(-b, [self.n])
        dw, dy = np.empty(self.n), np.empty(self.m)
        arrays = self.W, self.A, force, c, self.at, dw, dy
        return first, self.call("hybrid_solve_pinned", *arrays), np.r_[dw, dy]


def any_units(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """W and A in units from 1e-12 to 1e12, some without curvature along a variable."""
    n = int(rng.integers(2, 60))
    m = int(rng.integers(1, n))
    W = rng.standard_normal((n, n)) * (rng.random((n, n)) < rng.choice([0.1, 0.3]))
    W = W + W.T + np.diag(rng.standard_normal(n) * (rng.random(n) < 0.7))
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.3)
    A[np.arange(m), rng.permutation(n)[:m]] = 1.0
    units_x, units_c = (10.0 ** rng.uniform(-6, 6, size) for size in (n, m))
    return W * np.outer(units_x, units_x), A * np.outer(units_c, units_x)


def cancelling(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Curvatures up to 1e16: beside b a residual is large that every row has from rounding."""
    n = int(rng.integers(20, 60))
    m = int(n * rng.uniform(0.3, 0.9))
    A = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-4, 4, (m, n))
    A *= rng.random((m, n)) < 0.15
    A[np.arange(m), rng.permutation(n)[:m]] = 1.0
    return np.diag(10.0 ** rng.uniform(-8, 16, n)), A


def kkt_matrix(W: np.ndarray, A: np.ndarray, epsilon: float = 0.0) -> np.ndarray:
    return np.block([[W, A.T], [A, -epsilon * np.eye(len(A))]])


def backward_error(K: np.ndarray, x: np.ndarray, b: np.ndarray) -> float:
    """The largest one of a row."""
    left, sizes = np.abs(b - K @ x), np.abs(K) @ np.abs(x) + np.abs(b)
    return float((left / np.where(sizes > 0, sizes, 1.0)).max())


@pytest.mark.parametrize(("made", "least"), [(any_units, 0), (cancelling, 5)])
def test_systems_are_solved_or_doubtful(made: Any, least: int) -> None:
    """Seldom the latter; some are solved because their rows are corrected."""
    seen: Counter[str] = Counter()
    for seed in range(140):
        rng = np.random.default_rng(seed)
        W, A = made(rng)
        system, K = System(W, A), kkt_matrix(W, A)
        eigenvalues = np.linalg.eigvalsh(equilibrated(K))
        regular = np.abs(eigenvalues).min() > 1e-9
        status = system.factor(0.0)
        seen["regular"] += regular
        if status == SINGULAR:
            seen["in doubt"] += regular
            continue
        negative = system.data.inertia.negative
        if regular:
            assert negative == np.count_nonzero(eigenvalues < 0), seed
            assert (status == 0) == (negative == system.m), seed
        b = rng.standard_normal(K.shape[0])
        first, status, x = system.solve(b)
        seen["corrected"] += first == 3 and status == 0
        seen["in doubt"] += status == SINGULAR and regular
        if status == 0:
            left = np.abs(b - K @ x).max() / np.abs(b).max()
            assert min(backward_error(K, x, b), left) <= ACCURATE, seed
    assert seen["regular"] > 70
    assert seen["corrected"] >= least
    assert seen["in doubt"] <= 3


@pytest.mark.parametrize(
    ("weight", "status"), [(-0.5, SINGULAR), (-0.5 - 1e-12, 1), (-0.5 + 1e-12, 0)]
)
def test_low_rank_change_without_curvature(weight: float, status: int) -> None:
    """Along the null space of A nothing is left, or a little less or more."""
    U = [[1.0, -1.0], [1.0, 1.0]]
    system = System(np.eye(2), np.array([[1.0, 1.0]]), U, [weight, 3.0])
    assert system.factor(0.0) == status
    assert system.data.inertia.singular == (status == SINGULAR)


def test_inertia_of_low_rank_is_recounted() -> None:
    """A solution asks for chosen pivots, and these have other signs than were counted."""
    rng, weights = np.random.default_rng(1), [1.0, -0.1]
    W, (A, U) = np.diag(rng.uniform(1, 2, 6)), rng.standard_normal((2, 2, 6))
    system, b = System(W, A, U, weights), rng.standard_normal(8)
    assert system.factor(0.0) == 0
    system.data.precise, system.low.negative = 1, 3
    first, status, x = system.solve(b)
    assert (first, status, system.low.negative) == (1, 0, 2)
    assert backward_error(kkt_matrix(W + U.T @ np.diag(weights) @ U, A), x, b) <= ACCURATE


# --- whole solves on a spoiled core ---------------------------------------------------------------

DOUBT, REFUSED, ROUGH = 1, 2, 4
SPOILED = {
    "kkt_matrix.c": "hybrid_decompose",
    "ldl_fixed.c": "hybrid_fixed_solve",
    "ldl_solve.c": "hybrid_ldl_solve",
}
"""Functions that other files of the core call, by the file that defines them."""
STUBS = f"""
#include <math.h>
#include "primal_dual.h"
int spoiling;
void plain_hybrid_decompose(const hybrid_plan *, hybrid_kkt *, double);
void plain_hybrid_fixed_solve(const hybrid_fixed *, const double *, double *, double *);
double plain_hybrid_ldl_solve(const hybrid_ldl *, const double *, const double *, const int *,
                              const double *, double *, double *, int);
void hybrid_decompose(const hybrid_plan *plan, hybrid_kkt *kkt, double weight) {{
    plain_hybrid_decompose(plan, kkt, weight);
    if (!(spoiling & {DOUBT}) || !plan->m || kkt->K[plan->K_diagonal[plan->n]] != 0.0) return;
    kkt->inertia.doubtful = 1; /* every K whose rows are not regularized */
    kkt->inertia.growth = INFINITY;
}}
void hybrid_fixed_solve(const hybrid_fixed *s, const double *factor, double *b, double *room) {{
    plain_hybrid_fixed_solve(s, factor, b, room);
    if (spoiling & {REFUSED}) b[0] = NAN;
}}
double hybrid_ldl_solve(const hybrid_ldl *s, const double *values, const double *factor,
                        const int *pivots, const double *b, double *x, double *room, int most) {{
    double size = plain_hybrid_ldl_solve(s, values, factor, pivots, b, x, room, most);
    if (!(spoiling & {ROUGH})) return size;
    for (int i = 0; i < s->size; i++) x[i] *= 1.1;
    return 0.1;
}}
"""


@pytest.fixture(scope="module")
def spoiled_core() -> ct.CDLL:
    files = core_sources()
    for file, function in SPOILED.items():
        files[file] = f"#define {function} plain_{function}\n{files[file]}"
    return C.declare(load(Sources("spoiled", {**files, "stubs.c": STUBS}, ("-O0",))))


@pytest.fixture
def spoil(spoiled_core: ct.CDLL, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let problems that are made from now on use a core that is spoiled in these ways."""

    def spoil(ways: int) -> None:
        ct.c_int.in_dll(spoiled_core, "spoiling").value = ways
        monkeypatch.setattr(core, "engine", lambda: spoiled_core)

    return spoil


def coupled(n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables that a sum couples, equations and inequalities, and bounds, some of them active."""
    x, p = ca.SX.sym("x", n), ca.SX.sym("p")
    f = ca.sumsqr(x - ca.DM(np.arange(n) % 7 / 7)) + ca.sum1(x[:9]) ** 2 + ca.sum1(x**4)
    g = ca.vertcat(*(x[i] + x[i + 1] ** 2 - 0.01 * i - p for i in range(0, 20, 2)))
    bounds = {"lbx": -0.2, "ubx": 0.5, "lbg": 0, "ubg": [0.0] * 5 + [1.0] * 5}
    return {"x": x, "p": p, "f": f, "g": g}, {"x0": 0.1, "p": 0.05, **bounds}


@pytest.mark.parametrize("n", [60, 160])
def test_doubtful_systems_are_regularized(spoil: Any, n: int) -> None:
    """Cold, warm, and by threads of CasADi."""
    nlp, numbers = coupled(n)
    spoil(DOUBT)
    problem, p = Problem.from_nlp(nlp), ca.MX.sym("p")
    solver = nlpsol("solver", "hybrid", problem)
    graph = ca.Function("graph", [p], [solver(**{**numbers, "p": p})["x"]])
    values, points = (0.05, 0.06, 0.07), []
    for value in values:
        numbers["p"] = value
        outputs = solver(**numbers)
        assert solver.stats()["success"]
        answer = engine_answer(problem)
        assert answer.factors >= 2 * answer.doubts > 0  # each is followed by another one
        found = {name: output.full().ravel() for name, output in outputs.items()}
        assert_kkt((nlp, numbers), found)
        numbers |= warm(outputs)
        points.append(found["x"])
    mapped = graph.map(3, "thread", 2)(ca.DM(values).T)
    np.testing.assert_allclose(mapped.full().T, points, atol=1e-7)


@pytest.mark.parametrize("ways", [REFUSED, REFUSED | ROUGH])
def test_inaccurate_solutions_take_chosen_pivots(spoil: Any, ways: int) -> None:
    """These are told where a fixed order is inaccurate, and corrected row by row."""
    nlp, numbers = coupled(60)
    points, counts, kernels = [], [], []
    for spoiling in (0, ways):
        spoil(spoiling)
        solver = nlpsol("solver", "hybrid", nlp)
        outputs = solver(**numbers)
        points.append(outputs["x"].full())
        counts.append(solver.stats()["iter_count"])
        kernels.append(solver.stats()["kernel"])
        solver(**{**numbers, **warm(outputs), "p": 0.051})
        kernels.append(solver.stats()["kernel"])
    assert counts[0] == counts[1]
    np.testing.assert_allclose(*points, rtol=1e-9, atol=1e-9)
    assert kernels == 2 * ["ldl-fixed"] + 2 * ["ldl"]


# --- problems of this kind ------------------------------------------------------------------------


def chain_over_ground(N: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The least energy of N rigid links of length 3 in all, from a plumb line, over y ≥ −0.8."""
    nodes, t = ca.SX.sym("nodes", 2, N + 1), np.linspace(0.0, 1.0, N + 1)
    links = ca.sum1(ca.diff(nodes, 1, 1) ** 2).T - (3 / N) ** 2
    heights = nodes[1, :].T
    g = ca.vertcat(links, nodes[:, 0], nodes[:, N] - ca.DM([2, 0]), heights)
    f = ca.sum1(heights[:-1] + heights[1:]) / (2 * N)
    lbg, ubg = np.zeros(g.numel()), np.zeros(g.numel())
    lbg[N + 4 :], ubg[N + 4 :] = -0.8, np.inf
    start = np.array([0 * t, -t]).ravel(order="F")
    return {"x": ca.vec(nodes), "f": f, "g": g}, {"x0": start, "lbg": lbg, "ubg": ubg}


def test_chain_over_ground_needs_pivots() -> None:
    """At its start the fixed order has the right inertia, and no solution: rows depend."""
    stats = solved(chain_over_ground(70))[0].stats()
    assert (stats["success"], stats["kernel"]) == (True, "ldl")


def test_analysis_without_places_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fronts that can delay nothing, and no fixed order: pivots in doubt count as singular."""
    monkeypatch.setattr(ldl, "PRODUCTS", -1)
    monkeypatch.setattr(ldl, "PLACES", 0)
    assert solved(chain_over_ground(20))[0].stats()["success"]


@pytest.mark.parametrize("masses", [4, 16])
def test_stiff_chain_is_solved(masses: int) -> None:
    """Near the limit of stability of its steps, where one row has far larger entries."""
    N, h, x, u = 30, 0.05, ca.SX.sym("x", 2 * masses), ca.SX.sym("u")
    q, v = x[:masses], x[masses:]
    stretch = ca.vertcat(q[0], ca.diff(q))
    pull = 300 * (stretch + 0.1 * stretch**3)
    slope = ca.vertcat(v, ca.vertcat(pull[1:], u) - pull - 0.1 * v)
    step = ca.simpleRK(ca.Function("slope", [x, u], [slope]), 2)
    X, U = ca.SX.sym("X", 2 * masses, N + 1), ca.SX.sym("U", N)
    start = 0.1 * np.cos(np.arange(2 * masses)) / np.sqrt(300)
    gaps = [X[:, k + 1] - step(X[:, k], U[k], h) for k in range(N)]
    f = ca.sumsqr(X) + 1e-2 * ca.sumsqr(U)
    nlp = {"x": ca.veccat(X, U), "f": f, "g": ca.veccat(X[:, 0] - start, *gaps)}
    far = np.r_[np.full(X.numel(), np.inf), np.ones(N)]
    solver, _ = solved((nlp, {"x0": 0, "lbg": 0, "ubg": 0, "lbx": -far, "ubx": far}))
    assert solver.stats()["success"]
