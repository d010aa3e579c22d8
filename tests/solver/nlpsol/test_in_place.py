"""A library that asks CasADi for IPOPT gets this package, and CasADi is put back afterwards."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import casadi as ca
import pytest
from support.paths import DOCS

import casadi_hybrid
from casadi_hybrid.solver.nlpsol.solver import NlpSolver

PAGE = DOCS / "clients.md"
LIBRARY = """
import casadi as cas
from casadi import nlpsol

class Opti(cas.Opti):  # as AeroSandbox does
    def shortest(self, solver):
        x = self.variable()
        self.minimize((x - 2) ** 2)
        self.subject_to(x <= 1)
        self.solver(solver, {"print_time": False}, {"print_level": 0, "sb": "yes"})
        return self.solve()

class Stack:  # as rockit does
    def __init__(self):
        self.opti = cas.Opti()

def make(solver, name="csnlp"):  # as csnlp does
    x = cas.MX.sym("x")
    return cas.nlpsol(name, solver, {"x": x, "f": (x - 2) ** 2}, {"print_time": False})
"""


@pytest.fixture
def own() -> Iterator[None]:
    kept = ca.nlpsol, ca.Opti
    yield
    ca.nlpsol, ca.Opti = kept


def library() -> ModuleType:
    made = ModuleType("rockit")
    exec(LIBRARY, vars(made))
    return made


@pytest.mark.usefixtures("own")
def test_in_place_replaces_ipopt_alone():
    before = ca.nlpsol, ca.Opti
    with casadi_hybrid.in_place() as here:
        theirs = library()
        found = theirs.Opti().shortest("ipopt")
        assert "KKT point" in found.explain()
        assert found.stats()["point_status"] == "KKT_POINT"
        assert isinstance(theirs.Stack().opti, casadi_hybrid.Opti)
        assert isinstance(theirs.make("ipopt"), NlpSolver)
        assert not isinstance(theirs.make("sqpmethod"), NlpSolver)
        assert here.made == {
            "Opti with ipopt": 1, "nlpsol with ipopt": 1, "nlpsol with sqpmethod": 1
        }  # fmt: skip
    assert (ca.nlpsol, ca.Opti) == before
    assert not isinstance(library().make("ipopt"), NlpSolver)


@pytest.mark.usefixtures("own")
def test_lines_of_the_page_replace_ipopt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """With a file of the library's name, that asks as the library does."""
    (lines,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "rockit.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "rockit", raising=False)
    names: dict[str, Any] = {}
    exec(lines, names)
    solver = names["rockit"].make("ipopt")
    assert isinstance(solver, NlpSolver)
    assert float(solver(ubx=1)["x"]) == pytest.approx(1)
    assert names["here"].made == {"nlpsol with ipopt": 1}
    sys.modules.pop("rockit")
