"""The controllers that are compared with do-mpc's and rockit's: loops, line counts, the page."""

import re
import sys
from importlib import import_module
from types import ModuleType

import casadi as ca
import numpy as np
import pytest
from control_versus import HERE, MAKERS, TITLES, TOOLS, lines, loop, rows, run
from support.cases.nlp import PEER
from support.paths import DOCS
from versus.plants import PLANTS

PAGE = (DOCS / "versus.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("problem", PLANTS)
def test_our_controller_solves_its_steps_as_ipopt_does(problem):
    plant = PLANTS[problem]
    after = plant.after()
    made = loop(problem, "hybrid")
    for _ in range(3):
        made.advance(plant, after)
    assert made.failed == 0
    assert len(made.seconds) == len(made.solving) == 3
    assert all(0 < inside < whole for inside, whole in zip(made.solving, made.seconds, strict=True))

    mpc = import_module(f"versus.{problem}_hybrid").controller()
    plan = mpc.step(plant.x0).plan
    peer = ca.nlpsol("peer", "ipopt", dict(plan.program.nlp), PEER)
    found = peer(**plan.program.arguments)
    least = plan.objective - plan.costs.get("soft limits", 0.0)  # that of zeros is some 1e-7
    assert least == pytest.approx(float(found["f"]), rel=1e-6)


@pytest.mark.parametrize("problem", PLANTS)
def test_a_plan_foretells_the_plant(problem):
    """Model and plant are written apart: one interval later they are at the same state."""
    plant = PLANTS[problem]
    plan = import_module(f"versus.{problem}_hybrid").controller().step(plant.x0).plan
    reached = plant.after()(np.array(plant.x0, dtype=float), plan.controls[:, 0])
    np.testing.assert_allclose(plan.states[:, 1], reached, rtol=1e-3, atol=2e-3)


def test_the_cost_of_a_loop_is_that_of_the_controller():
    """The first stage of the plan's cost: the plant's cost of the first step."""
    plant = PLANTS["quadrotor"]
    made = loop("quadrotor", "hybrid")
    made.advance(plant, plant.after())
    x, u = np.array(plant.x0, dtype=float), made.before
    assert made.cost == pytest.approx(0.1 * np.sum((u - 2.4525) ** 2), abs=1e-12)
    assert plant.cost(x, u, None, np.pi / 2) == pytest.approx(20 * 1.5**2 + made.cost)


def test_lines_are_those_of_code(tmp_path):
    file = tmp_path / "some.py"
    text = '"""A module."""\n\n# why\nimport os\n\n\ndef f():\n    """Two\n    lines."""\n    # x\n'
    file.write_text(text + '    return os.sep  # "no docstring"\n')
    assert lines(file) == 3


def test_a_tool_that_fails_is_said_and_the_others_run(monkeypatch):
    def broken(*_):
        raise RuntimeError("broken\nfor once")

    monkeypatch.setitem(MAKERS, "rockit", broken)
    monkeypatch.setitem(sys.modules, "versus.cstr_rockit", ModuleType("cstr_rockit"))
    loops, said = run("cstr", [("hybrid", ""), ("rockit", "")], 2)
    assert said == ["cstr, rockit: for once"]
    (row,) = rows(loops, [])
    assert row[:2] == ["cstr", "this package"]
    assert float(row[7]) == 1.0


def test_the_page_counts_lines_as_the_script_does():
    found = [line for line in PAGE.splitlines() if re.match(rf"\| ({'|'.join(PLANTS)}) \|", line)]
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in found]
    tools = {title: tool for tool, title in TITLES.items()}
    shown = {(c[0], tools[c[1].split(",")[0]]): int(c[2]) for c in cells}
    assert shown == {(p, t): lines(HERE / f"{p}_{t}.py") for p in PLANTS for t in TOOLS}
    for problem in PLANTS:
        assert shown[problem, "hybrid"] < min(shown[problem, t] for t in ("dompc", "rockit"))
