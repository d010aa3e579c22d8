"""The claims on the closed-form rule and on L_C, problem (P), learned Hessians, and failing claims.

The optimum of problem (P) is compared with random splits and with a case by hand, the learned
Hessian with the exact one.
"""

import json
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import Derivatives, DesignError, InputError, Problem, Solver
from casadi_hybrid.paper import claims, rules
from casadi_hybrid.paper.claims import design, spectra, suite, trajectories
from casadi_hybrid.paper.claims.claim import attempted
from casadi_hybrid.paper.experiment import make_instance
from casadi_hybrid.paper.iterations import Hybrid
from casadi_hybrid.paper.rules import DesignRule, LocalModel

KAPPA = rules.StepRule()


def test_claims_need_their_hypotheses() -> None:
    """A kernel of B: θ does not balance, and the closed form is not the optimum of (P)."""
    assert dict(design.theta_balances(5, 3, 4).deviations)["balance"] > 0.1
    assert not design.optimal_split(5, 3, 4).held


def test_margin_can_be_far_below_the_rate() -> None:
    claim = design.weights_of_other_metrics()
    assert claim.held
    assert claim.worst > 10


def test_thresholds_of_the_stiff_example() -> None:
    assert spectra.stiffness_curvature().held
    assert spectra.unstable_penalty().held
    assert not spectra.unstable_penalty(1.001).held


@pytest.mark.parametrize(("n", "m"), suite.SHAPES)
def test_augmented_method_descends_its_lagrangian(n: int, m: int) -> None:
    rng = np.random.default_rng((n, m))
    setup = suite.setup_of(make_instance(2, 1, n=n, m=m), rng, 25)
    M = suite.random_correction(m, rng)
    assert all(trajectories.descent_ascent(setup, C).held for C in (M, M + M.T))
    assert trajectories.unsymmetrized(setup, M).held
    x, _ = trajectories.gradient_run(setup, M)
    assert np.abs(x[-1] - x[0]).max() > 0.05

    with pytest.raises(InputError, match="η_x"):
        trajectories.descent_ascent(replace(setup, eta_x=lambda t: 0.03), M)


def test_raising_claim_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt is no failing claim."""

    def raising(error: BaseException) -> Any:
        def cancellation_norm(*args: Any) -> Any:
            raise error

        return cancellation_norm

    monkeypatch.setattr(design, "cancellation_norm", raising(DesignError("the reason")))
    checked = list(suite.check_designs(3, 5, 1))
    (failed,) = [claim for claim in checked if not claim.held]
    assert len(checked) == 6
    assert "DesignError: the reason" in str(failed)
    assert str(failed) in claims.table(checked)
    record = json.loads(json.dumps(failed.to_dict(), allow_nan=False))
    assert record["held"] is False
    assert record["deviations"] == {"failed": None}
    assert "DesignError" in record["detail"]
    with pytest.raises(KeyboardInterrupt):
        attempted(raising(KeyboardInterrupt()))


def restriction(model: LocalModel, M: Any, C: Any) -> float:
    """s(C): S1 and S3 together allow η_x ≤ 1/s for C_opt = C and C_aug = M − C."""
    primal = np.linalg.norm(model.curvature(M - C), 2) / KAPPA.kappa_x
    memory = np.linalg.norm(C, 2) * model.norm_B**2 / (KAPPA.kappa_p * KAPPA.kappa_omega)
    return float(max(primal, memory))


@pytest.mark.parametrize(("n", "m"), [(3, 5), (4, 4), (5, 3)])
def test_no_split_beats_the_optimum(n: int, m: int) -> None:
    """Random C_opt, and those near the optimum, have no smaller s; and the optimum has that s."""
    rng = np.random.default_rng((n, m, 7))
    for case in design.local_cases(n, m, 3, 5):
        M = case.design().M
        best, least = rules.least_restriction(case.model, M, KAPPA)
        assert least <= restriction(case.model, M, best) <= least * (1 + 2e-5)
        for size in (1.0, 0.1, 1e-2, 1e-3):
            for _ in range(20):
                W = rng.standard_normal((m, m))
                C = best + size * np.linalg.norm(best, 2) * (W + W.T)
                assert restriction(case.model, M, C) >= least


def test_optimum_of_a_diagonal_case() -> None:
    """B = I and M diagonal: C_opt is diagonal, each entry as far as s allows, by hand.

    s = max(|a_i − c_i|/κ_x, |c_i|/(κ_pκ_ω)), least for c_i = a_i κ_pκ_ω/(κ_x + κ_pκ_ω).
    """
    a = np.array([3.0, 1.0, 0.5])
    model = LocalModel(np.zeros((3, 3)), np.eye(3))
    best, least = rules.least_restriction(model, np.diag(a), KAPPA)
    assert least == pytest.approx(a[0] / (0.08 + 1.6), rel=2e-5)
    assert restriction(model, np.diag(a), best) == pytest.approx(a[0] / (0.08 + 1.6), rel=2e-5)
    assert not rules.least_restriction(model, np.zeros((3, 3)), KAPPA)[0].any()
    with pytest.raises(DesignError, match="zero"):
        rules.least_restriction(LocalModel(np.eye(2), np.zeros((1, 2))), np.eye(1), KAPPA)


def test_splits_of_problem_p_keep_the_rule() -> None:
    """C_aug + C_opt = M, S1–S3 hold, and the steps are longer than the closed form's."""
    for case in design.local_cases(3, 5, 3):
        closed, clipped, best = map(case.design, (None, rules.ClippedSplit(), rules.OptimalSplit()))
        for d in (clipped, best):
            assert pytest.approx(closed.M) == d.M
            kept = np.linalg.norm(case.model.B.T @ d.C_aug @ case.model.B + case.model.H, 2)
            assert d.eta_x * kept <= KAPPA.kappa_x * (1 + 1e-9)
            assert np.linalg.norm(d.C_opt, 2) <= KAPPA.kappa_omega * d.eta_d * (1 + 1e-9)
        assert closed.eta_x <= clipped.eta_x * (1 + 1e-9)
        assert clipped.eta_x <= best.eta_x * (1 + 1e-4)
    gains, clips = design.problem_p(3, 5, 6)
    assert max(clips) > 0.1
    assert max(gains) > 0.1


