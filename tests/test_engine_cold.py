"""The barrier method in C beside its Python twin: pieces on random numbers, whole solves."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Callable
from ctypes import c_double, c_int, c_void_p
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from engine_cases import (
    FormData,
    PointData,
    WorthData,
    assert_same_course,
    core_in_pieces,
    solved,
)
from nlp_verdict_cases import INFEASIBLE

from casadi_hybrid import Problem, Solver, nlpsol
from casadi_hybrid.attempts import compiled
from casadi_hybrid.barrier import barrier
from casadi_hybrid.barrier.filter import Filter
from casadi_hybrid.barrier.iterate import Settings, interior, safe_duals, share_to_zero
from casadi_hybrid.barrier.merit import Merit
from casadi_hybrid.barrier.pace import Mark, mark_of
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.engine.cold import IterateData, RayData
from casadi_hybrid.engine.library import VARIABLE
from casadi_hybrid.engine.structures import DIVERGED, UNBOUNDED, NumbersData, PlanData
from casadi_hybrid.engine.warm import Engine, engine_of
from casadi_hybrid.standard_form.selection import Walls

INF = np.inf


@pytest.fixture(scope="module")
def library() -> Any:
    found = core_in_pieces()
    number = c_double
    signatures = {
        "hybrid_next_nu": (number, [number, number]),
        "hybrid_blocks": (c_int, [c_void_p, number, number, number]),
        "hybrid_verdict": (c_int, [c_void_p, c_void_p, *[number] * 5]),
        "hybrid_smallest_step": (number, [c_void_p, number, number]),
        "hybrid_extend": (None, [c_void_p, c_void_p]),
        "hybrid_interior": (None, [c_void_p, number, c_void_p]),
        "hybrid_safe_duals": (None, [c_void_p, c_void_p, number, c_void_p, c_void_p]),
        "hybrid_share_to_zero": (
            number, [c_int, c_void_p, c_void_p, number, c_void_p, number],
        ),
    }  # fmt: skip
    for name, (result, arguments) in signatures.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


def sizes(rng: np.random.Generator, count: int, decades: float = 4.0) -> np.ndarray:
    return np.asarray(10.0 ** rng.uniform(-decades, decades, count))


class AnyMerit(Merit):
    """θ and φ as they are given."""

    def __init__(self, theta: float, phi: float, it: Any) -> None:
        self._it, self.theta, self.phi = it, theta, phi

    def phi_of(self, at: Any) -> float:
        return float(at.phi)


def test_filter_decides_like_its_twin(library: Any) -> None:
    rng = np.random.default_rng(1)
    words = {"": 0, "f": ord("f"), "h": ord("h")}
    seen = set()
    for _ in range(2000):
        pairs = np.column_stack([sizes(rng, 5, 3.0), rng.normal(size=5)])
        start, size = float(sizes(rng, 1)[0]), float(sizes(rng, 1)[0])
        theta, phi = float(sizes(rng, 1, 6.0)[0]), float(rng.normal())
        trial = SimpleNamespace(
            theta=theta * float(rng.choice([0.5, 1.0, 2.0, 1e3])), phi=phi + 0.1 * rng.normal()
        )
        alpha, slope = float(rng.uniform()), float(rng.normal())
        filter_ = Filter(start, tuple((a, b) for a, b in pairs.tolist()))
        merit = AnyMerit(theta, phi, SimpleNamespace(filter=filter_, at=SimpleNamespace(size=size)))
        room = np.zeros(256)
        room[:10] = pairs.ravel()
        it = IterateData(filter=room.ctypes.data, entries=5, theta_start=start)
        worth = WorthData(theta, phi)
        word = merit.verdict(trial, alpha, slope)  # type: ignore[arg-type]
        seen.add(word)
        found = library.hybrid_verdict(
            ct.byref(worth), ct.byref(it), size, trial.theta, trial.phi, alpha, slope
        )
        assert found == words[word]
        assert library.hybrid_blocks(ct.byref(it), theta, phi, 1.0) == filter_.blocks(theta, phi)
        step = library.hybrid_smallest_step(ct.byref(worth), start, slope)
        assert step == pytest.approx(merit.smallest_step(slope), rel=1e-14)
        library.hybrid_extend(ct.byref(worth), ct.byref(it))
        kept = merit.extended().entries
        assert it.entries == len(kept)
        np.testing.assert_array_equal(room[: 2 * len(kept)].reshape(-1, 2), kept)
    assert seen == set(words)


def test_of_a_full_filter_the_pair_goes_that_alone_blocks_the_least(library: Any) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        theta = np.sort(sizes(rng, 128))
        pairs = np.column_stack([theta, np.sort(rng.normal(size=128))[::-1]])
        areas = (theta[2:] - theta[1:-1]) * (pairs[:-2, 1] - pairs[1:-1, 1])
        gone = pairs[1 + np.argmin(areas)]
        pairs = rng.permutation(pairs)
        room = pairs.ravel().copy()
        it = IterateData(filter=room.ctypes.data, entries=128, theta_start=1.0)
        worth = WorthData(0.5 * float(theta[0]), 9.0)
        library.hybrid_extend(ct.byref(worth), ct.byref(it))
        merit = AnyMerit(worth.theta, worth.phi, SimpleNamespace(filter=Filter(1.0)))
        kept = pairs[(pairs != gone).any(axis=1)]
        assert it.entries == 128
        np.testing.assert_array_equal(
            room.reshape(-1, 2), np.vstack([kept, *merit.extended().entries])
        )


def test_bounds_are_kept_like_by_their_twin(library: Any) -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        n = 7
        lower = np.where(rng.uniform(size=n) < 0.6, rng.normal(size=n), -INF)
        upper = np.where(rng.uniform(size=n) < 0.6, lower + sizes(rng, n), INF)
        upper = np.where(np.isnan(upper) | (upper == -INF), 5.0, upper)
        has_lower, has_upper = np.isfinite(lower), np.isfinite(upper)
        flags = [has.astype(float) for has in (has_lower, has_upper)]
        plan = PlanData(n=n)
        form = FormData(
            plan=ct.addressof(plan), lower=lower.ctypes.data, upper=upper.ctypes.data,
            has_lower=flags[0].ctypes.data, has_upper=flags[1].ctypes.data,
        )  # fmt: skip
        twin: Any = SimpleNamespace(
            lower=lower, upper=upper, has_lower=has_lower, has_upper=has_upper,
            walls=Walls(has_lower, has_upper),
        )  # fmt: skip
        w = 3.0 * rng.normal(size=n)
        moved = w.copy()
        library.hybrid_interior(ct.byref(form), 1e-2, moved.ctypes.data)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(moved, interior(twin, w, 1e-2))
        below = np.where(has_lower, sizes(rng, n), 1.0)
        above = np.where(has_upper, sizes(rng, n), 1.0)
        z_lower = np.where(has_lower, sizes(rng, n, 14.0), 0.0)
        z_upper = np.where(has_upper, sizes(rng, n, 14.0), 0.0)
        at = PointData(below=below.ctypes.data, above=above.ctypes.data)
        nu = float(sizes(rng, 1, 6.0)[0])
        point: Any = SimpleNamespace(below=below, above=above)
        wanted = safe_duals(twin, point, nu, z_lower, z_upper)
        library.hybrid_safe_duals(
            ct.byref(form), ct.byref(at), nu, z_lower.ctypes.data, z_upper.ctypes.data
        )
        np.testing.assert_array_equal(z_lower, wanted[0])
        np.testing.assert_array_equal(z_upper, wanted[1])
        step = rng.normal(size=n)
        share = library.hybrid_share_to_zero(
            n, below.ctypes.data, step.ctypes.data, 1.0, flags[0].ctypes.data, 0.99
        )
        assert share == share_to_zero(below, step, np.flatnonzero(has_lower), 0.99)
        assert library.hybrid_next_nu(nu, 1e-9) == Settings().next_nu(nu, 1e-9)


# --- whole solves --------------------------------------------------------------------------------


def rosenbrock() -> tuple[dict[str, Any], dict[str, Any]]:
    x = ca.SX.sym("x", 2)
    return {"x": x, "f": 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2}, {"x0": [-1.2, 1]}


def hs71() -> tuple[dict[str, Any], dict[str, Any]]:
    x = ca.SX.sym("x", 4)
    f = x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]
    g = ca.vertcat(ca.mtimes(x[0] * x[1], x[2] * x[3]), ca.sumsqr(x))
    numbers = {"x0": [1, 5, 5, 1], "lbx": 1, "ubx": 5, "lbg": [25, 40], "ubg": [INF, 40]}
    return {"x": x, "f": f, "g": g}, numbers


def saddle() -> tuple[dict[str, Any], dict[str, Any]]:
    """The Hessian needs a shift, the line search cuts and corrects."""
    x = ca.SX.sym("x", 3)
    f = -x[0] * x[1] * x[2]
    numbers = {"x0": [10, 10, 10], "lbx": 0, "ubx": 42, "lbg": [0], "ubg": [72]}
    return {"x": x, "f": f, "g": x[0] + 2 * x[1] + 2 * x[2]}, numbers


def circle() -> tuple[dict[str, Any], dict[str, Any]]:
    """A fixed variable, a free row, and second-order corrections."""
    x = ca.SX.sym("x", 3)
    f = 2 * (x[0] ** 2 + x[1] ** 2 - 1) - x[0] + (x[2] - 1) ** 2
    g = ca.vertcat(x[0] ** 2 + x[1] ** 2, x[0] + x[2])
    numbers = {"x0": [0.8, 0.7, 5], "lbx": [-INF, 0, 5], "ubx": [INF, INF, 5]}
    return {"x": x, "f": f, "g": g}, {**numbers, "lbg": [1, -INF], "ubg": [1, INF]}


def pendulum() -> tuple[dict[str, Any], dict[str, Any]]:
    """A swing-up by direct transcription: sparse, with bounds on the control."""
    N, h = 20, 0.1
    q, v, u = ca.SX.sym("q", N + 1), ca.SX.sym("v", N + 1), ca.SX.sym("u", N)
    g = ca.vertcat(
        q[1:] - q[:-1] - h * v[:-1], v[1:] - v[:-1] - h * (u - ca.sin(q[:-1])), q[0], v[0]
    )
    x = ca.vertcat(q, v, u)
    f = ca.sumsqr(q - np.pi) + 0.1 * ca.sumsqr(v) + 0.1 * ca.sumsqr(u)
    return {"x": x, "f": f, "g": g}, {
        "x0": 0.1, "lbx": [-INF] * (2 * N + 2) + [-2] * N, "ubx": [INF] * (2 * N + 2) + [2] * N,
        "lbg": 0, "ubg": 0,
    }  # fmt: skip


def pressures() -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables of a million, as pascals are, and a negative objective."""
    x = ca.SX.sym("x", 3)
    g = ca.vertcat(ca.sqrt(x[0] - x[1]) - x[2], x[0] + 2 * x[1])
    f = (1e-6 * x[0] - 3) ** 2 + (1e-6 * x[1] - 1) ** 2 - 1e-3 * x[2] - 9
    bounds = {"lbx": [1e5, 1e5, 0], "ubx": [4e6, 3e6, 2e3], "lbg": [0, -INF], "ubg": [0, 4e6]}
    return {"x": x, "f": f, "g": g}, {"x0": [2e6, 1e6, 50], **bounds}


