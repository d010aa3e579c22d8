"""First-order conditions: residuals, multipliers, rounding, qualifications, infeasible points."""

import casadi as ca
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from support.cases.nlp import PEER, hock_schittkowski, solved
from support.problems.kkt_points import KNOWN, Known, judge

from casadi_hybrid import nlpsol, verify
from casadi_hybrid.problem.rounding import beyond_rounding
from casadi_hybrid.verify import Curvature, Rejection, fit_multipliers
from casadi_hybrid.verify.first_order.fit import fit_signed

INF = np.inf
BY_NAME = {known.name: known for known in KNOWN}
MINIMIZERS = [known for known in KNOWN if known.minimizer]
UNIQUE = [known for known in KNOWN if known.lam_g is not None]


def line(f, x, g=None, **bounds):
    """Judge x for a program in one variable."""
    v = ca.SX.sym("v")
    nlp = {"x": v, "f": f(v)} | ({} if g is None else {"g": g(v)})
    return verify(nlp, x, ipopt=False, **bounds)


# Residuals.


REASONS = {
    "feasibility": Rejection.INFEASIBLE,
    "stationarity": Rejection.NOT_STATIONARY,
    "complementarity": Rejection.NOT_COMPLEMENTARY,
    "dual_sign": Rejection.WRONG_SIGN,
}


@pytest.mark.parametrize(
    ("f", "x", "g", "bounds", "residual", "value"),
    [
        (lambda v: v, -1e-3, None, {"lbx": 0}, "feasibility", 1e-3),
        (lambda v: v, 2.25, lambda v: v**2, {"lbg": 5.0625, "lbx": 2.5}, "feasibility", 0.25),
        (lambda v: (v - 0.5) ** 2, 0.3, None, {"lbx": 0, "ubx": 1}, "stationarity", 0.4),
        (lambda v: v, 1e-4, None, {"lbx": 0}, "complementarity", 1e-4),
        (lambda v: -v, 2, lambda v: 2 * v, {"ubg": 4.0002}, "complementarity", 1e-4),
        (lambda v: -3 * v, 0, None, {"lbx": 0, "ubx": 9}, "dual_sign", 3),
        (lambda v: v, 2, lambda v: v, {"lbg": 0, "ubg": 2}, "dual_sign", 1),
    ],
)
def test_each_residual_is_named_alone(f, x, g, bounds, residual, value):
    report = line(f, x, g, **bounds)
    assert report.categories == (REASONS[residual],)
    assert getattr(report, residual).value == pytest.approx(value, rel=1e-6)
    # An infeasible point is off its bound, too.
    alone = {residual, "complementarity"} if residual == "feasibility" else {residual}
    assert all(getattr(report, name).value < 1e-6 for name in set(REASONS) - alone)
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


@pytest.mark.parametrize("known", MINIMIZERS, ids=str)
@pytest.mark.parametrize("size", [1e-2, 1e-4])
def test_perturbed_points_are_rejected(known: Known, size):
    report = judge(known, np.array(known.x) + size * np.cos(np.arange(1, len(known.x) + 1)))
    flat = known.verdict is Curvature.DEGENERATE and size < 1e-3
    assert not report.accepted or flat
    assert not {Rejection.UNDEFINED, Rejection.WRONG_MULTIPLIERS} & set(report.categories)


def test_tolerances_are_sharp():
    for offset, accepted in ((0.9e-6, True), (1.1e-6, False)):
        assert line(lambda v: v, offset, lbx=0).accepted is accepted
        assert line(lambda v: v, -offset, lbx=0).accepted is accepted
        assert line(lambda v: v**2 / 2, offset).accepted is accepted
    assert line(lambda v: v, 1e-4, lbx=0, tol=1e-3).accepted


def test_small_multipliers_off_their_bound():
    slope = 4e-6
    assert line(lambda v: slope * v, 0.1, lbx=0).accepted
    assert not line(lambda v: slope * v, 0.9, lbx=0).accepted


