"""The two forms of a table on disk: lines of CSV in a file, parts of Parquet in a folder.

Both grow by whole groups of rows and can be read whatever ends the process that writes. Rows go in
and come out as cells of text; those of a damaged row as far as they go.
"""

from __future__ import annotations

import csv
import io
import os
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.record.cells import Columns, text_of, value_of

Cells = list[str]


def no_record(path: Path, why: str = "") -> InputError:
    """The error for what a study cannot go on with."""
    return InputError(
        f"{path} is not the record of a study{why}; use another output folder, or --fresh to "
        "replace it"
    )


class Lines:
    """``runs.csv``: a line of names, then a line a row. A line that a kill cut off is no row."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self.path, self._names = path, list(columns)

    def read(self) -> Iterator[tuple[str, Cells]]:
        """Yield place and cells of every row."""
        if not self.path.exists():
            self.replace([])
            return
        text = self.path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        lines = whole.decode("utf-8", errors="replace").split("\n")[:-1]
        if not lines and len(text) < len(_line(self._names)):
            self.replace([])  # killed while it was begun
            return
        if not lines or lines[0] != _line(self._names).rstrip("\n"):
            raise no_record(self.path, ": its first line has other names than those of the columns")
        if whole != text:
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
        for number, line in enumerate(lines[1:], start=2):
            try:
                (cells,) = csv.reader([line], strict=True)
            except (csv.Error, ValueError):
                cells = []
            yield f"line {number} of {self.path}", cells

    def add(self, rows: Sequence[Cells], *, now: bool = False) -> None:
        """Append rows by one call: a kill finds all of them or a cut, an OSError none."""
        text = "".join(_line(row) for row in rows).encode()
        if not text:
            return
        size = self.path.stat().st_size
        try:
            with self.path.open("ab", buffering=0) as file:
                if file.write(text) < len(text):
                    raise OSError("the disk took a part only")
        except OSError:
            os.truncate(self.path, size)
            raise

    def replace(self, rows: Sequence[Cells]) -> None:
        """Write a new file, then put it in the old one's place."""
        beside = self.path.with_name(self.path.name + ".new")
        beside.write_bytes("".join(map(_line, [self._names, *rows])).encode())
        beside.replace(self.path)


class Parts:
    """``runs.parquet``: a folder of files that any reader of Parquet takes as one table.

    A file of Parquet cannot grow, so rows wait until there are enough for the next one: for a
    second, later for a fiftieth of the time since the first, and not beyond the end of the run.
    """

    def __init__(self, path: Path, columns: Columns) -> None:
        if find_spec("pyarrow") is None:
            raise InputError(
                "tables of Parquet need pyarrow, which is not installed; "
                "pip install 'casadi_hybrid[study]', or take csv"
            )
        self._arrow, self._parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        self.path, self._columns = path, columns
        self._waiting: list[Cells] = []
        self._began = self._last = time.monotonic()

    def read(self) -> Iterator[tuple[str, Cells]]:
        """Yield place and cells of every row."""
        self.path.mkdir(exist_ok=True)
        for part in self._parts():
            try:
                table = self._parquet.read_table(part, partitioning=None)
                if table.column_names != list(self._columns):
                    raise ValueError(table.column_names)
                columns = [table.column(name).to_pylist() for name in self._columns]
                rows = [
                    [text_of(v, k) for v, k in zip(row, self._columns.values(), strict=True)]
                    for row in zip(*columns, strict=True)
                ]
            except (OSError, ValueError, TypeError):  # pyarrow's errors are among these
                yield f"{part}, which cannot be read", []
                continue
            for number, cells in enumerate(rows):
                yield f"row {number} of {part}", cells

    def add(self, rows: Sequence[Cells], *, now: bool = False) -> None:
        """Append rows; they are in a file after a while, at once by ``now``."""
        self._waiting += rows
        since = time.monotonic() - self._last
        if self._waiting and (now or since > max(1.0, (self._last - self._began) / 50)):
            self._write(self._waiting)
            self._waiting, self._last = [], time.monotonic()

    def replace(self, rows: Sequence[Cells]) -> None:
        """Write one file of all, then remove the others."""
        old = self._parts()
        self._waiting = []
        if rows:
            self._write(rows)
        for part in old:
            part.unlink()

    def _parts(self) -> list[Path]:
        return sorted(self.path.glob("part-*.parquet"))

    def _write(self, rows: Sequence[Cells]) -> None:
        arrow = self._arrow
        kinds = {bool: arrow.bool_(), int: arrow.int64(), float: arrow.float64(), str: arrow.utf8()}
        data = {
            name: arrow.array([value_of(row[i], kind) for row in rows], kinds[kind])
            for i, (name, kind) in enumerate(self._columns.items())
        }
        there = self._parts()
        number = int(there[-1].stem.removeprefix("part-")) + 1 if there else 0
        path = self.path / f"part-{number:06}.parquet"
        beside = self.path / f".{path.name}"  # readers leave hidden files out
        self._parquet.write_table(arrow.table(data), beside)
        beside.replace(path)


FORMS: dict[str, type[Lines | Parts]] = {"csv": Lines, "parquet": Parts}


def _line(cells: Sequence[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()
