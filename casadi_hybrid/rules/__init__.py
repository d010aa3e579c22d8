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
    from casadi_hybrid.rules.constant import ConstantRule, ScheduleRule
    from casadi_hybrid.rules.design import Design, DesignRule
    from casadi_hybrid.rules.matrix import MatrixRule, WhitenedRule
    from casadi_hybrid.rules.optimal import ClippedSplit, OptimalSplit, least_restriction
    from casadi_hybrid.rules.partial import BalancedSplit, BoundedShare, LeastShare
    from casadi_hybrid.rules.pieces import (
        FixedMetric,
        GivenStrength,
        GramMetric,
        IdentityMetric,
        Metric,
        Strength,
        TargetCurvature,
    )
    from casadi_hybrid.rules.spectra import LocalModel
    from casadi_hybrid.rules.splits import (
        ClosedFormSplit,
        GivenSplit,
        GridSplit,
        PureAugmented,
        PureOptimistic,
        Split,
    )
    from casadi_hybrid.rules.steps import StepRule
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
            "constant": "ConstantRule ScheduleRule",
            "design": "Design DesignRule",
            "matrix": "MatrixRule WhitenedRule",
            "optimal": "ClippedSplit OptimalSplit least_restriction",
            "partial": "BalancedSplit BoundedShare LeastShare",
            "pieces": (
                "FixedMetric GivenStrength GramMetric IdentityMetric Metric Strength "
                "TargetCurvature"
            ),
            "spectra": "LocalModel",
            "splits": "ClosedFormSplit GivenSplit GridSplit PureAugmented PureOptimistic Split",
            "steps": "StepRule",
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
