"""A study as one call: what the record lacks is run in parallel and appended as it comes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from casadi_hybrid.basics.parallel import in_parallel
from casadi_hybrid.basics.record.cells import Columns, Row
from casadi_hybrid.basics.record.record import Key, Record, header

Item = TypeVar("Item", bound=Hashable)
Value = TypeVar("Value")
Found = TypeVar("Found")


class Unfinished(KeyboardInterrupt):
    """A study was ended by Ctrl-C.

    Attributes:
        found: what there is until then, as the study would return it.
        done, total: units.
    """

    def __init__(self, found: Any, done: int, total: int) -> None:
        self.found, self.done, self.total = found, done, total
        super().__init__(f"interrupted after {done} of {total}")


@dataclass(frozen=True)
class Keeping(Generic[Item, Value]):
    """Where a study is kept, and how: a :class:`.Record`, and what turns items into its rows.

    Args:
        key: item → the key's values.
        rows: (item, value) → rows, always the same number of them.
        value: rows → value.
        size: how many columns are the key.
        count: how many rows a unit has.
    """

    folder: Path
    study: str
    settings: dict[str, Any]
    columns: Columns
    key: Callable[[Item], Key]
    rows: Callable[[Item, Value], Sequence[Row]]
    value: Callable[[Sequence[Row]], Value]
    size: int
    count: int = 1
    table: str = "csv"
    fresh: bool = False

    def open(self) -> Record:
        """Open the record."""
        return Record(
            self.folder, header(self.study, self.settings), self.columns, key=self.size,
            rows=self.count, table=self.table, fresh=self.fresh,
        )  # fmt: skip


@dataclass(frozen=True)
class Collected(Generic[Item, Value]):
    """What a study found.

    Attributes:
        values: by item, in the items' order.
        unwritten: why rows could not be written; empty where all are.
    """

    values: dict[Item, Value]
    unwritten: str = ""


def collect(
    work: Callable[[Item], Value],
    items: Sequence[Item],
    made: Callable[[Collected[Item, Value]], Found],
    keeping: Keeping[Item, Value] | None = None,
    *,
    workers: int | None = None,
    cluster: Any = None,
    label: str = "",
    lost: Callable[[Item, str], Value] | None = None,
) -> Found:
    """Run the work on every item that the record does not hold; see :func:`in_parallel`.

    Return what is made of all that was found.

    Raises:
        InputError: by the record, before any work, and by the cluster.
        Unfinished: by Ctrl-C, with what is made of what there is.
    """
    found: dict[Item, Value] = {}
    record: Record | None = None

    def collected(unwritten: str = "") -> Found:
        return made(Collected({i: found[i] for i in items if i in found}, unwritten))

    try:
        with ExitStack() as stack:
            if keeping is not None:
                record = stack.enter_context(keeping.open())
                for item in items:
                    rows = record.done.get(keeping.key(item))
                    if rows is not None:
                        found[item] = keeping.value(rows)
                if found and label:
                    print(f"{label}: {len(found)} of {len(items)} are there", file=sys.stderr)
            missing = [item for item in items if item not in found]
            stream = in_parallel(
                work, missing, workers=workers, cluster=cluster, label=label, lost=lost
            )
            for item, value in stack.enter_context(closing(stream)):
                found[item] = value
                if record is not None and keeping is not None:
                    record.append(keeping.key(item), keeping.rows(item, value))
            if record is not None and keeping is not None:
                record.arrange(map(keeping.key, items))
    except KeyboardInterrupt:
        raise Unfinished(collected(), len(found), len(items)) from None
    return collected("" if record is None else record.unwritten)
