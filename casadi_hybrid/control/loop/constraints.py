"""Path constraints of a predictive controller along the trajectory of a closed loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.loop.table import Table
from casadi_hybrid.control.program import Program
from casadi_hybrid.control.signals import Array, places
from casadi_hybrid.control.terms import Constraint


def judged(
    answers: Sequence[Any], states: Table, held: Table, *, named: bool
) -> tuple[dict[str, Array], dict[str, Constraint], Sequence[Mapping[str, Any]], tuple[str, ...],
           dict[str, Array]]:  # fmt: skip
    """Return the path constraints of the steps of an :class:`MPC` along K + 1 states.

    ``held`` are controls: before the first step, in the K steps, and the last once more. Where they
    are not ``named`` as in the model, the order is the same. What is returned: values by name, a
    column a time; what they are of; for each time the limits that were not as declared, by name;
    the names of those that the record does not determine; references by name, as in the steps.
    """
    asked = [getattr(answer, "asked", None) for answer in answers]
    if (first := next(filter(None, asked), None)) is None:
        return {}, {}, (), (), {}
    ocp, model, prefix = first[0].nominal, first[0].model, next(iter(first[0].prefixed))
    lasting = list(accumulate([*asked, None], lambda old, new: new or old, initial=first))[1:]
    programs = [program.part(prefix) for _, program, _ in lasting]
    paths = {f"path {c.name}" if c.name in states or c.name in held else c.name: c
             for c in ocp.constraints
             if c.place == "path" and not c.of}  # of a state: judged as its own  # fmt: skip
    chosen = [*map(model.symbol, ocp.freed)] + [ocp.duration] * bool(ocp.free_duration)
    unseen = ca.vertcat(model.stacked("algebraic"), *chosen)
    seen = {name: c for name, c in paths.items() if not ca.depends_on(c.expression, unseen)}
    X, W = states.values, held.values
    P = np.array([_given(ocp, part, courses, time) for part, (*_, courses), time in
                  zip(programs, lasting, states.times, strict=True)]).T  # fmt: skip
    asked_for = {name: P[at].copy() for name, at in places(ocp.given).items()
                 if ocp.given[name].varying}  # fmt: skip
    try:
        if named:
            X, W = (np.vstack([table.rows(name) for name in model.signals[kind]])
                    for kind, table in (("state", states), ("control", held)))  # fmt: skip
        for name, control in ocp.lagged.items():
            P[places(ocp.given)[name]] = W[model.places("control")[control], :-1]
        function = ocp.expression_function([c.expression for c in seen.values()])
        z = np.zeros((model.size("algebraic"), len(programs)))
        found = function.map(len(programs)).call([X, z, W[:, 1:], P, states.times[None]])
    except (InputError, RuntimeError):  # the plant has other states or controls
        return {}, {}, (), tuple(paths), asked_for
    rows = {name: value.full() for name, value in zip(seen, found, strict=True)}
    unchecked = tuple(name for name in paths if name not in seen)
    return rows, seen, [program.limits for program in programs], unchecked, asked_for


def _given(ocp: Any, part: Program, courses: Mapping[str, Any], time: float) -> Array:
    """The parameters of a step and the length; references are those at the time, or the first."""
    grid = part.parameters["time"].read(part.p)[0, 0] + ocp.length * (ocp.fractions - 1e-9)
    values = part.stacked(ocp.given, max(int(np.searchsorted(grid, time, side="right")) - 1, 0))
    for name, course in courses.items():
        with suppress(Exception):  # at the end, which no step was asked
            values[places(ocp.given)[name]] = np.ravel(course(time))
    return np.append(values, ocp.length)
