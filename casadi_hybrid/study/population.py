"""The population study: which units there are, running them, and what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, get_type_hints

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import count, positive
from casadi_hybrid.basics.record.cells import Row
from casadi_hybrid.basics.record.collect import Keeping, collect
from casadi_hybrid.basics.record.record import header
from casadi_hybrid.paper.generator import checked
from casadi_hybrid.study.tables import as_cells, caption, summarize, text_table
from casadi_hybrid.study.trial import Settings, Trial, Unit, run_unit

STUDY = "population"


@dataclass(frozen=True)
class Plan:
    """The instances of a study: every combination of what is listed.

    Args:
        shapes, conditions, radii: (n, m); κ of J_h(x*); distances of the start from x*.
        seeds: instances for each of these combinations.
        first_seed: number of the first. Every constant of a rule was chosen on numbers below 100.
            The class draws from 1000κ + number: from 1000 on as at another level.

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
        radii, levels = (dict.fromkeys(map(float, each)) for each in (self.radii, self.conditions))
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        for n, m in dict.fromkeys(self.shapes):
            yield from (Unit(n, m, *rest) for rest in product(radii, levels, seeds))


@dataclass(frozen=True, eq=False)
class Population:
    """The trials of every unit of a plan, in the plan's order.

    ``unwritten`` says why rows could not be written to the record; empty where all are.
    """

    settings: Settings
    units: Mapping[Unit, tuple[Trial, ...]]
    unwritten: str = ""

    def __str__(self) -> str:
        summary = summarize(self.units)
        return f"{caption(summary, self.settings.budget)}\n\n{text_table(summary)}"

    def to_dict(self) -> dict[str, Any]:
        """Settings, caption and cells, ready for JSON."""
        summary = summarize(self.units)
        return {
            "settings": header(STUDY, self.settings.to_dict()),
            "caption": caption(summary, self.settings.budget),
            "cells": as_cells(summary),
        }


def keeping(
    folder: Path, settings: Settings, *, table: str = "csv", fresh: bool = False
) -> Keeping[Unit, tuple[Trial, ...]]:
    """How a population is kept in a folder: a row for every unit and rule."""
    unit, trial = get_type_hints(Unit), get_type_hints(Trial)

    def rows(of: Unit, trials: tuple[Trial, ...]) -> list[Row]:
        return [{**of._asdict(), **asdict(trial)} for trial in trials]

    def back(kept: Sequence[Row]) -> tuple[Trial, ...]:
        return tuple(Trial(**{name: row[name] for name in trial}) for row in kept)

    return Keeping(
        folder, STUDY, settings.to_dict(), {**unit, **trial}, tuple, rows, back, size=len(unit),
        count=len(settings.rules), table=table, fresh=fresh,
    )  # fmt: skip


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

    The trials of each finished unit are appended to the record at once, with a checksum and the
    versions of the software. A run that was cut short goes on from there, and a larger plan with
    the same settings adds to it. The numbers do not depend on what carries the work.

    Args:
        plan, settings: what to run, and how.
        folder: where the record is kept: ``study.json``, and ``runs.csv`` or ``runs.parquet``.
        workers, cluster, table, fresh, progress: as of :func:`~casadi_hybrid.study.sweep.sweep`.

    Raises:
        InputError: before any work, when the folder cannot be written to, is in use, or holds a
            study of other settings, other code or other versions, or rows that were changed.
        Unfinished: by Ctrl-C, with the population of the units that are done.
    """

    def lost(unit: Unit, sentence: str) -> tuple[Trial, ...]:
        return tuple(Trial(rule, stop="PROCESS_ENDED", error=sentence) for rule in settings.rules)

    return collect(
        partial(run_unit, settings), list(plan.units()),
        lambda found: Population(settings, found.values, found.unwritten),
        keeping(folder, settings, table=table, fresh=fresh), workers=workers, cluster=cluster,
        label="study" if progress else "", lost=lost,
    )  # fmt: skip


def write(population: Population, folder: Path, form: str = "png") -> list[Path]:
    """Write table.txt and study.png, or another format, beside the record; return both paths."""
    from casadi_hybrid.plotting import save  # noqa: PLC0415 - matplotlib only when drawing
    from casadi_hybrid.study.figure import draw  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "table.txt"
    text.write_text(f"{population}\n", encoding="utf-8")
    return [text, save(draw(summarize(population.units)), folder / f"study.{form}")]
