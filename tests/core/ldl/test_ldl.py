"""The engine's sparse LDLᵀ beside eigenvalues and LAPACK."""

import ctypes as ct
import subprocess
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.ldl_pieces import (
    Fixed,
    Problem,
    entries,
    equilibrated,
    factored,
    layout_of,
    pattern_of,
    random_problem,
    whole,
)

from casadi_hybrid import nlpsol
from casadi_hybrid.core import library as packaged
from casadi_hybrid.core.binding import ldl
from casadi_hybrid.core.header import C

SOURCES = Path(packaged.__file__).parent / "src"
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffp-contract=off")


def compiled(compiler: str, folder: Path, *flags: str) -> ct.CDLL:
    path = folder / "ldl.so"
    parts = "ldl_*", "vectors", "threads"
    files = [file for part in parts for file in SOURCES.glob(f"*/{part}.c")]
    options = *STRICT, f"-I{SOURCES}", *flags, "-shared", "-fPIC", "-pthread"
    command = [compiler, *options, "-o", path, *files, "-lm"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return C.declare(ct.CDLL(str(path)))


@pytest.fixture(scope="module")
def halved(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> ct.CDLL:
    """Two threads also factor the halves of small trees."""
    return compiled(compiler, tmp_path_factory.mktemp("halved"), "-O2", "-DHYBRID_LDL_WORTH=0")


@pytest.fixture(scope="module", params=["whole", "halves"])
def library(request: Any, compiler: str, tmp_path_factory: pytest.TempPathFactory) -> ct.CDLL:
    if request.param == "halves":
        return request.getfixturevalue("halved")
    return compiled(compiler, tmp_path_factory.mktemp("ldl"), "-O2")


def shooting(stages: int, states: int, inputs: int) -> Problem:
    """Multiple shooting with all states before all inputs; the first state is given by rows."""
    rng = np.random.default_rng(stages)
    n, m = (stages + 1) * states + stages * inputs, (stages + 1) * states
    A = np.zeros((m, n))
    A[:states, :states] = -np.eye(states)
    for k in range(stages):
        rows = slice((k + 1) * states, (k + 2) * states)
        u = (stages + 1) * states + k * inputs
        step = 0.1 * rng.standard_normal((states, states))
        A[rows, k * states : (k + 1) * states] = np.eye(states) + step
        A[rows, rows] = -np.eye(states)
        A[rows, u : u + inputs] = 0.1 * rng.standard_normal((states, inputs))
    return np.eye(n), 10 ** rng.uniform(-6, 3, n), A, 0.0


def test_inertia_and_solutions_match_numpy(library: ct.CDLL) -> None:
    regular = doubtful = 0
    for seed in range(400):
        problem = random_problem(seed)
        kernel, K = factored(library, problem), whole(problem)
        eigenvalues, found = np.linalg.eigvalsh(equilibrated(K)), kernel.found
        if np.abs(eigenvalues).min() < 1e-9:
            continue
        if found.doubtful:
            doubtful += 1
            continue
        regular += 1
        assert not found.singular, seed
        assert found.negative == np.count_nonzero(eigenvalues < 0), seed
        assert found.positive + found.negative == eigenvalues.size, seed
        b = np.random.default_rng(seed).standard_normal(K.shape[0])
        x = kernel.solve(b)
        residual = np.abs(b - K @ x).max()
        size = (np.abs(K) @ np.abs(x) + np.abs(b)).max()
        assert residual <= 1e-13 * size, seed
        assert abs(kernel.residual * np.abs(b).max() - residual) <= 1e-14 * size, seed
    assert regular > 120
    assert doubtful <= 8


@pytest.mark.parametrize(
    ("A", "zero"),
    [
        (np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]), 1),
        (np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]), 1),
        (np.ones((3, 3)), 2),
    ],
)
def test_dependent_rows_are_singular(library: ct.CDLL, A: np.ndarray, zero: int) -> None:
    found = factored(library, (np.eye(3), np.ones(3), A, 0.0)).found
    assert found.singular
    assert (found.positive, found.negative, found.zero) == (3, A.shape[0] - zero, zero)


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e308])
def test_numbers_out_of_range_are_singular(library: ct.CDLL, number: float) -> None:
    kernel = factored(library, (np.eye(3), np.array([0.0, number, 0.0]), np.ones((1, 3)), 0.0))
    assert bool(kernel.found.singular) != np.isfinite(number)


