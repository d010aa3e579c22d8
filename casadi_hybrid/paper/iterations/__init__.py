"""Iterations: how x and μ move."""
# ruff: noqa: F403 (names are listed once; a type checker finds them in the modules)

from typing import TYPE_CHECKING

from casadi_hybrid.utils.late import late_names

_HOMES = {
    "base": "Iteration Start",
    "baselines": "Extragradient GradientDescentAscent LinearizedAugmentedLagrangian "
    "OptimisticGradient PrimalDualHybridGradient",
    "hybrid": "Hybrid Rule",
}
__all__ = [name for names in _HOMES.values() for name in names.split()]

if TYPE_CHECKING:
    from casadi_hybrid.paper.iterations.base import *
    from casadi_hybrid.paper.iterations.baselines import *
    from casadi_hybrid.paper.iterations.hybrid import *
else:
    __getattr__, __dir__ = late_names(__name__, _HOMES)
