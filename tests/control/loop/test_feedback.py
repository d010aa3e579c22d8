"""The law as a feedback controller: its recursion, its design, its predictions, its rivals."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.judges.refusals import assert_refused

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
SINGLE = (1 - RATE) / (1 + RATE)
SPLITS = ("designed", "augmentation", "memory")
B = np.array([[1.0, 0.4, 0.0, 0.3], [0.2, 1.0, 0.5, 0.0], [0.0, 0.3, 1.2, 0.8]])
H = np.array([[2.0, 0.3, 0, 0], [0.3, 1.0, 0.2, 0], [0, 0.2, 1.5, 0], [0, 0, 0, 0.8]])
R = np.diag([0.04, 0.0, 0.09])
OFFSET = np.array([0.5, -0.3, 0.8])
LIFT = np.linalg.solve(H, B.T) @ np.linalg.inv(B @ np.linalg.solve(H, B.T))  # the cheapest
PREFERRED = np.array([0.1, 0.2, -0.3, 0.4])


def plant(u, sensitivity=B):
    return (OFFSET if u.ndim == 1 else OFFSET[:, None]) + sensitivity @ u


def law_of(split="designed", **options):
    return HybridFeedback(design(B, H, R, RATE, split=split), PREFERRED, **options)


class Integral:
    """Integral feedback u ← u − (1 − ρ) E ĥ along the cheapest lift E, a law of one's own."""

    sensitivity = B

    def start(self, u0):
        return SimpleNamespace(u=u0)

    def advance(self, state, measured):
        return SimpleNamespace(u=state.u - (1 - RATE) * LIFT @ measured)

    def closed_loop(self, sensitivity):
        """Return the loop in y, u − u* = E y, as inputs along ker B stay."""
        gain = (1 - RATE) * np.eye(3)
        A = np.eye(3) - gain @ sensitivity @ LIFT
        return ClosedLoop(A, -gain, np.linalg.inv(sensitivity @ LIFT), LIFT)


def run(law, noise, u0=None):
    controller = FeedbackController(law, np.ones(4) if u0 is None else u0)
    rows = [controller.u]
    for epsilon in noise:
        rows.append(controller.step(plant(rows[-1]) + epsilon))
    return np.array(rows)


def assert_same(trajectory, other):
    np.testing.assert_allclose(trajectory, other, rtol=0, atol=1e-12)


def draws(steps, cov=R, seed=0):
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.where(values > 1e-12, values, 0.0))
    return np.random.default_rng(seed).standard_normal((steps, len(cov))) @ root.T


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("reads", ["model", "sensors"])
def test_step_is_the_recursion_of_the_paper(split, reads):
    law, noise = law_of(split, reads=reads), draws(30)
    c = law.design.correction
    u, before, first = np.ones(4), np.zeros(3), None
    mu = -np.linalg.lstsq(B.T, H @ (u - PREFERRED), rcond=None)[0]
    by_hand = [u]
    for epsilon in noise:
        h = plant(u) + epsilon
        first = h - B @ u if first is None else first
        exact = B @ u + first if reads == "model" else h
        mu = mu + c.eta_d @ h + c.C_opt @ (h - before)
        u = u - c.eta_x @ (H @ (u - PREFERRED) + B.T @ (mu + c.C_aug @ exact))
        before = h
        by_hand.append(u)
    assert_same(run(law, noise), by_hand)


def test_splits_agree_without_noise_or_by_sensors():
    for noise, reads in ((np.zeros((80, 3)), "model"), (draws(60), "sensors")):
        runs = [run(law_of(split, reads=reads), noise) for split in SPLITS]
        assert np.ptp(runs[0], axis=0).max() > 0.1
        for other in runs[1:]:
            assert_same(other, runs[0])
    assert_same(runs[0], run(law_of("memory"), noise))


def test_loop_ends_at_the_optimum():
    u = run(law_of(), np.zeros((200, 3)))[-1]
    kkt = np.block([[H, B.T], [B, np.zeros((3, 3))]])
    best = np.linalg.solve(kkt, np.concatenate((H @ PREFERRED, -OFFSET)))[:4]
    np.testing.assert_allclose(u, best, atol=1e-9)


