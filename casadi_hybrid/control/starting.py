"""The numbers of one solve: initial state, parameters, references, the point to begin at.

That may be a solution on another mesh or by another method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.following import followed
from casadi_hybrid.control.methods import points_of
from casadi_hybrid.control.program import Block, Program
from casadi_hybrid.control.reading.checking import targets
from casadi_hybrid.control.signals import (
    Array,
    LackingError,
    between,
    by_name,
    column,
    finite,
    known,
    matrix,
    spread,
)
from casadi_hybrid.control.solution import Solution
from casadi_hybrid.control.statement import Statement


def start_values(
    ocp: Statement, program: Program, x0: Any, time: float, guess: Any,
    parameters: Mapping[str, Any],
) -> Program:  # fmt: skip
    """Return the program with these numbers; without a guess it keeps its start."""
    at = float(column(time, 1, "time")[0])
    values = _parameters(ocp, parameters, at, program)
    if "time" in program.parameters:
        values["time"] = at
    initial = {  # what is not given stays
        name: program.parameters[f"initial {name}"].read(program.p)[:, 0] for name in ocp.fixed
    }
    if x0 is not None:
        initial |= _initial(ocp, x0)
    for name, value in initial.items():
        values[f"initial {name}"] = finite(value, value.size, f"initial {name!r}")
    program = followed(program.with_parameters(values))
    if guess is None:
        return program
    if isinstance(guess, Solution):
        return program.with_x0(start_of(ocp, program, guess)["x0"])
    return program.with_start(_guess(ocp, program, initial, guess))


def refuse_guessed(ocp: Statement, x0: Any) -> None:
    """Refuse a start that nobody gave: the guesses of the states are none."""
    given = x0 if x0 is None or isinstance(x0, Mapping) else ocp.fixed
    missing = [n for n, value in ocp.fixed.items() if value is None and n not in (given or ())]
    if missing:
        raise InputError(
            f"{', '.join(missing)} of {ocp.name} has no number at the start; give solve(…) all "
            f"states, or {{{missing[0]!r}: …}}, or state initial({missing[0]}=…)"
        )


def _initial(ocp: Statement, x0: Any) -> dict[str, Array]:
    named = isinstance(x0, Mapping)
    for name in x0 if named else ():
        if name in ocp.model.signals["state"] and name not in ocp.fixed:
            raise InputError(
                f"x0 has {name!r}, which {ocp.name} leaves free at the start; name it in initial(…)"
            )
    default = np.zeros(ocp.model.size("state")) if named else None
    full, places = ocp.model.vector("state", x0, "x0", default), ocp.model.places("state")
    return {name: full[places[name]] for name in (x0 if named else ocp.fixed)}


def _parameters(
    ocp: Statement, given: Mapping[str, Any], time: float, program: Program
) -> dict[str, Any]:
    """The values by block; functions of time at the grid points, also those that were declared."""
    signals, declared, values = ocp.given, ocp.declared, {}
    for name in given:
        if name in ("lbx", "ubx", "lbg", "ubg"):
            raise InputError(
                f"{name!r} is of nlpsol; here limits belong to quantities (lower=, upper=) and to "
                f"path(…). Numbers of a solve: {', '.join(['x0', 'time', 'guess', *signals])}"
            )
        if name in ocp.model.signals["state"]:
            raise InputError(f"{name!r} is a state; its initial value is x0={{{name!r}: …}}")
        known(name, signals, "parameter")
        if name in ocp.lagged and name not in program.parameters:
            raise InputError(f"{name!r} is the last control of the phase before; give it the first")
        if name in ocp.freed:
            raise InputError(f"{name!r} is free: the solver chooses it. Give it as a guess")
    times = time + ocp.length * ocp.fractions
    for name, signal in signals.items():
        value, what = given.get(name, declared[name]), f"value of {name!r}"
        timed = signal.varying and callable(value)
        if timed and (ocp.free_duration or np.isinf(time)):
            raise InputError(
                f"the duration of {ocp.name} or of a phase before it is free, so that the times of "
                f"its grid points are not known: the reference {name!r} cannot be a function of "
                "time; write it in the model with model.time, or give numbers"
            )
        if signal.varying and (timed or name in given):
            values[name] = spread(value, signal.size, times, what)
        elif name in given:
            values[name] = matrix(value, signal.size, 1, what)
    for name in ocp.lacking(given):  # after the names that are not known: one may be misspelt
        raise LackingError(
            f"{ocp.name} was not given the reference {name!r}; give it as {name}=…, or declare it "
            "with the value that it is to have without"
        )
    return values


def _guess(
    ocp: Statement, program: Program, initial: Mapping[str, Array], guess: Any
) -> dict[str, Array]:
    """Start values of the variables by block, in physical units."""
    given = {**ocp.guesses, **by_name(guess, "guess")}
    fractions = ocp.fractions
    wanted = targets(ocp, program)
    rows: dict[str, Array] = {}
    for name, signal in ocp.model.unknowns.items():
        if name in initial and name not in given:
            begin = initial[name]
            rows[name] = begin[:, None] + np.outer(wanted.get(name, begin) - begin, fractions)
        else:
            rows[name] = ocp.guessed(name, given.get(name, signal.guess))
    values = {
        label: np.stack([np.interp(at, fractions, row) for row in rows[name]])
        for name, label, at in _columns(ocp, program)
    }
    for name in (*ocp.freed, "duration"):
        if name in given and name in program.variables:
            values[name] = given[name]
    for name in dict(guess or {}):
        if name not in values:
            known(name, {**ocp.model.unknowns, **ocp.freed}, "state, control or free one")
    return values


def _columns(ocp: Statement, program: Program) -> Iterator[tuple[str, str, Array]]:
    """A trajectory's name, that of a block of it, and where in the duration its columns are."""
    for label, block in program.variables.items():
        if block.of.kind == "limit" and block.of.quantity in ocp.model.unknowns:
            at = ocp.fractions[: block.shape[1]]
            if block.of.place:
                at = between(ocp.fractions, points_of(ocp.method)[: block.stride])
            yield block.of.quantity, label, at


