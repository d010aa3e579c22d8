"""One call of a solver, and the protocol of its method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from casadi_hybrid.problem.arguments import Numbers
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.point.limits import Limits
from casadi_hybrid.problem.point.working_set import WorkingSet
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.record.progress import Progress, StoppingTest
from casadi_hybrid.solver.result import Result
from casadi_hybrid.utils.inputs import Vector


@dataclass(frozen=True)
class Call:
    """One solve: checked numbers, limits, and what is called with its iterates.

    Args:
        numbers: start, parameters, bounds.
        limits: when it has converged, and when to give up.
        warm: the working set of a solution nearby; None leaves it to the multipliers to name one.
        x_prev: x_{−1} for methods with memory, None for x_0.
        callback: called with every progress; it stops the solve by returning True.
        stopping: further stopping tests, asked after those for convergence and divergence.
        history: whether every iterate is recorded.
        log: print every so many iterations; 0 prints nothing.
    """

    numbers: Numbers
    limits: Limits
    warm: WorkingSet | None = None
    x_prev: Vector | None = None
    callback: Callable[[Progress], bool | None] | None = None
    stopping: tuple[StoppingTest, ...] = ()
    history: bool = False
    log: int = 0


class Method(Protocol):
    """A method of :data:`~casadi_hybrid.METHODS`, which takes a call to a result."""

    @property
    def label(self) -> str:
        """Name for tables."""

    @property
    def limits(self) -> Limits:
        """The defaults."""

    def refusal(self, problem: Problem, bounds: Bounds) -> str:
        """Reason why this problem is rejected; empty if accepted."""

    def run(self, problem: Problem, call: Call) -> Result:
        """Solve."""
