"""Run the notebooks and store their outputs: ``python notebooks/build.py`` or ``… 03 05``.

``--check`` runs them in a folder that goes away and writes nothing.
"""

from __future__ import annotations

import argparse
import base64
import io
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from PIL import Image

NOTEBOOKS = sorted(Path(__file__).resolve().parent.glob("[0-9]*.ipynb"))
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
COLOURS = 32
"""Colours of a stored picture: lines and text need few, and so a third of the bytes."""


def execute(notebook: Any) -> None:
    """Run a notebook in place, in a folder of its own, and leave out what changes with each run."""
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=120, record_timing=False, resources=resources).execute()
        left_behind = [path.name for path in Path(folder).iterdir()]
    if left_behind:
        raise ValueError(f"cells left files behind: {', '.join(left_behind)}")
    notebook.metadata = {"kernelspec": KERNEL}
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number:02d}", {}
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = with_few_colours(output.data["image/png"])


def with_few_colours(picture: str) -> str:
    """Return a PNG, as text in base64, with a palette."""
    image = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    data = io.BytesIO()
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(data, format="png", optimize=True)
    return base64.b64encode(data.getvalue()).decode("ascii")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the notebooks named, or all of them."""
    parser = argparse.ArgumentParser(description="Run the notebooks and store their outputs.")
    names = sorted(path.stem for path in NOTEBOOKS)
    numbers = [name[:2] for name in names]
    parser.add_argument("numbers", nargs="*", metavar="NUMBER", help=f"of {', '.join(numbers)}")
    parser.add_argument("--check", action="store_true", help="run them and write nothing")
    arguments = parser.parse_args(argv)
    if unknown := set(arguments.numbers) - set(numbers):
        parser.error(f"no notebook {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    failed = 0
    for path in NOTEBOOKS:
        if arguments.numbers and path.stem[:2] not in arguments.numbers:
            continue
        began = time.perf_counter()
        notebook = nbformat.read(path, as_version=4)
        try:
            execute(notebook)
        except (CellExecutionError, ValueError) as error:
            failed += 1
            print(f"{path.stem}: {error}")
            continue
        if not arguments.check:
            nbformat.write(notebook, path)
        print(f"{path.stem}: {time.perf_counter() - began:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
