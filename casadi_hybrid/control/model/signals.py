"""Named quantities with sizes, limits, scales and units, and checks of their values."""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.problem.graph.expressions import no_comparison
from casadi_hybrid.utils.errors import InputError, in_a_sentence, suggest
from casadi_hybrid.utils.inputs import count

Array = NDArray[np.float64]
_RESERVED = "[", "violation of "
Places = Mapping[str, slice]
Values = Mapping[str, Any]
# A number, a vector, a matrix with a column a grid point, or a function of s in [0, 1].
Guess = Any


@dataclass(frozen=True)
class Signal:
    """A named column of quantities.

    Attributes:
        name: key in dictionaries and solutions.
        size: number of entries.
        lower, upper: limits, one an entry.
        scale: typical size of each entry; the solver sees the quantity divided by it.
        guess: start value of a solve.
        unit: for axes and tables, as ``"m/s"``.
        linear: True for a control that runs linearly between grid points instead of being held.
        varying: True for a parameter with a value at each grid point.
        needed: True for such a parameter without a declared value: each solve has to give one.
        moved: expressions of the model's parameters for lower and upper; None for a number.
    """

    name: str
    size: int
    lower: Array
    upper: Array
    scale: Array
    guess: Guess = 0.0
    unit: str = ""
    linear: bool = False
    varying: bool = False
    needed: bool = False
    moved: tuple[Any, Any] = (None, None)

    @classmethod
    def of(
        cls,
        name: str,
        size: int,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        scale: Any = 1.0,
        guess: Guess = 0.0,
        unit: str = "",
        **rest: Any,
    ) -> Signal:
        """Check and spread the numbers over the entries."""
        if not isinstance(name, str) or not name:
            raise InputError(f"name must be a non-empty text, got {name!r}")
        if name.startswith(_RESERVED):
            raise InputError(
                f"name is {name!r}; it must not begin with '[', a list for CasADi, nor with "
                "'violation of', what excesses of soft limits are called"
            )
        size = count(size, f"size of {name!r}", at_least=1)
        least, most = sides(name, size, lower, upper)
        typical = sizes(name, size, scale)
        if not isinstance(unit, str):
            raise InputError(
                f"unit of {name!r} must be a text such as 'm/s', got {unit!r}; "
                "the typical size is called scale"
            )
        return cls(name, size, least, most, typical, guess, unit, **rest)

    @classmethod
    def of_reference(cls, name: str, value: Any, size: int, unit: str) -> Signal:
        """Return a reference with a declared value; None if each solve gives one."""
        if size == 1 and isinstance(value, list | tuple) and len(value) > 1:
            raise InputError(f"reference {name!r} has {len(value)} numbers; give size={len(value)}")
        if size == 1 and isinstance(value, int) and value > 1:  # as the second argument of a state
            raise InputError(
                f"reference {name!r} has the value {value}; write {value}.0 for the value, or "
                f"size={value} for as many entries"
            )
        return cls.of(name, size, unit=unit, varying=True, needed=value is None)


class NumberError(InputError):
    """A number is NaN, the function for it raised, or limits that follow it cross."""


class LackingError(InputError):
    """A reference without a value was not given."""


class ByName(Mapping[str, Any]):
    """Matrices by name; one with a single row is read as a vector."""

    rows: Mapping[str, Array]

    def __getitem__(self, name: str) -> Any:
        return plain(known(name, self.rows, "trajectory"))

    def __contains__(self, name: object) -> bool:
        return name in self.rows

    def keys(self) -> KeysView[str]:
        """The names; a mapping's own view would print all numbers."""
        return self.rows.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


class Named(dict[str, Any]):
    """Dictionary whose message about an unknown name suggests a near one."""

    def __init__(self, values: Any, kind: str) -> None:
        super().__init__(values)
        self._kind = kind

    def __missing__(self, name: str) -> Any:
        return known(name, dict(self), self._kind)


def plain(rows: Array) -> Array:
    """Return a matrix, or the row of a matrix with one."""
    return rows[0] if rows.shape[0] == 1 else rows


def number(values: Array) -> Any:
    """Return a vector, or the number of a vector with one entry."""
    return float(values[0]) if values.size == 1 else values


