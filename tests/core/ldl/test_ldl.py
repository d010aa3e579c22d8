"""The engine's sparse LDLᵀ beside eigenvalues and LAPACK."""

import ctypes as ct
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.ldl_pieces import (
    Fixed,
    LdlKernel,
    Problem,
    equilibrated,
    factored,
    pattern_of,
    random_problem,
    sparse,
    whole,
)  # fmt: skip

import casadi_hybrid
from casadi_hybrid.core.binding import ldl
from casadi_hybrid.core.header import C
from casadi_hybrid.utils.linear_algebra.sparse import Layout

SOURCES = Path(casadi_hybrid.__file__).parent / "core" / "src"
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffp-contract=off")


def compiled(compiler: str, folder: Path, *flags: str) -> ct.CDLL:
    path = folder / "ldl.so"
    files = [
        str(file)
        for part in ("ldl_*", "vectors", "threads")
        for file in SOURCES.glob(f"*/{part}.c")
    ]
    flags = (*STRICT, f"-I{SOURCES}", *flags, "-shared", "-fPIC", "-pthread")
    command = [compiler, *flags, "-o", str(path), *files, "-lm"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return C.declare(ct.CDLL(str(path)))


HALVED = ("-DHYBRID_LDL_WORTH=0",)  # small trees have halves too


@pytest.fixture(scope="module")
def halved(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> ct.CDLL:
    return compiled(compiler, tmp_path_factory.mktemp("halved"), "-O2", *HALVED)


@pytest.fixture(scope="module", params=["whole", "halves"])
def library(request: Any, compiler: str, tmp_path_factory: pytest.TempPathFactory) -> ct.CDLL:
    if request.param == "halves":
        return request.getfixturevalue("halved")
    return compiled(compiler, tmp_path_factory.mktemp("ldl"), "-O2")


def shooting(stages: int, states: int, inputs: int) -> tuple[Problem, int]:
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
    return (np.eye(n), 10 ** rng.uniform(-6, 3, n), A, 0.0), m


@pytest.mark.parametrize("block", range(4))
def test_inertia_is_that_of_the_eigenvalues(library: ct.CDLL, block: int) -> None:
    regular = doubtful = 0
    for seed in range(100 * block, 100 * block + 100):
        problem = random_problem(seed)
        kernel = factored(library, problem)
        eigenvalues = np.linalg.eigvalsh(equilibrated(whole(problem)))
        smallest = np.abs(eigenvalues).min()
        found = kernel.found
        if smallest < 1e-9 or found.doubtful:
            doubtful += smallest >= 1e-9
            continue
        regular += 1
        assert not kernel.singular, seed
        assert kernel.negative == int(np.count_nonzero(eigenvalues < 0)), seed
        assert found.positive + found.negative == eigenvalues.size, seed
    assert regular > 30
    assert doubtful <= 2


def test_solutions_leave_no_more_than_rounding(library: ct.CDLL) -> None:
    for seed in range(100):
        problem = random_problem(seed)
        kernel = factored(library, problem)
        if kernel.singular or kernel.found.doubtful:
            continue
        K = whole(problem)
        b = np.random.default_rng(seed).standard_normal(K.shape[0])
        x = kernel.solve(b)
        size = (np.abs(K) @ np.abs(x) + np.abs(b)).max()
        residual = np.abs(b - K @ x).max()
        assert residual <= 1e-13 * size, seed
        assert abs(kernel.residual * np.abs(b).max() - residual) <= 1e-14 * size, seed


@pytest.mark.parametrize(
    ("A", "zero"),
    [
        (np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]), 1),
        (np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]), 1),
        (np.ones((3, 3)), 2),
    ],
)
def test_dependent_rows_are_found(library: ct.CDLL, A: np.ndarray, zero: int) -> None:
    kernel = factored(library, (np.eye(3), np.ones(3), A, 0.0))
    assert kernel.singular
    found = kernel.found
    assert (found.positive, found.negative, found.zero) == (3, A.shape[0] - zero, zero)


