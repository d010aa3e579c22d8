"""The record of a closed loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from casadi_hybrid.control.model.excess import FEASIBLE, Excess, Limits, in_unit, worst_excess
from casadi_hybrid.control.model.signals import Array, ByName
from casadi_hybrid.control.simulation.table import EstimationError, Table
from casadi_hybrid.control.solution.storing import packed, unpacked
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.output.files import pandas

FORMAT = "casadi_hybrid run 5"
UNSOLVED = "the estimator did not solve its window, or the controller gave no reason"


@dataclass(frozen=True)
class Run(ByName):
    """Record of a closed loop of K steps, fewer than asked for if :attr:`stopped` says why.

    ``run["level"]`` is the true trajectory of a state, an output, a path constraint or a reference
    at :attr:`times`, or of a control or an estimated parameter at the first K of them;
    ``list(run)`` are the names.

    Attributes:
        states: true states at the K + 1 times.
        outputs: all outputs of the plant's model there, without noise.
        controls: applied from each of the first K times to the next.
        commanded: answers of the controller at these times; NaN where it was not asked.
        measured: measurements that arrived at these times; NaN where none did.
        estimates: states and parameters by the estimator; without one no rows.
        constraints: path constraints of an :class:`MPC` at the true states and the controls applied
            from there on, with the parameters that it had.
        references: of an :class:`MPC`: at each time the reference of the first interval.
        parameters: true values of a :class:`Plant`'s parameters that are estimated.
        costs: by name, one number a step.
        limits: by name, each side with a column, or with one a time where they have changed.
        unchecked: names of limits that the record cannot check: of algebraic states (an output
            that is one, with ``limits=`` of :func:`simulate`, is checked), and path constraints
            that depend on one, on a choice of the solver, or on states that the plant lacks.
        status: the controller's status of each step; "computed" for a plain function.
        success: true if the estimator solved its window and the controller its problem: by
            ``success`` of its answer, else by a status other than "last plan", "fallback" and
            "default".
        seconds: of controller and estimator, by step.
        steps: answers of the controller; empty in a run that was loaded.
        stopped: a sentence where the run ended early.
        time_unit: of the times; empty where the plant is a plain function.
        deadline: of the controller, in seconds; None where it has none.
    """

    states: Table
    outputs: Table
    controls: Table
    commanded: Table
    measured: Table
    estimates: Table
    constraints: Table
    references: Table
    parameters: Table
    costs: Mapping[str, Array]
    limits: Mapping[str, Limits] = field(repr=False)
    status: tuple[str, ...] = field(repr=False)
    success: Array = field(repr=False)
    seconds: Array = field(repr=False)
    steps: tuple[Any, ...] = field(repr=False, default=())
    stopped: str = ""
    time_unit: str = ""
    unchecked: tuple[str, ...] = ()
    deadline: float | None = None

    def __str__(self) -> str:
        """Steps by status, reasons of failures, ranges, costs, largest excess."""
        counts, end = Counter(self.status).most_common(), in_unit(self.times[-1], self.time_unit)
        steps = ", ".join(f"{number} {status}" for status, number in counts)
        lines = [f"{len(self.status)} steps from time {self.times[0]:g} to {end}: {steps}"]
        failed = (step for step, good in zip(self.steps, self.success, strict=False) if not good)
        reasons = Counter(getattr(step, "reason", "") or UNSOLVED for step in failed).most_common()
        if reasons:
            reason, most = reasons[0]
            part = f", {most} of them" if len(reasons) > 1 else ""
            lines.append(f"{self.failed} without success{part}: {reason}")
        lines.append(f"states: {self._ranges(self.states)}")
        if len(self.controls):
            lines.append(f"controls: {self._ranges(self.controls)}")
        lines += [f"cost {name}: {values.sum():.6g}" for name, values in self.costs.items()]
        if self.worst:
            lines.append(f"largest violation {self.violation:.3g} of the scale: {self.worst}")
        else:
            lines.append(f"no limit of {', '.join(self._beyond) or 'anything'} is exceeded")
        if self.unchecked:
            names = ", ".join(self.unchecked)
            lines.append(f"not checked, for the record does not determine them: {names}")
        if self.deadline:
            late, longest = (self.seconds > self.deadline).sum(), 1e3 * self.seconds.max()
            lines.append(
                f"longest step {longest:.1f} ms, estimator included; over the deadline: {late}"
            )
        return "\n".join([*lines, self.stopped] if self.stopped else lines)

    __repr__ = __str__

    @property
    def tables(self) -> tuple[Table, ...]:
        """Tables in the order in which a name is looked up."""
        first = self.states, self.controls, self.constraints
        return *first, self.outputs, self.estimates, self.references

    @cached_property
    def rows(self) -> Mapping[str, Array]:  # type: ignore[override]
        """All trajectories by name, as matrices."""
        rows: dict[str, Array] = {}
        for table in self.tables:
            rows |= {name: table.rows(name) for name in table if name not in rows}
        return rows

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
        """The largest violation of a limit relative to its scale, with its name and time."""
        largest = [excess for _, excess in self._beyond.values() if excess.scaled > FEASIBLE]
        return max(largest, key=lambda excess: excess.scaled, default=None)

    @property
    def violations(self) -> Table:
        """Excess over limits at each time; of controls NaN at the last."""
        rows = {
            # From units of the scale to the quantity's own.
            name: np.maximum(beyond, 0.0) * self.limits[name].scale[:, None]
            for name, (beyond, _) in self._beyond.items()
        }
        return Table.of(rows, self.times)

    @cached_property
    def _beyond(self) -> dict[str, tuple[Array, Excess]]:
        """Excess over limits by name, in units of the scale, and the largest."""
        return {
            name: worst_excess(name, self.rows[name], limit, self.times, self.time_unit)
            for name, limit in self.limits.items()
            if np.isfinite([limit.lower, limit.upper]).any()
        }

    @property
    def failed(self) -> int:
        """Number of steps without :attr:`success`."""
        return int(np.count_nonzero(np.logical_not(self.success)))

    def plot(
        self, names: Sequence[str] | None = None, *, title: str = "", path: str | Path | None = None
    ) -> Any:
        """Draw true, measured and estimated values, controls as applied, and limits.

        Each entry of a vector has a colour; a limit of one entry alone has the same.

        Args:
            names: of trajectories, a panel each; all states and controls by default.
            title: over the panels.
            path: of a file to write as well; its suffix chooses the format.

        Returns:
            A matplotlib figure.
        """
        # matplotlib only when drawing
        from casadi_hybrid.control.simulation.drawing import draw_run  # noqa: PLC0415
        from casadi_hybrid.utils.output.plotting import save  # noqa: PLC0415

        figure = draw_run(self, names, title)
        if path is not None:
            save(figure, path)
        return figure

    def to_pandas(self) -> Any:
        """Return a table with a row a time; the last row has no control.

        Raises:
            InputError: where pandas is not installed.
        """
        pd = pandas()
        true = self.states, self.outputs, self.controls, self.constraints
        parts = [(table, "") for table in true]
        parts += [(self.measured, " measured"), (self.estimates, " estimated")]
        columns: dict[str, Array] = {}
        for table, suffix in parts:
            columns |= {
                label + suffix: row for label, row in zip(table.labels, table.values, strict=True)
            }
        columns |= {f"cost {name}": values for name, values in self.costs.items()}
        size = self.times.size
        for name, row in columns.items():
            columns[name] = np.append(row, np.full(size - row.size, np.nan))
        return pd.DataFrame(columns, index=pd.Index(self.times, name="time"))

    def save(self, path: str | Path) -> Path:
        """Write a file of NumPy's format ``.npz`` without :attr:`steps`; return its path."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        del values["steps"]
        for name, table in values.items():
            if isinstance(table, Table):
                places = {key: [rows.start, rows.stop] for key, rows in table.places.items()}
                values[name] = places, table.values, table.times
        return packed(path, "head", values | {"format": FORMAT})

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Return the run that :meth:`save` wrote.

        Raises:
            InputError: for a file of another kind.
        """
        values = unpacked(path, "head", "run")
        try:
            if (version := values.pop("format")) != FORMAT:
                raise InputError(f"{path} has the format {version!r}, not {FORMAT!r}")
            # Annotations are texts in this module, because of `from __future__ import annotations`.
            for name in (part.name for part in fields(cls) if part.type == "Table"):
                places, *matrix = values[name]
                values[name] = Table({key: slice(*rows) for key, rows in places.items()}, *matrix)
            values["limits"] = {name: Limits(*limit) for name, limit in values["limits"].items()}
            values |= {name: tuple(values[name]) for name in ("status", "unchecked")}
            return cls(**values)
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(f"{path} holds no run: {error}") from None

    def unit(self, name: str) -> str:
        """Return the unit of a quantity, empty if none was declared."""
        return self.limits[name].unit if name in self.limits else ""

    def _ranges(self, table: Table) -> str:
        words = []
        for name in table:
            rows = table.rows(name)
            most = in_unit(np.nanmax(rows), self.unit(name))
            words.append(f"{name} {np.nanmin(rows):.3g} to {most}")
        return ", ".join(words)

    def estimation_error(self) -> EstimationError:
        """Return the estimate minus the true state, by name and step; printed, the largest.

        Parameters that are estimated are included if the plant is a :class:`Plant` with them.

        Raises:
            InputError: for a run without an estimator.
        """
        if not set(self.states) <= set(self.estimates):
            raise InputError("the run has no estimates of the states; simulate with an estimator")
        times = self.control_times
        errors = {
            name: self.estimates.rows(name) - table.rows(name)[:, : times.size]
            for table in (self.states, self.parameters)
            for name in table
        }
        excesses = []
        for name in self.states:
            # Judged as an excess over the limit 0.
            rows = np.abs(errors[name])
            ones = np.ones(rows.shape[0])
            _, _, scale, unit = self.limits.get(name, (None, None, ones, ""))
            zero = Limits(-np.inf * ones, 0.0 * ones, scale, unit)
            excesses.append(worst_excess(name, rows, zero, times, self.time_unit)[1])
        largest = max(excesses, key=lambda excess: excess.scaled)
        table = Table.of(errors, times)
        return EstimationError(table.places, table.values, times, largest)
