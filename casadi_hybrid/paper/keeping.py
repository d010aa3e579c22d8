"""The runs of the paper's experiment in a record, so that a reproduction can be taken up again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from casadi_hybrid.basics.record.cells import Columns, Row, packed, unpacked
from casadi_hybrid.basics.record.collect import Keeping
from casadi_hybrid.paper import experiment
from casadi_hybrid.paper.experiment import ALL_METHODS, Run

Instance = tuple[float, int, int, int]
_COLUMNS: Columns = {"condition": float, "seed": int, "n": int, "m": int, "method": str, "run": str}


def keeping(folder: Path, *, fresh: bool = False) -> Keeping[Instance, list[Run]]:
    """How instances are kept: a row for each method, its :class:`Run` in one cell.

    The constants of the experiment count as settings by a digest of the module that has them.
    """
    source = Path(experiment.__file__).read_bytes()
    settings = {"experiment": hashlib.sha256(source).hexdigest()[:16]}
    return Keeping(
        folder, "reproduce", settings, _COLUMNS, tuple, _rows, _runs,
        size=4, count=len(ALL_METHODS), fresh=fresh,
    )  # fmt: skip


def _rows(instance: Instance, runs: Sequence[Run]) -> list[Row]:
    names = list(_COLUMNS)[:4]
    return [
        {
            **dict(zip(names, instance, strict=True)),
            "method": run.method,
            "run": packed({f.name: getattr(run, f.name) for f in fields(run)}),
        }
        for run in runs
    ]


def _runs(rows: Sequence[Row]) -> list[Run]:
    return [Run(**{name: _tupled(value) for name, value in _cell(row)}) for row in rows]


def _cell(row: Row) -> Iterable[tuple[str, Any]]:
    found: dict[str, Any] = unpacked(row["run"])
    return found.items()


def _tupled(value: Any) -> Any:
    """JSON knows no tuples; every list of a run is one."""
    return tuple(value) if isinstance(value, list) else value
