"""From the measurement to the moment at which the control acts, by the controls that were sent."""

from __future__ import annotations

from itertools import pairwise

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import count, positive
from casadi_hybrid.control.loop.plant import Plant
from casadi_hybrid.control.ocp import OptimalControl
from casadi_hybrid.control.program import Program
from casadi_hybrid.control.signals import Array
from casadi_hybrid.control.steps import RungeKutta, plain_step, step_of

_SAME = 1e-9
"""Part of the delay by which times may differ and still be the same."""
_FINER = 4
"""Steps of the prediction for one of the problem's."""


class Delay:
    """Predicts the state at which a control takes effect.

    A control that is sent at t acts from t + d on, until the next one does. So the state at t + d
    follows from that at t and the controls sent before; of none it is the model's guess. ``delay``
    is d, :attr:`seconds`, or of type int a number of periods.
    """

    def __init__(self, ocp: OptimalControl, delay: float | int, period: float | None) -> None:
        step = float(ocp.length * ocp.fractions[1])
        if isinstance(delay, int | np.integer) and not isinstance(delay, bool):
            self.seconds = count(delay, "delay") * (period or step)
        else:
            self.seconds = positive(delay, "delay")
        if self.seconds >= ocp.length:
            raise InputError(
                f"delay is {self.seconds:g} s, the horizon of {ocp.name} {ocp.length:g} s; a plan "
                "has to last until its first control acts"
            )
        self._step = step
        if ocp.model.discrete and abs(self.seconds / step - round(self.seconds / step)) > _SAME:
            raise InputError(
                f"delay is {self.seconds:g} s; {ocp.model.name} is discrete and moves by steps of "
                f"{step:g} s"
            )
        self._plant, self._steps = None, _FINER
        if self.seconds:
            own = getattr(ocp.method, "step", None)
            finer = None
            if isinstance(own, RungeKutta):
                self._steps = _FINER * own.steps
                finer = RungeKutta(self._steps)
            self._plant = Plant(ocp.model, step, step=finer)
        self.reset()

    def reset(self) -> None:
        """Forget what was sent."""
        self._sent: list[tuple[float, Array]] = []

    def note(self, time: float, control: Array) -> None:
        """Remember what was sent at a time."""
        if self.seconds:
            self._sent.append((time + self.seconds, control))
            while len(self._sent) > 1 and self._sent[1][0] <= time:
                del self._sent[0]  # another one acts already

    def by_intervals(self) -> tuple[ca.Function, int, Array]:
        """Return the prediction where a control is sent every interval, for C.

        What has no Runge–Kutta steps of its own is predicted by such ones, four an interval.

        Returns:
            (x, sent, p, t) → x one delay later, with the controls sent, a column each, the oldest
            first; how many of these; and each before the first step.
        """
        assert self._plant is not None
        model = self._plant.model
        if model.size("algebraic"):
            raise InputError(
                f"{model.name} has algebraic states, and there is no prediction over a delay in C"
            )
        f = plain_step(step_of(model, RungeKutta(self._steps), RungeKutta()), model)
        whole = int(np.floor(self.seconds / self._step + _SAME))
        rest = self.seconds - whole * self._step
        lengths = whole * [self._step]
        if rest > _SAME * self.seconds:
            lengths.insert(0, rest)
        x, p, t = (ca.MX.sym(name, f.size1_in(k)) for name, k in (("x", 0), ("p", 4), ("t", 5)))
        sent, z = ca.MX.sym("sent", f.size1_in(2), len(lengths)), ca.MX(f.size1_in(1), 1)
        after, at = x, t
        for k, length in enumerate(lengths):
            after = f(after, z, sent[:, k], sent[:, k], p, at, length)[0]
            at = at + length
        return ca.Function("ahead", [x, sent, p, t], [after]), len(lengths), self._plant.start()

    def ahead(self, x: Array, time: float, program: Program) -> Array:
        """Return the state one delay after ``time``, the program's parameters held."""
        if self._plant is None:
            return x
        for name in self._plant.model.signals["parameter"]:
            if name in program.parameters:
                values = program.parameters[name].read(program.p)
                self._plant.parameters[name] = values[:, 0]
        slack = _SAME * self.seconds
        if self._plant.model.discrete:
            times = time + self._step * np.arange(round(self.seconds / self._step) + 1)
        else:
            edges = [t for t, _ in self._sent if slack < t - time < self.seconds - slack]
            times = np.array([time, *edges, time + self.seconds])
        for begin, end in pairwise(times.tolist()):
            acting = [control for t, control in self._sent if t <= begin + slack]
            u = acting[-1] if acting else self._plant.start()
            x = self._plant.step(x, u, begin, period=end - begin)
        if not np.isfinite(x).all():
            raise ArithmeticError(f"{self._plant.model.name} comes to a state that is not finite")
        return x
