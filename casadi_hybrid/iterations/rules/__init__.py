"""Rules: how C_aug, C_opt and the steps are chosen at an iterate."""
# ruff: noqa: F403, F405 (names are listed once; a type checker finds them in the modules)

from typing import TYPE_CHECKING

from casadi_hybrid.basics.late import late_names

__all__ = [
    "BalancedSplit",
    "BoundedShare",
    "Cancellation",
    "ClippedSplit",
    "ClosedFormSplit",
    "ConstantRule",
    "Design",
    "DesignRule",
    "FixedMetric",
    "FloorCancellation",
    "FullCancellation",
    "GivenSplit",
    "GramMetric",
    "GridSplit",
    "IdentityMetric",
    "LeastNormCancellation",
    "LeastShare",
    "LocalModel",
    "MatrixRule",
    "Metric",
    "NegativeCancellation",
    "OptimalSplit",
    "PartialCancellation",
    "PureAugmented",
    "PureOptimistic",
    "ScheduleRule",
    "Split",
    "StepRule",
    "Strength",
    "TargetCurvature",
    "WhitenedRule",
    "algorithm_1",
    "least_restriction",
]

if TYPE_CHECKING:
    from casadi_hybrid.iterations.rules.algorithm1 import *
    from casadi_hybrid.iterations.rules.cancellations import *
    from casadi_hybrid.iterations.rules.design import *
    from casadi_hybrid.iterations.rules.optimal import *
    from casadi_hybrid.iterations.rules.others import *
    from casadi_hybrid.iterations.rules.partial import *
    from casadi_hybrid.iterations.rules.parts import *
    from casadi_hybrid.iterations.rules.spectra import *
else:
    __getattr__, __dir__ = late_names(
        __name__,
        {"spectra parts cancellations design others partial optimal algorithm1": " ".join(__all__)},
    )
