"""Mesh refinement until the trajectory between the grid points is accurate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.excess import entry_name, in_unit
from casadi_hybrid.control.model.signals import Array
from casadi_hybrid.control.solution.checking import warning
from casadi_hybrid.control.solution.ocp import OptimalControl
from casadi_hybrid.control.solution.solution import Solution
from casadi_hybrid.control.transcription.statement import moved_to
from casadi_hybrid.utils.errors import InputError, warn
from casadi_hybrid.utils.inputs import count, positive

# Largest number of parts into which an interval is cut in a round.
_PIECES = 4

# The next round aims at this part of the tolerance.
_AIM = 0.5

# Largest distance of two trajectories of one kind, in changes of a state over an interval.
_APART = 2.0

# Least distance that is allowed: a constant state without an error has none, and 0 / 0 is NaN.
_LEAST = 1e-300

# Rejected meshes in a row before the refinement stops.
_TRIES = 2


@dataclass(frozen=True)
class Round:
    """One solve of a refinement."""

    intervals: int
    error: float  # largest distance from an independent integration, in scales
    violation: float  # largest excess over a hard limit in between, in scales
    iterations: int
    success: bool
    objective: float
    note: str = ""  # reason to reject the solve: no solution, or another trajectory

    @property
    def worst(self) -> float:
        """The larger of error and violation."""
        return max(self.error, self.violation)


@dataclass(frozen=True)
class Refined:
    """Result of a refinement; ``str()`` of it is a table of the rounds.

    Attributes:
        ocp: the problem on the best mesh.
        solution: on the mesh with the least error and violation of all that have a solution.
        rounds: one for each solve.
        status: reason to stop, in a sentence.
        success: True if error and violation are within the tolerance and the solver succeeded.
    """

    ocp: OptimalControl = field(repr=False)
    solution: Solution = field(repr=False)
    rounds: tuple[Round, ...]
    status: str
    success: bool

    def __str__(self) -> str:
        lines = ["intervals      error  violation  iterations  objective"]
        for r in self.rounds:
            line = f"{r.intervals:9d}  {r.error:9.2e}  {r.violation:9.2e}  {r.iterations:10d}"
            lines.append(f"{line}  {r.objective:.8g}{r.note and f'  {r.note}'}")
        return "\n".join([*lines, self.status])


@dataclass(frozen=True)
class _Mesh:
    """Problem on a mesh, its solution, and the error and excess of each interval."""

    ocp: OptimalControl
    solution: Solution
    error: Array
    beyond: Array
    round: Round


def refine(
    ocp: OptimalControl,
    x0: Any = None,
    *,
    tolerance: float,
    most: int = 400,
    rounds: int = 10,
    n: int = 4,
    time: float = 0.0,
    guess: Any = None,
    integrator: str | None = None,
    follow: bool = False,
    **parameters: Any,
) -> Refined:
    """Solve on finer and finer meshes until the solution holds between the grid points too.

    In each round an independent integration (:meth:`Solution.error`) measures the error of each
    interval, and :meth:`Solution.violation` the excess over hard limits between the grid points.
    With an error e and a method of order q an interval is cut into (e / (tolerance / 2))^(1/q)
    parts, four at most; with a violation, of order 2, likewise. The next solve starts warm, from
    the last solution read at the new points.

    A state that moves by more than ten times the estimated error plus twice its largest change over
    an interval of the coarser mesh belongs to another trajectory, such as one on the other side of
    an obstacle. The previous solution is then kept, and once its intervals are halved instead. The
    best of all meshes is returned.

    ``sum=`` costs, :meth:`OptimalControl.moves` and prices of soft limits count once an interval or
    a point, so that a finer mesh states another problem: a warning and ``status`` name them.

    Args:
        ocp: the problem on its first mesh; it is not changed.
        x0, time, guess, **parameters: of each solve, see :meth:`OptimalControl.solve`; a reference
            given by columns is held between its grid points.
        tolerance: largest error and violation, divided by the scale of the state or constraint.
        most: number of intervals.
        rounds: number of solves.
        n: number of times inside of an interval at which the error is measured.
        integrator: see :meth:`Solution.error`.
        follow: True to continue from another trajectory instead of the previous one.

    Returns:
        The problem on the best mesh and its solution, also if the tolerance is not met: see
        ``success`` and ``status``.

    Raises:
        InputError: for arguments that do not fit, and for a discrete model.

    Example:
        >>> import casadi as ca
        >>> from casadi_hybrid.control import Collocation, Model
        >>> model = Model("pendulum")
        >>> angle, rate = model.state("angle"), model.state("rate")
        >>> torque = model.control("torque", lower=-2, upper=2)
        >>> model.rates(angle=rate, rate=torque - 9.81 * ca.sin(angle))
        >>> ocp = OptimalControl(model, duration=2.0, intervals=5, method=Collocation(2))
        >>> ocp.initial(angle=1.0, rate=0.0)
        >>> ocp.minimize("effort", integral=angle**2 + torque**2)
        >>> found = refine(ocp, tolerance=1e-3)
        >>> found.success, found.solution.error().largest <= 1e-3
        (True, True)

    Source: J. T. Betts, "Practical Methods for Optimal Control and Estimation Using Nonlinear
    Programming", SIAM 2010, section 4.7, which estimates the errors and cuts likewise.
    """
    if not isinstance(ocp, OptimalControl):
        raise InputError(f"ocp must be an OptimalControl, got {type(ocp).__name__}")
    if ocp.model.discrete:
        raise InputError(f"{ocp.model.name} is discrete; refinement is for models with rates")
    values = dict(parameters)
    positive(tolerance, "tolerance")
    count(most, "most", at_least=1)
    count(rounds, "rounds", at_least=1)
    references = {name: s for name, s in ocp.given.items() if s.varying and name in parameters}
    refined = ocp
    done: list[Round] = []
    last = best = None
    rejected = 0
    while True:
        meshes = ocp.fractions, refined.fractions
        values |= {
            name: moved_to(parameters[name], signal.size, *meshes, held=True)
            for name, signal in references.items()
        }
        solution = refined.solve(x0, time=time, guess=guess, **values)
        new = _measured(refined, solution, n, integrator)
        reason = _in_the_way(new.solution) if not new.round.success else ""
        if not reason and last is not None and last.round.success and not follow:
            reason = _elsewhere(last, new)
        note = "another trajectory" if new.round.success else "not solved"
        done.append(replace(new.round, note=note if reason else ""))
        rejected = rejected + 1 if reason else 0
        if not reason and (best is None or new.round.worst <= best.round.worst):
            best = new
        if not reason or last is None or not last.round.success:
            last = new
        mesh = _finer(last, tolerance)
        if reason and last is not new:
            old = last.ocp.fractions
            mesh = np.union1d(old, (old[:-1] + old[1:]) / 2)
        met = best is not None and best.round.worst <= tolerance
        # After a rejected mesh a finer one may help: a coarse one can be infeasible by itself.
        if met and not reason:
            stop = "The error and the violation are within the tolerance"
        elif rejected >= _TRIES:
            tried = " and ".join(str(r.intervals) for r in done[-rejected:])
            stop = f"On {tried} intervals {reason}"
        elif len(done) >= rounds:
            stop = f"The tolerance is not met after {rounds} rounds. Give more, rounds=, or inner=."
        elif mesh.size - 1 > most:
            stop = f"The tolerance is not met: the next mesh would have {mesh.size - 1} intervals."
        else:
            guess, refined = last.solution, ocp.on_mesh(mesh)
            continue
        result = best or last
        status = _status(ocp, stop, best, met and not reason)
        return Refined(result.ocp, result.solution, tuple(done), status, met)


def _measured(ocp: OptimalControl, solution: Solution, n: int, integrator: str | None) -> _Mesh:
    error = solution.error(n, integrator=integrator).by_interval
    beyond = solution.violation().by_interval  # at the times of print(solution) and verify
    beyond = beyond if beyond.size else np.zeros(ocp.intervals)
    outcome = solution.iterations, solution.success, solution.objective
    measured = Round(ocp.intervals, float(error.max()), float(beyond.max()), *outcome)
    return _Mesh(ocp, solution, error, beyond, measured)


def _status(ocp: OptimalControl, stop: str, best: _Mesh | None, met: bool) -> str:
    """Return the reason to stop and the mesh; warn of terms that depend on the mesh."""
    if best is None:
        return stop
    sentences = [f"{stop} with {best.round.intervals} intervals."]
    if not met:
        mesh = f"The best mesh has {best.round.intervals} intervals."
        sentences = [stop, mesh, warning(best.solution.exceeded, best.ocp.method.finer())]
    changed = _by_mesh(ocp) if best.ocp.intervals > ocp.intervals else ""
    if changed:
        warn(f"refine of {ocp.name}: {changed}")
    return " ".join(filter(None, [*sentences, changed]))


def _by_mesh(ocp: OptimalControl) -> str:
    """Name the terms that depend on the mesh, and their remedy; else nothing."""
    previous = ca.vertcat(ca.SX(0, 1), *map(ocp.previous, ocp.lagged.values()))
    terms = [(c.name, c.sum, "give integral=") for c in ocp.costs if not c.sum.is_zero()]
    excess = "price a control that is its excess by integral="
    paths = [c for c in ocp.constraints if c.place == "path"]
    terms += [(c.name, c.expression, excess if c.soft else "") for c in paths]
    remedies = {}
    for name, expression, remedy in terms:
        lagged = ca.depends_on(expression, previous)
        remedies[name] = "make the control a state and its rate the control" if lagged else remedy
    words = "; ".join(f"{name} ({remedy})" for name, remedy in remedies.items() if remedy)
    return words and (
        "The finer mesh changed the problem, for sums, moves and prices of soft limits count once "
        f"an interval or a point: {words}."
    )


def _elsewhere(old: _Mesh, new: _Mesh) -> str:
    """Name the state and time of the largest jump to a trajectory of another kind; else nothing."""
    # In fractions of the duration; a free duration counts as a state.
    fractions = np.union1d(old.ocp.fractions, new.ocp.fractions)
    before, after = (mesh.solution.sampled(fractions) for mesh in (old, new))
    model, free = old.ocp.model, old.ocp.free_duration
    compared = {}
    for name, signal in model.signals["state"].items():
        rows = old.solution.values[name]
        compared[name] = after[name] - before[name], rows, signal.scale, signal.unit
    if free is not None:
        gap = np.full((1, fractions.size), new.solution.duration - old.solution.duration)
        times, scale = old.solution.times[None], np.atleast_1d(free.guess)
        compared["duration"] = (gap, times, scale, model.time_unit)
    ratios = {}
    for name, (gap, rows, scale, _) in compared.items():
        # The coarse trajectory may be off by its error and by its resolution.
        allowed = _APART * np.abs(np.diff(rows)).max() + 10.0 * old.round.error * scale[:, None]
        ratios[name] = np.abs(gap) / np.maximum(allowed, _LEAST)
    name = max(ratios, key=lambda name: ratios[name].max())
    entry, k = np.unravel_index(int(np.argmax(ratios[name])), ratios[name].shape)
    if not ratios[name][entry, k] > 1.0:
        return ""
    gap, *_, unit = compared[name]
    when = old.solution.times[0] + fractions[k] * old.solution.duration
    return (
        f"the solver went to another trajectory: {entry_name(name, int(entry), gap)} is "
        f"{in_unit(abs(gap[entry, k]), unit)} away at {in_unit(when, model.time_unit)}, the "
        f"objective {new.round.objective:.6g} instead of {old.round.objective:.6g}. The one "
        "before is kept; follow=True takes the other."
    )


def _in_the_way(solution: Solution) -> str:
    """Return the reason for a failure, with the most violated limits at the returned point."""
    reason = "the solver found no solution: " + solution.explanation.split("\n", 1)[0]
    worst = ", ".join(map(str, solution.unmet[:2]))
    return f"{reason} In the way: {worst}." if worst else reason


def _finer(mesh: _Mesh, tolerance: float) -> Array:
    ocp, error, beyond = mesh.ocp, mesh.error, mesh.beyond
    # An error e ∝ hᵠ falls to the aim if the interval is cut into (e / aim)^(1/q) parts.
    pieces = np.ones(error.size)
    # Between two points a smooth trajectory exceeds a limit by O(h²).
    for values, q in ((error, ocp.method.order), (beyond, 2)):
        bad = values > tolerance
        with np.errstate(over="ignore"):
            needed = np.ceil((values[bad] / (_AIM * tolerance)) ** (1.0 / q))
        # At most four parts, as e ∝ hᵠ holds for small h alone.
        pieces[bad] = np.maximum(pieces[bad], np.clip(needed, 2, _PIECES))
    old = ocp.fractions
    parts = [np.linspace(old[k], old[k + 1], int(pieces[k]) + 1)[:-1] for k in range(error.size)]
    return np.append(np.concatenate(parts), 1.0)
