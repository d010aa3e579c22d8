"""Phases one after the other: a rocket and its stages, a step and the flight after it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import casadi as ca

from casadi_hybrid.control.joint.joint import Joint
from casadi_hybrid.control.model.excess import Limits
from casadi_hybrid.control.model.signals import by_name, known
from casadi_hybrid.control.solution.ocp import OptimalControl
from casadi_hybrid.control.transcription.assembly import Assembly, Horizon
from casadi_hybrid.control.transcription.transcription import lay_phase
from casadi_hybrid.utils.errors import InputError


class Phases(Joint):
    """Optimal control problems one after the other, the sum of their costs minimized.

    A phase begins at the time at which the one before it ends. States of both by the same name go
    on with the value that they had, unless :meth:`jump` says otherwise.

    Args:
        phases: by name, in their order; each may have a model of its own.
        name: for messages.
        solver: options of :func:`casadi_hybrid.nlpsol`.

    Raises:
        InputError: for a bad name, or two phases that no state connects.

    Example:
        >>> from casadi_hybrid.control import Free, Model
        >>> def leg(force, duration):
        ...     model = Model("cart")
        ...     x, v = model.state("x"), model.state("v")
        ...     u = model.control("u", lower=-force, upper=force)
        ...     model.rates(x=v, v=u)
        ...     return OptimalControl(model, duration=duration, intervals=10)
        >>> boost, brake = leg(2.0, 0.5), leg(1.0, Free(1.0))
        >>> boost.initial(x=0, v=0)
        >>> brake.final(x=1, v=0)
        >>> brake.minimize("time", end=brake.duration)
        >>> found = Phases({"boost": boost, "brake": brake}).solve()
        >>> found.success, bool(abs(found["brake"]["v"][0] - found["boost"]["v"][-1]) < 1e-9)
        (True, True)
    """

    in_turn = True

    def __init__(
        self,
        phases: Mapping[str, OptimalControl],
        *,
        name: str = "phases",
        solver: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(phases, name, solver)
        self.jumps: dict[str, dict[str, Any]] = {label: {} for label in self.parts}

    def jump(self, phase: str, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Say where states of a phase begin, in symbols of the phase before it at its end.

        ``None`` leaves a state free.
        """
        part = known(phase, self.parts, "phase")
        if phase == next(iter(self.parts)):
            raise InputError(f"{phase!r} is the first phase; use its initial(…)")
        if part.closed:
            raise InputError(f"{self.name} is closed: its program exists. State all before that")
        before = list(self.parts)[list(self.parts).index(phase) - 1]
        what = f"at the start of {phase!r}, in symbols of {before!r},"
        for name, value in {**by_name(values, "jump"), **named}.items():
            known(name, part.model.signals["state"], "state")
            read = self.parts[before].own_expression
            own = None if value is None else ca.vec(read(value, f"{name!r} {what}"))
            self.jumps[phase][name] = own

    def _lay(self, assembly: Assembly) -> dict[str, tuple[Horizon, Any]]:
        horizons: dict[str, tuple[Horizon, Any]] = {}
        before = None
        for prefix, part in self.prefixed.items():
            before, _ = horizons[prefix] = lay_phase(part, assembly, prefix=prefix, before=before)
        for one, other in pairwise(self.parts):
            self._link(assembly, one, horizons[f"{one}/"][0], other, horizons[f"{other}/"][0])
        return horizons

    def _link(self, assembly: Assembly, one: str, h: Horizon, other: str, g: Horizon) -> None:
        source, target = self.parts[one], self.parts[other]
        places, states = target.model.places("state"), target.model.signals["state"]
        shared = states.keys() & source.model.signals["state"].keys()
        # By default states of one name go on; a jump overrides, and None leaves the state free.
        begins = {name: source.model.symbol(name) for name in shared} | self.jumps[other]
        begins = {name: begins[name] for name in states if begins.get(name) is not None}
        if not begins:
            raise InputError(
                f"no state connects {one!r} and {other!r}; give states the same name, or use "
                f"jump({other!r}, …)"
            )
        for name, value in begins.items():
            signal = states[name]
            if value.numel() != signal.size:
                raise InputError(
                    f"{name!r} of {other!r} has {signal.size} entries; what it begins with has "
                    f"{value.numel()}"
                )
            end = source.expression_function([value], "jump").call(h.at(h.N), True, False)[0]
            # x(t⁺) − jump(x(t⁻), …) = 0, a row of the last stage of the phase before.
            gap, limits = g.X[places[name], 0] - end, Limits.equality(signal.scale)
            assembly.constrain(f"{name} from {one} to {other}", gap, [g.first - 1], limits)
