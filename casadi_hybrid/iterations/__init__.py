"""Iterations: how x and μ move."""

from typing import TYPE_CHECKING

from casadi_hybrid.basics.late import late_names

if TYPE_CHECKING:
    from casadi_hybrid.iterations.base import Iteration, Start
    from casadi_hybrid.iterations.baselines import (
        Extragradient,
        GradientDescentAscent,
        LinearizedAugmentedLagrangian,
        OptimisticGradient,
        PrimalDualHybridGradient,
    )
    from casadi_hybrid.iterations.hybrid import Hybrid, Rule
    from casadi_hybrid.iterations.lookahead import LookAhead

__all__ = [
    "Extragradient",
    "GradientDescentAscent",
    "Hybrid",
    "Iteration",
    "LinearizedAugmentedLagrangian",
    "LookAhead",
    "OptimisticGradient",
    "PrimalDualHybridGradient",
    "Rule",
    "Start",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = late_names(
        __name__,
        {"base hybrid baselines lookahead": " ".join(__all__)},
    )
