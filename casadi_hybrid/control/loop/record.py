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
    """One list an attribute of :class:`Run`."""

    def __init__(
        self, wiring: Wiring, limits: Mapping[str, Signal], costs: Mapping[str, Move]
    ) -> None:
        self.wiring = wiring
        self.limits = dict(limits)
        self.stopped = ""
        self._of_cost = dict(costs)
        self._times: list[float] = []
        self._rows: dict[str, list[Array | None]] = {
            key: [] for key in ("x", "outputs", "applied", "command", "arrived", "estimate")
        }
        self._costs: dict[str, list[float]] = {name: [] for name in costs}
        self._answers: list[Any] = []
        self._seconds: list[float] = []

    def step(
        self,
        t: float,
        before: Array | None,
        answer: Any,
        seconds: float,
        x: Array,
        applied: Array,
        **rows: Array | None,
    ) -> None:
        """Note one step, ``before`` being the control that held until then."""
        rows["outputs"] = self.wiring.show(x, applied if before is None else before, t)
        for key, value in {"x": x, "applied": applied, **rows}.items():
            self._rows[key].append(value)
        for name, cost in self._of_cost.items():
            self._costs[name].append(float(np.ravel(cost(x, applied, t))[0]))
        self._times.append(t)
        self._answers.append(answer)
        self._seconds.append(seconds)

    def run(self, x: Array, time: float) -> Run:
        """Return the run that ends at the state x."""
        wiring, rows = self.wiring, self._rows
        K = len(self._times)
        applied = rows["applied"][-1]
        assert applied is not None
        end = time + K * wiring.period
        rows["x"].append(None if self.stopped else x)
        rows["outputs"].append(None if self.stopped else wiring.show(x, applied, end))
        begins = np.array(self._times)
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
            costs={name: np.array(values) for name, values in self._costs.items()},
            violations=_violations(tables, self.limits, times),
            limits=self.limits,
            status=tuple(_status(answer) for answer in self._answers),
            success=np.array([_succeeded(answer) for answer in self._answers]),
            seconds=np.array(self._seconds),
            steps=tuple(self._answers),
            stopped=self.stopped,
            time_unit=wiring.time_unit,
        )


def _size(wiring: Wiring) -> int:
    return sum(where.stop - where.start for where in wiring.measured.values())


def _matrix(columns: list[Array | None], count: int, size: int | None = None) -> Array:
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
