"""Independent verification: what a point is, whoever found it.

:func:`verify` evaluates the problem's own functions, fits multipliers itself, finds the
active set, looks at the curvature on its face and asks IPOPT for a second opinion.
"""

from casadi_hybrid.verify.check import verify
from casadi_hybrid.verify.first_order.kkt import FirstOrder, Given
from casadi_hybrid.verify.first_order.measure import Measure
from casadi_hybrid.verify.first_order.multipliers import Fit, fit_multipliers
from casadi_hybrid.verify.ipopt import IpoptRun, run_ipopt
from casadi_hybrid.verify.report import Report
from casadi_hybrid.verify.second_order.curvature import Curvature, SecondOrder
from casadi_hybrid.verify.verdict import Comparison, Finding, Rejection, Relation

__all__ = [
    "Comparison",
    "Curvature",
    "Finding",
    "FirstOrder",
    "Fit",
    "Given",
    "IpoptRun",
    "Measure",
    "Rejection",
    "Relation",
    "Report",
    "SecondOrder",
    "fit_multipliers",
    "run_ipopt",
    "verify",
]
