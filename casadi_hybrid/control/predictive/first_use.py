"""What a controller does before its first step, so that no step has to."""

from __future__ import annotations

import time as clock

import numpy as np

from casadi_hybrid.control.predictive.answer import Answers
from casadi_hybrid.control.predictive.plan import beginning
from casadi_hybrid.control.predictive.spare import Spare

_MOST = 10.0
"""Seconds that the solves may take."""


def use_once(answers: Answers, spare: Spare, *, asked: bool) -> str:
    """Solve from the declared start, then from there; return what there is to say of it.

    Functions, the solver's memory and its code are there then. What the solves come to is not kept:
    nobody measured that state.

    Args:
        answers: whose problems these are.
        spare: whose default is decided.
        asked: whether the user is to choose what is applied without a plan.
    """
    until = clock.perf_counter() + _MOST
    first, *_ = [
        search.used_once(until) for search in (answers.search, answers.aid) if search is not None
    ]
    flaws = []
    if not np.isfinite(first.told.get("feasibility", np.nan)):
        flaws.append(
            f"it could not prepare itself at its declared start ({first.reason}); call prepare(x) "
            "before the loop"
        )
    if not spare.settled:
        spare.settle(first.plan or beginning(answers.search.problem))
        if asked and spare.flaw:
            flaws.append(
                f"{spare.flaw}: without a plan, as after a missed deadline, it applies "
                f"{spare.said}. Choose with default= or fallback="
            )
    return ". ".join(flaws)
