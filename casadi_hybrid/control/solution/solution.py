"""A solution by name and in physical units."""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from casadi_hybrid.control.model.excess import Excess, entry_name
from casadi_hybrid.control.model.signals import Array, Named, known, number, plain
from casadi_hybrid.control.solution import checking, storing
from casadi_hybrid.control.solution.dense import Dense, Samples, by_names
from casadi_hybrid.control.transcription.initial_guess import trajectory_blocks
from casadi_hybrid.control.transcription.program import Block, Program, Role
from casadi_hybrid.control.transcription.statement import Statement
from casadi_hybrid.control.transcription.terms import SOFT
from casadi_hybrid.control.transcription.transcription import Transcription
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import count
from casadi_hybrid.utils.output.files import pandas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from casadi_hybrid.control.solution.sensing import Slopes
    from casadi_hybrid.solver.result import Result


@dataclass(frozen=True, kw_only=True)
class Ended:
    """Returned point of a solver, its statistics, and its figure."""

    # With the values of the solve; x and multipliers are scaled as its unknowns and rows.
    # L = f + lam_gᵀ g + lam_xᵀ x: positive at an active upper bound.
    program: Program = field(repr=False)
    x: Array = field(repr=False)
    lam_x: Array = field(repr=False)
    lam_g: Array = field(repr=False)
    objective: float
    stats: Mapping[str, Any] = field(repr=False)
    explanation: str = ""

    @property
    def success(self) -> bool:
        """True if the solver reports a solution, at the points where limits hold."""
        return bool(self.stats["success"])

    @property
    def iterations(self) -> int:
        """Steps of the solver."""
        return int(self.stats["iter_count"])

    @property
    def _ending(self) -> str:
        return f"{'Solved' if self.success else 'Not solved'} in {self.iterations} iterations"

    @classmethod
    def load(cls, path: str | Path, ocp: Any) -> Any:
        """Read a solution of a problem, stated as it was when saved.

        The problem's costs, rows and limits at the point must equal those of the file.
        :meth:`Saved.read` reads a file without its problem.

        Args:
            ocp: the problem: an :class:`OptimalControl`, :class:`Phases` or :class:`Scenarios`.

        Returns:
            The solution, of the type that ``solve`` of the problem returns.

        Raises:
            InputError: for a file without a solution, or of another problem; the message names
                the difference.
        """
        saved = storing.Saved.read(path)
        return ocp.solution(saved.program(ocp), saved.point, saved.stats, saved.explanation)

    def plot(
        self,
        names: Sequence[str] | None = None,
        *,
        path: str | Path | None = None,
        label: str | None = None,
        tol: float = 1e-6,
    ) -> Figure:
        """Return a figure fit to publish, a panel for each quantity.

        Lines run between the grid points, dots are the grid points, held controls are stairs.
        Limits are dashed, a limit of one entry alone in its colour, and marked where they are
        active. Each of several parts has a colour.

        Args:
            names: of quantities and path constraints; by default all states, algebraic states,
                controls and path constraints.
            path: file to write; its suffix chooses the format: ``.pdf``, ``.svg``, ``.png``.
            label: of the time axis; by default with the model's ``time_unit``.
            tol: of active limits, see :meth:`Solution.active`.

        Raises:
            InputError: for an unknown name.
        """
        from casadi_hybrid.control.solution.drawing import draw  # noqa: PLC0415 (matplotlib)

        return draw(getattr(self, "parts", {"": self}), names, label, tol, path)

    def report(self, path: str | Path, result: Result | None = None) -> Path:
        """Write one self-contained HTML page with the trajectories, and return its path.

        Args:
            path: file to write, ``.html``; an existing one is replaced.
            result: of this solve, ``ocp.solver.result`` right after it; it adds the contents of
                :meth:`Result.report`: residuals, multipliers by name, the course of the solve.

        Raises:
            InputError: before any work for a path that does not fit, for the result of another
                solve, and without jinja2; the message says what to install.
            OSError: where the file cannot be written.
        """
        from casadi_hybrid.solver.report.page import write_page  # noqa: PLC0415 (matplotlib)

        if result is not None and not np.array_equal(result.x, self.x):
            raise InputError(
                "result is of another solve than this solution; "
                "pass ocp.solver.result right after ocp.solve()"
            )

        def explain() -> str:
            lines = [*str(self).splitlines(), *(result.explain() if result else "").splitlines()]
            return "\n".join(dict.fromkeys(lines))  # a failed solve has its explanation in both

        return write_page(
            result, explain, path, trajectories=self.plot, name=self.program.name, solution=self
        )


