"""Composite steps in C: pieces by NumPy and by definition, and whole solves."""

import ctypes as ct
from collections import Counter
from collections.abc import Callable
from ctypes import c_double, c_int, c_void_p
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
import pytest
from engine_cases import SpectrumData, assert_cut_short, assert_kkt, core_in_pieces, solved
from engine_form import Formula
from engine_runs import ended_at

from casadi_hybrid import Problem, nlpsol
from casadi_hybrid.engine.core import engine_of
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.session.solve import CAUSES

Made = tuple[dict[str, Any], dict[str, Any]]
COMPOSITE, BARRIER = "hybrid (composite step)", "hybrid (barrier)"
EPS = float(np.finfo(float).eps)
OTHER_PATTERN = 1  # of hybrid.h


@pytest.fixture(scope="module", autouse=True)
def library() -> Any:
    found = core_in_pieces()
    number, pointer = c_double, c_void_p
    signatures = {
        "hybrid_singular": (None, [c_int, c_int, pointer, number, *[pointer] * 3]),
        "hybrid_symmetric": (c_int, [c_int, *[pointer] * 3]),
        "hybrid_orient": (None, [c_int] * 3 + [pointer] * 4),
        "hybrid_next_radius": (number, [number] * 3),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


# --- pieces ---------------------------------------------------------------------------------------


def decomposed(library: Any, B: np.ndarray, tolerance: float) -> tuple[Any, ...]:
    """(U, sigma, Y, Z) by C."""
    m, n = B.shape
    fewer = min(m, n)
    U, V, sigma = np.empty((fewer, m)), np.empty((n, n)), np.empty(fewer)
    of = SpectrumData(U=U.ctypes.data, V=V.ctypes.data, sigma=sigma.ctypes.data)
    rows, tau, order = B.copy(), np.empty(n), np.empty(m, dtype=np.int32)
    room = tau.ctypes.data, order.ctypes.data
    library.hybrid_singular(m, n, rows.ctypes.data, tolerance, *room, ct.byref(of))
    r = of.rank
    return U[:r].T, sigma[:r], V[:r].T, V[r:].T


SHAPES = [(1, 1), (1, 7), (7, 1), (3, 5), (5, 3), (6, 6), (20, 33), (40, 12)]


@pytest.mark.parametrize("rank", ["full", "less", "nearly less", "none"])
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_singular_values(library: Any, m: int, n: int, rank: str) -> None:
    rng = np.random.default_rng(m + 50 * n)
    for size in (1.0, 1e-6, 1e8):
        B = size * rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-3, 3, (m, 1))
        if rank in ("less", "nearly less") and min(m, n) > 1:
            B[-1] = B[0] - 2 * B[m // 2] if m > 1 else 0
            B[:, -1] = B[:, 0]
            B[-1] += (rank == "nearly less") * 1e-13 * size * rng.normal(size=n)
        if rank == "none":
            B[:] = 0
        left, wanted, right = np.linalg.svd(B, full_matrices=False)
        largest = wanted[0]
        kept = wanted > 1e-10 * largest
        U, sigma, Y, Z = decomposed(library, B, 1e-10)
        assert sigma.size == kept.sum()
        np.testing.assert_allclose(sigma, wanted[kept], rtol=0, atol=100 * EPS * largest)
        np.testing.assert_allclose(
            (U * sigma) @ Y.T, (left[:, kept] * wanted[kept]) @ right[kept], rtol=0,
            atol=1e3 * EPS * largest,
        )  # fmt: skip
        V = np.hstack([Y, Z])
        np.testing.assert_allclose(V.T @ V, np.eye(n), atol=100 * EPS)
        np.testing.assert_allclose(U.T @ U, np.eye(sigma.size), atol=1e-5)
        assert np.abs(B @ Z).max(initial=0.0) <= 1e-10 * largest


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 12, 31])
def test_eigenvectors(library: Any, n: int) -> None:
    whole = np.random.default_rng(n).normal(size=(n, n))
    turned = np.linalg.qr(whole)[0] if n else whole
    matrices = [
        *(by * (whole + whole.T) for by in (1.0, 1e9, 1e-170, 1e-300, 1e170, 1e300)),
        np.zeros((n, n)), np.eye(n), np.ones((n, n)),
        np.diag(np.arange(n) % 3 - 1.0), turned @ np.diag(10.0 ** -np.arange(n)) @ turned.T,
    ]  # fmt: skip
    for A in (0.5 * (matrix + matrix.T) for matrix in matrices):
        vectors, values, work = A.copy(), np.empty(n), np.empty(max(1, n))
        at = (array.ctypes.data for array in (vectors, values, work))
        assert not library.hybrid_symmetric(n, *at)
        W, size = vectors.T, np.abs(A).sum()
        assert (np.diff(values) >= 0).all()
        np.testing.assert_allclose(values, np.linalg.eigvalsh(A), rtol=0, atol=20 * EPS * size)
        np.testing.assert_allclose(W.T @ W, np.eye(n), atol=100 * EPS)
        np.testing.assert_allclose((W * values) @ W.T, A, rtol=0, atol=20 * EPS * size)


