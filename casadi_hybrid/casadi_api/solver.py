"""The solver object of CasADi's calling convention."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, overload

import casadi as ca
import numpy as np

from casadi_hybrid.attempts.warm import read_start
from casadi_hybrid.basics.errors import InputError, suggest
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.call import Call
from casadi_hybrid.casadi_api.callbacks import OUTPUTS, StepCallback
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.casadi_api.stats import casadi_stats
from casadi_hybrid.course.record import Watch
from casadi_hybrid.explain.diagnosis import listed
from casadi_hybrid.problem.columns import Shapes, as_column, in_shape
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.solver import Solver

INPUTS = ("x0", "p", "lbx", "ubx", "lbg", "ubg", "lam_x0", "lam_g0")


class SolveError(RuntimeError):
    """A solve did not succeed and ``error_on_fail`` was set.

    Attributes:
        result: the :class:`~casadi_hybrid.Result`.
    """

    def __init__(self, message: str, result: Result) -> None:
        self.result = result
        super().__init__(message, result)

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class _Call:
    """What stays of one call."""

    result: Result
    stats: dict[str, Any]


class NlpSolver:
    """A nonlinear program ready to be solved for any start, parameters and bounds.

    Made by :func:`~casadi_hybrid.nlpsol`. Call it with CasADi's arguments by keyword. It can be
    pickled (where its ``iteration_callback`` can), and several threads may call one object at
    once: each call has its own evaluators, and :meth:`stats`, :attr:`result` and :meth:`explain`
    speak of the last call of the asking thread (of any thread, where the asking one has made
    none).
    """

    def __init__(
        self,
        name: str,
        problem: Problem,
        options: NlpOptions,
    ) -> None:
        self._name = name
        self._shapes: Shapes = problem.shapes
        self._options = options
        self._solver = Solver(problem)
        self._limits = options.limits
        problem.functions.packing(problem.functions.first)  # made now, not at the first call
        self._parted = _parting(problem.n, problem.m)
        self._latest: _Call | None = None
        self._of_thread = threading.local()

    @overload
    def __call__(self, **named: Any) -> dict[str, ca.DM]: ...

    @overload
    def __call__(self, x0: Any, /, *others: Any) -> tuple[ca.DM, ...]: ...

    def __call__(
        self,
        *in_order: Any,
        x0: Any = None,
        p: Any = None,
        lbx: Any = None,
        ubx: Any = None,
        lbg: Any = None,
        ubg: Any = None,
        lam_x0: Any = None,
        lam_g0: Any = None,
        warm_start: Result | None = None,
        **unknown: Any,
    ) -> Any:
        """Solve min f(x, p) s.t. lbg ≤ g(x, p) ≤ ubg, lbx ≤ x ≤ ubx.

        A single number stands for all entries, as in CasADi. What is left out has the default of
        the problem; that of a dictionary is CasADi's: no bounds, and zeros.

        Args:
            *in_order: all of :meth:`name_in` by position, as CasADi takes them; then a tuple comes
                back.
            x0: start, 0 by default; moved inside its bounds where it is not.
            p: parameter values.
            lbx, ubx, lbg, ubg: bounds; equal ones fix a variable or make an equation.
            lam_x0, lam_g0: multipliers of a solution nearby, 0 by default. Where any is not zero,
                the active set they name is tried first, by Newton steps from x0 as it is (a warm
                start); where that does not solve the problem, the cold barrier iteration runs,
                which starts from a least-squares estimate of its own.
            warm_start: the :attr:`result` of a solve nearby, of this solver or of one of the same
                size. It gives x0, lam_x0 and lam_g0 where they are not given, and the working set
                to try first. Parameters and bounds are those of this call. For a receding
                horizon shift x and the multipliers yourself and give those: which entries belong
                to which stage only you know.
            **unknown: refused.

        Returns:
            ``x``, ``f``, ``g`` at the best point found; ``lam_x`` and ``lam_g`` of
            L = f + lam_gᵀg + lam_xᵀx, positive at an active upper bound; ``lam_p`` = −∂L/∂p,
            CasADi's sign. All are ``DM``. A solve that fails returns its best point too; ask
            :meth:`stats` or :attr:`result`.

        Raises:
            InputError: for a bad argument, before any evaluation.
            SolveError: where the solve fails and ``error_on_fail`` is set.
        """
        for word in unknown:
            raise InputError(f"unknown argument {word!r}{suggest(word, (*INPUTS, 'warm_start'))}")
        if in_order:
            return tuple(self.call(in_order))
        problem, options = self._solver.problem, self._options
        if p is None and problem.p0 is None:
            p = 0.0
        p = as_column(p, self._shapes.get("p"))
        numbers, warm = read_start(
            problem, warm_start, x0, lam_x0, lam_g0, p=p, lbx=lbx, ubx=ubx, lbg=lbg, ubg=ubg
        )
        x0, p, bounds = numbers.x0, numbers.p, numbers.bounds

        if options.warn_initial_bounds and ((x0 < bounds.lbx) | (x0 > bounds.ubx)).any():
            outside = np.flatnonzero((x0 < bounds.lbx) | (x0 > bounds.ubx))
            names = listed([problem.functions.variable_names[i] for i in outside])
            warnings.warn(f"x0 is outside its bounds at {names}", UserWarning, stacklevel=2)
        callback = None
        if options.iteration_callback is not None:
            callback = StepCallback(
                options.iteration_callback,
                options.iteration_callback_step,
                options.iteration_callback_ignore_errors,
                problem.parameter_gradient,
                p,
            )
        watch = Watch(bounds, callback, int(options.log), options.divergence)
        began = time.process_time()
        result = self._solver.run(Call(numbers, self._limits, warm, watch=watch))
        stats = casadi_stats(result, watch.lists, time.process_time() - began)
        self._latest = self._of_thread.call = _Call(result, stats)
        if options.print_time:
            print(_timing(self._name, stats))
        if options.error_on_fail and not result.success:
            raise SolveError(f"{self._name} failed. {self.explain()}", result)
        return self._outputs(result, p)

    def call(self, arguments: Any) -> Any:
        """Solve as ``Function.call`` does: a dictionary or a list in, the same kind out.

        A list has the arguments in the order of :meth:`name_in`, and the answer that of
        :meth:`name_out`.

        Raises:
            InputError: for another kind, or a list of another length.
        """
        if isinstance(arguments, Mapping):
            return self(**arguments)
        if not isinstance(arguments, list | tuple) or len(arguments) != len(INPUTS):
            raise InputError(
                f"call needs a dictionary or a list of {', '.join(INPUTS)}, all {len(INPUTS)} of "
                "them; name the arguments to leave some out, as in solver(x0=…, ubg=…)"
            )
        return list(self(**dict(zip(INPUTS, arguments, strict=True))).values())

    def stats(self) -> dict[str, Any]:
        """Statistics of the last call under CasADi's keys.

        ``success`` is whether x is a KKT point within ``residual_tol``; ``return_status`` the
        name of a :class:`~casadi_hybrid.basics.status.StopReason`, ``point_status`` that of a
        :class:`~casadi_hybrid.basics.status.PointStatus`; ``unified_return_status`` CasADi's
        ``SOLVER_RET_*``; ``iterations`` lists by the fields of
        :class:`~casadi_hybrid.course.record.IterationRecord`. Changing the dictionary changes
        nothing here.

        Raises:
            InputError: before the first call.
        """
        stats = self._last().stats
        lists = {name: list(numbers) for name, numbers in stats["iterations"].items()}
        return {**stats, "iterations": lists}

    @property
    def result(self) -> Result:
        """The last call's result with residuals and both statuses.

        Raises:
            InputError: before the first call.
        """
        return self._last().result

    def explain(self) -> str:
        """Say in sentences how the last call ended; see ``result.explain()``.

        Raises:
            InputError: before the first call.
        """
        return self._last().result.explain()

    @property
    def options(self) -> NlpOptions:
        """The options, defaults included."""
        return self._options

    def name(self) -> str:
        """The name given to :func:`~casadi_hybrid.nlpsol`."""
        return self._name

    def n_in(self) -> int:
        """Number of arguments."""
        return len(INPUTS)

    def n_out(self) -> int:
        """Number of outputs."""
        return len(OUTPUTS)

    def name_in(self) -> list[str]:
        """Names of the arguments, in CasADi's order."""
        return list(INPUTS)

    def name_out(self) -> list[str]:
        """Names of the outputs, in CasADi's order."""
        return list(OUTPUTS)

    def __getstate__(self) -> dict[str, Any]:
        kept = dict(self.__dict__)
        del kept["_of_thread"]
        kept["_latest"] = None
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._of_thread = threading.local()

    def __repr__(self) -> str:
        problem = self._solver.problem
        sizes = f"n={problem.n}, m={problem.m}, parameters={problem.n_p}"
        return f"NlpSolver({self._name!r}, 'hybrid', {sizes})"

    def _last(self) -> _Call:
        call: _Call | None = getattr(self._of_thread, "call", None) or self._latest
        if call is None:
            raise InputError(f"{self._name} has not been called yet; call it first")
        return call

    def _outputs(self, result: Result, p: Vector) -> dict[str, ca.DM]:
        problem = self._solver.problem
        # A conversion to DM costs several times what the function needs to take it apart.
        parts = (result.x, (result.f,), result.g, result.lam_x, result.lam_g)
        outputs = dict(zip(OUTPUTS, self._parted(ca.DM(np.concatenate(parts))), strict=True))
        if p.size:
            outputs["lam_p"] = -problem.parameter_gradient(result.x, result.lam_g, p)
        return in_shape(outputs, self._shapes)


def _parting(n: int, m: int) -> ca.Function:
    """(x; f; g; lam_x; lam_g) in one column → :data:`OUTPUTS`, of which lam_p is empty."""
    column = ca.MX.sym("column", 2 * (n + m) + 1)
    ends = [0, *accumulate((n, 1, m, n, m, 0))]
    return ca.Function("parts", [column], ca.vertsplit(column, ends))


def _timing(name: str, stats: Mapping[str, Any]) -> str:
    wall, proc = stats["t_wall_total"], stats["t_proc_total"]
    return (
        f"{name}: {stats['return_status']} after {stats['iter_count']} iterations, "
        f"{wall:.4f} s ({proc:.4f} s of processor time), {stats['n_call_nlp_f']} evaluations of "
        f"f, g and their derivatives, {stats['n_call_nlp_hess_l']} Hessians"
    )
