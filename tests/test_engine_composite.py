"""Composite steps in C beside their twins in Python: pieces on random numbers, whole solves."""

from __future__ import annotations

import ctypes as ct
from collections import Counter
from collections.abc import Callable
from ctypes import c_double, c_int, c_void_p
from typing import Any

import casadi as ca
import numpy as np
import pytest
from engine_cases import SpectrumData, assert_same_course, core_in_pieces, solved

from casadi_hybrid import Problem, nlpsol
from casadi_hybrid.attempts import one
from casadi_hybrid.attempts.attempts import composite_attempt
from casadi_hybrid.attempts.compiled import Handed
from casadi_hybrid.attempts.data import data_of
from casadi_hybrid.barrier import composite
from casadi_hybrid.barrier.composite import Composite
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.casadi_api import runner
from casadi_hybrid.engine.plan import plan_of
from casadi_hybrid.engine.structures import LIMIT, PAUSED
from casadi_hybrid.engine.workspace import Workspace, trigger
from casadi_hybrid.iterations import lookahead, violation
from casadi_hybrid.iterations.trust_region import next_radius, oriented, trust_region_step
from casadi_hybrid.rules.spectra import Jacobian
from casadi_hybrid.standard_form.form import StandardForm
from casadi_hybrid.stopping import Limits

Made = tuple[dict[str, Any], dict[str, Any]]
COMPOSITE, BARRIER = "hybrid (composite step)", "hybrid (barrier)"
EPS = float(np.finfo(float).eps)


