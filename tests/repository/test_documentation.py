"""Code on the pages and in docstrings runs, and prints the text below it."""

import doctest
import importlib
import inspect
import pkgutil
import re
from types import SimpleNamespace
from typing import Any

import casadi as ca
import pytest
from support.cases.pages import PAGES, blocks, python_of, table

import casadi_hybrid

WITH_PYTHON = [page for page in PAGES if python_of(page)]
# Run below, in test_scenarios, or in tests of the control package.
ELSEWHERE = {"README.md", "scenarios/README.md", "docs/embedded.md"}
NOT_INSTALLED = "mpc.setup()", "import rockit"
"""Lines of blocks for libraries that are not installed; other tests run them with substitutes."""
WRITTEN = {
    "docs/control.md": ["swing.npz", "swing.pdf"],
    "docs/recipes.md": ["controller", "tank.csv", "track.csv"],
    "docs/studies.md": ["bend"],
    "docs/troubleshooting.md": ["nlpsol.html", "residuals.svg", "solve.html"],
}
"""Files that the Python of a page writes."""
NOT_PRINTED = {"docs/architecture.md", "docs/studies.md"}
"""Pages with trees of folders and outputs of commands."""


def lines(text: str) -> list[str]:
    """Printed lines without the parts that depend on the last bit: numbers, the largest of many."""
    changes = re.compile(r";? largest at [^\s);,]+|[-+]?\d[\d.]*(e[-+]\d+)?")
    return [" ".join(changes.sub("", line).split()) for line in text.splitlines()]


@pytest.mark.parametrize("page", [page for page in WITH_PYTHON if page not in ELSEWHERE])
def test_blocks_run_and_print_what_stands_below(page, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    printed = ""
    for number, (kind, text) in enumerate(blocks(page), start=1):
        if any(line in text for line in NOT_INSTALLED):
            continue
        if kind == "python":
            exec(compile(text, f"{page}, block {number}", "exec"), names)
            printed = capsys.readouterr().out
        elif kind == "text" and page not in NOT_PRINTED:
            assert lines(printed) == lines(text), f"{page}, block {number}"
    assert sorted(path.name for path in tmp_path.iterdir()) == WRITTEN.get(page, [])


def test_every_block_names_its_language():
    assert set(WITH_PYTHON) >= ELSEWHERE
    kinds = {kind for page in PAGES for kind, _ in blocks(page)}
    assert kinds <= {"python", "sh", "bash", "text", "algorithm", "c", "bibtex"}


def test_snippets_of_readme_run() -> None:
    names: dict[str, Any] = {}
    for text in python_of("README.md"):
        exec(compile(text, "README.md", "exec"), names)
    assert names["solver"].stats()["success"]
    assert names["run"].success.all()


def test_lines_for_do_mpc_run():
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    owners = {
        name: SimpleNamespace(
            setup=lambda: None,
            nlp={"x": x, "f": ca.sumsqr(x - p), "g": x[0] + x[1], "p": p},
            settings=SimpleNamespace(nlpsol_opts={"ipopt.print_level": 0, "ipopt.tol": 1e-9}),
        )
        for name in ("mpc", "mhe")
    }
    (lines,) = [block for block in python_of("docs/from_others.md") if "mpc.setup()" in block]
    exec(lines, dict(owners))
    for owner in owners.values():
        solution = owner.S(x0=[0, 0], p=2, lbx=-5, ubx=5, lbg=2, ubg=2, lam_g0=[0], lam_x0=[0, 0])
        assert solution["x"].full().ravel() == pytest.approx([1, 1])
        assert owner.S.stats()["success"]


PLANT = """
from casadi_hybrid.control import *

def stated(duration):
    model = Model("plant")
    x, u = model.state("x", lower=-1, upper=1), model.control("u", lower=-1, upper=1)
    model.rates(x=u / model.parameter("mass", 1.0))
    ocp = OptimalControl(model, duration=duration, intervals=10)
    ocp.initial(x=0.5)
    ocp.minimize("all", integral=x**2 + u**2)
    return ocp, x, u

ocp, x, u = stated(1.0)
up, down = stated(Free(1.0, 0.1, 5))[0], stated(1.0)[0]
down.fixed.clear()
"""


def test_lines_beside_formulas_run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    cells = "".join(code for _, code in table("docs/control.md", "The problem in formulas"))
    lines = [line for line in re.findall(r"`([^`]+)`", cells) if "(" in line and "…" not in line]
    assert lines
    for line in lines:
        names: dict[str, Any] = {}
        exec(PLANT, names)
        if "top" in line and not line.startswith("top"):
            exec('top = ocp.parameter("top", 1.0)', names)
        if "goal=" in line:
            exec('goal = ocp.reference("goal")', names)
        is_statement = "=" in line.partition("(")[0]
        exec(line if is_statement else f"value = {line}", names)
        ocp, value = names["ocp"], names.get("value")
        answer = value if hasattr(value, "success") or ocp.closed else ocp.solve()
        assert getattr(answer, "success", True), line
    assert list((tmp_path / "c").glob("*_control.h"))


class Finder(doctest.DocTestFinder):
    """Finds the examples of decorated functions too."""

    def _from_module(self, module: Any, thing: Any) -> bool:
        return super()._from_module(module, inspect.unwrap(thing))


def test_examples_of_docstrings_run():
    runner = doctest.DocTestRunner()
    for module in pkgutil.walk_packages(casadi_hybrid.__path__, "casadi_hybrid."):
        if not module.name.endswith("__main__"):
            for test in Finder(exclude_empty=True).find(importlib.import_module(module.name)):
                runner.run(test)
    results = runner.summarize(verbose=False)
    assert results.attempted
    assert not results.failed
