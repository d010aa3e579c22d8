"""The collection: overdetermined systems h(x) = 0, consistent and inconsistent, with sources.

Moré–Garbow–Hillstrom problems, NIST regressions, systems from textbooks and CUTEst, and own ones.
"""

from __future__ import annotations

from problems.systems_base import System
from problems.systems_classic import classic_systems
from problems.systems_mgh import mgh_systems
from problems.systems_nist import nist_systems
from problems.systems_own import own_systems

SYSTEMS: tuple[System, ...] = (*mgh_systems(), *nist_systems(), *classic_systems(), *own_systems())


def system(name: str) -> System:
    """Return the system with this name.

    Raises:
        KeyError: when there is none.
    """
    found = {entry.name: entry for entry in SYSTEMS}
    if name not in found:
        raise KeyError(f"there is no system {name!r}; the names are {', '.join(found)}")
    return found[name]


__all__ = ["SYSTEMS", "System", "system"]