def numbers(value: Any, what: str, *, limit: bool = False) -> Array:
    """Return numbers as a new array; refuse None, text and expressions."""
    if isinstance(value, ca.SX | ca.MX) and not value.is_constant():
        # NumPy would read a symbol as NaN.
        hint = "; for a limit on the other side state another constraint" if limit else ""
        raise InputError(f"{what} must be numbers, got the expression {value}{hint}")
    try:
        if value is None or np.asarray(value).dtype.kind in "SU":  # "5" is no number
            raise TypeError
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers, got {value!r}") from None


def flat(value: Any, what: str, *, limit: bool = False) -> Array:
    """Return numbers as one column; refuse a matrix, whose order is ambiguous."""
    values = numbers(value, what, limit=limit)
    # NumPy stacks rows, CasADi columns.
    if values.size > max(values.shape, default=1):
        raise InputError(
            f"{what} has the shape {values.shape}; give {values.size} numbers; A.ravel(order='F') "
            "are those of which ca.reshape makes a matrix A again"
        )
    return values.ravel()


def moment(time: Any, last: float | None = None) -> float:
    """Return the time of a step as a finite number, not before that of the last one."""
    try:
        now = float(time)
    except (TypeError, ValueError):
        now = np.nan
    if not np.isfinite(now):
        raise InputError(f"time must be a finite number, got {time!r}")
    if last is not None and now < last:
        raise InputError(f"time is {now!r}, before the last step at {last!r}; reset() begins anew")
    return now


def by_name(values: Any, what: str) -> dict[str, Any]:
    """Return a dictionary by name as a new one; None is an empty one."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise InputError(f"{what} must be a dictionary by name, got {type(values).__name__}")
    return dict(values)


def column(value: Any, size: int, what: str, *, limit: bool = False) -> Array:
    """Return numbers, none of them NaN, as one column of the size."""
    values = flat(value, what, limit=limit)
    _no_list_of_one(value, values, size, what)
    if np.isnan(values).any():
        none = ", infinite ones for no limit" if limit else ""
        raise NumberError(f"{what} has a NaN; give numbers{none}")
    if values.size not in (1, size):
        needed = f"declare it with {values.size} entries" if size == 1 else size
        raise InputError(f"{what} has {values.size} entries; give one, or {needed}")
    return values.copy() if values.size == size else np.full(size, values[0])


def _no_list_of_one(value: Any, read: Array, size: int, what: str) -> None:
    # More likely a forgotten entry than a number for all.
    if read.shape == (1,) and size > 1 and isinstance(value, list | tuple | np.ndarray):
        raise InputError(f"{what} is a list of 1 number; give {size}, or a number for all")


def finite(value: Any, size: int, what: str) -> Array:
    """Return finite numbers as one column of the size."""
    values = column(value, size, what)
    if np.isinf(values).any():
        raise InputError(f"{what} is infinite; give a finite number")
    return values


def sides(name: str, size: int, lower: Any, upper: Any) -> tuple[Array, Array]:
    """Return limits, None for no limit, as columns; refuse a lower one above the upper."""
    lower, upper = (-np.inf if lower is None else lower), (np.inf if upper is None else upper)
    least = column(lower, size, f"lower of {name!r}", limit=True)
    most = column(upper, size, f"upper of {name!r}", limit=True)
    if (least > most).any():
        at = int(np.argmax(least > most))
        raise NumberError(f"lower of {name!r} is {least[at]:g}, above its upper, {most[at]:g}")
    return least, most


def changeable(name: str, pair: tuple[Array, Array], declared: Any) -> None:
    """Refuse a limit on a side without a bound in the program."""
    for side, limit in zip(("lower", "upper"), pair, strict=True):
        if (np.isfinite(limit) & ~np.isfinite(getattr(declared, side))).any():
            raise InputError(
                f"{name!r} was declared without {side}=, so that there is no {side} limit "
                "to change; declare one, as wide as you like"
            )


def pair_of(name: str, size: int, pair: Any) -> tuple[Array, Array]:
    """Return limits given as a pair (lower, upper), in which None is no limit, as columns."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InputError(f"limits of {name!r} must be a pair (lower, upper), got {pair!r}")
    return sides(name, size, *pair)


def sizes(name: str, size: int, scale: Any) -> Array:
    """Return typical sizes, which must be positive, as a column."""
    typical = column(scale, size, f"scale of {name!r}")
    if not (np.isfinite(typical) & (typical > 0)).all():
        raise InputError(f"scale of {name!r} must be positive numbers, got {scale!r}")
    return typical


