"""Export of a predictive controller as C99: its law, and solves to compare and to count by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from casadi_hybrid.control.c_controller.names import Softened
from casadi_hybrid.control.c_controller.writing import Law, export_law
from casadi_hybrid.control.mpc.delay import Delay
from casadi_hybrid.control.mpc.fallback import DefaultControl
from casadi_hybrid.control.mpc.plan import Plan
from casadi_hybrid.control.mpc.problem import Problem, soft_names, violations
from casadi_hybrid.control.mpc.search import Answers
from casadi_hybrid.control.solution.checking import refuse_outside
from casadi_hybrid.control.transcription.limits import Limits
from casadi_hybrid.control.transcription.program import Program
from casadi_hybrid.control.transcription.terms import SAME
from casadi_hybrid.core.export.export import Export
from casadi_hybrid.utils.errors import InputError


def exported(
    answers: Answers,
    fallback: DefaultControl,
    delay: Delay,
    period: float | None,
    deadline: float | None,
    folder: str | Path,
    x: Any,
    name: str | None,
    steps: int,
    parameters: Mapping[str, Any],
    **options: Any,
) -> Export:
    """See :meth:`MPC.export`."""
    problem, limits = answers.search.problem, answers.limits
    ocp = problem.nominal
    length = float(ocp.length * ocp.fractions[1])
    if ocp.free_duration is not None or not ocp.even:
        raise InputError(
            f"{problem.name} has a free duration or uneven intervals; the plan of an exported "
            "controller moves on by one interval a step. Export the problem itself: ocp.export(…)"
        )
    if period is not None and abs(period - length) > SAME * length:
        raise InputError(
            f"period is {period:g}, an interval {length:g}; an exported controller makes a "
            "step an interval"
        )
    program = limits.put_into(problem.numbers(x, **parameters))
    nominal = program.part(next(iter(problem.own)))
    refuse_outside(ocp, nominal, "x", "mpc")
    softened, names = None, soft_names(problem)
    if answers.aid is not None and not soft_names(answers.aid.problem) <= names:
        other = answers.aid.problem
        soft_program = limits.put_into(other.numbers(x, **parameters))
        softened = Softened(other.solver, soft_program, violations(other, soft_program), names)
    law = Law(
        ocp,
        program,
        problem.own,
        limits,
        fallback.default,
        fallback.words,
        answers.search.tolerance,
        shifted=True,
        softened=softened,
        ahead=delay.by_intervals(fallback.default, nominal) if delay.seconds else None,
        delay=delay.seconds,
        deadline=np.inf if deadline is None else deadline,
    )
    loop = _steps(problem, limits, length, steps, parameters)
    return export_law(problem.solver, law, folder, name, loop=loop, **options)


def _steps(
    problem: Problem, limits: Limits, length: float, steps: int, parameters: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the changed arguments of a loop whose plant is the model, from the plan moved on."""
    ocp, prefix = problem.nominal, next(iter(problem.prefixed))
    states, places = ocp.model.signals["state"], ocp.model.places("control")
    program: Program = problem.program
    if any(program.variables[prefix + name].shape[1] == 1 for name in states):
        return  # single shooting: the state after an interval is no unknown
    for k in range(1, steps + 1):
        result = problem.solver.result
        plan = Plan(problem, program, result.x, result.lam_x, result.lam_g, 0.0)
        control = plan.control(0.0)
        assert control is not None
        before = {name: control[places[of]] for name, of in ocp.lagged.items()}
        state = plan.state(length)
        values = problem.numbers(state, time=k * length, **{**parameters, **before})
        # The loop's plant is the model: the state that the plan predicts is measured next.
        program = limits.put_into(values)
        start = program.shifted(result.x, result.lam_x, result.lam_g)
        start["x0"] = plan.begun(start["x0"], state)
        yield {"p": program.p, **start}
