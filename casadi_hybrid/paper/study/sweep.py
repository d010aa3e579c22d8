"""Sweep of a function over a grid of arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.utils.errors import InputError, in_a_sentence, warn
from casadi_hybrid.utils.inputs import is_callable
from casadi_hybrid.utils.output.text import aligned
from casadi_hybrid.utils.record.collect import Keeping, collect
from casadi_hybrid.utils.record.record import Row
from casadi_hybrid.utils.record.software import function_digest

Kind = type[bool] | type[int] | type[float] | type[str]
Point = tuple[bool | int | float | str, ...]


@dataclass(frozen=True)
class Sweep:
    """Rows of a sweep, in the order of the grid, the last argument fastest.

    Attributes:
        arguments, results: names.
        records: a dictionary of these names and ``error`` for each point.
    """

    arguments: tuple[str, ...]
    results: tuple[str, ...]
    records: tuple[Row, ...] = field(repr=False)

    @property
    def rows(self) -> dict[str, NDArray[Any]]:
        """Columns by name."""
        return {name: self.column(name) for name in (*self.arguments, *self.results)}

    def column(self, name: str) -> NDArray[Any]:
        """Return an argument or a result of all points; NaN if the function raised."""
        if name not in (*self.arguments, *self.results, "error"):
            names = ", ".join((*self.arguments, *self.results))
            raise InputError(f"there is no column {name!r}; there are {names} and error")
        return np.array([row[name] for row in self.records])

    @property
    def errors(self) -> dict[Point, str]:
        """Messages of the raised errors, by point."""
        failed = (row for row in self.records if row["error"])
        return {tuple(row[name] for name in self.arguments): row["error"] for row in failed}

    def __str__(self) -> str:
        names = (*self.arguments, *self.results)
        rows = [[*names, ""]]
        rows += [[*(_shown(row[name]) for name in names), row["error"]] for row in self.records]
        return "\n".join(aligned(rows, ">" * len(names) + "<"))


def sweep(
    function: Callable[..., Mapping[str, float]],
    over: Mapping[str, Sequence[Any]],
    results: Sequence[str],
    *,
    workers: int | None = None,
    cluster: Any = None,
    folder: str | Path | None = None,
    table: str = "csv",
    fresh: bool = False,
    progress: bool = True,
) -> Sweep:
    """Call a function at every point of a grid, in parallel.

    If the function raises, the row has NaN and the message; a warning counts these points.

    Args:
        function: arguments by name → numbers by name. More than one worker needs a script with
            ``if __name__ == "__main__":``.
        over: values of each argument: numbers, words or truth values, of one kind each.
        results: names of the numbers that the function returns.
        workers: processes; all available cores by default. One runs in this process.
        cluster: instead of processes: ``"local"``, a Dask scheduler's address or
            ``distributed.Client``.
        folder: holds every finished point in ``study.sqlite``, and the table. The next call runs
            only the missing points. A function with another source text is rejected; the
            functions that it calls are not compared.
        table, fresh: ``"csv"`` or ``"parquet"`` for the table; delete an earlier record.
        progress: show a progress bar on a terminal.

    Raises:
        InputError: for invalid arguments; for a folder that cannot be written to, is in use, or
            holds another study.
        Unfinished: by Ctrl-C, with the sweep of the finished points.

    Example:
        >>> swept = sweep(lambda gain, noise: {"cost": gain**2 + noise}, {"gain": [1, 2],
        ...               "noise": [0.0, 0.5]}, ["cost"], workers=1, progress=False)
        >>> print(swept.column("cost"))
        [1.  1.5 4.  4.5]
    """
    is_callable(function, "function")
    kinds = {name: _kind(name, values) for name, values in over.items()}
    names, outputs = tuple(over), tuple(results)
    columns = [*names, *outputs, "error"]
    if not names or not outputs or len({*columns}) < len(columns):
        raise InputError(
            "over and results need at least one name each, all of them different, and none 'error'"
        )
    points: list[Point] = [
        tuple(kinds[name](value) for name, value in zip(names, point, strict=True))
        # The last argument varies fastest, as in nested loops.
        for point in product(*(dict.fromkeys(values) for values in over.values()))
    ]
    settings = {"function": function_digest(function), "results": list(outputs)}
    keeping = None
    if folder is not None:
        keeping = Keeping[Point, Row](
            Path(folder),
            "sweep",
            settings,
            rows=lambda point, row: [row],
            value=lambda rows: rows[0],
            table=table,
            fresh=fresh,
        )
    swept = collect(
        partial(_row, function, names, outputs),
        points,
        lambda rows, unwritten: Sweep(names, outputs, tuple(rows.values())),
        keeping,
        workers=workers,
        cluster=cluster,
        label="sweep" if progress else "",
        lost=partial(_failed, names, outputs),
    )
    if errors := swept.errors:
        point, error = next(iter(errors.items()))
        warn(
            f"sweep: the function raised at {len(errors)} of {len(points)} points, whose "
            f"results are NaN: at {dict(zip(names, point, strict=True))} {error}; .errors has all"
        )
    return swept


def _kind(name: str, values: Sequence[Any]) -> Kind:
    """Return the type of an argument's values; ``float`` for whole numbers beside others."""
    # NumPy's scalars count as Python's: a record has the latter.
    types = {type(value.item() if isinstance(value, np.generic) else value) for value in values}
    kinds: tuple[Kind, ...] = (bool, int, float, str)
    for kind in kinds:
        if types == {kind} or (kind is float and types == {int, float}):
            return kind
    raise InputError(
        f"the values of {name!r} must be numbers, words or truth values of one kind, got "
        f"{', '.join(sorted(kind.__name__ for kind in types)) or 'none'}"
    )


def _row(
    function: Callable[..., Mapping[str, float]],
    names: Sequence[str],
    results: Sequence[str],
    point: Point,
) -> Row:
    arguments = dict(zip(names, point, strict=True))
    try:
        values = function(**arguments)
    except Exception as error:  # noqa: BLE001, every error belongs into the row
        return _failed(names, results, point, in_a_sentence(error))
    if not isinstance(values, Mapping) or set(values) != set(results):
        raise InputError(
            f"function must return a dictionary of {', '.join(results)}; it returned {values!r}"
        )
    return {**arguments, **{name: float(values[name]) for name in results}, "error": ""}


def _failed(names: Sequence[str], results: Sequence[str], point: Point, sentence: str) -> Row:
    arguments = dict(zip(names, point, strict=True))
    return {**arguments, **dict.fromkeys(results, float("nan")), "error": sentence}


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