def far_off() -> tuple[dict[str, Any], dict[str, Any]]:
    """From far out, where f is positive, to a solution nearby."""
    x = ca.SX.sym("x", 2)
    f = ca.sumsqr(x) / (1 + ca.sumsqr(x) / 1e14) + x[0]
    return {"x": x, "f": f, "g": x[0] + x[1]}, {"x0": [3e6, -2e6], "lbx": -1e7, "lbg": 2}


PROBLEMS = [rosenbrock, hs71, saddle, circle, pendulum, pressures, far_off]


@pytest.mark.parametrize("made", PROBLEMS)
def test_the_same_iterates(made: Any, library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found, stats = solved(monkeypatch, made, "c")
    wanted, twin = solved(monkeypatch, made, "python")
    assert (stats["engine"], twin["engine"]) == ("c", "python")
    assert_same_course(stats, twin)
    for name in ("x", "lam_x", "lam_g"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("steps", [0, 4])
@pytest.mark.parametrize("made", PROBLEMS)
def test_a_limit_ends_both_at_one_iterate(
    made: Any, steps: int, library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, stats = solved(monkeypatch, made, "c", {"max_iter": steps} if steps else {})
    wanted, twin = solved(monkeypatch, made, "python", {"max_iter": steps} if steps else {})
    assert (stats["engine"], twin["engine"]) == ("c", "python")
    assert stats["stop_reason"] == ("ITERATION_LIMIT" if steps else "CONVERGED")
    assert_same_course(stats, twin)
    if not steps:  # the verdict on a point that is none looks at its curvature
        assert stats["n_call_nlp_hess_l"] == twin["n_call_nlp_hess_l"]
    for name in ("x", "lam_x", "lam_g"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-6, atol=1e-7)


def test_the_error_of_a_saddle_is_forgotten_in_both(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference of the progress test after each step of C is that of Python."""
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "f": 1e4 + (x[0] ** 2 - 1) ** 2 + (x[1] - x[0]) ** 2, "g": x[0] + x[1]}
    numbers = {"x0": [1e-3, 0], "lbx": -2, "lbg": -9, "ubg": 9}
    seen: dict[int, Mark | None] = {}

    def noted(old: Mark | None, *others: Any, bent: bool) -> Mark:
        seen.setdefault(others[-1], old)
        return mark_of(old, *others, bent=bent)

    monkeypatch.setattr(barrier, "mark_of", noted)
    solved(monkeypatch, lambda: (nlp, numbers), "python")
    monkeypatch.setenv(VARIABLE, "c")
    forgotten = 0
    for steps in range(1, len(seen)):
        solver = Solver(Problem.from_nlp(nlp), max_iter=steps)
        assert solver.solve(**numbers).engine == "c"
        engine = engine_of(solver.problem)
        assert isinstance(engine, Engine)
        ours, other = engine.spaces[0].cold.state.now.mark, seen[steps]
        assert other is not None
        assert (ours.t, ours.rounds) == (other.t, other.rounds)
        np.testing.assert_allclose(ours.error, other.error, rtol=1e-5, atol=1e-12)
        forgotten += ours.error == np.inf
    assert forgotten


def strip() -> tuple[dict[str, Any], dict[str, Any]]:
    """Along which f falls, and rows that contradict each other only in what is lost in rounding."""
    x = ca.SX.sym("x", 2)
    numbers = {"x0": [2e5, 2e5], "lbx": 0, "lbg": -1, "ubg": 2}
    return {"x": x, "f": x[1] - 2 * x[0], "g": x[0] - x[1]}, numbers


def waves() -> tuple[dict[str, Any], dict[str, Any]]:
    """Along a row that bends ever on, where steps stay short: the ray has to be extrapolated."""
    x = ca.SX.sym("x", 2)
    return {"x": x, "f": -x[0] - x[1], "g": x[1] - x[0] - ca.sin(x[0])}, {"lbg": 0, "ubg": 0}


@pytest.mark.parametrize("made", [strip, waves])
def test_that_f_falls_without_bound_is_proved_in_c(
    made: Any, library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, stats = solved(monkeypatch, made, "c")
    _, twin = solved(monkeypatch, made, "python")
    assert (stats["engine"], stats["stop_reason"]) == ("c", "UNBOUNDED")
    for name in ("return_status", "point_status", "detail"):
        assert stats[name] == twin[name]
    if made is strip:
        assert_same_course(stats, twin)
    nlp, numbers = made()
    x = found["x"].full().ravel()
    row = float(ca.Function("g", [nlp["x"]], [nlp["g"]])(x))
    room = max(1e-2, 1e-11 * np.abs(x).max())
    assert np.abs(x).max() > 1e10
    assert float(found["f"]) < -1e10
    assert numbers["lbg"] - room <= row <= numbers["ubg"] + room


def test_the_ray_test_by_its_definition(library: Any) -> None:
    """min f on 1 <= x_1 - x_2 <= 2, of iterates that go out by factors of ten."""
    of = {name: np.array(numbers, float) for name, numbers in (
        ("lbx", [-INF, -INF]), ("ubx", [INF, INF]), ("lbg", [1]), ("ubg", [2]),
    )}  # fmt: skip
    J_rows, J_cols, J = np.zeros(2, np.int32), np.arange(2, dtype=np.int32), np.array([1.0, -1.0])
    plan = PlanData(n_x=2, n_g=1, nnz_J=2, J_rows=J_rows.ctypes.data, J_cols=J_cols.ctypes.data)
    numbers = NumbersData(**{name: bounds.ctypes.data for name, bounds in of.items()})
    work, ends = np.zeros(2), {0: None, UNBOUNDED: "unbounded", DIVERGED: "diverged"}
    library.hybrid_ray_test.argtypes = [c_void_p, c_void_p, c_void_p, c_double, c_void_p, c_void_p]

    def ended(row: float, slope: float, merit: float) -> list[str | None]:
        """What it says of x = (t, t - row) and f = slope t for t = 1e4, 1e5, ..., 1e21."""
        ray, said = RayData(INF, INF), []
        for power in range(4, 22):
            x = np.array([10.0**power, 10.0**power - row])
            g, gradient = np.array([x[0] - x[1]]), np.array([slope, 0.0])
            at = PointData(
                raw_f=slope * x[0], x=x.ctypes.data, raw_gradient=gradient.ctypes.data,
                raw_g=g.ctypes.data, raw_J=J.ctypes.data,
            )  # fmt: skip
            said.append(ends[library.hybrid_ray_test(
                ct.byref(plan), ct.byref(numbers), ct.byref(at), merit, work.ctypes.data,
                ct.byref(ray),
            )])  # fmt: skip
            if said[-1]:
                break
        return said

    beyond = 12 - 4  # the first t that is larger than 1e10 is 1e11
    for merit in (0.5, 2.0):  # f falls in proportion to x: such residuals are no argument
        assert ended(1.5, -1.0, merit) == [None] * (beyond - 1) + ["unbounded"]
    assert ended(1.5, 1.0, 2.0) == [None] * 17 + ["diverged"]
    assert ended(1.5, 1.0, 0.5) == [None] * 18  # it does not fall: these are solutions
    assert ended(3.0, -1.0, 2.0)[: beyond + 1] == [None] * (beyond + 1)  # the row is not met


def test_iterates_that_prove_nothing_diverge(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second row asks for what the first one forbids, and f falls along both."""
    case, stops = INFEASIBLE["an objective that falls without bound"], []
    ends, go_on = dict(compiled._ENDED), compiled.Cold.go_on

    def noted(self: Any) -> Any:
        status, rows = go_on(self)
        stops.append(ends.get(status))
        return status, rows

    monkeypatch.setattr(compiled.Cold, "go_on", noted)
    _, stats = solved(monkeypatch, lambda: (case.nlp, case.call), "c")
    assert StopReason.DIVERGED in stops
    assert stats["stop_reason"] == "LOCALLY_INFEASIBLE"


@pytest.mark.parametrize("power", [1.5, 1.25])
def test_where_the_hessian_is_undefined_the_identity_is_in_its_place(
    power: float, library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """|x|^p has a minimum where its second derivative is not defined, and begins there."""

    def made() -> tuple[dict[str, Any], dict[str, Any]]:
        x = ca.SX.sym("x", 3)
        f = ca.fabs(x[0]) ** power + (x[1] - 1) ** 2 + x[0] * x[1]
        return {"x": x, "f": f, "g": x[1] + x[2]}, {"x0": 0, "lbx": -3, "lbg": 1, "ubg": 2}

    found, stats = solved(monkeypatch, made, "c")
    wanted, twin = solved(monkeypatch, made, "python")
    assert (stats["engine"], twin["engine"]) == ("c", "python")
    assert_same_course(stats, twin, rtol=1e-6)
    np.testing.assert_allclose(found["x"], wanted["x"], rtol=1e-6, atol=1e-7)


def test_a_hessian_that_is_never_defined_ends_it(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many steps with the identity; the last ones are those of another attempt."""

    def made() -> tuple[dict[str, Any], dict[str, Any]]:
        x = ca.SX.sym("x", 2)
        f = (x[0] - 3) ** 4 + ca.fabs(x[1]) ** 1.5
        fixed = {"lbx": [-INF, 0], "ubx": [INF, 0]}
        return {"x": x, "f": f, "g": x[0] + x[1]}, {"x0": [5, 0], "lbg": 1, **fixed}

    _, stats = solved(monkeypatch, made, "c")
    _, twin = solved(monkeypatch, made, "python")
    assert (stats["engine"], stats["stop_reason"]) == ("c", "EVALUATION_ERROR")
    assert "d²/dx[1] dx[1]" in stats["detail"]
    for name in ("point_status", "detail", "iter_count"):
        assert stats[name] == twin[name]


def test_a_start_nearby_goes_on_in_c(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = solved(monkeypatch, saddle, "python")
    near = {name: found[out] for name, out in (("lam_x0", "lam_x"), ("lam_g0", "lam_g"))}
    start = {"x0": [40, 1, 30], **near}
    _, stats = solved(monkeypatch, saddle, "c", **start)
    _, twin = solved(monkeypatch, saddle, "python", **start)
    assert stats["engine"] == "c"
    assert stats["return_status"] == twin["return_status"]
    np.testing.assert_allclose(
        stats["iterations"]["obj"][-1], twin["iterations"]["obj"][-1], rtol=1e-7
    )


def test_a_domain_that_is_left_is_no_end(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trial points where a function is not defined shorten the step, in both engines."""

    def made() -> tuple[dict[str, Any], dict[str, Any]]:
        x = ca.SX.sym("x", 2)
        return {"x": x, "f": x[0] - ca.log(x[0]) + x[1] - ca.log(x[1] - x[0])}, {"x0": [0.01, 5]}

    _, stats = solved(monkeypatch, made, "c")
    _, twin = solved(monkeypatch, made, "python")
    assert stats["engine"] == "c"
    assert_same_course(stats, twin)


def logarithms(low: float) -> Callable[[], tuple[dict[str, Any], dict[str, Any]]]:
    """From zero, where a logarithm is not defined, with a bound there or a little off it."""

    def made() -> tuple[dict[str, Any], dict[str, Any]]:
        x = ca.SX.sym("x", 3)
        f = ca.dot(x, ca.log(x)) + (x[0] - 1) ** 2
        bounds = {"lbx": [low, low, 0.5], "ubx": [9, INF, 0.5], "lbg": 1, "ubg": 2}
        return {"x": x, "f": f, "g": ca.sum1(x) + 300 * x[1] * x[0]}, {"x0": 0, **bounds}

    return made


@pytest.mark.parametrize(("low", "placed"), [(1e-3, 1), (0.0, 2)])
def test_a_start_outside_the_domain_is_moved_into_its_bounds(
    low: float, placed: int, library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = logarithms(low)
    _, twin = solved(monkeypatch, made, "python")
    _, stats = solved(monkeypatch, made, "c")
    assert stats["engine"] == "c"
    assert_same_course(stats, twin)
    assert stats["n_call_nlp_jac_g"] == twin["n_call_nlp_jac_g"]
    starts = []
    for mode in ("c", "python"):
        monkeypatch.setenv("CASADI_HYBRID_ENGINE", mode)
        problem, numbers = made()
        solver = nlpsol("solver", "hybrid", problem)
        solver(**numbers)
        starts.append(solver.result.start)
    np.testing.assert_array_equal(starts[0].x, starts[1].x)
    np.testing.assert_allclose(starts[0].gradient, starts[1].gradient, rtol=1e-14)
    assert (starts[0].x[0] == low) == (placed == 1)


def test_from_the_multipliers_of_a_saddle_it_goes_as_a_cold_start_would(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What bends downwards step after step is no wrong guess of the active set: ν rises, once."""
    n = 12

    def wells() -> tuple[dict[str, Any], dict[str, Any]]:
        x, s = ca.SX.sym("x", n), ca.SX.sym("s")
        f = ca.sumsqr(x**2 - 1) + 10 * ca.sumsqr(x[1:] - x[:-1]) + 50 * s
        g = ca.vertcat(x[0] + x[-1] + s, s - x[3])
        bounds = {"lbx": [-1.5] * n + [0], "ubx": [1.5] * n + [9], "lbg": [-3, -2], "ubg": [3, 4]}
        return {"x": ca.vertcat(x, s), "f": f, "g": g}, {"x0": 0, **bounds}

    # All zero is stationary, with the multiplier of s ≥ 0.
    start = {"x0": 1e-4 * np.arange(n + 1), "lam_x0": [0.0] * n + [-50.0], "lam_g0": [0.0, 0.0]}
    found, stats = solved(monkeypatch, wells, "c", **start)
    _, twin = solved(monkeypatch, wells, "python", **start)
    assert stats["engine"] == "c"
    assert_same_course(stats, twin, ("obj", "mu"))
    assert float(found["f"]) < 1e-6
    nus = np.array(stats["iterations"]["mu"])
    assert list(np.flatnonzero(np.diff(nus) > 0)) == [np.argmax(nus) - 1]
    assert nus.max() == 0.1
