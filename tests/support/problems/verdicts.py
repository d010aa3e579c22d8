"""Problems with a known verdict, read from ``data/verdicts.json``: {kind: {label: problem}}.

A text in the file is an expression of CasADi's functions and the names below; a list under g is a
list of rows, ``equal`` is lbg and ubg, and other keys than attributes of ``Case`` are arguments of
the call. Several answers are right for some kinds:

- "no multipliers": a KKT point within tolerance, with large multipliers, or a Fritz-John point.
- "no minimizer": any verdict but UNBOUNDED; f has a lower bound that is not attained.
- "on the edge": the infimum lies on the edge of the domain, where the slope is infinite.
- "poles": f → −∞ at a finite point.
- "no curvature": only the second derivative does not exist at the start.
- "undefined": no value of f or a row at the start, nor just inside the bounds.
- "starts": at a stationary point a first-order method may stay; "near …" has to be left.
"""

import json
from dataclasses import dataclass, fields
from typing import Any

import casadi as ca
import numpy as np
from support.judges.kkt import INF
from support.paths import DATA

x, y, z, w, big = (ca.SX.sym("x", n) for n in (1, 2, 3, 5, 20))
a, b = y[0], y[1]
FIVE = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5], [-2.0, 1.0], [1.0, 1.0]])
FIVE_B = np.array([1.0, 2.0, -1.0, 0.5, 3.0])
POWERS = 2.0 ** np.subtract.outer(np.arange(5), np.arange(5))
c, p = ca.MX.sym("c", 2), ca.SX.sym("p", 2)
ROOT2, RINGS, HALF = np.sqrt([2.0, 4.5, 0.5])
CIRCLE, ROSEN = ca.sumsqr(y) - 1, 100 * (b - a**2) ** 2 + (1 - a) ** 2
FIVE_LEAST = np.sqrt(np.linalg.lstsq(FIVE, FIVE_B, rcond=None)[1][0])
TO_LINES = np.array([[1.0, 1.0], [1.0, -1.0], [2.0, 1.0], [0.0, 3.0], [-1.0, 4.0]])
KLEE = np.tril(2 * POWERS, -1) + np.eye(5)
inf = INF
NAMES = vars(ca) | globals()


@dataclass(frozen=True)
class Case:
    """A problem of CasADi, the arguments of its call, and known facts.

    Attributes:
        f_star, x_star: objective values at KKT points, and the point to return, if it is unique.
        near: largest distance of x; sqrt(1e-6) where the violation or slope is quadratic there.
        solved: a point within tolerance of the KKT conditions exists.
        least: possible ‖v‖₂ at stationary points of the violation v, if known in closed form.
        weights: of the rows in v; the solver scales rows of a gradient above 100 at the start.
        ray: point and direction of a feasible ray on which f falls without bound, if there is one.
    """

    nlp: dict[str, Any]
    call: dict[str, Any]
    f_star: tuple[float, ...] = (0.0,)
    x_star: Any = None
    near: float = 1e-5
    solved: bool = True
    least: tuple[float, ...] = ()
    weights: Any = 1.0
    ray: tuple[Any, Any] | None = None


def value_of(entry: Any, **names: Any) -> Any:
    """Numbers as they are, texts evaluated, by names of their own too."""
    if isinstance(entry, list):
        return [value_of(one, **names) for one in entry]
    return eval(entry, NAMES | names) if isinstance(entry, str) else entry


def read(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))


def case_of(kind: str, entry: dict[str, Any]) -> Case:
    """The problem of one line of the file."""
    given = {key: value_of(entry[key]) for key in entry if key != "note"}
    nlp = {key: given.pop(key) for key in ("x", "f", "g") if key in given}
    if "parameters" in given:
        nlp["p"] = given.pop("parameters")
    if isinstance(nlp.get("g"), list):
        nlp["g"] = ca.vertcat(*nlp["g"])
    if "equal" in given:
        given["lbg"] = given["ubg"] = given.pop("equal")
    known = {field.name for field in fields(Case)} & set(given)
    found = {"near": 2e-2} if kind in EDGES else {}
    found |= {key: given.pop(key) for key in known}
    return Case(nlp, given, **found)


EDGES = ("no multipliers", "no minimizer", "on the edge", "poles", "no curvature")
SOLVABLE = "rank", "no interior", "complementarity", "domain", "parts", "starts", "scales", "one"
PROBLEMS = {
    kind: {label: case_of(kind, entry) for label, entry in group.items()}
    for kind, group in read("verdicts").items()
}


def labelled(*kinds: str) -> dict[str, Case]:
    """The problems of these kinds by "kind: label"."""
    return {f"{kind}: {label}": PROBLEMS[kind][label] for kind in kinds for label in PROBLEMS[kind]}
