"""The packages and their folders import one way; the page on the architecture tells the truth."""

import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path

import casadi as ca
import pytest
from support.judges.circles import circle
from support.paths import ROOT

import casadi_hybrid
from casadi_hybrid.control import MPC, Model, OptimalControl

TOP = ROOT
ROOT = TOP / "casadi_hybrid"
INSTALLED = Path(casadi_hybrid.__file__).parent
PACKAGES = "utils", "problem", "core", "solver", "verify", "paper", "control", "cli"
"""Each may import those before it; the verifier only the first two."""
LARGEST = 12
PAGE = (TOP / "docs" / "architecture.md").read_text(encoding="utf-8")


def modules() -> dict[str, Path]:
    """Every module by its dotted name below the package."""
    names = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the package that a file imports, in functions and for types alone too."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: imports are absolute here"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_module = inner.removeprefix("casadi_hybrid.") in known
                names.append(inner if is_module else str(node.module))
    ours = (name.removeprefix("casadi_hybrid.") for name in names if name.startswith("casadi_hyb"))
    return {name for name in ours if name in known and name}


KNOWN = modules()
EDGES = {(a, b) for a, path in KNOWN.items() for b in imports(path, KNOWN) if a and a != b}


def folder(module: str) -> str:
    return KNOWN[module].parent.relative_to(ROOT).as_posix()


def test_modules_have_no_circle() -> None:
    assert not circle(EDGES)


def test_folders_have_no_circle() -> None:
    """A package's ``__init__`` is left out: it only offers the names of its folders."""
    inside = {(a, b) for a, b in EDGES if KNOWN[a].name != "__init__.py"}
    assert not circle({(folder(a), folder(b)) for a, b in inside if folder(a) != folder(b)})


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_those_before(package: str) -> None:
    before = PACKAGES[: 2 if package == "verify" else PACKAGES.index(package)]
    used = {b.partition(".")[0] for a, b in EDGES if a.partition(".")[0] == package}
    assert used <= {*before, package}


def test_folders_have_twelve_files_at_most() -> None:
    folders = [path for path in ROOT.rglob("*") if path.is_dir() and path.name != "_lib"]
    sizes = {
        str(path.relative_to(ROOT)): sum(file.suffix in {".py", ".c", ".h"} for file in files)
        for path in folders
        if (files := list(path.iterdir()))
    }
    assert max(sizes.values()) <= LARGEST, sizes


def test_page_lists_the_packages() -> None:
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert folders == set(PACKAGES)
    section = PAGE.partition("## The packages")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == PACKAGES


def test_public_names_are_shown_somewhere() -> None:
    """In a scenario, a notebook or on a page: a name that nobody needs is not offered."""
    shown = [
        TOP / "README.md",
        *(TOP / "docs").glob("*.md"),
        *(TOP / "scenarios").glob("*.py"),
        *(TOP / "notebooks").glob("*.ipynb"),
    ]
    text = "\n".join(path.read_text(encoding="utf-8") for path in shown)
    assert [name for name in casadi_hybrid.__all__ if name not in text] == []
    assert len(casadi_hybrid.__all__) <= 20


def trace(call: Callable[[], object]) -> tuple[list[str], int]:
    """Files of the package in the order of their first call, and the number of Python calls."""
    files: list[str] = []
    count = 0

    def profile(frame: object, event: str, _: object) -> None:
        nonlocal count
        path = Path(frame.f_code.co_filename)  # type: ignore[attr-defined]
        if event == "call" and path.is_relative_to(INSTALLED):
            count += 1
            name = path.relative_to(INSTALLED).as_posix()
            if name not in files:
                files.append(name)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return files, count


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
    ("title", "make", "most"),
    [
        ("A call of a `Solver`", solver_call, 50),
        ("A call of a solver made by `nlpsol`", nlpsol_call, 10),
        ("A step of an `MPC`", mpc_step, 150),
    ],
)
def test_traces_are_those_of_the_page(
    title: str, make: Callable[[], Callable[[], object]], most: int
) -> None:
    call = make()
    for _ in range(3):  # the first calls import, plan and allocate
        call()
    files, count = trace(call)
    (block,) = re.findall(rf"^## {re.escape(title)}\n.*?```text\n(.*?)```", PAGE, re.DOTALL | re.M)
    assert [line.split()[0] for line in block.splitlines()] == files
    assert count <= most