def test_matrices_without_numbers_do_not_hang(library: Any) -> None:
    for bad in (np.nan, np.inf, 1e300):
        A, values, work = np.full((4, 4), bad), np.empty(4), np.empty(4)
        A[0, 1] = A[1, 0] = 1.0
        library.hybrid_symmetric(4, A.ctypes.data, values.ctypes.data, work.ctypes.data)
        decomposed(library, np.full((3, 5), bad), 1e-10)


def test_the_radius_after_a_step(library: Any) -> None:
    """At each threshold, beside it, and where nothing is known of the ratio."""
    thresholds = -1.0, 0.0, 1e-4, 0.25, 0.75, 1.0
    ratios = [step * ratio for ratio in thresholds for step in (1 - EPS, 1.0, 1 + EPS)]
    for ratio in (*ratios, np.inf, -np.inf, np.nan):
        for size in (0.1, 1.0, np.nextafter(1.0, 2), 2.0):
            wanted = 2.0
            if ratio >= 0.75:
                wanted = max(3.0 * size, 2.0)
            elif ratio < 0.25:
                wanted = 0.25 * size
            assert library.hybrid_next_radius(2.0, size, ratio) == wanted


# --- whole solves ---------------------------------------------------------------------------------


def circle() -> Made:
    x = ca.SX.sym("x", 2)
    return {"x": x, "f": (x[0] - 2) ** 2 + x[1], "g": ca.sumsqr(x) - 1}, {"x0": [0.5, 0.7]}


def valley() -> Made:
    """The curvature of the equation spoils full steps: corrections, and steps that are refused."""
    x = ca.SX.sym("x", 3)
    g = ca.vertcat(10 * (x[1] - x[0] ** 2), x[2] - ca.sin(x[0]))
    return {"x": x, "f": (1 - x[0]) ** 2 + x[2] ** 4, "g": g}, {"x0": [-1.2, 1, 2]}


def far() -> Made:
    """From far off: the radius cuts steps, and damps the part in the range of A'."""
    x = ca.SX.sym("x", 4)
    g = ca.vertcat(x[0] * x[1] - x[2], ca.exp(x[3]) - x[0])
    f = ca.sumsqr(x - ca.DM([1, 2, 3, 4])) + ca.cos(x[0] * x[3])
    return {"x": x, "f": f, "g": g}, {"x0": [30, -20, 4, 2]}


def bent() -> Made:
    """The Hessian is indefinite on ker A."""
    x = ca.SX.sym("x", 3)
    return {"x": x, "f": x[0] * x[1] * x[2] + x[0] ** 4 + x[1] ** 4 + x[2] ** 4,
            "g": x[0] + x[1] + x[2] - 0.3}, {"x0": [0.1, 0.2, -0.5]}  # fmt: skip


