"""Accuracy of a trajectory between the grid points, excess over limits, and active limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from casadi_hybrid.control.model.excess import (
    FEASIBLE,
    Excess,
    Limits,
    entry_name,
    in_unit,
    worst_excess,
)
from casadi_hybrid.control.model.signals import Array, ByName, Signal, known, plain
from casadi_hybrid.control.model.steps import dae_of, nothing
from casadi_hybrid.control.solution.dense import Dense, Samples
from casadi_hybrid.control.transcription.initial_guess import targets
from casadi_hybrid.control.transcription.naming import units_of
from casadi_hybrid.control.transcription.program import Program
from casadi_hybrid.control.transcription.statement import Statement
from casadi_hybrid.control.transcription.terms import Constraint
from casadi_hybrid.problem.point.working_set import LOWER, UPPER, active_sides
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import one_of
from casadi_hybrid.utils.matrices import Buffered

# Tolerance of the independent integrations, relative and in units of the scale.
TOLERANCE = 1e-11

# Error of a state, in units of the scale, that a solution reports.
COARSE = 1e-2

# Times in an interval at which limits are checked by default, its middle among them.
POINTS = 11

_EVALUATIONS = 20_000
# Excess between grid points, in units of the scale, that a solution reports.
NOTED = 1e-4

SHOWN = 3
INTEGRATORS = ("DOP853", "cvodes", "idas")


@dataclass(frozen=True, repr=False)
class Errors(ByName):
    """Distance of a trajectory from an independent integration of the model.

    ``print(errors)`` shows the largest, where and when. ``errors["speed"]`` is the largest distance
    in each interval, in the state's unit. Infinite if the integration broke down.
    """

    ends: Array  # at the ends of intervals, states × intervals, divided by the scale
    between: Array  # the largest inside of each interval, likewise
    rows: Mapping[str, Array]  # the larger of both by name, in physical units
    times: Array
    units: Mapping[str, str]  # of the states, and of `time`

    def __repr__(self) -> str:
        """The largest error, its state, and its interval."""
        of_entry = np.maximum(self.ends, self.between)
        entry, k = np.unravel_index(int(np.argmax(of_entry)), of_entry.shape)
        labels = [(name, i) for name, rows in self.rows.items() for i in range(rows.shape[0])]
        name, i = labels[entry]
        amount = in_unit(self.rows[name][i, k], self.units[name])
        return (
            f"largest error {self.largest:.2g} of the scale: {entry_name(name, i, self.rows[name])}"
            f" by {amount}, from {in_unit(self.times[k], self.units['time'])} to "
            f"{in_unit(self.times[k + 1], self.units['time'])}"
        )

    @property
    def by_interval(self) -> Array:
        """The largest distance in each interval over all states, divided by their scale."""
        return np.asarray(np.maximum(self.ends, self.between).max(axis=0))

    @property
    def largest(self) -> float:
        """The largest distance of all, divided by the scale."""
        return float(self.by_interval.max())


@dataclass(frozen=True, repr=False)
class Violations(ByName):
    """Excess over hard limits between the grid points.

    ``print(violations)`` shows the largest, its quantity and time. ``violations["speed"]`` is the
    largest in each interval, divided by the scale.
    """

    rows: Mapping[str, Array]  # by the name of the quantity or of the path constraint
    worst: tuple[Excess, ...]  # the largest of each that is exceeded, the worst first

    def __getitem__(self, name: str) -> Array:
        return np.asarray(known(name, self.rows, "limit"))

    @property
    def by_interval(self) -> Array:
        """The largest excess in each interval over all limits, divided by their scale."""
        return np.asarray(np.max([*self.rows.values()], axis=0)) if self.rows else np.zeros(0)

    @property
    def largest(self) -> float:
        """The largest excess of all, divided by the scale."""
        return self.worst[0].scaled if self.worst else 0.0

    @property
    def noted(self) -> tuple[Excess, ...]:
        """Excesses worth a warning: above :data:`NOTED` of the scale."""
        return tuple(excess for excess in self.worst if excess.scaled > NOTED)

    def __repr__(self) -> str:
        """The largest excess, its quantity, and its time."""
        if not self.worst:
            return "no limit is exceeded between the grid points"
        return f"largest violation {self.largest:.2g} of the scale: {self.worst[0]}"


def residual(dense: Dense, n: int) -> Samples:
    """Return (dx/dt of the trajectory − the model's rate) / scale, at n points an interval."""
    model = dense.ocp.model
    _continuous(dense, "residual")
    # Midpoints: at the points of a collocation the residual is zero.
    k, s = dense.each((np.arange(n) + 0.5) / n)
    columns, scale = dense.columns(k, s), model.limits("state", "scale")[:, None]
    gap = (dense.interpolant.slopes(k, s) - dense.rates(columns)) / scale
    return Samples(columns.t, {name: gap[where] for name, where in model.places("state").items()})


def error(dense: Dense, n: int, *, whole: bool, integrator: str | None) -> Errors:
    """Integrate the model independently and compare; see :meth:`Solution.error`."""
    _continuous(dense, "error")
    model = dense.ocp.model
    algebraic = bool(model.size("algebraic"))
    integrator = integrator or ("idas" if algebraic else "DOP853")
    one_of(integrator, "integrator", INTEGRATORS)
    if algebraic and integrator != "idas":
        raise InputError(f"{model.name} has algebraic states; its integrator is 'idas'")
    scale = model.limits("state", "scale")
    fractions = np.append((np.arange(n) + 0.5) / n, 1.0)
    flow = (_explicit if integrator == "DOP853" else _casadi)(dense, fractions, integrator)
    gaps = np.empty((scale.size, dense.N, n + 1))
    start = dense.X[:, 0]
    for k in range(dense.N):
        try:
            # From the trajectory's own grid point: an unstable model would amplify earlier errors.
            exact = flow(k, start if whole else dense.X[:, k])
        except RuntimeError:  # the integration broke down
            exact = np.full((scale.size, n + 1), np.nan)
        inside = dense.columns(np.full(n, k), fractions[:-1]).x
        gaps[:, k] = np.abs(exact - np.hstack((inside, dense.X[:, k + 1 : k + 2])))
        start = exact[:, -1]
    gaps = np.nan_to_num(gaps, nan=np.inf, posinf=np.inf)
    return _errors(dense, gaps[:, :, -1], gaps[:, :, :-1].max(axis=2, initial=0.0))


def coarse(dense: Dense) -> str:
    """Return a sentence if half the step of Runge and Kutta ends elsewhere; else nothing."""
    ends, remedy = dense.ocp.method.halved(dense)
    gaps = np.nan_to_num(np.abs(ends - dense.X[:, 1:]), nan=np.inf)
    errors = _errors(dense, gaps, gaps)
    if errors.largest <= COARSE:
        return ""
    return (
        f"But half the step of Runge and Kutta ends elsewhere, {errors}: take more steps, {remedy}."
    )


def _errors(dense: Dense, ends: Array, between: Array) -> Errors:
    model = dense.ocp.model
    scale = model.limits("state", "scale")
    rows = np.maximum(ends, between)
    by_name = {name: rows[where] for name, where in model.places("state").items()}
    units = {name: signal.unit for name, signal in model.signals["state"].items()}
    units["time"] = model.time_unit
    return Errors(ends / scale[:, None], between / scale[:, None], by_name, dense.times, units)


def violation(dense: Dense, n: int) -> Violations:
    """Return the excess over hard limits between grid points."""
    ocp, model = dense.ocp, dense.ocp.model
    nodes = np.unique([0.0, *ocp.method.inner_points, *ocp.method.nodes, 1.0])
    # Three times in each gap between the points where limits hold, where the excess is largest;
    # and the midpoints of n equal parts.
    gaps = nodes[:-1, None] + np.outer(np.diff(nodes), np.array([1, 3, 5]) / 6)
    fractions = np.union1d((np.arange(n) + 0.5) / n, gaps)
    at = dense.columns(*dense.each(fractions))
    soft = {c.quantity for c in ocp.constraints if c.soft is not None}
    limits: list[tuple[Array, Signal | Constraint]] = []
    for kind, rows in (("state", at.x), ("algebraic", at.z), ("control", at.u)):
        hard = (signal for name, signal in model.signals[kind].items() if name not in soft)
        limits += [(rows[model.places(kind)[signal.name]], signal) for signal in hard]
    paths = [c for c in ocp.constraints if c.place == "path" and c.soft is None]
    limits += [(dense.expression(c.expression, at), c) for c in paths]
    largest: dict[str, Array] = {}
    worst: list[Excess] = []
    for rows, limited in limits:
        if np.isfinite([limited.lower, limited.upper]).any():
            beyond, most = worst_excess(limited.name, rows, limited, at.t, model.time_unit)
            intervals = np.maximum(beyond, 0.0).max(axis=0).reshape(dense.N, -1)
            largest[limited.name] = intervals.max(axis=1)
            worst.append(most)
    exceeded = [excess for excess in worst if excess.scaled > 0.0]
    return Violations(largest, tuple(sorted(exceeded, key=lambda excess: -excess.scaled)))


def unmet(program: Program, x: Array, ocp: Statement, times: Array) -> list[Excess]:
    """Return the largest violation of each limit and end condition at a point, the worst first."""
    units, violations = units_of(ocp, program), []
    for key, values, lower, upper, blocks in program.sides(x, program.at(x)[1]):
        for name, block in blocks.items():
            # Not the dynamics: the cause of a failure is a statement of the user.
            if name in units and block.where.size:
                stages = program.stages[key][block.where].reshape(block.shape, order="F")[0]
                limits = Limits(block.read(lower), block.read(upper), block.scale, units[name])
                # Entries of no stage have −1: shown at the start.
                when, rows = times[np.clip(stages, 0, times.size - 1)], block.read(values)
                _, excess = worst_excess(name, rows, limits, when, ocp.model.time_unit)
                if excess.scaled > FEASIBLE:
                    violations.append(replace(excess, of=block.role.quantity))
    return sorted(violations, key=lambda excess: -excess.scaled)


def curved(ocp: Statement, name: str) -> str:
    """Return the name of a nonlinear path constraint, else an empty text."""
    unknowns = ca.vertcat(*ocp.model.arguments[:3])
    for c in ocp.constraints:
        if c.place == "path" and c.quantity == name:
            return "" if ca.is_linear(c.expression, unknowns) else c.name
    return ""


def outside(ocp: Statement, program: Program) -> str:
    """Name the states given outside of their limits at an end, which no solve can mend."""
    fixed = []
    for name in ocp.fixed:
        fixed.append(("start", 0, name, program.parameters[f"initial {name}"].read(program.p)))
    x, z, u, _, t = ocp.model.arguments
    free = ca.vertcat(x, z, u, t, ocp.duration, *(ocp.model.symbol(name) for name in ocp.freed))
    for name, value in targets(ocp, program).items():
        hard = f"final {name}" in program.constraints
        # An end value that depends on an unknown can still come within the limits.
        if hard and not ca.depends_on(ocp.ends[name], free):
            fixed.append(("end", -1, name, value[:, None]))
    sentences = []
    for end, column, name, value in fixed:
        blocks, lower, upper = program.variables, program.lbx, program.ubx
        if column and blocks[name].shape[1] == 1:  # single shooting: the end is no unknown
            blocks, lower, upper = program.constraints, program.lbg, program.ubg
        if name in blocks:
            block, unit = blocks[name], ocp.model.signals["state"][name].unit
            low, high = (block.read(side)[:, column] for side in (lower, upper))
            limits = Limits(low, high, block.scale[:, column], unit)
            beyond, worst = worst_excess(name, value, limits, np.zeros(1), "")
            if worst.scaled > FEASIBLE:
                amount = in_unit(value.ravel()[np.argmax(beyond)], worst.unit)
                sentences.append(f"{worst.name} is given as {amount} at the {end}, {worst.beyond}")
    return "; ".join(sentences)


def refuse_outside(ocp: Statement, program: Program, key: str, kind: str) -> None:
    """Refuse states beyond their limits in the solve that an export stores."""
    sentences = outside(ocp, program)
    if sentences:
        raise InputError(
            f"{sentences}. An export stores a solve: give a state within the limits, "
            f"export(folder, {key}=…), for the command by a function that returns ({kind}, "
            f"{{'{key}': …}})"
        )


def active(
    program: Program, at: tuple[Array, Array], lam: tuple[Array, Array], tol: float, side: str
) -> dict[str, Array]:
    """Return the active limits by name, from x and g and their multipliers."""
    one_of(side, "side", ("either", "lower", "upper"))
    sides = {"lower": (LOWER,), "upper": (UPPER,), "either": (LOWER, UPPER)}[side]
    by_name: dict[str, Array] = {}
    for (_, values, lower, upper, blocks), multipliers in zip(program.sides(*at), lam, strict=True):
        # A limit is active by its multiplier, or by a distance of 10·tol.
        touched = np.isin(active_sides(values, lower, upper, multipliers, 10 * tol), sides)
        limited = (lower < upper) & (np.isfinite(lower) | np.isfinite(upper))
        for name, block in blocks.items():
            if limited[block.where].any():
                by_name[name] = plain(touched[block.where].reshape(block.shape, order="F"))
    return by_name


def _continuous(dense: Dense, what: str) -> None:
    if dense.ocp.model.discrete:
        raise InputError(f"{dense.ocp.model.name} is discrete; {what} is for models with rates")


def _explicit(dense: Dense, fractions: Array, method: str) -> Any:
    """(interval, start) → states at the fractions, by SciPy's method of order eight."""
    model = dense.ocp.model
    rate = Buffered(model.moves.rate)
    absolute = TOLERANCE * model.limits("state", "scale")

    def flow(k: int, start: Array) -> Array:
        t0, dt = dense.times[k], dense.times[k + 1] - dense.times[k]
        u, v = dense.U[:, k], dense.V[:, k]
        p = np.ascontiguousarray(dense.P[: model.size("parameter"), k])
        remaining = iter(range(_EVALUATIONS))

        def f(s: float, y: Array) -> Array:
            # An explicit method never ends on a stiff model.
            if next(remaining, None) is None:
                raise RuntimeError("too many evaluations of the rates")
            w = u + s * (v - u)
            slope = rate(y, np.zeros(0), w, p, np.array([t0 + s * dt]))[rate.parts[0]]
            # In s from 0 to 1, as dx/ds = dt·f.
            return np.asarray(dt * slope)

        if not np.isfinite(start).all():
            raise RuntimeError("the interval before has no end")
        result = solve_ivp(f, (0.0, 1.0), start, method, fractions, rtol=TOLERANCE, atol=absolute)
        if not result.success:
            raise RuntimeError(result.message)
        return np.asarray(result.y)

    return flow


def _casadi(dense: Dense, fractions: Array, plugin: str) -> Any:
    """Return the same function by CasADi's integrators."""
    model = dense.ocp.model
    dae, of_x, of_z = dae_of(model, nothing(model))
    options = {"abstol": TOLERANCE, "reltol": TOLERANCE, "max_num_steps": _EVALUATIONS}
    options["show_eval_warnings"] = False
    solve = ca.integrator("independent", plugin, dae, 0.0, fractions.tolist(), options)

    def flow(k: int, start: Array) -> Array:
        interval = dense.times[k], dense.times[k + 1] - dense.times[k]
        p = dense.P[: model.size("parameter"), k]
        # IDAS starts from algebraic states that satisfy the equations.
        z = dense.columns(np.array([k]), np.zeros(1)).z[:, 0]
        arguments = np.concatenate((dense.U[:, k], dense.V[:, k], p, interval))
        result = solve(x0=start / of_x, z0=z / of_z, p=arguments)
        return np.asarray(result["xf"].full() * of_x.full(), dtype=float)

    return flow


def warning(excesses: Sequence[Excess], finer: str) -> str:
    """Return the excess between grid points and its remedy in sentences; else nothing."""
    if not excesses:
        return ""
    more = f", and {len(excesses) - SHOWN} more" if len(excesses) > SHOWN else ""
    sentence = f"But between the grid points {', '.join(map(str, excesses[:SHOWN]))}{more}."
    # `finer` is the call with more inner points; empty if the method takes none.
    if not finer:
        return sentence
    return (
        f"{sentence} Ask for a finer mesh, refine(ocp, tolerance=…), which keeps to this "
        f"trajectory, or for inner points, {finer}, in a solve that begins here, guess=found, and "
        "may end on another; past an obstacle begin with a guess that goes around it."
    )
