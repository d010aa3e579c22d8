"""A function over a grid of arguments: one row a point, whatever the function raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.errors import InputError, in_a_sentence, warn
from casadi_hybrid.basics.record.cells import Columns, Kind, Row
from casadi_hybrid.basics.record.collect import Keeping, collect
from casadi_hybrid.basics.record.software import function_digest
from casadi_hybrid.basics.text import aligned

Point = tuple[bool | int | float | str, ...]


@dataclass(frozen=True)
class Sweep:
    """The rows of a sweep, in the order of the grid, the last argument fastest.

    Attributes:
        arguments, results: names.
        records: a row each, a dictionary of these names and ``error``.
    """

    arguments: tuple[str, ...]
    results: tuple[str, ...]
    records: tuple[Row, ...] = field(repr=False)

    @property
    def rows(self) -> dict[str, NDArray[Any]]:
        """All columns by name, as those of :func:`~casadi_hybrid.control.monte_carlo`."""
        return {name: self.column(name) for name in (*self.arguments, *self.results)}

    def column(self, name: str) -> NDArray[Any]:
        """Return an argument or a result of all points; NaN where the function raised."""
        if name not in (*self.arguments, *self.results, "error"):
            names = ", ".join((*self.arguments, *self.results))
            raise InputError(f"there is no column {name!r}; there are {names} and error")
        return np.array([row[name] for row in self.records])

    @property
    def errors(self) -> dict[Point, str]:
        """By point, what was raised."""
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

    A point at which it raises is a row of NaN with the message, and a warning says so at the end.

    Args:
        function: arguments by name → numbers by name. With more than one worker in a file that
            does its work under ``if __name__ == "__main__":`` and, where joblib is not installed,
            at module level.
        over, results: the values of each argument, numbers, words or truth values, of one kind
            each; the names that the function returns.
        workers: processes; all available cores by default. One runs in this process.
        cluster: in their place ``"local"``, a Dask scheduler's address or ``distributed.Client``.
        folder: where every finished point is appended to ``runs.csv`` or ``runs.parquet``. Called
            again, points that are there are not run again, as long as the text of the function is
            the same (what it calls is not looked at).
        table, fresh: ``"csv"`` or ``"parquet"``; whether to forget what the folder holds.
        progress: whether a line on stderr tells how far it is.

    Raises:
        InputError: for arguments that do not fit; for a folder that cannot be written to, is in
            use, or holds another study or changed rows.
        Unfinished: by Ctrl-C, with the sweep of the points that are done.

    Example:
        >>> found = sweep(lambda gain, noise: {"cost": gain**2 + noise}, {"gain": [1, 2],
        ...               "noise": [0.0, 0.5]}, ["cost"], workers=1, progress=False)
        >>> print(found.column("cost"))
        [1.  1.5 4.  4.5]
    """
    if not callable(function):
        raise InputError(f"function must be callable, got {type(function).__name__}")
    kinds = {name: _kind(name, values) for name, values in over.items()}
    names, wanted = tuple(over), tuple(results)
    kept: Columns = {**kinds, **dict.fromkeys(wanted, float), "error": str}
    if not names or not wanted or len(kept) < len(names) + len(wanted) + 1:
        raise InputError(
            "over and results need at least one name each, all of them different, and none 'error'"
        )
    points: list[Point] = [
        tuple(kinds[name](value) for name, value in zip(names, point, strict=True))
        for point in product(*(dict.fromkeys(values) for values in over.values()))
    ]
    about = {"function": function_digest(function), "results": list(wanted)}
    keeping = None if folder is None else Keeping[Point, Row](
        Path(folder), "sweep", about, kept, tuple, lambda point, row: [row],
        lambda rows: rows[0], size=len(names), table=table, fresh=fresh,
    )  # fmt: skip
    found = collect(
        partial(_row, function, names, wanted), points,
        lambda found: Sweep(names, wanted, tuple(found.values.values())), keeping,
        workers=workers, cluster=cluster, label="sweep" if progress else "",
        lost=partial(_nothing, names, wanted),
    )  # fmt: skip
    for point, error in list(found.errors.items())[:1]:
        warn(
            f"sweep: the function raised at {len(found.errors)} of {len(points)} points, whose "
            f"results are NaN: at {dict(zip(names, point, strict=True))} {error}; .errors has all"
        )
    return found


def _kind(name: str, values: Sequence[Any]) -> Kind:
    """The kind of an argument's values; whole numbers beside others are numbers."""
    found = {type(value.item() if isinstance(value, np.generic) else value) for value in values}
    kinds: tuple[Kind, ...] = (bool, int, float, str)
    for kind in kinds:
        if found == {kind} or (kind is float and found == {int, float}):
            return kind
    raise InputError(
        f"the values of {name!r} must be numbers, words or truth values of one kind, got "
        f"{', '.join(sorted(kind.__name__ for kind in found)) or 'none'}"
    )


def _row(
    function: Callable[..., Mapping[str, float]], names: Sequence[str], results: Sequence[str],
    point: Point,
) -> Row:  # fmt: skip
    given = dict(zip(names, point, strict=True))
    try:
        found = function(**given)
    except Exception as error:  # noqa: BLE001, whatever it is belongs into the row
        return _nothing(names, results, point, in_a_sentence(error))
    if not isinstance(found, Mapping) or set(found) != set(results):
        raise InputError(
            f"function must return a dictionary of {', '.join(results)}; it returned {found!r}"
        )
    return {**given, **{name: float(found[name]) for name in results}, "error": ""}


def _nothing(names: Sequence[str], results: Sequence[str], point: Point, sentence: str) -> Row:
    given = dict(zip(names, point, strict=True))
    return {**given, **dict.fromkeys(results, float("nan")), "error": sentence}


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
