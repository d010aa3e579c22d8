"""The record of a study: rows that are appended as units finish, and read again by the next run."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import one_of
from casadi_hybrid.basics.record.cells import (
    CHECK,
    SOFTWARE,
    Columns,
    Row,
    cells_of,
    checksum,
    text_of,
    value_of,
)
from casadi_hybrid.basics.record.folder import Lock, writable
from casadi_hybrid.basics.record.software import code_digest, software, versions
from casadi_hybrid.basics.record.tables import FORMS, Cells, no_record

FORMAT = 2
_NAMED = 5
Key = tuple[Any, ...]


def header(study: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What all rows of a study share: its kind and settings, the versions and the code."""
    about = {"study": study, "format": FORMAT, "software": versions(), "code": code_digest()}
    return {**about, **settings}


class Record:
    """A study's folder, opened for going on: ``study.json``, and ``runs.csv`` or ``runs.parquet``.

    Every row has the software that made it and a checksum over itself and the study. A unit is
    the rows that share a key; one that a kill left incomplete is run again.

    Args:
        about: the header, see :func:`header`; a folder of another one is refused.
        columns: names and kinds of the columns, the ``key`` first of them the key.
        rows: how many rows a unit has.
        fresh: forget what is there.

    Attributes:
        done: the rows of the finished units, by key.
        unwritten: why rows could not be written; empty where all are.

    Raises:
        InputError: where the folder cannot be written to, is in use, holds something else or
            another study, or rows of it were changed: each is named.
    """

    def __init__(
        self, folder: Path, about: Mapping[str, Any], columns: Columns, *, key: int, rows: int = 1,
        table: str = "csv", fresh: bool = False,
    ) -> None:  # fmt: skip
        self.about: dict[str, Any] = json.loads(json.dumps({**about, "table": table}))
        self.columns: Columns = {**columns, SOFTWARE: str, CHECK: str}
        self._values, self._key, self._rows = columns, key, rows
        self._study = hashlib.sha256(json.dumps(self.about, sort_keys=True).encode()).hexdigest()
        self.done: dict[Key, list[Row]] = {}
        self.unwritten = ""
        self._cells: dict[Key, list[Cells]] = {}
        self._late: list[Cells] = []
        one_of(table, "table", tuple(FORMS))
        self._table = FORMS[table](folder / f"runs.{table}", self.columns)
        self._lock = Lock(writable(folder))
        try:
            self._open(folder / "study.json", fresh=fresh)
        except BaseException:
            self._lock.close()
            raise

    def append(self, key: Key, rows: Sequence[Row]) -> None:
        """Add a finished unit. A disk that fails is reported once and tried again with the next."""
        self.done[key] = list(rows)
        cells = [self._sealed(row) for row in rows]
        self._cells[key] = cells
        self._write(cells)

    def arrange(self, keys: Iterable[Key]) -> None:
        """Put the units into an order, for a table that does not tell who was done first."""
        wanted = [key for key in keys if key in self._cells]
        known = set(wanted)
        wanted += [key for key in self._cells if key not in known]
        if not self.unwritten and wanted != list(self._cells):
            self._replace(wanted)
        self._write([], now=True)

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *error: object) -> None:
        self._write([], now=True)
        self._lock.close()

    def _sealed(self, row: Row) -> Cells:
        cells = [*cells_of(row, self._values), software()]
        return [*cells, checksum(self._study, cells)]

    def _write(self, rows: Sequence[Cells], *, now: bool = False) -> None:
        self._late += rows
        try:
            self._table.add(self._late, now=now)
        except OSError as error:
            said = f"{self._table.path} could not be written: {error}"
            if not self.unwritten:
                print(f"{said}; going on in memory", file=sys.stderr)
            self.unwritten = said
            return
        self._late, self.unwritten = [], ""

    def _replace(self, keys: Sequence[Key]) -> None:
        try:
            self._table.replace([row for key in keys for row in self._cells[key]])
        except OSError as error:
            self.unwritten = f"{self._table.path} could not be written: {error}"

    def _open(self, path: Path, *, fresh: bool) -> None:
        tables = [path.with_name(f"runs.{form}") for form in FORMS]
        if fresh:
            for old in (path, *tables):
                shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
        if path.exists():
            self._check(path)
        else:
            for old in tables:
                if old.exists():
                    raise no_record(old, f", as there is no {path.name} beside it")
            beside = path.with_name(path.name + ".new")
            text = json.dumps(self.about, indent=1, ensure_ascii=False)
            beside.write_text(text + "\n", encoding="utf-8")
            beside.replace(path)
        self._read()

    def _check(self, path: Path) -> None:
        try:
            found = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or "study" not in found:
            raise no_record(path)
        for name in {**self.about, **found}:
            here, there = self.about.get(name), found.get(name)
            if here != there:
                raise InputError(
                    f"{path.parent} holds a study with {name} = {there!r}, this one has {here!r}; "
                    "results of the two are not mixed, so use another output folder, or --fresh "
                    "to start over"
                )

    def _read(self) -> None:
        damaged: list[str] = []
        units: dict[Key, list[Cells]] = {}
        rows: dict[Key, list[Row]] = {}
        for place, cells in self._table.read():
            row = self._opened(cells)
            if row is None:
                damaged.append(f"{place}{self._said(cells)}")
                continue
            key = tuple(list(row.values())[: self._key])
            units.setdefault(key, []).append(cells)
            rows.setdefault(key, []).append(row)
        if damaged:
            more = f" and {len(damaged) - _NAMED} more" if len(damaged) > _NAMED else ""
            raise InputError(
                f"rows were changed since they were written: {'; '.join(damaged[:_NAMED])}{more}. "
                "Remove them to run their units again, or use --fresh to start over"
            )
        whole = {key: cells for key, cells in units.items() if len(cells) == self._rows}
        self._cells = whole
        self.done = {key: rows[key] for key in whole}
        if len(whole) < len(units):
            self._replace(list(whole))

    def _opened(self, cells: Cells) -> Row | None:
        """The values of a row whose checksum is right."""
        if len(cells) != len(self.columns) or checksum(self._study, cells[:-1]) != cells[-1]:
            return None
        try:
            row = {
                name: value_of(text, kind)
                for text, (name, kind) in zip(cells, self._values.items(), strict=False)
            }
        except ValueError:
            return None
        return row if cells_of(row, self._values) == cells[: len(row)] else None

    def _said(self, cells: Cells) -> str:
        """What a damaged row says it is of."""
        names = list(self._values)[: self._key]
        if len(cells) < self._key:
            return ""
        said = ", ".join(f"{n} {text_of(c, str)}" for n, c in zip(names, cells, strict=False))
        return f" ({said[:100]})"
