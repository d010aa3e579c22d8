"""Scenarios side by side: one control for all of them until they can be told apart.

With scenarios s of weight w_s, each with its own parameters, states and controls,

    min Σ_s w_s J_s   s.t. the dynamics and constraints of each,
    u_s(k) = u_r(k)   where s and r cannot be told apart before the interval k.

Two scenarios can be told apart from the interval after the first one on which their parameters
differ.

Source: S. Lucia, T. Finkler, S. Engell, "Multi-stage nonlinear model predictive control applied to
a semi-batch polymerization reactor under uncertainty", Journal of Process Control 23, 2013.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from casadi_hybrid.control.joint.joint import Joint
from casadi_hybrid.control.model.excess import Limits
from casadi_hybrid.control.model.signals import Array, by_name, known, matrix
from casadi_hybrid.control.solution.ocp import OptimalControl
from casadi_hybrid.control.transcription.assembly import Assembly, Horizon
from casadi_hybrid.control.transcription.transcription import lay_phase
from casadi_hybrid.utils.errors import InputError


class Scenarios(Joint):
    """One optimal control problem with several sets of parameters at once: robust control.

    Args:
        ocp: the problem.
        scenarios: by name, the values of parameters; the first is the nominal one. A value of a
            scenario stays; other parameters have the value of the problem, or of a solve or a
            step. See :func:`branches`.
        weights: one for each scenario; equal ones by default. They are divided by their sum.
        shared: number of intervals with common controls in any case, at least 1.
        name: for messages.
        solver: options of :func:`casadi_hybrid.nlpsol`.

    Raises:
        InputError: for an unknown parameter, weights that do not fit, no scenario.
    """

    def __init__(
        self,
        ocp: OptimalControl,
        scenarios: Mapping[str, Mapping[str, Any]],
        *,
        weights: Sequence[float] | None = None,
        shared: int = 1,
        name: str | None = None,
        solver: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(ocp, OptimalControl):
            raise InputError(f"ocp must be an OptimalControl, got {type(ocp).__name__}")
        if ocp.free_duration is not None:
            raise InputError(
                f"the duration of {ocp.name} is free, so that intervals whose control is common "
                "would be as long as each scenario likes; give the problem a fixed duration"
            )
        options = ocp.options if solver is None else solver
        scenarios = by_name(scenarios, "scenarios")
        own = {label: by_name(v, f"scenario {label!r}") for label, v in scenarios.items()}
        super().__init__(dict.fromkeys(own, ocp), name or ocp.name, options)
        for values in own.values():
            for parameter in values:
                known(parameter, ocp.given, "parameter")
                if parameter in ocp.freed:
                    raise InputError(f"{parameter!r} is free: it cannot differ by scenario")
        count = len(self.parts)
        shares = np.ones(count) if weights is None else np.asarray(weights, dtype=float).ravel()
        if shares.size != count or not (shares > 0).all() or not np.isfinite(shares).all():
            raise InputError(f"weights must be {count} positive numbers, got {weights!r}")
        if not isinstance(shared, int | np.integer) or not 1 <= shared <= ocp.intervals:
            raise InputError(f"shared must be an integer from 1 to {ocp.intervals}, got {shared!r}")
        self.scenarios = own
        self.own = {f"{label}/": values for label, values in own.items()}
        # The weights add up to one: the cost is an expectation.
        self.weights = dict(zip(self.parts, (shares / shares.sum()).tolist(), strict=True))
        self.shared = int(shared)
        self.ocp = self.nominal = ocp

    def _lay(self, assembly: Assembly) -> dict[str, tuple[Horizon, Any]]:
        horizons = {
            f"{label}/": lay_phase(part, assembly, prefix=f"{label}/", weight=self.weights[label])
            for label, part in self.parts.items()
        }
        labels = list(self.parts)
        for j, label in enumerate(labels[1:], start=1):
            for k in range(self.ocp.intervals):
                # Equations to all earlier twins would be linearly dependent: one is enough.
                twin = next((other for other in labels[:j] if self._alike(other, label, k)), None)
                if twin is None:
                    break
                self._join(assembly, horizons, twin, label, k)
        return horizons

    def _join(
        self, assembly: Assembly, horizons: Mapping[str, Any], one: str, other: str, k: int
    ) -> None:
        h, g = (horizons[f"{label}/"][0] for label in (one, other))
        for name, where in self.ocp.model.places("control").items():
            signal = self.ocp.model.signals["control"][name]
            # A linear control is common on an interval if it is common at both ends.
            for at in range(k + (signal.linear and k > 0), k + 1 + signal.linear):
                gap, limits = g.W[where, at] - h.W[where, at], Limits.equality(signal.scale)
                label = f"{name}[{at}] of {other} as of {one}"
                assembly.constrain(label, gap, [h.first + k], limits, stride=0)
                # One pair of bounds for both: two active bounds would be linearly dependent.
                assembly.tie(f"{other}/{name}", f"{one}/{name}", at)

    def _alike(self, one: str, other: str, k: int) -> bool:
        """Return if two scenarios cannot be told apart before the interval k."""
        if k < self.shared:
            return True
        a, b = ({**self.ocp.declared, **self.scenarios[label]} for label in (one, other))
        # Values that are the same object need no comparison, functions of time among them.
        differ = [name for name in self.ocp.given if a[name] is not b[name]]
        moving = [name for name in differ if callable(a[name]) or callable(b[name])]
        for name in differ:
            fixed = name not in moving
            if fixed and (self._course(name, a[name], k) != self._course(name, b[name], k)).any():
                return False
        if moving:
            raise InputError(
                f"scenarios {one!r} and {other!r} of {self.name} state {moving[0]!r} by a function "
                "of time, so that when they can be told apart hangs on the time of a step; state "
                f"numbers, one a grid point, or one function, or give shared={self.ocp.intervals}"
            )
        return True

    def _course(self, name: str, value: Any, k: int) -> Array:
        """Return the values of a parameter on the intervals before k."""
        signal = self.ocp.given[name]
        columns = self.ocp.intervals + 1 if signal.varying else 1
        course = matrix(value, signal.size, columns, f"value of {name!r}")
        # Non-anticipativity: only columns observed before the interval k distinguish.
        return course[:, :k] if signal.varying else course


def branches(
    values: Mapping[str, Sequence[Any]], intervals: int, depth: int = 1
) -> dict[str, dict[str, Any]]:
    """Return the leaves of a tree: all combinations of values, anew on each of ``depth`` intervals.

    Args:
        values: by the name of a parameter its possible values, the nominal one first. For a depth
            above 1 the parameter must be a scalar reference of the model.
        intervals: of the horizon.
        depth: intervals after which the tree no longer branches.

    Returns:
        Scenarios by name, for :class:`Scenarios`.
    """
    if not isinstance(depth, int) or not 1 <= depth <= intervals:
        raise InputError(f"depth must be an integer from 1 to {intervals}, got {depth!r}")
    at_once = [dict(zip(values, leaf, strict=True)) for leaf in product(*values.values())]
    leaves = {}
    for number, course in enumerate(product(at_once, repeat=depth)):
        columns = [course[min(k, depth - 1)] for k in range(intervals + 1)]
        leaves["nominal" if number == 0 else f"branch {number}"] = {
            name: course[0][name] if depth == 1 else np.array([[c[name] for c in columns]])
            for name in values
        }
    return leaves
