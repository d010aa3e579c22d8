"""The population study: its units, its run and its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from casadi_hybrid.paper.experiment.generator import checked
from casadi_hybrid.paper.study.tables import as_cells, caption, summarize, text_table
from casadi_hybrid.paper.study.trial import Settings, Trial, Unit, run_unit
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import count, positive
from casadi_hybrid.utils.record.collect import Keeping, collect
from casadi_hybrid.utils.record.record import Row, header

STUDY = "population"


@dataclass(frozen=True)
class Plan:
    """Instances of a study: every combination of shape, condition, radius and seed.

    Args:
        shapes, conditions, radii: (n, m); κ of J_h(x*); distances of the start from x*.
        seeds: number of instances for each combination.
        first_seed: number of the first instance. The rules' constants were chosen on numbers below
            100. The class draws from 1000κ + number, so that numbers from 1000 on repeat a level.

    Raises:
        InputError: for an empty list or a number out of range.
    """

    shapes: tuple[tuple[int, int], ...] = ((3, 5), (5, 3), (8, 5), (20, 12))
    conditions: tuple[float, ...] = (1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 30.0, 100.0, 1e3, 1e4)
    radii: tuple[float, ...] = (0.1, 1.0)
    seeds: int = 50
    first_seed: int = 100

    def __post_init__(self) -> None:
        for name in ("shapes", "conditions", "radii"):
            if not getattr(self, name):
                raise InputError(f"{name} is empty; name at least one")
        for n, m in self.shapes:
            count(n, "n of a shape", at_least=1)
            count(m, "m of a shape", at_least=1)
        for condition in self.conditions:
            checked(condition)
        for radius in self.radii:
            positive(radius, "radius")
        count(self.seeds, "seeds", at_least=1)
        count(self.first_seed, "first_seed")

    def units(self) -> Iterator[Unit]:
        """Yield the units, block by block."""
        # dict.fromkeys drops repetitions and keeps the order.
        radii = dict.fromkeys(map(float, self.radii))
        conditions = dict.fromkeys(map(float, self.conditions))
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        for n, m in dict.fromkeys(self.shapes):
            for radius, condition, seed in product(radii, conditions, seeds):
                yield Unit(n, m, radius, condition, seed)


@dataclass(frozen=True, eq=False)
class Population:
    """Trials of every unit of a plan, in the plan's order.

    Attributes:
        unwritten: reason why rows are missing in the record; empty if none is.
    """

    settings: Settings
    units: Mapping[Unit, tuple[Trial, ...]]
    unwritten: str = ""

    def __str__(self) -> str:
        summary = summarize(self.units)
        return f"{caption(summary, self.settings.budget)}\n\n{text_table(summary)}"

    def to_dict(self) -> dict[str, Any]:
        """Return settings, caption and cells, ready for JSON."""
        summary = summarize(self.units)
        return {
            "settings": header(STUDY, self.settings.to_dict()),
            "caption": caption(summary, self.settings.budget),
            "cells": as_cells(summary),
        }


def keeping(
    folder: Path, settings: Settings, *, table: str = "csv", fresh: bool = False
) -> Keeping[Unit, tuple[Trial, ...]]:
    """Return the record of a population: a row for every unit and rule."""

    def rows(unit: Unit, trials: tuple[Trial, ...]) -> list[Row]:
        return [{**unit._asdict(), **asdict(trial)} for trial in trials]

    def trials_of(rows: Sequence[Row]) -> tuple[Trial, ...]:
        names = [field.name for field in fields(Trial)]
        return tuple(Trial(**{name: row[name] for name in names}) for row in rows)

    return Keeping(folder, STUDY, settings.to_dict(), rows, trials_of, table, fresh)


def run_study(
    plan: Plan,
    settings: Settings,
    folder: Path,
    *,
    workers: int | None = None,
    cluster: Any = None,
    table: str = "csv",
    fresh: bool = False,
    progress: bool = True,
) -> Population:
    """Run the units of a plan that ``folder`` does not hold yet, in parallel processes.

    The trials of each finished unit are recorded at once. The next call resumes an interrupted
    study, and a larger plan with the same settings adds to it. The numbers do not depend on the
    processes.

    Args:
        plan, settings: the units; the rules and their budget.
        folder: holds the record, ``study.sqlite``, and the table of the plan's runs.
        workers, cluster, table, fresh, progress: as of :func:`~casadi_hybrid.paper.study.sweep`.

    Raises:
        InputError: before any work, if the folder cannot be written to, is in use, or holds a
            study of other settings, other code or other versions.
        Unfinished: by Ctrl-C, with the population of the finished units.
    """

    def lost(unit: Unit, sentence: str) -> tuple[Trial, ...]:
        return tuple(Trial(rule, stop="PROCESS_ENDED", error=sentence) for rule in settings.rules)

    return collect(
        partial(run_unit, settings),
        list(plan.units()),
        partial(Population, settings),
        keeping(folder, settings, table=table, fresh=fresh),
        workers=workers,
        cluster=cluster,
        label="study" if progress else "",
        lost=lost,
    )


def write(population: Population, folder: Path, form: str = "png") -> list[Path]:
    """Write table.txt and study.png, or another format, beside the record; return both paths."""
    from casadi_hybrid.paper.study.figure import draw  # noqa: PLC0415
    from casadi_hybrid.utils.output.plotting import save  # noqa: PLC0415 - matplotlib only when drawing

    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "table.txt"
    text.write_text(f"{population}\n", encoding="utf-8")
    return [text, save(draw(summarize(population.units)), folder / f"study.{form}")]