def test_pinned_variables_stay_where_they_are(library: ct.CDLL) -> None:
    problem, m = shooting(10, 3, 1)
    W, D, A, E = problem
    D[:3] = 1e14
    kernel = factored(library, (W, D, A[3:], E))
    assert not kernel.singular
    assert (kernel.negative, kernel.found.doubtful) == (m - 3, 0)
    x = kernel.solve(np.ones(kernel.tables.size if kernel.tables else 0))
    assert np.abs(x[:3]).max() <= 1e-10
    assert kernel.residual <= 1e-11


@pytest.mark.parametrize(("states", "inputs"), [(2, 1), (6, 2)])
def test_fronts_of_a_horizon_are_no_larger_than_its_stages(library, states, inputs):
    sizes = []
    for stages in (20, 40, 80):
        problem, m = shooting(stages, states, inputs)
        kernel = factored(library, problem)
        assert (kernel.negative, kernel.found.doubtful, kernel.singular) == (m, 0, False)
        assert kernel.tables is not None
        sizes.append((kernel.tables.deepest, kernel.tables.factor / stages))
    deepest, entries = zip(*sizes, strict=True)
    assert max(deepest) <= 2 * (4 * (2 * states + inputs) + 8)
    assert entries[2] <= 1.2 * entries[1]


