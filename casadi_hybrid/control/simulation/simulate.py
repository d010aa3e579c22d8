"""A closed loop, step by step."""

from __future__ import annotations

import time as clock
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from casadi_hybrid.control.model.noise import covariance_of, draw, factor
from casadi_hybrid.control.model.plant import Plant
from casadi_hybrid.control.model.signals import Array, by_name
from casadi_hybrid.control.simulation.record import (
    OfFunction,
    OfPlant,
    Recorder,
    Wiring,
    check_links,
)
from casadi_hybrid.control.simulation.run import Run
from casadi_hybrid.utils.errors import InputError, warn
from casadi_hybrid.utils.inputs import count, is_callable, share
from casadi_hybrid.utils.output.text import progress as bar


def simulate(
    plant: Any,
    controller: Any,
    estimator: Any = None,
    *,
    steps: int,
    x0: Any,
    time: float = 0.0,
    period: float | None = None,
    noise: Any = None,
    process_noise: Any = None,
    delay: int = 0,
    measurement_delay: int = 0,
    dropout: float = 0.0,
    push: Mapping[int, Any] | Callable[[int, float, Array], Any] | None = None,
    parameters: Mapping[str, Any] | Callable[[float], Mapping[str, Any]] | None = None,
    u0: Any = None,
    seed: int = 0,
    cost: Any = None,
    limits: Mapping[str, Any] | None = None,
    progress: bool = False,
) -> Run:
    """Simulate a plant under feedback and return the record.

    At step k, at the time t_k = time + k·period:

    1. the state is disturbed, then measured under the control that held until now. Noise is added,
       the measurement may be lost, and that of ``measurement_delay`` steps ago arrives;
    2. the estimator gets the measurement (None if none arrived) and the control applied over the
       period before (None at k = 0), and returns the state. Without an estimator the controller
       gets the last measurement that arrived, and is not asked before the first;
    3. the controller computes a control, which is applied ``delay`` steps later, for one period;
    4. the plant moves: x_{k+1} = step(x_k, u_k) + process noise, the control held over the period.

    Controller, estimator and plant are reset first if they have ``reset()``: a run depends on its
    arguments alone. Noise, process noise and losses have separate random numbers, so another
    dropout leaves the noise unchanged.

    Args:
        plant: a :class:`Plant`, or a function (x, u) → next x, whose state is called ``x`` and its
            control ``u``.
        controller: has ``step(x, time=, **parameters)`` that returns a control or something with
            ``.control``; or is a function (time, x, **parameters) → control. A control is a column
            or a dictionary by name.
        estimator: has ``step(y, u, time=) → x``.
        steps: number K of steps.
        x0: the state at the start, a column or by name.
        time: at the start.
        period: of a plant that is a function.
        noise: of measurements: a standard deviation, one an entry, by name, or a covariance.
        process_noise: the same of the states, added in each step.
        delay: whole periods from a computation to its effect.
        measurement_delay: whole periods from a measurement to its arrival.
        dropout: probability that a measurement is lost.
        push: disturbances of the state, by the number of the step, as a column or by name; or a
            function (k, time, x) → column, or None for no disturbance.
        parameters: values by name for the controller, references among them, and for an
            :class:`MHE` the parameters of its model that it does not estimate; or a function of
            time with the values of the controller alone. The function is called after the
            estimator's step: ``lambda time: mhe.parameters`` hands on the estimates.
        u0: the control before any was computed, also for an :class:`MPC`; by default the guesses of
            the model, and zeros if the plant is a function.
        seed: of the random numbers.
        cost: of a step, an expression of the plant's model or a function (x, u, time) → number;
            or a dictionary of them by name. The costs are sums over the steps.
        limits: (lower, upper) by name of a state, control or output, for :attr:`Run.violations`,
            in place of the limits of the model or of the steps of an :class:`MPC`.
        progress: show a progress bar on a terminal.

    Raises:
        InputError: for arguments that do not fit, by name, before the first step; for a control of
            the wrong size or with a NaN, at its step. Exceptions of plant, controller and estimator
            are passed on.

    Example:
        >>> run = simulate(lambda x, u: 0.5 * x + u, lambda time, x: -0.4 * x,
        ...                steps=4, x0=[1.0], period=1.0)
        >>> print(run["x"].round(3))
        [1.    0.1   0.01  0.001 0.   ]
    """
    steps = count(steps, "steps", at_least=1)
    wiring = (OfPlant if isinstance(plant, Plant) else OfFunction)(plant, period, x0, u0)
    deadline, model = getattr(controller, "deadline", None), wiring.model
    if deadline and deadline > wiring.period and (model is None or model.time_unit == "s"):
        warn(
            f"the controller's deadline is {deadline:g} s, the period of the loop "
            f"{wiring.period:g} s: a step may take longer than a period. It is in seconds"
        )
    check_links(wiring, controller, estimator)
    # Three independent streams: another dropout leaves the noise as it was.
    seeds = np.random.SeedSequence(count(seed, "seed")).spawn(3)
    sensor_random, process_random, loss_random = map(np.random.default_rng, seeds)
    sensor_factor = factor(covariance_of(noise, wiring.measured, "noise"))
    process_factor = factor(covariance_of(process_noise, wiring.states, "process_noise"))
    dropout = share(dropout, "dropout")
    sent: deque[Array | None] = deque([None] * count(measurement_delay, "measurement_delay"))
    disturbed = _disturbance(push, wiring, steps)
    values = {} if callable(parameters) else by_name(parameters, "parameters")
    compute = _controller(controller, parameters if callable(parameters) else values)
    of_model = {name: v for name, v in values.items() if name in getattr(estimator, "takes", ())}
    record = Recorder(plant, wiring, limits, cost, estimator)
    # A queue as long as the delay: what comes out now was computed `delay` steps ago.
    waiting: deque[Array | None] = deque([None] * count(delay, "delay"))
    for part in (plant, controller, estimator):
        if hasattr(part, "reset"):
            part.reset()
    # After reset(), which forgets it.
    if u0 is not None and hasattr(controller, "applied"):
        controller.applied = wiring.u0
    x, before, applied, state = wiring.x0, wiring.u0, None, None
    for k in bar.tqdm(range(steps), "closed loop", disable=None if progress else True):
        t = time + k * wiring.period
        x = disturbed(k, t, x)
        # Sensors see the control that has acted until now, not the one that is to be computed.
        y = wiring.measure(x, np.zeros(0) if before is None else before, t)
        # Both are drawn at every step: a loss does not move the noise of later steps.
        y, lost = y + draw(sensor_random, sensor_factor), loss_random.random() < dropout
        sent.append(None if lost else y)
        arrived = sent.popleft()
        began = clock.perf_counter()
        if estimator is not None:
            state = np.ravel(estimator.step(arrived, applied, time=t, **of_model)).astype(float)
        elif arrived is not None:
            state = arrived
        answer, command = None, None
        if state is not None:
            answer = compute(state, t)
            command = wiring.control(getattr(answer, "control", answer), f"the control of step {k}")
        waiting.append(command)
        applied = _applied(waiting.popleft(), before, command)
        held = applied if before is None else before
        outcome = {"command": command, "arrived": arrived, "answer": answer}
        record.step(t, x, applied, held, state, **outcome, seconds=clock.perf_counter() - began)
        after = wiring.move(x, applied, t) + draw(process_random, process_factor)
        before = applied
        if not np.isfinite(after).all():
            record.stopped = f"the state was no longer finite after step {k}, at time {t:g}"
            break
        x = after
    return replace(record.run(x, time), deadline=deadline)