@dataclass(frozen=True)
class Solution(Ended):
    """Solution of an optimal control problem.

    ``solution["speed"]`` is a trajectory: a vector for a quantity with one entry, else a matrix
    with a column a time. States, algebraic states, references and outputs are at :attr:`times`. A
    held control has one value for each interval, :attr:`control_times`; a parameter is a number, or
    a vector. Algebraic states of a collocation are unknowns at its points; at a grid point they
    have the values of :meth:`at`, with the held control of the interval that begins.

    Attributes:
        ocp: the problem.
        transcription, dense: its functions, and the trajectories as functions of time.
        program: with the numbers of the solve.
        x, lam_x, lam_g: the point and the multipliers, in the program's scaled unknowns.
        objective: f, the sum of the costs.
        times: of the grid points.
        values: every trajectory by name, as matrices.
        costs: by name; ``"soft limits"`` is the price of violated soft limits, if there are any.
        stats: the solver's; ``success``, ``return_status``, ``iter_count``, ….
        explanation: reasons in sentences if the point is no solution.
    """

    ocp: Statement = field(repr=False)
    transcription: Transcription = field(repr=False)
    dense: Dense = field(repr=False)
    times: Array = field(repr=False)
    values: Mapping[str, Array] = field(repr=False)
    costs: Mapping[str, float]

    def __str__(self) -> str:
        """Status, costs, and flaws between the grid points or reasons for a failure."""
        parts = ", ".join(f"{name} {value:.6g}" for name, value in self.costs.items())
        line = f"{self._ending}: {self.ocp.name}, duration {self.duration:.6g}"
        line += f", objective {self.objective:.6g}" + (f" ({parts})" if parts else "")
        fixed = {*self.ocp.fixed, *self.ocp.cycles}
        free = [name for name in self.ocp.model.signals["state"] if name not in fixed]
        if self.ocp.fixed and free:  # perhaps forgotten in initial(…)
            line += f"\nfree at the start: {', '.join(free)}"
        flaws = [self.cautions] if self.success else [self.another_guess, self.explanation]
        return "\n".join(filter(None, (line, *flaws)))

    __repr__ = __str__

    @classmethod
    def of(
        cls, ocp: Statement, transcription: Transcription, program: Program, x: Array, **more: Any
    ) -> Solution:
        """Read a point of the program."""
        # The limits of the solve, perhaps not those declared.
        ocp = ocp.limited(program.limits)
        dense = Dense(ocp, transcription, x, program.p)
        values = by_names(ocp, dense.X, dense.Z, dense.U, dense.P, dense.Y)
        for name, signal in ocp.model.signals["control"].items():
            if signal.linear:
                values[name] = program.variables[name].read(x)
        names = [*(cost.name for cost in ocp.costs), SOFT]  # the last one only for soft limits
        costs = Named(zip(names, dense.costs.ravel().tolist(), strict=False), "cost")
        # Of a part its own costs, without the weight of a scenario.
        more |= {"program": program, "x": x, "objective": sum(costs.values())}
        return cls(ocp, transcription, dense, dense.times, values, costs, **more)

    def __getitem__(self, name: str) -> Any:
        """Return a trajectory by name; the value or values of a parameter."""
        rows, signal = known(name, self.values, "trajectory"), self.ocp.given.get(name)
        constant = signal is not None and not signal.varying and name not in self.ocp.lagged
        return number(rows[:, 0]) if constant else plain(rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def keys(self) -> KeysView[str]:
        """The names of the trajectories."""
        return self.values.keys()

    @property
    def duration(self) -> float:
        """From the first to the last time."""
        return float(self.times[-1] - self.times[0])

    @property
    def control_times(self) -> Array:
        """The beginnings of the intervals."""
        return self.times[:-1]

    @property
    def states(self) -> Array:
        """All states, one below the other, a column a time."""
        return self.dense.X.copy()

    @property
    def controls(self) -> Array:
        """All controls at the beginning of each interval, one below the other."""
        return self.dense.U.copy()

    @property
    def multipliers(self) -> dict[str, Array]:
        """Multipliers by constraint, or by variable for its limits, per physical unit.

        Positive at an active upper limit, negative at a lower one. The name of a quantity or
        constraint has the sum over the places of an interval, a column for each grid point or
        interval. The sum over the columns is minus the slope of the objective by the limit. Each
        place has a name of its own beside it, ``"gap inside"``.
        """
        multipliers: dict[str, Array] = {}
        parts: dict[str, list[tuple[Role, Array, Array]]] = {}
        limitable = self.ocp.limitable
        for key, stacked, *_, blocks in self.program.sides(self.lam_x, self.lam_g):
            for name, block in blocks.items():
                values = multipliers[name] = block.read(stacked, dual=True)
                if block.role.kind == "limit" and block.role.quantity in limitable:
                    stages = self.program.stages[key][block.where[:: block.shape[0] or 1]]
                    part = block.role, stages, values
                    parts.setdefault(block.role.quantity, []).append(part)
        for name, places in parts.items():
            if len(places) == 1 and not places[0][0].side:
                multipliers[name] = places[0][2]
                continue
            columns = np.unique(np.concatenate([stages for _, stages, _ in places]))
            multipliers[name] = np.zeros((limitable[name].lower.size, columns.size))
            for role, stages, values in places:
                rows = np.array(role.entries or range(limitable[name].lower.size))
                at = rows[:, None], np.searchsorted(columns, stages)
                # The places of an interval share one limit: they add up. Indices repeat, so no +=.
                np.add.at(multipliers[name], at, values)
        by_name = {name: plain(rows) for name, rows in multipliers.items()}
        return Named(by_name, "constraint or variable")

    @property
    def units(self) -> dict[str, str]:
        """Units of all quantities by name."""
        kinds = (*self.ocp.model.signals.values(), self.ocp.signals)
        return {name: signal.unit for kind in kinds for name, signal in kind.items()}

    def at(self, times: Any) -> Samples:
        """Return every quantity by name at times of the horizon; see :class:`Dense`.

        At a jump a held control has the value of the interval that begins.

        Args:
            times: a vector, or one number, for which the values have no axis of time.

        Raises:
            InputError: for a time outside of the horizon.
        """
        return self.dense.samples(*self.dense.locate(times), single=np.ndim(times) == 0)

    def sample(self, n: int = 10) -> Samples:
        """Return every quantity by name at n equally spaced times an interval, and at the end."""
        n = count(n, "n", at_least=1)
        return self.dense.samples(*self.dense.each(np.arange(n) / n, end=True))

    def sampled(self, fractions: Array) -> Mapping[str, Array]:
        """Return every quantity at fractions of the duration, as matrices by name."""
        dense = self.dense
        times = self.times[0] + fractions * self.duration
        return dense.samples(*dense.locate(np.clip(times, *self.times[[0, -1]]))).rows

    def residual(self, n: int = 10) -> Samples:
        """Return (dx/dt − rate) / scale by state: the residual of the model's equations.

        Args:
            n: number of times an interval, the midpoints of equal parts.

        Raises:
            InputError: for a discrete model, which has no rates.
        """
        return checking.residual(self.dense, count(n, "n", at_least=1))

    def error(
        self, n: int = 4, *, whole: bool = False, integrator: str | None = None
    ) -> checking.Errors:
        """Return the distance from an accurate integration; printed, the largest and when.

        Args:
            n: number of times inside of each interval, besides its end.
            whole: True for one integration through the horizon. By default each interval has its
                own, from the trajectory's grid point, so that an unstable model shows the error of
                the method alone.
            integrator: ``"DOP853"`` of SciPy (the default), ``"cvodes"`` for stiff models,
                ``"idas"`` for algebraic states.

        Raises:
            InputError: for a discrete model, and for an integrator that does not fit.
        """
        n = count(n, "n", at_least=1)
        return checking.error(self.dense, n, whole=whole, integrator=integrator)

    def violation(self, n: int = checking.POINTS) -> checking.Violations:
        """Return the excess over hard limits between grid points; printed, the largest and when.

        By the name of the quantity or of the path constraint, the largest of each interval,
        divided by the scale.

        Args:
            n: number of times an interval, the midpoints of equal parts; others lie between the
                points at which the method holds limits.
        """
        return checking.violation(self.dense, count(n, "n", at_least=1))

    @cached_property
    def exceeded(self) -> tuple[Excess, ...]:
        """The limits that are exceeded between grid points by over 1e-4 of the scale."""
        return self.violation().noted

    @property
    def cautions(self) -> str:
        """Warnings about the trajectory between the grid points, in sentences."""
        beyond = checking.warning(self.exceeded, self.ocp.method.finer())
        return "\n".join(filter(None, (beyond, checking.coarse(self.dense))))

    @property
    def unmet(self) -> list[Excess]:
        """Largest violations where limits should hold, the worst first; none of a solution."""
        return checking.unmet(self.program, self.x, self.ocp, self.times)

    @property
    def another_guess(self) -> str:
        """Advice before a limit is relaxed: states given beyond their limits, or another guess.

        Empty for a solution, and if linear constraints alone contradict each other.
        """
        outside = "" if self.success else checking.outside(self.ocp, self.program)
        if outside:
            return f"{outside}: change that, or the limit."
        if self.stats.get("point_status") not in ("INFEASIBLE_STATIONARY", "UNDEFINED"):
            return ""
        # Linear rows that contradict each other do so from any guess.
        contradiction = self.explanation.partition("Worst violations")[0]
        initial = checking.unmet(self.program, self.program.x0, self.ocp, self.times)
        states = self.ocp.model.signals["state"].keys()
        first, last = (states <= fixed.keys() for fixed in (self.ocp.fixed, self.ocp.ends))
        for excess in self.unmet:
            name, at = checking.curved(self.ocp, excess.of), excess.time
            if name and ((first and at <= self.times[0]) or (last and at >= self.times[-1])):
                return f"{excess}, where all states are given: move them, or the limit."
            if name and ("contradict" not in contradiction or name in contradiction):
                too = ", as in the guess" if excess.name in {e.name for e in initial} else ""
                return (
                    f"First begin with another guess, solve(guess=…): {excess} where the solve "
                    f"ended{too}. It is nonlinear, so that a feasible point may be elsewhere."
                )
        return ""

    def active(self, tol: float = 1e-6, *, side: str = "either") -> dict[str, Array]:
        """Return the active limits by name, as booleans over time.

        Names are those of :attr:`multipliers`; equations are left out. A limit that holds within
        the intervals too has a second name, ``"gap inside"`` next to ``"gap"``, and ``"gap at
        end"`` for a value that jumps between intervals. A limit is active within
        10·tol·max(1, |limit|), and if its multiplier exceeds the distance to it, both in units of
        the scale: the rule of :func:`casadi_hybrid.verify.verify`.

        Args:
            tol: of the solve.
            side: ``"lower"``, ``"upper"`` or ``"either"``.
        """
        at, lam = (self.x, self.program.at(self.x)[1]), (self.lam_x, self.lam_g)
        return Named(checking.active(self.program, at, lam, tol, side), "limit")

    def sensitivity(self, name: str, *, weak: float = 1e-4) -> Slopes:
        """Return d(trajectory)/d(parameter) by name, in units, at the solution.

        By the implicit function theorem with the present active limits: see
        :func:`casadi_hybrid.solution_sensitivity`. To first order the solution for a parameter
        that is larger by d is ``found["angle"] + d * found.sensitivity("load")["angle"]``.

        Args:
            name: of a parameter or reference, ``"initial angle"`` of a state that is given at the
                start, or ``"time"`` at the start; references given as functions of time keep the
                numbers that they had in the solve.
            weak: largest multiplier and distance of a weakly active limit, near a kink; a
                ``SensitivityWarning`` names such limits.

        Raises:
            InputError: for an unknown name.
            SensitivityError: for a solution without a derivative.
        """
        from casadi_hybrid.control.solution.sensing import slopes_of  # noqa: PLC0415 (SciPy)

        return slopes_of(self, name, weak)

    def start_of(self, ocp: Statement, program: Program) -> dict[str, Array]:
        """Return ``x0``, ``lam_x0`` and ``lam_g0`` for a problem, also on another mesh.

        With another method or other constraints only ``x0`` is returned: an incomplete set of
        multipliers leads away from it. States and controls are read from the trajectory at the new
        points. Multipliers are those of the old interval there: costates unchanged, multipliers of
        limits in proportion to the length, as parts of an integral.
        """
        old, kinds = self.program, ("variables", "constraints")
        alike = all(_shapes(getattr(old, k)) == _shapes(getattr(program, k)) for k in kinds)
        if alike and np.array_equal(self.ocp.fractions, ocp.fractions):
            return {"x0": self.x, "lam_x0": self.lam_x, "lam_g0": self.lam_g}
        sizes = [{n: s.size for n, s in p.model.unknowns.items()} for p in (self.ocp, ocp)]
        if sizes[0] != sizes[1]:
            raise InputError(
                f"guess is a solution of {self.ocp.name}, whose states and controls are not those "
                f"of {ocp.name}: {sizes[0]}, not {sizes[1]}"
            )
        # k: the old interval that has the middle of each new one.
        fractions, before = ocp.fractions, self.ocp.fractions
        k = np.searchsorted(before, (fractions[:-1] + fractions[1:]) / 2, side="right") - 1
        ratio = np.diff(fractions) / np.diff(before)[k]
        k, ratio = np.append(k, before.size - 1), np.append(ratio, ratio[-1])  # and the last point

        def moved(kind: str, values: Array, target: Array, *, dual: bool) -> Array:
            blocks, sources = getattr(program, kind), getattr(old, kind)
            for name, _ in _shapes(blocks).items() & _shapes(sources).items():
                block, source = blocks[name], sources[name]
                rows = values[source.where].reshape(source.shape, order="F")
                if block.stride:
                    at, point = np.divmod(np.arange(block.shape[1]), block.stride)
                    rows = rows[:, np.minimum(k[at] * block.stride + point, source.shape[1] - 1)]
                    # Costates are pointwise; multipliers of limits are parts of an integral.
                    if dual and block.role.kind != "dynamics" and block.shape[1] > 1:
                        rows = rows * ratio[at]
                target[block.where] = rows.ravel(order="F")
            return target

        trajectories = trajectory_blocks(ocp, program)
        values = {label: self.sampled(at)[name] for name, label, at in trajectories}
        x0 = moved("variables", self.x, program.x0.copy(), dual=False)
        # Trajectories are read at the new points; other unknowns (violations, duration) are copied.
        start = {"x0": program.with_x0(x0).with_start(values).x0}
        if alike:
            # An incomplete set of multipliers would lead away from the solution.
            start["lam_x0"] = moved("variables", self.lam_x, np.zeros(program.n), dual=True)
            start["lam_g0"] = moved("constraints", self.lam_g, np.zeros(program.m), dual=True)
        return start

    def to_pandas(self, n: int = 1) -> Any:
        """Return a ``pandas.DataFrame`` of :meth:`sample`, with a row a time.

        Columns are named as the quantities, of those with several entries ``name[0]``, ``name[1]``.

        Raises:
            InputError: without pandas; the message says what to install.
        """
        pd, samples, columns = pandas(), self.sample(n), dict[str, Array]()
        for name, rows in samples.rows.items():
            columns |= {entry_name(name, i, rows): row for i, row in enumerate(rows)}
        return pd.DataFrame(columns, index=pd.Index(samples.times, name="time"))

    def save(self, path: str | Path) -> Path:
        """Write the solution to one ``.npz`` file without pickled objects; return its path."""
        more = {"units": self.units, "costs": self.costs}
        saved = storing.Saved.of(self, self.ocp.name, self.values, self.multipliers, **more)
        return saved.write(path)


def _shapes(blocks: Mapping[str, Block]) -> dict[str, tuple[int, int]]:
    """Return the properties of blocks on any mesh: entries and points an interval."""
    return {name: (block.shape[0], block.stride) for name, block in blocks.items()}
