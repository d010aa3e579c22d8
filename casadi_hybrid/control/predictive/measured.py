"""What a step is given: shapes are checked, and numbers that are none are found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from casadi_hybrid.control.ocp import OptimalControl
from casadi_hybrid.control.predictive.limits import Sides
from casadi_hybrid.control.signals import Array


def measured(
    ocp: OptimalControl, x: Any, parameters: Mapping[str, Any]
) -> tuple[Array, dict[str, Any], str]:
    """Return the state as a column, the parameters, and what is not finite in them, in words.

    Zeros stand where numbers are not finite, so that the shapes can be checked all the same.

    Raises:
        InputError: for a state of another shape or with other names.
    """
    flaws: list[str] = []
    if isinstance(x, Mapping):
        x = {name: _clean(value, f"the measured {name}", flaws) for name, value in x.items()}
    else:
        x = _clean(x, "the measured state", flaws)
    state: Array = ocp.model.vector("state", x, "x")
    given = {
        name: _clean(value, f"the parameter {name}", flaws) for name, value in parameters.items()
    }
    return state, given, "; ".join(flaws)


def limited(
    ocp: OptimalControl, state: Array, limits: Sides, tolerance: float
) -> tuple[Array, dict[str, float]]:
    """Return the state, and by how much it exceeds each of its hard limits that it does.

    What exceeds a limit by no more than the tolerance begins at the limit. Of a problem that has no
    feasible point by as little the solver would look for one for long, and in vain.
    """
    amounts, state = {}, state.copy()
    for name, where in ocp.model.places("state").items():
        if name in ocp.softened:
            continue
        signal, values = ocp.model.signals["state"][name], state[where]
        lower, upper = (side[where] for side in limits)
        over = np.maximum(lower - values, values - upper)
        if (over > tolerance * signal.scale).any():
            amounts[name] = float(over.max())
        else:
            state[where] = np.clip(values, lower, upper)
    return state, amounts


def _clean(value: Any, what: str, flaws: list[str]) -> Any:
    if isinstance(value, Mapping):  # of one scenario
        return {name: _clean(own, f"{what}: {name}", flaws) for name, own in value.items()}
    if callable(value):
        return value
    try:
        numbers = np.array(value, dtype=float)
    except (TypeError, ValueError):
        return value  # whoever reads it says what is wrong with it
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        flaws.append(f"{what} has {numbers[wrong].ravel()[0]:g}")
        numbers[wrong] = 0.0
    return numbers
