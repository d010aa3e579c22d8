"""Measurements of a predictive controller: values that are not finite, states beyond limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from casadi_hybrid.control.model.signals import Array, numbers
from casadi_hybrid.control.transcription.limits import Sides
from casadi_hybrid.control.transcription.statement import Statement
from casadi_hybrid.utils.arrays import anywhere
from casadi_hybrid.utils.errors import InputError


def measured(
    ocp: Statement, x: Any, parameters: Mapping[str, Any]
) -> tuple[Array, Mapping[str, Any], str]:
    """Return the state as a column, the parameters, and their flaws in words."""
    flaws: list[str] = []
    if not isinstance(x, np.ndarray) and isinstance(x, Mapping):
        x = {name: _clean(name, v, f"the measured {name}", flaws, {}) for name, v in x.items()}
    state: Array = ocp.model.vector("state", x, "x", lost=True)
    wrong = ~np.isfinite(state)
    if anywhere(wrong):
        flaws.append(f"the measured state has {state[wrong][0]:g}")
        # Any finite number will do: no solve is made of a flawed state.
        state[wrong] = 0.0
    if parameters:
        parameters = {
            name: _clean(name, value, f"the parameter {name}", flaws, ocp.declared)
            for name, value in parameters.items()
        }
    return state, parameters, "; ".join(flaws)


def limited(
    ocp: Statement, state: Array, limits: Sides, tolerance: float
) -> tuple[Array, dict[str, float]]:
    """Return the state within its limits, and the excess over each hard limit that it violates.

    A state within all limits is returned itself.
    """
    lower, upper = limits
    excess: dict[str, float] = {}
    if not anywhere((state < lower) | (state > upper)):
        return state, excess
    state = state.copy()
    for name, where in ocp.model.places("state").items():
        if name in ocp.softened:
            continue
        scale, values = ocp.model.signals["state"][name].scale, state[where]
        beyond = np.maximum(lower[where] - values, values - upper[where])
        if (beyond > tolerance * scale).any():
            excess[name] = float(beyond.max())
        else:
            # So small an excess may make the problem infeasible, which takes long to prove.
            state[where] = np.clip(values, lower[where], upper[where])
    return state, excess


def _clean(name: str, value: Any, label: str, flaws: list[str], declared: Mapping[str, Any]) -> Any:
    """Return a value with declared ones in place of entries that are not finite."""
    if isinstance(value, Mapping):  # of one scenario
        return {n: _clean(n, v, f"{label}: {n}", flaws, declared) for n, v in value.items()}
    if callable(value):
        return value
    try:
        values = numbers(value, label)
    except InputError:
        return value  # refused where it is read, by its shape or kind
    wrong = ~np.isfinite(values)
    if wrong.any():
        flaws.append(f"{label} has {values[wrong].ravel()[0]:g}")
        known = declared.get(name, 0.0)
        fits = not callable(known) and np.size(known) in (1, values.size)
        values[wrong] = np.resize(known if fits else 0.0, values.shape)[wrong]
    return values
