"""Rules, which choose C_aug, C_opt and the steps at an iterate."""
# ruff: noqa: F403 (names are listed once; a type checker finds them in the modules)

from typing import TYPE_CHECKING

from casadi_hybrid.utils.late import late_names

_HOMES = {
    "algorithm1": "algorithm_1",
    "cancellations": "Cancellation FloorCancellation FullCancellation LeastNormCancellation "
    "NegativeCancellation PartialCancellation",
    "design": "Design DesignRule",
    "optimal": "ClippedSplit OptimalSplit least_restriction",
    "others": "ConstantRule MatrixRule ScheduleRule WhitenedRule",
    "partial": "BalancedSplit BoundedShare LeastShare",
    "parts": "ClosedFormSplit FixedMetric GivenSplit GramMetric GridSplit IdentityMetric Metric "
    "PureAugmented PureOptimistic Split StepRule Strength TargetCurvature",
    "spectra": "LocalModel",
}
__all__ = [name for names in _HOMES.values() for name in names.split()]

if TYPE_CHECKING:
    from casadi_hybrid.paper.rules.algorithm1 import *
    from casadi_hybrid.paper.rules.cancellations import *
    from casadi_hybrid.paper.rules.design import *
    from casadi_hybrid.paper.rules.optimal import *
    from casadi_hybrid.paper.rules.others import *
    from casadi_hybrid.paper.rules.partial import *
    from casadi_hybrid.paper.rules.parts import *
    from casadi_hybrid.paper.rules.spectra import *
else:
    __getattr__, __dir__ = late_names(__name__, _HOMES)
