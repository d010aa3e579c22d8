"""A study as one call: run the missing units in parallel, record them, write the table."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import one_of
from casadi_hybrid.utils.record.parallel import in_parallel
from casadi_hybrid.utils.record.record import Record, Row, encoded, header, opened

Item = TypeVar("Item", bound=Hashable)
Value = TypeVar("Value")
Found = TypeVar("Found")


class Unfinished(KeyboardInterrupt):
    """A study was ended by Ctrl-C; ``found`` is its result of ``done`` of ``total`` units."""

    def __init__(self, found: Any, done: int, total: int) -> None:
        self.found, self.done, self.total = found, done, total
        super().__init__(f"interrupted after {done} of {total}")


@dataclass(frozen=True)
class Keeping(Generic[Item, Value]):
    """Place and form of a study's record."""

    folder: Path  # of the record, and of the table runs.csv or runs.parquet
    # A record of another study, or of other settings, is refused.
    study: str
    settings: dict[str, Any]
    rows: Callable[[Item, Value], Sequence[Row]]
    value: Callable[[Sequence[Row]], Value]
    table: str = "csv"  # or "parquet", or empty for no table
    fresh: bool = False  # delete an earlier record


def collect(
    work: Callable[[Item], Value],
    items: Sequence[Item],
    made: Callable[[dict[Item, Value], str], Found],
    keeping: Keeping[Item, Value] | None = None,
    *,
    workers: int | None = None,
    cluster: Any = None,
    label: str = "",
    lost: Callable[[Item, str], Value] | None = None,
) -> Found:
    """Run the work on every item that the record lacks, see :func:`in_parallel`; return ``made``.

    ``made`` gets the values by item, in order, and why some could not be written. Ctrl-C raises
    Unfinished with the result of the finished items.
    """
    values: dict[Item, Value] = {}
    record: Record | None = None

    def result() -> Found:
        ordered = {item: values[item] for item in items if item in values}
        unwritten = "" if record is None else record.unwritten
        if keeping is not None and keeping.table:
            rows = (row for item, value in ordered.items() for row in keeping.rows(item, value))
            try:
                _write_table(keeping.folder / f"runs.{keeping.table}", list(rows))
            except OSError as error:
                unwritten = unwritten or str(error)
        return made(ordered, unwritten)

    with ExitStack() as stack:
        if keeping is not None:
            _check_table(keeping.table)
            about = header(keeping.study, keeping.settings)
            record = stack.enter_context(opened(keeping.folder, about, fresh=keeping.fresh))
            units = record.units()
            for item in items:
                if rows := units.get(encoded(item)):
                    values[item] = keeping.value(rows)
            if values and label:
                print(f"{label}: {len(values)} of {len(items)} are there", file=sys.stderr)
        missing = [item for item in items if item not in values]
        stream = in_parallel(
            work, missing, workers=workers, cluster=cluster, label=label, lost=lost
        )
        try:
            # closing() ends the processes at an exception too.
            with closing(stream):
                for item, value in stream:
                    values[item] = value
                    if record is not None and keeping is not None:
                        record.append(item, keeping.rows(item, value))
        except KeyboardInterrupt:
            raise Unfinished(result(), len(values), len(items)) from None
        return result()


def _check_table(table: str) -> None:
    if table:
        one_of(table, "table", ("csv", "parquet"))
    if table == "parquet" and find_spec("pyarrow") is None:
        raise InputError(
            "tables of Parquet need pyarrow, which is not installed; "
            "pip install 'casadi_hybrid[study]', or take csv"
        )


def _write_table(path: Path, rows: Sequence[Row]) -> None:
    if path.suffix == ".parquet":
        table = import_module("pyarrow").Table.from_pylist(rows)
        import_module("pyarrow.parquet").write_table(table, path)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
