"""Constrained optimization for control on CasADi graphs.

Augmented Lagrangian terms and optimistic dual memory are one matrix correction M = C_aug + C_opt
of a primal–dual iteration; this package designs M, splits it and runs it, beside the usual
baselines, and checks every answer.
"""

from typing import TYPE_CHECKING

from casadi_hybrid.basics.errors import DesignError, EvaluationError, InputError
from casadi_hybrid.basics.late import late_names
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.casadi_api.interface import nlpsol
from casadi_hybrid.casadi_api.runner import SolveError
from casadi_hybrid.problem.derivatives import Derivatives
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.verify.check import verify

if TYPE_CHECKING:
    from casadi_hybrid.casadi_api.optistack.in_place import in_place
    from casadi_hybrid.casadi_api.optistack.opti import Opti
    from casadi_hybrid.casadi_api.sensitivity import solution_sensitivity
    from casadi_hybrid.result.history import History
    from casadi_hybrid.result.progress import Progress
    from casadi_hybrid.result.result import Result
    from casadi_hybrid.session.methods import METHODS
    from casadi_hybrid.solver import Solver
    from casadi_hybrid.verify.report import Report
else:
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "casadi_api.optistack.in_place": "in_place",
            "casadi_api.optistack.opti": "Opti",
            "casadi_api.sensitivity": "solution_sensitivity",
            "result.history": "History",
            "session.methods": "METHODS",
            "result.result": "Result",
            "solver": "Solver",
            "result.progress": "Progress",
            "verify.report": "Report",
        },
    )

__version__ = "0.2.0"

__all__ = [
    "METHODS",
    "Derivatives",
    "DesignError",
    "EvaluationError",
    "History",
    "InputError",
    "Opti",
    "PointStatus",
    "Problem",
    "Progress",
    "Report",
    "Result",
    "SolveError",
    "Solver",
    "StopReason",
    "in_place",
    "nlpsol",
    "solution_sensitivity",
    "verify",
]
