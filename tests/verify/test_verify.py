"""Reports of the verifier: right answers are accepted, wrong arguments and points are named."""

import dataclasses
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import solved
from support.cases.watched import Distance
from support.problems.kkt_points import KNOWN, Known, circle, judge
from support.problems.verdicts import read, value_of

from casadi_hybrid import InputError, Problem, Solver, nlpsol, verify
from casadi_hybrid.paper.experiment import make_instance
from casadi_hybrid.verify import Curvature, Rejection, Relation, run_ipopt

ROW_AT_ITS_BOUND = next(known for known in KNOWN if known.name == "a row at its upper bound")
WITH_PARAMETER = next(known for known in KNOWN if known.name == "a parameter")


class Case(NamedTuple):
    """A problem with a start and its minimizer, which tiny residuals determine within ``close``."""

    problem: Problem
    x0: Sequence[float]
    verdict: Curvature
    solution: Sequence[float] | None = None
    p: Sequence[float] = ()
    close: float = 1e-6


def of_entry(name: str, n: int, f: str, h: Any, verdict: str, **known: Any) -> Case:
    """A line of ``data/equations.json``."""
    kind = getattr(ca, known.pop("kind", "SX"))
    x = ca.vertcat(*(kind.sym("x", size) for size in known.pop("parts", [n])))
    p = kind.sym("p", len(known.get("p", ())))
    known.pop("note", None)
    if isinstance(h, dict):
        rows = {key: value_of(row, x=x, p=p) for key, row in h.items()}
    else:
        rows = ca.vertcat(*value_of(h, x=x, p=p))
    problem = Problem(x=x, f=value_of(f, x=x, p=p), h=rows, p=p, name=name)
    if "solution" in known:
        known["solution"] = value_of(known["solution"])
    return Case(problem, verdict=Curvature[verdict], **known)


def of_paper(verdict: Curvature, *arguments: int, **sizes: Any) -> Case:
    made = make_instance(*arguments, **sizes)
    return Case(made.problem, list(made.x0), verdict, list(made.x_star))


# More, as many and fewer equations than variables, and equations that depend on each other.
CASES = [
    *(of_entry(**entry) for entry in read("equations")),
    of_paper(Curvature.STRICT_MINIMIZER, 3, 0, n=5, m=3, radius=0.1),
    of_paper(Curvature.ISOLATED_POINT, 5, 2, n=3, m=3, radius=0.1),
    *(of_paper(Curvature.ISOLATED_POINT, condition, 0) for condition in (1, 8, 13)),
]
DEFINITE = [c for c in CASES if c.solution is not None and c.verdict is not Curvature.DEGENERATE]


def name_of(case: Case) -> str:
    return case.problem.name


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_solutions_of_ipopt_are_accepted(case: Case):
    run = run_ipopt(case.problem, np.array(case.x0, dtype=float), np.array(case.p))
    report = verify(case.problem, {"x": run.x, "lam_g": run.multipliers}, p=case.p, x0=case.x0)
    assert report.accepted, report.reasons
    assert report.second.verdict is case.verdict
    assert report.restart.relation is report.reference.relation is Relation.SAME_POINT
    if case.solution is not None:
        assert np.abs(report.x - case.solution).max() < case.close


@pytest.mark.parametrize("case", DEFINITE, ids=name_of)
def test_known_solutions_are_accepted(case: Case):
    report = verify(case.problem, case.solution, p=case.p, x0=case.x0)
    assert report.accepted, report.reasons
    assert report.feasibility.value < 1e-9
    assert report.reference.distance < case.close
    # The fitted multipliers are a warm start: IPOPT has next to nothing to do.
    assert report.restart.iterations <= 2


@pytest.mark.parametrize(("method", "condition"), [("closed-form", 5), ("auto", 13)])
def test_solver_results_are_accepted(method, condition):
    instance = make_instance(condition, 1)
    result = Solver(instance.problem, method).solve(instance.x0, history=True)
    assert result.success
    report = verify(instance.problem, result)
    assert report.accepted, report.reasons
    assert report.second.verdict is Curvature.ISOLATED_POINT
    assert report.restart.form == "elastic"
    # The start comes from the history of the result.
    assert report.reference.relation is Relation.SAME_POINT
    assert np.abs(report.reference.x - instance.x_star).max() < 1e-8


# Undefined points.


@pytest.mark.parametrize(("x", "where"), [([np.nan, 1], "x_0"), ([1, np.inf], "x_1")])
def test_infinite_entries_are_named(x, where):
    report = verify(circle(), x, x0=[1, 1])
    assert report.categories == (Rejection.UNDEFINED,)
    assert where in report.reasons[0]
    assert report.feasibility is report.lam_x is report.lam_g is report.inertia is None
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert data["f"] is data["feasibility"] is None
    assert str(report).startswith("REJECTED")


@pytest.mark.parametrize("huge", [[1e155, 1e155], [1e200, 1]])
def test_overflow_is_not_accepted(huge):
    assert not verify(circle(), huge).accepted


def test_undefined_functions_are_named():
    x = ca.SX.sym("x", 2)
    constraint = {"level": x[1], "tank": ca.sqrt(x[0])}
    for f, h, name in ((ca.log(x[0]), x[1], "objective"), (x[0], constraint, "tank")):
        report = verify(Problem(x=x, f=f, h=h), [-1, 0])
        assert report.categories == (Rejection.UNDEFINED,)
        assert name in report.reasons[0]


# The report and its arguments.


