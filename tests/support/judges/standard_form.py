"""The standard form of a problem in the core, called by its pieces, and the same by formulas."""

import ctypes as ct
from typing import Any

import casadi as ca
import numpy as np
from support.cases.core import (
    CASES,
    NUMBER,
    POINTER,
    WHOLE,
    Arena,
    FormData,
    KktData,
    LowRankData,
    PointData,
    core_in_pieces,
)

from casadi_hybrid import Problem
from casadi_hybrid.core.binding.core import Core
from casadi_hybrid.core.binding.plan import plan_of
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.arguments import Numbers
from casadi_hybrid.problem.point.limits import Limits
from casadi_hybrid.utils.casadi_internals import trigger


class Form:
    """``hybrid_form`` and ``hybrid_point`` of a problem at its numbers."""

    def __init__(self, problem: Problem, numbers: Numbers) -> None:
        core = core_in_pieces()
        self.core, self.numbers = core, numbers
        plan = plan_of(core, problem, numbers.bounds)
        self.data = plan.data
        self.space = Core(core, problem, plan, Limits(), trigger())
        self.space.fill(numbers, None)
        self.space.limit(Limits())
        names = "plan", "functions", "numbers", "answer"
        self.form = FormData(**{name: getattr(self.space.data, name) for name in names})
        self.point = PointData()
        doubles, ints = sizes_of(core, self.data)
        self._doubles, self._ints = np.full(doubles, np.nan), np.zeros(ints, dtype=np.int32)
        arena = Arena(self._doubles.ctypes.data, self._ints.ctypes.data, 0, 0)
        core.hybrid_place_form(ct.byref(self.data), ct.byref(arena), ct.byref(self.form))
        core.hybrid_place_point(ct.byref(self.data), ct.byref(arena), ct.byref(self.point))
        assert arena.used_doubles <= doubles
        assert core.hybrid_make_form(ct.byref(self.form), ct.byref(self.point)) == 0
        core.hybrid_find_bounds(ct.byref(self.form))

    @property
    def functions(self) -> Any:
        """The ``hybrid_functions`` that the core calls."""
        return C.hybrid_functions.from_address(self.space.data.functions)

    def of_form(self, name: str, size: int) -> np.ndarray:
        return view(getattr(self.form, name), size)

    def of_point(self, name: str, size: int) -> np.ndarray:
        return view(getattr(self.point, name), size)

    def evaluate(self, w: np.ndarray) -> int:
        self.of_point("w", self.data.n)[:] = w
        self.core.hybrid_distances(ct.byref(self.form), ct.byref(self.point))
        evaluate = self.core.hybrid_evaluate
        return int(evaluate(ct.byref(self.form), ct.byref(self.point), None))

    def matrix(self, values: np.ndarray, rows: str, cols: str, shape: Any) -> np.ndarray:
        full = np.zeros(shape)
        at = (whole(getattr(self.data, name), values.size) for name in (rows, cols))
        np.add.at(full, tuple(at), values)
        return full

    def call(self, name: str, *arrays: Any) -> Any:
        """A function of (form, point, arrays and numbers …)."""
        function = getattr(self.core, name)
        given = (one if isinstance(one, ct.c_double) else address(one) for one in arrays)
        return function(ct.byref(self.form), ct.byref(self.point), *given)

    def warm(self) -> int:
        """The steps on active sets alone; the status."""
        doubles, ints = sizes_of(self.core, self.data)
        room = np.full(doubles, np.nan), np.zeros(ints, dtype=np.int32)
        at = self.space.data
        given = (getattr(at, name) for name in ("plan", "functions", "numbers"))
        memory = (one.ctypes.data for one in room)
        return int(self.core.hybrid_sqp(*given, *memory, at.answer))


