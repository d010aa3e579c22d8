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

TOLERANCE = 1e-11
"""Tolerance of the independent integrations, relative and in units of the scale."""

COARSE = 1e-2
"""An error of a state, in units of the scale, that a solution speaks of."""

POINTS = 11
"""Times in an interval at which limits are looked at by default, its middle among them."""

_EVALUATIONS = 20_000
NOTED = 1e-4
"""Excess between grid points, in units of the scale, that a solution speaks of."""

SHOWN = 3
INTEGRATORS = ("DOP853", "cvodes", "idas")


@dataclass(frozen=True, repr=False)
class Errors(ByName):
    """Distance of a trajectory from an independent integration of the model.

    ``print(errors)`` says the largest, where and when. ``errors["speed"]`` is the largest distance
    in each interval, in the state's unit. Infinite where the integration broke down.

    Attributes:
        ends: distance at the end of each interval, states × intervals, divided by the scale.
        between: the largest distance inside of each interval, likewise.
        rows: the larger of both by name, in physical units.
        times: of the grid points.
        units: of the states by name, and of ``time``.
    """

    ends: Array
    between: Array
    rows: Mapping[str, Array]
    times: Array
    units: Mapping[str, str]

    def __repr__(self) -> str:
        """The largest error, of which state, and in which interval."""
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

    ``print(violations)`` says the largest, of what and when. ``violations["speed"]`` is the largest
    in each interval, divided by the scale.

    Attributes:
        rows: by the name of the quantity or of the path constraint.
        worst: the largest excess of each that is exceeded, the worst first.
    """

    rows: Mapping[str, Array]
    worst: tuple[Excess, ...]

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
        """The largest excess, of what and when."""
        if not self.worst:
            return "no limit is exceeded between the grid points"
        return f"largest violation {self.largest:.2g} of the scale: {self.worst[0]}"


def residual(dense: Dense, n: int) -> Samples:
    """Return (dx/dt of the trajectory − the model's rate) / scale, at n points an interval."""
    model = dense.ocp.model
    _continuous(dense, "residual")
    k, s = dense.each((np.arange(n) + 0.5) / n)
    at = dense.columns(k, s)
    gap = (dense.interpolant.slopes(k, s) - dense.rates(at)) / model.limits("state", "scale")[
        :, None
    ]
    return Samples(at.t, {name: gap[where] for name, where in model.places("state").items()})


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
            found = flow(k, start if whole else dense.X[:, k])
        except RuntimeError:  # it broke down
            found = np.full((scale.size, n + 1), np.nan)
        here = np.full(n, k)
        shown = np.hstack((dense.columns(here, fractions[:-1]).x, dense.X[:, k + 1 : k + 2]))
        gaps[:, k] = np.abs(found - shown)
        start = found[:, -1]
    gaps = np.nan_to_num(gaps, nan=np.inf, posinf=np.inf)
    return _errors(dense, gaps[:, :, -1], gaps[:, :, :-1].max(axis=2, initial=0.0))


def coarse(dense: Dense) -> str:
    """Return a sentence where half the step of Runge and Kutta ends elsewhere; else nothing."""
    ends, remedy = dense.ocp.method.halved(dense)
    gaps = np.nan_to_num(np.abs(ends - dense.X[:, 1:]), nan=np.inf)
    found = _errors(dense, gaps, gaps)
    if found.largest <= COARSE:
        return ""
    return (
        f"But half the step of Runge and Kutta ends elsewhere, {found}: take more steps, {remedy}."
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
    """Return by how much hard limits are exceeded: at the midpoints of n equal parts of each
    interval, and thrice in each gap between the points at which its method holds limits."""
    ocp, model = dense.ocp, dense.ocp.model
    nodes = np.unique([0.0, *ocp.method.inner_points, *ocp.method.nodes, 1.0])
    gaps = nodes[:-1, None] + np.outer(np.diff(nodes), np.array([1, 3, 5]) / 6)
    fractions = np.union1d((np.arange(n) + 0.5) / n, gaps)
    at = dense.columns(*dense.each(fractions))
    soft = {c.quantity for c in ocp.constraints if c.soft is not None}
    limits: list[tuple[str, Array, Signal | Constraint]] = [
        (name, rows[where], model.signals[kind][name])
        for kind, rows in (("state", at.x), ("algebraic", at.z), ("control", at.u))
        for name, where in model.places(kind).items()
        if name not in soft
    ]
    limits += [
        (c.name, dense.expression(c.expression, at), c)
        for c in ocp.constraints
        if c.place == "path" and c.soft is None
    ]
    found: dict[str, Array] = {}
    worst: list[Excess] = []
    for name, rows, limited in limits:
        if np.isfinite([limited.lower, limited.upper]).any():
            beyond, most = worst_excess(name, rows, limited, at.t, model.time_unit)
            found[name] = np.maximum(beyond, 0.0).max(axis=0).reshape(dense.N, -1).max(axis=1)
            worst.append(most)
    exceeded = [excess for excess in worst if excess.scaled > 0.0]
    return Violations(found, tuple(sorted(exceeded, key=lambda excess: -excess.scaled)))


def unmet(program: Program, x: Array, ocp: Statement, times: Array) -> list[Excess]:
    """Return the largest violation of each limit and end condition at a point, the worst first.

    The rows of the dynamics are left out: what a solver cannot meet is something that was stated.
    """
    units, found = units_of(ocp, program), []
    for key, at, lower, upper, blocks in program.sides(x, program.at(x)[1]):
        for name, block in blocks.items():
            if name in units and block.where.size:
                stages = program.stages[key][block.where].reshape(block.shape, order="F")[0]
                limited = Limits(block.read(lower), block.read(upper), block.scale, units[name])
                when = times[np.clip(stages, 0, times.size - 1)]
                _, excess = worst_excess(name, block.read(at), limited, when, ocp.model.time_unit)
                if excess.scaled > FEASIBLE:
                    found.append(replace(excess, of=block.role.quantity))
    return sorted(found, key=lambda excess: -excess.scaled)


def curved(ocp: Statement, name: str) -> str:
    """Return the name where it is that of a nonlinear path constraint, else an empty text."""
    unknowns = ca.vertcat(*ocp.model.arguments[:3])
    for c in ocp.constraints:
        if c.place == "path" and c.quantity == name:
            return "" if ca.is_linear(c.expression, unknowns) else c.name
    return ""


def outside(ocp: Statement, program: Program) -> str:
    """Say which states are given outside of their limits at an end, as no solve can mend."""
    given = [
        ("start", 0, name, program.parameters[f"initial {name}"].read(program.p))
        for name in ocp.fixed
    ]
    x, z, u, _, t = ocp.model.arguments
    free = ca.vertcat(x, z, u, t, ocp.duration, *(ocp.model.symbol(name) for name in ocp.freed))
    given += [
        ("end", -1, name, value[:, None])
        for name, value in targets(ocp, program).items()
        if f"final {name}" in program.constraints  # else it is soft
        and not ca.depends_on(ocp.ends[name], free)
    ]
    said = []
    for end, at, name, value in given:
        blocks, lower, upper = program.variables, program.lbx, program.ubx
        if at and blocks[name].shape[1] == 1:  # of single shooting, whose end is no unknown
            blocks, lower, upper = program.constraints, program.lbg, program.ubg
        if block := blocks.get(name):
            low, high = (block.read(side)[:, at] for side in (lower, upper))
            limits = Limits(low, high, block.scale[:, at], ocp.model.signals["state"][name].unit)
            beyond, worst = worst_excess(name, value, limits, np.zeros(1), "")
            if worst.scaled > FEASIBLE:
                number = in_unit(value.ravel()[np.argmax(beyond)], worst.unit)
                said.append(f"{worst.name} is given as {number} at the {end}, {worst.beyond}")
    return "; ".join(said)


def refuse_outside(ocp: Statement, program: Program, key: str, kind: str) -> None:
    """Refuse states beyond their limits in the solve that an export stores."""
    if beyond := outside(ocp, program):
        raise InputError(
            f"{beyond}. An export stores a solve: give a state within the limits, export(folder, "
            f"{key}=…), for the command by a function that returns ({kind}, {{'{key}': …}})"
        )


def active(
    program: Program, at: tuple[Array, Array], lam: tuple[Array, Array], tol: float, side: str
) -> dict[str, Array]:
    """Return by name where limits hold with equality, from x and g and their multipliers."""
    one_of(side, "side", ("either", "lower", "upper"))
    wanted = {"lower": (LOWER,), "upper": (UPPER,), "either": (LOWER, UPPER)}[side]
    found: dict[str, Array] = {}
    for (_, value, lower, upper, blocks), pull in zip(program.sides(*at), lam, strict=True):
        touched = np.isin(active_sides(value, lower, upper, pull, 10 * tol), wanted)
        limited = (lower < upper) & (np.isfinite(lower) | np.isfinite(upper))
        for name, block in blocks.items():
            if limited[block.where].any():
                found[name] = plain(touched[block.where].reshape(block.shape, order="F"))
    return found


def _continuous(dense: Dense, what: str) -> None:
    if dense.ocp.model.discrete:
        raise InputError(f"{dense.ocp.model.name} is discrete; {what} is for models with rates")


def _explicit(dense: Dense, fractions: Array, method: str) -> Any:
    """(interval, start) → states at the fractions, by SciPy's method of order eight."""
    model = dense.ocp.model
    rate = Buffered(model.moves.rate)
    near = TOLERANCE * model.limits("state", "scale")

    def flow(k: int, start: Array) -> Array:
        t0, dt = dense.times[k], dense.times[k + 1] - dense.times[k]
        u, v = dense.U[:, k], dense.V[:, k]
        p = np.ascontiguousarray(dense.P[: model.size("parameter"), k])
        left = iter(range(_EVALUATIONS))

        def f(s: float, y: Array) -> Array:
            if next(left, None) is None:
                raise RuntimeError("too many evaluations of the rates")
            w = u + s * (v - u)
            slope = rate(y, np.zeros(0), w, p, np.array([t0 + s * dt]))[rate.parts[0]]
            return np.asarray(dt * slope)

        if not np.isfinite(start).all():
            raise RuntimeError("the interval before has no end")
        found = solve_ivp(f, (0.0, 1.0), start, method, fractions, rtol=TOLERANCE, atol=near)
        if not found.success:
            raise RuntimeError(found.message)
        return np.asarray(found.y)

    return flow


def _casadi(dense: Dense, fractions: Array, plugin: str) -> Any:
    """Return the same function by CasADi's integrators."""
    model = dense.ocp.model
    dae, of_x, of_z = dae_of(model, nothing(model))
    options = {
        "abstol": TOLERANCE,
        "reltol": TOLERANCE,
        "max_num_steps": _EVALUATIONS,
        "show_eval_warnings": False,
    }
    solve = ca.integrator("independent", plugin, dae, 0.0, fractions.tolist(), options)

    def flow(k: int, start: Array) -> Array:
        interval = dense.times[k], dense.times[k + 1] - dense.times[k]
        own = dense.P[: model.size("parameter"), k]
        near = dense.columns(np.array([k]), np.zeros(1)).z[:, 0]
        numbers = np.concatenate((dense.U[:, k], dense.V[:, k], own, interval))
        found = solve(x0=start / of_x, z0=near / of_z, p=numbers)
        return np.asarray(found["xf"].full() * of_x.full(), dtype=float)

    return flow


def warning(found: Sequence[Excess], finer: str) -> str:
    """Return the excess between grid points and its remedy, in sentences; else nothing.

    ``finer`` is the call of the method with more inner points, empty if it takes none.
    """
    if not found:
        return ""
    more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    said = f"But between the grid points {', '.join(map(str, found[:SHOWN]))}{more}."
    if not finer:
        return said
    return (
        f"{said} Ask for a finer mesh, refine(ocp, tolerance=…), which keeps to this trajectory, "
        f"or for inner points, {finer}, in a solve that begins here, guess=found, and may end on "
        "another; past an obstacle begin with a guess that goes around it."
    )
