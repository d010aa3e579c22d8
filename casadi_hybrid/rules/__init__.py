"""Rules: how C_aug, C_opt and the steps are chosen at an iterate."""

from typing import TYPE_CHECKING

from casadi_hybrid.basics.late import late_names

if TYPE_CHECKING:
    from casadi_hybrid.rules.algorithm1 import algorithm_1
    from casadi_hybrid.rules.cancellations import (
        AbsoluteCancellation,
        BoundedCancellation,
        Cancellation,
        FloorCancellation,
        FullCancellation,
        LeastNormCancellation,
        NegativeCancellation,
        NoCancellation,
        PartialCancellation,
    )
    from casadi_hybrid.rules.design import Design, DesignRule
    from casadi_hybrid.rules.optimal import ClippedSplit, OptimalSplit, least_restriction
    from casadi_hybrid.rules.others import ConstantRule, MatrixRule, ScheduleRule, WhitenedRule
    from casadi_hybrid.rules.partial import BalancedSplit, BoundedShare, LeastShare
    from casadi_hybrid.rules.parts import (
        ClosedFormSplit,
        FixedMetric,
        GivenSplit,
        GivenStrength,
        GramMetric,
        GridSplit,
        IdentityMetric,
        Metric,
        PureAugmented,
        PureOptimistic,
        Split,
        StepRule,
        Strength,
        TargetCurvature,
    )
    from casadi_hybrid.rules.spectra import LocalModel

__all__ = [
    "AbsoluteCancellation",
    "BalancedSplit",
    "BoundedCancellation",
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
    "GivenStrength",
    "GramMetric",
    "GridSplit",
    "IdentityMetric",
    "LeastNormCancellation",
    "LeastShare",
    "LocalModel",
    "MatrixRule",
    "Metric",
    "NegativeCancellation",
    "NoCancellation",
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

if not TYPE_CHECKING:
    __getattr__, __dir__ = late_names(
        __name__,
        {"spectra parts cancellations design others partial optimal algorithm1": " ".join(__all__)},
    )
