"""Model predictive control within a deadline, with a status for every answer."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from casadi_hybrid.control.joint.joint import JointSolution
from casadi_hybrid.control.joint.scenarios import Scenarios
from casadi_hybrid.control.model.signals import NumberError, by_name, moment
from casadi_hybrid.control.mpc import step as words
from casadi_hybrid.control.mpc.delay import Delay
from casadi_hybrid.control.mpc.fallback import DefaultControl, Fallback, first_solves
from casadi_hybrid.control.mpc.garbage import PostponedCollection
from casadi_hybrid.control.mpc.measurement import limited, measured
from casadi_hybrid.control.mpc.plan import Plan, initial_plan
from casadi_hybrid.control.mpc.problem import Problem, refuse
from casadi_hybrid.control.mpc.search import Answers, Outcome, Request
from casadi_hybrid.control.mpc.step import Gain, Record, Step, arrays, gain_at, table
from casadi_hybrid.control.solution.solution import Solution
from casadi_hybrid.control.transcription.terms import Soft
from casadi_hybrid.utils.arrays import changed
from casadi_hybrid.utils.errors import InputError, warn
from casadi_hybrid.utils.inputs import count, is_callable, positive

if TYPE_CHECKING:
    from casadi_hybrid.core.export.export import Export

# Least and largest part of the deadline reserved after the solver, and its decay per step.
_LEAST_RESERVE, _MOST_RESERVE, _FADING = 0.05, 0.25, 0.98
# Factor of the residuals that is progress, and iterations allowed without: as in the core.
_PROGRESS, _PATIENCE = 0.9, 50


class MPC:
    """Solves an optimal control problem at every measurement, and applies the first input.

    A solve begins at the last plan, moved on in time, with its multipliers. A point that is no
    solution is used only if it satisfies the dynamics and all limits, which are evaluated again.
    Else the input comes from, in this order, the last plan that was used, ``fallback``, and
    ``default``. A step never raises because of values: NaN in a measurement or in the prediction
    over a delay, a failed solve, an exception in the model, in ``fallback`` or in a function for a
    parameter. The :class:`Step` has a status and a reason. ``print(mpc)`` shows the control without
    a plan.

    Args:
        ocp: an :class:`OptimalControl` with all states fixed at the start (:meth:`initial`), or
            :class:`Scenarios` of one, whose common first control is applied: robust control.
        deadline: seconds for a step. No evaluation of the model begins after it, so a step takes at
            most one evaluation and the linear algebra of one iteration longer. Garbage collection
            is postponed until the step has returned; a collection due at the call may come first
            (``gc.collect(1)`` before it prevents that). With a deadline, the functions, the
            solver's memory and its code are used once at the construction, at the declared start; a
            warning says if that failed. Let :meth:`prepare` make the first solve. None: no limit.
        iterations: limit of a solve that begins at a plan, as 1 for the real-time iteration of
            Diehl et al. (2005). A truncated iterate is applied only if its violation is below
            ``tolerance``, which may have to be larger than by default. After a rejected one the
            next step runs to convergence. None: no limit.
        fallback: a function of the measured state and the time that returns all controls.
        default: controls without a plan and a fallback: by name or as a column, a number for all,
            or a :class:`Steady`. By default zero (the middle of limits without zero) if the model
            has an equilibrium there, else the control of :func:`steady` near the end of the plan;
            under a deadline a warning then asks for a choice.
        soften: weight of violations in the softened problem, in units of the limits' scales: a
            number or a :class:`Soft`. This problem is solved if the measured state is outside its
            limits or the problem is infeasible. Limits of states, algebraic or not, and all
            constraints are soft in it, limits of controls are not. Limits of control increments
            have 100 times the weight, so that they give way last. None: it is never solved.
        tolerance: the largest violation of a plan that is used, in scaled units. A measured state
            that exceeds its limits by at most that counts as at them.
        period: from one step to the next if no time is given; the first interval of the last plan
            by default.
        delay: from a measurement until its control acts: seconds, or as an ``int`` a number of
            periods, as in :func:`simulate`. The model predicts the state until then from the
            controls already sent. Plans, parameters and references begin there, and a fallback
            gets this state and time.

    Attributes:
        ocp, deadline, iterations: as given.
        records: the telemetry of all steps since the start or :meth:`reset`, about a kilobyte each.
            A loop that runs for days deletes them: ``del mpc.records[:-1]``.
        applied: the controls applied last, for :meth:`OptimalControl.moves` and ``previous``; None,
            for their guesses, before the first step. Set them, by name too, if another controller
            holds the plant until then; :func:`simulate` does so by its ``u0``.

    Raises:
        InputError: for arguments that do not fit, by name.

    Example:
        >>> from casadi_hybrid.control import Model, OptimalControl
        >>> model = Model("cart")
        >>> x, v = model.state("x"), model.state("v", lower=-1, upper=1)
        >>> u = model.control("u", lower=-2, upper=2)
        >>> model.rates(x=v, v=u)
        >>> ocp = OptimalControl(model, duration=2.0, intervals=20)
        >>> ocp.initial()
        >>> ocp.minimize("distance", integral=x**2 + 0.1 * u**2)
        >>> mpc = MPC(ocp)
        >>> step = mpc.step([1.0, 0.0])
        >>> step.status, step["u"] < 0
        ('solved', True)
        >>> mpc.step([1.0, -1.1]).violated.keys()  # too fast, which nothing can change at once
        dict_keys(['v'])
    """

    def __init__(
        self,
        ocp: Problem,
        *,
        deadline: float | None = None,
        iterations: int | None = None,
        fallback: Fallback | None = None,
        default: Any = None,
        soften: Soft | float | None = 1e4,
        tolerance: float = 1e-4,
        period: float | None = None,
        delay: float | int = 0,
    ) -> None:
        refuse(ocp)
        for value, name in ((deadline, "deadline"), (period, "period")):
            if value is not None:
                positive(value, name)
        if iterations is not None:
            count(iterations, "iterations", at_least=1)
        if fallback is not None:
            is_callable(fallback, "fallback")
        positive(tolerance, "tolerance")
        self.ocp, self.deadline, self.iterations = ocp, deadline, iterations
        self._one = ocp.nominal
        self._fallback = DefaultControl(self._one, fallback, default)
        self._tolerance, self._period = tolerance, period
        self._delay = Delay(self._one, delay, period)
        self._answers = Answers(ocp, Soft.of(soften, "soften"), tolerance)
        self._collection = PostponedCollection(deadline is not None)
        self._prepared = Outcome()
        self._sensitivities: dict[Any, Any] = {}
        if deadline is not None or iterations is not None:
            _ = self._answers.aid  # made now: later there is no time for it
        self.reset()
        if deadline is not None:
            flaw = first_solves(self._answers, self._fallback, choose=fallback is None)
            if flaw:
                warn(f"MPC of {ocp.name}: {flaw}")

    def __repr__(self) -> str:
        """Problem, deadline, and the control without a plan."""
        limit = "" if self.deadline is None else f", deadline {self.deadline:g} s"
        control = self._fallback.words or "not decided before it is needed, or default= says it"
        return f"<MPC of {self.ocp.name!r}{limit}; without a plan: {control}>"

    def __reduce__(self) -> Any:
        raise TypeError(
            f"an MPC has the memory of its solvers and cannot be copied or pickled; make another "
            f"one of the problem, MPC(ocp, …) of {self.ocp.name!r}, in the process that uses it"
        )

    def reset(self) -> None:
        """Forget plans, times and records, except the plan of :meth:`prepare`."""
        self.records: list[Record] = []
        self._plan: Plan | None = None
        self._latest: Plan | None = None
        self._left, self._waited = np.inf, 0
        self._keep(self._prepared)
        self._time: float | None = None
        self._applied: Any = None
        self._answers.reset()
        self._delay.reset()
        self._reserve = _LEAST_RESERVE * (self.deadline or 0.0)

    def prepare(
        self, x: Any, time: float = 0.0, **parameters: Any
    ) -> Solution | JointSolution | None:
        """Solve without deadline before the first step, which begins at the solution.

        The softened problem is made and solved too, so that no step has to.

        Returns:
            The solution, or the last point; None without any.

        Raises:
            InputError: for wrong shapes and unknown names.
        """
        request, flaw = self._request(x, moment(time), parameters)
        if flaw:
            raise InputError(f"{flaw}; prepare(…) needs finite numbers")
        aid = self._answers.aid
        outcome = self._prepared = self._answers.search.run(request)
        self._keep(outcome)
        if aid is not None:  # its first solve allocates memory
            softened = aid.program(request.state, request.at, parameters)
            aid.run(replace(request, program=softened))
        return None if outcome.plan is None else outcome.plan.solution()

    def step(self, x: Any, time: float | None = None, **parameters: Any) -> Step:
        """Return the control for a measured state.

        Args:
            x: the state, a column or by name; NaN where a sensor has failed.
            time: of the measurement; a period after the last step by default, at first 0.
            **parameters: of the model and of the problem, by name, as in
                :meth:`OptimalControl.solve`.

        Raises:
            InputError: for wrong shapes and unknown names, before any work.
        """
        with self._collection:
            return self._step(x, time, parameters)

    def _step(self, x: Any, time: float | None, parameters: Mapping[str, Any]) -> Step:
        began = clock.perf_counter()
        until = np.inf if self.deadline is None else began + self.deadline
        at = self._next() if time is None else moment(time, self._time)
        delayed, lagged = self._delay.seconds > 0.0, self._one.lagged
        if delayed and self._applied is not None:
            self._delay.begin(self._applied)
        if lagged and self._applied is not None:
            slices = self._one.model.places("control")
            before = {name: self._applied[slices[of]] for name, of in lagged.items()}
            # A user's value of a previous control counts.
            parameters = {**before, **parameters}
        request, flaw = self._request(x, at, parameters)
        self._time, acts = at, request.at
        if flaw:
            # Without a valid measurement no solve: the last plan, fallback or default answers.
            solves = [Outcome(reason=flaw, report={"warm": False, "iterations": 0})]
        else:
            # Few iterations a step may never lead from a rejected point to a plan.
            limit = self.iterations if self._latest is self._plan else None
            latest, reserve = self._latest, self._reserve
            solves = self._answers.answer(
                changed(request, before=latest, until=until, reserve=reserve, iterations=limit)
            )
        solver_done = clock.perf_counter()
        iterations = 0
        for outcome in solves:
            self._keep(outcome)
            iterations += outcome.report["iterations"]
        answer = solves[-1]
        status, reason = answer.status or words.LAST_PLAN, answer.reason
        plan = self._plan
        control = None if plan is None else plan.control(acts)
        if control is None:
            plan = None
            state = np.full(request.state.size, np.nan) if flaw else request.state
            if not self._fallback.settled:
                values = None if flaw else state, acts, request.parameters
                self._fallback.settle(self._plan or initial_plan(self.ocp, *values))
            control, status, remark = self._fallback.control(state, acts)
            reason += f"; {remark}" if remark else ""
        lower, upper = self._answers.limits.of("control", request.program)
        control = self._applied = np.minimum(np.maximum(control, lower), upper)
        if delayed:
            self._delay.note(at, control)
        now = clock.perf_counter()
        if self.deadline is not None:
            self._reserve = self._margin(self.deadline, now - solver_done, now - until)
        report = {**answer.report, "iterations": iterations}
        record = Record(time=at, status=status, reason=reason, seconds=now - began, **report)
        self.records.append(record)
        asked = self.ocp, request.program, self._courses(request.parameters)
        return Step(control, status, reason, answer.violated, record, asked, plan)

    @property
    def applied(self) -> Any:
        """Controls applied last, a column; None before the first step."""
        return self._applied

    @applied.setter
    def applied(self, control: Any) -> None:
        model = self._one.model
        self._applied = None if control is None else model.vector("control", control, "applied")

    def limits(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Change limits for the steps from now on, without building the problem again.

        ``mpc.limits(speed=(-1, 0.5), force=(None, 3))``; a dictionary for names that are no Python
        identifiers. None in a pair is no limit on that side, None in place of a pair the declared
        limits. :meth:`reset` leaves them.

        Args:
            values: pairs (lower, upper) by the name of a state, algebraic state, control or
                constraint, a number or one an entry on each side.
            **named: the same.

        Raises:
            InputError: for unknown names, wrong shapes, a lower limit above the upper one, and a
                side that was declared without a limit; nothing is changed then.
        """
        self._answers.limits.change({**by_name(values, "limits"), **named})

    def gain(self) -> Gain:
        """Return ∂u₀/∂x of the control law at the last step, by name and in units.

        With a delay x is the predicted state at which the control acts. A linear controller around
        a set point, u = u₀ + gain·(x − x₀), costs a product instead of a solve.

        Raises:
            InputError: if the last step has no plan of its own.
            SensitivityError: if its plan is no solution, or has no derivative: the set of active
                limits changes there.
        """
        last = self.records[-1].status if self.records else "not made"
        if last not in (words.SOLVED, words.FEASIBLE, words.SOFTENED) or self._plan is None:
            raise InputError(f"gain() is that of a step with a plan; the last step was {last}")
        return gain_at(self._plan, self._sensitivities)

    def export(
        self,
        folder: str | Path,
        x: Any = None,
        name: str | None = None,
        *,
        steps: int = 10,
        loops: bool | None = None,
        cold: bool = True,
        **parameters: Any,
    ) -> Export:
        """Write the controller as C99 that needs no library: measured state in, control out.

        Names, units and scales, limits by name, the shift of the plan, the softened problem, the
        prediction over a delay, the last plan, a fallback and the default are in C too, in
        ``NAME_control.h`` and ``.c``; the folder's README has a table of names and the memory.
        ``print(compare(mpc.export(…)))`` of :mod:`casadi_hybrid.core.export.compare` compiles
        and compares. The softened problem is a second solver; ``soften=None`` leaves it out. The
        deadline is kept if ``controller.in.now`` points to a clock.

        Args:
            folder: target of the files.
            x: state of the solve that is stored; the declared one by default.
            name: prefix of names in C; the problem's name by default.
            steps: length of the simulated loop that is stored for the comparison.
            loops, cold: see :meth:`NlpSolver.export`.
            **parameters: of these solves; initial values in C.

        Raises:
            InputError: for a free duration, uneven intervals, a period that is no interval, a delay
                of a model with algebraic states, and as :meth:`NlpSolver.export`.
            OSError: if the folder cannot be written to.
        """
        # Slow to import, and rarely called.
        from casadi_hybrid.control.mpc.exporting import exported  # noqa: PLC0415

        if "x0" in parameters:
            raise InputError("the state that an MPC exports is x=, not x0=")
        if not self._fallback.settled:
            self._fallback.settle(initial_plan(self.ocp, x, 0.0, parameters))
        parts = self._answers, self._fallback, self._delay, self._period, self.deadline
        return exported(*parts, folder, x, name, steps, parameters, loops=loops, cold=cold)

    def telemetry(self) -> dict[str, Any]:
        """Return the fields of all records as arrays, one entry a step."""
        return arrays(self.records)

    def table(self) -> str:
        """Return all records as text, one line a step."""
        return table(self.records)

    def _next(self) -> float:
        if self._time is None:
            return 0.0
        if self._period is not None:
            return self._time + self._period
        last = self._latest
        length = self._one.length if last is None else last.duration
        return self._time + length * float(self._one.fractions[1])

    def _request(self, x: Any, at: float, parameters: Mapping[str, Any]) -> tuple[Request, str]:
        """Return the request of a step, and the flaws of its values in words."""
        state, values, flaw = measured(self._one, x, parameters)
        # Parameters and references begin where the control acts.
        at += self._delay.seconds
        program_of = self._answers.search.program
        try:
            program = program_of(state, at, values)
        except NumberError as error:  # of a function of time, or limits that follow them cross
            flaw = "; ".join(filter(None, (flaw, str(error))))
            # A program with valid values is needed for the limits of the control, whatever answers.
            zeros: Any = {name: 0.0 for name, s in self._one.given.items() if s.varying}
            if isinstance(self.ocp, Scenarios):  # values of single scenarios too
                zeros = dict.fromkeys(self.ocp.parts, zeros)
            values = {n: v for n, v in values.items() if not isinstance(v, Mapping)} | zeros
            try:
                program = program_of(state, at, values)
            except NumberError:
                values = {n: v for n, v in values.items() if n in self._one.lagged} | zeros
                program = program_of(state, at, values)
        if self._delay.seconds and not flaw:
            try:
                nominal = program.part(next(iter(self.ocp.prefixed)))
                measured_at, courses = at - self._delay.seconds, self._courses(values)
                state = self._delay.ahead(state, measured_at, nominal, courses)
            except Exception as error:  # noqa: BLE001, a controller goes on, and says so
                flaw = f"the delay could not be predicted: {error}"
            program = program_of(state, at, values)
        # Limits may follow parameters, so the program comes before the state that it limits.
        sides = self._answers.limits.of("state", program)
        inside, far = limited(self._one, state, sides, self._tolerance)
        if inside is not state:
            state, program = inside, program_of(inside, at, values)
        return Request(program, state, at, values, far), flaw

    def _courses(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the references that are functions of time, of scenarios the nominal one's."""
        if isinstance(self.ocp, Scenarios):
            values = self.ocp.parameters_of(next(iter(self.ocp.parts)), values)
        return {n: v for n, v in {**self._one.declared, **values}.items() if callable(v)}

    def _keep(self, outcome: Outcome) -> None:
        """Keep the plan of a solve as the start of the next one."""
        plan = outcome.plan
        if outcome.usable:
            self._plan = self._latest = plan
            self._left, self._waited = np.inf, 0
        elif outcome.lasting and plan is not None:
            # The residuals of an interior-point method also rise. If unfinished solves make no
            # progress for long, the next begins elsewhere, and with the other problem.
            nearer, steps = outcome.left < _PROGRESS * self._left, outcome.report["iterations"]
            self._waited = 0 if nearer else self._waited + max(steps, 1)
            self._left = outcome.left if nearer else self._left
            self._latest = plan
            if self._waited and plan.ended.iterations == 0 and not plan.ended.success:
                # SQP is in vain. Without multipliers the interior-point method begins at once.
                zeros = np.zeros_like(plan.lam_x), np.zeros_like(plan.lam_g)
                self._latest = replace(plan, lam_x=zeros[0], lam_g=zeros[1])
            if self._waited > _PATIENCE or np.isnan(outcome.left):
                self._latest, self._left, self._waited = self._plan, np.inf, 0
                self._answers.turn()

    def _margin(self, deadline: float, after: float, late: float) -> float:
        """Return the seconds that the next solve leaves for the work after it."""
        # Twice the last step's time after the solver; the slow decay remembers a slow step.
        needed = max(2.0 * after, late, _FADING * self._reserve, _LEAST_RESERVE * deadline)
        return min(_MOST_RESERVE * deadline, needed)
