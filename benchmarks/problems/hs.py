"""The problems of Hock & Schittkowski, by number."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from problems.hs_base import NLP, problems_of

_PARTS = ("hs_001_030", "hs_031_060", "hs_061_090", "hs_091_119")

HS: tuple[NLP, ...] = tuple(
    entry
    for part in _PARTS
    if find_spec(f"problems.{part}") is not None
    for entry in problems_of(import_module(f"problems.{part}"))
)


def hs_problem(number: int) -> NLP:
    """Return the problem with this number.

    Raises:
        KeyError: when the collection has none with it.
    """
    found = {entry.number: entry for entry in HS}
    if number not in found:
        raise KeyError(f"the collection has no problem {number}; it has {sorted(found)}")
    return found[number]


__all__ = ["HS", "NLP", "hs_problem"]
