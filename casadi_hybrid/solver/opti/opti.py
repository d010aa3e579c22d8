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
from casadi_hybrid.solver.opti.program import Program, filled, make_function, refuse_sparse
from casadi_hybrid.solver.opti.solution import OptiSolution, OptiSolveError
from casadi_hybrid.solver.options.options import NlpOptions
from casadi_hybrid.solver.run import Run
from casadi_hybrid.utils.errors import InputError

HYBRID = METHOD_NAMES[0]


class Opti(ca.OptiAdvanced):  # type: ignore[misc]
    """``ca.Opti`` with ``opti.solver("hybrid")``; everything else is as CasADi documents it.

    With linear scales the solver solves the scaled problem, to which its tolerances apply. Values
    and multipliers are those of the problem as written; ``solution.result`` and
    ``solution.explain()`` are about the scaled one.

    Args:
        problem: ``"nlp"`` or ``"conic"``, as in CasADi; or an existing ``ca.Opti``. Then both are
            names of the same problem: a statement, value or solve of one is one of the other. Pass
            ``existing.copy()`` to leave the existing one unchanged.

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
        # Both are handles of one problem: the new one knows solver and last run too.
        if isinstance(problem, Opti):
            problem._passed_on(self)

    def _passed_on(self, other: Opti) -> Opti:
        """Give another Opti of the same problem the solver and its last run; return it."""
        other._options, other._program, other._run = self._options, self._program, self._run
        return other

    def solver(self, name: str, plugin_options: Any = None, solver_options: Any = None) -> None:
        """Choose the solver.

        Args:
            name: ``"hybrid"`` (or ``"auto"``), or one of CasADi's solvers.
            plugin_options, solver_options: options of :func:`~casadi_hybrid.nlpsol`, in either.
                An unknown one among the second is read as an option of IPOPT: translated, or named
                in an :class:`~casadi_hybrid.solver.options.foreign.OptionWarning`.

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
        # Unknown names are looked up among the options of IPOPT under this key.
        plugin["hybrid"] = {**plugin.get("hybrid", {}), **(solver_options or {})}
        self._options = NlpOptions.from_dict(plugin)
        super().solver(HYBRID)

    def callback(self, fh: Callable[[int], Any] | None = None) -> None:
        """Have ``fh(i)`` called at every iteration, when ``debug.value`` gives the iterate.

        i counts steps from 0. It replaces the option ``iteration_callback``; without ``fh`` it is
        removed.
        """
        super().callback(fh)
        self._listener = fh

    def solve(self) -> Any:
        """Solve from the values of ``set_initial``.

        Multipliers among them (``opti.lam_g``) make a warm start: the active set they name is tried
        first. Solver and derivatives are reused until the problem or the options change.

        Returns:
            An :class:`~casadi_hybrid.solver.opti.solution.OptiSolution`, a ``ca.OptiSol``.

        Raises:
            InputError: for a discrete variable, a semidefinite constraint, or crossed bounds.
            RuntimeError: as in CasADi, for a parameter without value or an empty problem.
            OptiSolveError: if the solve fails. It has the solution at the best point, as has
                ``opti.debug.value``.
        """
        return self._solve(accept_limit=False)

    def solve_limited(self) -> Any:
        """Solve as :meth:`solve`, and accept the point at a limit of steps or time."""
        return self._solve(accept_limit=True)

    def _solve(self, accept_limit: bool) -> Any:
        if self._options is None:
            return super().solve_limited() if accept_limit else super().solve()
        node = ca.OptiAdvanced(self)
        self._run = None
        program = self._built(node)
        Opti.solve_prepare(self)
        outputs, self._run = program.solve(node, node.arg(), self._listener)
        # Then value() and debug.value() read this point, of a failed solve too.
        node.res(outputs)
        # A copy: later statements change the problem, not the solution.
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
        """Program of the present problem, built if it has changed."""
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
            RuntimeError: if the problem was not solved after its last change.
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
        """Return a Function that solves the problem; the arguments are those of CasADi.

        A failed solve raises with the option ``error_on_fail`` only.

        Args:
            name: a valid CasADi name.
            *arguments: inputs (symbols of the Opti, or ``vertcat`` of them; other symbols have
                their present values), results (any expressions), names of both, options of a
                ``ca.Function``; or a dictionary and the names of inputs and results.

        Raises:
            RuntimeError: for an input that is no symbol of this problem.
            InputError: for other arguments than these.
        """
        if self._options is None:
            return super().to_function(name, *arguments)
        node = ca.OptiAdvanced(super().copy())
        return make_function(name, node, self._built(node), arguments)

    def set_initial(self, *assignments: Any) -> None:
        """Set starts by ``(x, 3)`` or a list ``[x == 3]``, as of ``sol.value_variables()``."""
        super().set_initial(*map(filled, assignments))

    def set_value(self, *assignments: Any) -> None:
        """Set parameters by ``(p, 3)`` or a list ``[p == 3]``, as of ``sol.value_parameters()``."""
        super().set_value(*map(filled, assignments))

    def value(self, expression: Any, *assignments: Any) -> Any:
        """Return the value of any expression, also at the values of a list ``[x == 2]``."""
        return super().value(expression, *map(filled, assignments))

    def copy(self) -> Any:
        """Return an independent copy with the same solver and no callback."""
        return self._passed_on(Opti(super().copy()))

    debug = advanced = property(copy)
    """A copy, as in CasADi; its methods are those of any Opti here."""

    def baked_copy(self) -> Any:
        """Return a baked copy."""
        return self._passed_on(Opti(super().baked_copy()))

    def solve_prepare(self) -> None:
        """Read start, parameters and bounds, which ``arg()`` then returns."""
        if self._options is not None:
            # Unset: CasADi would count the iterations of a callback of its own solvers.
            super().callback_class()
        super().solve_prepare()

    def solve_actual(self, arg: dict[str, Any]) -> dict[str, ca.DM]:
        """Solve for the arguments of ``arg()``, after ``bake()`` and ``solve_prepare()``."""
        if self._options is None:
            return dict(super().solve_actual(arg))
        node = ca.OptiAdvanced(self)
        outputs, self._run = self._built(node).solve(node, arg, None)
        return outputs

    def _casadi_solver(self) -> Any:
        if self._options is None:
            return super()._casadi_solver()
        return ca.Function() if self._program is None else self._program.solver

    def g_index_reduce_g(self, i: int) -> int:
        """Row i itself, since no row becomes a bound here."""
        return super().g_index_reduce_g(i) if self._options is None else i

    def g_index_unreduce_g(self, i: int) -> int:
        """Row i itself, since no row becomes a bound here."""
        return super().g_index_unreduce_g(i) if self._options is None else i

    def g_index_reduce_x(self, i: int) -> int:
        """−1, since no row becomes a bound here."""
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
        """Describe the problem and the end of its last solve."""
        text = super().str(more)
        if self._options is None:
            return text
        # CasADi's text there is about a solver of its own.
        status = self.return_status()
        if status != "unknown":
            text = text.replace("solver needs updating", "solver allocated")
        return re.sub("solver was called: .*", f"solver was called: {status}", text)

    def disp(self, more: bool = False) -> None:
        """Print :meth:`str`."""
        print(self.str(more))