@pytest.mark.parametrize("known", [*KNOWN[:2], *KNOWN[12:15]], ids=str)
def test_reports_become_data_and_text(known: Known):
    report = judge(known, x0=known.x, ipopt=True)
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert data["accepted"] is report.accepted
    assert data["lam_g"] == report.lam_g.tolist()
    assert data["dual_sign"]["value"] == report.dual_sign.value
    assert data["active"]["strong"] == list(known.strong)
    assert [r["category"] for r in data["findings"]] == [c.name for c in report.categories]
    assert data["reference"]["relation"] == report.reference.relation.name
    text = str(report)
    assert text.startswith("ACCEPTED" if report.accepted else "REJECTED")
    assert all(reason in text for reason in report.reasons)
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.findings = ()
    for array in (report.x, report.lam_x, report.lam_g):
        assert not array.flags.writeable


def test_answers_come_in_many_forms():
    known = ROW_AT_ITS_BOUND
    answer = nlpsol("s", "hybrid", known.nlp())(x0=[0, 0], **known.bounds)
    as_object = SimpleNamespace(x=[1, 1], lam_x=[0, 0], lam_g=[2])
    for form in (answer, ca.DM([1, 1]), np.array([1.0, 1.0]), [1, 1], (1, 1), as_object):
        assert judge(known, form).accepted
    assert judge(known, as_object).given is not None
    assert judge(known, [1, 1]).given is None
    as_object.lam_g = [1]
    assert judge(known, as_object).categories == (Rejection.WRONG_MULTIPLIERS,)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("answer has shape", {"answer": [1, 2, 3]}),
        ("answer has no entry 'x'", {"answer": {"f": 1}}),
        ("lam_g", {"answer": {"x": [1, 1], "lam_g": [1, 2]}}),
        ("lam_x", {"answer": {"x": [1, 1], "lam_g": [1], "lam_x": "up"}}),
        ("answer", {"answer": "here"}),
        ("answer is a problem", {"answer": circle()}),
        ("answer", {"answer": [[1, 2], [3, 4]]}),
        ("answer", {"answer": ca.SX.sym("x", 2)}),
        ("multipliers", {"multipliers": [1, 2]}),
        ("x0", {"x0": [np.nan, 0]}),
        ("x0", {"x0": [1, 2, 3]}),
        (r"lbg\[0\] = 3", {"lbg": 3, "ubg": 2}),
        ("lbx", {"lbx": [1, 2, 3]}),
        ("p has", {"p": [1, 2]}),
        ("p is missing", {"nlp": WITH_PARAMETER.nlp(), "ubg": 4}),
        ("tol", {"tol": 0}),
        ("constraint_names", {"constraint_names": ["a", "b"]}),
        ("problem must be", {"nlp": 3}),
        ("the problem has no 'x'", {"nlp": {"f": ca.SX.sym("x")}}),
    ],
)
def test_bad_arguments_are_named(text, arguments):
    known = ROW_AT_ITS_BOUND
    call = {"nlp": known.nlp(), "answer": [1, 1]} | known.bounds | arguments
    with pytest.raises(InputError, match=rf"^{text}"):
        verify(call.pop("nlp"), call.pop("answer"), **call)


def test_missing_numbers_come_from_result():
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p), "g": x[0] + x[1]}
    result = solved(nlp, x0=[3, 0], p=2, ubg=1, lbx=-5).result
    report = verify(nlp, result)
    assert report.accepted, report.reasons
    assert report.lam_g == pytest.approx([3], abs=1e-6)
    assert report.given.distance < 1e-6
    assert report.reference.relation is Relation.SAME_POINT
    # An argument replaces the result's number; the other bounds stay.
    assert verify(nlp, result, p=3, ipopt=False).categories != ()
    assert Rejection.INFEASIBLE in verify(nlp, result, ubg=0, ipopt=False).categories
    assert verify(nlp, result, lbx=-6, ipopt=False).accepted
    wrong = verify(nlp, result, multipliers=[-3], ipopt=False)
    assert wrong.categories == (Rejection.FLIPPED_SIGN,)
    assert wrong.given.distance == pytest.approx(6, abs=1e-6)


def test_problem_and_dictionary_agree():
    x = ca.SX.sym("x", 2)
    f, h = ca.sumsqr(x - 1), ca.vertcat(x[0] * x[1], x[0] - 2)
    problem = Problem(x=x, f=f, h=h)
    for point in ([2, 0], [2, 1e-3], [1, 1]):
        alone = verify(problem, point, x0=[1, 1])
        same = verify({"x": x, "f": f, "g": h}, point, x0=[1, 1], lbg=0, ubg=0)
        assert alone.categories == same.categories
        assert alone.lam_g == pytest.approx(same.lam_g)
        assert alone.restart.relation is same.restart.relation
    # Bounds of a Problem's instance, of its rows g, and names for this report alone.
    problem = Problem(x=x, f=f, h=h[0], g=h[1], lbg=0, ubg=0)
    names = {"constraint_names": ["area", "width"], "variable_names": ["a", "b"]}
    report = verify(problem, [3, 0], ubg=0.5, ipopt=False, **names)
    assert report.feasibility.where == "width"
    assert report.feasibility.value == pytest.approx(0.5)
    assert report.stationarity.where in ("a", "b")
    assert problem.constraint_names == ("h", "g")


def test_names_keep_foreign_derivatives():
    foreign = Problem.from_nlp(Distance({"enable_fd": True}))  # min ‖x − p‖² with x₀ = 0.5
    answer = {"x": [0.5, 2.0], "lam_x": [0.0, 0.0], "lam_g": [1.0]}
    options = {"tol": 1e-5, "ipopt": False, "constraint_names": ["first"]}
    report = verify(foreign, answer, p=[1, 2], lbg=0.5, ubg=0.5, **options)
    assert report.feasibility.value <= 1e-5
    assert report.stationarity.value <= 1e-5
