"""The solver: a problem and a method, for any start, parameters and bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from casadi_hybrid.core.binding.core import engine_of
from casadi_hybrid.core.binding.serving import for_machine_code, machine_code
from casadi_hybrid.core.binding.view import View
from casadi_hybrid.problem.arguments import refuse_stray_parameters
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.point.limits import METHOD_NAMES
from casadi_hybrid.problem.point.residuals import Residuals, Tolerances
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.methods import Automatic, Call, make_method
from casadi_hybrid.solver.record.answer import altered
from casadi_hybrid.solver.record.history import Progress, Recorder, StoppingTest
from casadi_hybrid.solver.record.record import Watch
from casadi_hybrid.solver.result import Result
from casadi_hybrid.solver.run import Session, read_start, solve
from casadi_hybrid.utils.errors import InputError, Interrupted
from casadi_hybrid.utils.inputs import as_vector, count, is_callable, positive
from casadi_hybrid.utils.status import StopReason


class Solver:
    """Solves min f(x, p) s.t. h(x, p) = 0, lbg ≤ g(x, p) ≤ ubg, lbx ≤ x ≤ ubx.

    Args:
        problem: the problem, or CasADi's dictionary of one.
        method: ``"hybrid"``, alias ``"auto"``, the default method for every problem: an
            interior-point method with an active-set warm start, and remedies if it fails. Or a name
            of :data:`casadi_hybrid.METHODS` or an iteration object: the paper's family, matrix
            steps and baselines, for equations in free variables.
            ``"algorithm-1"`` is the paper's Algorithm 1 as printed: H at μ_t, λ_0 is μ_0, h_{−1} =
            h(x_{−1}) (x_0 by default), C_opt,−1 = C_opt,0. ``"closed-form"`` is Algorithm 1 with
            its two ambiguities resolved: H at π_t, λ_0 is π_0 with zero initial memory, so that the
            split changes iterates only through the steps.
        tol: tolerance on the unscaled residuals, ‖h‖_∞ and violations, ‖∇f + J_gᵀλ_g + λ_x‖_∞
            and complementarity: 1e-6 under the default method, 1e-8 under the others.
        tol_feasibility, tol_stationarity, tol_complementarity: tolerance of each residual.
        scaled_tol: the scaled optimality error that the default method has to reach as well
            (1e-8; IPOPT's ``tol``).
        max_iter, max_time, divergence: see ``Limits``: 3000 steps, no limit in seconds, 1e20;
            under the other methods 1000 steps and 1e10.
        mu_init, bound_push, constr_mult_init_max, max_soc, threads: settings of the default method,
            see :class:`~casadi_hybrid.problem.point.limits.Limits`.
        stopping: further stopping tests, evaluated after those for convergence and divergence, and
            before those for steps and seconds.
        **options: options of the method.

    Raises:
        InputError: for an unknown method or option, a value out of range, or a problem that the
            method cannot take.

    Example:
        >>> import casadi as ca
        >>> x = ca.SX.sym("x", 2)
        >>> problem = Problem(x=x, f=x[0] * x[1], h=ca.vertcat(x[0] - 1, x[1] - 2, x[0] + x[1] - 3))
        >>> result = Solver(problem, "closed-form").solve(x0=[0.9, 2.2])
        >>> result.success, result.x.round(6).tolist()
        (True, [1.0, 2.0])
    """

    def __init__(
        self,
        problem: Problem | Mapping[str, Any],
        method: str | object = "hybrid",
        *,
        tol: float | None = None,
        tol_feasibility: float | None = None,
        tol_stationarity: float | None = None,
        tol_complementarity: float | None = None,
        scaled_tol: float | None = None,
        max_iter: int | None = None,
        max_time: float | None = None,
        divergence: float | None = None,
        mu_init: float | None = None,
        bound_push: float | None = None,
        constr_mult_init_max: float | None = None,
        max_soc: int | None = None,
        threads: int | None = None,
        stopping: Sequence[StoppingTest] = (),
        **options: Any,
    ) -> None:
        if isinstance(problem, Mapping):
            problem = Problem.from_nlp(problem)
        if not isinstance(problem, Problem):
            raise InputError(f"problem must be a Problem, got {type(problem).__name__}")
        if tol is not None:
            positive(tol, "tol")
        of_default = _not_none(
            mu_init=mu_init,
            bound_push=bound_push,
            constr_mult_init_max=constr_mult_init_max,
            max_soc=max_soc,
            threads=threads,
        )
        of_all = _not_none(
            scaled_tol=scaled_tol, max_iter=max_iter, max_time=max_time, divergence=divergence
        )
        self.method = make_method(method, options | of_default)
        by_core = isinstance(self.method, Automatic)
        if problem.compile and by_core:
            problem = for_machine_code(problem)
            machine_code(problem, True)
        self.problem = problem
        defaults = self.method.limits
        common = defaults.tolerances.feasibility if tol is None else tol
        kinds = (tol_feasibility, tol_stationarity, tol_complementarity)
        tolerances = Tolerances(*(common if kind is None else kind for kind in kinds))
        changes = of_all | of_default if by_core else of_all
        self.limits = replace(defaults, tolerances=tolerances, **changes)
        self._session = Session(problem, self.limits) if by_core else None
        # Parameters are passed if there are some, and may be omitted if they have a default.
        self._p_missing = (not problem.n_p, not problem.n_p or problem.p0 is not None)
        self.stopping = tuple(stopping)
        for i, test in enumerate(self.stopping):
            is_callable(test, f"stopping[{i}]")
        plain = self.method.label in METHOD_NAMES and not self.stopping
        self._quick = self._session if plain else None
        b = problem.bounds
        if (np.isfinite(b.lbg) | np.isfinite(b.ubg)).all():  # else rows get theirs at the solve
            self._refuse(b)

    def solve(
        self,
        x0: Any = None,
        p: Any = None,
        lam_g0: Any = None,
        *,
        lbx: Any = None,
        ubx: Any = None,
        lbg: Any = None,
        ubg: Any = None,
        lam_x0: Any = None,
        warm_start: Result | None = None,
        x_prev: Any = None,
        callback: Callable[[Progress], bool | None] | None = None,
        history: bool = False,
        log: bool | int = False,
    ) -> Result:
        """Solve from a start. An omitted argument has the problem's default.

        Args:
            x0: start, n numbers (one number is repeated); by default the problem's, else zero.
            p: parameter values; required if the problem has parameters without defaults.
            lam_g0: start of the multipliers, one number a row (equations first), zero by default.
            lbx, ubx: bounds on x.
            lbg, ubg: bounds on g, not on the equations h.
            lam_x0: multipliers of the bounds on x. Under the default method multipliers that are
                not zero make a warm start: the active set they name is tried first.
            warm_start: the result of a solve nearby: it supplies x0, lam_x0 and lam_g0 if omitted,
                and the working set to try first.
            x_prev: x_{−1}, for methods with memory; x0 by default.
            callback: called with the :class:`~casadi_hybrid.Progress` of every
                iterate; return True to stop.
            history: record every iterate and decision (the m×m corrections too: for long runs of
                large problems collect what you need in a callback instead).
            log: print an iteration log; a number prints every so many iterations.

        Returns:
            A :class:`~casadi_hybrid.Result`, also when the solve does not converge.

        Raises:
            InputError: for a wrong shape, non-finite values, or bounds that the method rejects,
                before any evaluation.
        """
        problem, quick = self.problem, self._quick
        shown = history or log or callback is not None or x_prev is not None
        if quick is not None and not shown and (p is None) in self._p_missing:
            values = x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0
            # The warm path: the core of the last solve checks the values itself.
            run = quick.quick(values, warm_start, matrices=False)
            if run is not None:
                if run.raised is not None:
                    raise run.raised
                return run.result
        refuse_stray_parameters(p, problem.n_p)
        numbers, warm = read_start(
            problem, warm_start, x0, lam_x0, lam_g0, p=p, lbx=lbx, ubx=ubx, lbg=lbg, ubg=ubg
        )
        if callback is not None:
            is_callable(callback, "callback")
        interval = int(log) if isinstance(log, bool) else count(log, "log")
        before = None if x_prev is None else as_vector(x_prev, problem.n, "x_prev")
        call = Call(numbers, self.limits, warm, before, callback, self.stopping, history, interval)
        # Bounds are known only now, so the method is asked again.
        self._refuse(numbers.bounds)
        if isinstance(self.method, Automatic):
            return self._by_core(call)
        return self.method.run(problem, call)

    def _refuse(self, bounds: Bounds) -> None:
        if isinstance(self.method, Automatic):
            return
        reason = self.method.refusal(self.problem, bounds)
        if reason:
            raise InputError(reason)

    def _by_core(self, call: Call) -> Result:
        """Solve for checked values, with the history and a stopping test's reason in the result."""
        session, label = self._session, self.method.label
        assert session is not None
        if call.x_prev is not None:
            raise InputError(f"x_prev is for methods with memory; method {label!r} has none")
        engine = engine_of(self.problem)
        core = engine.core(call.numbers.bounds, self.limits)
        core.fill(call.numbers, call.warm)
        watched = call.history or call.callback is not None or call.stopping or call.log
        follower = _Follower(call) if watched else None
        run = solve(core, self.problem, self.limits, follower)
        assert run is not None  # the values are checked, and the core is one for such bounds
        if engine.evaluate is not None:
            session.keep(core)
        result = run.result if follower is None else follower.added_to(run.result, run.said.steps)
        if label not in METHOD_NAMES:
            result = altered(result, method=label)
        if run.raised is None:
            return result
        if isinstance(run.raised, Interrupted):
            run.raised.result = result
        raise run.raised

    def __repr__(self) -> str:
        return f"Solver({self.problem!r}, {self.method.label!r})"


class _Follower(Watch):
    """Shows iterates to the callback, the stopping tests and the history of a call as well."""

    def __init__(self, call: Call) -> None:
        super().__init__(log=call.log)
        self._call, self.recorder = call, Recorder()  # of the history, if requested
        self.reason: StopReason | None = None  # of the stopping test that ended the solve

    def see(self, view: View) -> bool:
        super().see(view)
        t, f, *residuals = view.row[:5]
        progress = Progress(
            int(t), view.x, f, view.g, view.lam_g, Residuals(*residuals), view.row[-1]
        )
        call = self._call
        if call.history:
            self.recorder.hold(progress.t - 1)
            self.recorder.take(
                progress,
                lam_x=view.lam_x,
                nu=view.row[5],
                shift=view.row[9],
                complementarity=progress.residuals.complementarity,
            )
        if call.callback is not None and call.callback(progress) is True:
            return True
        self.reason = next((r for test in call.stopping if (r := test(progress))), None)
        return self.reason is not None

    def added_to(self, result: Result, steps: int) -> Result:
        """The result with the history and the reason of a stopping test."""
        self.recorder.hold(steps)
        if self.recorder.rows:
            result = altered(result, history=self.recorder.history())
        # The core knows a stop by the user alone.
        if self.reason is not None and result.stop is StopReason.STOPPED_BY_USER:
            result = altered(result, stop=self.reason)
        return result


def _not_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
