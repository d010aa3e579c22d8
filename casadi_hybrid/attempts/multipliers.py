"""At a solution with huge multipliers: the least ones on its active set.

Rows that say the same twice share one multiplier in any parts, however large.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from casadi_hybrid.answer import altered
from casadi_hybrid.attempts.attempt import Attempt
from casadi_hybrid.attempts.outline import spent_in
from casadi_hybrid.attempts.solved import warm_result
from casadi_hybrid.basics.arrays import changed, largest
from casadi_hybrid.engine.structures import LARGE, NO_SET, NOT_NEARER, SOLVED
from casadi_hybrid.engine.warm import engine_of
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.point.residuals import HUGE_MULTIPLIER
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result

# Nothing is lost where the restart does not come to an end, so the engine has the last word where
# the multipliers are as huge as before.
_IN_VAIN = (NO_SET, NOT_NEARER, LARGE)


@dataclass(frozen=True)
class Again:
    """What a restart for smaller multipliers has come to.

    Attributes:
        result: the solution; None where it found none.
        iterations, elapsed, evaluations, seconds: what it has spent, as in a result.
    """

    result: Result | None
    iterations: int
    elapsed: float
    evaluations: Mapping[str, int]
    seconds: Mapping[str, float]

    @classmethod
    def of(cls, result: Result) -> Again:
        """What an attempt in Python has come to."""
        found = result if result.success else None
        spent = result.iterations, result.elapsed, result.evaluations, result.seconds
        return cls(found, *spent)

    def better_than(self, known: Result) -> Result:
        """The one of two solutions whose largest multiplier is less; the known one of equals.

        Why the solve has stopped stays what it was: the limit of a restart is not the caller's.
        """
        found = self.result
        if found is None or _largest(found) >= _largest(known):
            return known
        return altered(found, stop=known.stop, detail=known.detail)


def has_huge_multipliers(result: Result) -> bool:
    """Whether a multiplier is far larger than the slope of the objective asks for."""
    assert result.end is not None
    return _largest(result) > HUGE_MULTIPLIER * max(1.0, largest(result.end.gradient))


def restart_on_engine(
    program: Problem, numbers: Numbers, limits: Limits, restart: Attempt
) -> Again | None:
    """The restart by the warm mode in C; None where it is left to Python."""
    engine = engine_of(program)
    if isinstance(engine, str) or restart.warm is None:
        return None
    begun, space = changed(numbers, x0=restart.start), engine.prepare(numbers.bounds)
    space.fill(begun, restart.warm)
    space.limit(limits)
    status, said = space.warm(restart.warm.working_set), space.answer
    if status == SOLVED:
        return Again.of(warm_result(program, begun, limits, space.solved()))
    if status not in _IN_VAIN:
        return None
    return Again(None, said.steps, said.elapsed, *spent_in(said))


def _largest(result: Result) -> float:
    """The largest |multiplier|."""
    return max(largest(result.lam_x), largest(result.lam_g))
