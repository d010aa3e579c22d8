"""Prediction from the measurement to the moment at which its control acts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.plant import Plant
from casadi_hybrid.control.model.signals import Array
from casadi_hybrid.control.model.steps import RungeKutta, plain_step, step_of
from casadi_hybrid.control.solution.ocp import OptimalControl
from casadi_hybrid.control.transcription.parametric_bounds import own_parameters
from casadi_hybrid.control.transcription.program import Program
from casadi_hybrid.control.transcription.terms import SAME
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import count, positive

# Steps of the prediction for each of the problem's; steps an interval that are tried in C.
_FINER, _STEPS = 4, (4, 8, 16, 32, 64)
# Distance to the integrator, and perturbation of states to measure it, in units of the scale.
_NEAR, _PART = 1e-6, 1e-3


class Delay:
    """Predictor of the state at which a control takes effect, a delay after its measurement."""

    def __init__(self, ocp: OptimalControl, delay: float | int, period: float | None) -> None:
        self._step = step = float(ocp.length * ocp.fractions[1])
        # An int is a number of periods. A control sent at t acts from t + delay on.
        if isinstance(delay, int | np.integer) and not isinstance(delay, bool):
            self.seconds = count(delay, "delay") * (period or step)
        else:
            self.seconds = positive(delay, "delay")
        if self.seconds >= ocp.length:
            raise InputError(
                f"delay is {self.seconds:g} s, the horizon of {ocp.name} {ocp.length:g} s; a plan "
                "has to last until its first control acts"
            )
        if ocp.model.discrete and abs(self.seconds / step - round(self.seconds / step)) > SAME:
            raise InputError(
                f"delay is {self.seconds:g} s; {ocp.model.name} is discrete and moves by steps of "
                f"{step:g} s"
            )
        rule = ocp.method.step
        self._finer = RungeKutta(_FINER * rule.steps) if isinstance(rule, RungeKutta) else None
        self._plant = Plant(ocp.model, step, step=self._finer) if self.seconds else None
        self.reset()

    def reset(self) -> None:
        """Forget the controls sent."""
        self._sent: list[tuple[float, Array]] = []

    def begin(self, control: Array) -> None:
        """Take the control that acts until the first one sent does."""
        self._sent = self._sent or [(-np.inf, control)]

    def note(self, time: float, control: Array) -> None:
        """Remember a control sent at a time."""
        self._sent.append((time + self.seconds, control))
        while len(self._sent) > 1 and self._sent[1][0] <= time:
            del self._sent[0]  # another one acts already

    def by_intervals(self, u: Array, program: Program) -> ca.Function:
        """Return (x, sent, p, t) → x one delay later, for C, from the controls of each interval.

        ``sent`` has the oldest first; p are the program's parameters.
        """
        if (model := self._with_parameters(program).model).size("algebraic"):
            raise InputError(
                f"{model.name} has algebraic states, and there is no prediction over a delay in C"
            )
        f, count = self._step_in_c(u, program), int(np.ceil(self.seconds / self._step - SAME))
        x, p, t = ca.MX.sym("x", f.size1_in(0)), ca.MX.sym("p", program.p.size), ca.MX.sym("t")
        sent, z = ca.MX.sym("sent", f.size1_in(2), count), ca.MX(f.size1_in(1), 1)
        own = own_parameters(model, program, p)
        # The oldest control acts for the rest of its interval, all later ones for a whole one.
        state, time, length = x, t, self.seconds - (count - 1) * self._step
        for v in ca.horzsplit(sent):
            state = f(state, z, v, v, own, time, length)[0]
            time, length = time + length, self._step
        return ca.Function("ahead", [x, sent, p, t], [state])

    def _step_in_c(self, u: Array, program: Program) -> ca.Function:
        plant = self._with_parameters(program)
        model = plant.model
        if model.discrete or self._finer:
            return plain_step(step_of(model, self._finer, RungeKutta()), model)
        scale = model.limits("state", "scale")
        x = program.stacked({f"initial {n}": s for n, s in model.signals["state"].items()}, 0)
        width, *sides = (model.limits("control", key) for key in ("scale", "lower", "upper"))
        samples = []
        # Tested at the state and near it, with controls a scale apart.
        for sign in (0, 1, -1):
            y, v = x + sign * _PART * scale, np.clip(u + sign * width, *sides)
            with suppress(RuntimeError):  # the model may not be defined there
                samples.append((y, v, plant.step(y, v)))
        for steps in _STEPS:
            other = Plant(model, self._step, step=RungeKutta(steps), parameters=plant.parameters)
            gaps = [(other.step(y, v) - after) / scale for y, v, after in samples]
            if np.max(np.abs(gaps), initial=0.0) <= _NEAR:
                return plain_step(RungeKutta(steps), model)
        raise InputError(
            f"{model.name} has no prediction over a delay in C: over an interval of {self._step:g} "
            f"s not even {_STEPS[-1]} Runge-Kutta steps follow the integrator. Take shorter "
            "intervals, or a model without its fastest parts"
        )

    def _with_parameters(self, program: Program) -> Plant:
        """Return the plant that predicts, with a program's parameters."""
        assert self._plant is not None
        for name in self._plant.model.signals["parameter"].keys() & program.parameters.keys():
            self._plant.parameters[name] = program.parameters[name].read(program.p)[:, 0]
        return self._plant

    def ahead(self, x: Array, time: float, program: Program, courses: Mapping[str, Any]) -> Array:
        """Return the state one delay after ``time``, the program's parameters held."""
        if self._plant is None:
            return x
        slack, plant = SAME * self.seconds, self._with_parameters(program)
        model = plant.model
        moving = {name: f for name, f in courses.items() if name in model.signals["parameter"]}
        # Pieces without a change of control, cut at intervals if parameters move.
        edges = time + self._step * np.arange(1, self.seconds / self._step)
        if not model.discrete:
            edges = np.sort([*(t for t, _ in self._sent), *(edges if moving else ())])
        inner = edges[(edges - time > slack) & (time + self.seconds - edges > slack)].tolist()
        for begin, end in pairwise([time, *inner, time + self.seconds]):
            # The midpoint is second-order accurate in a piece; a discrete step takes its beginning.
            sample = begin if model.discrete else (begin + end) / 2
            plant.parameters |= {name: np.ravel(f(sample)) for name, f in moving.items()}
            acting = [control for t, control in self._sent if t <= begin + slack]
            u = acting[-1] if acting else plant.start()
            x = plant.step(x, u, begin, period=end - begin)
        if not np.isfinite(x).all():
            raise ArithmeticError(f"{model.name} comes to a state that is not finite")
        return x
