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
TABLES = ("states", "outputs", "controls", "commanded", "measured", "estimates", "constraints",
          "references", "parameters")  # fmt: skip
UNSOLVED = "the estimator did not solve its window, or the controller gave no reason"


@dataclass(frozen=True)
class Run(ByName):
    """The record of a closed loop of K steps; K is smaller than asked where :attr:`stopped` is.

    ``run["level"]`` is the true trajectory of a state, an output, a path constraint or a reference
    at :attr:`times`, or of a control or an estimated parameter at the first K of them;
    ``list(run)`` are the names.

    Attributes:
        states: true states at the K + 1 times.
        outputs: all outputs of the plant's model there, without noise.
        controls: what was applied from each of the first K times to the next.
        commanded: what the controller said at these times; NaN where it was not asked.
        measured: what arrived at these times; NaN where nothing did.
        estimates: states, and parameters, that the estimator said; without one no rows.
        constraints: path constraints of an :class:`MPC` at the true states and the controls applied
            from there on, with the parameters that it had.
        references: of an :class:`MPC`, as its steps were asked: at each time that of the first
            interval.
        parameters: those of a :class:`Plant` that the estimator estimates, as they are.
        costs: by name, one number a step.
        limits: by name, each side with a column, or with one a time where they have changed.
        unchecked: names of what the record does not determine: of algebraic states with limits (an
            output that is one, with ``limits=`` of :func:`simulate`, is checked), and of path
            constraints that depend on one, on what the solver chooses, or on states that the plant
            does not have.
        status: what the controller said of each step; a plain function says "computed".
        success: whether its solver found what to act on: ``success`` of what it returned; without
            that, a status that is none of "last plan", "fallback" and "default"; and whether the
            estimator solved its window.
        seconds: that controller and estimator took, by step.
        steps: what the controller returned; empty in a run that was loaded.
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
        counts, end = Counter(self.status), in_unit(self.times[-1], self.time_unit)
        said = f"largest violation {self.violation:.3g} of the scale: {self.worst}"
        if not self.worst:
            said = f"no limit of {', '.join(self._beyond) or 'anything'} is exceeded"
        rest = f"not checked, for the record does not determine them: {', '.join(self.unchecked)}"
        late, longest = (self.seconds > (self.deadline or np.inf)).sum(), 1e3 * self.seconds.max()
        timed = f"longest step {longest:.1f} ms, estimator included; over the deadline: {late}"
        lost = (step for step, good in zip(self.steps, self.success, strict=False) if not good)
        reasons = Counter(getattr(step, "reason", "") or UNSOLVED for step in lost)
        why, most = next(iter(reasons.most_common(1)), ("", 0))
        of_them = f", {most} of them" if len(reasons) > 1 else ""
        lines = [
            f"{len(self.status)} steps from time {self.times[0]:g} to {end}: "
            + ", ".join(f"{count} {status}" for status, count in counts.most_common()),
            f"{self.failed} without success{of_them}: {why}" if reasons else "",
            f"states: {self._ranges(self.states)}",
            f"controls: {self._ranges(self.controls)}" if len(self.controls) else "",
            *(f"cost {name}: {values.sum():.6g}" for name, values in self.costs.items()),
            said, rest if self.unchecked else "", timed if self.deadline else "", self.stopped,
        ]  # fmt: skip
        return "\n".join(filter(None, lines))

    __repr__ = __str__

    @property
    def tables(self) -> tuple[Table, ...]:
        """Tables in the order in which a name is looked up."""
        return (self.states, self.controls, self.constraints, self.outputs, self.estimates,
                self.references)  # fmt: skip

    @cached_property
    def rows(self) -> Mapping[str, Array]:  # type: ignore[override]
        """All trajectories by name, as matrices."""
        found: dict[str, Array] = {}
        for table in self.tables:
            found |= {name: table.rows(name) for name in table if name not in found}
        return found

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
        found = [excess for _, excess in self._beyond.values() if excess.scaled > FEASIBLE]
        return max(found, key=lambda excess: excess.scaled, default=None)

    @property
    def violations(self) -> Table:
        """Excess over limits at each time; of controls NaN at the last."""
        rows = {name: np.maximum(beyond, 0.0) * self.limits[name].scale[:, None]
                for name, (beyond, _) in self._beyond.items()}  # fmt: skip
        return Table.of(rows, self.times)

    @cached_property
    def _beyond(self) -> dict[str, tuple[Array, Excess]]:
        """Excess over limits by name, in units of the scale, and the largest."""
        return {
            name: worst_excess(name, self.rows[name], limit, self.times, self.time_unit)
            for name, limit in self.limits.items() if np.isfinite([limit.lower, limit.upper]).any()
        }  # fmt: skip

    @property
    def failed(self) -> int:
        """Number of steps without :attr:`success`."""
        return int(np.count_nonzero(np.logical_not(self.success)))

    def plot(
        self, names: Sequence[str] | None = None, *, title: str = "", path: str | Path | None = None
    ) -> Any:
        """Draw what was true, of controls applied; measured, estimated; and limits.

        Of a vector each entry has a colour, and so has a limit that it alone has.

        Args:
            names: what to draw, a panel each; all states and controls by default.
            title: over the panels.
            path: of a file to write as well; its suffix chooses the format.

        Returns:
            A matplotlib figure.
        """
        # matplotlib only when drawing
        from casadi_hybrid.control.simulation.drawing import draw_run  # noqa: PLC0415
        from casadi_hybrid.utils.output.plotting import save  # noqa: PLC0415

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
            (self.states, ""), (self.outputs, ""), (self.controls, ""), (self.constraints, ""),
            (self.measured, " measured"), (self.estimates, " estimated"),
        ):  # fmt: skip
            for label, row in zip(table.labels, table.values, strict=True):
                rest = np.full(self.times.size - row.size, np.nan)
                columns[label + suffix] = np.append(row, rest)
        for name, values in self.costs.items():
            columns[f"cost {name}"] = np.append(values, np.nan)
        return pd.DataFrame(columns, index=pd.Index(self.times, name="time"))

    def save(self, path: str | Path) -> Path:
        """Write a file of NumPy's format ``.npz`` without :attr:`steps`; return its path."""
        held = {part.name: getattr(self, part.name) for part in fields(self)}
        del held["steps"]
        for name in TABLES:
            table = held[name]
            places = {key: [at.start, at.stop] for key, at in table.places.items()}
            held[name] = places, table.values, table.times
        return packed(path, "head", held | {"format": FORMAT})

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Return the run that :meth:`save` wrote.

        Raises:
            InputError: where the file is no such file.
        """
        held = unpacked(path, "head", "run")
        try:
            if (found := held.pop("format")) != FORMAT:
                raise InputError(f"{path} has the format {found!r}, not {FORMAT!r}")
            for name in TABLES:
                places, *matrix = held[name]
                held[name] = Table({key: slice(*at) for key, at in places.items()}, *matrix)
            held["limits"] = {name: Limits(*limit) for name, limit in held["limits"].items()}
            held |= {name: tuple(held[name]) for name in ("status", "unchecked")}
            return cls(**held)
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(f"{path} holds no run: {error}") from None

    def unit(self, name: str) -> str:
        """Return the unit of a quantity, empty where none was declared."""
        return self.limits[name].unit if name in self.limits else ""

    def _ranges(self, table: Table) -> str:
        return ", ".join(
            f"{name} {np.nanmin(rows):.3g} to {in_unit(np.nanmax(rows), self.unit(name))}"
            for name, rows in ((name, table.rows(name)) for name in table)
        )

    def estimation_error(self) -> EstimationError:
        """Return the estimate minus the true state, by name and step; printed, the largest.

        By name also that of parameters that are estimated, where a :class:`Plant` has them.

        Raises:
            InputError: for a run without an estimator.
        """
        if not set(self.states) <= set(self.estimates):
            raise InputError("the run has no estimates of the states; simulate with an estimator")
        times = self.control_times
        gaps = Table.of({
            name: self.estimates.rows(name) - table.rows(name)[:, : times.size]
            for table in (self.states, self.parameters) for name in table
        }, times)  # fmt: skip
        worst = []
        for name in self.states:
            rows = np.abs(gaps.rows(name))
            one = np.ones(rows.shape[0])
            _, _, scale, unit = self.limits.get(name, (None, None, one, ""))
            limit = Limits(-np.inf * one, 0.0 * one, scale, unit)
            worst.append(worst_excess(name, rows, limit, times, self.time_unit)[1])
        largest = max(worst, key=lambda excess: excess.scaled)
        return EstimationError(gaps.places, gaps.values, times, largest)
