"""What a predictive controller solves: one problem, or scenarios of one side by side."""

from __future__ import annotations

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.joint.scenarios import Scenarios
from casadi_hybrid.control.ocp import OptimalControl

Problem = OptimalControl | Scenarios


def parts(problem: Problem) -> dict[str, OptimalControl]:
    """Return what the program consists of by the prefix of its names, the nominal one first."""
    if isinstance(problem, OptimalControl):
        return {"": problem}
    return {f"{label}/": part for label, part in problem.parts.items()}


def nominal(problem: Problem) -> OptimalControl:
    """Return the problem itself, or the one that all scenarios have."""
    return problem if isinstance(problem, OptimalControl) else problem.ocp


def refuse(problem: Problem) -> None:
    """Refuse what no predictive controller can be made of.

    Raises:
        InputError: for another type, no control, a state that is free at the start, and scenarios
            whose intervals would differ.
    """
    if not isinstance(problem, OptimalControl | Scenarios):
        raise InputError(
            f"ocp must be an OptimalControl or Scenarios, got {type(problem).__name__}"
        )
    ocp = nominal(problem)
    if not ocp.model.signals["control"]:
        raise InputError(f"{problem.name} has no control, so there is nothing to apply")
    loose = [name for name in ocp.model.signals["state"] if name not in ocp.fixed]
    if loose:
        raise InputError(
            f"{problem.name} leaves {', '.join(loose)} free at the start; call its initial()"
        )
    if ocp is not problem and ocp.free_duration is not None:
        raise InputError(
            f"the duration of {problem.name} is free, so that the first interval, whose control is "
            "applied, would be as long as each scenario likes; give the problem a fixed duration"
        )