def twice() -> Made:
    """Rows that depend on each other."""
    x = ca.SX.sym("x", 4)
    g = ca.vertcat(ca.sumsqr(x) - 4, 2 * ca.sumsqr(x) - 8, x[0] * x[1] - 1)
    return {"x": x, "f": x[2] + 0.5 * x[3] ** 2, "g": g}, {"x0": [1, 0.5, -1, 0.4]}


def kinds() -> Made:
    """Steep rows, a steep objective, a fixed variable, and a row without a bound."""
    x = ca.SX.sym("x", 5)
    g = ca.vertcat(4e3 * (x[0] * x[1] - x[2]), x[3] + x[4], ca.sumsqr(x) - 3)
    bounds = {"lbx": [-np.inf] * 4 + [0.5], "ubx": [np.inf] * 4 + [0.5]}
    rows = {"lbg": [2, -np.inf, 1], "ubg": [2, np.inf, 1]}
    f = 3e3 * (x[0] - 1) ** 2 + ca.exp(x[1]) + x[3] ** 2
    return {"x": x, "f": f, "g": g}, {"x0": [1, 1.2, 0.3, 0.2, 3], **bounds, **rows}


def tall() -> Made:
    """More equations than unknowns, which have a root."""
    x = ca.SX.sym("x", 2)
    g = ca.vertcat(ca.sumsqr(x) - 5, x[0] * x[1] - 2, x[0] - 2 * x[1] + 3)
    return {"x": x, "f": ca.exp(x[0]) * x[1], "g": g}, {"x0": [1.2, 1.7]}


def domain() -> Made:
    """Trial points beyond the domain of the objective."""
    x = ca.SX.sym("x", 2)
    return {"x": x, "f": x[0] - ca.log(x[1]), "g": ca.sumsqr(x) - 1}, {"x0": [-0.3, 0.1]}


def centre(n: int = 2) -> Made:
    """The violation is stationary at the start, where A is zero, and falls alike on all sides."""
    x = ca.SX.sym("x", n)
    return {"x": x, "f": (x[0] - 0.3) ** 2 + x[1], "g": ca.sumsqr(x) - 1}, {"x0": 0}


def saddle() -> Made:
    """One of two opposite directions leads away from the start, and neither is better."""
    x = ca.SX.sym("x", 3)
    f = x[0] ** 2 - x[1] ** 2 + x[1] ** 4 + x[2]
    return {"x": x, "f": f, "g": x[2] + x[0]}, {"x0": 0}


def least_value() -> Made:
    """A local minimum of ‖c‖ between two roots."""
    x = ca.SX.sym("x", 3)
    a = x[0]
    g = ca.vertcat((a - 1) * (a - 4) * (a**2 + 0.2) * 0.1 + 0.2 * ca.exp(-4 * (a + 1) ** 2),
                   x[1] * x[2] - a)  # fmt: skip
    return {"x": x, "f": ca.sumsqr(x - 2), "g": g}, {"x0": [-0.2, 1.0, 0.1]}


def two_wells() -> Made:
    """Past a least violation: c = x⁴ − 3x² + x + 2 has one at 1.13, and its roots are negative."""
    x = ca.SX.sym("x", 2)
    g = ca.vertcat(x[0] ** 4 - 3 * x[0] ** 2 + x[0] + 2, x[1] + x[0] - 1)
    return {"x": x, "f": ca.sumsqr(x), "g": g}, {"x0": [1.5, 0.0]}


def many(n: int) -> Made:
    x = ca.SX.sym("x", n)
    f = ca.sumsqr(x - ca.DM(np.linspace(-1, 1, n))) + 0.1 * ca.dot(x[1:] ** 2, x[:-1])
    return {"x": x, "f": f, "g": ca.sumsqr(x) - 2}, {"x0": 0.2}


