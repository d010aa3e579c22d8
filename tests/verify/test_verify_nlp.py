"""The verifier for programs with inequalities and bounds: right for the right reason."""

import dataclasses
import json
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import null_space
from scipy.optimize import lsq_linear
from support.cases.nlp import PEER, hock_schittkowski, solved
from support.cases.watched import Distance
from support.problems.kkt_points import KNOWN, Known

from casadi_hybrid import InputError, Problem, nlpsol, verify
from casadi_hybrid.verify import Curvature, Rejection, Relation
from casadi_hybrid.verify.first_order import face
from casadi_hybrid.verify.first_order.fit import fit_signed
from casadi_hybrid.verify.second_order.critical import least_on_cone

INF = np.inf
BY_NAME = {known.name: known for known in KNOWN}
A_PROBLEM = Problem.from_nlp(KNOWN[0].nlp())
MINIMIZERS = [known for known in KNOWN if known.minimizer]
UNIQUE = [known for known in KNOWN if known.lam_g is not None]


def judge(known: Known, x=None, kind=ca.SX, **more):
    given = {"ipopt": False} | known.instance | more
    return verify(known.nlp(kind), known.x if x is None else x, **given)


def line(f, x, g=None, **bounds):
    """Judge x for a program in one variable."""
    v = ca.SX.sym("v")
    nlp = {"x": v, "f": f(v)} | ({} if g is None else {"g": g(v)})
    return verify(nlp, x, ipopt=False, **bounds)


# ---------------------------------------------------------------- points known by hand


@pytest.mark.parametrize("known", KNOWN, ids=str)
@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_known_points_get_their_verdict(known: Known, kind):
    report = judge(known, kind=kind)
    assert report.accepted is known.minimizer, report.reasons
    if not known.minimizer:
        assert report.categories == (Rejection.NOT_A_MINIMIZER,)
    assert report.second.verdict is known.verdict
    assert report.inertia == known.inertia
    assert report.active.names_of(report.active.strong) == known.strong
    assert report.active.names_of(report.active.weak) == known.weak
    if known.lam_g is not None:
        assert report.lam_x == pytest.approx(np.array(known.lam_x), abs=1e-8)
        assert report.lam_g == pytest.approx(np.array(known.lam_g), abs=1e-8)
    assert report.licq is (known.lam_g is not None)


@pytest.mark.parametrize("known", KNOWN, ids=str)
def test_sparse_algebra_gives_same_verdicts(known: Known, monkeypatch):
    monkeypatch.setattr(face, "DENSE_LIMIT", 0)
    report = judge(known)
    # It neither looks at the faces of the critical cone nor searches among multipliers.
    weaker = {
        "negative curvature outside the critical cone": Curvature.UNDECIDED,
        "copositive, no more": Curvature.UNDECIDED,
        "multipliers chosen for their curvature": Curvature.DEGENERATE,
    }
    assert report.second.verdict is weaker.get(known.name, known.verdict)
    assert report.rank == judge(known).rank
    if known.name not in weaker:
        assert report.inertia == known.inertia


@pytest.mark.parametrize("known", MINIMIZERS, ids=str)
@pytest.mark.parametrize("size", [1e-2, 1e-4])
def test_perturbed_points_are_rejected(known: Known, size):
    report = judge(known, np.array(known.x) + size * np.cos(np.arange(1, len(known.x) + 1)))
    flat = known.verdict is Curvature.DEGENERATE and size < 1e-3
    assert not report.accepted or flat
    assert not {Rejection.UNDEFINED, Rejection.WRONG_MULTIPLIERS} & set(report.categories)


@pytest.mark.parametrize("known", UNIQUE, ids=str)
def test_flipped_multipliers_are_named(known: Known):
    def categories(sign, lam_x=known.lam_x):
        lam_g = [sign * value for value in known.lam_g]
        answer = {"x": known.x, "lam_g": lam_g}
        if lam_x is not None:
            answer["lam_x"] = [sign * value for value in lam_x]
        categories = judge(known, answer).categories
        return tuple(c for c in categories if c is not Rejection.NOT_A_MINIMIZER)

    binding = max(map(abs, [*known.lam_x, *known.lam_g])) > 0
    assert categories(1) == ()
    assert categories(-1) == ((Rejection.FLIPPED_SIGN,) if binding else ())
    # Without lam_x it is what stationarity needs.
    assert categories(1, None) == ()