@pytest.fixture(scope="module", autouse=True)
def library() -> Any:
    found = core_in_pieces()
    number, pointer = c_double, c_void_p
    signatures = {
        "hybrid_singular": (None, [c_int, c_int, pointer, number, *[pointer] * 3]),
        "hybrid_symmetric": (c_int, [c_int, *[pointer] * 3]),
        "hybrid_trust_region": (number, [c_int, pointer, pointer, number, pointer]),
        "hybrid_orient": (None, [c_int] * 3 + [pointer] * 4),
        "hybrid_next_radius": (number, [number] * 3),
        "hybrid_dot": (number, [c_int, pointer, pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


# --- pieces ---------------------------------------------------------------------------------------


def test_products(library: Any) -> None:
    rng = np.random.default_rng(1)
    for n in range(40):
        a, b = rng.normal(size=(2, n))
        found = library.hybrid_dot(n, a.ctypes.data, b.ctypes.data)
        assert abs(found - a @ b) <= 4 * EPS * (np.abs(a) @ np.abs(b))


def decomposed(library: Any, B: np.ndarray, tolerance: float) -> tuple[Any, ...]:
    """(U, sigma, Y, Z) by C."""
    m, n = B.shape
    fewer = min(m, n)
    U, V, sigma = np.empty((fewer, m)), np.empty((n, n)), np.empty(fewer)
    of = SpectrumData(U=U.ctypes.data, V=V.ctypes.data, sigma=sigma.ctypes.data)
    rows, tau, order = B.copy(), np.empty(n), np.empty(m, dtype=np.int32)
    library.hybrid_singular(
        m, n, rows.ctypes.data, tolerance, tau.ctypes.data, order.ctypes.data, ct.byref(of)
    )
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
        wanted = Jacobian(B)
        U, sigma, Y, Z = decomposed(library, B, 1e-10)
        assert sigma.size == wanted.rank
        largest = wanted.norm
        np.testing.assert_allclose(sigma, wanted.sigma, rtol=0, atol=100 * EPS * largest)
        np.testing.assert_allclose(
            (U * sigma) @ Y.T, (wanted.U * wanted.sigma) @ wanted.Y.T, rtol=0,
            atol=1e3 * EPS * largest,
        )  # fmt: skip
        V = np.hstack([Y, Z])
        np.testing.assert_allclose(V.T @ V, np.eye(n), atol=100 * EPS)
        np.testing.assert_allclose(U.T @ U, np.eye(sigma.size), atol=1e-5)
        assert np.abs(B @ Z).max(initial=0.0) <= 1e-10 * largest


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 12, 31])
def test_eigenvectors(library: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    whole = rng.normal(size=(n, n))
    turned = np.linalg.qr(whole)[0] if n else whole
    matrices = [
        whole + whole.T, 1e9 * (whole + whole.T), np.zeros((n, n)), np.eye(n), np.ones((n, n)),
        np.diag(np.arange(n) % 3 - 1.0), turned @ np.diag(10.0 ** -np.arange(n)) @ turned.T,
    ]  # fmt: skip
    for A in (0.5 * (matrix + matrix.T) for matrix in matrices):
        vectors, values, work = A.copy(), np.empty(n), np.empty(max(1, n))
        failed = library.hybrid_symmetric(
            n, vectors.ctypes.data, values.ctypes.data, work.ctypes.data
        )
        assert not failed
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


def test_the_trust_region_like_its_twin(library: Any) -> None:
    rng = np.random.default_rng(3)
    kinds = set()
    for _ in range(3000):
        n = int(rng.integers(0, 6))
        e = np.sort(rng.choice([-2.0, -1e-16, 0.0, 1e-9, 1.0, 3.0, *rng.normal(size=3)], n))
        b = rng.choice([0.0, 1.0, *rng.normal(size=3)], n) * 10.0 ** rng.uniform(-3, 3)
        radius = 10.0 ** rng.uniform(-4, 4)
        t = np.empty(max(1, n))
        multiplier = library.hybrid_trust_region(
            n, e.ctypes.data, b.ctypes.data, radius, t.ctypes.data
        )
        wanted, sigma = trust_region_step(e, b, radius)
        hard = n > 0 and e[0] < 0.0 and sigma == -e[0] and t[0] > 0.0 == b[0]
        kinds.add("hard" if hard else "inside" if sigma == 0.0 else "outside")
        np.testing.assert_allclose(t[:n], wanted, rtol=1e-8, atol=1e-12 * radius)
        assert multiplier == pytest.approx(sigma, rel=1e-7, abs=1e-12)
    assert kinds == {"hard", "inside", "outside"}


def test_the_radius_after_a_step(library: Any) -> None:
    """At each threshold, beside it, and where nothing is known of the ratio."""
    ratios = [-1.0, 0.0, 1e-4, 0.25, 0.75, 1.0]
    ratios = [step * ratio for ratio in ratios for step in (1 - EPS, 1.0, 1 + EPS)]
    found = set()
    for ratio in (*ratios, np.inf, -np.inf, np.nan):
        for size in (0.1, 1.4, np.nextafter(1.4, 2), 2.0):
            new = next_radius(2.0, size, ratio)
            assert library.hybrid_next_radius(2.0, size, ratio) == new
            found.add(new / (size if ratio < 0.25 else 2.0))
    assert found == {0.25, 0.5, 1.0, 3.0}


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
    return {"x": x, "f": x[0] - ca.log(x[0]) + x[1], "g": x[1] - x[0] ** 2}, {"x0": [0.05, 3]}


def centre() -> Made:
    """The violation is stationary at the start, where A is zero."""
    x = ca.SX.sym("x", 2)
    return {"x": x, "f": (x[0] - 0.3) ** 2 + x[1], "g": ca.sumsqr(x) - 1}, {"x0": 0}


def saddle() -> Made:
    """One of two opposite directions leads away from the start, and neither is better."""
    x = ca.SX.sym("x", 3)
    f = x[0] ** 2 - x[1] ** 2 + x[1] ** 4 + x[2]
    return {"x": x, "f": f, "g": x[2] + x[0]}, {"x0": 0}


PROBLEMS = [circle, valley, far, bent, twice, kinds, tall, domain, centre, saddle]


def with_equations(made: Callable[[], Made]) -> Callable[[], Made]:
    def complete() -> Made:
        problem, numbers = made()
        return problem, {"lbg": 0, "ubg": 0, **numbers}

    return complete


@pytest.mark.parametrize("made", PROBLEMS)
def test_the_same_iterates(made: Callable[[], Made], monkeypatch: pytest.MonkeyPatch) -> None:
    found, stats = solved(monkeypatch, with_equations(made), "c")
    wanted, twin = solved(monkeypatch, with_equations(made), "python")
    assert (stats["engine"], twin["engine"]) == ("c", "python"), stats["engine_note"]
    assert stats["success"]
    assert (stats["kernel"], twin["kernel"]) == ("svd", "lapack")
    assert_same_course(stats, twin, rtol=1e-6)
    for name in ("n_call_nlp_jac_g", "n_call_nlp_hess_l"):
        assert stats[name] == twin[name]
    for name in ("x", "lam_x", "lam_g"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-6, atol=1e-7)


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


# Of 210 and 314 a dozen steps reduce the violation alone until the objective has its say again; the
# others end at a least violation, from which the barrier method goes on.
@pytest.mark.parametrize(
    ("seed", "engine"), [(210, COMPOSITE), (314, COMPOSITE), (72, BARRIER), (312, BARRIER)]
)
def test_the_violation_alone_is_reduced_by_the_same_steps(
    seed: int, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, numbers = cubic(seed)
    solver = nlpsol("solver", "hybrid", problem)
    found = solver(**numbers)
    assert (solver.result.method, solver.result.engine) == (engine, "c")
    wanted, twin = solved(monkeypatch, lambda: (problem, numbers), "python")
    assert_same_course(solver.stats(), twin, ("obj", "inf_pr", "inf_du"), rtol=1e-5)
    np.testing.assert_allclose(found["x"], wanted["x"], rtol=1e-6, atol=1e-7)


def test_random_equations_end_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all by the same steps; an escape from a least violation may lead anywhere."""
    count, same, solutions = 60, 0, {"c": 0, "python": 0}
    for seed in range(count):
        problem, numbers = cubic(seed)
        stats = {}
        for mode in solutions:
            _, stats[mode] = solved(monkeypatch, lambda made=(problem, numbers): made, mode)
            solutions[mode] += stats[mode]["success"]
        one, other = (stats[mode]["iterations"]["obj"] for mode in solutions)
        same += len(one) == len(other) and np.allclose(one, other, rtol=1e-5, atol=1e-7)
    assert same >= 0.9 * count
    assert abs(solutions["c"] - solutions["python"]) <= 2


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("made", PROBLEMS)
def test_the_result_says_how(
    made: Callable[[], Made], at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not at_once:
        monkeypatch.setattr(runner, "quick_of", lambda problem, options: None)
    problem, numbers = with_equations(made)()
    solver = nlpsol("solver", "hybrid", problem)
    solver(**numbers)
    result = solver.result
    assert (result.method, result.engine, result.success) == (COMPOSITE, "c", True)
    assert result.step is not None
    assert solver.stats()["iter_count"] == result.iterations == result.history.t[-1]


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("made", PROBLEMS)
def test_a_limit_ends_both_at_one_iterate(
    made: Callable[[], Made], steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, stats = solved(monkeypatch, with_equations(made), "c", {"max_iter": steps})
    wanted, twin = solved(monkeypatch, with_equations(made), "python", {"max_iter": steps})
    assert stats["engine"] == "c"
    assert_same_course(stats, twin, rtol=1e-6)
    np.testing.assert_allclose(found["x"], wanted["x"], rtol=1e-5, atol=1e-6)


def plane() -> Made:
    """A saddle whose least curvature is that of a plane: of its directions none is better."""
    x = ca.SX.sym("x", 5)
    least = ca.dot(x[1:4] ** 2, x[1:4] ** 2) - ca.sumsqr(x[1:4])
    return {"x": x, "f": x[0] ** 2 + least + x[4], "g": x[4] + x[0]}, {"x0": 0}


def hill() -> Made:
    """At the start A is zero, and ‖c‖² falls alike into all directions."""
    x = ca.SX.sym("x", 4)
    return {"x": x, "f": (x[0] - 0.3) ** 2 + x[1], "g": ca.sumsqr(x) - 1}, {"x0": 0}


@pytest.mark.parametrize("made", [plane, hill])
def test_among_equal_directions_no_rounding_chooses(
    made: Callable[[], Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, stats = solved(monkeypatch, with_equations(made), "c")
    wanted, twin = solved(monkeypatch, with_equations(made), "python")
    assert (stats["engine"], stats["success"]) == ("c", True)
    assert_same_course(stats, twin, rtol=1e-6)
    np.testing.assert_allclose(found["x"], wanted["x"], rtol=1e-6, atol=1e-7)


def oriented_by_c(
    library: Any, directions: np.ndarray, values: np.ndarray, count: int
) -> np.ndarray:
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
        ways.append(oriented(mixed / D, values, count))
        first = Q[:, : sizes[0]]
        projected = first @ (first.T @ (fixed / D[:, 0]))
        for way in ways:
            np.testing.assert_allclose(way[:, :count], ways[0][:, :count], atol=1e-9 / D.min())
            whole = way * D
            np.testing.assert_allclose(whole.T @ whole, np.eye(n), atol=1e-12)
            np.testing.assert_allclose(
                whole[:, 0], projected / np.linalg.norm(projected), atol=1e-9
            )
            for begin, end in zip(ends - sizes, ends, strict=True):
                span, given = whole[:, begin:end], Q[:, begin:end]
                np.testing.assert_allclose(span @ span.T, given @ given.T, atol=1e-12)


def valleys(seed: int) -> Made:
    """Equations that bend, with rows that nearly depend on each other."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    m = int(rng.integers(1, n + 2))
    x = ca.SX.sym("x", n)
    A, B = rng.normal(size=(m, n)), rng.normal(size=(m, n))
    A[-1] = A[0] + 10.0 ** rng.uniform(-4, 0) * A[-1]
    bend = 10.0 ** rng.uniform(-4, 0)
    g = ca.mtimes(A, x) + bend * ca.mtimes(B, x**2 + ca.tanh(x)) - rng.normal(size=m)
    return {"x": x, "f": ca.sumsqr(x), "g": g}, {"x0": rng.normal(size=n), "lbg": 0, "ubg": 0}


def test_escapes_from_anywhere_lead_to_the_same_points(library: Any) -> None:
    """By the undamped step and by a scan, or nowhere; what is carried from there on too."""
    library.hybrid_escape.argtypes = [c_void_p]
    kinds: Counter[str] = Counter()
    for seed in range(150):
        nlp, call = valleys(seed)
        problem = Problem.from_nlp(nlp)
        numbers = problem.numbers(**call)
        limits = Limits(max_iter=0)
        space = Workspace(
            library, plan_of(library, problem, numbers.bounds), problem.functions, trigger()
        )
        space.fill(numbers, None)
        space.limit(limits)
        attempt = composite_attempt(numbers.x0)
        cold = space.cold_mode(composite=True)
        cold.set(data_of(attempt, one.settings_of(attempt, limits), limits, problem), 0)
        assert cold.begin() == PAUSED
        found = library.hybrid_escape(cold.addresses["cold_bytes"])
        assert cold.go_on()[0] == LIMIT
        form = StandardForm(
            problem, numbers.bounds, numbers.p, numbers.x0, 0.0, 1e-6, even=True, dense=True
        )
        at = composite._evaluated(form.point(form.start))
        method = lookahead.LookAhead()
        guards = method.begin(at)
        equations: Any = composite._Equations(form, form.point(form.start))
        wanted = violation.escape(equations, at, guards.jacobian)
        assert bool(found) == (wanted is not None), seed
        now, carried = cold.state.now, cold.state.guards
        w = np.ctypeslib.as_array(ct.cast(now.w, ct.POINTER(c_double)), (form.n,))
        new = at if wanted is None else wanted
        np.testing.assert_allclose(w, new.x, rtol=1e-7, atol=1e-7, err_msg=str(seed))
        y = np.ctypeslib.as_array(ct.cast(now.y, ct.POINTER(c_double)), (form.m,))
        least = Jacobian(new.B, 1e-10).least_squares_multipliers(new.gradient)
        np.testing.assert_allclose(y, least, rtol=1e-5, atol=1e-5, err_msg=str(seed))
        far = max(guards.radius, np.linalg.norm(new.x - at.x))
        assert carried.radius == pytest.approx(far, rel=1e-7)
        assert (carried.escapes, carried.penalty, carried.goal) == (found, 1.0, -1.0)
        assert np.linalg.norm(new.h) <= 0.5 * np.linalg.norm(at.h) or not found
        undamped = np.linalg.norm(w + np.linalg.pinv(at.B) @ at.h - at.x)
        kinds["nowhere" if not found else "undamped" if undamped < 1e-8 else "others"] += 1
    assert min(kinds.values()) > 5
    assert len(kinds) == 3


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


@pytest.mark.parametrize("made", [least_value, two_wells])
def test_least_violations_are_left_like_in_python(
    made: Callable[[], Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = []
    leave = lookahead.escape

    def noted(*given: Any) -> Any:
        left.append(leave(*given))
        return left[-1]

    monkeypatch.setattr(lookahead, "escape", noted)
    problem, numbers = with_equations(made)()
    solver = nlpsol("solver", "hybrid", problem)
    found = solver(**numbers)
    assert not left
    wanted, twin = solved(monkeypatch, with_equations(made), "python")
    assert left[0] is not None
    stats = solver.stats()
    assert (stats["engine"], stats["success"], solver.result.method) == ("c", True, COMPOSITE)
    assert_same_course(stats, twin, ("obj",), rtol=1e-5)
    np.testing.assert_allclose(found["x"], wanted["x"], rtol=1e-6, atol=1e-7)


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
def test_a_violation_that_stays_ends_the_attempt(
    made: Callable[[], Made], start: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends, steps = [], []
    run, step = one.run_on_engine, Composite.step

    def noted(*given: Any) -> Any:
        found = run(*given)
        if given[3].composite and isinstance(found, Handed):
            ends.append((found.ended, found.steps))
        return found

    def counted(*given: Any) -> Any:
        found = step(*given)
        steps.append(found)
        return found

    def at_start() -> Made:
        problem, numbers = with_equations(made)()
        return problem, {**numbers, "x0": start}

    monkeypatch.setattr(one, "run_on_engine", noted)
    monkeypatch.setattr(Composite, "step", counted)
    found, stats = solved(monkeypatch, at_start, "c")
    assert not steps
    wanted, twin = solved(monkeypatch, at_start, "python")
    assert ends == [(StopReason.LOCALLY_INFEASIBLE, len(steps))]
    assert stats["return_status"] == twin["return_status"] == "Infeasible_Problem_Detected"
    np.testing.assert_allclose(found["x"], wanted["x"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n", [40, 120, 190])
def test_many_variables(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> Made:
        x = ca.SX.sym("x", n)
        f = ca.sumsqr(x - ca.DM(np.linspace(-1, 1, n))) + 0.1 * ca.dot(x[1:] ** 2, x[:-1])
        return {"x": x, "f": f, "g": ca.sumsqr(x) - 2}, {"x0": 0.2, "lbg": 0, "ubg": 0}

    _, stats = solved(monkeypatch, made, "c")
    _, twin = solved(monkeypatch, made, "python")
    assert (stats["engine"], stats["success"]) == ("c", True)
    assert_same_course(stats, twin, rtol=1e-6)


def test_the_same_memory_serves_the_barrier_method(monkeypatch: pytest.MonkeyPatch) -> None:
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
