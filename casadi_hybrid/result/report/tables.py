"""The parts of the page that are tables: residuals, constraints, variables, work, options."""

from __future__ import annotations

import platform

import casadi as ca
import numpy as np
import scipy

import casadi_hybrid
from casadi_hybrid.point.working_set import EQUAL, LOWER, UPPER
from casadi_hybrid.problem.derivatives import EXACT, MEANING
from casadi_hybrid.result.answer import Answer
from casadi_hybrid.result.report.text import column, number, pairs, safe, seconds, size, table

SHOWN = 30
"""Constraints, and variables, in a table at most."""
_SIDES = {LOWER: "lower", UPPER: "upper", EQUAL: "equal", 0: ""}
_KINDS = {
    "residual": "evaluations of h alone",
    "first": "evaluations up to ∇f and J_g",
    "values": "evaluations of f and g alone",
    "second": "evaluations of ∇²L",
    "undefined": "points without a value",
}
_UNITS = {
    "feasibility": "of g and x",
    "stationarity": "of f, per unit of x",
    "complementarity": "of f",
}


def of_residuals(answer: Answer) -> str:
    """Each residual beside its tolerance."""
    rows = []
    worst = answer.worst()
    for kind, unit in _UNITS.items():
        value, asked = getattr(answer.residuals, kind), getattr(answer.tolerances, kind)
        met = value <= asked
        above = f"{number(value / asked, '.3g')} times too large" if value < np.inf else "not met"
        word = "met" if met else above
        verdict = f'<span class="{"good" if met else "bad"}">{word}</span>'
        place = safe(worst) if kind == "feasibility" else ""
        rows.append((kind, size(value), size(asked), verdict, unit, place))
    heads = ("residual", "value", "tolerance", "", "unit", "largest at")
    return table(heads, rows, texts=(0, 3, 4, 5))


def of_bounds(answer: Answer, of: str) -> str:
    """The rows of g, or the variables x, with the largest multipliers of their bounds, by name."""
    rows = of == "g"
    names = answer.constraint_names if rows else answer.variable_names
    heads = ("constraint", "g(x)") if rows else ("variable", "x")
    values, lam, sides = (
        getattr(answer, of), getattr(answer, f"lam_{of}"), getattr(answer.working_set, of)
    )  # fmt: skip
    lower, upper = (getattr(answer.bounds, f"{side}{of}") for side in ("lb", "ub"))
    outside, near = answer.violations()[rows], answer.tolerances.feasibility
    many = values.size
    if not many:
        return f"<p>There are no {heads[0]}s.</p>"
    order = np.arange(many)
    said = ""
    if many > SHOWN:  # violated ones and large λ come first
        weight = np.where(np.isfinite(lam), np.abs(lam), np.inf)
        order = np.lexsort((order, -weight, -np.where(np.abs(outside) > near, 1, 0)))[:SHOWN]
        nonzero = int(np.count_nonzero(lam))
        which = (
            "largest multipliers, violated ones first" if nonzero else "every multiplier is zero"
        )
        said = (
            f'<p class="note">{SHOWN} of {many:,} {heads[0]}s: {which}. '
            f"Multipliers that are not zero: {nonzero:,}.</p>"
        )
    columns = [heads[0], "multiplier λ", "active", heads[1], "lower bound", "upper bound"]
    cells = [
        [safe(names[i]) for i in order],
        [number(one, ".4e") for one in lam[order]],
        [_SIDES[int(side)] for side in sides[order]],
        *(column(one[order]) for one in (values, lower, upper)),
    ]
    beyond = [size(one) if abs(one) > near else "" for one in outside[order]]
    if any(beyond):
        columns.append("violation")
        cells.append([f'<span class="bad">{one}</span>' for one in beyond])
    return said + table(columns, list(zip(*cells, strict=True)), texts=(0, 2))


def of_work(answer: Answer) -> str:
    """Steps, evaluations and seconds."""
    engine = {"c": "C", "python": "Python"}.get(answer.engine, answer.engine)
    rows = [("steps", f"{answer.iterations:,}")]
    for kind, label in _KINDS.items():
        calls, spent = answer.evaluations.get(kind, 0), answer.seconds.get(kind)
        time = "" if spent is None else f", {seconds(spent)}"
        rows.append((label, f"{calls:,}{time}" if calls else ""))
    rows += [
        ("time in all", seconds(answer.elapsed)),
        ("engine", safe(engine)),
        ("linear systems by", safe(answer.kernel)),
    ]
    if answer.hessian != EXACT or answer.evaluations.get("second"):
        rows.append(("Hessian", safe(MEANING.get(answer.hessian, answer.hessian), 400)))
    return pairs([(what, told) for what, told in rows if told])


def of_options(answer: Answer) -> str:
    """What the solve was asked for."""
    limits, rows = answer.limits, {"method": safe(answer.method)}
    for kind in _UNITS:
        rows[f"tol_{kind}"] = number(getattr(answer.tolerances, kind), "g")
    if limits is not None:
        rows["scaled_tol"] = number(limits.scaled_tol, "g")
        rows["max_iter"] = f"{limits.max_iter:,}"
        rows["max_time"] = f"{number(limits.max_time, 'g')} s"
        rows["divergence"] = number(limits.divergence, "g")
    if not answer.for_bounds:
        rows.pop("tol_complementarity")
        rows.pop("scaled_tol", None)
    made = pairs([(f"<code>{name}</code>", told) for name, told in rows.items()])
    own = [(f"<code>{safe(name)}</code>", safe(text)) for name, text in answer.options.items()]
    return f"{made}\n<h3>Of the method itself</h3>\n{pairs(own)}" if own else made


def of_versions() -> str:
    """Of the software that wrote the page."""
    rows = {module.__name__: module.__version__ for module in (casadi_hybrid, ca, np, scipy)}
    rows |= {"python": platform.python_version()}
    rows |= {"system": f"{platform.system()} {platform.machine()}"}
    return pairs([(name, safe(version)) for name, version in rows.items()])