def test_multipliers_need_not_be_unique():
    known = BY_NAME["a row twice"]
    right, wrong = ([2, 0], [0, 2 / 3], [1, 1 / 3]), ([5, -1], [2, 2 / 3])
    for lam_g in (*right, *wrong):
        report = judge(known, {"x": known.x, "lam_x": [0, 0], "lam_g": lam_g})
        assert report.categories == (() if lam_g in right else (Rejection.WRONG_MULTIPLIERS,))
    assert report.rank == 1
    assert report.mfcq is True
    assert np.array([1, 3]) @ report.lam_g == pytest.approx(2)
    assert (report.lam_g >= 0).all()


# ---------------------------------------------------------------- one residual at a time


@pytest.mark.parametrize(
    ("report", "reason", "residual", "value"),
    [
        (line(lambda v: v, -1e-3, lbx=0), Rejection.INFEASIBLE, "feasibility", 1e-3),
        (line(lambda v: v, -1, lbx=0), Rejection.INFEASIBLE, "feasibility", 1),
        (line(lambda v: v, 2.25, lambda v: v**2, lbg=5.0625, lbx=2.5, ubx=3),
         Rejection.INFEASIBLE, "feasibility", 0.25),
        (line(lambda v: (v - 0.5) ** 2, 0.3, lbx=0, ubx=1),
         Rejection.NOT_STATIONARY, "stationarity", 0.4),
        (line(lambda v: v, 1e-4, lbx=0), Rejection.NOT_COMPLEMENTARY, "complementarity", 1e-4),
        (line(lambda v: -v, 2, lambda v: 2 * v, ubg=4.0002),
         Rejection.NOT_COMPLEMENTARY, "complementarity", 1e-4),
        (line(lambda v: -3 * v, 0, lbx=0, ubx=9), Rejection.WRONG_SIGN, "dual_sign", 3),
        (line(lambda v: v, 2, lambda v: v, lbg=0, ubg=2), Rejection.WRONG_SIGN, "dual_sign", 1),
    ],
)  # fmt: skip
def test_each_residual_is_named_alone(report, reason, residual, value):
    assert report.categories == (reason,)
    for name in ("feasibility", "stationarity", "complementarity", "dual_sign"):
        measure = getattr(report, name)
        if name == residual:
            assert measure.value == pytest.approx(value, rel=1e-6)
        elif (name, reason) != ("complementarity", Rejection.INFEASIBLE):
            assert measure.value < 1e-6
    assert not report.accepted
    assert report.second is None


def test_residuals_name_worst_entries():
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "f": ca.sumsqr(x), "g": ca.vertcat(x[0], x[0] + x[1])}
    names = {"constraint_names": ["floor", "sum"], "variable_names": ["a", "b"]}
    report = verify(nlp, [0.5, 0.2], lbg=[1, 0], ipopt=False, **names)
    assert report.feasibility.where == "floor"
    assert report.stationarity.where == "b"
    assert "floor" in report.reasons[0]
    report = verify(nlp, [1, 0], lbg=[1 - 1e-4, 0], ipopt=False, **names)
    assert report.complementarity.where == "floor"
    report = verify(nlp, [1, 0], ubg=[1, INF], ipopt=False, **names)
    assert report.dual_sign.where == "floor"


@pytest.mark.parametrize(
    ("lam_x", "lam_g", "residual", "value"),
    [
        ([0, 0], [1.5], "stationarity", 0.5),
        ([0, 0], [-2], "dual_sign", 2),
        ([0, 3e-3], [2], "dual_sign", 3e-3),
        ([-0.5, 0], [2], "complementarity", 0.5),
        ([np.nan, np.nan], [2], "stationarity", np.nan),
    ],
)
def test_given_multipliers_are_judged(lam_x, lam_g, residual, value):
    known = BY_NAME["a row at its upper bound"]
    report = judge(known, {"x": known.x, "lam_x": lam_x, "lam_g": lam_g}, lbx=[0, -INF])
    wrong = Rejection.FLIPPED_SIGN if lam_g == [-2] else Rejection.WRONG_MULTIPLIERS
    assert report.categories == (wrong,)
    assert getattr(report.given.residuals, residual).value == pytest.approx(value, nan_ok=True)


def test_tolerances_are_sharp():
    for offset, accepted in ((0.9e-6, True), (1.1e-6, False)):
        assert line(lambda v: v, offset, lbx=0).accepted is accepted
        assert line(lambda v: v, -offset, lbx=0).accepted is accepted
        assert line(lambda v: v**2 / 2, offset).accepted is accepted
    assert line(lambda v: v, 1e-4, lbx=0, tol=1e-3).accepted