PROBLEMS = [circle, valley, far, bent, twice, kinds, tall, domain, centre, saddle]
LARGE = [partial(many, n) for n in (40, 120, 190)]


def with_equations(made: Callable[[], Made]) -> Callable[[], Made]:
    def complete() -> Made:
        problem, numbers = made()
        return problem, {"lbg": 0, "ubg": 0, **numbers}

    return complete


@pytest.mark.parametrize("made", [*PROBLEMS, least_value, two_wells, *LARGE])
def test_solutions_meet_the_conditions(made: Callable[[], Made]) -> None:
    problem = with_equations(made)()
    solver, found = solved(problem)
    stats, result = solver.stats(), solver.result
    assert (result.method, stats["kernel"], stats["success"]) == (COMPOSITE, "svd", True)
    assert result.step is not None
    assert stats["iter_count"] == result.iterations == result.history.t[-1]
    assert_kkt(problem, found)


@pytest.mark.parametrize("made", PROBLEMS)
def test_a_limit_ends_a_run_on_its_way(made: Callable[[], Made]) -> None:
    assert_cut_short(with_equations(made)(), 4)


def cubic(seed: int) -> Made:
    """Random equations that are far from linear, from some way off."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    m = int(rng.integers(1, n + 1))
    x = ca.SX.sym("x", n)
    A, B, c = rng.normal(size=(m, n)), rng.normal(size=(m, n)), rng.normal(size=m)
    g = ca.mtimes(A, x) + ca.mtimes(B, x**3) - c + ca.sin(3 * x[0]) * x[-1]
    return {"x": x, "f": ca.sumsqr(x - 1) + ca.cos(2 * x[0]), "g": g}, {
        "x0": 3 * rng.normal(size=n), "lbg": 0, "ubg": 0,
    }  # fmt: skip


# Of three a dozen steps reduce the violation alone until the objective has its say again; 72 ends
# at a least violation, from which the barrier method goes on.
@pytest.mark.parametrize(
    ("seed", "method"), [(210, COMPOSITE), (314, COMPOSITE), (312, COMPOSITE), (72, BARRIER)]
)
def test_the_violation_alone_is_reduced_on_the_way(seed: int, method: str) -> None:
    solver, found = solved(cubic(seed))
    assert solver.result.method == method
    if solver.result.success:
        assert_kkt(cubic(seed), found)


def test_random_equations_are_solved() -> None:
    """Nearly all; the others say that they found none."""
    solutions = 0
    for seed in range(60):
        solver, found = solved(cubic(seed))
        if solver.result.success:
            solutions += 1
            assert_kkt(cubic(seed), found)
        else:
            assert solver.result.stop.name == "LOCALLY_INFEASIBLE", seed
    assert solutions >= 50


def plane() -> Made:
    """A saddle whose least curvature is that of a plane: of its directions none is better."""
    x = ca.SX.sym("x", 5)
    least = ca.dot(x[1:4] ** 2, x[1:4] ** 2) - ca.sumsqr(x[1:4])
    return {"x": x, "f": x[0] ** 2 + least + x[4], "g": x[4] + x[0]}, {"x0": 0}


@pytest.mark.parametrize("made", [plane, partial(centre, 4)])
def test_among_equal_directions_no_rounding_chooses(made: Callable[[], Made]) -> None:
    """Another order of the variables, which rounds otherwise, leads to the same kind of point."""
    problem, numbers = with_equations(made)()
    solver, found = solved((problem, numbers))
    assert solver.stats()["success"]
    assert_kkt((problem, numbers), found)
    other = solved(({**problem, "f": 3 * problem["f"], "g": 5 * problem["g"]}, numbers))[1]
    np.testing.assert_allclose(found["x"], other["x"], atol=1e-5)


def oriented_by_c(library: Any, directions: np.ndarray, values: np.ndarray, count: int) -> Any:
    n, columns = directions.shape
    found, shares, room = np.ascontiguousarray(directions.T), np.empty(columns), np.empty(n)
    at = (array.ctypes.data for array in (values, found, shares, room))
    library.hybrid_orient(n, columns, count, *at)
    return found.T


@pytest.mark.parametrize("units", [False, True])
def test_directions_hang_on_no_basis(library: Any, units: bool) -> None:
    """The first are projections by NumPy, whatever basis is given, and the rest complete it."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        n = int(rng.integers(1, 20))
        Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        D = 10.0 ** rng.uniform(-2, 2, (n, 1)) if units else np.ones((n, 1))
        sizes = []
        while sum(sizes) < n:
            sizes.append(int(rng.integers(1, n - sum(sizes) + 1)))
        values = np.repeat(np.arange(len(sizes)) - 1.0, sizes)
        count = int(rng.integers(1, 4))
        fixed = 1.0 / (np.arange(n) + np.sqrt(2.0))
        ends = np.cumsum(sizes)
        mixed = Q.copy()
        for begin, end in zip(ends - sizes, ends, strict=True):
            size = end - begin
            mixed[:, begin:end] @= np.linalg.qr(rng.normal(size=(size, size)))[0]
        ways = [oriented_by_c(library, basis / D, values, count) for basis in (Q, mixed)]
        first = Q[:, : sizes[0]]
        projected = first @ (first.T @ (fixed / D[:, 0]))
        for way in ways:
            np.testing.assert_allclose(way[:, :count], ways[0][:, :count], atol=1e-9 / D.min())
            whole = way * D
            np.testing.assert_allclose(whole.T @ whole, np.eye(n), atol=1e-12)
            wanted = projected / np.linalg.norm(projected)
            np.testing.assert_allclose(whole[:, 0], wanted, atol=1e-9)
            for begin, end in zip(ends - sizes, ends, strict=True):
                span, given = whole[:, begin:end], Q[:, begin:end]
                np.testing.assert_allclose(span @ span.T, given @ given.T, atol=1e-12)


