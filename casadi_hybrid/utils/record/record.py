"""Finished units of a study in one SQLite file, which the next run takes up."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.late import LateModule
from casadi_hybrid.utils.output.files import writable
from casadi_hybrid.utils.record.software import code_digest, versions

if TYPE_CHECKING:
    import sqlite3
else:
    sqlite3 = LateModule("sqlite3")  # Monte Carlo comes with `control`, and records are rare

FILE = "study.sqlite"
Row = dict[str, Any]
_OTHER = "use another output folder, or --fresh to start over"


def header(study: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties that all rows of a study share: kind, versions, code and settings."""
    return {"study": study, "software": versions(), "code": code_digest(), **settings}


class Record:
    """An open record: table ``units`` has the rows of a unit as JSON under the unit's JSON."""

    def __init__(self, file: sqlite3.Connection) -> None:
        self.unwritten = ""  # why units are missing in the file
        self._file = file
        self._waiting: list[tuple[str, str]] = []

    def units(self) -> dict[str, list[Row]]:
        """Return the rows of the finished units, by :func:`encoded` unit."""
        units = self._file.execute("SELECT unit, rows FROM units")
        return {unit: json.loads(rows) for unit, rows in units}

    def append(self, unit: Any, rows: Sequence[Row]) -> None:
        """Write a finished unit; after a failure it is written with the next one."""
        self._waiting.append((encoded(unit), encoded(rows)))
        try:
            with self._file:
                self._file.executemany("INSERT INTO units VALUES (?, ?)", self._waiting)
        except sqlite3.Error as error:
            if not self.unwritten:
                print(f"{FILE} could not be written: {error}; going on in memory", file=sys.stderr)
            self.unwritten = f"{FILE} could not be written: {error}"
        else:
            self._waiting, self.unwritten = [], ""


@contextmanager
def opened(folder: Path, about: Mapping[str, Any], *, fresh: bool = False) -> Iterator[Record]:
    """Open a folder's record for this process alone; raises InputError if that is refused."""
    path = writable(folder) / FILE
    # The system releases the lock when the process ends, also by a kill. Its own file leaves the
    # record readable meanwhile.
    with closing(sqlite3.connect(folder / ".lock", timeout=0.0)) as lock:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            raise InputError(
                f"{folder} is in use by another process; wait until it is done, or name another "
                "folder"
            ) from None
        if not fresh and not path.exists() and (folder / "study.json").exists():
            raise InputError(f"{folder} holds a study of an earlier version; {_OTHER}")
        if fresh:
            for old in folder.glob(f"{FILE}*"):  # a kill leaves the log beside the file
                old.unlink()
        with closing(sqlite3.connect(path)) as file:
            try:
                _check_study(file, folder, json.loads(encoded(about)))
            except sqlite3.DatabaseError as error:
                raise InputError(
                    f"{path} is not the record of a study ({error}); {_OTHER}"
                ) from None
            yield Record(file)


def encoded(value: Any) -> str:
    """Return a value as JSON, arrays as lists; floats come back bit for bit."""
    return json.dumps(value, ensure_ascii=False, default=lambda array: array.tolist())


def _check_study(file: sqlite3.Connection, folder: Path, about: Mapping[str, Any]) -> None:
    # A write-ahead log makes a commit a hundredth as long; a kill loses nothing.
    file.execute("PRAGMA journal_mode = WAL")
    file.execute("PRAGMA synchronous = NORMAL")
    with file:
        file.execute("CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT)")
        file.execute("CREATE TABLE IF NOT EXISTS units (unit TEXT PRIMARY KEY, rows TEXT)")
        stored = {name: json.loads(text) for name, text in file.execute("SELECT * FROM about")}
        if not stored:
            pairs = [(name, encoded(value)) for name, value in about.items()]
            file.executemany("INSERT INTO about VALUES (?, ?)", pairs)
            return
    for name in {**about, **stored}:
        if about.get(name) != stored.get(name):
            raise InputError(
                f"{folder} holds a study with {name} = {stored.get(name)!r}, this one has "
                f"{about.get(name)!r}; results of the two are not mixed, so {_OTHER}"
            )
