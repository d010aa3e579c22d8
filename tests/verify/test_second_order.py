"""Second-order verdicts: curvature on faces and cones, rank, inertia, and chosen multipliers."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import null_space
from support.problems.kkt_points import KNOWN, Known, judge, plane

from casadi_hybrid import Problem, verify
from casadi_hybrid.verify import Curvature, Rejection, fit_multipliers
from casadi_hybrid.verify.first_order import face
from casadi_hybrid.verify.second_order.critical import least_on_cone


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
    rank = judge(known).rank
    monkeypatch.setattr(face, "DENSE_LIMIT", 0)
    report = judge(known)
    # It neither looks at the faces of the critical cone nor searches among multipliers.
    weaker = {
        "negative curvature outside the critical cone": Curvature.UNDECIDED,
        "copositive, no more": Curvature.UNDECIDED,
        "multipliers chosen for their curvature": Curvature.DEGENERATE,
    }
    assert report.second.verdict is weaker.get(known.name, known.verdict)
    assert report.rank == rank
    if known.name not in weaker:
        assert report.inertia == known.inertia


# Flat and curved directions.


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


@pytest.mark.parametrize("limit", [face.DENSE_LIMIT, 0])
def test_tiny_curvature_counts_as_zero(limit, monkeypatch):
    monkeypatch.setattr(face, "DENSE_LIMIT", limit)
    x = ca.SX.sym("x", 3)
    nlp = {"x": x, "f": 0.5e-6 * ca.sumsqr(x), "g": x[0]}  # the tolerance itself
    report = verify(nlp, np.zeros(3), lbg=0, ubg=0, ipopt=False)
    assert report.inertia == (0, 0, 2)
    assert report.second.verdict is Curvature.DEGENERATE


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


# Multipliers that are not unique, and rank.


def test_multipliers_are_searched_for_proof():
    # Feasible is (0, 0) alone; only λ_1 > 1 on the second curve shows it.
    tangent = plane(lambda x: -(x[0] ** 2), lambda x: ca.vertcat(x[1], x[1] - x[0] ** 2))
    report = verify(tangent, [0, 0])
    assert report.accepted, report.reasons
    assert report.second.verdict is Curvature.STRICT_MINIMIZER
    assert report.second.chosen == "searched"
    assert report.second.multipliers[:2] == pytest.approx([0, 0])
    multipliers = report.second.multipliers[2:]
    outputs = tangent.functions.second(report.x, multipliers, [])
    gradient, jacobian, hessian = (outputs[i].full() for i in (1, 3, 4))
    assert gradient.ravel() + jacobian.T @ multipliers == pytest.approx([0, 0])
    assert hessian[0, 0] > 0
    assert verify(tangent, [0, 0], multipliers=[3, -3], ipopt=False).second.chosen == "given"
    # Multipliers that fail the first-order condition prove nothing.
    assert verify(tangent, [0, 0], multipliers=[0, -3], ipopt=False).second.chosen == "searched"
    # Where the curves touch to third order, no multiplier shows anything.
    tangent = plane(lambda x: -(x[0] ** 2), lambda x: ca.vertcat(x[1], x[1] - x[0] ** 3))
    assert verify(tangent, [0, 0]).categories == (Rejection.UNDECIDED,)


def test_inadmissible_multipliers_prove_nothing():
    # x₁ ≥ −x₀² and x₁ ≥ −2x₀² meet at 0, where only (−3, 2) has positive curvature.
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "f": x[1], "g": ca.vertcat(x[1] + x[0] ** 2, x[1] + 2 * x[0] ** 2)}
    report = verify(nlp, [0, 0], lbg=0, ipopt=False)
    assert report.categories[0] in (Rejection.UNDECIDED, Rejection.NOT_A_MINIMIZER)
    answer = {"x": [0, 0], "lam_x": [0, 0], "lam_g": [-3, 2]}
    report = verify(nlp, answer, lbg=0, ipopt=False)
    assert Rejection.WRONG_MULTIPLIERS in report.categories
    assert report.given.residuals.dual_sign.value == pytest.approx(2)


def test_dependent_rows_keep_negative_curvature():
    x = ca.SX.sym("x", 2)
    once = ca.sumsqr(x) - 2
    twice = Problem(x=x, f=x[0] + x[1], h=ca.vertcat(once, 2 * once))
    report = verify(twice, [1, 1])
    assert not report.licq
    assert report.categories == (Rejection.NOT_A_MINIMIZER,)
    assert verify(twice, [-1, -1]).accepted


def test_distant_step_keeps_the_rank():
    # The Gauss–Newton step has length 1 and ends where the Jacobian loses rank.
    x = ca.SX.sym("x", 2)
    h = ca.vertcat(x[1], x[1] + 1e-7 * (x[0] - 0.5 * x[0] ** 2 - 1))
    report = verify(Problem(x=x, f=x[0], h=h), [0, 0], ipopt=False)
    assert report.rank == 2
    assert report.notes  # the rank is doubtful


def test_row_units_keep_the_rank():
    rng = np.random.default_rng(0)
    jacobian, gradient = rng.standard_normal((2, 4)), rng.standard_normal(4)
    for units in (1e-12, 1.0, 1e12):
        assert fit_multipliers(gradient, np.diag([1, units]) @ jacobian).rank == 2


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


# Cones and large problems.


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


def test_dense_column_fills_nothing():
    """n steps of lengths T·v_i/n to x = n, v_i ≤ 1: T is in every row; v = 1, T = n.

    ÂÂᵀ would be dense: 9 million entries.
    """
    n = 3000
    x, v, T = ca.SX.sym("x", n), ca.SX.sym("v", n), ca.SX.sym("T")
    rows = ca.vertcat(x - ca.vertcat(0, x[:-1]) - T / n * v, x[-1] - n)
    nlp = {"x": ca.vertcat(x, v, T), "f": T + 1e-3 * ca.sumsqr(v - 2) / n, "g": rows}
    upper = np.concatenate((np.full(n, np.inf), np.ones(n), [np.inf]))
    answer = np.concatenate((np.arange(1.0, n + 1), np.ones(n), [n]))
    report = verify(nlp, answer, ipopt=False, lbg=0, ubg=0, ubx=upper)
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