def valleys(seed: int) -> Made:
    """Equations that bend, with rows that nearly depend on each other; every second has an edge."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    m = int(rng.integers(1, n + 2))
    x = ca.SX.sym("x", n)
    A, B = rng.normal(size=(m, n)), rng.normal(size=(m, n))
    A[-1] = A[0] + 10.0 ** rng.uniform(-4, 0) * A[-1]
    bend = 10.0 ** rng.uniform(-4, 0)
    g = ca.mtimes(A, x) + bend * ca.mtimes(B, x**2 + ca.tanh(x)) - rng.normal(size=m)
    x0 = rng.normal(size=n)
    if seed % 2:
        g[0] += 0.1 * ca.sqrt(x0[0] + 3 - x[0])
    return {"x": x, "f": ca.sumsqr(x), "g": g}, {"x0": x0, "lbg": 0, "ubg": 0}


def test_escapes_from_anywhere(library: Any) -> None:
    """Where there is one the violation is halved; what is carried from there on is new."""
    kinds: Counter[str] = Counter()
    for seed in range(150):
        nlp, call = valleys(seed)
        problem = Problem.from_nlp(nlp)
        numbers = problem.numbers(**call)
        run = ended_at(problem, numbers, alone=False)
        w, y, carried = np.empty(problem.n), np.empty(problem.m), np.empty(3)
        at = (c_void_p(one.ctypes.data) for one in (w, y, carried))
        found = library.pieces_escape(run.bytes, *at)
        formula, start = Formula(nlp, numbers), numbers.x0
        before, after = (formula.user(x)[2] for x in (start, w))
        _, gradient, _, A = formula.user(w)
        if not found:
            np.testing.assert_array_equal(w, start)
            kinds["nowhere"] += 1
            continue
        steep = np.abs(formula.user(start)[3]).max(axis=1)
        scale = np.where(steep > 10, 1 / steep, 1.0)  # of this method's rows
        assert np.linalg.norm(scale * after) <= 0.5 * np.linalg.norm(scale * before)
        least = np.linalg.lstsq((scale[:, None] * A).T, -gradient, rcond=1e-10)[0]
        np.testing.assert_allclose(y, least, rtol=1e-5, atol=1e-5)
        first = max(1.0, 0.5 * np.linalg.norm(start))
        far = max(first, np.linalg.norm(w - start))
        np.testing.assert_allclose(carried, [far, 1.0, -1.0], rtol=1e-7)
        kinds["far" if far > first else "near"] += 1
    assert min(kinds.values()) > 5
    assert len(kinds) == 3


def nowhere() -> Made:
    x = ca.SX.sym("x", 2)
    return {"x": x, "f": x[0], "g": ca.sumsqr(x) + 1}, {}


def crossing() -> Made:
    """Two circles that do not meet, and a plane."""
    x = ca.SX.sym("x", 3)
    g = ca.vertcat(ca.sumsqr(x[:2]) - 1, ca.sumsqr(x[:2] - 3) - 1, x[2] - x[0])
    return {"x": x, "f": ca.sumsqr(x), "g": g}, {}


@pytest.mark.parametrize("start", [2.0, 0.0])
@pytest.mark.parametrize("made", [nowhere, crossing])
def test_a_violation_that_stays_is_proved(made: Callable[[], Made], start: float) -> None:
    """‖c‖ is stationary: J'c = 0 where c is not."""
    problem, numbers = with_equations(made)()
    solver, found = solved((problem, {**numbers, "x0": start}))
    assert solver.stats()["return_status"] == "Infeasible_Problem_Detected"
    x = problem["x"]
    J = ca.Function("J", [x], [ca.jacobian(problem["g"], x)])(found["x"]).full()
    assert np.linalg.norm(found["g"]) > 0.1
    assert np.abs(J.T @ found["g"]).max() < 1e-4