class Kkt:
    """The KKT matrix of a form in C.

    Args:
        form: its problem and memory.
        low_rank: U, a row each, and w of a change of W by U' diag(w) U; by default the form's.
    """

    def __init__(self, form: Form, low_rank: tuple[Any, Any] | None = None) -> None:
        self.form, self.data = form, KktData(answer=form.space.data.answer)
        plan, arena = ct.byref(form.data), Arena()
        form.core.hybrid_place_kkt(plan, ct.byref(arena), ct.byref(self.data))
        self.doubles = np.full(arena.used_doubles, np.nan)
        self.ints = np.zeros(max(1, arena.used_ints), dtype=np.int32)
        arena = Arena(self.doubles.ctypes.data, self.ints.ctypes.data)
        form.core.hybrid_place_kkt(plan, ct.byref(arena), ct.byref(self.data))
        self.low = form.form.low_rank
        if low_rank is not None:
            U, w = (np.array(values, float) for values in low_rank)
            room = np.zeros((w.size + 1) * (form.data.n + form.data.m))
            self.rooms = {name: room.copy() for name, _ in LowRankData._fields_[2:]}
            self.rooms |= {"U": U, "w": w}
            at = (array.ctypes.data for array in self.rooms.values())
            self.low = LowRankData(w.size, 0, *at)
        self.data.low_rank = ct.addressof(self.low)

    def call(self, name: str, *arguments: Any) -> int:
        """Call a function of (plan, …)."""
        function = getattr(self.form.core, name)
        return int(function(ct.byref(self.form.data), *map(address, arguments)))

    @property
    def at(self) -> Any:
        return ct.byref(self.data)


