"""The standard form behind a solve: min f(w) s.t. c(w) = 0, lower ≤ w ≤ upper.

w = (free variables, slacks of the inequality rows). Fixed variables are left out, rows without a
bound are dropped, rows with lbg = ubg are equations, every other row g_i gets a slack s_i with
lbg ≤ s_i ≤ ubg and the equation g_i − s_i = 0. Objective and rows are scaled so that no gradient
at the start exceeds 100.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.arrays import Lazy, anywhere, largest, sum_of_sizes, total
from casadi_hybrid.basics.errors import BrokenFunctionError, EvaluationError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.kernel.kernel import DenseKernel, Kernel, SparseKernel, has_feral
from casadi_hybrid.kernel.low_rank import LowRank, LowRankKernel
from casadi_hybrid.kernel.sparse import Index, Sparse, row_maxima
from casadi_hybrid.point.working_set import LOWER, UPPER, WorkingSet
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.evaluator import Evaluator, Operator, patterns_of
from casadi_hybrid.problem.hessian.quasi_newton import QuasiNewton
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.standard_form.selection import selection_of
from casadi_hybrid.standard_form.structure import structure_of

# Up to this many variables and rows LAPACK on full matrices beats the sparse factorization.
DENSE_LIMIT = 150
SCALE_GOAL = 100.0
_OFF = 1e-2  # how far off its bounds a start is where no function is defined on them
_EVEN = 10.0  # rows steeper than this have other units
EASED = 1e4  # so much less steep than at the start, a row is all but left out by its scale
_EPS = float(np.finfo(float).eps)
ROOM = 4.0 * _EPS
WIDEST = 0.5  # of the tolerance of the violation: what a relaxation moves a bound by at most
_BEYOND = 2.0  # so many times that far out, a point is outside and not at its bound
_LEAST_SCALE = 1e-8
_PART = 0.25  # of the way from bound to bound, which no start is moved further in
TINY = 1e-300  # stands for zero where something is divided by it
_RAISES = 10  # evaluations in a row that raise before it is asked whether all do


@dataclass(frozen=True, slots=True)
class Linearization:
    """The first derivatives at one point, unscaled.

    Attributes:
        x: the point.
        gradient: ∇f(x), n numbers.
        J: J_g(x), m×n, dense or :class:`~casadi_hybrid.kernel.sparse.Sparse`.
    """

    x: Vector
    gradient: Vector
    J: Operator


@dataclass(frozen=True)
class Point:
    """The scaled functions of the standard form at one w, and the user's own values there.

    Attributes:
        w: the point.
        f, gradient, c, A: scaled objective, its gradient, equations and their Jacobian.
        below, above: w − lower and upper − w, one where there is no bound; at least a few ε
            relative to the bound (:data:`ROOM`): a bound is not known better than that, and an
            iterate that rounding has put on it, or just behind it, can still move.
        outside: whether w is further outside its bounds than that.
        x: the user's x.
        raw_f, raw_gradient, raw_g, raw_J: unscaled values of the user's functions.
    """

    w: Vector
    f: float
    gradient: Vector
    c: Vector
    A: Operator
    below: Vector
    above: Vector
    outside: bool
    x: Vector
    raw_f: float
    raw_gradient: Vector
    raw_g: Vector
    raw_J: Operator

    @property
    def objective(self) -> float:
        """f in the user's units."""
        return self.raw_f

    @property
    def constraints(self) -> Vector:
        """g in the user's units."""
        return self.raw_g

    @Lazy
    def theta(self) -> float:
        """‖c‖₁."""
        return sum_of_sizes(self.c)

    @Lazy
    def size(self) -> float:
        """‖w‖_∞."""
        return largest(self.w)

    @Lazy
    def reach(self) -> float:
        """‖x‖_∞."""
        return largest(self.x)

    @Lazy
    def logs(self) -> float:
        """Σlog(w − lower) + Σlog(upper − w)."""
        return total(np.log(self.below)) + total(np.log(self.above))


