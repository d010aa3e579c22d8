"""Make the notebooks from their text twins: ``python notebooks/build.py``, or ``… 03 05`` for some.

A twin is a Python script in the percent format: ``# %%`` starts a code cell and ``# %% [markdown]``
a text cell, whose lines are comments. The twin is the source; the ``.ipynb`` beside it is the same
cells with the output of one run, so that it can be read without running it. ``--check`` runs them
in a folder that goes away, writes nothing, and fails where a cell does or a notebook is not the
text of its twin.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

HERE = Path(__file__).resolve().parent
MARK = "# %%"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def twins() -> list[Path]:
    """Return the twins in order."""
    return sorted(HERE.glob("[0-9]*.py"))


def read_cells(twin: Path) -> list[tuple[str, str]]:
    """Return the kind, "code" or "markdown", and the source of each cell of a twin."""
    cells: list[tuple[str, list[str]]] = []
    for line in twin.read_text(encoding="utf-8").splitlines():
        if line.startswith(MARK):
            cells.append(("markdown" if line[len(MARK) :].strip() == "[markdown]" else "code", []))
        elif cells:
            kind, lines = cells[-1]
            lines.append(line.removeprefix("#").removeprefix(" ") if kind == "markdown" else line)
        elif line.strip():
            raise ValueError(f"{twin.name}: text before the first '{MARK}' belongs to no cell")
    return [(kind, "\n".join(lines).strip("\n")) for kind, lines in cells]


def to_notebook(twin: Path) -> Any:
    """Return the notebook of a twin, without outputs."""
    make = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}
    cells = [
        make[kind](source, id=f"cell-{i:02d}") for i, (kind, source) in enumerate(read_cells(twin))
    ]
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})


def execute(notebook: Any, folder: Path) -> None:
    """Run a notebook in place, with ``folder`` as its working directory."""
    # Times of the run are of no use to a reader and would change with every build.
    NotebookClient(
        notebook,
        timeout=120,
        kernel_name=KERNEL["name"],
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    notebook.metadata.pop("language_info", None)


def check(twin: Path) -> str:
    """Run a notebook without keeping it; return what is wrong, or nothing."""
    notebook = to_notebook(twin)
    with tempfile.TemporaryDirectory() as folder:
        try:
            execute(notebook, Path(folder))
        except CellExecutionError as error:
            return f"a cell failed: {error}"
    stored = nbformat.read(twin.with_suffix(".ipynb"), as_version=4)
    if [(cell.cell_type, cell.source) for cell in stored.cells] != read_cells(twin):
        return "is not the text of its twin; build it"
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    """Build the notebooks named, or all of them."""
    parser = argparse.ArgumentParser(description="Make the notebooks from their text twins.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginning of a name, such as 03")
    parser.add_argument("--check", action="store_true", help="run them and write nothing")
    arguments = parser.parse_args(argv)
    for name in arguments.names:
        if not any(twin.stem.startswith(name) for twin in twins()):
            known = ", ".join(twin.stem for twin in twins())
            parser.error(f"{name!r} begins no notebook's name; there are {known}")
    chosen = tuple(arguments.names) or ("",)
    failed = 0
    for twin in (twin for twin in twins() if twin.stem.startswith(chosen)):
        began = time.perf_counter()
        if arguments.check:
            wrong = check(twin)
            failed += bool(wrong)
            print(f"{twin.stem}: {wrong or 'runs'}, {time.perf_counter() - began:.1f} s")
            continue
        notebook = to_notebook(twin)
        execute(notebook, HERE)
        target = twin.with_suffix(".ipynb")
        nbformat.write(notebook, target)
        print(f"{target.name}: {len(notebook.cells)} cells, {target.stat().st_size / 1024:.0f} kB")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
