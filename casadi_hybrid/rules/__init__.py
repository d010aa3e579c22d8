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
else:
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "algorithm1": "algorithm_1",
            "cancellations": (
                "AbsoluteCancellation BoundedCancellation Cancellation FloorCancellation "
                "FullCancellation LeastNormCancellation NegativeCancellation NoCancellation "
                "PartialCancellation"
            ),
            "design": "Design DesignRule",
            "optimal": "ClippedSplit OptimalSplit least_restriction",
            "others": "ConstantRule MatrixRule ScheduleRule WhitenedRule",
            "partial": "BalancedSplit BoundedShare LeastShare",
            "parts": (
                "ClosedFormSplit FixedMetric GivenSplit GivenStrength GramMetric GridSplit "
                "IdentityMetric Metric PureAugmented PureOptimistic Split StepRule Strength "
                "TargetCurvature"
            ),
            "spectra": "LocalModel",
        },
    )

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
