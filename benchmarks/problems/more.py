"""The problems of Schittkowski's second collection, by number, and its systems of equations."""

from __future__ import annotations

from importlib import import_module

from problems.hs_base import NLP, problems_of
from problems.more_base import Squares, system_of
from problems.systems_base import System

_PARTS = (
    "more_201_235",
    "more_236_260",
    "more_261_289",
    "more_290_314",
    "more_315_341",
    "more_343_361",
    "more_365_378",
    "more_379_395",
    "more_390",
)

MORE: tuple[NLP, ...] = tuple(
    entry for part in _PARTS for entry in problems_of(import_module(f"problems.{part}"))
)
MORE_SYSTEMS: tuple[System, ...] = tuple(
    system_of(entry) for entry in MORE if isinstance(entry, Squares)
)

__all__ = ["MORE", "MORE_SYSTEMS"]
