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
# What has a solution and is neither degenerate nor at the edge of a domain hangs on no last bit.
CASES = labelled(*(kind for kind in PROBLEMS if kind not in ("parts", "starts", "scales", "one")))
START_STAYS = ("undefined: ", "no curvature: ", "no multipliers: a square of zero from it")


def verdict(case: Case, of_functions: int = 0, of_start: int = 0) -> tuple[str, str]:
    """Return both statuses of the perturbed problem."""
    nlp, call = case.nlp, dict(case.call)
    kind = type(nlp["x"])
    if of_functions:
        f, g = kind(nlp.get("f", 0)), kind(nlp.get("g", kind(0, 1)))
        noise = np.random.default_rng(of_functions).uniform(-1.0, 1.0, 1 + g.numel())
        factors = 1.0 + SIZE * noise
        for key in {"lbg", "ubg"} & set(call):
            call[key] = side(call, key, g.numel()) * factors[1:]
        nlp = {**nlp, "f": f * factors[0], "g": g * ca.DM(factors[1:])}
    if of_start:
        x0 = np.broadcast_to(np.asarray(call.get("x0", 0.0), float).ravel(), nlp["x"].numel())
        noise = np.random.default_rng(of_start).uniform(-1.0, 1.0, x0.size)
        call["x0"] = x0 + SIZE * noise * np.maximum(1.0, np.abs(x0))
    stats = solved(nlp, **call).stats()
    return stats["stop_reason"], stats["point_status"]


@pytest.mark.parametrize("label", CASES)
def test_last_bit_changes_no_verdict(label: str) -> None:
    case = CASES[label]
    seeds = FUNCTIONS if label.startswith(START_STAYS) else EVERYTHING
    plain = verdict(case)
    others = {pair: verdict(case, *pair) for pair in seeds}
    assert set(others.values()) == {plain}, others  # by the seeds of functions and start
