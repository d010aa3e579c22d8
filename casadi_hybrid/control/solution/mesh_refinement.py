"""A mesh that is refined until the trajectory between the grid points is accurate."""

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

_PIECES = 4
"""An interval is cut into that many at most in a round."""

_AIM = 0.5
"""The next round aims at this part of the tolerance."""

_APART = 2.0
"""Largest distance of two trajectories of one kind, in changes of a state over an interval."""

_TRIES = 2
"""Meshes in a row that lead nowhere, before it stops."""


@dataclass(frozen=True)
class Round:
    """One solve of a refinement.

    Attributes:
        intervals: of its mesh.
        error: the largest distance from an independent integration, in units of the scale.
        violation: the largest excess over a hard limit in between, in units of the scale.
        iterations: of the solver.
        success: whether the solver found a solution.
        objective: what it cost.
        note: what is wrong with it, where it was left: no solution, or another trajectory.
    """

    intervals: int
    error: float
    violation: float
    iterations: int
    success: bool
    objective: float
    note: str = ""

    @property
    def worst(self) -> float:
        """The larger of error and violation."""
        return max(self.error, self.violation)


@dataclass(frozen=True)
class Refined:
    """Result of a refinement; ``str()`` of it is a table of the rounds.

    Attributes:
        ocp: the problem on the best mesh.
        solution: of it: of all meshes with a solution the one with the least error and violation.
        rounds: one for each solve.
        status: a sentence: why it stopped.
        success: whether error and violation are within the tolerance and the solver succeeded.
    """

    ocp: OptimalControl = field(repr=False)
    solution: Solution = field(repr=False)
    rounds: tuple[Round, ...]
    status: str
    success: bool

    def __str__(self) -> str:
        lines = ["intervals      error  violation  iterations  objective"]
        lines += [
            f"{one.intervals:9d}  {one.error:9.2e}  {one.violation:9.2e}  {one.iterations:10d}"
            f"  {one.objective:.8g}{one.note and f'  {one.note}'}"
            for one in self.rounds
        ]
        return "\n".join([*lines, self.status])


@dataclass(frozen=True)
class _Mesh:
    """A problem on a mesh, what was found, and the error and excess of each interval."""

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

    In each round an independent integration (:meth:`Solution.error`) says how far each interval is
    from the model, and :meth:`Solution.violation` by how much hard limits are exceeded in between.
    Of an error e and a method of order q an interval is cut into (e / (tolerance / 2))^(1/q) parts,
    four at most; of a violation, of order 2, likewise. The next solve begins warm, at the last
    solution read at the new points.

    A finer mesh moves a trajectory by what its error and its mesh leave open. Where a state moves
    by more than ten times the estimated error and twice what an interval of the coarser mesh
    changes it, together, the solver went to another trajectory, such as one on the other side of an
    obstacle: the one before is kept, and once its intervals are halved instead. Of all meshes the
    best is returned.

    ``sum=`` costs, :meth:`OptimalControl.moves` and prices of soft limits count once an interval or
    a point, so that a finer mesh states another problem: a warning and ``status`` name them.

    Args:
        ocp: the problem on its first mesh; it stays as it is.
        x0, time, guess, **parameters: of each solve, see :meth:`OptimalControl.solve`; a reference
            given by columns is held between its grid points.
        tolerance: largest error and violation, divided by the scale of the state or constraint.
        most: number of intervals.
        rounds: number of solves.
        n: number of times inside of an interval at which the error is measured.
        integrator: see :meth:`Solution.error`.
        follow: whether another trajectory is taken for the next round instead of the one before.

    Returns:
        The problem on the best mesh and its solution, also where the tolerance is not met: see
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
    positive(tolerance, "tolerance")
    count(most, "most", at_least=1)
    count(rounds, "rounds", at_least=1)
    fractions, now = ocp.fractions, ocp
    done: list[Round] = []
    last = best = None
    lost = 0
    while True:
        given = {
            name: moved_to(value, now.given[name].size, fractions, now.fractions, held=True)
            if name in now.given and now.given[name].varying
            else value
            for name, value in parameters.items()
        }
        new = _measured(now, now.solve(x0, time=time, guess=guess, **given), n, integrator)
        reason = _in_the_way(new.solution) if not new.round.success else ""
        if not reason and last is not None and last.round.success and not follow:
            reason = _elsewhere(last, new)
        note = ("another trajectory" if new.round.success else "not solved") if reason else ""
        done.append(replace(new.round, note=note))
        lost = lost + 1 if reason else 0
        if not reason and (best is None or new.round.worst <= best.round.worst):
            best = new
        if not reason or last is None or not last.round.success:
            last = new
        mesh = _finer(last, tolerance)
        if reason and last is not new:
            old = last.ocp.fractions
            mesh = np.union1d(old, (old[:-1] + old[1:]) / 2)
        met = best is not None and best.round.worst <= tolerance
        # A finer mesh may be what it lacks: a coarse one can be infeasible where limits are tight.
        if met and not reason:
            stop = "The error and the violation are within the tolerance"
        elif lost >= _TRIES:
            tried = " and ".join(str(one.intervals) for one in done[-lost:])
            stop = f"On {tried} intervals {reason}"
        elif len(done) >= rounds:
            stop = f"The tolerance is not met after {rounds} rounds. Give more, rounds=, or inner=."
        elif mesh.size - 1 > most:
            stop = f"The tolerance is not met: the next mesh would have {mesh.size - 1} intervals."
        else:
            guess, now = last.solution, ocp.on_mesh(mesh)
            continue
        kept = best or last
        status = _status(ocp, stop, best, met and not reason)
        return Refined(kept.ocp, kept.solution, tuple(done), status, met)