def test_scaled_residuals_forgive_units():
    def hyperbola(unit, x, **more):
        v = ca.SX.sym("v", 2)
        nlp = {"x": v, "f": unit * (v[0] + v[1]), "g": unit * v[0] * v[1]}
        return verify(nlp, x, lbg=unit, ipopt=False, **more)

    x = [1 + 1e-9, 1]
    assert hyperbola(1, x).accepted
    assert not hyperbola(1e6, x).accepted
    assert hyperbola(1e6, x, scaled=True).accepted
    assert not hyperbola(1e6, [1.01, 1 / 1.01], scaled=True).accepted
    # A violation of 1e-4 between numbers of size 1e6 is rounding of the problem's data.
    v = ca.SX.sym("v", 2)
    nlp = {"x": v, "f": v[0], "g": v[0] - v[1]}
    far = {"lbx": [-INF, 1e6], "lbg": 0, "ipopt": False}
    report = verify(nlp, [1e6 - 1e-4, 1e6], scaled=True, **far)
    assert report.accepted, report.reasons
    assert report.feasibility.value == pytest.approx(1e-4, rel=1e-4)
    assert not verify(nlp, [1e6 - 1e-4, 1e6], **far).accepted
    assert not verify(nlp, [1e6 - 10, 1e6], scaled=True, **far).accepted


# ---------------------------------------------------------------- degenerate points


def test_small_multipliers_off_their_bound():
    slope = 4e-6
    assert line(lambda v: slope * v, 0.1, lbx=0).accepted
    assert not line(lambda v: slope * v, 0.9, lbx=0).accepted


def steep(scale):
    """min scale·‖x − 1‖² s.t. x₀ + x₁ ≤ 1: (½, ½) with the multiplier ``scale``."""
    x = ca.SX.sym("x", 2)
    return {"x": x, "f": scale * ca.sumsqr(x - 1), "g": x[0] + x[1]}


@pytest.mark.parametrize(("curvature", "accepted"), [(1e-4, True), (10.0, False)])
def test_bounds_near_a_barrier_point_count(curvature, accepted):
    """The multiplier 3e-6 of x ≤ 1, from 8e-4 inside it, where f is concave in x."""
    x = ca.MX.sym("x", 2)
    off = x[0] - 1 + 8e-4
    nlp = {"x": x, "f": -3e-6 * off - 0.5 * curvature * off**2 + x[1] ** 2}
    report = verify(nlp, [1 - 8e-4, 0], ubx=[1, ca.inf], ipopt=False)
    assert report.accepted == accepted
    assert (Rejection.NOT_A_MINIMIZER in report.categories) == (not accepted)
    assert not report.active.all.size
    assert any("x[0]" in note for note in report.notes) == accepted


@pytest.mark.parametrize("scale", [10.0**k for k in range(6, 15)])
def test_solver_and_verifier_agree_on_rounding(scale):
    nlp = steep(scale)
    solver = nlpsol("solver", "hybrid", nlp)
    result = solver(x0=[0, 0], ubg=1)
    assert solver.stats()["success"]
    assert np.asarray(result["x"]).ravel() == pytest.approx([0.5, 0.5], abs=1e-9)
    assert float(result["lam_g"]) == pytest.approx(scale, rel=1e-6)
    # One digit of such numbers is more than any tolerance.
    off = {"x": [0.5, 0.5], "lam_x": [0, 0], "lam_g": [np.nextafter(scale, np.inf)]}
    for answer in (result, [0.5, 0.5], off):
        report = verify(nlp, answer, ubg=1)
        assert report.accepted, report.reasons


@pytest.mark.parametrize("scale", [1e6, 1e10, 1e14])
def test_residuals_above_rounding_count(scale):
    nlp, off = steep(scale), 1e-11
    # Slopes of ±2·scale·off on the row, whose terms have the size of 2·scale.
    report = verify(nlp, [0.5 + off, 0.5 - off], ubg=1, ipopt=False)
    assert report.categories == (Rejection.NOT_STATIONARY,)
    assert report.stationarity.value == pytest.approx(2 * scale * off, rel=1e-2)
    given = {"x": [0.5, 0.5], "lam_x": [0, 0], "lam_g": [scale * (1 + off)]}
    report = verify(nlp, given, ubg=1, ipopt=False)
    assert report.categories == (Rejection.WRONG_MULTIPLIERS,)
    assert report.given.residuals.stationarity.value == pytest.approx(scale * off, rel=1e-2)
    report = verify(nlp, [0.5 - off, 0.5 - off], ubg=1, ipopt=False)
    assert report.categories == (Rejection.NOT_COMPLEMENTARY,)