def _controller(controller: Any, parameters: Any) -> Callable[[Array, float], Any]:
    """Return a call (x, time) for both kinds of controllers, parameters included."""

    def values(t: float) -> Mapping[str, Any]:
        by_name = parameters(t) if callable(parameters) else parameters
        if not isinstance(by_name, Mapping):
            raise InputError(
                "parameters must be a function (time) → dictionary by name; "
                f"at {t:g} it returned {by_name!r}"
            )
        return by_name

    if hasattr(controller, "step"):
        return lambda x, t: controller.step(x, time=t, **values(t))
    form = "a function (time, x, **parameters) → control, or have step(x, time=, **parameters)"
    is_callable(controller, "controller", form)
    return lambda x, t: controller(t, x, **values(t))


def _applied(due: Array | None, before: Array | None, command: Array | None) -> Array:
    # The control due now, else the one that holds, else zero.
    for control in (due, before, None if command is None else np.zeros(command.size)):
        if control is not None:
            return control
    raise InputError("u0 is needed: nothing was measured yet and the plant is a plain function")


def _disturbance(push: Any, wiring: Wiring, steps: int) -> Callable[[int, float, Array], Array]:
    """Return a function (k, time, x) → the disturbed state."""
    table: dict[int, Array] = {}
    for k, value in ({} if callable(push) else by_name(push, "push")).items():
        if not isinstance(k, int | np.integer) or not 0 <= k < steps:
            raise InputError(f"push has the step {k!r}; steps count from 0 to {steps - 1}")
        table[int(k)] = wiring.state(value, f"push[{k}]")

    def disturbed(k: int, t: float, x: Array) -> Array:
        value = push(k, t, x) if callable(push) else table.get(k)
        return x if value is None else x + wiring.state(value, f"push at step {k}")

    return disturbed
