"""Traps of ``benchmarks/hopeless_peers.py`` that once took hundreds of steps or thousands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from casadi_hybrid.barrier.pace import Mark, mark_of

from casadi_hybrid import nlpsol

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from problems.hopeless import TRAPS

# IPOPT takes 49, and 3,000 without an answer, and 61; twice the present number but for the first.
MOST = {
    "point-as-disc": (73, "CONVERGED"),
    "sign-pendulum-30": (52, "UNBOUNDED"),
    "sign-pendulum-state-20": (70, "UNBOUNDED"),
    # The scales of the start, at which rows are up to 1e6 times as steep, all but leave them out.
    "welded-beam-thin": (130, "CONVERGED"),
}


@pytest.mark.parametrize("name", MOST)
def test_a_trap_is_left_soon_and_by_the_right_door(name: str) -> None:
    entry = next(one for one in TRAPS if one.name == name)
    nlp = entry.build()
    solver = nlpsol("s", "hybrid", {key: nlp[key] for key in ("x", "f", "g")})
    found = solver(x0=list(entry.x0), **{key: nlp[key] for key in ("lbx", "ubx", "lbg", "ubg")})
    most, said = MOST[name]
    assert solver.stats()["stop_reason"] == said
    assert solver.stats()["iter_count"] <= most
    if entry.f_star is not None:
        assert float(found["f"]) == pytest.approx(entry.f_star, abs=1e-6)


def test_the_error_of_a_saddle_is_nothing_to_beat_on_the_way_from_there() -> None:
    first = Mark(nu=1e-9, theta=1e-8, f=5.0, error=1e-4, t=3)
    saddle = mark_of(first, 1e-9, 1e-8, 5.0, 1e-7, 4, bent=True)
    assert (saddle.t, saddle.error) == (4, 1e-7)
    assert mark_of(saddle, 1e-9, 1e-8, 5.0, 1e-2, 5, bent=True) == saddle
    assert mark_of(saddle, 1e-9, 1e-8, 5.0 - 1e-6, 1e-2, 5, bent=False) == saddle
    leaving = mark_of(saddle, 1e-9, 1e-8, 5.0 - 1e-6, 1e-2, 5, bent=True)
    assert (leaving.t, leaving.error) == (4, float("inf"))
    # What comes on the way is no improvement: that must not last for long either.
    assert mark_of(leaving, 1e-9, 1e-8, 5.0 - 2e-6, 1e-3, 6, bent=True) == leaving
    arrived = mark_of(leaving, 1e-9, 1e-8, 5.0 - 2e-6, 1e-3, 9, bent=False)
    assert (arrived.t, arrived.error) == (9, 1e-3)
    assert mark_of(arrived, 1e-9, 1e-8, 5.0 - 2e-6, 0.99e-3, 10, bent=False) == arrived
