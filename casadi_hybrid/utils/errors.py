"""Exceptions of the package. A message is a sentence on the fault, its place and its remedy."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def last_line(error: Exception) -> str:
    """Last line of CasADi's message, without the place in its sources."""
    return str(error).strip().splitlines()[-1].strip().rstrip(".")


def in_a_sentence(error: Exception) -> str:
    """Type and message of an error, for a row of a table."""
    message = last_line(error) if str(error).strip() else ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside of this package."""
    depth, frame = 2, sys._getframe(1)
    # functools lies between a cached property and its caller.
    skipped = __name__.partition(".")[0], "functools"
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in skipped:
            break
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, category, stacklevel=depth)


class InputError(ValueError):
    """An argument was refused before any computation. The message names the argument."""


class EvaluationError(ArithmeticError):
    """A function of the problem returned NaN or Inf, or raised.

    Attributes:
        function: function of the problem (``"the objective f"``, ``"the Jacobian of g"``, …).
        entry: name of the faulty entry's constraint or variable; empty if unknown.
        value: returned value; NaN if the function raised.
        place: entries of x with their names, or empty.
        x: the point; None if unknown.
        raised: message of the exception if the function raised, else empty.
        objective: f at the point if only a derivative is undefined; else NaN.
        advice: meaning and remedy.
    """

    objective = np.nan
    advice = (
        "the iterate has left the domain of the problem's functions. Start closer, bound the "
        "variables, or write the function so that it is defined there"
    )

    def __init__(
        self,
        function: str,
        entry: str,
        value: float,
        place: str = "",
        x: NDArray[np.float64] | None = None,
        raised: str = "",
    ) -> None:
        self.function, self.entry, self.value = function, entry, value
        self.place, self.x, self.raised = place, x, raised
        super().__init__(f"{self.fault()}; {self.advice}")

    def fault(self) -> str:
        """Return the fault without advice: ``the objective f is nan, at x = 0``."""
        fault = f"raised an error ({self.raised})" if self.raised else f"is {self.value}"
        where = f" in its entry {self.entry}" if self.entry else ""
        return f"{self.function} {fault}{where}{self.place and f', at {self.place}'}"

    # By default exceptions are pickled by their message, which is no argument of this class.
    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.function, self.entry, self.value, self.place, self.x, self.raised)
        return type(self), parts


class BrokenFunctionError(EvaluationError):
    """A function of the problem raises at every point, so no other point is tried."""

    advice = (
        "it now raises also at points where it was defined before: the point is not the cause. "
        "See its exception"
    )


class MissingNumberError(EvaluationError):
    """An argument of a solve inside a graph is NaN, or is infinite and no bound."""

    advice = "finite numbers are needed"


class DesignError(ArithmeticError):
    """A design rule has no admissible correction at this iterate (rank loss, norm budget, …)."""


class NotAugmentableError(DesignError):
    """The Lagrangian has curvature ≤ 0 on the kernel of the constraint Jacobian.

    No correction acts there. The point is no strict local minimizer: a step along ±direction
    satisfies the constraints to first order and does not increase the Lagrangian.

    Attributes:
        curvature: directionᵀH direction ≤ 0.
        direction: unit vector in ker B.
    """

    def __init__(self, curvature: float, direction: NDArray[np.float64]) -> None:
        self.curvature = curvature
        self.direction = direction
        super().__init__(self.sentence())

    def sentence(self, names: Sequence[str] | None = None) -> str:
        """Return the message; ``names`` are the names of the variables."""
        largest = int(np.argmax(np.abs(self.direction)))
        name = f"entry {largest} of x" if names is None else names[largest]
        return (
            f"not augmentable here: the Lagrangian has curvature {self.curvature:.3g} along a "
            f"feasible direction (largest in {name}), where no correction acts; use the default "
            "method, or let the rule lift it with kernel_floor"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.curvature, self.direction)


class Interrupted(KeyboardInterrupt):
    """A solve was ended by Ctrl-C.

    Attributes:
        result: the :class:`~casadi_hybrid.Result` at the best point so far; None without one.
            Inside the loop, the data of that result.
    """

    def __init__(self, message: str = "", result: Any = None) -> None:
        self.result = result
        super().__init__(message)


# Like Ctrl-C, a deadline skips all fallbacks and carries the best point.
class OutOfTimeError(Interrupted):
    """A solve was ended before an evaluation after its deadline; it never leaves the package."""


class InterruptedInside(Interrupted, RuntimeError):
    """A function of the user raised KeyboardInterrupt, which CasADi turns into RuntimeError."""


def interrupted_inside(function: str, error: BaseException) -> InterruptedInside:
    """Return the exception for a KeyboardInterrupt raised by a function of the user."""
    interrupted = InterruptedInside(f"KeyboardInterrupt in {function}")
    interrupted.__cause__ = error
    return interrupted


class CompilerWarning(UserWarning):
    """Compiled functions or the core in C are missing; slower code gives the same results."""


class ScaleWarning(UserWarning):
    """The objective is so small that its gradient is within the tolerance far from a minimum."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known name that is closest to a word; empty if none is close."""
    import difflib  # noqa: PLC0415 - for an unknown word alone

    names = sorted(set(known))
    close = [name for name in names if name.lower() == word.lower()]
    close += difflib.get_close_matches(word, names, n=1, cutoff=0.8)
    # Short forms: no edit distance finds "tol" in "tolerance".
    close += [name for name in names if len(name) > 2 and word.startswith(name)][::-1]
    close += [name for name in names if len(word) > 2 and name.startswith(word)]
    close += difflib.get_close_matches(word, names, n=1)
    return close[0] if close else ""


def suggest(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"``, or the list of known names if none is close."""
    names = sorted(set(known))
    close = nearest(word, names)
    return f"; did you mean {close!r}?" if close else f"; known: {', '.join(names) or 'none'}"
