"""Independent verification of a point, from any solver.

:func:`verify` evaluates the problem's own functions, fits multipliers, finds the active set,
examines the curvature on its face, and runs IPOPT for a second opinion.
"""
# ruff: noqa: F403 (names are listed once; a type checker finds them in the modules)

from typing import TYPE_CHECKING

from casadi_hybrid.utils.late import late_names
from casadi_hybrid.verify.check import verify as verify

_HOMES = {
    "first_order.fit": "Fit fit_multipliers",
    "first_order.kkt": "FirstOrder Given",
    "first_order.rows": "Measure",
    "ipopt": "IpoptRun run_ipopt",
    "report": "Comparison Finding Rejection Relation Report",
    "second_order.curvature": "Curvature SecondOrder",
}
__all__ = [name for names in ("verify", *_HOMES.values()) for name in names.split()]

if TYPE_CHECKING:
    from casadi_hybrid.verify.first_order.fit import *
    from casadi_hybrid.verify.first_order.kkt import *
    from casadi_hybrid.verify.first_order.rows import *
    from casadi_hybrid.verify.ipopt import *
    from casadi_hybrid.verify.report import *
    from casadi_hybrid.verify.second_order.curvature import *
else:
    __getattr__, __dir__ = late_names(__name__, _HOMES)
