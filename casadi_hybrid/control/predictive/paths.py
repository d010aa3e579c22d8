"""Path constraints and limits of a controller's problem along what a plant really did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.loop.table import Table
from casadi_hybrid.control.predictive.problem import nominal, parts
from casadi_hybrid.control.signals import Array, places
from casadi_hybrid.control.starting import stacked
from casadi_hybrid.control.terms import Constraint


@dataclass(frozen=True)
class Judged:
    """What the record of a loop says of the problem that its controller solved.

    Attributes:
        constraints, rows: by name those that the record decides, and their values, a column a time.
        changed: for each time the limits that were not as declared, by name.
        hidden: names of path constraints that the record does not decide.
    """

    constraints: Mapping[str, Constraint] = field(default_factory=dict)
    rows: Mapping[str, Array] = field(default_factory=dict)
    changed: Sequence[Mapping[str, tuple[Array, Array]]] = ()
    hidden: tuple[str, ...] = ()


def judged(answers: Sequence[Any], states: Table, held: Table, *, by_name: bool) -> Judged:
    """Return the path constraints of the steps of an :class:`MPC` along K + 1 states.

    ``held`` are controls: before the first step, in the K steps, and the last once more. Without
    ``by_name`` states and controls are in the controller's order, the plant being a function.
    """
    asked: list[Any] = [getattr(answer, "asked", None) for answer in answers]
    begin = next((k for k, pair in enumerate(asked) if pair), None)
    if begin is None:
        return Judged()
    for k in range(begin + 1, len(asked)):
        asked[k] = asked[k] or asked[k - 1]
    problem = asked[begin][0]
    ocp, model, prefix = nominal(problem), problem.model, next(iter(parts(problem)))
    own = {f"limits of {name}" for name in ocp.softened}  # judged as those of the states
    paths = {c.name: c for c in ocp.constraints if c.place == "path" and c.name not in own}
    chosen = [*map(model.symbol, ocp.freed)] + [ocp.duration] * bool(ocp.free_duration)
    unseen = ca.vertcat(model.stacked("algebraic"), *chosen)
    seen = {name: c for name, c in paths.items() if not ca.depends_on(c.expression, unseen)}
    programs = [program.part(prefix) for _, program in [*asked[begin:], asked[-1]]]
    P = np.array([np.append(stacked(part, ocp.given, 0), ocp.length) for part in programs]).T
    try:
        X, W = (
            np.vstack([table.rows(name) for name in model.signals[kind]])
            if by_name
            else table.values
            for kind, table in (("state", states), ("control", held))
        )
        for name, control in ocp.lagged.items():
            P[places(ocp.given)[name]] = W[model.places("control")[control], begin:-1]
        function = ocp.expression_function([c.expression for c in seen.values()])
        z, t = np.zeros((model.size("algebraic"), len(programs))), states.times[None, begin:]
        found = function.map(len(programs)).call([X[:, begin:], z, W[:, begin + 1 :], P, t])
    except (InputError, RuntimeError):  # the plant has other states or controls
        return Judged(hidden=tuple(paths))
    rows = {
        name: np.pad(value.full(), ((0, 0), (begin, 0)), constant_values=np.nan)
        for name, value in zip(seen, found, strict=True)
    }
    changed = [programs[0].limits] * begin + [program.limits for program in programs]
    return Judged(seen, rows, changed, tuple(name for name in paths if name not in seen))
