"""The records of many steps as arrays and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from casadi_hybrid.control.loop.table import aligned
from casadi_hybrid.control.predictive.step import Record

_COLUMNS = (
    ("time", "{:.6g}"), ("status", "{}"), ("iterations", "{}"), ("seconds", "{:.2e}"),
    ("warm", "{}"), ("engine", "{}"), ("kernel", "{}"), ("active", "{}"), ("violation", "{:.1e}"),
    ("objective", "{:.6g}"), ("stationarity", "{:.1e}"), ("reason", "{}"),
)  # fmt: skip


def arrays(records: Sequence[Record]) -> dict[str, Any]:
    """Return one array for each field of the records, one entry a step."""
    found: dict[str, Any] = {}
    for field in fields(Record):
        values = [getattr(record, field.name) for record in records]
        if field.name == "active_names":
            column = np.empty(len(values), dtype=object)
            column[:] = values
            found[field.name] = column
        else:
            found[field.name] = np.array(values)
    return found


def table(records: Sequence[Record]) -> str:
    """Return the records as text, one line a step, columns aligned."""
    rows = [[name for name, _ in _COLUMNS]]
    for record in records:
        row = []
        for name, form in _COLUMNS:
            value = getattr(record, name)
            if isinstance(value, bool):
                value = "yes" if value else "no"
            missing = isinstance(value, float) and np.isnan(value)
            row.append("-" if missing or value == "" else form.format(value))
        rows.append(row)
    return aligned(rows)
