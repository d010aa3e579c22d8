"""Where a model rests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.calls import checked_call
from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.casadi_api.interface import nlpsol
from casadi_hybrid.control.loop.plant import first_guess
from casadi_hybrid.control.model import Model
from casadi_hybrid.control.reading.measures import entry_name
from casadi_hybrid.control.signals import Array, Signal, by_name, column, known, number, numbers

KINDS = ("state", "algebraic", "control")


@dataclass(frozen=True)
class Steady:
    """A point at which a model rests; ``steady["T"]`` is a number, or a vector of several entries.

    Attributes:
        states, algebraic, controls: dictionaries by name, as :meth:`OptimalControl.initial` and
            :func:`simulate` take them.
    """

    states: Mapping[str, Any]
    algebraic: Mapping[str, Any]
    controls: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return known(name, {**self.states, **self.algebraic, **self.controls}, "quantity")


@checked_call
def steady(
    model: Model,
    *,
    guess: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
    time: float = 0.0,
    **fixed: Any,
) -> Steady:
    """Return where a model rests under a constant control, as near to a guess as it can.

    Of all states x, algebraic states z and controls u within their limits at which nothing moves,

        min ½‖((x, z, u) − guess) / scale‖²   s.t. rate(x, z, u, p, t) = 0, equations(…) = 0,

    and next(…) = x for a discrete model. Where some of them are fixed and the rest follows, the
    guess only chooses among several such points.

    Args:
        model: continuous or discrete.
        guess: by name; the model's own guesses by default.
        parameters: values by name that differ from the model's.
        time: of a model that depends on it.
        **fixed: values of states, algebraic states and controls by name; NaN for an entry of a
            vector that is not fixed.

    Raises:
        InputError: for unknown names and wrong sizes, and where no such point was found; the
            message says why.

    Example:
        >>> tank = Model("tank")
        >>> level, inflow = tank.state("level", lower=0), tank.control("inflow", lower=0, upper=2)
        >>> tank.rates(level=inflow - ca.sqrt(level + 1))
        >>> steady(tank, level=0.44)["inflow"]
        1.2
    """
    start = {name: begin[where] for kind in KINDS for begin in [first_guess(model, kind)]
             for name, where in model.places(kind).items()}  # fmt: skip
    values = dict(model.values)
    for name, value in by_name(parameters, "parameters").items():
        size = known(name, model.signals["parameter"], "parameter").size
        values[name] = column(value, size, f"parameters[{name!r}]")
    # Of a reference with a column a grid point, the first.
    first = {name: v[:, 0] if np.ndim(v) > 1 else v for name, v in values.items()}
    p = model.numbers(first, time)
    model = model.limited_by(p)
    signals = model.unknowns
    for name, value in by_name(guess, "guess").items():
        start[name] = column(value, known(name, signals, "quantity").size, f"guess of {name!r}")
    lower, upper = ({name: getattr(signal, side).copy() for name, signal in signals.items()}
                    for side in ("lower", "upper"))  # fmt: skip
    for name, value in fixed.items():
        given = np.broadcast_to(numbers(value, name).ravel(), known(name, signals, "quantity").size)
        there = ~np.isnan(given)
        for side in (lower, upper, start):
            side[name] = np.where(there, given, side[name])
    scale = _stacked({name: signal.scale for name, signal in signals.items()})
    z = ca.SX.sym("z", scale.size)
    x, a, u = ca.vertsplit(ca.DM(scale) * z, np.cumsum([0, *map(model.size, KINDS)]).tolist())
    moved = model.moves.rate(x, a, u, p, time) - (x if model.discrete else 0)
    moved = moved / ca.DM(scale[: model.size("state")])
    rows = ca.vertcat(moved, model.moves.equations(x, a, u, p, time))
    x0 = _stacked(start) / scale
    nlp = {"x": z, "f": 0.5 * ca.sumsqr(z - ca.DM(x0)), "g": rows}
    sides = {"lbx": _stacked(lower) / scale, "ubx": _stacked(upper) / scale, "lbg": 0, "ubg": 0}
    for tol in (1e-10, 1e-6):  # what rests is to rest, as far as the model's units allow
        solver = nlpsol("steady", "hybrid", nlp, {**_names(model), "constr_viol_tol": tol})
        found = solver(x0=x0, **sides)
        if solver.stats()["success"]:
            break
    if not solver.stats()["success"]:
        raise InputError(f"no steady state of {model.name} was found: {solver.explain()}")
    point = scale * found["x"].full().ravel()
    parts = zip(KINDS, np.split(point, np.cumsum([*map(model.size, KINDS)])[:-1]), strict=True)
    return Steady(*({name: number(part[where]) for name, where in model.places(kind).items()}
                    for kind, part in parts))  # fmt: skip


def _names(model: Model) -> dict[str, list[str]]:
    """Names of unknowns and rows with their units, as :func:`labels` has them of a program."""

    def entries(signal: Signal, prefix: str = "", per: str = "") -> list[str]:
        unit = signal.unit and signal.unit + per
        said = [" ".join(filter(None, ("" if scale == 1.0 else f"{scale:g}", unit)))
                for scale in signal.scale]  # fmt: skip
        names = [prefix + entry_name(signal.name, i, signal.scale) for i in range(signal.size)]
        return [f"{name} (in {of})" if of else name for name, of in zip(names, said, strict=True)]

    moved, per = ("change", "") if model.discrete else ("rate", f"/{model.time_unit}")
    states = model.signals["state"].values()
    return {
        "variable_names": [name for s in model.unknowns.values() for name in entries(s)],
        "constraint_names": [
            *(name for s in states for name in entries(s, f"{moved} of ", per)),
            *model.equation_names,
        ],
    }


def _stacked(parts: Mapping[str, Any]) -> Array:
    return np.concatenate([np.zeros(0), *(np.ravel(part) for part in parts.values())])
