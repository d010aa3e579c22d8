"""Moving-horizon estimation."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from casadi_hybrid.control.estimation.arrival import Gaussian
from casadi_hybrid.control.estimation.estimator import Estimator, Record
from casadi_hybrid.control.estimation.window import FACTOR, MEAN, Memory, window_problem
from casadi_hybrid.control.model.model import Model
from casadi_hybrid.control.model.noise import factor
from casadi_hybrid.control.model.signals import Array
from casadi_hybrid.control.model.steps import Integrator, RungeKutta
from casadi_hybrid.control.solution.solution import Solution
from casadi_hybrid.control.transcription.program import Program
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import count, one_of

ARRIVALS = ("kalman", "fixed", "none")


class MHE(Estimator):
    """Estimator of the state that explains the last N periods best, within the model's limits.

    At the time t_k, over the grid points j = 0 … N of which the last is now,

        min ½ Σ_j ‖y_j − h(x_j, p)‖²_{R⁻¹} + ½ Σ_{j<N} ‖w_j‖²_{Q⁻¹} + ½ ‖ξ_0 − m‖²_{P⁻¹}
        s.t. x_{j+1} = F(x_j, u_j, p) + w_j,  limits of states and of the free parameters,

    with ξ = (x, θ), θ the free parameters. Directions without process noise have w = 0. A lost
    measurement has no weight. Before N periods have passed, the intervals before the first
    measurement are switched off: the program is built once.

    The last term is the prior until the window moves on; then, by ``arrival``,

    - ``"kalman"``: m and P of an extended Kalman filter, which takes the measurement that leaves
      the window and one step, linearized at the window's estimate of that point (the filtering
      update; see :mod:`casadi_hybrid.control.estimation.arrival` for formulas and sources). For a
      linear model without active limits the estimate is that of the Kalman filter, for any N.
      After a window that failed P is the prior's again.
    - ``"fixed"``: P of the prior, and m one step from the window's estimate of its first point.
    - ``"none"``: no last term, once the window has moved on.

    Args:
        model: of the plant, with the parameters that the estimator assumes.
        period: between steps.
        window: number N of periods.
        outputs: names of the measured outputs; all states by default.
        noise: of measurements: a standard deviation, one an entry, by name, or a covariance.
        process: of the states' disturbance in a period; the same, states left out have none.
        prior: of the states at the start; the same, for every state.
        x0: mean of the prior, a column or by name; by default the guesses of the model.
        u0: the control before the first step; by default the guesses of the model.
        free: parameters to be estimated: by name a dictionary with ``std`` and other entries of
            :class:`~casadi_hybrid.control.estimation.Unknown`. Without ``drift``, the deviation of
            its change in a period, a parameter is constant.
        arrival: see above.
        step: :class:`RungeKutta` (the default) or :class:`Integrator`; IDAS by default for a model
            with algebraic states; a discrete model has its own.
        delay: periods that a measurement takes to arrive.
        solver: options of :func:`casadi_hybrid.nlpsol`.

    Raises:
        InputError: for arguments that do not fit, by name.

    Attributes:
        ocp: the problem of a window.
        record, records: of the last step, of all since the start.
        solution: the last window, with its trajectories by name; None before the first step.

    Example:
        >>> model = Model("drift")
        >>> x = model.state("position")
        >>> model.rates(position=0)
        >>> mhe = MHE(model, 1.0, window=3, noise=1.0, prior=1.0)
        >>> [round(float(mhe.step([y], [])[0]), 6) for y in (1.0, 1.0, 1.0)]
        [0.5, 0.666667, 0.75]
    """

    def __init__(
        self,
        model: Model,
        period: float,
        window: int = 10,
        *,
        noise: Any,
        prior: Any,
        process: Any = None,
        outputs: Sequence[str] | None = None,
        x0: Any = None,
        u0: Any = None,
        free: Mapping[str, Any] | None = None,
        arrival: str = "kalman",
        step: RungeKutta | Integrator | None = None,
        delay: int = 0,
        solver: Mapping[str, Any] | None = None,
    ) -> None:
        self.N = count(window, "window", at_least=1)
        one_of(arrival, "arrival", ARRIVALS)
        self.arrival = arrival
        self.delay = count(delay, "delay")
        if self.delay > self.N:
            raise InputError(f"delay is {delay}, more than the {window} periods of the window")
        distributions = {"noise": noise, "prior": prior, "process": process}
        others = {"outputs": outputs, "x0": x0, "u0": u0, "free": free, "step": step}
        super().__init__(model, period, **distributions, **others)
        self._scale = np.append(model.limits("state", "scale"), self._stacked("scale"))
        self.ocp = window_problem(self, self.N, factor(self._process), solver)

    def reset(self, x0: Any = None) -> None:
        """Forget all measurements; the next step is the first. See :meth:`Estimator.reset`."""
        super().reset(x0)
        self._given: Gaussian | None = Gaussian(self._mean, self._prior)
        self._memory = Memory(self.N, self._noise, self._u0)
        self._last: tuple[Array, Array, Array] | None = None
        self.solution: Solution | None = None

    @property
    def takes(self) -> set[str]:
        """Parameters of the model that are not estimated, which :func:`simulate` hands on."""
        own = self.model.signals["parameter"].items()
        return {name for name, signal in own if not signal.varying and name not in self.unknowns}

    @property
    def covariance(self) -> Array:
        """Covariance of the states and, below them, the free parameters now, without limits.

        The recursion of the Kalman filter over the window, linearized at its estimate.

        Raises:
            InputError: before the first step, and for a window without a term at arrival.
        """
        _ = self.record
        self.model.refuse_later(self._declared, "estimator")
        if self._given is None:
            raise InputError("a window without a term at arrival has no covariance of its own")
        estimate = self._given
        for j in range(self.N - self._memory.active, self.N):
            place = self._memory.place(j, self.model)
            estimate = self._filter.moved(place, self._filter.measured(place, estimate))
        return self._filter.measured(self._memory.place(self.N, self.model), estimate).covariance

    def step(self, y: Any, u: Any = None, time: float | None = None, **parameters: Any) -> Array:
        """Take a measurement, and return the estimate of the state now.

        Args:
            y: measured now (with a delay: that many periods ago), a column or by name; None, or
                NaN entries, for lost measurements.
            u: control over the period that ends now, a column or by name; None for the one before.
                In the first step, which has no such period, u is the control at the sensors.
            time: now; by default one period after the step before, at first 0.
            **parameters: of the model by name, references among them, as of
                :meth:`OptimalControl.numbers`, whose horizon is the window.

        Raises:
            InputError: for values that do not fit; the estimator stays as it was.
        """
        began = clock.perf_counter()
        memory = copy(self._memory)
        y = self.sensors.column(y)
        control = None if u is None else np.asarray(self.model.vector("control", u, "u"))
        now = self._now(time)
        # Until the window is full its first point stays, and so does the prior.
        given = self._left() if memory.steps > self.N else self._given
        memory.advance(control, now)
        memory.note(y, self.delay)
        program, multipliers = self._program(memory, given, parameters)
        outputs = self.ocp.solver(**{**program.arguments, **multipliers})
        stats = self.ocp.solver.stats()
        self._memory, self._given = memory, given
        self.solution = self.ocp.solution(program, outputs, stats)
        if stats["success"]:
            self._last = (self.solution.x, self.solution.lam_x, self.solution.lam_g)
        else:
            zeros = {"lam_x0": np.zeros(program.n), "lam_g0": np.zeros(program.m)}
            # A failed window keeps its start: the prediction, with the multipliers before.
            self._last = (program.x0, *(multipliers or zeros).values())
        memory.keep(self.ocp, self._last[0], program.p)
        self._mean = self._filter.estimate(memory.place(self.N, self.model))
        solve = bool(stats["success"]), str(stats["return_status"]), int(stats["iter_count"])
        seconds, measured = clock.perf_counter() - began, int(np.isfinite(memory.y).sum())
        costs = dict(self.solution.costs)
        record = Record(now, *solve, seconds, measured, costs, self.parameters)
        self._keep(record, "a prediction without this measurement")
        return self.estimate

    def _left(self) -> Gaussian | None:
        """Return the last term of the next window, without the first point of this one."""
        first = self._memory.place(0, self.model)
        if self.arrival == "none" or self._given is None:
            return None
        if self.arrival == "fixed" or not self.success:  # a window that failed estimates nothing
            return Gaussian(self._filter.step(first), self._prior)
        return self._filter.moved(first, self._filter.measured(first, self._given))

    def _program(
        self, memory: Memory, given: Gaussian | None, parameters: Mapping[str, Any]
    ) -> tuple[Program, dict[str, Any]]:
        """Return the program of the window, and multipliers one period after the last ones."""
        values = {**parameters, **memory.references(self.model)}
        if given is not None:  # the declared zeros switch the term off
            values[MEAN] = given.mean
            values[FACTOR] = given.whitening(self._scale).ravel(order="F")
        start = memory.time - self.N * self.period
        places = self.model.places("state")
        if self._last is None:
            guess = {name: self._start[where] for name, where in places.items()}
            return self.ocp.numbers(time=start, guess=guess, **values), {}
        program = self.ocp.numbers(time=start, **values)
        moved = program.shifted(*self._last)
        # The trajectories are still those of the window before, the controls those of this one.
        # The prediction begins at the last point, with the control after it.
        after = self._filter.step(memory.place(self.N, self.model))
        for name, where in places.items():
            block = program.variables[name]
            moved["x0"][block.where[-block.shape[0] :]] = after[where] / block.scale[:, -1]
        return program.with_x0(moved.pop("x0")), moved