@pytest.mark.parametrize(("off", "accepted"), [(0, True), (4, True), (1e4, False)])
def test_violations_within_rounding_are_forgiven(off, accepted):
    # The row is 1e12·x₀ − 1e12·x₁ = 0 at x = 1, off by some of the last digits of its terms.
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "f": ca.sumsqr(x - 1), "g": 1e12 * (x[0] - x[1])}
    report = verify(nlp, [1 + off * np.finfo(float).eps, 1], lbg=0, ubg=0, ipopt=False)
    assert report.accepted is accepted
    if not accepted:
        assert report.categories == (Rejection.INFEASIBLE,)
        assert report.feasibility.value == pytest.approx(1e16 * np.finfo(float).eps)


def test_largest_residual_decides_the_fit():
    # (λ, …, λ, 1.6e-6 + λ): the squares prefer the many small entries, which leaves the last one
    # above the tolerance; λ = −8e-7 leaves none.
    v = ca.SX.sym("v", 21)
    slope = np.append(np.zeros(20), 1.6e-6)
    nlp = {"x": v, "f": ca.dot(slope, v), "g": ca.sum1(v)}
    report = verify(nlp, np.zeros(21), lbg=0, ubg=0, ipopt=False)
    assert report.stationarity.value == pytest.approx(8e-7, rel=1e-3)
    assert Rejection.NOT_STATIONARY not in report.categories


def test_minimizer_without_multipliers():
    nlp, call = hock_schittkowski(13)
    report = verify(nlp, [1, 0], ipopt=False, **call)
    assert report.categories == (Rejection.NOT_STATIONARY,)
    assert report.mfcq is False
    assert "Fritz John" in report.reasons[0]


def test_constraint_qualifications_are_told_apart():
    def at_origin(*rows, **bounds):
        x = ca.SX.sym("x", 2)
        g = ca.vertcat(*(row(x) for row in rows))
        report = verify({"x": x, "f": 0, "g": g}, [0, 0], ipopt=False, **bounds)
        return report.licq, report.mfcq

    def first(x):
        return x[0]

    def second(x):
        return x[0] + x[1] ** 2

    assert at_origin(first, ubg=0) == (True, True)
    assert at_origin(first, second, ubg=0) == (False, True)
    assert at_origin(first, second, lbg=[-INF, 0], ubg=[0, INF]) == (False, False)
    assert at_origin(first, second, lbg=0, ubg=0) == (False, False)
    assert at_origin(first, ubg=0, ubx=[0, 3]) == (False, True)


def test_inadmissible_multipliers_prove_nothing():
    # x₁ ≥ −x₀² and x₁ ≥ −2x₀² meet at 0, where only (−3, 2) has positive curvature.
    x = ca.SX.sym("x", 2)
    g = ca.vertcat(x[1] + x[0] ** 2, x[1] + 2 * x[0] ** 2)
    report = verify({"x": x, "f": x[1], "g": g}, [0, 0], lbg=0, ipopt=False)
    assert report.categories[0] in (Rejection.UNDECIDED, Rejection.NOT_A_MINIMIZER)
    given = {"x": [0, 0], "lam_x": [0, 0], "lam_g": [-3, 2]}
    report = verify({"x": x, "f": x[1], "g": g}, given, lbg=0, ipopt=False)
    assert Rejection.WRONG_MULTIPLIERS in report.categories
    assert report.given.residuals.dual_sign.value == pytest.approx(2)


# ---------------------------------------------------------------- infeasible points


def circles(x):
    """Two unit disks whose centres are 4 apart."""
    return ca.vertcat(ca.sumsqr(x), (x[0] - 4) ** 2 + x[1] ** 2)


@pytest.mark.parametrize(
    ("g", "x", "bounds", "stationary"),
    [
        (lambda x: x[0] ** 2 + 1 + x[1], [0, 0], {"lbg": 0, "ubg": 0, "lbx": 0}, True),
        (lambda x: x[0] ** 2 + 1 + x[1], [0, 1], {"lbg": 0, "ubg": 0, "lbx": 0}, False),
        (circles, [2, 0], {"ubg": 1}, True),
        (circles, [2, 0.1], {"ubg": 1}, False),
        (circles, [1.9, 0], {"ubg": 1}, False),
        (lambda x: x[0] + x[1], [1, 1], {"lbg": 3, "ubx": 1}, True),
        (lambda x: x[0] + x[1], [1, 0.9], {"lbg": 3, "ubx": 1}, False),
        (lambda x: ca.vertcat(x[0], x[0]), [0.5, 3], {"lbg": [1, -INF], "ubg": [INF, 0]}, True),
    ],
)
def test_infeasible_stationary_points_are_named(g, x, bounds, stationary):
    v = ca.SX.sym("v", 2)
    report = verify({"x": v, "f": v[0], "g": g(v)}, x, ipopt=False, **bounds)
    assert Rejection.INFEASIBLE in report.categories
    assert report.infeasible_stationary is stationary
    assert (Rejection.INFEASIBLE_STATIONARY in report.categories) is stationary


