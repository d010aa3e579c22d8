"""Checked claims, and the runs that they compare.

A claim holds if no deviation exceeds its bound. A counter-example drops one hypothesis of a claim;
it holds if every deviation exceeds its bound, so that the hypothesis is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial, wraps
from typing import Any, ParamSpec

import numpy as np

from casadi_hybrid.paper.iterations import Iteration, Start
from casadi_hybrid.paper.iterations.loop import iterate
from casadi_hybrid.paper.iterations.result import IterationHistory, IterationRecorder
from casadi_hybrid.paper.iterations.stopping import IterationProgress, diverged
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.problem.point.residuals import Tolerances
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import Matrix, Vector, as_matrix, as_vector, count
from casadi_hybrid.utils.status import StopReason

EQUAL = 1e-12
DIFFERENT = 1e-6
# Size of iterates at which rounding errors are too large to check a claim.
DIVERGED = 1e8

Step = float | Matrix | Callable[[int], float | Matrix]
Measured = tuple[str, dict[str, float]]
"""The case of a measurement, and the deviations by compared quantity."""
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim, or one counter-example, with its measured deviations.

    Attributes:
        name, case: the claim, and its shape, steps and splits.
        deviations: pairs (compared quantity, :func:`deviation` of two runs, or another measure).
            NaN for a claim that could not be computed.
        bound: upper bound of the deviations, or lower bound for a counter-example.
        detail: reason of a failure, or empty.
    """

    name: str
    case: str
    deviations: tuple[tuple[str, float], ...]
    bound: float
    counterexample: bool = False
    detail: str = ""

    @property
    def worst(self) -> float:
        """Decisive deviation: the largest, or for a counter-example the smallest."""
        values = [value for _, value in self.deviations]
        return float(np.min(values) if self.counterexample else np.max(values))

    @property
    def held(self) -> bool:
        """True if the claim, or the counter-example, came out as stated (never with a NaN)."""
        return self.worst > self.bound if self.counterexample else self.worst <= self.bound

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text, ready for JSON; None for a number that is not finite."""
        numbers = {name: value if np.isfinite(value) else None for name, value in self.deviations}
        return {**asdict(self), "deviations": numbers, "held": self.held}

    def __str__(self) -> str:
        verdict, sign = "holds" if self.held else "FAILS", ">" if self.counterexample else "≤"
        line = f"{verdict}  {self.case:<32}  {self.worst:.1e} {sign} {self.bound:.2g}"
        return f"{line}  ({self.detail})" if self.detail else line


def table(claims: Iterable[Claim]) -> str:
    """Return the claims, then the counter-examples, by name a line for each case; the count."""
    claims, lines = tuple(claims), list[str]()
    titles = {
        False: "Claims: no deviation may exceed the bound",
        True: "Counter-examples, one hypothesis dropped: every deviation must exceed the bound",
    }
    for counterexample, title in titles.items():
        cases: dict[str, str] = {}
        for claim in claims:
            if claim.counterexample is counterexample:
                cases[claim.name] = f"{cases.get(claim.name, claim.name)}\n  {claim}"
        lines += [title, "", *cases.values(), ""] if cases else []
    return "\n".join([*lines, f"{sum(claim.held for claim in claims)} of {len(claims)} hold"])


def claim(
    name: str, bound: float = EQUAL, *, counterexample: bool = False
) -> Callable[[Callable[P, Measured]], Callable[P, Claim]]:
    """Turn a function that measures into a function that returns a claim."""

    def decorate(measure: Callable[P, Measured]) -> Callable[P, Claim]:
        @wraps(measure)
        def measured_claim(*arguments: P.args, **options: P.kwargs) -> Claim:
            case, deviations = measure(*arguments, **options)
            return Claim(name, case, tuple(deviations.items()), bound, counterexample)

        return measured_claim

    return decorate


counterexample = partial(claim, bound=DIFFERENT, counterexample=True)


def attempted(make: Callable[..., Claim], *arguments: Any, **options: Any) -> Claim:
    """Return the claim of a function, or a failed claim with the message of its error."""
    try:
        return make(*arguments, **options)
    except Exception as error:  # noqa: BLE001, the other claims still run
        name = make.__name__.replace("_", " ")
        # A trap: the first word of a docstring says if it is a counter-example.
        against = (make.__doc__ or "").startswith("Counter-example")
        detail = f"{type(error).__name__}: {error}"
        return Claim(name, "not computed", (("failed", np.nan),), 0.0, against, detail)


@dataclass(frozen=True, eq=False)
class Setup:
    """Settings shared by the compared runs: all but the split of the correction.

    Args:
        problem: the problem, without parameters.
        x0, x_prev: x_0 and x_{−1} (None: x_{−1} = x_0).
        dual: the start of the dual variable: μ_0, ν_0, π_0 or λ_0 by claim.
        eta_x, eta_d: steps, or metrics P (n×n) and D (m×m), or functions of t that return either.
        iterations: number of steps T ≥ 1; no residual test ends a run earlier.

    Raises:
        InputError: for a wrong shape, non-finite numbers, or ``iterations`` < 1.
    """

    problem: Problem
    x0: Vector
    dual: Vector
    x_prev: Vector | None = None
    eta_x: Step = 0.03
    eta_d: Step = 0.5
    iterations: int = 200

    def __post_init__(self) -> None:
        count(self.iterations, "iterations", at_least=1)
        n, m = self.problem.n, self.problem.m
        for name, size in (("x0", n), ("x_prev", n), ("dual", m)):
            value = getattr(self, name)
            vector = as_vector(self.x0 if value is None else value, size, name)
            object.__setattr__(self, name, vector)

    def case(self, rest: str) -> str:
        """Return the shape and the number of steps as text."""
        return f"n={self.problem.n} m={self.problem.m} T={self.iterations} {rest}"

    def oracle(self) -> Oracle:
        """Return an evaluator of the problem's functions."""
        return Oracle(self.problem.functions, np.zeros(0))

    def square(self, value: Any, name: str) -> Matrix:
        """Return an m×m matrix, checked."""
        return as_matrix(value, (self.problem.m, self.problem.m), name)

    def start_moved(self, C: Matrix) -> Setup:
        """Return the setup with the start of the dual variable moved by C h(x_{−1})."""
        assert self.x_prev is not None
        return replace(self, dual=self.dual + C @ self.oracle().residual(self.x_prev))

    def residuals_before(self, run: IterationHistory) -> Matrix:
        """Return h(x_{t−1}), t = 0 … T, of a run, without noise."""
        assert self.x_prev is not None
        return np.array([self.oracle().residual(self.x_prev), *run.h[:-1]])


