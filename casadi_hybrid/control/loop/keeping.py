"""Runs in files and in tables of pandas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.files import npz_path, pandas
from casadi_hybrid.control.loop.table import Table

FORMAT = "casadi_hybrid run 1"
TABLES = ("states", "outputs", "controls", "commanded", "measured", "estimates", "violations")


def written(run: Any, path: str | Path) -> Path:
    """Write a run; see :meth:`Run.save`."""
    target = npz_path(path)
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
    np.savez_compressed(target, head=np.array(json.dumps(head)), **arrays)
    return target


def unpacked(path: str | Path) -> dict[str, Any]:
    """Return the arguments of a run that :func:`written` wrote; the limits as dictionaries."""
    try:
        with np.load(path, allow_pickle=False) as data:
            arrays = {key: data[key] for key in data.files}
        head = json.loads(str(arrays["head"]))
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
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, BadZipFile) as error:
        raise InputError(f"{path} holds no run: {error}") from None
    parts["limits"] = {
        name: {key: np.array(v) if key != "unit" else v for key, v in limit.items()}
        for name, limit in head["limits"].items()
    }
    parts |= {"status": tuple(head["status"]), "stopped": head["stopped"]}
    parts["time_unit"] = head.get("time_unit", "")  # older files have none
    return {**parts, "success": arrays["success"], "seconds": arrays["seconds"]}


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