def test_pivots_that_fail_are_delayed_as_far_as_there_is_room(
    library: ct.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """x₁ + x₂ in both of the first rows: with their pairs alone neither can be eliminated."""
    n, rng = 62, np.random.default_rng(1)
    W = np.zeros((n, n))
    W[2:, 2:] = rng.standard_normal((n - 2, n - 2))
    W = W @ W.T
    A = np.zeros((2, n))
    A[:, :2], A[0, 2], A[1, 3] = 1.0, 0.5, 0.25
    D = np.full(n, 1e-3)
    D[:2] = 0.0
    W[0, 0] = W[1, 1] = 1e-9
    layout = Layout(pattern_of(W), pattern_of(A))
    group = np.concatenate(([0, 0], np.arange(1, n - 1), [0, 0])).astype(np.int32)
    found = []
    for places in (0, 4):
        monkeypatch.setattr(ldl, "PLACES", places)
        tables, _arrays = ldl.tables_of(library, layout, group)
        kernel = LdlKernel(layout, library, tables)
        kernel.factor(sparse(W), D, sparse(A), 0.0)
        assert kernel.tables is not None
        assert kernel.tables.fronts == 2
        found.append(kernel.found)
    assert (found[0].delayed, found[0].doubtful > 0) == (0, True)
    assert (found[1].delayed > 0, found[1].doubtful) == (True, 0)
    eigenvalues = np.linalg.eigvalsh(whole((W, D, A, 0.0)))
    assert found[1].negative == int(np.count_nonzero(eigenvalues < 0))


def badly_paired(library: ct.CDLL, seed: int) -> tuple[Problem, Layout, ldl.Integers]:
    """Pairs that were good when the order was chosen, and are none for these values."""
    rng, n, m = np.random.default_rng(seed), 60, 40
    W, A = np.diag(10 ** rng.uniform(-9, -3, n)), np.zeros((m, n))
    for i in range(m):
        A[i, [*rng.choice(n, 3), i]] = 1.0, -1.0, 1.0, 1e-9
    layout, own = Layout(pattern_of(W), pattern_of(A)), pattern_of(A)
    values = np.ones(layout.rows.size)
    values[layout.at_A[own.rows != own.cols]] = 1e-3
    group, _ = ldl.eliminations(layout, ldl.partners(library, layout, values), np.ones(n, bool))
    return (W, np.zeros(n), A, 1e-9), layout, group


@pytest.mark.parametrize("seed", range(4))
def test_many_rows_may_be_delayed_within_the_memory_that_was_told(library, monkeypatch, seed):
    (W, D, A, E), layout, group = badly_paired(library, seed)
    eigenvalues = np.linalg.eigvalsh(whole((W, D, A, E)))
    doubtful, beyond = [], []  # how many rows a front has received beyond its places
    for places in (0, 3, 30):
        monkeypatch.setattr(ldl, "PLACES", places)
        tables, _arrays = ldl.tables_of(library, layout, group)
        kernel = LdlKernel(layout, library, tables)
        kernel.factor(sparse(W), D, sparse(A), E)
        assert kernel.beyond_is_untouched()
        doubtful.append(kernel.found.doubtful)
        assert doubtful[-1] or kernel.negative == np.count_nonzero(eigenvalues < 0)
        first = (ct.c_int * (tables.fronts + 1)).from_address(tables.first)
        beyond.append((kernel._pivots[: 4 * tables.fronts : 4] - np.diff(first)).max() - places)
    assert (doubtful[0] > 0, doubtful[-1], beyond[0], beyond[1] > 0) == (True, 0, 0, True)


@pytest.mark.parametrize("delaying", [4, 6, 8])
def test_all_places_of_a_front_are_there_for_its_children(library: ct.CDLL, delaying: int) -> None:
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
        W[np.ix_(first + rng.choice(root, 50, replace=False), rows)] = rng.uniform(
            -1, 1, (50, leaf)
        )
    W = np.tril(W) + np.tril(W, -1).T
    none = np.zeros((0, n))
    layout = Layout(pattern_of(W), pattern_of(none))
    group = np.r_[np.repeat(np.arange(leaves), leaf), np.full(root, leaves)]
    tables, _arrays = ldl.tables_of(library, layout, group)
    kernel = LdlKernel(layout, library, tables)
    kernel.factor(sparse(W), np.zeros(n), sparse(none), 0.0)
    found = kernel.found
    assert (found.doubtful, found.singular, found.negative) == (0, 0, delaying)


def branching(seed: int) -> Problem:
    """Neighbours on a grid: what comes after the halves has branches too."""
    rng, side = np.random.default_rng(seed), 20
    n, m = side**2, side
    W, A = np.diag(rng.uniform(1, 2, n)), np.zeros((m, n))
    for i in range(n - 1):
        for j in (i + 1, i + side):
            if j < n:
                W[i, j] = W[j, i] = rng.standard_normal()
    for i in range(m):
        A[i, rng.choice(n, 2, replace=False)] = rng.standard_normal(2)
    return W, np.zeros(n), A, 0.0


def has_halves(kernel: LdlKernel) -> bool:
    """Whether there are some; all that was factored is where its part has memory for it."""
    made = kernel.tables
    ends = [*made.panels[1:], made.factor], [*made.orders[1:], made.pivots]

    def ints(name: str, more: int = 0) -> np.ndarray:
        return np.array((ct.c_int * (made.fronts + more)).from_address(getattr(made, name)))

    part, parent, block = map(ints, ("part", "parent", "block"))
    below = np.diff(ints("below", 1))
    columns, _, panel, order = kernel._pivots[: 4 * made.fronts].reshape(-1, 4).T
    doubles = columns * (-(columns // -4) * 4 - (below // -4) * 4 + 2)
    for k in range(C.HYBRID_LDL_PARTS):
        here = part == k
        assert (panel + doubles)[here].max(initial=0) <= ends[0][k]
        assert (order + columns)[here].max(initial=0) <= ends[1][k]
    waiting: dict[int, range] = {}  # blocks in the stack: none where another one is, and no gap
    most = [0] * C.HYBRID_LDL_PARTS
    for f in range(made.fronts):
        own = [c for c in waiting if parent[c] == f and part[c] == part[f]]
        at = range(block[f], block[f] + below[f] * (-(below[f] // -4) * 4))
        assert at.start >= 0
        assert at.stop <= made.stack
        assert not any(max(at.start, b.start) < min(at.stop, b.stop) for b in waiting.values())
        waiting[f] = at
        held = sum(len(b) for c, b in waiting.items() if part[c] == part[f])
        most[part[f]] = max(most[part[f]], held)
        for c in own:
            del waiting[c]
    assert made.stack == sum(most)
    assert set(part) >= {0, 1} if made.dealt else set(part) == {2}
    return made.dealt > 0


@pytest.mark.parametrize("places", [1, 3, 8])
def test_one_thread_and_two_find_the_same_bits(
    halved: ct.CDLL, monkeypatch: pytest.MonkeyPatch, places: int
) -> None:
    """Also where both halves delay rows to what comes after them, by as many as that has room."""
    monkeypatch.setattr(ldl, "PLACES", places)
    dealt = 0
    for seed in range(200):
        if seed % 2:
            problem, layout, group = badly_paired(halved, seed)
            tables, _arrays = ldl.tables_of(halved, layout, group)
            one, two = (LdlKernel(layout, halved, tables, threads) for threads in (1, 2))
            for kernel in (one, two):
                W, D, A, E = problem
                kernel.factor(sparse(W), D, sparse(A), E)
        else:
            problem = random_problem(seed) if seed % 4 else branching(seed)
            one, two = (factored(halved, problem, threads) for threads in (1, 2))
        assert bytes(one.found) == bytes(two.found)
        for name in ("_factor", "_pivots"):
            assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
        assert two.beyond_is_untouched()
        if two.singular:
            continue
        dealt += has_halves(two)
        b = np.sin(np.arange(1.0, two.tables.size + 1))
        assert one.solve(b).tobytes() == two.solve(b).tobytes()
        assert two.residual < 1e-9 or seed % 4  # the others are next to singular
    assert dealt > 60


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e308])
def test_numbers_out_of_range_are_singular(library: ct.CDLL, number: float) -> None:
    W = np.eye(3)
    D = np.array([0.0, number, 0.0])
    kernel = factored(library, (W, D, np.ones((1, 3)), 0.0))
    assert kernel.singular == (not np.isfinite(number))


def test_the_bits_hang_on_no_optimization(library: ct.CDLL, compiler: str, tmp_path: Path) -> None:
    plain = compiled(compiler, tmp_path, "-O0")
    for seed in range(30):
        problem = random_problem(seed)
        b = np.cos(np.arange(whole(problem).shape[0]))
        one, other = factored(library, problem), factored(plain, problem)
        assert bytes(one.found) == bytes(other.found)
        if not one.singular:
            assert np.array_equal(one.solve(b), other.solve(b))


def test_threads_share_an_analysis(library: ct.CDLL) -> None:
    problem, _ = shooting(30, 4, 2)
    W, D, A, E = problem
    first = factored(library, problem)
    b = np.cos(np.arange(W.shape[0] + A.shape[0]))

    def solved(k: int) -> np.ndarray:
        kernel = LdlKernel(Layout(pattern_of(W), pattern_of(A)), library, first.tables)
        for _ in range(20):
            kernel.factor(sparse(W), D * (1 + k), sparse(A), E)
        return kernel.solve(b)

    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(solved, range(4)))
    for k, x in enumerate(at_once):
        assert np.array_equal(x, solved(k))


def test_a_fixed_order_says_the_inertia_or_that_it_is_in_doubt(library: ct.CDLL) -> None:
    trusted = 0
    for seed in range(400):
        problem = random_problem(seed)
        fixed = Fixed(library, problem)
        K = whole(problem)
        eigenvalues = np.linalg.eigvalsh(equilibrated(K))
        if fixed.found.doubtful or np.abs(eigenvalues).min() < 1e-9:
            continue
        trusted += 1
        signs = (int((eigenvalues > 0).sum()), int((eigenvalues < 0).sum()))
        assert (fixed.found.positive, fixed.found.negative) == signs, seed
    assert trusted > 120


@pytest.mark.parametrize("multiple", [1.0, 2.0, 3.0, 2.47])
def test_a_fixed_order_doubts_dependent_rows(library: ct.CDLL, multiple: float) -> None:
    """Their second pivot is the square of an entry that has cancelled."""
    row = np.array([1.3, -0.7, 0.4])
    problem = 2 * np.eye(3), np.zeros(3), np.array([row, multiple * row]), 0.0
    assert Fixed(library, problem).found.doubtful


def test_a_fixed_order_asks_for_no_units(library: ct.CDLL) -> None:
    """Powers of two change no bit: neither of the numbers nor of what is trusted."""
    trusted = 0
    for seed in range(400):
        W, D, A, E = random_problem(seed)
        if D.max(initial=0) > 1e13:
            continue
        rng = np.random.default_rng(seed)
        s, t = (2.0 ** rng.integers(-20, 20, size) for size in A.shape[::-1])
        scaled = (W * s[:, None] * s, D * s**2, A * t[:, None] * s, E)
        if E > 0:
            continue  # the scales of rows would change E
        one = Fixed(library, (W, D, A, E))
        # The same order: pairs and turns by the unscaled numbers.
        other = Fixed.__new__(Fixed)
        other.__dict__.update(one.__dict__)
        K = Layout(pattern_of(W), pattern_of(A))
        values = Fixed._values(scaled, K)
        other.found, other._factor = C.hybrid_inertia(), np.empty_like(one._factor)
        library.hybrid_fixed_factor(
            ct.byref(one.tables), values.ctypes.data, other._factor.ctypes.data,
            other._room.ctypes.data, ct.byref(other.found),
        )  # fmt: skip
        assert (other.found.doubtful > 0) == (one.found.doubtful > 0), seed
        if not one.found.doubtful:
            b = np.cos(np.arange(K.size))
            units = np.concatenate((s, t))
            assert np.array_equal(other.solve(b * units) * units, one.solve(b)), seed
            trusted += 1
    assert trusted > 30


def test_cancellation_is_noticed(library: ct.CDLL) -> None:
    """The pivot of x₃ is 1 − 1 + 1e-14 when its turn has come."""
    W = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0 + 1e-14]])
    fixed = Fixed(library, (W, np.zeros(3), np.zeros((0, 3)), 0.0))
    assert fixed.found.doubtful == 1


