"""The rooms of the package: data goes one way, and no module imports itself by a detour."""

import ast
from pathlib import Path

from test_core_folders import circle

import casadi_hybrid

ROOT = Path(__file__).parents[1] / "casadi_hybrid"
# Each may import those before it, and itself.
ROOMS = (
    "basics", "problem", "point", "result", "engine", "session", "solver", "verify", "casadi_api",
    "plotting", "iterations", "control", "paper", "claims", "study", "cli",
)  # fmt: skip
LARGEST = 18


def modules() -> dict[str, Path]:
    """Every module by the parts of its name after the package's, joined by dots."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


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
                there = inner.removeprefix("casadi_hybrid.") in known
                names.append(inner if there else node.module)
    ours = (name.removeprefix("casadi_hybrid.") for name in names if name.startswith("casadi_hyb"))
    return {name for name in ours if name in known and name}


def test_no_circle_of_imports() -> None:
    known = modules()
    of = {a: imports(path, known) for a, path in known.items() if a}
    assert not circle({(a, b) for a, imported in of.items() for b in imported - {a}})


def test_a_room_is_small_enough_to_see() -> None:
    folders = [ROOT, *(path for path in ROOT.rglob("*") if path.is_dir())]
    sizes = {str(folder): len(list(folder.glob("*.py"))) for folder in folders}
    assert max(sizes.values()) <= LARGEST, sizes


def test_every_public_name_is_shown_somewhere() -> None:
    """In a scenario, a notebook or on a page: what nobody needs is not offered at the top."""
    top = ROOT.parent
    shown = [
        top / "README.md",
        *(top / "docs").glob("*.md"),
        *(top / "scenarios").glob("*.py"),
        *(top / "notebooks").glob("*.py"),
    ]
    text = "\n".join(path.read_text(encoding="utf-8") for path in shown)
    assert [name for name in casadi_hybrid.__all__ if name not in text] == []
    assert len(casadi_hybrid.__all__) <= 20