@pytest.mark.parametrize("solver", ["hybrid", "ipopt"])
def test_infeasibility_of_solvers_is_confirmed(solver):
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "f": ca.sumsqr(x), "g": circles(x)}
    make = nlpsol if solver == "hybrid" else ca.nlpsol
    answer = make("s", solver, nlp, {} if solver == "hybrid" else PEER)(x0=[1, 1], ubg=1)
    report = verify(nlp, answer["x"], ubg=1, ipopt=False)
    assert report.infeasible_stationary, report.violation


# ---------------------------------------------------------------- against solvers

NUMBERS = (1, 4, 11, 16, 21, 24, 35, 41, 43, 60, 65, 71, 76, 86, 100, 113)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("solver", ["hybrid", "ipopt"])
def test_hock_schittkowski_answers_are_accepted(number, solver):
    nlp, call = hock_schittkowski(number)
    if solver == "hybrid":
        answer = nlpsol("s", "hybrid", nlp)(**call)
    else:
        answer = ca.nlpsol("s", "ipopt", nlp, PEER)(**call)
    report = verify(nlp, answer, ipopt=solver == "hybrid", **call)
    assert report.accepted, report.reasons
    assert report.f == pytest.approx(float(answer["f"]), abs=1e-12)
    if report.licq and report.condition < 1e3:
        theirs = ca.vertcat(answer["lam_x"], answer["lam_g"]).full().ravel()
        size = max(1.0, np.abs(theirs).max())
        fitted = np.concatenate((report.lam_x, report.lam_g))
        assert fitted == pytest.approx(theirs, abs=1e-4 * size)
    if solver == "hybrid":
        assert report.restart.relation is Relation.SAME_POINT
        assert report.comparison is report.reference
        flipped = {"x": answer["x"], "lam_x": -answer["lam_x"], "lam_g": -answer["lam_g"]}
        if max(np.abs(report.lam_x).max(), np.abs(report.lam_g).max(initial=0)) > 1e-3:
            wrong = verify(nlp, flipped, ipopt=False, **call)
            assert set(wrong.categories) & {Rejection.FLIPPED_SIGN, Rejection.WRONG_MULTIPLIERS}


def test_ipopt_runs_from_both_points():
    v = ca.SX.sym("v")
    nlp = {"x": v, "f": v**4 - 2 * v**2 + 0.1 * v}
    low, high = (float(r.real) for r in sorted(np.roots([4, 0, -4, 0.1]))[::2])
    report = verify(nlp, high, x0=-2, lbx=-5)
    assert report.accepted
    assert report.restart.relation is Relation.SAME_POINT
    assert report.comparison.relation is Relation.LOWER
    assert report.comparison.distance == pytest.approx(high - low, abs=1e-6)
    assert report.comparison.relative_difference == pytest.approx(
        (low**4 - 2 * low**2 + 0.1 * low - report.f) / max(1, abs(report.comparison.f))
    )
    assert max(part.value for part in report.comparison.conditions.residuals) < 1e-8
    assert report.comparison.iterations > 0
    assert "Succeeded" in report.comparison.status
    assert verify(nlp, low, x0=2, lbx=-5).comparison.relation is Relation.HIGHER
    assert verify(nlp, low, lbx=-5).reference is None
    assert verify(nlp, low, ipopt=False).comparison is None


def test_overdetermined_rows_are_elastic():
    x = ca.SX.sym("x", 2)
    g = ca.vertcat(x[0] + x[1] - 2, x[0] - x[1], x[0] * x[1] - 1, x[0] + 3 * x[1])
    bounds = {"lbg": [0, 0, 0, -INF], "ubg": [0, 0, 0, 4]}
    report = verify({"x": x, "f": x[0], "g": g}, [1, 1], x0=[3, 0], **bounds)
    assert report.accepted, report.reasons
    assert report.reference.form == "elastic"
    assert report.reference.relation is Relation.SAME_POINT


# ---------------------------------------------------------------- properties


