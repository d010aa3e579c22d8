"""The control where there is no plan for a measurement."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any

import numpy as np

from casadi_hybrid.control.model.signals import Array
from casadi_hybrid.control.mpc.plan import Plan, beginning
from casadi_hybrid.control.mpc.search import Answers
from casadi_hybrid.control.mpc.step import DEFAULT, FALLBACK
from casadi_hybrid.control.solution.ocp import OptimalControl
from casadi_hybrid.control.solution.steady import steady
from casadi_hybrid.utils.errors import InputError

Fallback = Callable[[Array, float], Any]
_REST = 1e-6
"""Largest control at rest, in units of its scale, that counts as zero."""
_FIRST_USE = 10.0
"""Seconds that the solves before the first step may take."""


class DefaultControl:
    """A user's function (x, time) → controls, then the default.

    The default is what the user chose. Without a choice it is zero (the middle of limits that do
    not contain it) where the model rests under that, else the control at which it does.

    Attributes:
        default, said: the controls, and the same in words.
        settled: whether it is known what the default is.
        flaw: why there was a choice to make, which the user has not made; else empty.
    """

    def __init__(self, ocp: OptimalControl, fallback: Fallback | None, default: Any = None) -> None:
        self._model, self._fallback = ocp.model, fallback
        lower, upper = (ocp.model.limits("control", side) for side in ("lower", "upper"))
        self._lower, self._upper = lower, upper
        without = (lower > 0.0) | (upper < 0.0)  # of limits that do not contain zero
        middle = np.isfinite(lower) & np.isfinite(upper) & without
        self.default = np.zeros(lower.size)
        self.default[middle] = (lower[middle] + upper[middle]) / 2
        self.settled, self.flaw = default is not None, ""
        if default is not None:
            self.default = self._chosen(default)
        self.said = f"{self._words()}, as given" if self.settled else ""

    def control(self, state: Array, time: float) -> tuple[Array, str, str]:
        """Return the controls, their status, and what there is to say of them."""
        said = []
        if self._fallback is not None:
            try:
                found = self._model.vector("control", self._fallback(state, time), "its answer")
                if not np.isfinite(found).all():
                    raise InputError("its answer is not finite")
                return found, FALLBACK, ""
            except Exception as error:  # noqa: BLE001, the loop goes on without it
                said.append(f"the fallback failed: {type(error).__name__}: {error}")
        return self.default, DEFAULT, "; ".join([*said, f"applied: {self.said}"])

    def settle(self, plan: Plan) -> None:
        """Find out what the default is: where the model rests near the end of a plan or guess."""
        program, model = plan.program.part(next(iter(plan.problem.prefixed))), self._model
        read = program.unpack(plan.x)
        guess = {name: read[name][:, -1] for name in model.signals["state"]}
        for name in model.signals["control"]:
            guess[name] = read[name][:, read[name].shape[1] // 2]
        values = {name: program.parameters[name].read(program.p)[:, 0]
                  for name in model.signals["parameter"] if name in program.parameters}  # fmt: skip
        self.settled = True
        try:
            rest = steady(model, guess=guess, parameters=values, time=float(plan.times[-1]))
        except Exception as error:  # noqa: BLE001, a controller goes on, and says so
            self.said = f"{self._words()}, for no steady state was found"
            self.flaw = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
            return
        found = np.concatenate([np.ravel(rest[name]) for name in model.signals["control"]])
        if (np.abs(found - self.default) > _REST * model.limits("control", "scale")).any():
            self.flaw = f"{model.name} does not rest at {self._words()}"
            self.default = found
        self.said = f"{self._words()}, at which {model.name} rests"

    def _words(self) -> str:
        places, signals = self._model.places("control"), self._model.signals["control"]
        parts = ((name, signals[name].unit, self.default[at]) for name, at in places.items())
        return ", ".join(f"{name} = {', '.join(f'{v:.4g}' for v in own)} {unit}".rstrip()
                         for name, unit, own in parts)  # fmt: skip

    def _chosen(self, default: Any) -> Array:
        if np.isscalar(default):
            default = np.full(self._lower.size, default)
        chosen: Array = self._model.vector("control", default, "default")
        inside = np.clip(chosen, self._lower, self._upper)
        for name, where in self._model.places("control").items():
            own = chosen[where]
            if not np.isfinite(own).all() or (own != inside[where]).any():
                raise InputError(
                    f"default of {name!r} is {', '.join(f'{value:g}' for value in own)}; it must "
                    f"be within its limits, {self._lower[where]} to {self._upper[where]}"
                )
        return chosen


def use_once(answers: Answers, fallback: DefaultControl, *, asked: bool) -> str:
    """Solve from the declared start, then from there; return what there is to say of it.

    Functions, the solver's memory and its code are there then. What the solves come to is not kept:
    nobody measured that state. ``asked`` is whether the user is to choose what is applied without a
    plan.
    """
    until = clock.perf_counter() + _FIRST_USE
    searches = filter(None, (answers.search, answers.aid))
    first, *_ = [search.used_once(until) for search in searches]
    flaws = []
    if not np.isfinite(first.report.get("feasibility", np.nan)):
        flaws.append(
            f"it could not prepare itself at its declared start ({first.reason}); call prepare(x) "
            "before the loop"
        )
    if not fallback.settled:
        search = answers.search
        fallback.settle(first.plan or beginning(search.problem, parameters=search.zeros))
        if asked and fallback.flaw:
            flaws.append(
                f"{fallback.flaw}: without a plan, as after a missed deadline, it applies "
                f"{fallback.said}. Choose with default= or fallback="
            )
            if answers.search.problem.nominal.lagged:
                flaws.append(
                    "Moves count from the guesses of the controls, zero if none, until mpc.applied "
                    "or simulate(u0=) says what holds the plant"
                )
    return ". ".join(flaws)
