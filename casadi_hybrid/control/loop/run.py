"""What happened in a closed loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.files import pandas
from casadi_hybrid.control.loop.table import Table
from casadi_hybrid.control.reading.measures import Excess, in_unit, worst_excess
from casadi_hybrid.control.reading.storing import packed, unpacked
from casadi_hybrid.control.signals import Array, Signal

FORMAT = "casadi_hybrid run 1"
TABLES = ("states", "outputs", "controls", "commanded", "measured", "estimates", "violations")


@dataclass(frozen=True)
class Run:
    """The record of a closed loop of K steps; K is smaller than asked where :attr:`stopped` is.

    ``run["level"]`` is the true trajectory of a state or output at :attr:`times`, or of a control
    at the first K of them.

    Attributes:
        states: true states at the K + 1 times.
        outputs: all outputs of the plant's model there, without noise.
        controls: what was applied from each of the first K times to the next.
        commanded: what the controller said at these times; NaN where it was not asked.
        measured: what arrived at these times; NaN where nothing did.
        estimates: states that the estimator said; without an estimator no rows.
        costs: by name, one number a step.
        violations: how far each limited quantity was outside its limits at each time; of controls
            NaN at the last.
        limits: what has limits, by name.
        status: what the controller said of each step; a plain function says "computed".
        success: whether its solver found what to act on: ``success`` of what it returned; without
            that, a status that is none of "last plan", "fallback" and "default".
        seconds: that controller and estimator took, by step.
        steps: what the controller returned; empty in a run that was loaded.
        stopped: a sentence where the run ended early.
        time_unit: of the times; empty where the plant is a plain function.
    """

    states: Table
    outputs: Table
    controls: Table
    commanded: Table
    measured: Table
    estimates: Table
    costs: Mapping[str, Array]
    violations: Table
    limits: Mapping[str, Signal] = field(repr=False)
    status: tuple[str, ...] = field(repr=False)
    success: Array = field(repr=False)
    seconds: Array = field(repr=False)
    steps: tuple[Any, ...] = field(repr=False, default=())
    stopped: str = ""
    time_unit: str = ""

    def __str__(self) -> str:
        """How many steps of each status, between what all was, what it cost, what was exceeded."""
        counts, end = Counter(self.status), in_unit(self.times[-1], self.time_unit)
        lines = [
            f"{len(self.status)} steps from time {self.times[0]:g} to {end}: "
            + ", ".join(f"{count} {status}" for status, count in counts.most_common()),
            f"states: {self._ranges(self.states)}",
            f"controls: {self._ranges(self.controls)}",
            *(f"cost {name}: {values.sum():.6g}" for name, values in self.costs.items()),
            f"largest violation {self.violation:.3g} of the scale: {self.worst}"
            if self.worst
            else "no limit is exceeded",
            self.stopped,
        ]
        return "\n".join(filter(None, lines))

    def __getitem__(self, name: str) -> Array:
        """Return a true trajectory by name."""
        for table in (self.states, self.controls, self.outputs):
            if name in table:
                return table[name]
        return Table({**self.states.places, **self.controls.places, **self.outputs.places},
                     self.states.values, self.times)[name]  # fmt: skip

    def __contains__(self, name: object) -> bool:
        return name in self.states or name in self.controls or name in self.outputs

    @property
    def times(self) -> Array:
        """The K + 1 times."""
        return self.states.times

    @property
    def control_times(self) -> Array:
        """The beginnings of the K steps."""
        return self.controls.times

    @property
    def cost(self) -> float:
        """The sum of all costs over all steps."""
        return float(sum(values.sum() for values in self.costs.values()))

    @property
    def violation(self) -> float:
        """The largest violation of a limit, in units of the quantity's scale."""
        return self.worst.scaled if self.worst else 0.0

    @property
    def worst(self) -> Excess | None:
        """The largest violation of a limit relative to its scale: of what, and when."""
        found = [
            worst_excess(name, self._rows(name), self.limits[name], self.times, self.time_unit)[1]
            for name in self.violations
        ]
        most = max(found, key=lambda excess: excess.scaled, default=None)
        return most if most and most.scaled > 0.0 else None

    @property
    def failed(self) -> int:
        """Number of steps without :attr:`success`."""
        return int(np.count_nonzero(np.logical_not(self.success)))

    def plot(
        self,
        names: Sequence[str] | None = None,
        *,
        title: str = "",
        path: str | Path | None = None,
    ) -> Any:
        """Draw trajectories with what was measured and estimated, and their limits.

        Args:
            names: what to draw, a panel each; all states and controls by default.
            title: over the panels.
            path: of a file to write as well; its suffix chooses the format.

        Returns:
            A matplotlib figure.
        """
        # matplotlib only when drawing
        from casadi_hybrid.control.loop.drawing import draw_run  # noqa: PLC0415
        from casadi_hybrid.plotting import save  # noqa: PLC0415

        drawn = draw_run(self, names, title)
        if path is not None:
            save(drawn, path)
        return drawn

    def to_pandas(self) -> Any:
        """Return a table with a row a time; the last row has no control.

        Raises:
            InputError: where pandas is not installed.
        """
        pd = pandas()
        columns: dict[str, Any] = {}
        for table, suffix in (
            (self.states, ""), (self.outputs, ""), (self.controls, ""),
            (self.measured, " measured"), (self.estimates, " estimated"),
        ):  # fmt: skip
            for label, row in zip(table.labels, table.values, strict=True):
                full = np.full(self.times.size, np.nan)
                full[: row.size] = row
                columns[label + suffix] = full
        for name, values in self.costs.items():
            columns[f"cost {name}"] = np.append(values, np.nan)
        return pd.DataFrame(columns, index=pd.Index(self.times, name="time"))

    def save(self, path: str | Path) -> Path:
        """Write a file of NumPy's format ``.npz`` without :attr:`steps`; return its path."""
        head: dict[str, Any] = {
            "format": FORMAT,
            "tables": {
                name: {key: [w.start, w.stop] for key, w in getattr(self, name).places.items()}
                for name in TABLES
            },
            "costs": list(self.costs),
            "limits": {
                name: {
                    "lower": limit.lower.tolist(), "upper": limit.upper.tolist(),
                    "scale": limit.scale.tolist(), "unit": limit.unit,
                }
                for name, limit in self.limits.items()
            },
            "status": list(self.status),
            "stopped": self.stopped,
            "time_unit": self.time_unit,
        }  # fmt: skip
        arrays = {"success": self.success, "seconds": self.seconds}
        for name in TABLES:
            table = getattr(self, name)
            arrays |= {f"{name} values": table.values, f"{name} times": table.times}
        arrays |= {f"cost {i}": values for i, values in enumerate(self.costs.values())}
        return packed(path, "head", head, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Return the run that :meth:`save` wrote.

        Raises:
            InputError: where the file is no such file.
        """
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
            return cls(**parts, success=arrays["success"], seconds=arrays["seconds"])
        except (KeyError, TypeError) as error:
            raise InputError(f"{path} holds no run: {error}") from None

    def unit(self, name: str) -> str:
        """Return the unit of a quantity, empty where none was declared."""
        return self.limits[name].unit if name in self.limits else ""

    def _ranges(self, table: Table) -> str:
        return ", ".join(
            f"{name} {np.nanmin(rows):.3g} to {in_unit(np.nanmax(rows), self.unit(name))}"
            for name, rows in ((name, table.rows(name)) for name in table)
        )

    def _rows(self, name: str) -> Array:
        tables = (self.states, self.controls, self.outputs)
        return next(table.rows(name) for table in tables if name in table)

    def estimation_error(self) -> Array:
        """Return the estimate minus the true state, by state and step.

        Raises:
            InputError: for a run without an estimator.
        """
        if tuple(self.estimates) != tuple(self.states):
            raise InputError("the run has no estimates of the states; simulate with an estimator")
        return np.asarray(self.estimates.values - self.states.values[:, : self.controls.shape[1]])
