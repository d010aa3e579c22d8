"""The folders of the core in C: each includes and calls only itself and those before it.

Includes are those of the preprocessor, calls those of the object files.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.judges.circles import circle

from casadi_hybrid.core import library

ROOT = Path(library.__file__).parent / "src"
FOLDERS = (
    *("linear_algebra", "ldl", "problem", "primal_dual", "globalization", "feasibility"),
    *("active_set", "barrier", "driver"),
)
FOR_ALL = {"hybrid.h", "ldl.h", "constants.h"}
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.[ch]"))
SYMBOL = re.compile(r"[0-9a-f]+ g.{5}F \.text\.\S+\s+[0-9a-f]+ (?:\.hidden )?(\S+)")
CALL = re.compile(r"[0-9a-f]+ R_\w+_(?:PLT32|CALL26|JUMP26)\s+(\w+)")
Edges = set[tuple[str, str]]


def against_order(edges: Edges) -> list[str]:
    """Edges that lead from a folder to one after it."""
    rank = {file: FOLDERS.index(file.partition("/")[0]) for file in FILES if file not in FOR_ALL}
    return sorted(
        f"{file} needs {other}"
        for file, other in edges
        if other not in FOR_ALL and (file in FOR_ALL or rank[other] > rank[file])
    )


def test_folders_include_those_before(compiler: str) -> None:
    command = [compiler, "-std=c99", "-MM", "-I.", *FILES]
    rules = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    edges: Edges = set()
    for rule in rules.replace("\\\n", " ").splitlines():
        file, *headers = (word.removeprefix("./") for word in rule.partition(":")[2].split())
        edges |= {(file, header) for header in headers}
    assert {header for _, header in edges} <= set(FILES)
    assert not against_order(edges)
    assert not circle(edges)


@pytest.fixture(scope="module")
def calls(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Edges:
    """(file:function, file:function that it calls), by the sections of the object files."""
    objdump = shutil.which("objdump")
    if objdump is None:
        pytest.skip("there is no objdump")
    folder, sources = tmp_path_factory.mktemp("objects"), [f for f in FILES if f.endswith(".c")]
    visible = "-Dstatic=", "-Dinline=", "-fPIC"  # else no symbol stands at calls within a file
    flags = "-std=c99", "-O0", *visible, "-ffunction-sections", f"-I{ROOT}", "-c"
    subprocess.run([compiler, *flags, *(ROOT / file for file in sources)], cwd=folder, check=True)
    tables = {}
    for file in sources:
        command = [objdump, "-tr", f"{Path(file).stem}.o"]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        if "elf" not in done.stdout:
            pytest.skip("the object files have another format")
        tables[file] = done.stdout
    symbols = {file: SYMBOL.findall(table) for file, table in tables.items()}
    home = {name: file for file, names in symbols.items() for name in names}
    edges: Edges = set()
    for file, table in tables.items():
        local = dict.fromkeys(symbols[file], file)
        for section in table.split("RELOCATION RECORDS FOR [.text.")[1:]:
            caller, _, relocations = section.partition("]")
            for called in CALL.findall(relocations):
                where = local.get(called) or home.get(called)
                edges |= {(f"{file}:{caller}", f"{where}:{called}")} if where else set()
    return edges


def test_folders_call_those_before(calls: Edges) -> None:
    files = {(one.partition(":")[0], other.partition(":")[0]) for one, other in calls}
    assert len(files) > 100
    assert not against_order(files)
    assert not circle({(one, other) for one, other in files if one != other})


def test_stack_is_bounded(calls: Edges) -> None:
    """No function calls itself, not even by a detour."""
    assert not circle(calls)


def test_file_names_are_unique() -> None:
    """An export has the files of all folders side by side."""
    names = [Path(file).name for file in FILES]
    assert len(names) == len(set(names))
