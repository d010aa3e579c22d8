"""Iterates as rows of numbers, which is all that statistics need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Kept per iteration for stats()["iterations"]; those with CasADi's names have CasADi's meaning.
LISTED = (
    "iter", "obj", "inf_pr", "inf_du", "compl", "mu", "d_norm", "alpha_pr", "alpha_du",
    "regularization_size",
)  # fmt: skip


def take(rows: Sequence[Sequence[float]], known: list[tuple[Any, ...]], times: list[float]) -> None:
    """Add iterates to those known; the one before is added again for the steps between.

    Args:
        rows: of each iterate the numbers of :data:`LISTED` and the seconds.
        known, times: the iterates so far and their seconds.
    """
    for t, *numbers, elapsed in rows:
        while known and known[-1][0] < int(t) - 1:
            known.append(held(known[-1]))
            times.append(elapsed)
        known.append((int(t), *numbers))
        times.append(elapsed)


def lists_of(rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    """The numbers of iterates by the names of :data:`LISTED`, from a row for each."""
    columns = map(list, zip(*rows, strict=True)) if rows else ([] for _ in LISTED)
    return dict(zip(LISTED, columns, strict=True))


def held(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row of an iterate that stays for one more step."""
    still = {"iter": row[0] + 1, "d_norm": 0.0, "alpha_pr": 0.0, "alpha_du": 0.0}
    return tuple(still.get(name, number) for name, number in zip(LISTED, row, strict=True))