class StandardForm:
    """Maps between the user's problem and the standard form, and evaluates the latter.

    A relaxation widens every bound by that fraction of max(1, |bound|), scaled as it is, and by no
    more than ``widest`` in the user's units: problems without an interior (complementarity
    conditions, inequalities that meet) get one. Rows that are not
    ``scaled`` have their violation measured in the user's units; ``even`` scales make the largest
    entry of a gradient one where it is much larger, whatever the units of its row. With
    ``beside`` equations ask for the values that their rows have at the start, which is next to a
    point without multipliers. Matrices are full ones up to :data:`DENSE_LIMIT`, and above it where
    they are wanted ``dense``.

    Attributes:
        lower, upper: bounds of w (±inf where there are none), scaled.
        has_lower, has_upper: where they are finite; walls: the same in other forms.
        undefined: the error at the last trial point where a function is not defined.
        at_start: the user's derivatives at the start, from which the scales come.
        n, m: sizes of w and c.
    """

    def __init__(
        self,
        program: Problem,
        bounds: Bounds,
        p: Vector,
        x0: Vector,
        relaxation: float = 0.0,
        widest: float = inf,
        *,
        scaled: bool = True,
        even: bool = False,
        beside: bool = False,
        dense: bool = False,
    ) -> None:
        self.program, self.bounds = program, bounds
        self.undefined: EvaluationError | None = None
        self.dense = dense or program.n + program.m <= DENSE_LIMIT or not has_feral()
        self.evaluator = Evaluator(program, p, dense=self.dense)
        self._learned = self._memory()
        self._selection = known = selection_of(bounds)
        self.free, self.rows, self._slack_rows = known.free, known.rows, known.slack_rows
        self.n_free, self.n, self.m = known.n_free, known.n, known.m
        # Most problems have no fixed variable and no row without a bound: nothing to pick then.
        self._all_free, self._all_rows = known.all_free, known.all_rows
        self.has_lower, self.has_upper, self.walls = known.has_lower, known.has_upper, known.walls
        self._x = np.minimum(np.maximum(x0, bounds.lbx), bounds.ubx)
        if not self.dense:
            self._structure = structure_of(program, self.free, self.rows, self._slack_rows)

        start = x0 if self._all_free else np.where(known.fixed, self._x, x0)
        self.at_start, g = self._scaling_values(start)
        self._defined, self._raises = self.at_start.x, 0
        steepest = largest(self.at_start.gradient[self.free])
        self.scale_f = max(_LEAST_SCALE, min(SCALE_GOAL / max(steepest, TINY), 1.0))
        steep = self._row_maxima(self.at_start.J) if scaled else np.zeros(self.m)
        self.scale_c: Vector = _row_scales(steep, even=even)
        # Most problems are well scaled as they are: then there is nothing to multiply with.
        self._even_c = not anywhere(self.scale_c != 1.0)
        target = np.where(known.equal, g[self.rows], 0.0) if beside else known.target
        self._target = target * self.scale_c
        self._no_target = not anywhere(self._target != 0.0)
        self.lower, self.upper = known.lower, known.upper
        slacks = g[self.rows][self._slack_rows]
        if not self._even_c:
            scale = np.concatenate((np.ones(self.n_free), self.scale_c[self._slack_rows]))
            self.lower, self.upper = self.lower * scale, self.upper * scale
            slacks = slacks * self.scale_c[self._slack_rows]
        if relaxation:
            most = np.concatenate((np.ones(self.n_free), self.scale_c[self._slack_rows])) * widest
            self.lower = self.lower - _widening(self.lower, relaxation, most)
            self.upper = self.upper + _widening(self.upper, relaxation, most)
        self._room = ROOM * np.maximum(1.0, _smaller(self.lower, self.upper))
        self._most_room = largest(self._room)
        # On a side without bounds the distances are always the same.
        nowhere = np.maximum(1.0, self._room)
        nowhere.setflags(write=False)
        self._no_lower = None if self.walls.at_lower.size else nowhere
        self._no_upper = None if self.walls.at_upper.size else nowhere
        self._boxed, self._widened = known.boxed and not relaxation, known.boxed and relaxation > 0
        self.start = np.concatenate((self._x[self.free], slacks))

    def point(self, w: Vector) -> Point:
        """Evaluate at w.

        Raises:
            EvaluationError: where a function of the user is not finite.
        """
        below, above, inside, outside = self._no_lower, self._no_upper, True, False
        if below is None:
            below, inside, outside = self._distances(w - self.lower, self.walls.not_lower)
        if above is None:
            above, within, beyond = self._distances(self.upper - w, self.walls.not_upper)
            inside, outside = inside and within, outside or beyond
        x = self.user_x(w, inside=inside)
        f, gradient, g, J = self.evaluator.first(x)
        self._defined, self._raises = x, 0
        c, slope, scale_f = g, gradient, self.scale_f
        if not self._all_rows:
            c = c[self.rows]
        if not self._even_c:
            c = c * self.scale_c
        if not self._no_target:
            c = c - self._target
        if not self._all_free:
            slope = slope[self.free]
        if scale_f != 1.0:
            slope = scale_f * slope
        if self._slack_rows.size:
            if c is g:
                c = c.copy()
            c[self._slack_rows] -= w[self.n_free :]
            slope = np.concatenate((slope, self._selection.no_slope))
        A = self._jacobian(J)
        return Point(w, scale_f * f, slope, c, A, below, above, outside, x, f, gradient, g, J)

    def point_or_none(self, w: Vector) -> Point | None:
        """Evaluate at a trial w; None where a function is not defined.

        Raises:
            BrokenFunctionError: where one raises again and again, and where it was defined too.
        """
        try:
            return self.point(w)
        except EvaluationError as error:
            self.evaluator.counts["undefined"] += 1
            self.undefined = error
            if error.raised:
                self._ask_again(error)
            return None

    def _ask_again(self, error: EvaluationError) -> None:
        """Where nothing but exceptions has come for some time: ask where a number has come before.

        A model that raises outside its domain does not raise there, and a shorter step is the
        answer. One that is broken raises anywhere, and every further try is in vain.
        """
        self._raises += 1
        if self._raises % _RAISES:
            return
        try:
            self.evaluator.first(self._defined)
        except EvaluationError as again:
            if again.raised:
                told = error.function, error.entry, error.value, error.place, error.x, error.raised
                raise BrokenFunctionError(*told) from error.__cause__

    def within_given(self, w: Vector) -> Vector:
        """A point with its variables inside the bounds as given, where those have been widened."""
        if not self._widened:
            return w
        lower, upper = self._selection.box
        inner = np.minimum(np.maximum(w[: self.n_free], lower), upper)
        return np.concatenate((inner, w[self.n_free :]))

    def remember_undefined(self, x: Vector) -> None:
        """Set ``undefined`` by an x where a function is known not to be defined."""
        try:
            self.evaluator.first(x)
        except EvaluationError as error:
            self.undefined = error

    def with_slacks(self, at: Point) -> Vector:
        """``at.w`` with every slack at the value of its row."""
        w = at.w.copy()
        w[self.n_free :] += at.c[self._slack_rows]
        return w

    def hessian(self, at: Point, y: Vector, objective: float = 1.0) -> Operator:
        """∇²_ww of objective·f + yᵀc, scaled."""
        multipliers = self._of_all_rows(y if self._even_c else y * self.scale_c)
        if self._learned is not None:
            if objective == 0.0:
                return self.zero_hessian()  # no statement on the constraints' part alone
            self._learned.see(at.x, at.raw_gradient, at.raw_J)
            return self._free_block(self._learned.hessian(objective * self.scale_f, multipliers))
        if objective == 0.0:
            # H is affine in λ: the difference leaves the constraints' part alone.
            with_y = self._free_block(self.evaluator.hessian(at.x, multipliers))
            without = self._free_block(self.evaluator.hessian(at.x, np.zeros(self.program.m)))
            return with_y - without
        scale = objective * self.scale_f
        if scale == 1.0:
            return self._free_block(self.evaluator.hessian(at.x, multipliers))
        H = self.evaluator.hessian(at.x, multipliers / scale)
        return self._free_block(H) * scale

    def forget(self) -> bool:
        """Drop what was learned of the Hessian; whether there was anything."""
        return self._learned is not None and self._learned.forget()

    def remember(self, points: Iterable[tuple[Vector, Vector, Vector]]) -> None:
        """Learn from points that were visited elsewhere: x, ∇f and the entries of J, in order."""
        if self._learned is not None:
            pattern = patterns_of(self.program)[0]
            for x, gradient, data in points:
                self._learned.see(x, gradient, Sparse(pattern, data))

    def _memory(self) -> QuasiNewton | None:
        """What learns the Hessian, where there are no second derivatives."""
        if not self.evaluator.learns:
            return None
        functions = self.program.functions
        pattern = None if self.dense else patterns_of(self.program)[1]
        return QuasiNewton(functions.blocks, pattern, differenced=functions.differenced)

    def zero_hessian(self) -> Operator:
        """Zeros on the Hessian's pattern, without an evaluation."""
        if self.dense:
            return np.zeros((self.n, self.n))
        pattern = self._structure.W
        return Sparse(pattern, np.zeros(pattern.rows.size))

    def identity(self) -> Operator:
        """The identity on the Hessian's pattern, as far as that has a diagonal."""
        if self.dense:
            return np.eye(self.n)
        pattern = self._structure.W
        return Sparse(pattern, (pattern.rows == pattern.cols).astype(float))

    def kernel(self) -> Kernel:
        """A kernel for the matrices of this form."""
        if self.dense:
            return DenseKernel(self.m, self.n)
        kernel = SparseKernel(self._structure.layout)
        return kernel if self._learned is None else LowRankKernel(kernel)

    def user_x(self, w: Vector, *, inside: bool = False) -> Vector:
        """The user's x for w, moved into its bounds where w is not known to be ``inside``."""
        inner = w[: self.n_free]
        if self._boxed and not inside:
            lower, upper = self._selection.box
            inner = np.minimum(np.maximum(inner, lower), upper)
        if self._all_free:
            return inner
        x = self._x.copy()
        x[self.free] = inner
        return x

    def user_multipliers(self, at: Point, y: Vector, z: Vector) -> tuple[Vector, Vector]:
        """(lam_x, lam_g) in the user's units for equations' y and net bound multipliers z.

        z = z_upper − z_lower. The multiplier of a fixed variable is what its stationarity needs.
        """
        of_rows = y if self._even_c else y * self.scale_c
        of_free = z[: self.n_free]
        if self.scale_f != 1.0:
            of_rows, of_free = of_rows / self.scale_f, of_free / self.scale_f
        lam_g = self._of_all_rows(of_rows)
        if self._all_free:
            return of_free, lam_g
        lam_x = -(at.raw_gradient + at.raw_J.T @ lam_g)
        lam_x[self.free] = of_free
        return lam_x, lam_g

    def from_user_multipliers(self, lam_x: Vector, lam_g: Vector) -> tuple[Vector, Vector, Vector]:
        """(y, z_lower, z_upper) of the standard form for the user's multipliers."""
        y = lam_g[self.rows] * self.scale_f / self.scale_c
        # A slack is stationary where z_upper − z_lower = y of its row.
        net = np.concatenate((lam_x[self.free] * self.scale_f, y[self._slack_rows]))
        lower = np.where(self.has_lower, np.maximum(-net, 0.0), 0.0)
        return y, lower, np.where(self.has_upper, np.maximum(net, 0.0), 0.0)

    def from_working_set(self, active: WorkingSet) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which entries of w lie at their lower and which at their upper bound."""
        sides = np.concatenate((active.x[self.free], active.g[self.rows][self._slack_rows]))
        return (sides == LOWER) & self.has_lower, (sides == UPPER) & self.has_upper

    def _distances(self, distance: Vector, without: Index) -> tuple[Vector, bool, bool]:
        """Distances to bounds of one side, see :class:`Point`, one where there is none.

        And whether w is inside all of them by more than rounding, and whether outside one.
        """
        if without.size:
            distance[without] = 1.0
        if distance.item(distance.argmin()) >= self._most_room:
            return distance, True, False
        if not anywhere(distance < self._room):
            return distance, False, False
        outside = anywhere(distance < -_BEYOND * self._room)
        return np.maximum(distance, self._room), False, outside

    def _picked(self, J: Operator) -> Operator:
        """The rows and columns of a full J_g that count."""
        return J if self._all_free and self._all_rows else J[self._selection.blocks[0]]

    def _of_all_rows(self, values: Vector) -> Vector:
        """Values of the rows of c as values of the user's rows, zero at those without a bound."""
        if self._all_rows:
            return values
        full = np.zeros(self.program.m)
        full[self.rows] = values
        return full

    def _scaling_values(self, x0: Vector) -> tuple[Linearization, Vector]:
        """Derivatives and g at the start as given, or moved into its bounds where undefined."""
        for x in (x0, self._x):
            try:
                _, gradient, g, J = self.evaluator.first(x)
            except EvaluationError:
                continue
            return Linearization(x, gradient, J), g
        self._x = inside = inside_of(self.bounds, self._x)
        _, gradient, g, J = self.evaluator.first(inside)
        return Linearization(inside, gradient, J), g

    def _row_maxima(self, J: Operator) -> Vector:
        if self.dense:
            block: Vector = np.abs(self._picked(J)).max(axis=1, initial=0.0)
            return block
        structure = self._structure
        largest = np.zeros(self.m)
        np.maximum.at(largest, structure.J_rows, np.abs(J.data[structure.J_kept]))
        return largest

    def _jacobian(self, J: Operator) -> Operator:
        if self.dense:
            block = self._picked(J)
            if not self._slack_rows.size:
                if self._even_c:
                    return block.copy()
                return np.multiply(block, self.scale_c[:, None], order="C")
            A = self._selection.frame.copy()
            if self._even_c:
                A[:, : self.n_free] = block
            else:
                np.multiply(block, self.scale_c[:, None], out=A[:, : self.n_free])
            return A
        structure = self._structure
        kept = structure.J_kept.size
        data = np.full(structure.A.rows.size, -1.0)
        np.multiply(J.data[structure.J_kept], self.scale_c[structure.J_rows], out=data[:kept])
        return Sparse(structure.A, data)

    def _free_block(self, H: Operator) -> Operator:
        if self.dense:
            block = H if self._all_free else H[self._selection.blocks[1]]
            if not self._slack_rows.size:
                return block
            W = np.zeros((self.n, self.n))
            W[: self.n_free, : self.n_free] = block
            return W
        if isinstance(H, LowRank):
            U = np.zeros((self.n, H.w.size))
            U[: self.n_free] = H.U[self.free]
            return LowRank(self._free_block(H.base), U, H.w)
        return Sparse(self._structure.W, H.data[self._structure.H_kept])