@pytest.mark.parametrize(("states", "inputs"), [(2, 1), (6, 2)])
def test_factors_grow_with_the_stages(library: ct.CDLL, states: int, inputs: int) -> None:
    """Fronts do not; in a fixed order it is the same."""
    problems = [shooting(stages, states, inputs) for stages in (20, 40, 80)]
    kernels = [factored(library, problem) for problem in problems]
    for (_, _, A, _), kernel in zip(problems, kernels, strict=True):
        found = kernel.found
        assert (found.negative, found.doubtful, found.singular) == (len(A), 0, 0)
        assert kernel.tables.deepest <= 2 * (4 * (2 * states + inputs) + 8)
    for tables in (
        [kernel.tables for kernel in kernels],
        [Fixed(library, problem).tables for problem in problems],
    ):
        one, two, four = (made.factor for made in tables)
        assert four - two <= 2.2 * (two - one)


# --- delayed pivots -------------------------------------------------------------------------------


def badly_paired(library: ct.CDLL, seed: int) -> tuple[Problem, Any]:
    """A system, and pairs of rows that were good for other values."""
    rng, n, m = np.random.default_rng(seed), 60, 40
    W, A = np.diag(10 ** rng.uniform(-9, -3, n)), np.zeros((m, n))
    for i in range(m):
        A[i, [*rng.choice(n, 3), i]] = 1.0, -1.0, 1.0, 1e-9
    problem = W, np.zeros(n), A, 1e-9
    layout, pattern = layout_of(problem), pattern_of(A)
    values = np.ones(layout.rows.size)
    values[layout.at_A[pattern.rows != pattern.cols]] = 1e-3
    group, _ = ldl.eliminations(layout, ldl.partners(library, layout, values), np.ones(n, bool))
    return problem, group


@pytest.mark.parametrize("seed", range(4))
def test_pivots_are_delayed_within_memory(
    library: ct.CDLL, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    problem, group = badly_paired(library, seed)
    negative = np.count_nonzero(np.linalg.eigvalsh(whole(problem)) < 0)
    delayed, doubtful = [], []
    for places in (0, 3, 30):
        monkeypatch.setattr(ldl, "PLACES", places)
        kernel = factored(library, problem, group=group)
        assert kernel.beyond_is_untouched
        assert kernel.found.doubtful or kernel.found.negative == negative
        delayed.append(kernel.found.delayed)
        doubtful.append(kernel.found.doubtful)
    assert delayed[0] == 0 < min(delayed[1:])
    assert doubtful[0] > 0 == doubtful[-1]


@pytest.mark.parametrize("delaying", [4, 6, 8])
def test_places_of_a_front_serve_all_children(library: ct.CDLL, delaying: int) -> None:
    """Leaves of which some have a row that is zero but for the rows of the root."""
    rng, root, leaf, leaves = np.random.default_rng(delaying), 200, 40, 30
    n, first = root + leaf * leaves, leaf * leaves
    W = np.zeros((n, n))
    W[first:, first:] = rng.uniform(-1, 1, (root, root)) + root * np.eye(root)
    for k in range(leaves):
        rows = np.arange(k * leaf, (k + 1) * leaf)
        W[np.ix_(rows, rows)] = rng.uniform(-1, 1, (leaf, leaf)) + leaf * np.eye(leaf)
        if k < delaying:
            W[rows[0], rows] = W[rows, rows[0]] = 0
        coupled = first + rng.choice(root, 50, replace=False)
        W[np.ix_(coupled, rows)] = rng.uniform(-1, 1, (50, leaf))
    W = np.tril(W) + np.tril(W, -1).T
    group = np.r_[np.repeat(np.arange(leaves), leaf), np.full(root, leaves)]
    found = factored(library, (W, np.zeros(n), np.zeros((0, n)), 0.0), group=group).found
    assert (found.doubtful, found.singular, found.negative) == (0, 0, delaying)


# --- threads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("places", [1, 3, 8])
def test_two_threads_change_no_bit(
    halved: ct.CDLL, monkeypatch: pytest.MonkeyPatch, places: int
) -> None:
    """Both halves may delay rows to the part after them."""
    monkeypatch.setattr(ldl, "PLACES", places)
    dealt = 0
    for seed in range(200):
        problem, group = badly_paired(halved, seed) if seed % 2 else (random_problem(seed), None)
        one, two = (factored(halved, problem, group=group, threads=t) for t in (1, 2))
        assert bytes(one.found) == bytes(two.found)
        assert one.factors.tobytes() == two.factors.tobytes()
        assert one.pivots.tobytes() == two.pivots.tobytes()
        assert two.beyond_is_untouched
        if two.found.singular:
            continue
        dealt += two.tables.dealt > 0
        b = np.sin(np.arange(1.0, two.tables.size + 1))
        assert one.solve(b).tobytes() == two.solve(b).tobytes()
    assert dealt > 60


# --- a fixed order --------------------------------------------------------------------------------


def test_fixed_order_is_right_or_doubts(library: ct.CDLL) -> None:
    """Its solutions and doubts are the same in other units, by powers of two."""
    trusted = scaled = 0
    for seed in range(400):
        W, D, A, E = problem = random_problem(seed)
        fixed = Fixed(library, problem)
        doubtful = bool(fixed.found.doubtful)
        eigenvalues = np.linalg.eigvalsh(equilibrated(whole(problem)))
        if not doubtful and np.abs(eigenvalues).min() >= 1e-9:
            trusted += 1
            signs = np.count_nonzero(eigenvalues > 0), np.count_nonzero(eigenvalues < 0)
            assert (fixed.found.positive, fixed.found.negative) == signs, seed
        if D.max(initial=0) > 1e13 or E > 0:
            continue
        rng, b = np.random.default_rng(seed), np.cos(np.arange(fixed.layout.size))
        s, t = (2.0 ** rng.integers(-20, 20, size) for size in A.shape[::-1])
        x, units = fixed.solve(b), np.concatenate((s, t))
        fixed.factor((W * s[:, None] * s, D * s**2, A * t[:, None] * s, E))
        assert bool(fixed.found.doubtful) == doubtful, seed
        if not doubtful:
            scaled += 1
            assert np.array_equal(fixed.solve(b * units) * units, x), seed
    assert trusted > 120
    assert scaled > 30


def test_fixed_order_notices_cancellation(library: ct.CDLL) -> None:
    """The second pivot of dependent rows, or the pivot 1 − 1 + 1e-14 of x₃."""
    row = np.array([1.3, -0.7, 0.4])
    for multiple in (1.0, 2.0, 3.0, 2.47):
        problem = 2 * np.eye(3), np.zeros(3), np.array([row, multiple * row]), 0.0
        assert Fixed(library, problem).found.doubtful
    W = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0 + 1e-14]])
    assert Fixed(library, (W, np.zeros(3), np.zeros((0, 3)), 0.0)).found.doubtful == 1


