"""Measurements of a predictive controller: numbers that are not finite, states beyond limits."""

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
    """Return the state as a column, the parameters, and their flaws in words.

    Numbers that are not finite are replaced by the declared ones, of states by zeros, so that
    shapes are checked and limits are those declared.
    """
    flaws: list[str] = []
    if not isinstance(x, np.ndarray) and isinstance(x, Mapping):
        x = {name: _clean(name, value, f"the measured {name}", flaws, {})
             for name, value in x.items()}  # fmt: skip
    state: Array = ocp.model.vector("state", x, "x", lost=True)
    wrong = ~np.isfinite(state)
    if anywhere(wrong):
        flaws.append(f"the measured state has {state[wrong][0]:g}")
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
    """Return the state, and by how much it exceeds each of its hard limits that it does.

    An excess of at most the tolerance begins at the limit: where so little makes a problem
    infeasible, the solver would search for a feasible point for long, and in vain. A state within
    all limits is returned itself.
    """
    lower, upper = limits
    amounts: dict[str, float] = {}
    if not anywhere((state < lower) | (state > upper)):
        return state, amounts
    state = state.copy()
    for name, where in ocp.model.places("state").items():
        if name in ocp.softened:
            continue
        signal, values = ocp.model.signals["state"][name], state[where]
        over = np.maximum(lower[where] - values, values - upper[where])
        if (over > tolerance * signal.scale).any():
            amounts[name] = float(over.max())
        else:
            state[where] = np.clip(values, lower[where], upper[where])
    return state, amounts


def _clean(name: str, value: Any, what: str, flaws: list[str], declared: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):  # of one scenario
        return {own: _clean(own, part, f"{what}: {own}", flaws, declared)
                for own, part in value.items()}  # fmt: skip
    if callable(value):
        return value
    try:
        found = numbers(value, what)
    except InputError:
        return value  # whoever reads it says what is wrong with it
    wrong = ~np.isfinite(found)
    if wrong.any():
        flaws.append(f"{what} has {found[wrong].ravel()[0]:g}")
        known = declared.get(name, 0.0)
        fits = not callable(known) and np.size(known) in (1, found.size)
        found[wrong] = np.resize(known if fits else 0.0, found.shape)[wrong]
    return found
