"""An export without Python has Python's verdict and point, to the last bit."""

from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from support.cases.core import CASES, Case, corridor
from support.cases.nlp import hock_schittkowski
from support.cases.watched import ended

from casadi_hybrid import nlpsol
from casadi_hybrid.core.export import compare
from casadi_hybrid.core.export.compare import spoken
from casadi_hybrid.utils.status import PointStatus, StopReason

SAYS = 'printf("%d %d %.17g", out.status, out.steps, out.f);'
SAYS_ALL = """printf("%s|%s|%s|%d %.17g %.17g", @NAME@_word(out.status), @NAME@_stop_word(out.stop),
       @NAME@_point_word(out.point), out.steps, out.certificate, out.f);"""
REPLAY = Path(compare.__file__).parent / "templates" / "replay.c"


@pytest.fixture(scope="module")
def answers(sanitized):
    """What an export says, solve by solve."""

    def answers(export, rows):
        driver = REPLAY.read_text(encoding="utf-8")
        assert driver.count(SAYS) == 1
        driver = driver.replace(SAYS, SAYS_ALL).replace("@NAME@", export.name)
        source = export.folder / "driver.c"
        source.write_text(driver.replace("@UPPER@", export.name.upper()))
        done = ended([sanitized(export, source)], input=rows)
        assert (done.returncode, done.stderr) == (0, "")
        return [line.split("|") for line in done.stdout.splitlines()]

    return answers


def inputs(solver, arguments, export):
    """A line of what the driver reads, with what the result of these arguments was given."""
    result = solver.result
    case = type(export.cold)(
        np.array(np.broadcast_to(arguments.get("lam_x0", 0.0), result.x.shape), float),
        np.array(np.broadcast_to(arguments.get("lam_g0", 0.0), result.g.shape), float),
        result, of_solution=False,
    )  # fmt: skip
    return spoken([case])


def compared(answers, nlp, arguments, changes, folder):
    """Solve in Python and in C after each change; the results of Python, where all is alike."""
    solver = nlpsol("made", "hybrid", nlp)
    export = solver.export(folder, **arguments)
    results, rows = [], ""
    for change in changes:
        solver(**{**arguments, **change})
        results.append(solver.result)
        rows += inputs(solver, {**arguments, **change}, export)
    for result, (status, stop, point, numbers) in zip(results, answers(export, rows), strict=True):
        assert (stop, point) == (result.stop.value, result.point.value)
        assert status.startswith("it is solved" if result.success else "it is not solved")
        steps, *found = map(float, numbers.split())
        slope = np.nan if result.certificate is None else result.certificate
        of_python = result.f, result.x, result.g, result.lam_x, result.lam_g
        expected = np.hstack([slope, *of_python])
        assert steps == result.iterations
        np.testing.assert_array_equal(found, expected)
    return results


x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
CIRCLE = {"x": x, "p": p, "f": x[0], "g": ca.vertcat(ca.sumsqr(x) - p, ca.sum1(x) - 5)}
LINES = {"x": x, "p": p, "f": ca.sumsqr(x), "g": ca.vertcat(x[0] + x[1] - p, x[0] + x[1])}
FALLING = {
    "x": x, "p": p, "f": p * ca.sum1(x) + ca.fmax(p, 0) * x[0] ** 2, "g": x[1] - x[0] - ca.sin(x[0])
}  # fmt: skip
LOG = {"x": x, "p": p, "f": ca.log(x[0] - p) + ca.sumsqr(x), "g": ca.sqrt(x[1] - p)}


@pytest.mark.parametrize(
    ("nlp", "arguments", "hopeless", "stop", "point"),
    [
        (CIRCLE, {"p": 20.0, "lbg": 0, "ubg": 0}, 1.0, "LOCALLY_INFEASIBLE",
         "INFEASIBLE_STATIONARY"),
        (CIRCLE, {"p": 20.0, "lbg": -np.inf, "ubg": 0, "lbx": 0}, -1.0, "LOCALLY_INFEASIBLE",
         "INFEASIBLE_STATIONARY"),
        (LINES, {"p": 1.0, "lbg": [0, 0], "ubg": [0, 3]}, 7.0, "LOCALLY_INFEASIBLE",
         "INFEASIBLE_STATIONARY"),
        (FALLING, {"p": 1.0, "lbg": 0, "ubg": 0, "lbx": -9}, -1.0, "UNBOUNDED",
         "FEASIBLE_NOT_STATIONARY"),
        (LOG, {"p": -2.0, "lbg": 0, "ubg": 9, "lbx": -1, "ubx": 1}, 5.0, "EVALUATION_ERROR",
         "UNDEFINED"),
    ],
    ids=["equations", "inequalities", "lines", "unbounded", "undefined"],
)  # fmt: skip
def test_a_problem_without_a_solution(nlp, arguments, hopeless, stop, point, answers, tmp_path):
    """From a start, from multipliers, and from further starts; then one that has a solution."""
    changes = [
        {"p": hopeless}, {"p": hopeless, "lam_g0": 0.5, "lam_x0": 0.1},
        {"p": hopeless, "x0": [0.7, -0.3]}, {"p": hopeless, "x0": [-4.0, 40.0]}, {},
    ]  # fmt: skip
    *without, last = compared(answers, nlp, arguments, changes, tmp_path)
    assert {result.stop for result in without} == {StopReason[stop]}
    assert {result.point for result in without} == {PointStatus[point]}
    assert last.success


# Of problem 72 multipliers are huge, and smaller ones are tried.
HS072 = Case(*hock_schittkowski(72), None)


@pytest.mark.parametrize(
    "made", [CASES["hs071"], CASES["box"], CASES["van_der_pol"], lambda: HS072]
)
def test_a_solution_has_the_bits_of_python(made, answers, tmp_path):
    """Also from starts at which a row has no slope, and from wrong multipliers."""
    case = made()
    arguments = {"x0": 0.0, **case.numbers}
    changes = [
        {}, {"x0": 0.3}, {"x0": 2.0}, {"x0": 0.0}, {"lam_g0": 1.0}, {"lam_x0": -3.0, "x0": 1.5},
    ]  # fmt: skip
    results = compared(answers, case.nlp, arguments, changes, tmp_path)
    assert all(result.success for result in results)


def test_every_kind_of_bound(answers, tmp_path):
    """Of several solves in one memory, one has rows that no x meets."""
    nlp, arguments = corridor()
    wrong = np.array([50.0, -50.0, 50.0, 50.0, 1.0, 0.0, -1e3])
    changes = [
        {}, {"p": 1e3}, {"x0": 2.5, "lam_g0": wrong, "lam_x0": 9.0}, {"x0": 1e3}, {},
    ]  # fmt: skip
    results = compared(answers, nlp, arguments, changes, tmp_path)
    assert [result.success for result in results] == [True, False, True, True, True]
    assert (results[1].x <= 2.5 + 1e-6).all()  # the best point is within its bounds
