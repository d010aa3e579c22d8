"""Whether the iteration still gets anywhere: in the violation, the objective or the optimality."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

FEASIBLE = 1e-6
CRAWL, STALL, ROUNDS = 20, 50, 5
_THETA, _F, _ERROR = 0.99, 1e-3, 0.9
_BELOW = 1e-9  # of |f|: so far below a saddle the objective is on its way from there
CONVERGING = 0.5  # residuals that fall by more from step to step converge
# How far, relative to max(1, |bound|), constraints without multipliers are moved to have some. The
# gradients of rows that touch grow with the root of it, and multipliers fall with that: here
# multiplier times distance is a tenth of a tolerance of 1e-6, and the distance a thousand times
# rounding.
BESIDE = 1e-13
OUTSIDE, FITS = 10.0, 0.5  # of a violation that is one, and of multipliers that balance the slope


@dataclass(frozen=True, slots=True)
class Mark:
    """The iterate of the last improvement.

    Attributes:
        nu: barrier parameter; another one is another problem.
        theta, f, error: ‖c‖₁, the scaled objective and the optimality error E_ν, infinite where
            it was that of a saddle that is left.
        t: the step, or that of the end of the last restoration.
        rounds: restorations since the last improvement.
    """

    nu: float
    theta: float
    f: float
    error: float
    t: int
    rounds: int = 0

    def restored(self, t: int) -> Mark:
        """The mark after a restoration that ended with step t."""
        return replace(self, t=t, rounds=self.rounds + 1)


def mark_of(
    old: Mark | None, nu: float, theta: float, f: float, error: float, t: int, *, bent: bool
) -> Mark:
    """The mark after step t: a new one where something has improved.

    An improvement is a violation that fell by 1 % (as long as it is one), an objective that fell
    by a thousandth of its size, or an error that fell by a tenth. Where f bends downwards
    (``bent``) and falls, the error of before was that of a saddle, which the way from there does
    not match for long: it is forgotten, and any is better where f bends upwards again.
    """
    if old is not None and old.nu == nu:
        nearer = max(old.theta, theta) > FEASIBLE and theta < _THETA * old.theta
        lower = f < old.f - _F * abs(f)
        better = error < _ERROR * old.error and not (bent and old.error == inf)
        if not (nearer or lower or better):
            leaves = bent and f < old.f - _BELOW * abs(f) and old.error < inf
            return replace(old, error=inf) if leaves else old
    return Mark(nu, theta, f, error, t)
