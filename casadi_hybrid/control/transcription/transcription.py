"""Transcription of an optimal control problem, and functions that read its trajectories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.excess import Limits
from casadi_hybrid.control.model.signals import Signal, matrix, places, spread
from casadi_hybrid.control.transcription.assembly import (
    LAST,
    Assembly,
    Horizon,
    each,
    placed,
    where,
)
from casadi_hybrid.control.transcription.interpolants import interpolated
from casadi_hybrid.control.transcription.program import Program, Role
from casadi_hybrid.control.transcription.statement import Statement
from casadi_hybrid.control.transcription.terms import Constraint


@dataclass(frozen=True)
class Transcription:
    """A program, and the functions (x, p) that read its trajectories."""

    program: Program
    trajectories: ca.Function  # x, z, u at both ends of intervals, p, t, costs, outputs
    points: ca.Function  # states and algebraic states that are unknowns between the grid points


def read(
    ocp: Statement, assembly: Assembly, program: Program, horizon: Horizon, costs: Any
) -> Transcription:
    """Return the built program with the functions that read a horizon from it."""
    h, kind, model = horizon, assembly.kind, horizon.model
    Z, inside = h.Z, h.inside or (kind(0, 0), kind(0, 0))
    if (nz := model.size("algebraic")) and not Z.shape[0]:
        # z is an unknown at the points alone: at a grid point take the polynomial of the interval
        # that begins there, at the last one of the interval that ends.
        taus = ocp.method.nodes
        ends = interpolated(taus, np.array([0.0, 1.0]), ca.reshape(inside[1], nz * taus.size, h.N))
        Z = ca.horzcat(ends[:nz, :], ends[nz:, -1])
    outputs = each(model.moves.outputs, kind, [h.X, Z, h.W, h.model_parameters, h.T])
    outputs = [h.X, Z, h.U, h.V, h.P, h.T, costs, *outputs]
    trajectories = assembly.reader("trajectories", program, outputs)
    return Transcription(program, trajectories, assembly.reader("points", program, inside))


def lay_phase(
    ocp: Statement,
    assembly: Assembly,
    prefix: str,
    before: Horizon | None = None,
    weight: float = 1.0,
) -> tuple[Horizon, Any]:
    """Add one phase to a program; return its horizon and its costs, one below the other.

    The last cost is the penalty of soft limits, if there are any. ``before`` is the previous phase;
    ``weight`` multiplies the phase's costs in the program's cost.
    """
    # assembly.cost collects the penalties of soft limits: those of this phase alone.
    others, assembly.cost = assembly.cost, assembly.kind(0)
    integrals = [cost.integral for cost in ocp.costs if not cost.integral.is_zero()]
    guesses = {}
    for name, signal in ocp.model.unknowns.items():
        guesses[name] = ocp.guessed(name, ocp.guesses.get(name, signal.guess))
    function = ocp.expression_function([ca.vertcat(ca.SX(0, 1), *integrals)], "integrand")
    # A soft limit must not be a bound as well.
    model = ocp.model.unlimited(ocp.softened)
    # The end of a phase and the start of the next are two stages: states may jump.
    first = 0 if before is None else before.first + before.N + 1
    horizon = Horizon(assembly, model, function, ocp.fractions, first, prefix, guesses)
    _time(ocp, horizon, before)
    _parameters(ocp, horizon, before)
    horizon.X = horizon.unknowns("state", horizon.N + 1 if ocp.method.all_states else 1)
    _algebraic(ocp, horizon)
    _controls(horizon)
    _previous(ocp, horizon)
    integrals = ocp.method.connect(horizon)
    _equations(horizon)
    _initial(ocp, horizon)
    for constraint in ocp.constraints:
        _constrain(ocp, horizon, constraint)
    costs, price = _costs(ocp, horizon, integrals), assembly.cost
    assembly.cost = others + weight * (price + ca.sum1(costs))
    return horizon, ca.vertcat(costs, price) if any(c.soft for c in ocp.constraints) else costs


def _time(ocp: Statement, horizon: Horizon, before: Horizon | None) -> None:
    assembly, free = horizon.assembly, ocp.free_duration
    kind = assembly.kind
    # A later phase starts when the one before ends, perhaps at a free time.
    if before is None:
        start, begin = assembly.parameter("time", 0.0, 1, part=horizon.prefix), 0.0
    else:
        start, begin = before.T[-1], before.times[-1]
    horizon.times = begin + ocp.length * ocp.fractions
    if free is None:
        horizon.duration = kind(ocp.length)
    else:
        signal = Signal.of("duration", 1, free.lower, free.upper, free.scale or free.guess)
        guess = ocp.guesses.get("duration", free.guess)
        # A free duration is in all stages: ordered last, it is a border of the banded matrices.
        horizon.duration = horizon.unknown(signal, [LAST], float(guess), 0)
    horizon.T = start + horizon.duration * kind(ca.DM(ocp.fractions).T)
    horizon.dt = horizon.duration * kind(ca.DM(np.diff(ocp.fractions)).T)


def _parameters(ocp: Statement, horizon: Horizon, before: Horizon | None) -> None:
    assembly, points, prefix = horizon.assembly, horizon.N + 1, horizon.prefix
    rows = []
    values = ocp.declared
    # u₋₁ of a later phase is the last control of the phase before, an expression and no parameter.
    last = {}
    if before is not None:
        last = {name: before.V[at, -1] for name, at in before.model.places("control").items()}
    for name, signal in ocp.given.items():
        if name in ocp.freed:
            free = ocp.freed[name]
            guess = spread(ocp.guesses.get(name, free.guess), free.size, np.zeros(1), name)
            part = horizon.unknown(free, [LAST], guess, 0)
        elif signal.varying:
            value = spread(values[name], signal.size, horizon.times, f"value of {name!r}")
            part = assembly.parameter(name, value, signal.size, points, 1, part=prefix)
        else:
            part = last.get(ocp.lagged.get(name, ""), ca.SX())
            if part.numel() != signal.size:  # the phase before has no such control
                part = assembly.parameter(name, values[name], signal.size, part=prefix)
        rows.append(part if signal.varying else ca.repmat(part, 1, points))
    horizon.P = ca.vertcat(*rows, ca.repmat(horizon.duration, 1, points))


def _algebraic(ocp: Statement, horizon: Horizon) -> None:
    """Add algebraic states at the grid points if a term or the method needs them there."""
    model = horizon.model
    z = model.arguments[1]
    terms = [c.expression for c in ocp.constraints if c.at != "unknowns"]
    terms += [part for c in ocp.costs for part in (c.sum, c.start, c.end)]
    used = ocp.method.all_algebraic or any(ca.depends_on(expression, z) for expression in terms)
    points = horizon.N + 1
    used = used and bool(model.size("algebraic"))
    horizon.Z = horizon.unknowns("algebraic", points) if used else horizon.assembly.kind(0, points)


def _controls(horizon: Horizon) -> None:
    ends, points = [], []
    for name, signal in horizon.model.signals["control"].items():
        guess = horizon.guess[name][:, : horizon.N + signal.linear]
        U = horizon.unknown(signal, horizon.stages(points=signal.linear), guess)
        # A linear control has an unknown at every grid point, a held one in every interval.
        ends.append(U[:, 1:] if signal.linear else U)
        points.append(U if signal.linear else ca.horzcat(U, U[:, -1]))
    kind = horizon.assembly.kind
    horizon.V = ca.vertcat(kind(0, horizon.N), *ends)
    horizon.W = ca.vertcat(kind(0, horizon.N + 1), *points)
    horizon.U = horizon.W[:, :-1]


def _previous(ocp: Statement, horizon: Horizon) -> None:
    """Set a previous control, from the second grid point on, to that of the interval before."""
    controls, P = ocp.model.places("control"), horizon.P
    for name, control in ocp.lagged.items():
        at, before = places(ocp.given)[name], horizon.U[controls[control], :]
        # Column 0 keeps the parameter u₋₁; columns 1 … N take u₀ … u_{N−1}.
        P = ca.vertcat(P[: at.start, :], ca.horzcat(P[at, 0], before), P[at.stop :, :])
    horizon.P = P


def _equations(horizon: Horizon) -> None:
    """Add the equations of a DAE at the grid points where its algebraic states are unknowns."""
    if not horizon.Z.shape[0]:
        return
    model = horizon.model
    columns = [horizon.X, horizon.Z, horizon.W, horizon.model_parameters, horizon.T]
    (rows,) = each(model.moves.equations, horizon.assembly.kind, columns)
    stages, names = horizon.stages(points=True), tuple(model.equation_names)
    horizon.equate("equations at grid points", rows, stages, horizon.sizes, entries=names)


def _initial(ocp: Statement, horizon: Horizon) -> None:
    rows = ocp.model.places("state")
    for name, value in ocp.fixed.items():
        signal, label = ocp.model.signals["state"][name], f"initial {name}"
        # The initial state is a parameter and a row, not a bound: another state changes p alone.
        default = horizon.guess[name][:, 0] if value is None else value
        values = matrix(default, signal.size, 1, f"initial {name!r}")
        role, part = Role(name, "initial"), horizon.prefix
        parameter = horizon.assembly.parameter(label, values, signal.size, role=role, part=part)
        # With L = f + λᵀg the row x₀ − x̄ = 0 has the multiplier λ = −df*/dx̄.
        gap = horizon.X[rows[name], 0] - parameter
        horizon.equate(label, gap, [horizon.first], signal.scale, role=role)
    for name in ocp.cycles:
        gap = horizon.X[rows[name], -1] - horizon.X[rows[name], 0]
        scale = ocp.model.signals["state"][name].scale
        horizon.equate(f"periodic {name}", gap, [horizon.first + horizon.N], scale)


def _constrain(ocp: Statement, horizon: Horizon, constraint: Constraint) -> None:
    function = ocp.expression_function([constraint.expression], "constraint")
    for place, columns, stages in where(horizon, constraint):
        # Columns of one stage are points of one interval; a shift moves them together.
        stride = stages.count(stages[0]) if constraint.place == "path" else 1
        (rows,) = each(function, horizon.assembly.kind, columns)
        name, role = placed(constraint.name, place), Role(constraint.quantity, place=place)
        if constraint.soft is None:
            horizon.constrain(name, rows, stages, constraint, stride=stride, role=role)
        else:
            _soften(horizon, constraint, name, rows, stages, {"stride": stride, "role": role})


def _soften(
    horizon: Horizon, constraint: Constraint, name: str, rows: Any, stages: list[int], layout: Any
) -> None:
    """Add rows with violations s ≥ 0: lower ≤ rows + s, rows − s ≤ upper, and the penalty of s."""
    soft, scale, role = constraint.soft, constraint.scale, layout["role"]
    assert soft is not None
    # One s serves both sides of an entry: at most one of the two limits is violated.
    unit = scale if soft.scaled else np.ones(scale.size)
    label = f"violation of {name}"
    signal = Signal(label, scale.size, np.zeros(scale.size), soft.most * unit, scale)
    violation_layout = {**layout, "role": replace(role, kind="violation"), "part": horizon.prefix}
    violation = horizon.assembly.variable(label, signal, stages, **violation_layout)
    for side, limit, shifted in (
        ("lower", constraint.lower, rows + violation),
        ("upper", constraint.upper, rows - violation),
    ):
        if finite := np.flatnonzero(np.isfinite(limit)).tolist():
            bounds: dict[str, Any] = {"lower": -np.inf, "upper": np.inf, side: limit[finite]}
            limits = Limits(**bounds, scale=scale[finite])
            layout["role"] = replace(role, side=side, entries=tuple(finite))
            horizon.constrain(f"{name}, {side}", shifted[finite, :], stages, limits, **layout)
    # ℓ·(s/unit) + q·(s/unit)², summed over entries and points.
    linear, quadratic = ca.DM(soft.linear / unit), ca.DM(soft.quadratic / unit**2)
    price = ca.dot(linear, ca.sum2(violation)) + ca.dot(quadratic, ca.sum2(violation**2))
    horizon.assembly.cost = horizon.assembly.cost + price


def _costs(ocp: Statement, horizon: Horizon, integrals: Any) -> Any:
    """Return the costs, one below the other."""
    h, kind = horizon, horizon.assembly.kind
    rows, values = [], iter(ca.vertsplit(integrals))
    for cost in ocp.costs:
        total = kind(0)
        if not cost.integral.is_zero():
            total = total + next(values)
        if not cost.sum.is_zero():
            function = ocp.expression_function([cost.sum], "cost")
            (parts,) = each(function, kind, h.at(slice(h.N)))
            total = total + ca.sum2(parts)
        for k, part in ((0, cost.start), (h.N, cost.end)):
            if not part.is_zero():
                function = ocp.expression_function([part], "cost")
                total = total + function.call(h.at(k), True, False)[0]
        rows.append(total)
    return ca.vertcat(kind(0, 1), *rows)
