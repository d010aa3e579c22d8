"""The packages and their folders import one way, and calls go the way that the page shows."""

import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi as ca
import pytest
from support.cases.pages import PAGES, table
from support.judges.circles import circle
from support.paths import ROOT

import casadi_hybrid
from casadi_hybrid.control import MPC, Model, OptimalControl

PACKAGE = ROOT / "casadi_hybrid"
INSTALLED = Path(casadi_hybrid.__file__).parent
PACKAGES = "utils", "problem", "core", "solver", "verify", "paper", "control", "cli"
"""Each may import those before it; the verifier only the first two."""
PAGE = "docs/architecture.md"


def modules() -> dict[str, Path]:
    """Every module by its dotted name below the package."""
    names = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


KNOWN = modules()


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, in functions and for types alone too."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: imports are absolute here"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names += [
                name if name.removeprefix("casadi_hybrid.") in KNOWN else str(node.module)
                for name in inner
            ]
    return {name.removeprefix("casadi_hybrid.") for name in names} & KNOWN.keys() - {""}


EDGES = {(a, b) for a, path in KNOWN.items() for b in imports(path) if a and a != b}


def test_modules_have_no_circle() -> None:
    assert not circle(EDGES)


def test_folders_have_no_circle() -> None:
    """A package's ``__init__`` is left out: it only offers the names of its folders."""
    folders = (
        (KNOWN[a].parent.as_posix(), KNOWN[b].parent.as_posix())
        for a, b in EDGES
        if KNOWN[a].name != "__init__.py"
    )
    assert not circle({(one, other) for one, other in folders if one != other})


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_those_before(package: str) -> None:
    before = PACKAGES[: 2 if package == "verify" else PACKAGES.index(package)]
    used = {b.partition(".")[0] for a, b in EDGES if a.partition(".")[0] == package}
    assert used <= {*before, package}


def test_folders_have_twelve_files_at_most() -> None:
    files = [path for path in PACKAGE.rglob("*.*") if path.suffix in {".py", ".c", ".h"}]
    folders = [path.parent for path in files]
    assert [folder for folder in {*folders} if folders.count(folder) > 12] == []


def test_page_lists_the_packages() -> None:
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(PACKAGES)
    assert tuple(cells[0].strip("`") for cells in table(PAGE, "The packages")) == PACKAGES


def test_public_names_are_shown_somewhere() -> None:
    """In a scenario, a notebook or on a page: a name that nobody needs is not offered."""
    examples = *(ROOT / "scenarios").glob("*.py"), *(ROOT / "notebooks").glob("*.ipynb")
    pages = (text for text in PAGES.values() if "\n::: " not in text)  # no reference
    text = "".join([*pages, *(path.read_text(encoding="utf-8") for path in examples)])
    assert [name for name in casadi_hybrid.__all__ if name not in text] == []
    assert len(casadi_hybrid.__all__) <= 20


def trace(call: Callable[[], object]) -> tuple[list[str], int]:
    """Files of the package in the order of their first call, and the number of Python calls."""
    files: dict[str, int] = {}

    def profile(frame: Any, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(INSTALLED):
            name = path.relative_to(INSTALLED).as_posix()
            files[name] = files.get(name, 0) + 1

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(files), sum(files.values())


def solver_call() -> Callable[[], object]:
    x = ca.SX.sym("x", 2)
    problem = casadi_hybrid.Problem(x=x, f=ca.sumsqr(x - 1), g=x[0] + x[1], lbg=0, ubg=1)
    solver = casadi_hybrid.Solver(problem)
    return lambda: solver.solve([0.0, 0.0])


def nlpsol_call() -> Callable[[], object]:
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "f": ca.sumsqr(x - 1), "g": x[0] + x[1]}
    solver = casadi_hybrid.nlpsol("solver", "hybrid", nlp)
    return lambda: solver(x0=[0.0, 0.0], lbg=0, ubg=1)


def mpc_step() -> Callable[[], object]:
    model = Model("cart")
    p, v = model.state("p"), model.state("v")
    force = model.control("force", lower=-1, upper=1)
    model.rates(p=v, v=force)
    problem = OptimalControl(model, duration=2.0, intervals=10)
    problem.minimize("cost", integral=p**2 + v**2 + force**2)
    problem.initial(p=1.0, v=0.0)
    controller = MPC(problem)
    return lambda: controller.step([1.0, 0.0])


@pytest.mark.parametrize(
    ("heading", "make", "most"),
    [
        ("A call of a `Solver`", solver_call, 50),
        ("A call of a solver made by `nlpsol`", nlpsol_call, 10),
        ("A step of an `MPC`", mpc_step, 150),
    ],
)
def test_traces_are_those_of_the_page(
    heading: str, make: Callable[[], Callable[[], object]], most: int
) -> None:
    call = make()
    for _ in range(3):  # the first calls import, plan and allocate
        call()
    files, count = trace(call)
    section = PAGES[PAGE].partition(f"\n## {heading}\n")[2]
    block = section.partition("```text\n")[2].partition("```")[0]
    assert re.findall(r"^\S+", block, re.MULTILINE) == files
    assert count <= most
