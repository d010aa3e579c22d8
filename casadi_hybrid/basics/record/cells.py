"""Rows as cells of text: one text for each value, and a checksum over a row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError

Kind = type[bool] | type[int] | type[float] | type[str]
Columns = Mapping[str, Kind]
Row = dict[str, Any]
SOFTWARE, CHECK = "software", "check"


def text_of(value: Any, kind: Kind) -> str:
    """The one text of a value: numbers come back bit for bit, words stay on one line."""
    if kind is str:
        return " ".join(str(value).split())
    return repr(kind(value))


def value_of(text: str, kind: Kind) -> Any:
    """The value of a text."""
    if kind is bool:
        if text not in {"True", "False"}:
            raise ValueError(text)
        return text == "True"
    return kind(text)


def cells_of(row: Row, columns: Columns) -> list[str]:
    """The cells of a row, in the order of the columns."""
    return [text_of(row[name], kind) for name, kind in columns.items()]


def checksum(study: str, cells: Sequence[str]) -> str:
    """A checksum of cells that belong to a study; another study's row has another one."""
    return hashlib.sha256("\x1f".join([study, *cells]).encode()).hexdigest()[:16]


def packed(value: Any) -> str:
    """A value of numbers, words, tuples, lists, dictionaries and arrays as one cell."""
    return json.dumps(value, default=_array, ensure_ascii=False)


def unpacked(text: str) -> Any:
    """What :func:`packed` packed; tuples come back as lists."""
    return json.loads(text, object_hook=_numbers)


def _array(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return {"float64": value.tolist()}
    if isinstance(value, np.generic):
        return value.item()
    raise InputError(f"a {type(value).__name__} cannot be kept in a row")


def _numbers(found: dict[str, Any]) -> Any:
    return np.array(found["float64"], dtype=float) if set(found) == {"float64"} else found
