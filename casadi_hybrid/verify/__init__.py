"""Independent verification of a point, from any solver.

:func:`verify` evaluates the problem's own functions, fits multipliers itself, finds the
active set, looks at the curvature on its face and asks IPOPT for a second opinion.
"""

from typing import TYPE_CHECKING

from casadi_hybrid.utils.late import late_names
from casadi_hybrid.verify.check import verify

if TYPE_CHECKING:
    from casadi_hybrid.verify.first_order.fit import Fit, fit_multipliers
    from casadi_hybrid.verify.first_order.kkt import FirstOrder, Given
    from casadi_hybrid.verify.first_order.rows import Measure
    from casadi_hybrid.verify.ipopt import IpoptRun, run_ipopt
    from casadi_hybrid.verify.report import Comparison, Finding, Rejection, Relation, Report
    from casadi_hybrid.verify.second_order.curvature import Curvature, SecondOrder
else:
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "first_order.kkt": "FirstOrder Given",
            "first_order.fit": "Fit fit_multipliers",
            "first_order.rows": "Measure",
            "ipopt": "IpoptRun run_ipopt",
            "report": "Comparison Finding Rejection Relation Report",
            "second_order.curvature": "Curvature SecondOrder",
        },
    )

__all__ = [
    "Comparison", "Curvature", "Finding", "FirstOrder", "Fit", "Given", "IpoptRun", "Measure",
    "Rejection", "Relation", "Report", "SecondOrder", "fit_multipliers", "run_ipopt", "verify",
]  # fmt: skip
