"""An export without Python has Python's verdict and point, to the last bit."""

import casadi as ca
import numpy as np
import pytest
from support.cases.core import CASES, Case, corridor
from support.cases.nlp import hock_schittkowski
from support.cases.watched import ended

from casadi_hybrid import nlpsol
from casadi_hybrid.core.export.compare import spoken
from casadi_hybrid.utils.status import PointStatus, StopReason

DRIVER = """
#include <stdio.h>
#include "made.h"
static int told(made_in *in, made_out *out) {
    int status = made_solve(in, out);
    printf("%d|%s|%s|%.17g|", status, made_stop_word(out->stop), made_point_word(out->point),
           out->certificate);
    return status;
}
#define made_solve told
#include "replay.c"
"""
"""The program of an export that replays solves, with words before each line."""


@pytest.fixture
def compared(sanitized, tmp_path):
    """Solve in Python and in C after each change: the results, if all is alike."""

    def compared(nlp, arguments, changes):
        solver = nlpsol("made", "hybrid", nlp)
        export = solver.export(tmp_path, **arguments)
        solves = []
        for change in changes:
            numbers = {**arguments, **change}
            solver(**numbers)
            result = solver.result
            multipliers = (
                np.array(np.broadcast_to(numbers.get(name, 0.0), values.shape), float)
                for name, values in (("lam_x0", result.x), ("lam_g0", result.g))
            )
            solves.append(type(export.cold)(*multipliers, result, of_solution=False))
        (tmp_path / "driver.c").write_text(DRIVER)
        program = sanitized(export, tmp_path / "driver.c")
        done = ended([program], input=spoken(solves))
        assert (done.returncode, done.stderr) == (0, "")
        for solve, line in zip(solves, done.stdout.splitlines(), strict=True):
            result = solve.answer
            status, stop, point, slope, rest = line.split("|")
            assert (stop, point) == (result.stop.value, result.point.value)
            assert (status == "0") == result.success
            expected = np.nan if result.certificate is None else result.certificate
            np.testing.assert_equal(float(slope), expected)
            _, steps, *numbers = map(float, rest.split())
            assert steps == result.iterations
            np.testing.assert_array_equal(numbers, np.hstack([*solve.outputs().values()]))
        return [solve.answer for solve in solves]

    return compared


x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
CIRCLE = {"x": x, "p": p, "f": x[0], "g": ca.vertcat(ca.sumsqr(x) - p, ca.sum1(x) - 5)}
LINES = {"x": x, "p": p, "f": ca.sumsqr(x), "g": ca.vertcat(x[0] + x[1] - p, x[0] + x[1])}
SLOPE = p * ca.sum1(x) + ca.fmax(p, 0) * x[0] ** 2
FALLING = {"x": x, "p": p, "f": SLOPE, "g": x[1] - x[0] - ca.sin(x[0])}
LOG = {"x": x, "p": p, "f": ca.log(x[0] - p) + ca.sumsqr(x), "g": ca.sqrt(x[1] - p)}


INFEASIBLE = StopReason.LOCALLY_INFEASIBLE, PointStatus.INFEASIBLE_STATIONARY
UNBOUNDED = StopReason.UNBOUNDED, PointStatus.FEASIBLE_NOT_STATIONARY
UNDEFINED = StopReason.EVALUATION_ERROR, PointStatus.UNDEFINED
HOPELESS = {
    "equations": (CIRCLE, {"p": 20.0, "lbg": 0, "ubg": 0}, 1.0, INFEASIBLE),
    "inequalities": (CIRCLE, {"p": 20.0, "lbg": -np.inf, "ubg": 0, "lbx": 0}, -1.0, INFEASIBLE),
    "lines": (LINES, {"p": 1.0, "lbg": [0, 0], "ubg": [0, 3]}, 7.0, INFEASIBLE),
    "unbounded": (FALLING, {"p": 1.0, "lbg": 0, "ubg": 0, "lbx": -9}, -1.0, UNBOUNDED),
    "undefined": (LOG, {"p": -2.0, "lbg": 0, "ubg": 9, "lbx": -1, "ubx": 1}, 5.0, UNDEFINED),
}
"""Problem, arguments with a solution, p without one, and the verdict."""


@pytest.mark.parametrize("name", HOPELESS)
def test_verdicts_without_solution(name, compared):
    """From a start, from multipliers, and from further starts; then one that has a solution."""
    nlp, arguments, hopeless, verdict = HOPELESS[name]
    starts = {}, {"lam_g0": 0.5, "lam_x0": 0.1}, {"x0": [0.7, -0.3]}, {"x0": [-4.0, 40.0]}
    changes = [{"p": hopeless, **start} for start in starts]
    *without, last = compared(nlp, arguments, [*changes, {}])
    assert {(result.stop, result.point) for result in without} == {verdict}
    assert last.success


# Of problem 72 multipliers are huge, and smaller ones are tried.
SOLVED = {name: CASES[name] for name in ("hs071", "box", "van_der_pol")}
SOLVED["hs072"] = lambda: Case(*hock_schittkowski(72), None)


@pytest.mark.parametrize("name", SOLVED)
def test_solutions_have_bits_of_python(name, compared):
    """Also from starts at which a row has no slope, and from wrong multipliers."""
    case = SOLVED[name]()
    changes = [{}, {"x0": 0.3}, {"x0": 2.0}, {"x0": 0.0}]
    changes += [{"lam_g0": 1.0}, {"lam_x0": -3.0, "x0": 1.5}]
    results = compared(case.nlp, {"x0": 0.0, **case.numbers}, changes)
    assert all(result.success for result in results)


def test_solves_share_memory(compared):
    """Solves with every kind of bound; one has rows that no x meets."""
    nlp, arguments = corridor()
    wrong = np.array([50.0, -50.0, 50.0, 50.0, 1.0, 0.0, -1e3])
    changes = [{}, {"p": 1e3}, {"x0": 2.5, "lam_g0": wrong, "lam_x0": 9.0}, {"x0": 1e3}, {}]
    results = compared(nlp, arguments, changes)
    assert [result.success for result in results] == [True, False, True, True, True]
    assert (results[1].x <= 2.5 + 1e-6).all()  # the best point is within its bounds
