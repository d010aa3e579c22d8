"""The law as a feedback controller: its recursion, its design, its predictions, its rivals."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from casadi_hybrid import InputError
from casadi_hybrid.control.feedback import (
    ClosedLoop,
    FeedbackController,
    HybridFeedback,
    design,
    measure,
    predict,
)

RATE = 0.8
DOUBLE = (1 - RATE) * (1 + RATE**2) / (1 + RATE) ** 3  # of the noise, with two poles at the rate
SPLITS = ("designed", "augmentation", "memory")
B = np.array([[1.0, 0.4, 0.0, 0.3], [0.2, 1.0, 0.5, 0.0], [0.0, 0.3, 1.2, 0.8]])
H = np.array([[2.0, 0.3, 0, 0], [0.3, 1.0, 0.2, 0], [0, 0.2, 1.5, 0], [0, 0, 0, 0.8]])
R = np.diag([0.04, 0.0, 0.09])
OFFSET = np.array([0.5, -0.3, 0.8])
PREFERRED = np.array([0.1, 0.2, -0.3, 0.4])


def plant(u, sensitivity=B):
    return (OFFSET if u.ndim == 1 else OFFSET[:, None]) + sensitivity @ u


def made(split="designed", **options):
    return HybridFeedback(design(B, H, R, RATE, split=split), PREFERRED, **options)


@dataclass
class Inputs:
    u: np.ndarray


@dataclass
class Integral:
    """Integral feedback u ← u − (1 − ρ) E ĥ along the cheapest lift E, a law of one's own."""

    sensitivity: Any = field(default_factory=lambda: B)

    @property
    def lift(self):
        cheap = np.linalg.solve(H, B.T)
        return cheap @ np.linalg.inv(B @ cheap)

    def start(self, u0):
        return Inputs(u0)

    def advance(self, state, measured):
        return Inputs(state.u - (1 - RATE) * self.lift @ measured)

    def closed_loop(self, sensitivity):
        """Return the loop in y, u − u* = E y, as inputs along ker B stay."""
        gain = (1 - RATE) * np.eye(3)
        A = np.eye(3) - gain @ sensitivity @ self.lift
        return ClosedLoop(A, -gain, np.linalg.inv(sensitivity @ self.lift), self.lift)


def run(law, noise, u0=None):
    controller = FeedbackController(law, np.ones(4) if u0 is None else u0)
    rows = [controller.u]
    for epsilon in noise:
        rows.append(controller.step(plant(rows[-1]) + epsilon))
    return np.array(rows)


def draws(steps, cov=R, seed=0):
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.where(values > 1e-12, values, 0.0))
    return np.random.default_rng(seed).standard_normal((steps, len(cov))) @ root.T


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("reads", ["model", "sensors"])
def test_a_step_is_the_paper_s_recursion(split, reads):
    """Written out with μ and ĥ_{t−1}, as the paper has it."""
    law = made(split, reads=reads)
    c = law.design.correction
    noise = draws(30)
    u, before = np.ones(4), np.zeros(3)
    mu = -np.linalg.lstsq(B.T, H @ (u - PREFERRED), rcond=None)[0]
    first = None
    by_hand = [u]
    for epsilon in noise:
        h = plant(u) + epsilon
        first = h - B @ u if first is None else first
        exact = B @ u + first if reads == "model" else h
        mu = mu + c.eta_d @ h + c.C_opt @ (h - before)
        u = u - c.eta_x @ (H @ (u - PREFERRED) + B.T @ (mu + c.C_aug @ exact))
        before = h
        by_hand.append(u)
    np.testing.assert_allclose(run(law, noise), by_hand, rtol=0, atol=1e-12)


def test_without_noise_the_splits_are_one_trajectory():
    """Although none of them knows the plant's offset."""
    runs = [run(made(split), np.zeros((80, 3))) for split in SPLITS]
    assert np.ptp(runs[0], axis=0).max() > 0.1
    for other in runs[1:]:
        np.testing.assert_allclose(other, runs[0], rtol=0, atol=1e-12)


def test_they_end_at_the_optimum():
    u = run(made(), np.zeros((200, 3)))[-1]
    kkt = np.block([[H, B.T], [B, np.zeros((3, 3))]])
    best = np.linalg.solve(kkt, np.concatenate((H @ PREFERRED, -OFFSET)))[:4]
    np.testing.assert_allclose(u, best, atol=1e-9)