def test_largest_residual_decides_the_fit():
    # (λ, …, λ, 1.6e-6 + λ): the squares prefer the many small entries, which leaves the last one
    # above the tolerance; λ = −8e-7 leaves none.
    v = ca.SX.sym("v", 21)
    slope = np.append(np.zeros(20), 1.6e-6)
    nlp = {"x": v, "f": ca.dot(slope, v), "g": ca.sum1(v)}
    report = verify(nlp, np.zeros(21), lbg=0, ubg=0, ipopt=False)
    assert report.stationarity.value == pytest.approx(8e-7, rel=1e-3)
    assert Rejection.NOT_STATIONARY not in report.categories


# Multipliers.


@pytest.mark.parametrize("known", UNIQUE, ids=str)
def test_flipped_multipliers_are_named(known: Known):
    lam_x, lam_g = np.array(known.lam_x), np.array(known.lam_g)
    flipped = {Rejection.FLIPPED_SIGN} if np.append(lam_x, lam_g).any() else set()
    for multipliers, expected in (
        ({"lam_x": lam_x, "lam_g": lam_g}, set()),
        ({"lam_g": lam_g}, set()),  # lam_x follows from stationarity
        ({"lam_x": -lam_x, "lam_g": -lam_g}, flipped),
    ):
        report = judge(known, {"x": known.x, **multipliers})
        assert set(report.categories) - {Rejection.NOT_A_MINIMIZER} == expected


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


@pytest.mark.parametrize("d", [1e-7, 1e-10])
@pytest.mark.parametrize("bounds", [{}, {"lbx": [-9, -9, -1], "ubx": 9}])
def test_huge_multipliers_prove_nothing(d, bounds):
    # At x₁ = d the Jacobian is regular and λ = 1/d fits; where the equations hold it is not.
    x = ca.SX.sym("x", 3)
    nlp = {"x": x, "f": -(x[0] ** 2), "g": ca.vertcat(x[1], x[0] ** 2 * x[1], x[2])}
    report = verify(nlp, [1, d, 1], ipopt=False, lbg=0, ubg=[0, 0, 5], **bounds)
    assert report.categories == (Rejection.NOT_STATIONARY,)
    assert report.rank == 1


# Units and rounding.


def test_scaled_residuals_forgive_units():
    v = ca.SX.sym("v", 2)
    for unit, x, scaled, accepted in (
        (1, [1 + 1e-9, 1], False, True),
        (1e6, [1 + 1e-9, 1], False, False),
        (1e6, [1 + 1e-9, 1], True, True),
        (1e6, [1.01, 1 / 1.01], True, False),
    ):
        nlp = {"x": v, "f": unit * (v[0] + v[1]), "g": unit * v[0] * v[1]}
        assert verify(nlp, x, lbg=unit, ipopt=False, scaled=scaled).accepted is accepted
    # A violation of 1e-4 between numbers of size 1e6 is rounding of the problem's data.
    nlp = {"x": v, "f": v[0], "g": v[0] - v[1]}
    far = {"lbx": [-INF, 1e6], "lbg": 0, "ipopt": False}
    report = verify(nlp, [1e6 - 1e-4, 1e6], scaled=True, **far)
    assert report.accepted, report.reasons
    assert report.feasibility.value == pytest.approx(1e-4, rel=1e-4)
    assert not verify(nlp, [1e6 - 1e-4, 1e6], **far).accepted
    assert not verify(nlp, [1e6 - 10, 1e6], scaled=True, **far).accepted


def steep(scale):
    """min scale·‖x − 1‖² s.t. x₀ + x₁ ≤ 1: (½, ½) with the multiplier ``scale``."""
    x = ca.SX.sym("x", 2)
    return {"x": x, "f": scale * ca.sumsqr(x - 1), "g": x[0] + x[1]}


@pytest.mark.parametrize("scale", [1e6, 1e10, 1e14])
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
    answer = {"x": [0.5, 0.5], "lam_x": [0, 0], "lam_g": [scale * (1 + off)]}
    report = verify(nlp, answer, ubg=1, ipopt=False)
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


