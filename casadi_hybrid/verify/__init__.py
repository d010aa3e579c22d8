"""Independent verification: what a point is, whoever found it.

:func:`verify` evaluates the problem's own functions, fits multipliers itself, looks at the
curvature on the kernel of the Jacobian and asks IPOPT for a second opinion.
"""

from casadi_hybrid.verify.check import verify
from casadi_hybrid.verify.curvature import Curvature, SecondOrder
from casadi_hybrid.verify.ipopt import IpoptRun, run_ipopt
from casadi_hybrid.verify.kkt import FirstOrder, Given, Measure
from casadi_hybrid.verify.multipliers import Fit, fit_multipliers
from casadi_hybrid.verify.report import Comparison, Finding, Rejection, Relation, Report

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
