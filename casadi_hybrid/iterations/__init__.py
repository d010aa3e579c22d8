"""Iterations: how x and μ move."""
# ruff: noqa: F403, F405 (names are listed once; a type checker finds them in the modules)

from typing import TYPE_CHECKING

from casadi_hybrid.basics.late import late_names

__all__ = [
    "Extragradient",
    "GradientDescentAscent",
    "Hybrid",
    "Iteration",
    "LinearizedAugmentedLagrangian",
    "OptimisticGradient",
    "PrimalDualHybridGradient",
    "Rule",
    "Start",
]

if TYPE_CHECKING:
    from casadi_hybrid.iterations.base import *
    from casadi_hybrid.iterations.baselines import *
    from casadi_hybrid.iterations.hybrid import *
else:
    __getattr__, __dir__ = late_names(__name__, {"base hybrid baselines": " ".join(__all__)})