@pytest.mark.parametrize("cov", [R, np.outer([1, 2, 0.5], [1, 2, 0.5]), np.zeros((3, 3))])
def test_designed_split_ignores_the_noise(cov):
    found = design(B, H, cov, RATE)
    np.testing.assert_allclose(found.projected, 0.0, atol=1e-12)
    np.testing.assert_allclose(found.noisy @ cov, cov, atol=1e-12)
    np.testing.assert_allclose(found.correction.C_opt @ cov, 0.0, atol=1e-12)
    laws = [HybridFeedback(found.with_split(s), PREFERRED) for s in ("designed", "augmentation")]
    assert_same(run(laws[0], draws(60, cov)), run(laws[1], draws(60, cov)))
    # What is left of M is in the memory, so clean constraints are heard through it.
    clean = found.M @ (np.eye(3) - found.noisy)
    np.testing.assert_allclose(found.correction.C_opt, clean, atol=1e-12)
    quiet = design(B, H, [0.04, 1e-6, 0.09], RATE, quiet=0.01)  # counts as clean
    np.testing.assert_allclose(quiet.noisy, np.diag([1.0, 0.0, 1.0]), atol=1e-12)


FACTORS = [(law_of("designed"), DOUBLE), (law_of("augmentation"), DOUBLE)]
FACTORS += [(law_of("memory"), SINGLE), (Integral(), SINGLE)]


@pytest.mark.parametrize(("law", "factor"), FACTORS)
def test_variances_have_closed_forms(law, factor):
    """The least for a rate: inputs move along the cheapest lift of the residuals alone."""
    expected = predict(law, R)
    assert expected.rate == pytest.approx(RATE, abs=1e-6)  # two poles on each other
    np.testing.assert_allclose(expected.errors, factor * R, atol=1e-9)
    np.testing.assert_allclose(expected.inputs, factor * LIFT @ R @ LIFT.T, atol=1e-9)


def test_all_memory_is_integral_feedback():
    noise = draws(60)
    assert_same(run(law_of("memory"), noise, PREFERRED), run(Integral(), noise, PREFERRED))


LAWS = [*(law_of(split) for split in SPLITS), law_of(reads="sensors"), Integral()]
WALK = np.array([0.001, 0.002, 0.001])


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize(("wrong", "walk"), [(0.0, 0.0), (0.1, 0.0), (0.1, WALK)])
def test_prediction_and_simulation_agree(law, wrong, walk):
    actual = B * (1 + wrong * np.array([[1.0, -1.0, 0.5, 1.0]]))
    expected = predict(law, R, actual, drift=walk)
    long = {"drift": walk, "steps": 500, "settle": 50, "runs": 250}
    seen = measure(law, lambda u: plant(u, actual), equilibrium(law, actual), R, **long)
    errors = np.diag(expected.errors)
    np.testing.assert_allclose(np.diag(seen.errors), errors, rtol=0.05, atol=1e-15)
    still = np.trace(predict(law, R, actual).errors)
    assert np.trace(expected.errors) >= (1.1 if np.any(walk) else 1.0) * still
    if not np.any(walk):
        assert np.trace(seen.inputs) == pytest.approx(np.trace(expected.inputs), rel=0.05)


def equilibrium(law, sensitivity):
    controller = FeedbackController(law, PREFERRED)
    for _ in range(200):
        controller.step(plant(controller.u, sensitivity))
    return controller.u


def test_memory_follows_a_drift_better():
    errors = {s: np.diag(predict(law_of(s), 0.0, drift=1.0).errors) for s in SPLITS}
    assert (errors["memory"] < 0.6 * errors["augmentation"]).all()
    expected = np.where([False, True, False], errors["memory"], errors["augmentation"])
    np.testing.assert_allclose(errors["designed"], expected, rtol=1e-6)


CONCAVE = np.diag([1000.0, 1.0]), -np.eye(2), [1.0, 1.0]  # the paper's example
ACROSS = np.array([[-1.0, 0.2, 0.1], [0.2, -2.0, 0.3], [0.1, 0.3, 4.0]])  # the constraints
INDEFINITE = np.array([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0]]), ACROSS, [1.0, 0.0]


@pytest.mark.parametrize(("constraints", "hessian", "noise"), [CONCAVE, INDEFINITE])
def test_negative_curvature_is_cancelled(constraints, hessian, noise):
    found = design(constraints, hessian, noise, RATE)
    curvature = np.linalg.inv(constraints @ np.linalg.solve(hessian, constraints.T)) + found.M
    even = curvature @ constraints @ constraints.T  # in the metric of the least norm
    np.testing.assert_allclose(even, even[0, 0] * np.eye(2), rtol=1e-9, atol=1e-9)
    assert even[0, 0] > 0
    for split in SPLITS:
        expected = predict(HybridFeedback(found.with_split(split)), noise)
        assert expected.rate == pytest.approx(RATE, abs=1e-6)
    errors = predict(HybridFeedback(found), noise).errors
    np.testing.assert_allclose(errors, DOUBLE * np.diag(noise), atol=1e-6)


def test_many_runs_equal_single_runs():
    noise = np.stack([draws(20, seed=k) for k in range(3)], axis=-1)
    starts = np.random.default_rng(2).normal(size=(4, 3))
    for law in LAWS:
        controller = FeedbackController(law, starts)
        for epsilon in noise:
            controller.step(plant(controller.u) + epsilon)
        for k in range(3):
            assert_same(controller.u[:, k], run(law, noise[:, :, k], starts[:, k])[-1])


