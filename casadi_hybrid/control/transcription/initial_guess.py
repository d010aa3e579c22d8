"""Values of one solve: initial state, parameters, references, and initial guess."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from casadi_hybrid.control.model.signals import (
    Array,
    LackingError,
    Values,
    between,
    by_name,
    finite,
    known,
    matrix,
    spread,
)
from casadi_hybrid.control.transcription.parametric_bounds import followed
from casadi_hybrid.control.transcription.program import Block, Program
from casadi_hybrid.control.transcription.statement import Statement
from casadi_hybrid.utils.arrays import changed
from casadi_hybrid.utils.errors import InputError


def start_values(
    ocp: Statement, program: Program, state: Array | None, time: float, guess: Any, values: Values
) -> Program:
    """Return the program, or a part of one, with the values of a solve."""
    # `state` is a checked column; without state or guess the program's own stay.
    blocks, p = program.parameters, program.p.copy()
    for name, value in _parameters(ocp, values, time, blocks).items():
        p[blocks[name].where] = value.ravel(order="F")
    if state is not None:
        slices = ocp.model.places("state")
        for name in ocp.fixed:
            p[blocks[f"initial {name}"].where] = state[slices[name]]
    if "time" in blocks:
        p[blocks["time"].where] = time
    # Bounds follow p, so all parameters must be set before.
    program = followed(changed(program, p=p))
    return program if guess is None else program.with_start(_guess(ocp, program, guess))


def state_of(ocp: Statement, program: Program, x0: Any) -> Array | None:
    """Return the initial state as a column; names left out keep the program's values."""
    if x0 is None:
        return None
    model = ocp.model
    for name in x0 if isinstance(x0, Mapping) else ():
        if name in model.signals["state"] and name not in ocp.fixed:
            raise InputError(
                f"x0 has {name!r}, which {ocp.name} leaves free at the start; name it in initial(…)"
            )
    default = np.zeros(model.size("state"))
    for name, where in model.places("state").items():
        if name in ocp.fixed:
            default[where] = program.parameters[f"initial {name}"].read(program.p)[:, 0]
    full: Array = model.vector("state", x0, "x0", default)
    for name, where in model.places("state").items():
        if np.isinf(full[where]).any():
            raise InputError(f"initial {name!r} is infinite; give a finite number")
    return full


def refuse_guessed(ocp: Statement, x0: Any) -> None:
    """Refuse an initial state without a value: a guess is no measurement."""
    names = (x0 or ()) if x0 is None or isinstance(x0, Mapping) else ocp.fixed
    missing = [n for n, value in ocp.fixed.items() if value is None and n not in names]
    if missing:
        raise InputError(
            f"{', '.join(missing)} of {ocp.name} has no number at the start; give solve(…) all "
            f"states, or {{{missing[0]!r}: …}}, or state initial({missing[0]}=…)"
        )


def _parameters(
    ocp: Statement, arguments: Mapping[str, Any], time: float, blocks: Mapping[str, Block]
) -> dict[str, Any]:
    """Return values by block; functions of time at the grid points, declared ones too."""
    signals, declared, values = ocp.given, ocp.declared, {}
    for name in arguments:
        if name in ("lbx", "ubx", "lbg", "ubg"):
            raise InputError(
                f"{name!r} is of nlpsol; here limits belong to quantities (lower=, upper=) and to "
                f"path(…). Numbers of a solve: {', '.join(['x0', 'time', 'guess', *signals])}"
            )
        if name in ocp.model.signals["state"]:
            raise InputError(f"{name!r} is a state; its initial value is x0={{{name!r}: …}}")
        known(name, signals, "parameter")
        if name in ocp.lagged and name not in blocks:
            raise InputError(f"{name!r} is the last control of the phase before; give it the first")
        if name in ocp.freed:
            raise InputError(f"{name!r} is free: the solver chooses it. Give it as a guess")
    times, lacking = time + ocp.length * ocp.fractions, False
    for name, signal in signals.items():
        value, what = arguments.get(name, declared[name]), f"value of {name!r}"
        timed = signal.varying and callable(value)
        lacking = lacking or (signal.needed and name not in arguments)
        if timed and (ocp.free_duration or np.isinf(time)):
            raise InputError(
                f"the duration of {ocp.name} or of a phase before it is free, so that the times of "
                f"its grid points are not known: the reference {name!r} cannot be a function of "
                "time; write it in the model with model.time, or give numbers"
            )
        if signal.varying and (timed or name in arguments):
            values[name] = spread(value, signal.size, times, what)
        elif name in arguments:
            values[name] = matrix(value, signal.size, 1, what)
    # After the unknown names: one may be misspelt.
    for name in ocp.lacking(arguments) if lacking else ():
        raise LackingError(
            f"{ocp.name} was not given the reference {name!r}; give it as {name}=…, or declare it "
            "with the value that it is to have without"
        )
    return values


def targets(ocp: Statement, program: Program) -> dict[str, Array]:
    """Return the values of states that are fixed at the end, for the program's parameters."""
    model = ocp.model
    # Final values depend on parameters alone, so states and controls may be zero here.
    p = np.append(program.stacked(ocp.given, -1), ocp.length)
    zero = [np.zeros(model.size(kind)) for kind in ("state", "algebraic", "control")]
    values = ocp.expression_function([*ocp.ends.values()]).call([*zero, p, ocp.length])
    sizes = {name: model.signals["state"][name].size for name in ocp.ends}
    ends = zip(sizes.items(), values, strict=True)
    return {name: finite(value, size, f"final {name!r}") for (name, size), value in ends}


def _guess(ocp: Statement, program: Program, guess: Any) -> dict[str, Array]:
    """Return the start values of the variables by block, in physical units."""
    guesses, fractions = {**ocp.guesses, **by_name(guess, "guess")}, ocp.fractions
    ends = targets(ocp, program)
    rows: dict[str, Array] = {}
    for name, signal in ocp.model.unknowns.items():
        if name in ocp.fixed and name not in guesses:
            # A straight line from the initial to the final value, constant without one.
            begin = program.parameters[f"initial {name}"].read(program.p)[:, 0]
            rows[name] = begin[:, None] + np.outer(ends.get(name, begin) - begin, fractions)
        else:
            rows[name] = ocp.guessed(name, guesses.get(name, signal.guess))
    values = {
        label: np.stack([np.interp(at, fractions, row) for row in rows[name]])
        for name, label, at in trajectory_blocks(ocp, program)
    }
    for name in (*ocp.freed, "duration"):
        if name in guesses and name in program.variables:
            values[name] = guesses[name]
    for name in dict(guess or {}):
        if name not in values:
            known(name, {**ocp.model.unknowns, **ocp.freed}, "state, control or free one")
    return values


def trajectory_blocks(ocp: Statement, program: Program) -> Iterator[tuple[str, str, Array]]:
    """Yield the name of a trajectory, the label of its block, and the fractions of its columns."""
    for label, block in program.variables.items():
        if block.role.kind == "limit" and block.role.quantity in ocp.model.unknowns:
            # A held control has one column less than there are grid points.
            at = ocp.fractions[: block.shape[1]]
            if block.role.place:
                at = between(ocp.fractions, ocp.method.nodes[: block.stride])
            yield block.role.quantity, label, at
