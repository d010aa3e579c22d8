"""Equilibria of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.excess import Limits
from casadi_hybrid.control.model.model import Model
from casadi_hybrid.control.model.plant import first_guess
from casadi_hybrid.control.model.signals import by_name, column, known, number, numbers, sides
from casadi_hybrid.control.transcription.assembly import Assembly
from casadi_hybrid.control.transcription.naming import named
from casadi_hybrid.solver.nlpsol.interface import nlpsol
from casadi_hybrid.utils.errors import InputError

KINDS = ("state", "algebraic", "control")


@dataclass(frozen=True)
class Steady:
    """Equilibrium of a model; ``steady["T"]`` is a number, or a vector of several entries.

    Attributes:
        states, algebraic, controls: dictionaries by name, as :meth:`OptimalControl.initial` and
            :func:`simulate` take them.
    """

    states: Mapping[str, Any]
    algebraic: Mapping[str, Any]
    controls: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return known(name, {**self.states, **self.algebraic, **self.controls}, "quantity")


def steady(
    model: Model,
    *,
    guess: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
    time: float = 0.0,
    **fixed: Any,
) -> Steady:
    """Return the equilibrium of a model under a constant control that is closest to a guess.

    Over states x, algebraic states z and controls u within their limits,

        min ½‖((x, z, u) − guess) / scale‖²   s.t. rate(x, z, u, p, t) = 0, equations(…) = 0,

    and next(…) = x for a discrete model. If the fixed values determine the rest, the guess only
    chooses among several equilibria.

    Args:
        model: continuous or discrete.
        guess: by name; the model's own guesses by default.
        parameters: values by name that differ from the model's.
        time: of a model that depends on it.
        **fixed: values of states, algebraic states and controls by name; NaN for an entry of a
            vector that is free.

    Raises:
        InputError: for unknown names and wrong sizes, and if no equilibrium was found; the
            message says why.

    Example:
        >>> tank = Model("tank")
        >>> level, inflow = tank.state("level", lower=0), tank.control("inflow", lower=0, upper=2)
        >>> tank.rates(level=inflow - ca.sqrt(level + 1))
        >>> steady(tank, level=0.44)["inflow"]
        1.2
    """
    if not isinstance(model, Model):
        raise InputError(f"model must be a Model, got {type(model).__name__}")
    start: dict[str, Any] = {}
    for kind in KINDS:
        guesses = first_guess(model, kind)
        start |= {name: guesses[where] for name, where in model.places(kind).items()}
    values = dict(model.values)
    for name, value in by_name(parameters, "parameters").items():
        size = known(name, model.signals["parameter"], "parameter").size
        values[name] = column(value, size, f"parameters[{name!r}]")
    # Of a reference with a column a grid point, the first.
    first = {name: v[:, 0] if np.ndim(v) > 1 else v for name, v in values.items()}
    p = model.numbers(first, time)
    limits = model.limits_by(p).items()
    model = model.limited({name: sides(name, pair[0].size, *pair) for name, pair in limits})
    signals = model.unknowns
    for name, value in by_name(guess, "guess").items():
        start[name] = column(value, known(name, signals, "quantity").size, f"guess of {name!r}")
    for name in fixed:
        known(name, signals, "quantity")
    assembly, units = Assembly(model.name, ca.SX), {name: s.unit for name, s in signals.items()}
    symbols: dict[str, Any] = {}
    for name, s in signals.items():
        value = np.broadcast_to(numbers(fixed.get(name, np.nan), name).ravel(), s.size)
        free = start[name], s.lower, s.upper
        # NaN marks a free entry; a fixed one has equal bounds.
        begin, lower, upper = (np.where(np.isnan(value), default, value) for default in free)
        symbols[name] = assembly.variable(name, replace(s, lower=lower, upper=upper), [0], begin)
        # Closest to the guess in scales: unique also where the equations leave freedom.
        assembly.cost += 0.5 * ca.sumsqr((symbols[name] - begin) / s.scale)
    parts = ([symbols[name] for name in model.signals[kind]] for kind in KINDS)
    x, a, u = (ca.vertcat(ca.SX(0, 1), *rows) for rows in parts)
    # An equilibrium of a discrete model has next(x) = x.
    moved = model.moves.rate(x, a, u, p, time) - (x if model.discrete else 0)
    word, per = ("change", "") if model.discrete else ("rate", f"/{model.time_unit}")
    for name, where in model.places("state").items():
        row, unit = f"{word} of {name}", units[name]
        assembly.constrain(row, moved[where], [0], Limits.equality(signals[name].scale))
        units[row] = unit and unit + per
    if model.size("algebraic"):
        rows = model.moves.equations(x, a, u, p, time)
        names = tuple(model.equation_names)
        assembly.constrain("equations", rows, [0], Limits.equality(1.0), entries=names)
    program = assembly.build()
    labels = named(program, units)
    for tol in (1e-10, 1e-6):  # as exact as the model's units allow
        solver = nlpsol("steady", "hybrid", dict(program.nlp), {**labels, "constr_viol_tol": tol})
        result = solver(**program.arguments)
        if solver.stats()["success"]:
            break
    if not solver.stats()["success"]:
        raise InputError(f"no steady state of {model.name} was found: {solver.explain()}")
    point = {name: number(rows.ravel()) for name, rows in program.unpack(result["x"]).items()}
    return Steady(*({name: point[name] for name in model.signals[kind]} for kind in KINDS))