def test_functions_replace_quadratic_and_linear():
    by_model = law_of(model=lambda u: 7.0 + B @ u)  # only its increments count
    gradient = {"gradient": lambda u: H @ (u - PREFERRED), "model": by_model.model}
    for law in (by_model, HybridFeedback(by_model.design, **gradient)):
        assert_same(run(law, draws(30)), run(law_of(), draws(30)))


def test_known_first_residual_keeps_noise_out():
    rest, pulse = equilibrium(law_of("augmentation"), B), np.zeros((6, 3))
    pulse[0, 0] = 1.0
    laws = (law_of("augmentation", first=first) for first in (None, np.zeros(3)))
    anchored, known = (np.abs(run(law, pulse, rest) - rest).max() for law in laws)
    assert known < 0.5 * anchored


def test_refused_measurement_changes_nothing():
    controller = FeedbackController(law_of(), np.ones(4))
    first = controller.step([0.1, 0.2, 0.3])
    state = controller.state
    with pytest.raises(InputError, match=r"measured\[1\] is nan"):
        controller.step([0.1, np.nan, 0.3])
    assert controller.state is state
    controller.u[:] = 9.0  # a copy
    np.testing.assert_array_equal(controller.u, first)
    controller.reset(np.ones(4))
    np.testing.assert_array_equal(controller.step([0.1, 0.2, 0.3]), first)


def test_split_may_be_a_share_of_each_measurement():
    found = design([[0.5, 1.0, 0.2], [0.1, -0.4, 1.0]], 1.0, [0.04, 0.0], rate=0.8)
    shares = np.array([0.25, 1.0])
    other = found.with_split(shares)
    np.testing.assert_allclose(other.correction.C_opt, found.M * shares)
    np.testing.assert_allclose(other.M, found.M)
    np.testing.assert_allclose(found.with_split([0, 1]).projected, found.projected, atol=1e-15)
    assert_refused((lambda: found.with_split([0.5, 0.5, 0.5]), "split"))


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_curvature_is_judged_in_any_unit(unit):
    eta_x = design(B, unit * H, R, RATE).correction.eta_x
    assert eta_x * unit == pytest.approx(design(B, H, R, RATE).correction.eta_x)
    along = np.linalg.svd(B)[2][-1]  # ker B
    flat = H - H @ np.outer(along, along) @ H / (along @ H @ along)
    with pytest.raises(InputError, match="hessian has the curvature"):
        design(B, unit * flat, R, RATE)


def test_bad_designs_are_refused_by_name():
    good = {"sensitivity": B, "hessian": H, "noise": R, "rate": RATE}
    assert_refused(
        ({"sensitivity": np.ones(4)}, r"sensitivity has shape \(4,\)"),
        ({"split": "half"}, "split must be one of"),
        ({"sensitivity": np.ones((2, 4))}, "sensitivity has 2 row.* but rank 1"),
        ({"sensitivity": np.full((3, 4), np.nan)}, r"sensitivity\[0, 0\] is nan"),
        ({"hessian": np.eye(3)}, "hessian has shape"),
        ({"hessian": np.triu(np.ones((4, 4)))}, "hessian is not symmetric"),
        ({"hessian": -1.0}, "hessian has the curvature -1"),
        ({"noise": [1.0, -1.0, 1.0]}, "noise has the eigenvalue -1"),
        ({"rate": 1.0}, "rate must be below 1"),
        ({"quiet": -1.0}, "quiet must be zero or a positive number"),
        by=lambda **bad: design(**{**good, **bad}),
    )


def test_bad_controllers_are_refused_by_name():
    law, ones, square = law_of(), np.ones(4), law_of(model=lambda u: u)
    both = {"preferred": PREFERRED, "gradient": lambda u: u}
    assert_refused(
        (lambda: HybridFeedback(law.design, **both), "preferred and gradient both"),
        (lambda: law_of(reads="both"), "reads must be one of"),
        (lambda: FeedbackController(law.design, ones), "with the method 'start'"),
        (lambda: FeedbackController(law, np.ones(3)), r"u0 has shape \(3,\)"),
        (lambda: FeedbackController(law, ones).step([1.0, 2.0]), r"measured has shape \(2,\)"),
        (lambda: FeedbackController(square, ones).step(np.zeros(3)), "model returned"),
        (lambda: predict(law, R, -B), "spectral radius"),
        (lambda: predict(law, R, drift=[-1.0, 0.0, 0.0]), "drift has the eigenvalue"),
        (lambda: measure(law, None, ones, R), "plant must be a function"),
    )
