"""A mesh that is refined until the trajectory between the grid points is accurate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from casadi_hybrid.basics.calls import told_call
from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.methods import Collocation
from casadi_hybrid.control.ocp import OptimalControl
from casadi_hybrid.control.signals import Array
from casadi_hybrid.control.solution import Solution
from casadi_hybrid.control.statement import Statement, moved_to

_PIECES = 4
"""An interval is cut into that many at most in a round."""

_AIM = 0.5
"""The next round aims at this part of the tolerance."""


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
    """

    intervals: int
    error: float
    violation: float
    iterations: int
    success: bool
    objective: float


@dataclass(frozen=True)
class Refined:
    """What a refinement came to; ``str()`` of it is a table of the rounds.

    Attributes:
        ocp: the problem on the last mesh.
        solution: of it.
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
            f"  {one.objective:.8g}{'' if one.success else '  not solved'}"
            for one in self.rounds
        ]
        return "\n".join([*lines, self.status])


@told_call
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
    **parameters: Any,
) -> Refined:
    """Solve on finer and finer meshes until the solution holds between the grid points too.

    In each round an independent integration (:meth:`Solution.error`) says how far each interval is
    from the model, and :meth:`Solution.violation` by how much hard limits are exceeded in between.
    Of an error e and a method of order q an interval is cut into (e / (tolerance / 2))^(1/q) parts,
    four at most; of a violation, of order 2, likewise. The next solve begins at the last
    solution.

    Args:
        ocp: the problem on its first mesh; it stays as it is.
        x0, time, guess, **parameters: of each solve, see :meth:`OptimalControl.solve`; a reference
            given by columns is held between its grid points.
        tolerance: largest error and violation, divided by the scale of the state or constraint.
        most: number of intervals.
        rounds: number of solves.
        n: number of times inside of an interval at which both are measured.
        integrator: see :meth:`Solution.error`.

    Returns:
        The problem on the last mesh and its solution, also where the tolerance is not met: see
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
    _check(ocp, tolerance, most, rounds)
    fractions = ocp.fractions
    done: list[Round] = []
    while True:
        given = {name: _held(ocp, name, value, fractions) for name, value in parameters.items()}
        solution = ocp.solve(x0, time=time, guess=guess, **given)
        error = solution.error(n, integrator=integrator).by_interval
        beyond = _worst(solution.violation(2 * n), ocp.intervals)
        done.append(Round(
            ocp.intervals, float(error.max()), float(beyond.max()), solution.iterations,
            solution.success, solution.objective,
        ))  # fmt: skip
        met = max(done[-1].error, done[-1].violation) <= tolerance
        mesh = _finer(ocp, error, beyond, tolerance)
        status = _why(done, solution, met, mesh.size - 1, most, rounds)
        if status:
            return Refined(ocp, solution, tuple(done), status, met and solution.success)
        guess = _start(ocp, solution, mesh)
        ocp = ocp.on_mesh(mesh)


def _why(
    done: list[Round], solution: Solution, met: bool, following: int, most: int, rounds: int
) -> str:
    """Why to stop after this round; empty where there is another."""
    last = done[-1]
    if met and solution.success:
        return (
            f"The error and the violation are within the tolerance with {last.intervals} intervals."
        )
    if not solution.success:
        # A finer mesh may be what it lacks: a coarse one can be infeasible where limits are tight.
        if len(done) >= 2 and not done[-2].success:
            return "The solver found no solution on two meshes in a row: " + _first(solution)
        if met:
            return "The solver found no solution: " + _first(solution)
    if len(done) >= rounds:
        return f"The tolerance is not met after {rounds} rounds."
    if following > most:
        return f"The tolerance is not met: the next mesh would have {following} intervals."
    return ""


def _finer(ocp: Statement, error: Array, beyond: Array, tolerance: float) -> Array:
    """Cut the intervals whose error or violation is too large."""
    order = ocp.method.degree + 1 if isinstance(ocp.method, Collocation) else 5
    pieces = np.ones(error.size)
    for values, q in ((error, order), (beyond, 2)):
        bad = values > tolerance
        with np.errstate(over="ignore"):
            wanted = np.ceil((values[bad] / (_AIM * tolerance)) ** (1.0 / q))
        pieces[bad] = np.maximum(pieces[bad], np.clip(wanted, 2, _PIECES))
    old = ocp.fractions
    parts = [np.linspace(old[k], old[k + 1], int(pieces[k]) + 1)[:-1] for k in range(error.size)]
    return np.append(np.concatenate(parts), 1.0)


def _start(ocp: Statement, solution: Solution, mesh: Array) -> dict[str, Any]:
    """The solution at the new grid points, to begin with."""
    times = solution.times[0] + mesh * solution.duration
    samples = solution.dense.samples(
        *solution.dense.locate(np.clip(times, times[0], solution.times[-1]))
    )
    signals = ocp.model.signals
    found: dict[str, Any] = {
        name: samples.rows[name] for kind in ("state", "algebraic", "control")
        for name in signals[kind]
    }  # fmt: skip
    found |= {name: samples.rows[name][:, 0] for name in ocp.freed}
    if ocp.free_duration is not None:
        found["duration"] = solution.duration
    return found


def _worst(violation: Mapping[str, Array], intervals: int) -> Array:
    return np.asarray(np.max([np.zeros(intervals), *violation.values()], axis=0))


def _held(ocp: Statement, name: str, value: Any, fractions: Array) -> Any:
    signal = {**ocp.model.signals["parameter"], **ocp.signals}.get(name)
    if signal is None or not signal.varying:
        return value
    return moved_to(value, signal.size, fractions, ocp.fractions, held=True)


def _first(solution: Solution) -> str:
    return solution.explanation.split("\n", 1)[0]


def _check(ocp: Any, tolerance: Any, most: Any, rounds: Any) -> None:
    if not isinstance(ocp, OptimalControl):
        raise InputError(f"ocp must be an OptimalControl, got {type(ocp).__name__}")
    if ocp.model.discrete:
        raise InputError(f"{ocp.model.name} is discrete; refinement is for models with rates")
    if not isinstance(tolerance, int | float) or not 0.0 < tolerance < np.inf:
        raise InputError(f"tolerance must be a positive number, got {tolerance!r}")
    for name, value in (("most", most), ("rounds", rounds)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"{name} must be a positive integer, got {value!r}")
