"""Collects what happens in a closed loop, and makes the run of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from casadi_hybrid.control.loop.run import Run
from casadi_hybrid.control.loop.table import Table
from casadi_hybrid.control.loop.wiring import Move, Wiring
from casadi_hybrid.control.signals import Array, Signal, places_of

NOT_ASKED = "no measurement yet"
COMPUTED = "computed"
WITHOUT_PLAN = ("last plan", "fallback", "default")
"""What a predictive controller calls a step whose solver found no plan to act on."""


class Recorder:
    """The steps of a loop, and what they are measured by."""

    def __init__(
        self, wiring: Wiring, limits: Mapping[str, Signal], costs: Mapping[str, Move]
    ) -> None:
        self.wiring, self.limits, self.costs = wiring, limits, costs
        self.stopped = ""
        self._steps: list[dict[str, Any]] = []

    def step(self, time: float, x: Array, applied: Array, before: Array, **rest: Any) -> None:
        """Note one step, ``before`` being the control that held until then."""
        shown = self.wiring.show(x, before, time)
        costs = {name: np.ravel(cost(x, applied, time))[0] for name, cost in self.costs.items()}
        self._steps.append({"time": time, "x": x, "applied": applied, "outputs": shown, **rest,
                            "costs": costs})  # fmt: skip

    def run(self, x: Array, time: float) -> Run:
        """Return the run that ends at the state x."""
        wiring, K = self.wiring, len(self._steps)
        rows = {key: [step[key] for step in self._steps] for key in self._steps[0]}
        applied, end = rows["applied"][-1], time + K * wiring.period
        rows["x"].append(None if self.stopped else x)
        rows["outputs"].append(None if self.stopped else wiring.show(x, applied, end))
        begins = np.array(rows["time"])
        times = np.append(begins, end)
        controls = wiring.controls or {"u": slice(0, applied.size)}
        estimates = _matrix(rows["estimate"], K)
        states = Table(wiring.states, _matrix(rows["x"], K + 1), times)
        of_states = wiring.states if estimates.shape[0] == x.size else {
            "estimate": slice(0, estimates.shape[0])}  # fmt: skip
        outputs = Table(wiring.outputs, _matrix(rows["outputs"], K + 1), times)
        tables = [states, Table(controls, _matrix(rows["applied"], K), begins), outputs]
        return Run(
            states=states,
            outputs=outputs,
            controls=tables[1],
            commanded=Table(controls, _matrix(rows["command"], K, applied.size), begins),
            measured=Table(wiring.measured, _matrix(rows["arrived"], K, _size(wiring)), begins),
            estimates=Table(of_states if estimates.shape[0] else {}, estimates, begins),
            costs={name: np.array([costs[name] for costs in rows["costs"]]) for name in self.costs},
            violations=_violations(tables, self.limits, times),
            limits=self.limits,
            status=tuple(map(_status, rows["answer"])),
            success=np.array([_succeeded(answer) for answer in rows["answer"]]),
            seconds=np.array(rows["seconds"]),
            steps=tuple(rows["answer"]),
            stopped=self.stopped,
            time_unit=wiring.time_unit,
        )


def _size(wiring: Wiring) -> int:
    return sum(where.stop - where.start for where in wiring.measured.values())


def _matrix(columns: list[Any], count: int, size: int | None = None) -> Array:
    """The columns side by side, NaN for None; without any but None no rows, or ``size`` of NaN."""
    there = [column.size for column in columns if column is not None]
    rows = there[0] if there else size or 0
    lost = np.full(rows, np.nan)
    full = [lost if column is None else column for column in columns]
    return np.array(full, dtype=float).T.reshape(rows, count)


def _violations(tables: list[Table], limits: Mapping[str, Signal], times: Array) -> Table:
    found: dict[str, Array] = {}
    for name, limit in limits.items():
        if np.isfinite([limit.lower, limit.upper]).any():
            values = next(table.rows(name) for table in tables if name in table)
            outside = np.maximum(limit.lower[:, None] - values, values - limit.upper[:, None])
            found[name] = np.full((values.shape[0], times.size), np.nan)
            found[name][:, : values.shape[1]] = np.maximum(outside, 0.0)
    places = places_of({name: rows.shape[0] for name, rows in found.items()})
    return Table(places, np.vstack([np.zeros((0, times.size)), *found.values()]), times)


def _status(answer: Any) -> str:
    return NOT_ASKED if answer is None else str(getattr(answer, "status", COMPUTED))


def _succeeded(answer: Any) -> bool:
    return bool(getattr(answer, "success", _status(answer) not in WITHOUT_PLAN))