def test_pairs_that_are_bound_by_next_to_nothing_are_noticed(monkeypatch):
    """A pole on a cart, swung up: where it is level a force hardly turns it.

    A row of its turning is paired with that force, by numbers of a place where it does. The inertia
    is wrong there in a fixed order, although nothing has cancelled.
    """
    N, h, x, u = 300, 2 / 300, ca.SX.sym("x", 4), ca.SX.sym("u")
    s, c = ca.sin(x[2]), ca.cos(x[2])
    force = u + 0.1 * s * x[3] ** 2
    rates = ca.vertcat(
        x[1], (force + 1.962 * s * c) / (1 + 0.2 * s**2),
        x[3], -(force * c + 11.772 * s) / (0.5 * (1 + 0.2 * s**2)),
    )  # fmt: skip
    ode = ca.Function("ode", [x, u], [rates])
    k1 = ode(x, u)
    k2 = ode(x + h / 2 * k1, u)
    k3 = ode(x + h / 2 * k2, u)
    after = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + ode(x + h * k3, u))
    X, U = ca.MX.sym("X", 4, N + 1), ca.MX.sym("U", 1, N)
    step = ca.Function("step", [x, u], [after]).map(N)
    z, rows = ca.vertcat(ca.vec(X), ca.vec(U)), ca.vec(X[:, 1:] - step(X[:, :-1], U))
    ubx = np.concatenate((np.tile([2, np.inf, np.inf, np.inf], N + 1), np.full(N, 20.0)))
    lbx = -ubx
    lbx[:4] = ubx[:4] = 0.0
    lbx[4 * N : 4 * N + 4] = ubx[4 * N : 4 * N + 4] = [0.0, 0.0, np.pi, 0.0]
    x0 = np.zeros(z.numel())
    x0[2 : 4 * N + 4 : 4] = np.linspace(0.0, np.pi, N + 1)
    given = {"x0": x0, "lbx": lbx, "ubx": ubx, "lbg": 0, "ubg": 0}
    nlp, counts = {"x": z, "f": ca.sumsqr(U) * h, "g": rows}, []
    for most in (ldl.PRODUCTS, -1):  # -1: no fixed order at all
        monkeypatch.setattr(ldl, "PRODUCTS", most)
        solver = casadi_hybrid.nlpsol("solver", "hybrid", nlp)
        solver(**given)
        counts.append(solver.stats()["iter_count"])
    assert abs(counts[0] - counts[1]) <= 2  # the last bits differ; ten, where nobody notices


def test_too_many_products_are_left_to_the_fronts(library, monkeypatch):
    problem, _ = shooting(10, 3, 1)
    assert Fixed(library, problem).tables.size > 0
    W, _, A, _ = problem
    K = Layout(pattern_of(W), pattern_of(A))
    monkeypatch.setattr(ldl, "PRODUCTS", 50)
    order, _ = ldl.eliminations(
        K, ldl.partners(library, K, np.ones(K.rows.size)), np.ones(K.n, bool)
    )
    assert ldl.tables_of(library, K, order, fixed=True)[0].size == 0


def test_work_of_a_fixed_order_grows_with_the_stages(library: ct.CDLL) -> None:
    factors = [Fixed(library, shooting(k, 4, 2)[0]).tables.factor for k in (20, 40, 80)]
    assert factors[2] - factors[1] <= 2.1 * (factors[1] - factors[0])