class Formula:
    """min f(w) s.t. c(w) = 0, lower ≤ w ≤ upper with w = (free variables, slacks), in NumPy.

    c = s∘g − target of equations, s∘g − slack of inequalities; f and rows have scales
    min(1, 100/‖slope at the start‖_∞).
    """

    def __init__(self, nlp: dict[str, Any], numbers: Numbers) -> None:
        x, p = nlp["x"], nlp.get("p", ca.SX(0, 1))
        g = nlp.get("g", ca.SX(0, 1))
        if isinstance(x, ca.MX):
            p = nlp.get("p", ca.MX(0, 1))
        lam = type(x).sym("lam", g.numel())
        f = nlp["f"]
        self._of = ca.Function("of", [x, p], [f, ca.gradient(f, x), g, ca.jacobian(g, x)])
        L = ca.hessian(f, x)[0], ca.hessian(ca.dot(lam, g), x)[0]
        self._second = ca.Function("second", [x, lam, p], L)
        self.numbers = numbers
        bounds = numbers.bounds
        self.free = np.flatnonzero(bounds.lbx < bounds.ubx)
        self.rows = np.flatnonzero(np.isfinite(bounds.lbg) | np.isfinite(bounds.ubg))
        equal = bounds.lbg[self.rows] == bounds.ubg[self.rows]
        self.slack = np.flatnonzero(~equal)
        self.n, self.m = self.free.size + self.slack.size, self.rows.size
        self.clipped = np.clip(numbers.x0, bounds.lbx, bounds.ubx)
        fixed = bounds.lbx == bounds.ubx
        _, gradient, g0, J = self.user(np.where(fixed, self.clipped, numbers.x0))
        steep = np.abs(J[np.ix_(self.rows, self.free)]).max(axis=1, initial=0.0)
        self.scale_c = 100 / np.maximum(100, steep)
        self.scale_f = 100 / max(100, np.abs(gradient[self.free]).max(initial=0.0))
        low, high = (self.scale_c * of[self.rows] for of in (bounds.lbg, bounds.ubg))
        self.target = np.where(equal, low, 0.0)
        self.lower = np.r_[bounds.lbx[self.free], low[self.slack]]
        self.upper = np.r_[bounds.ubx[self.free], high[self.slack]]
        slacks = (self.scale_c * g0[self.rows])[self.slack]
        self.start = np.clip(np.r_[self.clipped[self.free], slacks], self.lower, self.upper)

    def user(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        f, gradient, g, J = (one.full() for one in self._of(x, self.numbers.p))
        return f.item(), gradient.ravel(), g.ravel(), J

    def x(self, w: np.ndarray) -> np.ndarray:
        bounds, x = self.numbers.bounds, self.clipped.copy()
        x[self.free] = w[: self.free.size]
        return np.clip(x, bounds.lbx, bounds.ubx)

    def point(self, w: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """f, ∇f, c and A."""
        f, gradient, g, J = self.user(self.x(w))
        c = self.scale_c * g[self.rows] - self.target
        c[self.slack] -= w[self.free.size :]
        of_free = self.scale_c[:, None] * J[np.ix_(self.rows, self.free)]
        A = np.hstack((of_free, -np.eye(self.m)[:, self.slack]))
        slope = np.r_[self.scale_f * gradient[self.free], np.zeros(self.slack.size)]
        return self.scale_f * f, slope, c, A

    def hessian(self, w: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The Hessian of f + y'c."""
        lam = np.zeros(self.numbers.bounds.lbg.size)
        lam[self.rows] = self.scale_c * y
        of_f, of_g = (one.full() for one in self._second(self.x(w), lam, self.numbers.p))
        W = np.zeros((self.n, self.n))
        kept = np.ix_(range(self.free.size), range(self.free.size))
        W[kept] = (self.scale_f * of_f + of_g)[np.ix_(self.free, self.free)]
        return W

    def multipliers(self, lam_x: np.ndarray, lam_g: np.ndarray) -> tuple[np.ndarray, ...]:
        """(y, z_lower, z_upper) of the user's: those of a slack are its row's."""
        y = lam_g[self.rows] * self.scale_f / self.scale_c
        z = np.r_[self.scale_f * lam_x[self.free], y[self.slack]]
        lower = np.where(np.isfinite(self.lower), np.maximum(-z, 0.0), 0.0)
        return y, lower, np.where(np.isfinite(self.upper), np.maximum(z, 0.0), 0.0)

    def users(self, w: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(lam_x, lam_g) of y and z = z_upper − z_lower; where x is fixed, what makes ∇L zero."""
        lam_g = np.zeros(self.numbers.bounds.lbg.size)
        lam_g[self.rows] = y * self.scale_c / self.scale_f
        _, gradient, _, J = self.user(self.x(w))
        lam_x = -(gradient + J.T @ lam_g)
        lam_x[self.free] = z[: self.free.size] / self.scale_f
        return lam_x, lam_g


def sizes_of(core: Any, data: Any) -> tuple[int, int]:
    """Numbers and whole numbers of the memory of the warm mode."""
    doubles, ints = ct.c_longlong(), ct.c_longlong()
    core.hybrid_sqp_memory(ct.byref(data), ct.byref(doubles), ct.byref(ints))
    return doubles.value, max(1, ints.value)


def view(at: int | None, size: int) -> np.ndarray:
    if not size:
        return np.zeros(0)
    return np.ctypeslib.as_array(ct.cast(at or 8, ct.POINTER(NUMBER)), (size,))


def whole(at: int, size: int) -> np.ndarray:
    if not size:
        return np.zeros(0, int)
    return np.ctypeslib.as_array(ct.cast(at, ct.POINTER(WHOLE)), (size,))


def equal(found: Any, expected: Any, rtol: float = 1e-14) -> None:
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


def address(value: Any) -> Any:
    return POINTER(value.ctypes.data) if isinstance(value, np.ndarray) else value


def numbers_of(case: str, draws: np.random.Generator) -> tuple[dict[str, Any], Problem, Numbers]:
    """A case at a random start with random multipliers."""
    made = CASES[case]()
    problem = Problem.from_nlp(made.nlp)
    x0 = draws.standard_normal(problem.n)
    lam_x0, lam_g0 = (s * draws.standard_normal(k) for s, k in ((3.0, problem.n), (2.0, problem.m)))
    given = {**made.numbers, "x0": x0, "lam_x0": lam_x0, "lam_g0": lam_g0}
    return made.nlp, problem, problem.numbers(**given)
