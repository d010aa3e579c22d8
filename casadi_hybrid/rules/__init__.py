"""Rules: how C_aug, C_opt and the steps are chosen at an iterate."""

from casadi_hybrid.rules.constant import ConstantRule, ScheduleRule
from casadi_hybrid.rules.design import Design, DesignRule
from casadi_hybrid.rules.pieces import (
    Cancellation,
    FixedMetric,
    FullCancellation,
    GivenStrength,
    GramMetric,
    IdentityMetric,
    Metric,
    NoCancellation,
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

__all__ = [
    "Cancellation",
    "ClosedFormSplit",
    "ConstantRule",
    "Design",
    "DesignRule",
    "FixedMetric",
    "FullCancellation",
    "GivenSplit",
    "GivenStrength",
    "GramMetric",
    "GridSplit",
    "IdentityMetric",
    "LocalModel",
    "Metric",
    "NoCancellation",
    "PureAugmented",
    "PureOptimistic",
    "ScheduleRule",
    "Split",
    "StepRule",
    "Strength",
    "TargetCurvature",
]
