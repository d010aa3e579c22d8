"""``ca.Opti`` with the solver of this package among its solvers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np
from casadi import Opti as CasadiOpti  # the one that in_place() replaces

from casadi_hybrid.problem.point.limits import METHOD_NAMES
from casadi_hybrid.solver.nlpsol.stats import return_status, stats_of, unified_status
from casadi_hybrid.solver.opti.names import refuse_sparse
from casadi_hybrid.solver.opti.program import Program, filled, make_function
from casadi_hybrid.solver.opti.solution import OptiSolution, OptiSolveError
from casadi_hybrid.solver.options.options import NlpOptions
from casadi_hybrid.solver.run import Run
from casadi_hybrid.utils.errors import InputError

HYBRID = METHOD_NAMES[0]


class Opti(ca.OptiAdvanced):  # type: ignore[misc]
    """``ca.Opti`` with ``opti.solver("hybrid")``; everything else is as CasADi documents it.

    With linear scales the solver sees the scaled problem, to which its tolerances apply. Values and
    multipliers are those of the problem as it is written; ``solution.result`` and what
    ``solution.explain()`` says are of the scaled one.

    Args:
        problem: ``"nlp"`` or ``"conic"``, as in CasADi; or a ``ca.Opti`` made elsewhere. Then this
            is another name of that problem: what is stated, set or solved by one is seen by
            the other. Give it ``existing.copy()`` to leave that as it is.

    Example:
        >>> opti = Opti()
        >>> x = opti.variable(2)
        >>> opti.minimize(ca.sumsqr(x))
        >>> line = ca.sum1(x) >= 2
        >>> opti.subject_to(line)
        >>> opti.solver("hybrid")
        >>> solution = opti.solve()
        >>> [round(float(v), 6) for v in (*solution.value(x), solution.dual(line))]
        [1.0, 1.0, 2.0]
    """

    _options: NlpOptions | None = None
    _program: Program | None = None
    _run: Run | None = None
    _listener: Callable[[int], Any] | None = None

    def __init__(self, problem: Any = "nlp") -> None:
        if not isinstance(problem, str | CasadiOpti):
            raise InputError(
                f"Opti takes 'nlp', 'conic' or a ca.Opti, got {type(problem).__name__}"
            )
        super().__init__(CasadiOpti(problem) if isinstance(problem, str) else problem)
        if isinstance(problem, Opti):
            problem._passed_on(self)

    def _passed_on(self, other: Opti) -> Opti:
        """Give another Opti of the same problem the solver and what it has found; return it."""
        other._options, other._program, other._run = self._options, self._program, self._run
        return other

    def solver(self, name: str, plugin_options: Any = None, solver_options: Any = None) -> None:
        """Choose the solver.

        Args:
            name: ``"hybrid"`` (or ``"auto"``), or one of CasADi's, which is used then as in any
                ``ca.Opti``.
            plugin_options, solver_options: those of :func:`~casadi_hybrid.nlpsol`, in either.
                What the second has that is not among them is read as an option of IPOPT:
                translated, or named in an
                :class:`~casadi_hybrid.solver.options.foreign.OptionWarning`.

        Raises:
            InputError: for an unknown option or a bad value.
        """
        if name not in METHOD_NAMES:
            super().solver(name, plugin_options or {}, solver_options or {})
            self._options = self._run = None
            if self._listener is not None:
                self.callback(self._listener)
            return
        for options in (plugin_options, solver_options):
            if not isinstance(options, Mapping | None):
                raise InputError(
                    f"options of opti.solver must be dictionaries, got {type(options).__name__}"
                )
        plugin = dict(plugin_options or {})
        plugin["hybrid"] = {**plugin.get("hybrid", {}), **(solver_options or {})}
        self._options = NlpOptions.from_dict(plugin)
        super().solver(HYBRID)

    def callback(self, fh: Callable[[int], Any] | None = None) -> None:
        """Have ``fh(i)`` called once at every iteration, when ``debug.value`` gives its iterate.

        i counts steps from 0. It takes the place of the option ``iteration_callback``. Without
        ``fh`` it is removed.
        """
        super().callback(fh)
        self._listener = fh

    def solve(self) -> Any:
        """Solve from the values of ``set_initial``.

        Where those name multipliers (``opti.lam_g``), the active set they name is tried first.
        Nothing is built again while neither problem nor options have changed.

        Returns:
            An :class:`~casadi_hybrid.solver.opti.solution.OptiSolution`, which has all
            that ``ca.OptiSol`` has.

        Raises:
            InputError: for what cannot be solved here: a discrete variable, a semidefinite
                constraint, or crossed bounds.
            RuntimeError: as in CasADi, where a parameter has no value or nothing is to be solved.
            OptiSolveError: where the solve fails. It has the solution at the best point, and so
                has ``opti.debug.value``.
        """
        return self._solve(accept_limit=False)

    def solve_limited(self) -> Any:
        """Solve as :meth:`solve`, and accept the point where a limit of steps or time ends it."""
        return self._solve(accept_limit=True)

    def _solve(self, accept_limit: bool) -> Any:
        if self._options is None:
            return super().solve_limited() if accept_limit else super().solve()
        node = ca.OptiAdvanced(self)
        self._run = None
        program = self._built(node)
        Opti.solve_prepare(self)
        found, self._run = program.solve(node, node.arg(), self._listener)
        node.res(found)
        solution = OptiSolution(self.copy(), self._run)
        limited = accept_limit and unified_status(solution.result) == "SOLVER_RET_LIMITED"
        if not solution.success and (self._options.error_on_fail or not limited):
            raise OptiSolveError(
                "Solver failed. You may use opti.debug.value to investigate the latest values of "
                f"variables. return_status is '{self.return_status()}'. {solution.explain()}",
                solution,
            )
        return solution

    def _built(self, node: Any) -> Program:
        """The program of the problem as it is now, made where there is none."""
        assert self._options is not None
        if node.problem_dirty():
            refuse_sparse(node)
            node.bake()
            self._program = None
        self._program = Program.of(node, self._options, self._program)
        return self._program

    def stats(self) -> dict[str, Any]:
        """Statistics of the last solve under CasADi's keys, see :meth:`NlpSolver.stats`.

        Raises:
            RuntimeError: where the problem has not been solved since it was changed.
        """
        if self._options is None:
            return dict(super().stats())
        super().assert_solved()
        return {} if self._run is None else stats_of(self._run)

    def return_status(self) -> str:
        """``stats()["return_status"]``; "unknown" before a solve."""
        if self._run is None or not super().solved():
            return str(super().return_status())
        return return_status(self._run.result)

    def to_function(self, name: str, *arguments: Any) -> ca.Function:
        """A Function that solves the problem; its arguments are those of CasADi.

        A failed solve raises with the option ``error_on_fail`` only.

        Args:
            name: a valid CasADi name.
            *arguments: inputs (symbols of the Opti, or ``vertcat`` of them; what is none of them
                has its value of now), results (any expressions), names of both, options of a
                ``ca.Function``; or a dictionary and the names of inputs and results.

        Raises:
            RuntimeError: where an input is no symbol of this problem.
            InputError: for arguments that do not fit.
        """
        if self._options is None:
            return super().to_function(name, *arguments)
        node = ca.OptiAdvanced(super().copy())
        return make_function(name, node, self._built(node), arguments)

    def set_initial(self, *assignments: Any) -> None:
        """As in CasADi: ``(x, 3)``, or a list as ``[x == 3]``, as ``sol.value_variables()`` is."""
        super().set_initial(*map(filled, assignments))

    def set_value(self, *assignments: Any) -> None:
        """As in CasADi: ``(p, 3)``, or a list as ``[p == 3]``, as ``sol.value_parameters()`` is."""
        super().set_value(*map(filled, assignments))

    def value(self, expression: Any, *assignments: Any) -> Any:
        """As in CasADi: of any expression, also with values of a list as ``[x == 2]``."""
        return super().value(expression, *map(filled, assignments))

    def copy(self) -> Any:
        """A copy with the same solver and nothing else in common; it has no callback."""
        return self._passed_on(Opti(super().copy()))

    debug = advanced = property(copy)
    """A copy, as in CasADi. The methods for a closer look are those of any Opti here."""

    def baked_copy(self) -> Any:
        """A copy that is baked."""
        return self._passed_on(Opti(super().baked_copy()))

    def solve_prepare(self) -> None:
        """Read start, parameters and bounds, which ``arg()`` returns then."""
        if self._options is not None:
            # CasADi would count iterations of a callback that only its own solvers have.
            super().callback_class()
        super().solve_prepare()

    def solve_actual(self, arg: dict[str, Any]) -> dict[str, ca.DM]:
        """Solve for the arguments of ``arg()``, after ``bake()`` and ``solve_prepare()``."""
        if self._options is None:
            return dict(super().solve_actual(arg))
        node = ca.OptiAdvanced(self)
        found, self._run = self._built(node).solve(node, arg, None)
        return found

    def _casadi_solver(self) -> Any:
        if self._options is None:
            return super()._casadi_solver()
        return ca.Function() if self._program is None else self._program.solver

    def g_index_reduce_g(self, i: int) -> int:
        """Row i itself: no row becomes a bound here."""
        return super().g_index_reduce_g(i) if self._options is None else i

    def g_index_unreduce_g(self, i: int) -> int:
        """Row i itself: no row becomes a bound here."""
        return super().g_index_unreduce_g(i) if self._options is None else i

    def g_index_reduce_x(self, i: int) -> int:
        """−1: no row becomes a bound here."""
        return super().g_index_reduce_x(i) if self._options is None else -1

    def show_infeasibilities(self, tol: float = 0.0, opts: dict[str, Any] | None = None) -> None:
        """Print the constraints that are violated by more than ``tol`` at the latest values."""
        super().assert_solved()
        lower, value, upper = (
            ca.DM(self.value(part)).full().ravel() for part in (self.lbg, self.g, self.ubg)
        )
        violation = np.maximum(value - upper, lower - value)
        print(f"Violated constraints (tol {tol:g}), in order of declaration:")
        for i in np.flatnonzero(violation >= tol):
            print(f"------- i = {i}/{value.size} ------")
            print(f"{lower[i]:g} <= {value[i]:g} <= {upper[i]:g} (viol {violation[i]:g})")
            print(super().g_describe(int(i), opts or {}))

    def str(self, more: bool = False) -> Any:
        """The problem, and how its last solve ended."""
        text = super().str(more)
        if self._options is None:
            return text
        # What CasADi says there is of a solver of its own.
        status = self.return_status()
        if status != "unknown":
            text = text.replace("solver needs updating", "solver allocated")
        return re.sub("solver was called: .*", f"solver was called: {status}", text)

    def disp(self, more: bool = False) -> None:
        """Print :meth:`str`."""
        print(self.str(more))