def test_where_augmentation_reads_the_sensors_no_split_hears_less():
    """The paper's "Additivity under shared oracle noise"."""
    noise = draws(60)
    runs = [run(made(split, reads="sensors"), noise) for split in SPLITS]
    for other in runs[1:]:
        np.testing.assert_allclose(other, runs[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(runs[0], run(made("memory"), noise), rtol=0, atol=1e-12)


@pytest.mark.parametrize("cov", [R, np.outer([1, 2, 0.5], [1, 2, 0.5]), np.zeros((3, 3))])
def test_the_designed_split_is_deaf_to_the_noise(cov):
    """C_opt P_n = 0, in coordinates or in any direction, and the inputs are full augmentation's."""
    one = design(B, H, cov, RATE)
    np.testing.assert_allclose(one.projected, 0.0, atol=1e-12)
    np.testing.assert_allclose(one.noisy @ cov, cov, atol=1e-12)
    np.testing.assert_allclose(one.correction.C_opt @ cov, 0.0, atol=1e-12)
    noise = draws(60, cov)
    both = [HybridFeedback(one.with_split(s), PREFERRED) for s in ("designed", "augmentation")]
    np.testing.assert_allclose(run(both[0], noise), run(both[1], noise), rtol=0, atol=1e-12)
    # What is left of M is in the memory, so clean constraints are heard through it.
    np.testing.assert_allclose(one.correction.C_opt, one.M @ (np.eye(3) - one.noisy), atol=1e-12)


def test_a_quiet_direction_counts_as_clean():
    one = design(B, H, [0.04, 1e-6, 0.09], RATE, quiet=0.01)
    np.testing.assert_allclose(one.noisy, np.diag([1.0, 0.0, 1.0]), atol=1e-12)
    assert np.abs(one.correction.C_opt[:, 1]).max() > 0.1


def test_closed_forms_of_the_variances():
    rho, double, single = RATE, DOUBLE, (1 - RATE) / (1 + RATE)
    for law, factor in [
        (made("designed"), double),
        (made("augmentation"), double),
        (made("memory"), single),
        (Integral(), single),
    ]:
        expected = predict(law, R)
        assert expected.rate == pytest.approx(rho, abs=1e-6)  # two poles on each other
        np.testing.assert_allclose(expected.errors, factor * R, atol=1e-9)


def test_all_memory_is_integral_feedback():
    """The zero of the memory cancels a pole, from an optimum on: the same inputs, noise and all."""
    noise = draws(60)
    np.testing.assert_allclose(
        run(made("memory"), noise, PREFERRED), run(Integral(), noise, PREFERRED), rtol=0, atol=1e-12
    )


LAWS = [*(made(split) for split in SPLITS), made("designed", reads="sensors"), Integral()]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize(
    ("wrong", "walk"), [(0.0, 0.0), (0.1, 0.0), (0.1, np.array([0.001, 0.002, 0.001]))]
)
def test_prediction_and_simulation_agree(law, wrong, walk):
    """Within 5 %, also around a plant that the law does not know or that drifts; 125,000 steps."""
    actual = B * (1 + wrong * np.array([[1.0, -1.0, 0.5, 1.0]]))
    expected = predict(law, R, actual, drift=walk)
    long = {"drift": walk, "steps": 500, "settle": 50, "runs": 250}
    seen = measure(law, lambda u: plant(u, actual), run_to_rest(law, actual), R, **long)
    errors = np.diag(expected.errors)
    np.testing.assert_allclose(np.diag(seen.errors), errors, rtol=0.05, atol=1e-15)
    still = np.trace(predict(law, R, actual).errors)
    assert np.trace(expected.errors) >= (1.1 if np.any(walk) else 1.0) * still
    if not np.any(walk):
        assert np.trace(seen.inputs) == pytest.approx(np.trace(expected.inputs), rel=0.05)


def run_to_rest(law, sensitivity):
    controller = FeedbackController(law, PREFERRED)
    for _ in range(200):
        controller.step(plant(controller.u, sensitivity))
    return controller.u


def test_the_price_of_not_listening():
    """A drift is followed better by the memory; the designed split has it where it is clean."""
    errors = {s: np.diag(predict(made(s), 0.0, drift=1.0).errors) for s in SPLITS}
    assert (errors["memory"] < 0.6 * errors["augmentation"]).all()
    np.testing.assert_allclose(errors["designed"][1], errors["memory"][1], rtol=1e-6)
    for i in (0, 2):
        np.testing.assert_allclose(errors["designed"][i], errors["augmentation"][i], rtol=1e-6)


def spread(M, P, D):
    """Spectral radius, and variance of the inputs with C_opt = 0, written out once more."""
    A = np.block([[np.eye(4) - P @ (H + B.T @ (M + D) @ B), -P @ B.T], [D @ B, np.eye(3)]])
    radius = np.abs(np.linalg.eigvals(A)).max()
    if radius >= 1:
        return radius, np.inf
    G = np.vstack((-P @ B.T @ D, D))
    return radius, np.trace(solve_discrete_lyapunov(A, G @ R @ G.T)[:4, :4])


def test_neighbours_of_the_same_rate_predict_no_less():
    """Other M, other steps, other metrics: of those with a radius ≤ ρ none has less variance.

    A perturbation of M takes the double poles apart, so the neighbours are those of designs that
    are a little faster, for their poles to come out below ρ.
    """
    one = design(B, H, R, RATE)
    radius, least = spread(one.M, one.correction.eta_x, one.correction.eta_d)
    assert radius == pytest.approx(RATE, abs=1e-6)
    rng = np.random.default_rng(1)

    def near(matrix, size):
        """A symmetric neighbour, in the matrix's own metric."""
        root = np.linalg.cholesky(matrix)
        move = rng.normal(size=matrix.shape)
        return np.exp(size * rng.normal()) * root @ (
            np.eye(len(matrix)) + size * (move + move.T)
        ) @ root.T  # fmt: skip

    found = []
    for _ in range(250):
        faster = 10 ** rng.uniform(-3, -1)
        other = design(B, H, R, RATE - faster)
        sizes = faster ** rng.uniform(1, 2.5, size=3)
        M, P, D = (other.M, other.correction.eta_x, other.correction.eta_d)
        radius, variance = spread(*map(near, (M, P, D), sizes))
        if radius <= RATE + 1e-9:
            found.append(variance / least)
    assert len(found) > 40
    assert min(found) > 1 - 1e-6
    assert min(found) < 1.05  # there were near ones among them


def test_a_concave_objective_is_cancelled():
    """The paper's example: H = −I under constraints of a thousand to one."""
    big = np.diag([1000.0, 1.0])
    one = design(big, -1.0, [1.0, 1.0], RATE)
    curvature = -np.eye(2) + big.T @ one.M @ big
    np.testing.assert_allclose(curvature, curvature[0, 0] * np.eye(2), rtol=1e-9, atol=1e-9)
    assert curvature[0, 0] > 0
    # Of the closed form M = C_can + αR, C_can = −B†ᵀHB†, with the metric R = (BBᵀ)⁻¹.
    metric = np.linalg.inv(big @ big.T)
    np.testing.assert_allclose(one.M - metric, (one.M - metric)[1, 1] * metric, rtol=1e-9)
    law = HybridFeedback(one)
    assert predict(law, 1.0).rate == pytest.approx(RATE, abs=1e-6)
    np.testing.assert_allclose(predict(law, 1.0).errors, DOUBLE * np.eye(2), atol=1e-6)


def test_indefinite_across_positive_along():
    wide = np.array([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0]])
    hessian = np.array([[-1.0, 0.2, 0.1], [0.2, -2.0, 0.3], [0.1, 0.3, 4.0]])
    one = design(wide, hessian, [1.0, 0.0], RATE)
    assert np.abs(one.cancellation).max() > 0.1
    for split in SPLITS:
        law = HybridFeedback(one.with_split(split))
        assert predict(law, [1.0, 0.0]).rate == pytest.approx(RATE, abs=1e-6)
    errors = predict(HybridFeedback(one), [1.0, 0.0]).errors
    assert errors[0, 0] == pytest.approx(DOUBLE, rel=1e-6)


def test_many_runs_at_once_are_the_runs_one_by_one():
    noise = np.stack([draws(20, seed=k) for k in range(3)], axis=-1)
    starts = np.random.default_rng(2).normal(size=(4, 3))
    for law in LAWS:
        controller = FeedbackController(law, starts)
        for epsilon in noise:
            controller.step(plant(controller.u) + epsilon)
        for k in range(3):
            alone = run(law, noise[:, :, k], starts[:, k])[-1]
            np.testing.assert_allclose(controller.u[:, k], alone, rtol=0, atol=1e-12)


def test_functions_in_place_of_the_quadratic_and_the_linear():
    given = made(model=lambda u: 7.0 + B @ u)  # only its increments count
    design_ = given.design
    other = HybridFeedback(design_, gradient=lambda u: H @ (u - PREFERRED), model=given.model)
    noise = draws(30)
    np.testing.assert_allclose(run(given, noise), run(made(), noise), rtol=0, atol=1e-12)
    np.testing.assert_allclose(run(other, noise), run(made(), noise), rtol=0, atol=1e-12)


def test_a_first_residual_known_better_than_measured():
    """At rest it keeps the first noise out of the augmented channel."""
    rest = run_to_rest(made("augmentation"), B)
    one = np.zeros((6, 3))
    one[0, 0] = 1.0
    anchored, known = (made("augmentation", first=f) for f in (None, np.zeros(3)))
    moved = [np.abs(run(law, one, rest) - rest).max() for law in (anchored, known)]
    assert moved[1] < 0.5 * moved[0]


def test_a_refused_measurement_changes_nothing_and_reset_starts_again():
    controller = FeedbackController(made(), np.ones(4))
    first = controller.step([0.1, 0.2, 0.3])
    state = controller.state
    with pytest.raises(InputError, match=r"measured\[1\] is nan"):
        controller.step([0.1, np.nan, 0.3])
    assert controller.state is state
    controller.u[:] = 9.0  # a copy
    np.testing.assert_array_equal(controller.u, first)
    controller.reset(np.ones(4))
    np.testing.assert_array_equal(controller.step([0.1, 0.2, 0.3]), first)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sensitivity": np.ones(4)}, r"sensitivity has shape \(4,\)"),
        ({"sensitivity": np.ones((2, 4))}, "sensitivity has 2 row.* but rank 1"),
        ({"sensitivity": np.full((3, 4), np.nan)}, r"sensitivity\[0, 0\] is nan"),
        ({"hessian": np.eye(3)}, "hessian has shape"),
        ({"hessian": np.triu(np.ones((4, 4)))}, "hessian is not symmetric"),
        ({"hessian": -1.0}, "hessian has the curvature -1 along inputs that do not move"),
        ({"noise": [1.0, 1.0]}, "noise has shape"),
        ({"noise": [1.0, -1.0, 1.0]}, "noise has the eigenvalue -1"),
        ({"rate": 1.0}, "rate must be below 1"),
        ({"rate": 0.0}, "rate must be a positive number"),
        ({"split": "half"}, "split must be one of"),
        ({"quiet": -1.0}, "quiet must be zero or a positive number"),
    ],
)
def test_bad_designs_are_refused_by_name(change, message):
    arguments = {"sensitivity": B, "hessian": H, "noise": R, "rate": RATE} | change
    with pytest.raises(InputError, match=message):
        design(**arguments)