def least_squares(third: bool) -> Problem:
    """f = ½‖F‖² with F nonlinear, two equations or three, which leave f no say in x."""
    x = ca.SX.sym("x", 3)
    F = ca.vertcat(x[0] ** 2 - 1, x[1] + ca.sin(x[2]), x[2] - 0.5 * x[0])
    rows = {"sum": ca.sum1(x) - 1, "arc": x[0] ** 2 - x[1]}
    if third:
        rows["bow"] = x[2] - 0.1 * x[0]
    return Problem(x=x, f=0.5 * ca.sumsqr(F), h=rows)


@pytest.mark.parametrize("method", ["closed-form", "matrix-lookahead"])
def test_each_hessian_leads_to_the_solution(method: str) -> None:
    runs = []
    for hessian in ("exact", "gauss-newton", "limited-memory"):
        problem = least_squares(method == "closed-form").with_derivatives(Derivatives(hessian))
        runs.append(Solver(problem, method).solve([0.7, 0.5, 0.1]))
        assert runs[-1].success, str(runs[-1])
        assert runs[-1].hessian == hessian
        assert (runs[-1].evaluations["second"] == 0) == (hessian == "limited-memory")
        assert runs[-1].x == pytest.approx(runs[0].x, abs=1e-6)
    assert len({run.iterations for run in runs}) > 1


def test_rule_sees_the_requested_hessian() -> None:
    """Gauss–Newton's is Σ∇F∇Fᵀ; the learned one comes to the exact one after n steps."""

    def points(hessian: str) -> list[Any]:
        seen: list[Any] = []

        def schedule(at: Any, t: int) -> Any:
            seen.append(at)
            return DesignRule(kernel_floor=0.5).decide(at, t)

        problem = least_squares(False).with_derivatives(Derivatives(hessian))
        rule = rules.ScheduleRule(schedule, needs_hessian=True)
        Solver(problem, Hybrid(rule), max_iter=12).solve([0.7, 0.5, 0.1])
        return seen

    first, *_ = points("gauss-newton")
    a, _, c = first.x
    J = np.array([[2 * a, 0, 0], [0, 1, np.cos(c)], [-0.5, 0, 1]])
    assert first.hessian == pytest.approx(J.T @ J)
    unknown, *_, learned = points("limited-memory")
    assert unknown.hessian == pytest.approx(np.eye(3))
    assert np.abs(learned.hessian - np.eye(3)).max() > 0.1