def start_of(ocp: Statement, program: Program, solution: Solution) -> dict[str, Array]:
    """Return ``x0``, ``lam_x0`` and ``lam_g0`` of a solution, moved where its mesh is another.

    By another method, or of a problem with other constraints, it is ``x0`` alone: some multipliers
    without the others lead away from it. States and controls are read from the trajectory at the
    new points. Multipliers are those of the old interval that is there: the costates, of the
    dynamics, as they are; those of limits in proportion to the interval's length, as parts of an
    integral.
    """
    old = solution.program
    alike = all(_shapes(getattr(old, of)) == _shapes(getattr(program, of))
                for of in ("variables", "constraints"))  # fmt: skip
    if alike and np.array_equal(solution.ocp.fractions, ocp.fractions):
        return {"x0": solution.x, "lam_x0": solution.lam_x, "lam_g0": solution.lam_g}
    had, has = ({name: signal.size for name, signal in one.model.unknowns.items()}
                for one in (solution.ocp, ocp))  # fmt: skip
    if had != has:
        raise InputError(
            f"guess is a solution of {solution.ocp.name}, whose states and controls are not those "
            f"of {ocp.name}: {had}, not {has}"
        )
    fractions, before = ocp.fractions, solution.ocp.fractions
    k = np.searchsorted(before, (fractions[:-1] + fractions[1:]) / 2, side="right") - 1
    ratio = np.diff(fractions) / np.diff(before)[k]
    k, ratio = np.append(k, before.size - 1), np.append(ratio, ratio[-1])  # and the last point

    def moved(of: str, values: Array, found: Array, *, dual: bool) -> Array:
        blocks, sources = getattr(program, of), getattr(old, of)
        for name, _ in _shapes(blocks).items() & _shapes(sources).items():
            block, source = blocks[name], sources[name]
            rows = values[source.where].reshape(source.shape, order="F")
            if block.stride:
                at, point = np.divmod(np.arange(block.shape[1]), block.stride)
                rows = rows[:, np.minimum(k[at] * block.stride + point, source.shape[1] - 1)]
                if dual and name not in ("dynamics", "continuity") and block.shape[1] > 1:
                    rows = rows * ratio[at]
            found[block.where] = rows.ravel(order="F")
        return found

    values = {label: sampled(solution, at)[name] for name, label, at in _columns(ocp, program)}
    begun = program.with_x0(moved("variables", solution.x, program.x0.copy(), dual=False))
    start = begun.with_start(values).x0
    if not alike:
        return {"x0": start}
    return {
        "x0": start,
        "lam_x0": moved("variables", solution.lam_x, np.zeros(program.n), dual=True),
        "lam_g0": moved("constraints", solution.lam_g, np.zeros(program.m), dual=True),
    }


def sampled(solution: Solution, fractions: Array) -> Mapping[str, Array]:
    """Return every quantity at fractions of the duration, as matrices by name."""
    dense = solution.dense
    times = solution.times[0] + fractions * solution.duration
    return dense.samples(*dense.locate(np.clip(times, *solution.times[[0, -1]]))).rows


def _shapes(blocks: Mapping[str, Block]) -> dict[str, tuple[int, int]]:
    """What does not depend on the mesh: names, entries and points an interval of the blocks."""
    return {name: (block.shape[0], block.stride) for name, block in blocks.items()}
