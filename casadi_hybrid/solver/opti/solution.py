"""The solution of an Opti problem."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import casadi as ca

from casadi_hybrid.solver.nlpsol.runner import SolveError
from casadi_hybrid.solver.nlpsol.stats import stats_of
from casadi_hybrid.solver.opti.program import filled
from casadi_hybrid.solver.result import Result
from casadi_hybrid.solver.run import Run
from casadi_hybrid.utils.errors import InputError


class OptiSolveError(SolveError):
    """The solve of an Opti problem did not succeed.

    Attributes:
        solution: the :class:`OptiSolution` at the best point found.
        result: that of the solution.
    """

    def __init__(self, message: str, solution: OptiSolution) -> None:
        self.solution = solution
        super().__init__(message, solution.result)


class OptiSolution(ca.OptiSol):  # type: ignore[misc]
    """A solved Opti problem, with a copy of the problem, which later changes do not reach."""

    # Only CasADi's own solve() can make an OptiSol. Its methods are those of a copy of the Opti
    # under other names; all of them are here.
    def __init__(self, opti: Any, run: Run) -> None:
        self._copy, self._run = opti, run

    @property
    def opti(self) -> Any:
        """The copy of the :class:`~casadi_hybrid.Opti` as it was at the solve."""
        return self._copy

    @property
    def result(self) -> Result:
        """Point, multipliers, residuals and both statuses, scaled if linear scales are set."""
        return self._run.result

    @property
    def variable_names(self) -> tuple[str, ...]:
        """One per entry of ``opti.x``: symbol, entry and source line."""
        return self.result.variable_names

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """One per entry of ``opti.g``, with the source line of ``subject_to``."""
        return self.result.constraint_names

    @property
    def success(self) -> bool:
        """True if the point is a KKT point within tolerance."""
        return self.result.success

    def value(self, expression: Any, *assignments: Any) -> Any:
        """Return the value of an expression of variables, parameters and multipliers.

        Shapes are those of CasADi: floats for scalars, NumPy arrays, SciPy's matrices for sparse
        expressions.

        Args:
            expression: an expression of this Opti's symbols.
            *assignments: a list as ``[x == 2]``, whose values replace the solution's.

        Raises:
            RuntimeError: for other symbols, or variables that do not occur in the problem.
        """
        return self._copy.value(expression, *assignments)

    def value_variables(self) -> list[ca.MX]:
        """The solution as assignments for ``opti.set_initial``, of the variables in the problem."""
        return _valued(self._copy.value_variables())

    def value_parameters(self) -> list[ca.MX]:
        """The parameters' values as assignments for ``opti.set_value``; unset ones are omitted."""
        return _valued(self._copy.value_parameters())

    def dual(self, constraint: Any) -> Any:
        """Return the multiplier of a constraint, with the sign of ``opti.value(opti.dual(c))``.

        Args:
            constraint: the expression that was passed to ``subject_to``.

        Raises:
            InputError: for an expression that is no constraint of this problem.
        """
        try:
            return self.value(self._copy.dual(constraint))
        except RuntimeError:
            raise InputError(
                f"{constraint.str()[:80]} is not a constraint of this problem; give dual() the "
                "very expression that was given to subject_to()"
            ) from None

    def describe_constraint(self, i: int) -> str:
        """Describe the origin of entry i of ``opti.g``: shape, file, line and source text."""
        return str(self._copy.g_describe(i))

    def describe_variable(self, i: int) -> str:
        """Describe the origin of entry i of ``opti.x``: name, shape, file, line, source text."""
        return str(self._copy.x_describe(i))

    def explain(self) -> str:
        """Explain the end of the solve; constraints are named by their source lines."""
        explanation = self.result.explain()
        if not self._copy._program.scales.unit:
            explanation += "\nLinear scales are set: these are numbers of the scaled problem."
        return explanation

    def report(self, path: str | PathLike[str]) -> Path:
        """Write one HTML page of the solve; see :meth:`casadi_hybrid.Result.report`."""
        from casadi_hybrid.solver.report.page import write_page  # noqa: PLC0415 - only for this

        return write_page(self.result, self.explain, path)

    def stats(self) -> dict[str, Any]:
        """Statistics under CasADi's keys.

        They are those of :meth:`casadi_hybrid.solver.nlpsol.solver.NlpSolver.stats`.
        """
        return stats_of(self._run)

    def type_name(self) -> str:
        """CasADi's name of the class."""
        return "OptiSol"

    def __deepcopy__(self, _memo: Any = None) -> OptiSolution:
        return self  # it is immutable

    __copy__ = __deepcopy__

    def str(self, more: bool = False) -> Any:
        """Describe the problem and the end of its solve."""
        return self._copy.str(more)

    def disp(self, more: bool = False) -> None:
        """Print :meth:`str`."""
        print(self.str(more))


def _valued(assignments: list[ca.MX]) -> list[ca.MX]:
    """Drop assignments that CasADi does not accept: of empty symbols, and of NaN."""
    return [v for v in filled(assignments) if ca.evalf(v.dep(0)).is_regular()]