def inside_of(bounds: Bounds, x: Vector) -> Vector:
    """A point a little off its bounds."""
    lower, upper = bounds.lbx, bounds.ubx
    room = np.minimum(_OFF, _PART * (upper - lower))
    return np.asarray(np.clip(x, lower + room, upper - room))


def eased(bounds: Bounds, start: Operator, now: Operator) -> float:
    """The largest factor by which a row would be scaled less with scales of ``now``, a J_g."""
    counts = np.isfinite(bounds.lbg) | np.isfinite(bounds.ubg)
    old, new = (np.maximum(row_maxima(J)[counts], SCALE_GOAL) for J in (start, now))
    return largest(old / new)


def _widening(bounds: Vector, relaxation: float, most: Vector) -> Vector:
    """How far a relaxation moves bounds."""
    return np.minimum(relaxation * np.maximum(1.0, np.abs(bounds)), most)


def _row_scales(steep: Vector, *, even: bool) -> Vector:
    """Of each row, for the largest entry of its gradient at the start."""
    if even:
        return np.where(steep > _EVEN, np.maximum(1.0 / np.maximum(steep, 1.0), _LEAST_SCALE), 1.0)
    return np.maximum(_LEAST_SCALE, np.minimum(SCALE_GOAL / np.maximum(steep, TINY), 1.0))


def _smaller(lower: Vector, upper: Vector) -> Vector:
    """The smaller |bound| of each entry, 0 where there is none."""
    sizes = np.minimum(np.abs(lower), np.abs(upper))
    return np.where(np.isfinite(sizes), sizes, 0.0)
