"""IPOPT as the verifier's reference: its runs, elastic forms, and comparisons with a point."""

import subprocess
import sys

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import PEER, hock_schittkowski
from support.problems.kkt_points import circle, plane

from casadi_hybrid import Problem, nlpsol, verify
from casadi_hybrid.paper.experiment import make_instance
from casadi_hybrid.verify import Rejection, Relation, run_ipopt


@pytest.mark.parametrize("number", [1, 4, 11, 16, 21, 24, 35, 41, 43, 60, 65, 71, 76, 86, 100, 113])
@pytest.mark.parametrize("solver", ["hybrid", "ipopt"])
def test_hock_schittkowski_answers_are_accepted(number, solver):
    nlp, call = hock_schittkowski(number)
    ours = solver == "hybrid"
    answer = (nlpsol("s", solver, nlp) if ours else ca.nlpsol("s", solver, nlp, PEER))(**call)
    report = verify(nlp, answer, ipopt=ours, **call)
    assert report.accepted, report.reasons
    assert report.f == pytest.approx(float(answer["f"]), abs=1e-12)
    if report.licq and report.condition < 1e3:
        theirs = ca.vertcat(answer["lam_x"], answer["lam_g"]).full().ravel()
        fitted = np.concatenate((report.lam_x, report.lam_g))
        assert fitted == pytest.approx(theirs, abs=1e-4 * max(1.0, np.abs(theirs).max()))
    if ours:
        assert report.restart.relation is Relation.SAME_POINT
        assert report.comparison is report.reference


def test_ipopt_runs_from_both_points():
    v = ca.SX.sym("v")
    nlp = {"x": v, "f": v**4 - 2 * v**2 + 0.1 * v}
    low, high = (float(root.real) for root in sorted(np.roots([4, 0, -4, 0.1]))[::2])
    report = verify(nlp, high, x0=-2, lbx=-5)
    assert report.accepted
    assert report.restart.relation is Relation.SAME_POINT
    comparison = report.comparison
    assert comparison.relation is Relation.LOWER
    assert comparison.distance == pytest.approx(high - low, abs=1e-6)
    difference = (low**4 - 2 * low**2 + 0.1 * low - report.f) / max(1, abs(comparison.f))
    assert comparison.relative_difference == pytest.approx(difference)
    assert max(part.value for part in comparison.conditions.residuals) < 1e-8
    assert comparison.iterations > 0
    assert verify(nlp, low, x0=2, lbx=-5).comparison.relation is Relation.HIGHER
    assert verify(nlp, low, lbx=-5).reference is None
    assert verify(nlp, low, ipopt=False).comparison is None


