"""A controller that takes measurements of the constraints and gives inputs, step after step."""

from __future__ import annotations

from typing import Any

from casadi_hybrid.basics.inputs import Vector, has_method
from casadi_hybrid.control.feedback.closed_loop import FeedbackLaw, as_columns


class FeedbackController:
    """Steps a feedback law: ``u = controller.step(measured)``.

    Apply ``controller.u``, wait until the plant has settled, measure h, call :meth:`step`, apply
    what it returns, and so on. The design stays as it is; what moves is :attr:`state`, a small
    frozen object of its own for each law.

    Args:
        law: a :class:`HybridFeedback`, an :class:`IntegralFeedback`, … or another
            :class:`FeedbackLaw`.
        u0: the first inputs, (n,); or n×k, one column each for k runs that are stepped at once.

    Raises:
        InputError: for a law that cannot be stepped, for ``u0`` of a wrong shape or not finite.
    """

    def __init__(self, law: FeedbackLaw, u0: Any) -> None:
        for method in ("start", "advance", "closed_loop"):
            has_method(law, "law", method)
        self._law = law
        self._state: Any = None
        self.reset(u0)

    @property
    def law(self) -> FeedbackLaw:
        """What is stepped."""
        return self._law

    @property
    def state(self) -> Any:
        """All that the controller remembers."""
        return self._state

    @property
    def u(self) -> Vector:
        """The inputs to apply now: a fresh array, (n,) or n×k."""
        inputs: Vector = self._state.u.copy()
        return inputs

    def step(self, measured: Any) -> Vector:
        """Take a measurement of h at the inputs that are applied, return the next inputs.

        Args:
            measured: ĥ_t, (m,); or m×k where ``u0`` had k columns.

        Raises:
            InputError: for a wrong shape, NaN or Inf; the state is then as it was.
        """
        m = len(self._law.sensitivity)
        h = as_columns(measured, m, "measured", self._state.u.shape[1:])
        self._state = self._law.advance(self._state, h)
        return self.u

    def reset(self, u0: Any) -> None:
        """Forget everything and start at ``u0``.

        Raises:
            InputError: for ``u0`` of a wrong shape or not finite.
        """
        self._state = self._law.start(as_columns(u0, self._law.sensitivity.shape[1], "u0"))
