"""Independent verification: what a point is, whoever found it.

:func:`verify` evaluates the problem's own functions, fits multipliers itself, looks at the
curvature on the kernel of the Jacobian and asks IPOPT for a second opinion.
:func:`verify_nlp` does the same where there are inequalities and bounds.
"""

from casadi_hybrid.verify.check import verify
from casadi_hybrid.verify.first_order.measure import Measure
from casadi_hybrid.verify.first_order.multipliers import Fit, fit_multipliers
from casadi_hybrid.verify.ipopt import IpoptRun, run_ipopt
from casadi_hybrid.verify.kkt import FirstOrder, Given
from casadi_hybrid.verify.nlp_check import verify_nlp
from casadi_hybrid.verify.nlp_report import NlpReport
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
    "NlpReport",
    "Rejection",
    "Relation",
    "Report",
    "SecondOrder",
    "fit_multipliers",
    "run_ipopt",
    "verify",
    "verify_nlp",
]
