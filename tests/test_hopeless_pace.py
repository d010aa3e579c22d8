"""Traps of ``benchmarks/hopeless_peers.py`` that once took hundreds of steps or thousands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

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