def test_fixed_order_notices_weak_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pole on a cart, swung up: where it is level a force hardly turns it.

    A row of its turning is paired with that force, by numbers of a place where it does. The inertia
    is wrong there in a fixed order, although nothing has cancelled.
    """
    N, h, x, u = 300, 2 / 300, ca.SX.sym("x", 4), ca.SX.sym("u")
    s, c = ca.sin(x[2]), ca.cos(x[2])
    force, mass = u + 0.1 * s * x[3] ** 2, 1 + 0.2 * s**2
    turning = -(force * c + 11.772 * s) / (0.5 * mass)
    ode = ca.vertcat(x[1], (force + 1.962 * s * c) / mass, x[3], turning)
    step = ca.simpleRK(ca.Function("ode", [x, u], [ode]), 1)
    X, U = ca.MX.sym("X", 4, N + 1), ca.MX.sym("U", 1, N)
    gaps = X[:, 1:] - step.map(N)(X[:, :-1], U, h)
    ubx = np.r_[np.tile([2, np.inf, np.inf, np.inf], N + 1), np.full(N, 20.0)]
    lbx, x0 = -ubx, np.zeros(ubx.size)
    lbx[:4] = ubx[:4] = 0.0
    lbx[4 * N : 4 * N + 4] = ubx[4 * N : 4 * N + 4] = [0.0, 0.0, np.pi, 0.0]
    x0[2 : 4 * N + 4 : 4] = np.linspace(0.0, np.pi, N + 1)
    nlp = {"x": ca.veccat(X, U), "f": ca.sumsqr(U) * h, "g": ca.vec(gaps)}
    counts = []
    for most in (ldl.PRODUCTS, -1):  # -1: no fixed order at all
        monkeypatch.setattr(ldl, "PRODUCTS", most)
        solver = nlpsol("solver", "hybrid", nlp)
        solver(x0=x0, lbx=lbx, ubx=ubx, lbg=0, ubg=0)
        counts.append(solver.stats()["iter_count"])
    assert abs(counts[0] - counts[1]) <= 2  # the last bits differ; ten, where nobody notices


def test_fixed_order_is_for_few_products(library: ct.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = shooting(10, 3, 1)
    K = layout_of(problem)
    group, _ = ldl.eliminations(
        K, ldl.partners(library, K, entries(problem, K)), np.ones(K.n, bool)
    )
    assert ldl.tables_of(library, K, group, fixed=True)[0].size > 0
    monkeypatch.setattr(ldl, "PRODUCTS", 50)
    assert ldl.tables_of(library, K, group, fixed=True)[0].size == 0