def test_infinite_residuals_are_not_rounding():
    entries, sizes = [np.nan, np.inf, 1.0, 1.0, 1.0], [1e30, np.inf, np.inf, np.nan, 1e30]
    with np.errstate(all="raise"):
        left = beyond_rounding(np.array(entries), np.array(sizes))
    np.testing.assert_array_equal(left, [np.nan, np.inf, 1.0, 1.0, 0.0])


@pytest.mark.parametrize("deviation", [1e-3, 1e-8])
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


def test_valley_of_rounding_is_rejected() -> None:
    """Along x₀ = x₁ f falls by a slope far below the rounding of its other terms."""
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "f": 1e15 * (x[0] - x[1]) ** 2 + (x[0] - 5) ** 2}
    assert not verify(nlp, {"x": [3, 3]}, ipopt=False).accepted
    solver = solved(nlp, x0=[0, 1])
    assert solver.stats()["success"]
    assert solver.result.x == pytest.approx([5, 5], abs=1e-6)
    # Without curvature a steep slope is no rounding either.
    assert not line(lambda v: 1e4 * ca.fabs(v - 0.3) + v, 0.3 + 1e-9).accepted


# Constraint qualifications, and points that are infeasible.


def test_minimizer_without_multipliers():
    nlp, call = hock_schittkowski(13)
    report = verify(nlp, [1, 0], ipopt=False, **call)
    assert report.categories == (Rejection.NOT_STATIONARY,)
    assert report.mfcq is False
    assert "Fritz John" in report.reasons[0]


def test_constraint_qualifications_are_told_apart():
    x = ca.SX.sym("x", 2)
    both = x[0], x[0] + x[1] ** 2
    for rows, bounds, licq, mfcq in (
        (x[:1], {"ubg": 0}, True, True),
        (both, {"ubg": 0}, False, True),
        (both, {"lbg": [-INF, 0], "ubg": [0, INF]}, False, False),
        (both, {"lbg": 0, "ubg": 0}, False, False),
        (x[:1], {"ubg": 0, "ubx": [0, 3]}, False, True),
    ):
        nlp = {"x": x, "f": 0, "g": ca.vertcat(*rows) if rows is both else rows}
        report = verify(nlp, [0, 0], ipopt=False, **bounds)
        assert (report.licq, report.mfcq) == (licq, mfcq)


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
    made = nlpsol("s", solver, nlp) if solver == "hybrid" else ca.nlpsol("s", solver, nlp, PEER)
    report = verify(nlp, made(x0=[1, 1], ubg=1)["x"], ubg=1, ipopt=False)
    assert report.infeasible_stationary, report.violation


# Random problems.


@st.composite
def programs(draw):
    """A strictly convex quadratic program around a KKT point drawn first."""
    n, m = draw(st.integers(1, 6)), draw(st.integers(0, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x, J = rng.standard_normal(n), rng.standard_normal((m, n))
    A = np.vstack((np.eye(n), J))
    value = A @ x
    kind = rng.integers(0, 5, n + m)  # inactive, at lower, at upper, equation, without bounds
    active = rng.permutation(np.flatnonzero((kind > 0) & (kind < 4)))
    kind[active[n:]] = 0
    lam = np.choose(kind, [0, -1, 1, rng.choice([-1.0, 1.0]), 0]) * rng.uniform(0.1, 2, n + m)
    lower = np.choose(kind, [value - 1, value, value - 2, value, -INF])
    upper = np.choose(kind, [value + 1, value + 3, value, value, INF])
    root = rng.standard_normal((n, n))
    H = root @ root.T + np.eye(n)
    v = ca.SX.sym("v", n)
    f = 0.5 * ca.bilin(ca.DM(H), v, v) - ca.dot(ca.DM(H @ x + A.T @ lam), v)
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
    for basis, matrix in ((fit.kernel, jacobian), (fit.free, jacobian.T)):
        size = matrix.shape[1] - r
        assert basis.T @ basis == pytest.approx(np.eye(size))
        assert np.abs(matrix @ basis).max(initial=0) < 1e-9
