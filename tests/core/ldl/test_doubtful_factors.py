"""KKT systems of which the engine's factorizations are in doubt: what is left counts as singular.

Pieces are looked at beside eigenvalues and residuals by NumPy, on systems whose rows and columns
have units up to 1e±12; whole solves by cores whose thresholds leave factorizations in doubt.
"""

import ctypes as ct
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from problems.control import FAMILIES
from support.cases.core import Arena, KktData, LowRankData, assert_kkt, core_in_pieces, solved, warm
from support.cases.ldl_pieces import equilibrated
from support.cases.nlp import parts
from support.judges.standard_form import whole

from casadi_hybrid import Problem, nlpsol
from casadi_hybrid.core.binding import core, ldl
from casadi_hybrid.core.binding.core import Core
from casadi_hybrid.core.binding.plan import plan_of
from casadi_hybrid.core.export.core import core_sources
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.point.limits import Limits
from casadi_hybrid.utils.casadi_internals import trigger

# Every K whose rows are not regularized is in doubt: of barrier steps, and with pinned entries.
DOUBT = (
    ("kkt_system.c", "    right = kkt->inertia.negative == plan->m;\n",
     "    right = kkt->inertia.negative == plan->m;\n"
     "    if (!penalty && epsilon == 0.0) return kkt->answer->doubts++, 2;\n", 1),
    ("pinned_system.c", "    if (hybrid_is_doubtful(kkt)) return HYBRID_KKT_SINGULAR;\n    return",
     "    if (epsilon == 0.0) kkt->inertia.doubtful = 1;\n"
     "    if (hybrid_is_doubtful(kkt)) return HYBRID_KKT_SINGULAR;\n    return", 1),
)  # fmt: skip
# No solution in a fixed order is accurate; and none by chosen pivots, before it is corrected.
ACCEPTED = "if (!kkt->precise && hybrid_is_accurate(plan, kkt, residual)) return HYBRID_KKT_RIGHT;"
REFUSAL = (("kkt_matrix.c", ACCEPTED, "", 1),)
ROUGH = (
    *REFUSAL,
    ("kkt_matrix.c", "if (!hybrid_is_accurate(plan, kkt, residual)) return", "return", 1),
    (
        "kkt_system.c",
        "if (result && hybrid_is_accurate_step(plan, kkt)) result = HYBRID_KKT_RIGHT;",
        "",
        1,
    ),
)
SINGULAR, ACCURATE = 2, 1e-10


def core_with(changes: tuple[Any, ...], folder: Path, compiler: str) -> ct.CDLL:
    """A core with changes: file, what stands there, what instead, how often."""
    files = core_sources()
    for name, old, new, count in changes:
        assert files[name].count(old) == count
        files[name] = files[name].replace(old, new)
    for name, text in files.items():
        (folder / name).write_text(text)
    library = folder / "changed.so"
    sources = sorted(name for name in files if name.endswith(".c"))
    flags = "-std=c99", "-O0", "-fPIC", "-shared", "-ffp-contract=off"
    subprocess.run([compiler, *flags, *sources, "-o", library, "-lm"], cwd=folder, check=True)
    return C.declare(ct.CDLL(str(library)))


@pytest.fixture(scope="module")
def doubting(tmp_path_factory: pytest.TempPathFactory, compiler: str) -> ct.CDLL:
    return core_with(DOUBT, tmp_path_factory.mktemp("doubting"), compiler)


