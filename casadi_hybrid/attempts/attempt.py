"""How an attempt starts, and the first of a solve."""

from __future__ import annotations

from dataclasses import dataclass

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.point.limits import NU_START
from casadi_hybrid.point.working_set import WarmStart
from casadi_hybrid.problem.problem import Problem

# After so many steps without an answer another start of the central path is tried. The first start
# is the user's own and has twice as many: of 18 solves of public scripts that were not through
# after 200 steps 8 were after 300, 10 after 400 and 11 after 600.
PATIENCE, FIRST_PATIENCE = 200, 400
_LEARNING = 1000  # where the Hessian has to be learned on the way
WARM_NU = 1e-6
_COMPOSITE_PATIENCE = 40


@dataclass(frozen=True, eq=False)
class Attempt:
    """How one run starts.

    Attributes:
        start: x0 of this run.
        max_iter: its steps, and those in which it converges after them.
        relaxation: how far bounds are widened.
        nu, push: first barrier parameter, and relative distance of the start from its bounds.
        root: whether a root of the constraints is looked for before the objective is.
        cautious: whether by short steps, which stay in the basin of the start.
        scaled: whether rows are scaled.
        escapes: how many starts away from a local minimum of the violation there were.
        warm: multipliers to begin with, and the working set where it is known.
        near: whether the barrier too begins with the multipliers of ``warm``.
        composite: whether by composite steps instead of the barrier method.
        last: whether it only takes the best point further.
        beside: whether equations keep the values they have at the start.
        rescale: whether it ends where a restoration is due far from what the scales were made for.
        least: whether it only looks for the least multipliers on the active set of its start.
    """

    start: Vector
    max_iter: int
    relaxation: float = 0.0
    nu: float = NU_START
    push: float = 1e-2
    root: bool = False
    cautious: bool = False
    scaled: bool = True
    escapes: int = 0
    warm: WarmStart | None = None
    near: bool = False
    composite: bool = False
    last: bool = False
    beside: bool = False
    rescale: bool = False
    least: bool = False


def warm_attempt(x0: Vector, warm: WarmStart) -> Attempt:
    """From a solution nearby: a smaller ν.

    Where it has not converged soon the multipliers do not fit, and it is begun anew without them.
    """
    return Attempt(x0, PATIENCE, nu=WARM_NU, warm=warm, near=True)


def composite_attempt(x0: Vector) -> Attempt:
    """By composite steps, with little patience: they take few or make the barrier method wait."""
    return Attempt(x0, _COMPOSITE_PATIENCE, composite=True)


def first_attempt(program: Problem, x0: Vector, overdetermined: bool) -> Attempt:
    """A root first where there are more equations than unknowns, which no Newton step meets.

    Affine equations need no search of their own: one full step is on all of them.
    """
    if overdetermined and not program.linear:
        return Attempt(x0, PATIENCE, root=True, scaled=False)
    learns = program.functions.curvature is None
    return Attempt(x0, _LEARNING if learns else FIRST_PATIENCE, rescale=True)