def test_at_a_kink_no_step_descends() -> None:
    x = ca.SX.sym("x", 3)
    made = {"x": x, "f": ca.fabs(x[0]) + x[1] ** 2, "g": x[0] ** 2 + x[1] - x[2]}
    solver, found = solved((made, {"x0": [1, 2, 3], "lbg": 0, "ubg": 0}))
    assert solver.stats()["stop_reason"] == "STALLED"
    assert solver.stats()["detail"].endswith(CAUSES[9])
    assert abs(found["x"][0]) < 1e-12


@pytest.mark.parametrize("bounds", [{"lbx": -50}, {"ubg": [0, 1]}])
def test_composite_steps_alone_are_for_equations(bounds: dict[str, Any]) -> None:
    """The core begins nothing on another problem."""
    nlp, start = far()
    problem = Problem.from_nlp(nlp)
    numbers = problem.numbers(**{"lbg": 0, "ubg": 0, **start, **bounds})
    core = engine_of(problem).core(numbers.bounds, Limits(), alone=True)
    core.fill(numbers, None)
    assert core.solve(Limits()) is None
    assert core.data.status == OTHER_PATTERN
    assert core.answer.firsts == 0


def test_the_same_memory_serves_the_barrier_method() -> None:
    """Bounds of one solve are not those of the next, on one plan."""
    problem, numbers = with_equations(far)()
    solver, fresh = (nlpsol(name, "hybrid", problem) for name in ("solver", "fresh"))
    solver(**numbers, lbx=-50)
    alone = fresh(**numbers)
    for _ in range(2):
        assert solver(**numbers, lbx=-50)["x"].nonzeros()
        assert solver.result.method != COMPOSITE
        again = solver(**numbers)
        assert solver.result.method == COMPOSITE
        assert again["x"].nonzeros() == alone["x"].nonzeros()