def _measured(ocp: OptimalControl, solution: Solution, n: int, integrator: str | None) -> _Mesh:
    error = solution.error(n, integrator=integrator).by_interval
    beyond = solution.violation().by_interval  # as print(found) and verify look at it
    beyond = beyond if beyond.size else np.zeros(ocp.intervals)
    one = Round(
        ocp.intervals,
        float(error.max()),
        float(beyond.max()),
        solution.iterations,
        solution.success,
        solution.objective,
    )
    return _Mesh(ocp, solution, error, beyond, one)


def _status(ocp: OptimalControl, stop: str, best: _Mesh | None, met: bool) -> str:
    """Why it stopped, at which mesh, and what that changes in the problem, with a warning."""
    if best is None:
        return stop
    said = [f"{stop} with {best.round.intervals} intervals."]
    if not met:
        at = f"The best mesh has {best.round.intervals} intervals."
        said = [stop, at, warning(best.solution.exceeded, best.ocp.method.finer())]
    if best.ocp.intervals > ocp.intervals and (changed := _by_mesh(ocp)):
        warn(f"refine of {ocp.name}: {changed}")
        said.append(changed)
    return " ".join(filter(None, said))


def _by_mesh(ocp: OptimalControl) -> str:
    """Name the terms that mean something else on a finer mesh, and their remedy; else nothing."""
    before = ca.vertcat(ca.SX(0, 1), *map(ocp.previous, ocp.lagged.values()))
    terms = [(c.name, c.sum, "give integral=") for c in ocp.costs if not c.sum.is_zero()]
    excess = "price a control that is its excess by integral="
    terms += [
        (c.name, c.expression, excess if c.soft else "")
        for c in ocp.constraints
        if c.place == "path"
    ]
    moved = "make the control a state and its rate the control"
    found = {name: moved if ca.depends_on(of, before) else remedy for name, of, remedy in terms}
    said = "; ".join(f"{name} ({remedy})" for name, remedy in found.items() if remedy)
    return said and (
        "The finer mesh changed the problem, for sums, moves and prices of soft limits count once "
        f"an interval or a point: {said}."
    )


def _elsewhere(old: _Mesh, new: _Mesh) -> str:
    """Name the state and time of the largest jump to a trajectory of another kind; else nothing.

    Compared at the grid points of both, in fractions of the duration; a free one counts as a state.
    """
    at = np.union1d(old.ocp.fractions, new.ocp.fractions)
    before, after = (mesh.solution.sampled(at) for mesh in (old, new))
    states, model, free = old.solution.values, old.ocp.model, old.ocp.free_duration
    compared = {
        name: (after[name] - before[name], states[name], signal.scale, signal.unit)
        for name, signal in model.signals["state"].items()
    }
    if free is not None:
        gap = np.full((1, at.size), new.solution.duration - old.solution.duration)
        times, scale = old.solution.times[None], np.atleast_1d(free.guess)
        compared["duration"] = (gap, times, scale, model.time_unit)
    far = {}
    for name, (gap, rows, scale, _) in compared.items():
        allowed = _APART * np.abs(np.diff(rows)).max() + 10.0 * old.round.error * scale[:, None]
        far[name] = np.abs(gap) / allowed
    name = max(far, key=lambda name: far[name].max())
    entry, k = np.unravel_index(int(np.argmax(far[name])), far[name].shape)
    if not far[name][entry, k] > 1.0:
        return ""
    gap, *_, unit = compared[name]
    when = old.solution.times[0] + at[k] * old.solution.duration
    return (
        f"the solver went to another trajectory: {entry_name(name, int(entry), gap)} is "
        f"{in_unit(abs(gap[entry, k]), unit)} away at {in_unit(when, model.time_unit)}, the "
        f"objective {new.round.objective:.6g} instead of {old.round.objective:.6g}. The one "
        "before is kept; follow=True takes the other."
    )


def _in_the_way(solution: Solution) -> str:
    """Why there is no solution, with the limit that is violated most where it ended."""
    said = "the solver found no solution: " + solution.explanation.split("\n", 1)[0]
    worst = ", ".join(map(str, solution.unmet[:2]))
    return f"{said} In the way: {worst}." if worst else said


def _finer(mesh: _Mesh, tolerance: float) -> Array:
    ocp, error, beyond = mesh.ocp, mesh.error, mesh.beyond
    pieces = np.ones(error.size)
    for values, q in ((error, ocp.method.order), (beyond, 2)):
        bad = values > tolerance
        with np.errstate(over="ignore"):
            wanted = np.ceil((values[bad] / (_AIM * tolerance)) ** (1.0 / q))
        pieces[bad] = np.maximum(pieces[bad], np.clip(wanted, 2, _PIECES))
    old = ocp.fractions
    parts = [np.linspace(old[k], old[k + 1], int(pieces[k]) + 1)[:-1] for k in range(error.size)]
    return np.append(np.concatenate(parts), 1.0)