def test_other_bad_input_is_refused_by_name():
    law, ones = made(), np.ones(4)
    begun, square = FeedbackController, made(model=lambda u: u)
    with pytest.raises(InputError, match="preferred and gradient both"):
        HybridFeedback(law.design, PREFERRED, gradient=lambda u: u)
    for message, call in (
        ("reads must be one of", lambda: made(reads="both")),
        ("model must be a function", lambda: made(model=3.0)),
        ("law must be an object with the method 'start'", lambda: begun(law.design, ones)),
        (r"u0 has shape \(3,\)", lambda: begun(law, np.ones(3))),
        (r"measured has shape \(2,\) but \(3,\)", lambda: begun(law, ones).step([1.0, 2.0])),
        ("what model returned has shape", lambda: begun(square, ones).step(np.zeros(3))),
        ("spectral radius", lambda: predict(law, R, -B)),
        ("drift has the eigenvalue", lambda: predict(law, R, drift=[-1.0, 0.0, 0.0])),
        ("plant must be a function", lambda: measure(law, None, ones, R)),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_a_split_may_be_a_share_for_each_measurement():
    one = design([[0.5, 1.0, 0.2], [0.1, -0.4, 1.0]], 1.0, [0.04, 0.0], rate=0.8)
    shares = np.array([0.25, 1.0])
    other = one.with_split(shares)
    np.testing.assert_allclose(other.correction.C_opt, one.M * shares)
    np.testing.assert_allclose(other.M, one.M)
    np.testing.assert_allclose(one.with_split([0, 1]).projected, one.projected, atol=1e-15)
    for wrong in ([0.5, 0.5, 0.5], "half"):
        with pytest.raises(InputError, match="split"):
            one.with_split(wrong)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_whether_a_hessian_is_positive_does_not_hang_on_the_unit_of_the_cost(unit):
    eta_x = design(B, unit * H, R, RATE).correction.eta_x
    assert eta_x * unit == pytest.approx(design(B, H, R, RATE).correction.eta_x)
    along = np.linalg.svd(B)[2][-1]  # ker B
    flat = H - H @ np.outer(along, along) @ H / (along @ H @ along)
    with pytest.raises(InputError, match="hessian has the curvature"):
        design(B, unit * flat, R, RATE)
