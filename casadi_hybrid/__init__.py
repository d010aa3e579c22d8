"""Constrained optimization for control on CasADi graphs.

The default solver is an interior-point method with an active-set warm start. The methods of the
paper, which unite augmented and optimistic terms in one matrix M, are included for research.
"""

from typing import TYPE_CHECKING

from casadi_hybrid.problem.graph.derivatives import Derivatives
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.nlpsol.interface import nlpsol
from casadi_hybrid.solver.nlpsol.runner import SolveError
from casadi_hybrid.utils.errors import DesignError, EvaluationError, InputError
from casadi_hybrid.utils.late import late_names
from casadi_hybrid.utils.status import PointStatus, StopReason
from casadi_hybrid.verify.check import verify

if TYPE_CHECKING:
    from casadi_hybrid.solver.methods import METHODS
    from casadi_hybrid.solver.opti.in_place import in_place
    from casadi_hybrid.solver.opti.opti import Opti
    from casadi_hybrid.solver.record.history import History, Progress
    from casadi_hybrid.solver.result import Result
    from casadi_hybrid.solver.sensitivity import solution_sensitivity
    from casadi_hybrid.solver.solver import Solver
    from casadi_hybrid.verify.report import Report
else:
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "solver.opti.in_place": "in_place",
            "solver.opti.opti": "Opti",
            "solver.sensitivity": "solution_sensitivity",
            "solver.record.history": "History Progress",
            "solver.methods": "METHODS",
            "solver.result": "Result",
            "solver.solver": "Solver",
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
