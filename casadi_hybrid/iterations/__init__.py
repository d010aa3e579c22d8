"""Iterations: how x and μ move."""

from typing import TYPE_CHECKING

from casadi_hybrid.basics.late import late_names

if TYPE_CHECKING:
    from casadi_hybrid.iterations.base import Iteration, Start
    from casadi_hybrid.iterations.extragradient import Extragradient
    from casadi_hybrid.iterations.gda import GradientDescentAscent
    from casadi_hybrid.iterations.hybrid import Hybrid, Rule
    from casadi_hybrid.iterations.linearized_al import LinearizedAugmentedLagrangian
    from casadi_hybrid.iterations.lookahead import LookAhead
    from casadi_hybrid.iterations.ogda import OptimisticGradient
    from casadi_hybrid.iterations.pdhg import PrimalDualHybridGradient
else:
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "base": "Iteration Start",
            "extragradient": "Extragradient",
            "gda": "GradientDescentAscent",
            "hybrid": "Hybrid Rule",
            "linearized_al": "LinearizedAugmentedLagrangian",
            "lookahead": "LookAhead",
            "ogda": "OptimisticGradient",
            "pdhg": "PrimalDualHybridGradient",
        },
    )

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
