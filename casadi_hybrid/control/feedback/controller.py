"""A controller that takes measurements and gives inputs, and its loop around a plant with noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.basics.calls import checked_call
from casadi_hybrid.basics.inputs import Matrix, Vector, as_vector, count, has_method, is_callable
from casadi_hybrid.control.feedback.closed_loop import FeedbackLaw, as_columns
from casadi_hybrid.control.feedback.geometry import covariance, root


class FeedbackController:
    """Steps a feedback law: ``u = controller.step(measured)``.

    Apply ``controller.u``, wait until the plant has settled, measure h, call :meth:`step`, apply
    what it returns, and so on. The design stays as it is; what moves is :attr:`state`.

    Args:
        law: a :class:`HybridFeedback` or another :class:`FeedbackLaw`.
        u0: the first inputs, (n,); or n×k, one column each for k runs that are stepped at once.

    Attributes:
        law: what is stepped.
        state: all that the controller remembers.

    Raises:
        InputError: for a law that cannot be stepped, for ``u0`` of a wrong shape or not finite.
    """

    def __init__(self, law: FeedbackLaw, u0: Any) -> None:
        for method in ("start", "advance", "closed_loop"):
            has_method(law, "law", method)
        self.law = law
        self.state: Any = None
        self.reset(u0)

    @property
    def u(self) -> Vector:
        """The inputs to apply now: a fresh array, (n,) or n×k."""
        return np.array(self.state.u)

    def step(self, measured: Any) -> Vector:
        """Take a measurement of h at the inputs that are applied, return the next inputs.

        Args:
            measured: ĥ_t, (m,); or m×k where ``u0`` had k columns.

        Raises:
            InputError: for a wrong shape, NaN or Inf; the state is then as it was.
        """
        m = len(self.law.sensitivity)
        h = as_columns(measured, m, "measured", self.state.u.shape[1:])
        self.state = self.law.advance(self.state, h)
        return self.u

    def reset(self, u0: Any) -> None:
        """Forget everything and start at ``u0``.

        Raises:
            InputError: for ``u0`` of a wrong shape or not finite.
        """
        self.state = self.law.start(as_columns(u0, self.law.sensitivity.shape[1], "u0"))


@dataclass(frozen=True, eq=False)
class Measured:
    """What noise did to a loop.

    Attributes:
        mean: of the inputs, n numbers.
        inputs: covariance of the inputs, n×n; under a drift it grows with the time.
        errors: covariance of the true constraints h(u), m×m.
        first: the inputs of the first run from t = 0 on, one row a step.
    """

    mean: Vector
    inputs: Matrix
    errors: Matrix
    first: Matrix


@checked_call
def measure(
    law: FeedbackLaw, plant: Callable[[Vector], Vector], u0: Any, noise: Any, *, drift: Any = 0.0,
    steps: int = 1000, settle: int = 200, runs: int = 200, seed: int = 0,
) -> Measured:  # fmt: skip
    """Run a law around a plant with Gaussian noise and return what became of it.

    Args:
        law: the law.
        plant: h(u), n×k to m×k: one column a run.
        u0: the inputs at the start of every run; its fixed point saves settling.
        noise: R, the covariance of the measurements, m×m, or m variances.
        drift: W, the covariance of what disturbances add to h in a step, as ``noise``.
        steps: steps of each run that count.
        settle: steps before them, which do not.
        runs: number of runs, which are stepped at once.
        seed: of the noise; the same seed is the same noise for every law.

    Raises:
        InputError: for arguments of a wrong shape or kind, and when the plant returns NaN.
    """
    is_callable(plant, "plant")
    m, n = law.sensitivity.shape
    total = count(settle, "settle") + count(steps, "steps", at_least=2)
    k = count(runs, "runs", at_least=1)
    L, walk = root(covariance(noise, m)), root(covariance(drift, m, "drift"))
    draw = np.random.default_rng(seed).standard_normal
    controller = FeedbackController(law, np.tile(as_vector(u0, n, "u0")[:, None], k))
    disturbance = np.zeros((m, k))
    inputs, errors = np.empty((total, n, k)), np.empty((total, m, k))
    for t in range(total):
        inputs[t] = controller.u
        errors[t] = as_columns(plant(inputs[t]), m, "what plant returned", (k,)) + disturbance
        controller.step(errors[t] + L @ draw((m, k)))
        if walk.any():
            disturbance += walk @ draw((m, k))
    kept = inputs[settle:].swapaxes(0, 1).reshape(n, -1)
    seen = errors[settle:].swapaxes(0, 1).reshape(m, -1)
    return Measured(
        kept.mean(axis=1),
        np.cov(kept).reshape(n, n),
        np.cov(seen).reshape(m, m),
        inputs[:, :, 0].copy(),
    )
