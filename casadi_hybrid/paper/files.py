"""The files of a reproduction: runs.csv, tables.txt and the figures."""

from __future__ import annotations

from pathlib import Path

from casadi_hybrid.paper.figures import draw
from casadi_hybrid.paper.reproduce import Reproduction
from casadi_hybrid.paper.tables import write_csv


def write(reproduction: Reproduction, folder: Path, form: str = "png") -> list[Path]:
    """Write runs.csv, tables.txt and the figures, in that format; return what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    table, text = folder / "runs.csv", folder / "tables.txt"
    write_csv(reproduction.runs, table)
    text.write_text(f"{reproduction}\n", encoding="utf-8")
    return [table, text, *draw(reproduction, folder, form)]
