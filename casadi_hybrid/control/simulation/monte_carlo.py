"""A closed loop over many seeds, and statistics of the runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from casadi_hybrid.control.model.signals import Array, ByName, known
from casadi_hybrid.control.simulation.run import Run
from casadi_hybrid.utils.errors import InputError, in_a_sentence, warn
from casadi_hybrid.utils.inputs import count, is_callable
from casadi_hybrid.utils.output.text import aligned
from casadi_hybrid.utils.record.collect import Keeping, collect
from casadi_hybrid.utils.record.software import function_digest

QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class Trial:
    """Outcome of one seed; a number is NaN if the run has none."""

    seed: int
    cost: float = np.nan  # over all steps; NaN for a run that stopped early
    violation: float = np.nan  # largest of all limits, in scales
    failed: float = np.nan  # steps without success, see Run
    steps: int = 0
    error: str = ""  # why the run stopped early or raised


@dataclass(frozen=True)
class Statistic:
    """Statistics of one column over the trials that have its value."""

    count: int  # number of these trials
    mean: float
    std: float  # with count − 1
    quantiles: tuple[float, ...]  # 5 %, median, 95 %
    worst: float  # largest value
    seed: int | None  # of the worst; None if no trial has the value


@dataclass(frozen=True, repr=False)
class Summary(ByName):
    """All trials in the order of the seeds; ``summary["cost"]`` is the statistic of a column.

    ``list(summary)`` are the columns, ``print(summary)`` is their :meth:`table`.

    Attributes:
        trials: one a seed.
    """

    trials: tuple[Trial, ...]

    @property
    def rows(self) -> Mapping[str, Array]:  # type: ignore[override]
        """``cost``, ``violation``, ``failed`` and ``steps`` of all trials."""
        names = ("cost", "violation", "failed", "steps")
        return {name: np.array([getattr(t, name) for t in self.trials], float) for name in names}

    def column(self, name: str) -> Array:
        """Return ``cost``, ``violation``, ``failed`` or ``steps`` of all trials."""
        return np.asarray(known(name, self.rows, "column"))

    def __getitem__(self, name: str) -> Statistic:
        column = self.column(name)
        indices = np.flatnonzero(np.isfinite(column))
        if not indices.size:
            return Statistic(0, np.nan, np.nan, (np.nan,) * 3, np.nan, None)
        values = column[indices]
        worst = int(indices[np.argmax(values)])
        quantiles = tuple(np.quantile(values, QUANTILES).tolist())
        # ddof=1: the unbiased estimate from a sample.
        mean, std = float(values.mean()), float(values.std(ddof=1)) if values.size > 1 else 0.0
        seed = self.trials[worst].seed
        return Statistic(values.size, mean, std, quantiles, float(column[worst]), seed)

    @property
    def errors(self) -> dict[int, str]:
        """Reasons of runs that stopped early or raised, by seed."""
        return {trial.seed: trial.error for trial in self.trials if trial.error}

    def table(self) -> str:
        """Return the statistics as a table in plain text, then the runs that did not finish."""
        rows: list[Any] = [("", "runs", "mean", "std", "5 %", "median", "95 %", "worst", "seed")]
        labels = {"cost": "cost", "violation": "violation / scale", "failed": "failed steps"}
        for name, label in labels.items():
            s = self[name]
            values = [f"{value:.4g}" for value in (s.mean, s.std, *s.quantiles, s.worst)]
            rows.append((label, str(s.count), *values, "" if s.seed is None else str(s.seed)))
        errors = [f"seed {seed}: {error}" for seed, error in self.errors.items()]
        return "\n".join([*aligned(rows, "<>"), *errors])

    __repr__ = table

    def plot(self, *, title: str = "") -> Any:
        """Draw the share of runs at or below each cost and each violation.

        Returns:
            A matplotlib figure.
        """
        # matplotlib only when drawing
        from casadi_hybrid.control.simulation.drawing import draw_shares  # noqa: PLC0415

        ended = f"{len(self.errors)} of {len(self.trials)} runs came to no end"
        shown = {"cost": self.column("cost"), "largest violation / scale": self.column("violation")}
        return draw_shares(shown, title or (ended if self.errors else ""))


def monte_carlo(
    run_one: Callable[[int], Run],
    seeds: int | Sequence[int],
    *,
    workers: int = 1,
    cluster: Any = None,
    folder: str | Path | None = None,
    table: str = "csv",
    fresh: bool = False,
    progress: bool = True,
) -> Summary:
    """Run a closed loop for many seeds and summarise.

    A run that raises, or ends its process, is a row with its message; a warning at the end counts
    such runs. The results do not depend on the workers, as :func:`simulate` resets controller and
    estimator.

    Args:
        run_one: seed → :class:`Run`; for more than one worker it makes plant and controller, in a
            file whose calls stand under ``if __name__ == "__main__":``.
        seeds: the seeds, or how many, from 0.
        workers: processes; one runs in this process.
        cluster: a Dask cluster in their place: ``"local"``, the address of a scheduler, or a
            ``distributed.Client``.
        folder: keeps every finished run in ``study.sqlite``, and the table ``runs.csv`` or
            ``runs.parquet``. The next call runs only the missing seeds. A ``run_one`` with another
            source is refused; the functions that it calls are not compared.
        table: ``"csv"`` or ``"parquet"``.
        fresh: delete an earlier record.
        progress: show a progress bar on a terminal.

    Raises:
        InputError: for arguments that do not fit, by name; for a folder that cannot be written
            to, is in use, or holds another study.
        Unfinished: by Ctrl-C, with the summary of the finished runs.

    Example:
        >>> from casadi_hybrid.control import simulate
        >>> def run_one(seed):
        ...     return simulate(lambda x, u: 0.9 * x + u, lambda time, x: -0.5 * x, steps=20,
        ...                     x0=[1.0], period=1.0, noise=0.1, seed=seed,
        ...                     cost=lambda x, u, time: float(x @ x))
        >>> summary = monte_carlo(run_one, 5, progress=False)
        >>> summary["cost"].count, summary["failed"].worst
        (5, 0.0)
    """
    is_callable(run_one, "run_one", "a function (seed) → Run")
    chosen = list(map(int, seeds if np.iterable(seeds) else range(count(seeds, "seeds"))))
    if not chosen or len(set(chosen)) < len(chosen):
        raise InputError("seeds must be different numbers, at least one")
    workers = count(workers, "workers", at_least=1)
    keeping = None
    if folder is not None:
        keeping = Keeping[int, Trial](
            Path(folder),
            "Monte Carlo",
            {"run_one": function_digest(run_one)},
            rows=lambda seed, trial: [asdict(trial)],
            value=lambda rows: Trial(**rows[0]),
            table=table,
            fresh=fresh,
        )
    summary = collect(
        partial(_trial, run_one),
        chosen,
        lambda trials, unwritten: Summary(tuple(trials.values())),
        keeping,
        workers=workers,
        cluster=cluster,
        label="Monte Carlo" if progress else "",
        lost=lambda seed, sentence: Trial(seed, error=sentence),
    )
    for seed, error in list(summary.errors.items())[:1]:
        warn(
            f"monte_carlo: {len(summary.errors)} of {len(chosen)} runs raised or stopped early, "
            f"seed {seed}: {error}; .errors has all"
        )
    return summary


def _trial(run_one: Callable[[int], Run], seed: int) -> Trial:
    """Return the outcome of a seed; the run itself stays in its process."""
    try:
        run = run_one(seed)
    except Exception as error:  # noqa: BLE001, every error belongs into the row
        return Trial(seed, error=in_a_sentence(error))
    if not isinstance(run, Run):
        raise InputError(f"run_one must return a Run, got {type(run).__name__}")
    cost = np.nan if run.stopped else run.cost
    return Trial(seed, cost, run.violation, run.failed, run.control_times.size, run.stopped)
