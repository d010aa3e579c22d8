"""Control of a step without a plan: the user's function, then a default."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any

import numpy as np

from casadi_hybrid.control.model.signals import Array
from casadi_hybrid.control.mpc.plan import Plan, initial_plan
from casadi_hybrid.control.mpc.search import Answers
from casadi_hybrid.control.mpc.step import DEFAULT, FALLBACK
from casadi_hybrid.control.solution.ocp import OptimalControl
from casadi_hybrid.control.solution.steady import steady
from casadi_hybrid.utils.errors import InputError

Fallback = Callable[[Array, float], Any]
# Largest control at an equilibrium, in units of its scale, that counts as zero.
_ZERO = 1e-6
# Seconds that the solves before the first step may take.
_FIRST_USE = 10.0


class DefaultControl:
    """A user's function (x, time) → controls, then the default."""

    def __init__(self, ocp: OptimalControl, fallback: Fallback | None, default: Any = None) -> None:
        self._model, self._fallback = ocp.model, fallback
        lower, upper = (ocp.model.limits("control", side) for side in ("lower", "upper"))
        self._lower, self._upper = lower, upper
        without_zero = (lower > 0.0) | (upper < 0.0)
        middle = np.isfinite(lower) & np.isfinite(upper) & without_zero
        # Zero, or the middle of limits without zero, until settle() finds an equilibrium.
        self.default = np.zeros(lower.size)
        self.default[middle] = (lower[middle] + upper[middle]) / 2
        # flaw: why the user has to choose a default, but has not.
        self.settled, self.flaw = default is not None, ""
        if default is not None:
            self.default = self._checked(default)
        self.words = f"{self._values()}, as given" if self.settled else ""

    def control(self, state: Array, time: float) -> tuple[Array, str, str]:
        """Return the controls, their status, and remarks in words."""
        remark = f"applied: {self.words}"
        if self._fallback is not None:
            try:
                answer = self._fallback(state, time)
                control = self._model.vector("control", answer, "its answer")
                if not np.isfinite(control).all():
                    raise InputError("its answer is not finite")
                return control, FALLBACK, ""
            except Exception as error:  # noqa: BLE001, the loop goes on without it
                remark = f"the fallback failed: {type(error).__name__}: {error}; {remark}"
        return self.default, DEFAULT, remark

    def settle(self, plan: Plan) -> None:
        """Decide on the default: by an equilibrium near the end of a plan or guess."""
        program, model = plan.program.part(next(iter(plan.problem.prefixed))), self._model
        trajectories = program.unpack(plan.x)
        guess = {name: trajectories[name][:, -1] for name in model.signals["state"]}
        for name in model.signals["control"]:
            # The last controls of a horizon often leave the equilibrium: take those in the middle.
            guess[name] = trajectories[name][:, trajectories[name].shape[1] // 2]
        given = [name for name in model.signals["parameter"] if name in program.parameters]
        values = {name: program.parameters[name].read(program.p)[:, 0] for name in given}
        self.settled = True
        try:
            rest = steady(model, guess=guess, parameters=values, time=float(plan.times[-1]))
        except Exception as error:  # noqa: BLE001, a controller goes on, and says so
            self.words = f"{self._values()}, for no steady state was found"
            self.flaw = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
            return
        control = np.concatenate([np.ravel(rest[name]) for name in model.signals["control"]])
        if (np.abs(control - self.default) > _ZERO * model.limits("control", "scale")).any():
            self.flaw = f"{model.name} does not rest at {self._values()}"
            self.default = control
        self.words = f"{self._values()}, at which {model.name} rests"

    def _values(self) -> str:
        signals, parts = self._model.signals["control"], []
        for name, where in self._model.places("control").items():
            values = ", ".join(f"{value:.4g}" for value in self.default[where])
            parts.append(f"{name} = {values} {signals[name].unit}".rstrip())
        return ", ".join(parts)

    def _checked(self, default: Any) -> Array:
        if np.isscalar(default):
            default = np.full(self._lower.size, default)
        chosen: Array = self._model.vector("control", default, "default")
        inside = np.clip(chosen, self._lower, self._upper)
        for name, where in self._model.places("control").items():
            values = chosen[where]
            if not np.isfinite(values).all() or (values != inside[where]).any():
                raise InputError(
                    f"default of {name!r} is {', '.join(f'{value:g}' for value in values)}; it "
                    f"must be within its limits, {self._lower[where]} to {self._upper[where]}"
                )
        return chosen


def first_solves(answers: Answers, fallback: DefaultControl, *, choose: bool) -> str:
    """Solve from the declared start, then from the answer; return warnings in words."""
    until = clock.perf_counter() + _FIRST_USE
    search = answers.search
    # To load functions, memory and code: the answers are dropped, since no state was measured.
    first = search.first_solves(until)
    if answers.aid is not None:
        answers.aid.first_solves(until)
    warnings = []
    if not np.isfinite(first.report.get("feasibility", np.nan)):
        warnings.append(
            f"it could not prepare itself at its declared start ({first.reason}); call prepare(x) "
            "before the loop"
        )
    if not fallback.settled:
        fallback.settle(first.plan or initial_plan(search.problem, parameters=search.zeros))
        if choose and fallback.flaw:
            warnings.append(
                f"{fallback.flaw}: without a plan, as after a missed deadline, it applies "
                f"{fallback.words}. Choose with default= or fallback="
            )
            if search.problem.nominal.lagged:
                warnings.append(
                    "Moves count from the guesses of the controls, zero if none, until mpc.applied "
                    "or simulate(u0=) says what holds the plant"
                )
    return ". ".join(warnings)
