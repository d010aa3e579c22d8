"""Tables of pages name what exists; lines and programs that stand in sentences run."""

import importlib.util
import re
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import breaks
import casadi as ca
import pytest
from support.newer_casadi import NEEDS_3_8
from support.paths import ROOT

from casadi_hybrid.paper.experiment.experiment import BUDGET, LONG
from casadi_hybrid.paper.experiment.fitted import SEEDS
from casadi_hybrid.paper.rules import GridSplit
from casadi_hybrid.solver.options import foreign
from casadi_hybrid.solver.options.options import NlpOptions

PACKAGE = ROOT / "casadi_hybrid"
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
DOCS = sorted((ROOT / "docs").glob("*.md"))


def blocks(text: str) -> list[str]:
    """The Python that a page shows."""
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def table_rows(text: str) -> list[list[str]]:
    return [row.strip("| ").split(" | ") for row in text.splitlines() if row.startswith("| ")]


def test_paper_page_names_tests_and_files_that_exist():
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)*test_\w+\.py)(?:::(\w+))?`", page))
    texts = {path.name: path.read_text(encoding="utf-8") for path in TESTS}
    for file, name in named:
        assert f"def {name}" in texts[Path(file).name], f"{file} has no {name}"
    rows = [row for row in table_rows(page) if len(row) == 4]
    items = [row for row in rows if row[3] not in ("held by", "---")]
    for place, _, file, held in items:
        assert (PACKAGE / file.strip("`")).is_file(), place
        assert "`" in held, place
    places = " ".join(place for place, *_ in items)
    theorems = [f"Theorem {i}" for i in range(1, 6)]
    for item in ("(S1)", "(S2)", "(S3)", "(P)", "Algorithm 1", "Corollary 1", *theorems):
        assert item in places
    for one in breaks.BREAKS:
        assert f"| {one.name} | `{one.file}` |" in page


def test_notation_names_what_its_files_have():
    page = (ROOT / "docs" / "mathematics.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^## Notation\n(.*?)^## ", page, re.DOTALL | re.MULTILINE)
    for symbol, names, files, _ in table_rows(table)[1:]:
        paths = [PACKAGE / name for name in re.findall(r"`([\w/]+\.(?:py|h))`", files)]
        assert paths, symbol
        text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"\b{name}\b", text), f"{symbol}: {files} has no {name}"


def lines_of_control() -> list[str]:
    """The lines of code in the table below the formulas that stand alone."""
    page = (ROOT / "docs" / "control.md").read_text(encoding="utf-8")
    table = page.partition("| in the formula |")[2].partition("\n\n")[0]
    lines = [line for line in re.findall(r"`([^`]+)`", table) if "(" in line and "…" not in line]
    return [line for line in lines if not line.startswith("duration=")]


def test_lines_beside_formulas_run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert lines_of_control()
    for line in lines_of_control():
        names: dict[str, Any] = {}
        exec("from casadi_hybrid.control import *", names)
        fixed = "lambda t" in line or "Scenarios" in line
        exec(PLANT.replace("Free(1.0, 0.1, 5)", "1.0") if fixed else PLANT, names)
        if "top" in line and not line.startswith("top ="):
            exec('top = ocp.parameter("top", 1.0)', names)
        if "goal=" in line:
            exec('goal = ocp.reference("goal")', names)
        made = eval(line, names) if "=" not in line.partition("(")[0] else exec(line, names)
        ocp = names["ocp"]
        if isinstance(made, names["MPC"]):
            made.prepare([0.5])  # a first step builds functions, in more than its deadline
            assert made.step([0.5]).status == "solved", line
        elif hasattr(made, "solve"):
            assert made.solve().success, line
        elif not ocp.closed:
            assert ocp.solve().success, line
        else:
            assert getattr(made, "success", True), line
    assert list((tmp_path / "c").glob("*_control.h"))


PLANT = """
def stated(x0=0.5):
    model = Model("plant")
    x = model.state("x", lower=-1, upper=1)
    u = model.control("u", lower=-1, upper=1)
    mass = model.parameter("mass", 1.0)
    model.rates(x=u / mass)
    ocp = OptimalControl(model, duration=Free(1.0, 0.1, 5), intervals=10)
    ocp.initial(x=x0)
    ocp.minimize("all", integral=x**2 + u**2, end=0.1 * ocp.duration)
    return ocp, x, u

ocp, x, u = stated()
up, down = stated()[0], stated()[0]
down.fixed.clear()
"""


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{p.name}" for p in DOCS)])
def test_names_of_package_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in re.findall(r"`(casadi_hybrid(?:\.\w+)+)`", text):
        module, _, last = name.rpartition(".")
        assert importlib.util.find_spec(name if last.islower() else module), name
        assert last.islower() or hasattr(importlib.import_module(module), last), name


def test_each_option_of_nlpsol_has_its_row():
    page = (ROOT / "docs" / "from_ipopt.md").read_text(encoding="utf-8")
    rows = {row[0].strip("`"): row[1:] for row in table_rows(page) if row[0].startswith("`")}
    defaults = {field.name: f"`{field.default}`" for field in fields(NlpOptions)}
    assert {name: row[0] for name, row in rows.items()} == defaults
    of_ipopt = {name: re.findall(r"`(\w+)`", row[2]) for name, row in rows.items()}
    for theirs, ours in foreign._IPOPT.items():
        assert theirs in of_ipopt[ours] or (theirs == ours and rows[ours][2].startswith("same"))
    own_names = {name for name, row in rows.items() if row[2].startswith("same")}
    assert own_names <= set(foreign._IPOPT)


def test_lines_for_do_mpc_run():
    page = (ROOT / "docs" / "from_others.md").read_text(encoding="utf-8")
    (lines,) = [block for block in blocks(page) if "mpc.setup()" in block]
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    owners = {
        name: SimpleNamespace(
            setup=lambda: None,
            nlp={"x": x, "f": ca.sumsqr(x - p), "g": x[0] + x[1], "p": p},
            settings=SimpleNamespace(nlpsol_opts={"ipopt.print_level": 0, "ipopt.tol": 1e-9}),
        )
        for name in ("mpc", "mhe")
    }
    exec(lines, dict(owners))
    for owner in owners.values():
        found = owner.S(x0=[0, 0], p=2, lbx=-5, ubx=5, lbg=2, ubg=2, lam_g0=[0], lam_x0=[0, 0])
        assert found["x"].full().ravel() == pytest.approx([1, 1])
        assert owner.S.stats()["success"]


def test_snippets_of_readme_run(capsys) -> None:
    names: dict[str, Any] = {}
    for text in blocks((ROOT / "README.md").read_text(encoding="utf-8")):
        exec(compile(text, "README.md", "exec"), names)
    assert names["solver"].stats()["success"]
    assert names["run"].success.all()
    assert "40 solved" in capsys.readouterr().out


def test_paper_page_names_the_fitted_constants():
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    section = " ".join(text.partition("## Readings")[2].partition("\n## ")[0].split())
    grid = GridSplit()
    strengths = ", ".join(f"{strength:g}" for strength in grid.strengths)
    assert f"{{{strengths}}} × {len(grid.thetas)}" in section
    assert f"step {BUDGET}" in section
    assert f"{LONG:,} steps" in section
    assert f"{['three', 'four', 'five'][len(SEEDS) - 3]} seeds a level" in section


def test_tests_left_out_before_casadi_3_8_exist():
    text = "".join(path.read_text(encoding="utf-8") for path in TESTS)
    for name in NEEDS_3_8:
        assert f"def {name.partition('[')[0]}(" in text, name
