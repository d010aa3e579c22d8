"""Make the notebooks from their text twins: ``python notebooks/build.py``.

A twin is a Python script in the percent format: ``# %%`` starts a code cell and ``# %% [markdown]``
a text cell, whose lines are comments. The twin is the source; the ``.ipynb`` beside it is the same
cells with the output of one run, so that it can be read without running it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

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


def main() -> int:
    """Build every notebook."""
    for twin in twins():
        notebook = to_notebook(twin)
        execute(notebook, HERE)
        target = twin.with_suffix(".ipynb")
        nbformat.write(notebook, target)
        print(f"{target.name}: {len(notebook.cells)} cells, {target.stat().st_size / 1024:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
