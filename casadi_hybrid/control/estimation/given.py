"""What an estimator is told: which parameters are unknown, and how certain the prior is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError, suggest
from casadi_hybrid.control.model import Model
from casadi_hybrid.control.signals import Array, by_name, column, known


@dataclass(frozen=True)
class Unknown:
    """A parameter of the model that is estimated; every number is one, or one an entry.

    Attributes:
        std: standard deviation of the prior.
        guess: mean of the prior; the model's value by default.
        lower, upper: limits.
        scale: typical size; the model's by default.
        drift: standard deviation of its change over a period, which keeps it from being believed
            for ever; it enters when the window moves on, within a window the parameter is constant.
    """

    std: Any
    guess: Any = None
    lower: Any = -np.inf
    upper: Any = np.inf
    scale: Any = None
    drift: Any = 0.0


def unknowns(model: Model, given: Mapping[str, Any] | None) -> dict[str, Unknown]:
    """Return the unknown parameters by name, in the model's order, their defaults filled in.

    Raises:
        InputError: for names and numbers that do not fit.
    """
    given = by_name(given, "free")
    keys = [part.name for part in fields(Unknown)]
    found: dict[str, Unknown] = {}
    for name, entry in given.items():
        value = entry
        signal = known(name, model.signals["parameter"], "parameter")
        if signal.varying:
            raise InputError(f"free[{name!r}] is a reference; only a parameter can be free")
        if isinstance(value, Mapping):
            strange = [key for key in value if key not in keys]
            if strange or "std" not in value:
                hint = suggest(str(strange[0]), keys) if strange else ""
                said = f"has {strange[0]!r}{hint or '.'}" if strange else "lacks 'std'."
                raise InputError(f"free[{name!r}] {said} It takes {', '.join(keys)}")
            value = Unknown(**value)
        if not isinstance(value, Unknown):
            raise InputError(f"free[{name!r}] must be a dictionary with 'std', got {value!r}")
        numbers = {
            "guess": model.values[name] if value.guess is None else value.guess,
            "scale": signal.scale if value.scale is None else value.scale,
            **{key: getattr(value, key) for key in ("std", "lower", "upper", "drift")},
        }
        columns = {
            key: column(number, signal.size, f"free[{name!r}][{key!r}]")
            for key, number in numbers.items()
        }
        if not (columns["std"] > 0).all() or not (columns["drift"] >= 0).all():
            raise InputError(
                f"free[{name!r}] takes a positive std and a drift that is not negative"
            )
        found[name] = Unknown(**columns)
    return {name: found[name] for name in model.signals["parameter"] if name in found}


def deviations(model: Model, value: Any, what: str) -> Any:
    """Return deviations by state as a dictionary or column, where none of the states is left out.

    Raises:
        InputError: where a state has no deviation.
    """
    missing = [name for name in model.signals["state"] if name not in value] if isinstance(
        value, Mapping) else []  # fmt: skip
    if missing:
        raise InputError(f"{what} lacks {', '.join(map(repr, missing))}")
    return value


def stacked(parts: Mapping[str, Unknown], key: str) -> Array:
    """Return an attribute of all unknowns, one below the other."""
    return np.concatenate([np.zeros(0), *(getattr(part, key) for part in parts.values())])