@st.composite
def programs(draw):
    """A strictly convex quadratic program around a KKT point drawn first."""
    n = draw(st.integers(1, 6))
    m = draw(st.integers(0, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.standard_normal(n)
    J = rng.standard_normal((m, n))
    A = np.vstack((np.eye(n), J))
    value = A @ x
    kind = rng.integers(0, 5, n + m)  # inactive, at lower, at upper, equation, without bounds
    count = 0
    for i in rng.permutation(n + m):
        if kind[i] in (1, 2, 3):
            count += 1
            kind[i] = kind[i] if count <= n else 0
    lam = np.choose(kind, [0, -1, 1, rng.choice([-1.0, 1.0]), 0]) * rng.uniform(0.1, 2, n + m)
    lower = np.choose(kind, [value - 1, value, value - 2, value, -INF])
    upper = np.choose(kind, [value + 1, value + 3, value, value, INF])
    root = rng.standard_normal((n, n))
    H = root @ root.T + np.eye(n)
    c = -(H @ x + A.T @ lam)
    v = ca.SX.sym("v", n)
    f = 0.5 * ca.dot(v, ca.mtimes(ca.DM(H), v)) + ca.dot(ca.DM(c), v)
    g = ca.mtimes(ca.DM(J), v) if m else ca.SX(0, 1)
    bounds = {"lbx": lower[:n], "ubx": upper[:n], "lbg": lower[n:], "ubg": upper[n:]}
    return {"x": v, "f": f, "g": g}, x, lam, bounds, rng.standard_normal(n)


@given(program=programs())
@settings(max_examples=12)
def test_random_quadratic_programs_are_judged(program):
    nlp, x, lam, bounds, direction = program
    answer = {"x": x, "lam_x": lam[: x.size], "lam_g": lam[x.size :]}
    report = verify(nlp, answer, ipopt=False, **bounds)
    assert report.accepted, report.reasons
    assert report.licq
    assert np.concatenate((report.lam_x, report.lam_g)) == pytest.approx(lam, abs=1e-6)
    assert report.active.binding.size == np.count_nonzero(lam)
    step = 1e-2 * direction / np.linalg.norm(direction)
    assert not verify(nlp, x + step, ipopt=False, **bounds).accepted


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 8), k=st.integers(1, 12))
def test_signed_fit_is_least_squares(seed, n, k):
    rng = np.random.default_rng(seed)
    G, slope = rng.standard_normal((n, k)), rng.standard_normal(n)
    G[:, rng.integers(k)] = 2 * G[:, rng.integers(k)]  # often dependent
    distances = np.where(rng.random(k) < 0.5, 0.0, rng.random(k))
    signed = rng.random(k) < 0.7
    nu = fit_signed(slope, sp.csc_array(G), distances, signed)
    assert (nu[signed] >= 0).all()
    stacked = np.vstack((G, np.diag(distances)))
    right = np.concatenate((-slope, np.zeros(k)))
    bounds = np.where(signed, 0.0, -INF), np.full(k, INF)
    best = lsq_linear(stacked, right, bounds, method="bvls", tol=1e-14)
    least = np.linalg.norm(best.fun)
    assert np.linalg.norm(stacked @ nu - right) == pytest.approx(least, rel=1e-8, abs=1e-9)


