"""The part of the page on how the solve went: curves over the iterations, and the active set."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from casadi_hybrid.basics.status import PointStatus
from casadi_hybrid.result.answer import Answer
from casadi_hybrid.result.history import Course, History
from casadi_hybrid.result.report.chart import chart
from casadi_hybrid.result.report.sets import ROWS, active_bounds, counts, picture
from casadi_hybrid.result.report.text import count, missing

_WHOLE = "<code>Solver(problem).solve(x0, history=True)</code>"


def of_course(answer: Answer) -> str:
    """Residuals, then the barrier or the corrections; what is missing in a sentence."""
    course = answer.history
    if _undefined(answer):
        return missing("No function was defined at the start, so there is no course to show.")
    if course is None:
        how = "<code>solve(x0, history=True)</code>"
        return missing(
            "The course of this solve was not recorded, so there are no curves. To have them, "
            f"solve with {how}; of many solves at once, solve this one alone."
        )
    if not course.t.size:
        return missing("No iterate was evaluated, so there are no curves.")
    figures = [_residuals(answer, course)]
    if course.nu is not None and course.shift is not None:
        figures.append(_barrier(course.t, course.nu, course.shift))
    figures += _further(course)
    return f'<div class="figures">{"".join(figures)}</div>'


def of_active_set(answer: Answer) -> str:
    """Which bounds were active when, and how many are so at the end."""
    if not answer.bounds.inequalities:
        return "<p>There are equations alone: no bound can become active.</p>"
    if _undefined(answer):
        return "<p>No bound can be called active where the functions are not defined.</p>"
    said = f"<p>{counts(answer)}</p>"
    history = answer.history
    if not isinstance(history, History):
        return said + missing(
            "Which bounds were active on the way is not known: the iterates themselves were not "
            f"kept. To have it, solve with {_WHOLE}. <code>nlpsol</code> and <code>Opti</code> do "
            "not keep iterates; <code>Solver</code> takes the same dictionary or problem."
        )
    names, sides = active_bounds(answer, history)
    if not names:
        return said + "<p>No bound was active at any iterate.</p>"
    many, shown = len(names), min(len(names), ROWS)
    which = f"the {shown} that changed last of {many:,}" if shown < many else count(many, "bound")
    active = (sides != 0).sum(axis=0)
    caption = (
        f"Active bounds over the iterations: {which}. A bound counts as active where its "
        "multiplier exceeds the distance to it, so far from a solution this is a guess. Equations "
        "and fixed variables are left out. Active at the first iterate: "
        f"{active[0]:,}; at most {active.max():,}; at the last: {active[-1]:,}"
    )
    drawn = _figure(picture(names, sides, history.t), caption)
    return f'{said}<div class="figures">{drawn}</div>'


def _undefined(answer: Answer) -> bool:
    return answer.point is PointStatus.UNDEFINED and not answer.iterations


def _residuals(answer: Answer, course: Course) -> str:
    curves = {"feasibility": course.feasibility, "stationarity": course.stationarity}
    inner = course.complementarity
    if inner is not None and bool((inner != 0.0).any()):
        curves["complementarity"] = inner
    asked = {name: float(getattr(answer.tolerances, name)) for name in curves}
    limits = {f"tolerance {value:g} ({name})": value for name, value in asked.items()}
    if len(set(asked.values())) == 1:
        limits = {f"tolerance {value:g}": value for value in asked.values()}
    drawn = chart("residuals over the iterations", course.t, curves, limits)
    return _figure(drawn, "Residuals of the iterates, unscaled, largest entry" + _zeros(curves))


def _barrier(t: np.ndarray, nu: np.ndarray, shift: np.ndarray) -> str:
    if not (nu > 0).any():
        return (
            "<figure><p>No iterate had a barrier parameter: the steps were composite ones, or on "
            "an active set.</p></figure>"
        )
    curves = {"barrier parameter ν": nu}
    said, rest = "Barrier parameter ν of the scaled problem", ". The Hessian was never shifted"
    if (shift > 0).any():
        curves["shift σ"] = shift
        rest = ", and the shift σ of the Hessian, ∇²L + σI, that was last needed"
    drawn = chart("barrier parameter and shift over the iterations", t, curves, {})
    return _figure(drawn, said + rest + _zeros(curves))


def _further(course: Course) -> list[str]:
    """Curves of the method itself, where it has such."""
    curves = course.further()
    if not curves:
        return []
    drawn = chart("steps and corrections over the iterations", course.t[:-1], curves, {})
    return [_figure(drawn, "What the rule chose at each iterate" + _zeros(curves))]


def _figure(drawn: str, caption: str) -> str:
    return f"<figure>{drawn}<figcaption>{caption}.</figcaption></figure>"


def _zeros(curves: Mapping[str, np.ndarray]) -> str:
    zero = any((values == 0.0).any() for values in curves.values())
    return "; hollow marks on the lower edge are zeros" if zero else ""
