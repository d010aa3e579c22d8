"""A library that asks CasADi for IPOPT gets this package, and CasADi is put back afterwards."""

import sys

import casadi as ca
import pytest
from support.paths import DOCS

import casadi_hybrid
from casadi_hybrid.solver.nlpsol.solver import NlpSolver

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

def opti():  # as rockit does
    return cas.Opti()

def make(solver):  # as csnlp does
    x = cas.MX.sym("x")
    return cas.nlpsol("csnlp", solver, {"x": x, "f": (x - 2) ** 2}, {"print_time": False})
"""


@pytest.fixture
def casadi_as_before():
    before = ca.nlpsol, ca.Opti
    yield before
    ca.nlpsol, ca.Opti = before


def library():
    names = {}
    exec(LIBRARY, names)
    return names


def test_in_place_replaces_ipopt_alone(casadi_as_before):
    with casadi_hybrid.in_place() as here:
        theirs = library()
        solution = theirs["Opti"]().shortest("ipopt")
        assert solution.stats()["point_status"] == "KKT_POINT"
        assert isinstance(theirs["opti"](), casadi_hybrid.Opti)
        solver = theirs["make"]("ipopt")
        assert isinstance(solver, NlpSolver)
        assert float(solver(ubx=1)["x"]) == pytest.approx(1)
        assert not isinstance(theirs["make"]("sqpmethod"), NlpSolver)
        made = {"Opti with ipopt": 1, "nlpsol with ipopt": 1, "nlpsol with sqpmethod": 1}
        assert here.made == made
    assert (ca.nlpsol, ca.Opti) == casadi_as_before
    assert not isinstance(library()["make"]("ipopt"), NlpSolver)


def test_lines_of_the_page_replace_ipopt(casadi_as_before, monkeypatch, tmp_path):
    """A file of the library's name asks as the library does."""
    blocks = (DOCS / "from_others.md").read_text("utf-8").split("```python\n")[1:]
    (lines,) = [block.split("```")[0] for block in blocks if "import rockit" in block]
    (tmp_path / "rockit.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)
    names = {}
    exec(lines, names)
    sys.modules.pop("rockit")
    assert isinstance(names["rockit"].make("ipopt"), NlpSolver)
    assert names["here"].made == {"nlpsol with ipopt": 1}
    names["here"].restore()
    assert (ca.nlpsol, ca.Opti) == casadi_as_before
