"""The verifier accepts solutions and rejects everything else, for the right reason."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems.verdicts import read, value_of

from casadi_hybrid import Problem, Solver
from casadi_hybrid.paper.experiment import make_instance
from casadi_hybrid.problem.rounding import beyond_rounding
from casadi_hybrid.verify import Curvature, Rejection, Relation, fit_multipliers, run_ipopt, verify


@dataclass(frozen=True)
class Case:
    """A problem with a start, its minimizer where it is known, and the expected verdict there.

    ``close`` is how well a point with tiny residuals is determined.
    """

    problem: Problem
    x0: Sequence[float]
    verdict: Curvature
    solution: Sequence[float] | None = None
    p: Sequence[float] = ()
    close: float = 1e-6

    def __str__(self) -> str:
        return self.problem.name


def of_entry(name: str, n: int, f: str, h: Any, verdict: str, **known: Any) -> Case:
    """A line of ``data/equations.json``."""
    kind = getattr(ca, known.pop("kind", "SX"))
    x = ca.vertcat(*(kind.sym("x", size) for size in known.pop("parts", [n])))
    p = kind.sym("p", len(known.get("p", ())))
    known.pop("note", None)
    named = h if isinstance(h, dict) else dict(enumerate(h))
    rows = {key: value_of(row, x=x, p=p) for key, row in named.items()}
    problem = Problem(
        x=x, f=value_of(f, x=x, p=p), h=rows if named is h else ca.vertcat(*rows.values()),
        name=name, **({"p": p} if p.numel() else {}),
    )  # fmt: skip
    if "solution" in known:
        known["solution"] = value_of(known["solution"])
    return Case(problem, verdict=Curvature[verdict], **known)


def of_paper(verdict: Curvature, *arguments: int, **sizes: Any) -> Case:
    made = make_instance(*arguments, **sizes)
    return Case(made.problem, list(made.x0), verdict, list(made.x_star))


def cases() -> list[Case]:
    """More, as many and fewer equations than variables, and equations that depend on each other."""
    return [
        *(of_entry(**entry) for entry in read("equations")),
        of_paper(Curvature.STRICT_MINIMIZER, 3, 0, n=5, m=3, radius=0.1),
        of_paper(Curvature.ISOLATED_POINT, 5, 2, n=3, m=3, radius=0.1),
        *(of_paper(Curvature.ISOLATED_POINT, condition, 0) for condition in (1, 8, 13)),
    ]


CASES = cases()
DEFINITE = [c for c in CASES if c.solution is not None and c.verdict is not Curvature.DEGENERATE]


def plane(f, h, *, n=2, name="small"):
    """A problem in n SX variables from two functions of them."""
    x = ca.SX.sym("x", n)
    return Problem(x=x, f=f(x), h=h(x), name=name)


def circle():
    """min x + y on the circle of radius √2: minimizer (−1, −1), λ = ½; maximizer (1, 1), λ = −½."""
    return plane(lambda x: x[0] + x[1], lambda x: ca.sumsqr(x) - 2)


# ---------------------------------------------------------------- solutions


@pytest.mark.parametrize("case", CASES, ids=str)
def test_solutions_of_ipopt_are_accepted(case: Case):
    run = run_ipopt(case.problem, np.array(case.x0, dtype=float), np.array(case.p))
    report = verify(case.problem, {"x": run.x, "lam_g": run.multipliers}, p=case.p, x0=case.x0)
    assert report.accepted, report.reasons
    assert report.second.verdict is case.verdict
    assert report.restart.relation is Relation.SAME_POINT
    assert report.reference.relation is Relation.SAME_POINT
    if case.solution is not None:
        assert np.abs(report.x - case.solution).max() < case.close


@pytest.mark.parametrize("case", DEFINITE, ids=str)
def test_known_solutions_are_accepted(case: Case):
    report = verify(case.problem, case.solution, p=case.p, x0=case.x0)
    assert report.accepted, report.reasons
    assert report.feasibility.value < 1e-9
    assert report.reference.distance < case.close
    # The fitted multipliers are a warm start: IPOPT has next to nothing to do.
    assert report.restart.iterations <= 2


@pytest.mark.parametrize(
    ("method", "condition"), [("closed-form", 2), ("closed-form", 5), ("auto", 1), ("auto", 13)]
)
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


# ---------------------------------------------------------------- wrong points


@pytest.mark.parametrize(
    ("f", "accepted"),
    [
        (lambda x: x[0] ** 4, True),
        (lambda x: -(x[0] ** 4), False),
        (lambda x: x[0] ** 3, False),
        (lambda x: 0 * x[0], True),
        (lambda x: 3e-7 * x[0], True),
    ],
    ids=["x^4", "-x^4", "x^3", "0", "a slope within tolerance"],
)
def test_flat_directions_are_followed(f, accepted):
    # The feasible curve is bent, so that a straight step would leave it.
    report = verify(plane(f, lambda x: x[1] - x[0] ** 2), [0, 0], ipopt=False)
    assert report.accepted is accepted
    assert report.second.verdict is (Curvature.DEGENERATE if accepted else Curvature.DESCENT)
    if not accepted:
        assert report.categories == (Rejection.NOT_A_MINIMIZER,)


def test_contradicting_constraints_are_named():
    problem = plane(lambda x: x[1] ** 2, lambda x: ca.vertcat(x[0] - 1, x[0] + 1, x[1]))
    report = verify(problem, [0, 0], x0=[1, 1])
    assert Rejection.INFEASIBLE in report.categories
    assert Rejection.INFEASIBLE_STATIONARY in report.categories
    # Between the two the sum of the violations is constant; beyond them it is not.
    assert verify(problem, [0.5, 0], ipopt=False).violation.kind == "sum"
    beyond = verify(problem, [2, 0], ipopt=False)
    assert beyond.categories == (Rejection.INFEASIBLE,)
    assert report.reference.relation is Relation.NO_KKT_POINT
    assert report.reference.raises > 0


def test_ipopt_leaves_shallow_slopes():
    # Curvature 1e-5 makes the gradient 5e-7 at a distance of 0.05.
    shallow = plane(lambda x: 5e-6 * x[0] ** 2, lambda x: x[1])
    report = verify(shallow, [0.05, 0])
    assert report.categories == (Rejection.IPOPT_MOVED,)
    assert report.restart.distance == pytest.approx(0.05, rel=1e-3)
    assert verify(shallow, [0.05, 0], ipopt=False).accepted


def test_distant_step_keeps_the_rank():
    # The Gauss–Newton step has length 1 and ends where the Jacobian loses rank.
    x = ca.SX.sym("x", 2)
    h = ca.vertcat(x[1], x[1] + 1e-7 * (x[0] - 0.5 * x[0] ** 2 - 1))
    report = verify(Problem(x=x, f=x[0], h=h), [0, 0], ipopt=False)
    assert report.rank == 2
    assert report.notes  # the rank is doubtful


def test_infinite_residuals_are_not_rounding():
    entries, sizes = [np.nan, np.inf, 1.0, 1.0, 1.0], [1e30, np.inf, np.inf, np.nan, 1e30]
    with np.errstate(all="raise"):
        left = beyond_rounding(np.array(entries), np.array(sizes))
    np.testing.assert_array_equal(left, [np.nan, np.inf, 1.0, 1.0, 0.0])


def test_negative_curvature_needs_no_path():
    # f rises again at a distance of 0.03, where a walk would end.
    well = plane(lambda x: 1e4 * x[0] ** 4 - x[0] ** 2, lambda x: x[1])
    assert verify(well, [0, 0], ipopt=False).second.verdict is Curvature.NEGATIVE_CURVATURE


def test_rounding_is_zero_curvature():
    a, b = np.random.default_rng(1).standard_normal((2, 4))
    steep = plane(lambda x: 1e12 * ca.dot(a, x) ** 2, lambda x: ca.dot(b, x), n=4)
    report = verify(steep, [0] * 4, ipopt=False)
    assert report.second.verdict is Curvature.DEGENERATE
    assert report.second.inertia == (1, 0, 2)


def test_ipopt_may_slide_when_flat():
    # Gradient 2e-7 and curvature 2e-7: zero within tolerance, though not for IPOPT.
    flat = plane(lambda x: 1e-7 * x[0] ** 2, lambda x: x[1])
    report = verify(flat, [1, 0])
    assert report.restart.relation is Relation.EQUAL
    assert report.restart.distance == pytest.approx(1)
    assert report.accepted, report.reasons


# ---------------------------------------------------------------- multipliers that are not unique


def test_multipliers_are_searched_for_proof():
    # Feasible is (0, 0) alone; only λ_1 > 1 on the second curve shows it.
    tangent = plane(lambda x: -(x[0] ** 2), lambda x: ca.vertcat(x[1], x[1] - x[0] ** 2))
    report = verify(tangent, [0, 0])
    assert report.accepted, report.reasons
    assert report.second.verdict is Curvature.STRICT_MINIMIZER
    assert report.second.chosen == "searched"
    assert report.second.multipliers[:2] == pytest.approx([0, 0])
    multipliers = report.second.multipliers[2:]
    at = tangent.functions.second(report.x, multipliers, [])
    gradient, jacobian, hessian = (np.array(at[i].full()) for i in (1, 3, 4))
    assert gradient.ravel() + jacobian.T @ multipliers == pytest.approx([0, 0])
    assert hessian[0, 0] > 0
    assert verify(tangent, [0, 0], multipliers=[3, -3], ipopt=False).second.chosen == "given"
    # Multipliers that fail the first-order condition prove nothing.
    assert verify(tangent, [0, 0], multipliers=[0, -3], ipopt=False).second.chosen == "searched"
    # Where the curves touch to third order, no multiplier shows anything.
    tangent = plane(lambda x: -(x[0] ** 2), lambda x: ca.vertcat(x[1], x[1] - x[0] ** 3))
    report = verify(tangent, [0, 0])
    assert report.categories == (Rejection.UNDECIDED,)
    assert report.second.verdict is Curvature.UNDECIDED


def test_dependent_rows_keep_negative_curvature():
    x = ca.SX.sym("x", 2)
    once = ca.sumsqr(x) - 2
    twice = Problem(x=x, f=x[0] + x[1], h=ca.vertcat(once, 2 * once))
    report = verify(twice, [1, 1])
    assert not report.licq
    assert report.categories == (Rejection.NOT_A_MINIMIZER,)
    assert verify(twice, [-1, -1]).accepted


# ---------------------------------------------------------------- undefined points


@pytest.mark.parametrize(("x", "where"), [([np.nan, 1], "x_0"), ([1, np.inf], "x_1")])
def test_infinite_entries_are_named(x, where):
    report = verify(circle(), x, x0=[1, 1])
    assert report.categories == (Rejection.UNDEFINED,)
    assert where in report.reasons[0]
    assert report.feasibility is report.lam_x is report.lam_g is report.inertia is None
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert data["f"] is data["feasibility"] is None
    assert str(report).startswith("REJECTED")
    for huge in ([1e155, 1e155], [1e200, 1]):  # overflow
        assert not verify(circle(), huge).accepted


def test_undefined_functions_are_named():
    x = ca.SX.sym("x", 2)
    constraint = {"level": x[1], "tank": ca.sqrt(x[0])}
    for f, h, name in ((ca.log(x[0]), x[1], "objective"), (x[0], constraint, "tank")):
        report = verify(Problem(x=x, f=f, h=h), [-1, 0])
        assert report.categories == (Rejection.UNDEFINED,)
        assert name in report.reasons[0]


def test_undefined_hessian_leaves_it_undecided():
    problem = plane(lambda x: ca.fabs(x[0]) ** 1.5, lambda x: x[1])
    report = verify(problem, [0, 0], ipopt=False)
    assert max(report.feasibility.value, report.stationarity.value) < 1e-12
    assert report.second.verdict is Curvature.UNDEFINED
    assert report.categories == (Rejection.UNDECIDED,)
    slope = plane(lambda x: ca.fabs(x[0]) ** 1.5 + x[0], lambda x: x[1])
    # IPOPT needs the Hessian to leave a point that is not stationary.
    report = verify(slope, [0, 0])
    assert report.categories == (Rejection.NOT_STATIONARY, Rejection.IPOPT_FAILED)


def test_undefined_start_is_no_fault():
    problem = plane(lambda x: ca.log(x[0]) + x[1] ** 2, lambda x: x[0] - 2)
    report = verify(problem, [2, 0], x0=[-1, 0])
    assert report.accepted, report.reasons
    assert report.reference.relation is Relation.NO_RUN


# ---------------------------------------------------------------- IPOPT as a reference


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


@pytest.mark.parametrize(
    "seed", [pytest.param(k, marks=[pytest.mark.slow] * (k != 4)) for k in range(20)]
)
@pytest.mark.parametrize("condition", [1, 2, 3, 5, 8, 13])
def test_elastic_form_solves_overdetermined(condition, seed):
    instance = make_instance(condition, seed)
    problem = instance.problem
    nlp = {"x": problem.x, "f": problem.f, "g": problem.h}
    solver = ca.nlpsol("plain", "ipopt", nlp, {"ipopt.print_level": 0, "print_time": False})
    solver(x0=instance.x0, lbg=0, ubg=0)
    assert solver.stats()["return_status"] == "Not_Enough_Degrees_Of_Freedom"
    run = run_ipopt(problem, instance.x0, np.zeros(0))
    assert run.form == "elastic"
    assert np.abs(run.x - instance.x_star).max() < 1e-8
    assert run.conditions.residuals.feasibility.value < 1e-9
    assert run.conditions.given.residuals.stationarity.value < 1e-8


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


def test_row_units_keep_the_rank():
    rng = np.random.default_rng(0)
    jacobian, gradient = rng.standard_normal((2, 4)), rng.standard_normal(4)
    for units in (1e-12, 1.0, 1e12):
        assert fit_multipliers(gradient, np.diag([1, units]) @ jacobian).rank == 2


# ---------------------------------------------------------------- the fit


@given(seed=st.integers(0, 10_000), m=st.integers(1, 6), n=st.integers(1, 6), r=st.integers(0, 6))
def test_fit_is_the_pseudoinverse(seed, m, n, r):
    rng = np.random.default_rng(seed)
    r = min(r, m, n)
    jacobian = rng.standard_normal((m, r)) @ rng.standard_normal((r, n))
    gradient = rng.standard_normal(n)
    fit = fit_multipliers(gradient, jacobian)
    assert fit.rank == r
    assert fit.unique == (r == m)
    pinv = np.linalg.pinv(jacobian, rcond=1e-9)
    assert fit.multipliers == pytest.approx(-pinv.T @ gradient, rel=1e-6, abs=1e-8)
    assert fit.kernel.T @ fit.kernel == pytest.approx(np.eye(n - r))
    assert fit.free.T @ fit.free == pytest.approx(np.eye(m - r))
    assert np.abs(jacobian @ fit.kernel).max(initial=0) < 1e-9
    assert np.abs(jacobian.T @ fit.free).max(initial=0) < 1e-9