@given(seed=st.integers(0, 2**32 - 1))
def test_least_curvature_over_a_cone(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    R, W = rng.standard_normal((n, n)), rng.standard_normal((int(rng.integers(1, 4)), n))
    R = R + R.T
    least, direction, decided = least_on_cone(R, W)
    y = rng.standard_normal((20_000, n))
    y = y[(y @ W.T <= 0).all(axis=1)]
    assert decided
    if len(y):
        y /= np.linalg.norm(y, axis=1)[:, None]
        sampled = np.einsum("ij,jk,ik->i", y, R, y).min()
        assert least <= sampled + 1e-9
        assert (W @ direction <= 1e-8).all()
        assert direction @ R @ direction == pytest.approx(least)
        assert sampled - least < 0.5  # the sample comes close


def shortest_time(n):
    """n steps of lengths T·v_i/n to x = n, v_i ≤ 1: T is in every row. Solved by v = 1, T = n."""
    x, v, T = ca.SX.sym("x", n), ca.SX.sym("v", n), ca.SX.sym("T")
    rows = ca.vertcat(x - ca.vertcat(0, x[:-1]) - T / n * v, x[-1] - n)
    nlp = {"x": ca.vertcat(x, v, T), "f": T + 1e-3 * ca.sumsqr(v - 2) / n, "g": rows}
    upper = np.concatenate((np.full(n, INF), np.ones(n), [INF]))
    answer = np.concatenate((np.arange(1.0, n + 1), np.ones(n), [n]))
    return nlp, answer, {"lbg": 0, "ubg": 0, "ubx": upper}


def test_dense_column_fills_nothing():
    # ÂÂᵀ would be dense: 9 million entries.
    nlp, answer, bounds = shortest_time(3000)
    report = verify(nlp, answer, ipopt=False, **bounds)
    assert report.accepted, report.reasons
    assert report.second.verdict is Curvature.VERTEX
    assert report.rank == 6001


@pytest.mark.parametrize("curvature", [1.0, -1.0])
def test_large_face_with_dependent_rows(curvature):
    n = 700
    x = ca.SX.sym("x", n)
    g = x[: n // 2] - 2 * x[n // 2 :]
    # The sum of all rows once more; and curvature on the face along one direction alone.
    f = ca.sumsqr(x) - 5 * (1 - curvature) * x[n // 2] ** 2
    nlp = {"x": x, "f": f, "g": ca.vertcat(g, ca.sum1(g))}
    report = verify(nlp, np.zeros(n), lbg=0, ubg=0, ipopt=False)
    assert report.rank == n // 2
    assert not report.licq
    assert report.inertia == ((n // 2, 0, 0) if curvature > 0 else (n // 2 - 1, 1, 0))
    # Without unique multipliers negative curvature alone proves nothing.
    verdict = Curvature.STRICT_MINIMIZER if curvature > 0 else Curvature.UNDECIDED
    assert report.second.verdict is verdict


@pytest.mark.parametrize("limit", [face.DENSE_LIMIT, 0])
def test_tiny_curvature_counts_as_zero(limit, monkeypatch):
    monkeypatch.setattr(face, "DENSE_LIMIT", limit)
    x = ca.SX.sym("x", 3)
    nlp = {"x": x, "f": 0.5e-6 * ca.sumsqr(x), "g": x[0]}  # the tolerance itself
    report = verify(nlp, np.zeros(3), lbg=0, ubg=0, ipopt=False)
    assert report.inertia == (0, 0, 2)
    assert report.second.verdict is Curvature.DEGENERATE


@pytest.mark.parametrize("curvature", [1.0, -60.0])
def test_large_program_has_exact_inertia(curvature):
    n, m = 900, 300
    rng = np.random.default_rng(1)
    x = ca.SX.sym("x", n)
    diagonal, lam = rng.uniform(0.5, 2, n), rng.standard_normal(m)
    diagonal[7] = curvature
    g = x[:m] + 0.5 * x[m : 2 * m] - 0.3 * x[1 : m + 1] ** 2
    J = np.eye(m, n) + 0.5 * np.eye(m, n, m)
    f = 0.5 * ca.dot(x, diagonal * x) - ca.dot(J.T @ lam, x)
    report = verify({"x": x, "f": f, "g": g}, np.zeros(n), lbg=0, ubg=0, ipopt=False)
    H = np.diag(diagonal)
    H[np.arange(1, m + 1), np.arange(1, m + 1)] -= 0.6 * lam
    Z = null_space(J)
    values = np.linalg.eigvalsh(Z.T @ H @ Z)
    assert report.lam_g == pytest.approx(lam, abs=1e-8)
    assert report.inertia == (np.sum(values > 0), np.sum(values < 0), 0)
    assert report.accepted is bool(values[0] > 0)
    if values[0] < 0:
        assert report.categories == (Rejection.NOT_A_MINIMIZER,)
        assert report.second.smallest == pytest.approx(values[0], rel=1e-6)
        d = report.second.direction
        assert d @ H @ d == pytest.approx(values[0], rel=1e-6)
        assert np.abs(J @ d).max() < 1e-8


# ---------------------------------------------------------------- the report


@pytest.mark.parametrize("known", [*MINIMIZERS[:12:3], *KNOWN[12:15]], ids=str)
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
    known = BY_NAME["a row at its upper bound"]
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
        ("answer is a problem", {"answer": A_PROBLEM}),
        ("answer", {"answer": [[1, 2], [3, 4]]}),
        ("answer", {"answer": ca.SX.sym("x", 2)}),
        ("multipliers", {"multipliers": [1, 2]}),
        ("x0", {"x0": [np.nan, 0]}),
        ("x0", {"x0": [1, 2, 3]}),
        (r"lbg\[0\] = 3", {"lbg": 3, "ubg": 2}),
        ("lbx", {"lbx": [1, 2, 3]}),
        ("p has", {"p": [1, 2]}),
        ("p is missing", {"nlp": BY_NAME["a parameter"].nlp(), "ubg": 4}),
        ("tol", {"tol": 0}),
        ("constraint_names", {"constraint_names": ["a", "b"]}),
        ("problem must be", {"nlp": 3}),
        ("the problem has no 'x'", {"nlp": {"f": ca.SX.sym("x")}}),
    ],
)
def test_bad_arguments_are_named(text, arguments):
    known = BY_NAME["a row at its upper bound"]
    call = {"nlp": known.nlp(), "answer": [1, 1]} | known.bounds | arguments
    with pytest.raises(InputError, match=rf"^{text}"):
        verify(call.pop("nlp"), call.pop("answer"), **call)


def test_missing_numbers_come_from_result():
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p), "g": x[0] + x[1]}
    solver = solved(nlp, x0=[3, 0], p=2, ubg=1, lbx=-5)
    report = verify(nlp, solver.result)
    assert report.accepted, report.reasons
    assert report.lam_g == pytest.approx([3], abs=1e-6)
    assert report.given.distance < 1e-6
    assert report.reference.relation is Relation.SAME_POINT
    # An argument replaces the result's number; the other bounds stay.
    assert verify(nlp, solver.result, p=3, ipopt=False).categories != ()
    assert Rejection.INFEASIBLE in verify(nlp, solver.result, ubg=0, ipopt=False).categories
    assert verify(nlp, solver.result, lbx=-6, ipopt=False).accepted
    wrong = verify(nlp, solver.result, multipliers=[-3], ipopt=False)
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


@pytest.mark.parametrize("d", [1e-7, 1e-8, 1e-10])
@pytest.mark.parametrize("bounds", [{}, {"lbx": [-9, -9, -1], "ubx": 9}])
def test_huge_multipliers_prove_nothing(d, bounds):
    # At x₁ = d the Jacobian is regular and λ = 1/d fits; where the equations hold it is not.
    x = ca.SX.sym("x", 3)
    nlp = {"x": x, "f": -(x[0] ** 2), "g": ca.vertcat(x[1], x[0] ** 2 * x[1], x[2])}
    report = verify(nlp, [1, d, 1], ipopt=False, lbg=0, ubg=[0, 0, 5], **bounds)
    assert report.categories == (Rejection.NOT_STATIONARY,)
    assert report.rank == 1


@pytest.mark.parametrize("deviation", [1e-3, 1e-5, 1e-6, 1e-8])
def test_exact_sensors_are_fitted(deviation: float) -> None:
    """The rounding of ∇f is 1e-16·|x|/σ²: no point has less, and a wrong one has more."""
    draws = np.random.default_rng(3)
    A, true = draws.standard_normal((12, 3)), np.array([100.0, -3.0, 0.5])
    y = A @ true + deviation * draws.standard_normal(12)
    x = ca.SX.sym("x", 3)
    nlp = {"x": x, "f": ca.sumsqr((ca.DM(A) @ x - y) / deviation)}
    solver = solved(nlp, x0=true + 1)
    least = np.linalg.lstsq(A, y)[0]
    assert solver.stats()["success"]
    assert solver.result.x == pytest.approx(least, rel=1e-13)
    assert verify(nlp, solver.result, ipopt=False).accepted
    for away in (1e-6, 1e-9):
        report = verify(nlp, {"x": least * (1 + away)}, ipopt=False)
        assert Rejection.NOT_STATIONARY in report.categories


@pytest.mark.parametrize("size", [1.0, 1e9, 1e12, 1e15])
def test_objective_units_are_forgiven(size: float) -> None:
    x = ca.SX.sym("x", 3)
    f = ca.exp(x[0] - 0.3) + (x[0] * x[1] - 2) ** 2 + ca.sumsqr(x - ca.DM([1, 2, 3]))
    nlp = {"x": x, "f": size * f}
    plain, solver = (solved(one, x0=[0.5, 1, 2]) for one in ({"x": x, "f": f}, nlp))
    assert solver.stats()["success"]
    assert solver.result.x == pytest.approx(plain.result.x, abs=1e-7)
    assert verify(nlp, solver.result, ipopt=False).accepted


def test_valley_of_rounding_is_rejected() -> None:
    """Along x₀ = x₁ f falls by a slope far below the rounding of its other terms."""
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "f": 1e15 * (x[0] - x[1]) ** 2 + (x[0] - 5) ** 2}
    assert not verify(nlp, {"x": [3, 3]}, ipopt=False).accepted
    found = solved(nlp, x0=[0, 1])
    assert found.stats()["success"]
    assert found.result.x == pytest.approx([5, 5], abs=1e-6)


def test_an_objective_without_curvature_is_judged() -> None:
    x = ca.SX.sym("x")
    nlp = {"x": x, "f": 1e4 * ca.fabs(x - 0.3) + x}
    assert not verify(nlp, [0.3 + 1e-9], ipopt=False).accepted


def test_names_keep_foreign_derivatives():
    foreign = Distance({"enable_fd": True})  # min ‖x − p‖² with x₀ = 0.5
    answer = {"x": [0.5, 2.0], "lam_x": [0.0, 0.0], "lam_g": [1.0]}
    report = verify(
        Problem.from_nlp(foreign),
        answer,
        p=[1, 2],
        lbg=0.5,
        ubg=0.5,
        tol=1e-5,
        ipopt=False,
        constraint_names=["first"],
    )
    assert report.feasibility.value <= 1e-5
    assert report.stationarity.value <= 1e-5
