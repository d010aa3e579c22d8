"""The paper's theorems on the package's own law, and mutants of the law that must not pass."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cases.paper_runs import made
from support.paths import DOCS

from casadi_hybrid.cli import main
from casadi_hybrid.paper import claims, law
from casadi_hybrid.paper.claims import noise, spectra, suite, trajectories
from casadi_hybrid.paper.claims.claim import attempted
from casadi_hybrid.paper.iterations import hybrid
from casadi_hybrid.utils.errors import InputError

SHAPES = suite.SHAPES


@pytest.fixture(scope="module")
def checked():
    return claims.check_all(seed=0, iterations=200)


def test_claims_hold_and_counterexamples_deviate(checked):
    assert not [str(claim) for claim in checked if not claim.held]
    for n, m in SHAPES:
        shape = f"n={n} m={m} T=200"
        equal = [c for c in checked if not c.counterexample and c.case.startswith(shape)]
        assert len(equal) >= 9
        assert all(c.bound <= 1e-12 and c.worst <= 1e-12 for c in equal)
    dropped = [claim for claim in checked if claim.counterexample]
    assert len({claim.name for claim in dropped}) >= 8
    assert all(min(dict(c.deviations).values()) > 1e-6 for c in dropped)
    page = (DOCS / "paper.md").read_text(encoding="utf-8")
    assert all(f"`{claim.name}`" in page for claim in checked)
    assert all(claim.held for claim in claims.check_all(1, iterations=40, models=2))


finite = st.floats(-20, 20, allow_nan=False, width=32)


@settings(max_examples=10, deadline=None)
@given(shape=st.sampled_from(SHAPES), seed=st.integers(0, 50), data=st.data())
def test_any_split_is_the_same_method(shape, seed, data):
    _, setup, M, _ = made(*shape, seed)
    size = M.size
    C = np.array(data.draw(st.lists(finite, min_size=size, max_size=size))).reshape(M.shape)
    claim = trajectories.theorem_equivalence(setup, C, M - C)
    assert claim.held, str(claim)


@settings(max_examples=6, deadline=None)
@given(
    shape=st.sampled_from(SHAPES),
    seed=st.integers(0, 50),
    shares=st.lists(st.floats(-2, 3, allow_nan=False), min_size=2, max_size=4),
)
def test_any_share_that_varies_is_the_same_method(shape, seed, shares):
    _, setup, M, rng = made(*shape, seed)
    setup = suite.varying_metrics(setup, rng)
    splits = [
        (lambda t, s=s: s * np.cos(t) * M, lambda t, s=s: M - s * np.cos(t) * M) for s in shares
    ]
    claim = trajectories.additivity(setup, splits)
    assert claim.held, str(claim)


def with_exact_memory(state, at, c, memory):
    mu = state.mu + c.C_opt @ (at.h - at.measured)
    new = law.advance(replace(state, mu=mu), at, c, memory)
    return replace(new, memory=c.C_opt @ at.h)


def with_old_dual(state, at, c, memory):
    new = law.advance(state, at, c, memory)
    return replace(new, x=new.x + law.apply(c.eta_x, at.B.T @ (new.effective - state.effective)))


def changed(**parts):
    """The law with parts of its correction replaced."""

    def advance(state, at, c, memory):
        return law.advance(state, at, replace(c, **{k: f(c) for k, f in parts.items()}), memory)

    return advance


# Mutants of the law, each different from law.advance in one place, and the claim that notices.
MUTANTS = {
    "memory sign": (lambda s, at, c, old: law.advance(s, at, c, -old), "Theorem 1"),
    "memory dropped": (lambda s, at, c, old: law.advance(s, at, c, 0 * old), "Theorem 1"),
    "C_opt transposed": (changed(C_opt=lambda c: c.C_opt.T), "Additivity"),
    "C_aug transposed": (changed(C_aug=lambda c: c.C_aug.T), "Additivity"),
    "memory of the exact h": (with_exact_memory, "Memory noise, C₂P_n ≠ 0"),
    "augmentation of the noisy h": (
        lambda s, at, c, old: law.advance(s, replace(at, h=at.measured), c, old),
        "Memory noise, C₂P_n ≠ 0",
    ),
    "primal step with the old dual": (with_old_dual, "J_AL is"),
    "primal step doubled": (changed(eta_x=lambda c: 2 * c.eta_x), "J_AL is"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_broken_law_is_noticed(monkeypatch, name):
    mutant, noticed_by = MUTANTS[name]
    monkeypatch.setattr(hybrid, "advance", mutant)
    failed = [c.name for c in claims.check_shape(4, 4, iterations=30, models=1) if not c.held]
    assert any(claim.startswith(noticed_by) for claim in failed), failed


def test_diverging_run_never_counts():
    _, setup, M, _ = made(4, 4)
    fast = replace(setup, eta_x=1.0)
    for check in (trajectories.additivity, trajectories.unmatched_start):
        claim = attempted(check, fast, [(M, 0 * M), (0 * M, M)])
        assert not claim.held
        assert np.isnan(claim.worst)
        assert claim.detail in str(claim)


def test_hypotheses_are_checked_before_runs():
    _, setup, M, _ = made(4, 4, iterations=10)
    pair, at_7 = (M, 0 * M), (M, lambda t: (t == 7) * M)
    for claim, *arguments, part in (
        (trajectories.additivity, [pair, (M, M)], "iteration 0"),
        (trajectories.additivity, [pair, at_7], "iteration 7"),
        (trajectories.additivity, [pair], "1"),
        (noise.additivity_under_shared_noise, [pair, (M, M)], "M"),
        (noise.unshared_noise, [pair, (M, M)], "M"),
        (trajectories.design_additivity, [1.0], "two"),
        (trajectories.telescoped, [pair, (0 * M, M)], "C_opt"),
        (noise.equivalence_under_memory_noise, M, M, [1], "C₂P_n"),
        (spectra.jacobian_of_the_law, M, M, "KKT"),
    ):
        with pytest.raises(InputError, match=part):
            claim(setup, *arguments)
    for name, value in (("iterations", 0), ("dual", np.zeros(3))):
        with pytest.raises(InputError, match=name):
            replace(setup, **{name: value})


def test_command_checks_and_counts(capsys, monkeypatch):
    few = [spectra.stiffness(), spectra.margin_equality()]
    asked = []
    monkeypatch.setattr(claims, "check_all", lambda **numbers: asked.append(numbers) or few)
    assert main(["claims", "--seed", "3", "--iterations", "12"]) == 0
    assert asked == [{"seed": 3, "iterations": 12}]
    printed = capsys.readouterr().out
    assert claims.table(few) in printed
    assert all(claim.name in printed for claim in few)
    few[0] = replace(few[0], bound=1e-9)
    assert main(["claims"]) == 1
    assert "FAILS" in capsys.readouterr().out
    assert main(["claims", "--json"]) == 1
    records = json.loads(capsys.readouterr().out)
    assert [record["held"] for record in records] == [False, True]
    assert [*records[1]["deviations"].items()] == [*few[1].deviations]
    monkeypatch.undo()
    assert main(["claims", "--models", "0"]) == 2
    assert "models" in capsys.readouterr().err
