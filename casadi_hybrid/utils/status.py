"""Statuses of a result: reason of the stop, kind of the point, second-order conditions.

The value of a member is a sentence for people; its name is for programs.
"""

from __future__ import annotations

from enum import Enum


class StopReason(Enum):
    """Reason why the iteration stopped."""

    CONVERGED = "the KKT residuals are within tolerance"
    ITERATION_LIMIT = "the iteration limit was reached"
    TIME_LIMIT = "the time limit was reached"
    DIVERGED = "the iterates grew without bound"
    DESIGN_INFEASIBLE = "the rule found no admissible correction"
    EVALUATION_ERROR = "a function of the problem returned NaN or Inf"
    STOPPED_BY_USER = "the callback asked to stop"
    LOCALLY_INFEASIBLE = "no feasible point was found: the violation cannot be reduced from here"
    UNBOUNDED = "the objective decreases without bound along feasible points"
    NO_MULTIPLIERS = "the multipliers grew without bound: no constraint qualification holds here"
    STALLED = "no further progress"
    TARGET_REACHED = "the target of a stopping test was reached"


class Conditions(Enum):
    """Second-order conditions observed at a KKT point."""

    UNKNOWN = "second-order conditions were not examined"
    NECESSARY = (
        "second-order necessary conditions hold: the reduced Hessian has no negative direction"
    )
    SUFFICIENT = "second-order sufficient conditions hold: the reduced Hessian is positive definite"
    NEGATIVE = "the reduced Hessian has a negative direction, and no lower KKT point was found"


class PointStatus(Enum):
    """Kind of the returned point, by the residuals of the problem's own functions."""

    KKT_POINT = "a KKT point within tolerance"
    FRITZ_JOHN_POINT = "feasible, but the constraint gradients degenerate: no multipliers exist"
    FEASIBLE_NOT_STATIONARY = "feasible but not stationary"
    STATIONARY_NOT_FEASIBLE = "stationary for the Lagrangian but not feasible"
    INFEASIBLE_STATIONARY = "an infeasible stationary point of the constraint violation"
    NOT_CONVERGED = "neither feasible nor stationary"
    UNDEFINED = "a function of the problem, or a derivative, is not defined there"
