"""Runs in files and in tables of pandas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.files import pandas
from casadi_hybrid.control.loop.table import Table
from casadi_hybrid.control.reading.storing import packed, unpacked
from casadi_hybrid.control.signals import Signal

FORMAT = "casadi_hybrid run 1"
TABLES = ("states", "outputs", "controls", "commanded", "measured", "estimates", "violations")


def written(run: Any, path: str | Path) -> Path:
    """Write a run; see :meth:`Run.save`."""
    head: dict[str, Any] = {
        "format": FORMAT,
        "tables": {
            name: {key: [w.start, w.stop] for key, w in getattr(run, name).places.items()}
            for name in TABLES
        },
        "costs": list(run.costs),
        "limits": {
            name: {
                "lower": limit.lower.tolist(), "upper": limit.upper.tolist(),
                "scale": limit.scale.tolist(), "unit": limit.unit,
            }
            for name, limit in run.limits.items()
        },
        "status": list(run.status),
        "stopped": run.stopped,
        "time_unit": run.time_unit,
    }  # fmt: skip
    arrays = {"success": run.success, "seconds": run.seconds}
    for name in TABLES:
        table = getattr(run, name)
        arrays |= {f"{name} values": table.values, f"{name} times": table.times}
    arrays |= {f"cost {i}": values for i, values in enumerate(run.costs.values())}
    return packed(path, "head", head, arrays)


def read(path: str | Path) -> dict[str, Any]:
    """Return the arguments of a run that :func:`written` wrote."""
    head, arrays = unpacked(path, "head", "run")
    try:
        if head["format"] != FORMAT:
            raise InputError(f"{path} has the format {head['format']!r}, not {FORMAT!r}")
        parts: dict[str, Any] = {
            name: Table(
                {key: slice(*place) for key, place in head["tables"][name].items()},
                arrays[f"{name} values"],
                arrays[f"{name} times"],
            )
            for name in TABLES
        }
        parts["costs"] = {name: arrays[f"cost {i}"] for i, name in enumerate(head["costs"])}
        parts["limits"] = {name: Signal.of(name, len(limit["scale"]), **limit)
                           for name, limit in head["limits"].items()}  # fmt: skip
        parts |= {"status": tuple(head["status"]), "stopped": head["stopped"]}
        parts["time_unit"] = head.get("time_unit", "")  # older files have none
        return {**parts, "success": arrays["success"], "seconds": arrays["seconds"]}
    except (KeyError, TypeError) as error:
        raise InputError(f"{path} holds no run: {error}") from None


def to_frame(run: Any) -> Any:
    """Return the table of pandas; see :meth:`Run.to_pandas`."""
    pd = pandas()
    columns: dict[str, Any] = {}
    for table, suffix in (
        (run.states, ""), (run.outputs, ""), (run.controls, ""), (run.measured, " measured"),
        (run.estimates, " estimated"),
    ):  # fmt: skip
        for label, row in zip(table.labels, table.values, strict=True):
            full = np.full(run.times.size, np.nan)
            full[: row.size] = row
            columns[label + suffix] = full
    for name, values in run.costs.items():
        columns[f"cost {name}"] = np.append(values, np.nan)
    return pd.DataFrame(columns, index=pd.Index(run.times, name="time"))
