"""The folders of the core in C: each includes and calls only itself and those before it."""

import re
from collections.abc import Iterator
from pathlib import Path

from support.judges.circles import circle

import casadi_hybrid

ROOT = Path(casadi_hybrid.__file__).parent / "core" / "src"
FOLDERS = (
    "linear_algebra", "ldl", "problem", "primal_dual", "globalization", "feasibility", "active_set",
    "barrier", "driver",
)  # fmt: skip
HEADERS = {"hybrid.h", "ldl.h", "constants.h"}  # for all folders
INCLUDED = re.compile(r'^#include "([\w./]+)"', re.MULTILINE)
DEFINED = re.compile(
    r"^(static )?(?:inline )?(?:const )?[a-z]\w*(?: \w+)*?[ *]+(\w+)\([^;{}]*\)\s*\{", re.MULTILINE
)
CALLED = re.compile(r"(?<![>.])\b([a-z]\w+)\(")  # not through a pointer
Edges = set[tuple[str, str]]


def sources() -> dict[str, str]:
    """The text of every file without its comments, by its path below the core's folder."""
    return {
        str(path.relative_to(ROOT).as_posix()): re.sub(
            r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL
        )
        for path in ROOT.rglob("*.[ch]")
    }


def includes(texts: dict[str, str]) -> Edges:
    """(file, header that it includes)."""
    return {(file, header) for file, text in texts.items() for header in INCLUDED.findall(text)}


def functions(texts: dict[str, str]) -> Iterator[tuple[str, str, str, bool]]:
    """(file, function, its body, whether other files can call it)."""
    for file, text in texts.items():
        for found in DEFINED.finditer(text):
            end, depth = found.end(), 1
            while depth:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            public = not found[1] or file.endswith(".h")
            yield file, found[2], text[found.end() : end], public


def calls(texts: dict[str, str]) -> tuple[Edges, Edges]:
    """(file, file that it calls), and (function, function that it calls)."""
    known = list(functions(texts))
    home = {name: file for file, name, _, public in known if public}
    own = {(file, name) for file, name, _, _ in known}
    of_files: Edges = set()
    of_functions: Edges = set()
    for file, name, body, _ in known:
        for called in CALLED.findall(body):
            where = file if (file, called) in own else home.get(called)
            if where is not None:
                of_files.add((file, where))
                of_functions.add((f"{file}:{name}", f"{where}:{called}"))
    return of_files, of_functions


def against_the_order(edges: Edges) -> list[str]:
    """Those that lead from a folder to one after it."""
    return sorted(
        f"{file} needs {other}"
        for file, other in edges
        if other not in HEADERS and (file in HEADERS or rank(other) > rank(file))
    )


def rank(file: str) -> int:
    return FOLDERS.index(file.partition("/")[0])


def test_a_folder_includes_those_before_it() -> None:
    texts = sources()
    edges = includes(texts)
    assert {header for _, header in edges} <= set(texts)
    assert not against_the_order(edges)
    assert not circle(edges)


def test_a_folder_calls_those_before_it() -> None:
    files, _ = calls(sources())
    assert not against_the_order(files)
    # What a header defines calls what it declares: such functions are seen to below.
    units = {edge for edge in files if edge[0] != edge[1] and all(f.endswith(".c") for f in edge)}
    assert not circle(units)


def test_no_function_calls_itself_by_a_detour() -> None:
    """So the stack has a bound."""
    _, edges = calls(sources())
    assert not circle(edges)


def test_what_is_found_are_the_calls() -> None:
    """The order is held by what regular expressions find."""
    texts = {
        "problem/a.c": "static int one(void) {\n    return two() + 1;\n}\n",
        "driver/b.c": "int two(void) {\n    if (x) { y(); }\n    return 2;\n}\n",
    }
    files, edges = calls(texts)
    assert files == {("problem/a.c", "driver/b.c")}
    assert edges == {("problem/a.c:one", "driver/b.c:two")}
    assert against_the_order(files) == ["problem/a.c needs driver/b.c"]
    back = {("driver/b.c", "problem/a.c")}
    assert not against_the_order(back)
    assert circle(files | back)
    real, _ = calls(sources())
    assert ("barrier/step.c", "globalization/filter.c") in real


def test_file_names_are_unique() -> None:
    """An export has the files of all folders side by side."""
    names = [file.rpartition("/")[2] for file in sources()]
    assert len(names) == len(set(names))