def places(signals: Mapping[str, Signal]) -> dict[str, slice]:
    """Return the slices of signals in the column of all of them."""
    return places_of({name: signal.size for name, signal in signals.items()})


def places_of(sizes: Mapping[str, int]) -> dict[str, slice]:
    """Return the slices of parts of these sizes in the column of all of them."""
    edges = pairwise(accumulate(sizes.values(), initial=0))
    return {name: slice(*edge) for name, edge in zip(sizes, edges, strict=True)}


def size_of(places: Places) -> int:
    """Return the number of rows of all names."""
    return sum(where.stop - where.start for where in places.values())


def matrix(value: Any, size: int, columns: int, what: str) -> Array:
    """Return a size × columns matrix: from a number, a column, a row or in full; without NaN."""
    values = numbers(value, what)
    if np.isnan(values).any():
        raise NumberError(f"{what} has a NaN")
    _no_list_of_one(value, values, size, what)
    shape = values.shape
    if values.ndim < 2:  # of one row of all columns it is flat
        values = values.reshape((1, columns) if size == 1 and shape == (columns,) else (-1, 1))
    if values.ndim == 2 and values.shape[0] in (1, size) and values.shape[1] in (1, columns):
        return np.broadcast_to(values, (size, columns)).copy()
    forms = ["a number"]
    if size > 1:
        forms.append(f"{size} numbers")
    if columns > 1:
        rows = f"{size} rows and {columns} columns" if size > 1 else f"{columns} numbers"
        forms.append(f"{rows}, one for each time")
    raise InputError(f"{what} has the shape {shape}; give {', or '.join(forms)}")


def spread(guess: Guess, size: int, fractions: Array, what: str, *, held: bool = False) -> Array:
    """Return a guess at each fraction of the horizon, one column for each."""
    if callable(guess):
        try:
            points = [guess(s) for s in fractions.tolist()]
        except Exception as error:
            raise NumberError(f"{what} raised {in_a_sentence(error)}") from error
        return _stacked(points, size, what)
    # The guess of a held control may have a column an interval: the last one is repeated.
    if held and np.ndim(guess) and np.shape(guess)[-1] == fractions.size - 1:
        values = np.atleast_2d(np.asarray(guess))
        if values.shape[0] == size:
            guess = np.hstack((values, values[:, -1:]))
    return matrix(guess, size, fractions.size, what)


def _stacked(points: Sequence[Any], size: int, what: str) -> Array:
    """Return the values of a function at several times, one column for each."""
    try:
        rows = np.array(points, dtype=float)
    except (TypeError, ValueError):
        rows = np.full(1, np.nan)
    if rows.size == len(points) * size and not np.isnan(rows).any():
        return np.ascontiguousarray(rows.reshape(len(points), size).T)
    # One by one: the message names the misfit, and a number stands for a column.
    return np.stack([column(point, size, what) for point in points], axis=1)


def known(name: str, names: Mapping[str, Any], kind: str) -> Any:
    """Return the value of a name; the message about an unknown name suggests a near one."""
    try:
        return names[name]
    except (KeyError, TypeError):
        raise InputError(f"there is no {kind} {name!r}{suggest(str(name), names)}") from None


def expression(value: Any, what: str, arguments: Sequence[Any], unknown: str) -> Any:
    """Return an expression of these columns of symbols and no others, as ``ca.SX``."""
    try:
        value = ca.SX(value)
    except (NotImplementedError, TypeError):
        raise InputError(
            f"{what} must be an expression of the model's symbols, got {type(value).__name__}"
        ) from None
    # Only a function knows its free symbols. `unknown` ends the sentence about one of them.
    free = ca.Function("f", list(arguments), [value], {"allow_free": True}).get_free()
    if free:
        names = {symbol.name() for column in arguments for symbol in ca.symvar(column)}
        same = "is another model's or problem's by the same name; take the symbol of this one"
        raise InputError(f"{what} has {free[0]!r}, which {same if free[0] in names else unknown}")
    return no_comparison(value, what)


def between(fractions: Array, taus: Array) -> Array:
    """Return the fractions of the horizon at fractions ``taus`` of each interval."""
    # Interval by interval, as the columns of a block.
    return np.asarray((fractions[:-1, None] + np.diff(fractions)[:, None] * taus).ravel())
