"""Trials as rows of the study's record: one for every unit and rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from casadi_hybrid.basics.record.cells import Columns, Row
from casadi_hybrid.basics.record.collect import Keeping
from casadi_hybrid.study.trial import Settings, Trial, Unit

STUDY = "population"
_UNIT: Columns = {
    "kind": str, "n": int, "m": int, "radius": float, "condition": float, "seed": int,
}  # fmt: skip
_TRIAL: Columns = {
    "rule": str, "success": bool, "iterations": int, "stop": str, "point": str,
    "feasibility": float, "stationarity": float, "distance": float, "first": int, "second": int,
    "elapsed": float, "error": str,
}  # fmt: skip


def keeping(
    folder: Path, settings: Settings, *, table: str = "csv", fresh: bool = False
) -> Keeping[Unit, tuple[Trial, ...]]:
    """How a population is kept in a folder."""
    return Keeping(
        folder, STUDY, settings.to_dict(), {**_UNIT, **_TRIAL}, tuple, _rows, _trials,
        size=len(_UNIT), count=len(settings.rules), table=table, fresh=fresh,
    )  # fmt: skip


def _rows(unit: Unit, trials: tuple[Trial, ...]) -> list[Row]:
    return [{**unit._asdict(), **asdict(trial)} for trial in trials]


def _trials(rows: Sequence[Row]) -> tuple[Trial, ...]:
    return tuple(Trial(**{name: row[name] for name in _TRIAL}) for row in rows)