def follow(setup: Setup, iteration: Iteration) -> IterationHistory:
    """Run the solver's loop for exactly T steps; one row an iterate, t = 0 … T.

    Raises:
        InputError: if the run cannot start.
        ArithmeticError: if it ends before T.
    """

    def stop(progress: IterationProgress) -> StopReason | None:
        last = progress.t >= setup.iterations
        return diverged(progress, DIVERGED) or (StopReason.ITERATION_LIMIT if last else None)

    # No residual test: claims compare all T steps, also those at a solution.
    recorder = IterationRecorder()
    start = Start(setup.x0, setup.dual, setup.x_prev)
    outcome = iterate(setup.oracle(), iteration, start, stop, Tolerances(), [recorder.see])
    if not recorder.rows:
        raise InputError(f"the run cannot start at x0: {outcome.detail}")
    if outcome.reason is not StopReason.ITERATION_LIMIT:
        raise ArithmeticError(f"{outcome.reason.value}, iteration {outcome.iterations}")
    return recorder.history()


def deviation(a: Matrix, b: Matrix) -> float:
    """max_t ‖a_t − b_t‖_∞ relative to max(1, max_t ‖a_t‖_∞, max_t ‖b_t‖_∞)."""
    scale = max(1.0, float(np.abs(a).max()), float(np.abs(b).max()))
    return float(np.abs(a - b).max()) / scale