@pytest.fixture
def doubt(doubting: ct.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    """The core of the problems that are made from now on."""
    monkeypatch.setattr(core, "engine", lambda: doubting)


class System:
    """K with its memory, for one pattern of (W, A); no entry is pinned. W may have a change of low
    rank, U diag(w) U'."""

    def __init__(self, W: np.ndarray, A: np.ndarray, U: Any = (), w: Any = ()) -> None:
        self.core = core_in_pieces()
        (m, n), x = A.shape, ca.SX.sym("x", A.shape[1])
        f = 0.5 * ca.bilin(ca.sparsify(ca.DM(W)), x, x)
        rows = ca.mtimes(ca.sparsify(ca.DM(A)), x)
        self.problem = Problem.from_nlp({"x": x, "f": f, "g": rows})
        bounds = self.problem.numbers(lbg=0.0, ubg=0.0).bounds
        self.plan = plan_of(self.core, self.problem, bounds)
        data = self.plan.data
        self.space = Core(self.core, self.problem, self.plan, Limits(), trigger())
        arena = Arena(None, None, 0, 0)
        self.core.hybrid_place_kkt(ct.byref(data), ct.byref(arena), ct.byref(KktData()))
        self._doubles = np.zeros(arena.used_doubles)
        self._ints = np.zeros(max(1, arena.used_ints), dtype=np.int32)
        arena = Arena(self._doubles.ctypes.data, self._ints.ctypes.data, 0, 0)
        rooms = {name: np.zeros((len(w) + 1) * (n + m)) for name, _ in LowRankData._fields_[2:]}
        self._rooms = {**rooms, "U": np.array(U, float), "w": np.array(w, float)}
        self.low = LowRankData(len(w), 0, *(room.ctypes.data for room in self._rooms.values()))
        self.kkt = KktData(answer=self.space.data.answer, low_rank=ct.addressof(self.low))
        self.core.hybrid_place_kkt(ct.byref(data), ct.byref(arena), ct.byref(self.kkt))
        self.n, self.m = n, m
        self.W = W[whole(data.W_rows, data.nnz_W), whole(data.W_cols, data.nnz_W)]
        self.A = A[whole(data.A_rows, data.nnz_A), whole(data.A_cols, data.nnz_A)]

    def factor(self, epsilon: float) -> int:
        """That of ``hybrid_factor_pinned``."""
        call = self.core.hybrid_factor_pinned
        numbers = ct.c_double(0.0), ct.c_double(epsilon)
        at = (array.ctypes.data for array in (self.W, self.A))
        return int(call(ct.byref(self.plan.data), *map(ct.c_void_p, at), *numbers,
                        ct.byref(self.kkt)))  # fmt: skip

    def solve(self, b: np.ndarray) -> tuple[int, int, np.ndarray]:
        """What ``hybrid_solve_refined`` says, what ``hybrid_solve_pinned``, and the solution."""
        plan, kkt = ct.byref(self.plan.data), ct.byref(self.kkt)
        right = np.ctypeslib.as_array(ct.cast(self.kkt.right, ct.POINTER(ct.c_double)), b.shape)
        right[:] = b
        first = self.core.hybrid_solve_refined(plan, kkt)
        force, c, x = -b[: self.n], -b[self.n :], np.empty(b.size)
        arrays = (self.W, self.A, force.copy(), c.copy())
        at = [ct.c_void_p(array.ctypes.data) for array in arrays]
        to = [ct.c_void_p(x[k:].ctypes.data) for k in (0, self.n)]
        found = self.core.hybrid_solve_pinned(plan, *at, kkt, *to)
        return int(first), int(found), x


def random_system(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """W and A in units from 1e-12 to 1e12, some without curvature along a variable."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    m = int(rng.integers(1, n))
    W = rng.standard_normal((n, n)) * (rng.random((n, n)) < rng.choice([0.1, 0.3]))
    W = W + W.T + np.diag(rng.standard_normal(n) * (rng.random(n) < 0.7))
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.3)
    A[np.arange(m), rng.permutation(n)[:m]] = 1.0
    units_x, units_c = (10.0 ** rng.uniform(-6, 6, size) for size in (n, m))
    return W * np.outer(units_x, units_x), A * np.outer(units_c, units_x)


def backward_error(K: np.ndarray, x: np.ndarray, b: np.ndarray) -> float:
    """Of the row where it is largest."""
    left, sizes = np.abs(b - K @ x), np.abs(K) @ np.abs(x) + np.abs(b)
    return float((left / np.where(sizes > 0, sizes, 1.0)).max())


def test_inertia_and_solutions_in_any_units() -> None:
    """Right wherever something is said, and that is nearly everywhere."""
    seen: Counter[str] = Counter()
    for seed in range(300):
        W, A = random_system(seed)
        system = System(W, A)
        K = np.block([[W, A.T], [A, np.zeros((system.m, system.m))]])
        eigenvalues = np.linalg.eigvalsh(equilibrated(K))
        regular = np.abs(eigenvalues).min() > 1e-9
        found = system.factor(0.0)
        seen["regular"] += regular
        if found == SINGULAR:
            seen["in doubt"] += regular
            continue
        if regular:
            assert system.kkt.inertia.negative == np.count_nonzero(eigenvalues < 0), seed
            assert (found == 0) == (system.kkt.inertia.negative == system.m), seed
        b = np.random.default_rng(seed).standard_normal(K.shape[0])
        _, solved, x = system.solve(b)
        seen["in doubt"] += solved == SINGULAR and regular
        if solved == 0:
            left = np.abs(b - K @ x).max() / np.abs(b).max()
            assert min(backward_error(K, x, b), left) <= ACCURATE, seed
    assert seen["regular"] > 200
    assert seen["in doubt"] <= 3


def test_what_cancels_is_corrected_row_by_row() -> None:
    """Curvatures up to 1e16: beside b a residual is large that every row has from rounding. Few are
    left as singular, which a shift makes regular."""
    corrected = left = 0
    for seed in range(160):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(20, 60))
        m = int(n * rng.uniform(0.3, 0.9))
        W = np.diag(10.0 ** rng.uniform(-8, 16, n))
        A = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-4, 4, (m, n))
        A *= rng.random((m, n)) < 0.15
        A[np.arange(m), rng.permutation(n)[:m]] = 1.0
        system = System(W, A)
        if system.factor(0.0) == SINGULAR:
            continue
        K = np.block([[W, A.T], [A, np.zeros((m, m))]])
        b = rng.standard_normal(n + m)
        first, solved, x = system.solve(b)
        corrected += first == 3
        assert solved in {0, SINGULAR}, seed
        left += solved == SINGULAR
        if solved == 0:
            assert backward_error(K, x, b) <= ACCURATE, seed
    assert corrected > 4
    assert left <= 3


def test_a_regularized_system_of_dependent_rows_is_solved() -> None:
    for seed in range(60):
        W, A = random_system(seed)
        W, A = equilibrated(W + 2 * np.eye(len(W)) * np.abs(W).max()), np.vstack((A, A[:1]))
        A = A / np.abs(A).max(axis=1, keepdims=True)
        system = System(W, A)
        assert system.factor(1e-8) in {0, 1}
        K = np.block([[W, A.T], [A, -1e-8 * np.eye(system.m)]])
        assert system.kkt.inertia.negative == np.count_nonzero(np.linalg.eigvalsh(K) < 0)
        b = np.cos(np.arange(K.shape[0]))
        _, solved, x = system.solve(b)
        assert solved == 0
        assert backward_error(K, x, b) <= ACCURATE


def test_a_change_of_low_rank_that_leaves_no_curvature_is_singular() -> None:
    """Along the null space of A; and with a little less or more of it K is regular."""
    A, U = np.array([[1.0, 1.0]]), [[1.0, -1.0], [1.0, 1.0]]
    for weight, found in ((-0.5, SINGULAR), (-0.5 - 1e-12, 1), (-0.5 + 1e-12, 0)):
        system = System(np.eye(2), A, U, [weight, 3.0])
        assert system.factor(0.0) == found
        assert system.kkt.inertia.singular == (found == SINGULAR)


def test_an_inertia_under_a_change_of_low_rank_is_counted_anew() -> None:
    """Where a solution asks for chosen pivots, and these have other signs than were counted."""
    rng = np.random.default_rng(1)
    W, (A, U) = np.diag(rng.uniform(1, 2, 6)), rng.standard_normal((2, 2, 6))
    K = np.block([[W + U.T @ np.diag([1.0, -0.1]) @ U, A.T], [A, np.zeros((2, 2))]])
    system, b = System(W, A, U, [1.0, -0.1]), rng.standard_normal(8)
    assert system.factor(0.0) == 0
    system.kkt.precise, system.low.negative = 1, 3
    first, solved, x = system.solve(b)
    assert (first, solved, system.low.negative) == (1, 0, 2)
    assert backward_error(K, x, b) <= ACCURATE


def coupled(n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables that a sum couples, equations and inequalities, and bounds, some of them active."""
    x, p = ca.SX.sym("x", n), ca.SX.sym("p")
    f = ca.sumsqr(x - ca.DM(np.arange(n) % 7 / 7)) + ca.sum1(x[:9]) ** 2 + ca.sum1(x**4)
    g = ca.vertcat(*(x[i] + x[i + 1] ** 2 - 0.01 * i - p for i in range(0, 20, 2)))
    bounds = {"lbx": -0.2, "ubx": 0.5, "lbg": 0, "ubg": [0.0] * 5 + [1.0] * 5}
    return {"x": x, "p": p, "f": f, "g": g}, {"x0": 0.1, "p": 0.05, **bounds}


@pytest.mark.parametrize("n", [60, 160])
def test_what_is_in_doubt_is_regularized(doubt: None, n: int) -> None:
    solver, found = solved(coupled(n))
    assert solver.stats()["success"]
    assert_kkt(coupled(n), found)


def test_warm_solves_too(doubt: None) -> None:
    nlp, numbers = coupled(160)
    solver = nlpsol("solver", "hybrid", nlp)
    for p in (0.05, 0.06, 0.07):
        found = solver(**{**numbers, "p": p})
        numbers |= warm(found)
        assert solver.stats()["success"]
        assert solver._runner.last().said.doubts > 0
    made = nlp, {**numbers, "p": p}
    assert_kkt(made, {name: of.full().ravel() for name, of in found.items()})


def test_threads_of_casadi_get_the_same(doubt: None) -> None:
    nlp, numbers = coupled(60)
    solver, p = nlpsol("solver", "hybrid", nlp), ca.MX.sym("p")
    graph = ca.Function("graph", [p], [solver(**{**numbers, "p": p})["x"]])
    values = [0.05, 0.06, 0.07]
    found = graph.map(3, "thread", 2)(ca.DM(values).T)
    for i, value in enumerate(values):
        np.testing.assert_allclose(found[:, i], solver(**{**numbers, "p": value})["x"], atol=1e-7)


@pytest.mark.parametrize("changes", [ROUGH, REFUSAL], ids=["rough", "refusal"])
def test_solutions_that_are_not_accurate_in_a_fixed_order_lead_as_far(
    changes, tmp_path, compiler, monkeypatch
):
    """Chosen pivots are told, after a factorization that had none; and corrected row by row."""
    nlp, numbers = coupled(60)
    ways, told = [], []
    for one in (core.engine(), core_with(changes, tmp_path, compiler)):
        monkeypatch.setattr(core, "engine", lambda one=one: one)
        solver = nlpsol("solver", "hybrid", nlp)
        found = solver(**numbers)
        ways.append((np.array(found["x"]), solver.stats()["iter_count"]))
        told.append(solver.stats()["kernel"])
        solver(**{**numbers, **warm(found), "p": 0.051})
        told.append(solver.stats()["kernel"])
    assert ways[0][1] == ways[1][1]
    np.testing.assert_allclose(ways[0][0], ways[1][0], rtol=1e-9, atol=1e-9)
    assert told == 2 * ["ldl-fixed"] + 2 * ["ldl"]


def test_a_chain_over_the_ground_is_solved_where_fixed_pivots_hide_that_rows_depend() -> None:
    """At its start, a plumb line: the fixed order has the right inertia, and no solution."""
    solver, _ = solved(parts(FAMILIES["chain_ground"].build(70)))
    stats = solver.stats()
    assert (stats["success"], stats["kernel"]) == (True, "ldl")


@pytest.mark.parametrize(("masses", "stiffness"), [(4, 300.0), (16, 300.0)])
def test_a_stiff_chain_is_solved(masses: int, stiffness: float) -> None:
    """Near the limit of stability of its steps, where one row has far larger entries."""
    N, h, x, u = 30, 0.05, ca.SX.sym("x", 2 * masses), ca.SX.sym("u")
    q, v = x[:masses], x[masses:]
    stretch = ca.vertcat(q[0], ca.diff(q))
    pull = stiffness * (stretch + 0.1 * stretch**3)
    slope = ca.vertcat(v, ca.vertcat(pull[1:], u) - pull - 0.1 * v)
    step = ca.simpleRK(ca.Function("slope", [x, u], [slope]), 2)
    X, U = ca.SX.sym("X", 2 * masses, N + 1), ca.SX.sym("U", N)
    start = 0.1 * np.cos(np.arange(2 * masses)) / np.sqrt(stiffness)
    gaps = [X[:, k + 1] - step(X[:, k], U[k], h) for k in range(N)]
    nlp = {
        "x": ca.veccat(X, U), "f": ca.sumsqr(X) + 1e-2 * ca.sumsqr(U),
        "g": ca.veccat(X[:, 0] - start, *gaps),
    }  # fmt: skip
    far = np.r_[np.full(X.numel(), np.inf), np.ones(N)]
    solver, _ = solved((nlp, {"x0": 0, "lbg": 0, "ubg": 0, "lbx": -far, "ubx": far}))
    assert solver.stats()["success"]


def test_pivots_in_doubt_of_an_analysis_without_places_count_as_singular(monkeypatch):
    """Fronts that can delay nothing, and no fixed order."""
    monkeypatch.setattr(ldl, "PRODUCTS", -1)
    monkeypatch.setattr(ldl, "PLACES", 0)
    solver, _ = solved(parts(FAMILIES["chain_ground"].build(20)))
    assert solver.stats()["success"]