def test_verifier_prints_nothing():
    # IPOPT prints its banner once a process, so this needs one of its own.
    script = (
        "from casadi_hybrid.paper.experiment import make_instance as make\n"
        "from casadi_hybrid.verify import verify\n"
        "for m in (2, 5):\n"
        "    i = make(3, 0, m=m)\n"
        "    verify(i.problem, i.x_star, x0=i.x0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize("condition", [1, 5, 13])
def test_elastic_form_solves_overdetermined(condition):
    instance = make_instance(condition, 4)
    problem = instance.problem
    plain = ca.nlpsol("plain", "ipopt", {"x": problem.x, "f": problem.f, "g": problem.h}, PEER)
    plain(x0=instance.x0, lbg=0, ubg=0)
    assert plain.stats()["return_status"] == "Not_Enough_Degrees_Of_Freedom"
    run = run_ipopt(problem, instance.x0, np.zeros(0))
    assert run.form == "elastic"
    assert np.abs(run.x - instance.x_star).max() < 1e-8
    assert run.conditions.residuals.feasibility.value < 1e-9
    assert run.conditions.given.residuals.stationarity.value < 1e-8


def test_overdetermined_rows_are_elastic():
    x = ca.SX.sym("x", 2)
    g = ca.vertcat(x[0] + x[1] - 2, x[0] - x[1], x[0] * x[1] - 1, x[0] + 3 * x[1])
    bounds = {"lbg": [0, 0, 0, -np.inf], "ubg": [0, 0, 0, 4]}
    report = verify({"x": x, "f": x[0], "g": g}, [1, 1], x0=[3, 0], **bounds)
    assert report.accepted, report.reasons
    assert report.reference.form == "elastic"
    assert report.reference.relation is Relation.SAME_POINT


@pytest.mark.parametrize(("scale", "at", "off"), [(500, 1, 1), (5e4, 1e6, 1e-3)])
def test_penalty_rises_until_feasible(scale, at, off):
    # At ρ = 10 it is better to violate h: by 0.99, and by 7e-4, which is tiny beside x = 1e6.
    x = ca.SX.sym("x")
    steep = Problem(x=x, f=scale * (x - at + off) ** 2, h=ca.vertcat(x - at, 2 * x - 2 * at))
    run = run_ipopt(steep, np.array([at + 1.0]), np.zeros(0))
    assert np.abs(run.x - at).max() < 1e-6
    assert run.raises >= 1
    assert run.rho > 10


def test_solution_at_domain_edge():
    # At (1, 0) the derivative is infinite; on some processors the elastic form has to follow.
    edge = plane(ca.sumsqr, lambda x: ca.sqrt(x[0] - 1) - x[1])
    run = run_ipopt(edge, np.array([1.1, 5.0]), np.zeros(0))
    assert run.x == pytest.approx([1, 0], abs=1e-6)


def test_unique_multipliers_are_compared():
    report = verify(circle(), [-1, -1], x0=[-1.2, -0.5])
    assert report.reference.multiplier_difference < 1e-8
    instance = make_instance(1, 0)
    report = verify(instance.problem, instance.x_star, x0=instance.x0)
    assert report.reference.multiplier_difference is None


def test_ipopt_leaves_shallow_slopes():
    # Curvature 1e-5 makes the gradient 5e-7 at a distance of 0.05.
    shallow = plane(lambda x: 5e-6 * x[0] ** 2, lambda x: x[1])
    report = verify(shallow, [0.05, 0])
    assert report.categories == (Rejection.IPOPT_MOVED,)
    assert report.restart.distance == pytest.approx(0.05, rel=1e-3)
    assert verify(shallow, [0.05, 0], ipopt=False).accepted


def test_ipopt_may_slide_when_flat():
    # Gradient 2e-7 and curvature 2e-7: zero within tolerance, though not for IPOPT.
    report = verify(plane(lambda x: 1e-7 * x[0] ** 2, lambda x: x[1]), [1, 0])
    assert report.restart.relation is Relation.EQUAL
    assert report.restart.distance == pytest.approx(1)
    assert report.accepted, report.reasons


def test_undefined_start_is_no_fault():
    problem = plane(lambda x: ca.log(x[0]) + x[1] ** 2, lambda x: x[0] - 2)
    report = verify(problem, [2, 0], x0=[-1, 0])
    assert report.accepted, report.reasons
    assert report.reference.relation is Relation.NO_RUN


def test_contradicting_constraints_are_named():
    problem = plane(lambda x: x[1] ** 2, lambda x: ca.vertcat(x[0] - 1, x[0] + 1, x[1]))
    report = verify(problem, [0, 0], x0=[1, 1])
    assert {Rejection.INFEASIBLE, Rejection.INFEASIBLE_STATIONARY} <= set(report.categories)
    assert report.reference.relation is Relation.NO_KKT_POINT
    assert report.reference.raises > 0
    # Between the two the sum of the violations is constant; beyond them it is not.
    assert verify(problem, [0.5, 0], ipopt=False).violation.kind == "sum"
    assert verify(problem, [2, 0], ipopt=False).categories == (Rejection.INFEASIBLE,)
