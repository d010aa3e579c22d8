"""Verdicts that do not depend on the last bit.

Another processor rounds the same sums otherwise, and so does another kernel of the same BLAS. The
problem is changed here by as little: f and every row of g are multiplied by 1 + 1e-14·u, u
uniform in ±1, the finite bounds of a row by the factor of the row, so that the feasible set is the
same up to rounding; the start becomes x0 + 1e-14·u·max(1, |x0|). What the solver says of the
problem and of the point has to stay the same; iterations and numbers may differ.

The start is left alone where no derivative exists exactly there and any other point has one, so
that a moved start is another problem: ``UNDEFINED`` (1/x at 0, ‖x‖ at 0) and ``NO_CURVATURE``
(|a|^2.5 at a = 0). Likewise the gradient of x² = 0 vanishes at 0 alone: a start beside it has
multipliers of 1e14, and ends as a Fritz John point. There only the functions are perturbed.
"""

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import solved
from support.judges.kkt import side
from support.problems.verdicts import PROBLEMS, Case, labelled

SIZE = 1e-14
# Seeds of the perturbed functions and of the perturbed start; 0 leaves them as they are.
FUNCTIONS = ((1, 0), (2, 0))
EVERYTHING = (*FUNCTIONS, (0, 3), (0, 4), (5, 5))
# A solve of these takes longest.
FEW = ((1, 0), (0, 4))
LONG = (
    "on the edge: a corner",
    "infeasible: a square below -1",
    "infeasible: a square below -1 from its minimum",
    "no minimizer: a product and a zero",
    "no multipliers: a branch without multipliers (ralph1)",
)

# What has a solution and is neither degenerate nor at the edge of a domain hangs on no last bit.
CASES = labelled(*(kind for kind in PROBLEMS if kind not in ("parts", "starts", "scales", "one")))
START_STAYS = ("undefined: ", "no curvature: ", "no multipliers: a square of zero from it")


def factors(rng: np.random.Generator, count: int) -> np.ndarray:
    """1 + 1e-14·u."""
    return 1.0 + SIZE * rng.uniform(-1.0, 1.0, count)


def with_functions(nlp: Mapping[str, Any], call: dict[str, Any], seed: int) -> dict[str, Any]:
    """The problem with perturbed functions; the bounds in ``call`` follow."""
    kind, rng = type(nlp["x"]), np.random.default_rng(seed)
    f = kind(nlp.get("f", 0)) * float(factors(rng, 1)[0])
    g = kind(nlp.get("g", kind(0, 1)))
    of_rows = factors(rng, g.numel())
    for key in {"lbg", "ubg"} & set(call):
        call[key] = side(call, key, of_rows.size) * of_rows
    return {**nlp, "f": f, "g": g * ca.DM(of_rows)}


def with_start(nlp: Mapping[str, Any], call: Mapping[str, Any], seed: int) -> np.ndarray:
    x0 = np.broadcast_to(np.asarray(call.get("x0", 0.0), float).ravel(), nlp["x"].numel())
    noise = np.random.default_rng(seed).uniform(-1.0, 1.0, x0.size)
    return x0 + SIZE * noise * np.maximum(1.0, np.abs(x0))


def verdict(case: Case, of_functions: int = 0, of_start: int = 0) -> tuple[str, str]:
    """Return both statuses."""
    nlp, call = case.nlp, dict(case.call)
    if of_functions:
        nlp = with_functions(nlp, call, of_functions)
    if of_start:
        call["x0"] = with_start(nlp, call, of_start)
    solver = solved(nlp, **call)
    stats = solver.stats()
    return stats["stop_reason"], stats["point_status"]


@pytest.mark.parametrize("label", CASES)
def test_last_bit_changes_no_verdict(label: str) -> None:
    case = CASES[label]
    seeds = FUNCTIONS if label.startswith(START_STAYS) else FEW if label in LONG else EVERYTHING
    as_it_is = verdict(case)
    others = {pair: found for pair in seeds if (found := verdict(case, *pair)) != as_it_is}
    assert not others, f"{as_it_is} as it is, but {others} (seeds of the functions, the start)"


def test_perturbations_are_of_the_last_bits() -> None:
    case = CASES["infeasible: two rows"]
    call = dict(case.call)
    nlp = with_functions(case.nlp, call, 1)
    f, g = ca.Function("perturbed", [nlp["x"]], [nlp["f"], nlp["g"]])(1.0)
    moved = with_start(case.nlp, {"x0": 100.0}, 3) / 100
    for value in (float(f), *g.full().ravel(), call["lbg"][0], call["ubg"][1], moved[0]):
        assert 0 < abs(abs(value) - 1) <= 1.1 * SIZE
    assert call["lbg"][1] == -np.inf
