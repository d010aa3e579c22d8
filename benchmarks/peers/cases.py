"""The problems of a comparison: what a solver is given and what is known about the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from problems.black_box import BLACK_BOXES
from problems.control import FAMILIES, SIZES
from problems.cops import COPS
from problems.grids import published_costs, read_grid
from problems.hopeless import TRAPS, Trap
from problems.large import LARGE, LARGE_SIZES
from problems.relatives import RELATIVES
from problems.squares import SQUARES
from support.problems import golden
from support.problems.published import HS, MORE, MORE_SYSTEMS, NLP, SYSTEMS, System, read_nl

from casadi_hybrid.utils.errors import InputError
from peers.judge import GOOD


@dataclass(frozen=True)
class Case:
    """One problem from one start.

    Attributes:
        name: name in its collection, with the number of the start behind "#" where that is moved.
        group: one of ``SETS``.
        build: makes x, f, g (SX or MX) and the lists lbx, ubx, lbg, ubg.
        x0: start; empty where ``build`` makes the list x0 too.
        f_star: published least value, None where there is none.
        truth: "solvable", "infeasible" or "unbounded", as the collection says.
        good: kinds of an answer that are right here, see :mod:`peers.judge`.
        folder, size: folder of a public collection, and the bytes of this file of it.
        digits: relative error to which ``f_star`` was published.
    """

    name: str
    group: str
    build: Callable[[], dict[str, Any]]
    x0: tuple[float, ...] = ()
    f_star: float | None = None
    truth: str = "solvable"
    good: tuple[str, ...] = GOOD
    folder: str = ""
    size: int = 0
    digits: float = 1e-5


Cases = tuple[Case, ...]


def of_nlp(group: str, entry: NLP) -> Case:
    """A published problem; one with f* = −∞ is unbounded."""
    unbounded = entry.f_star == -np.inf
    f_star, truth = (None, "unbounded") if unbounded else (entry.f_star, "solvable")
    return Case(entry.name, group, entry.build, entry.x0, f_star, truth)


def of_system(group: str, entry: System) -> Case:
    """h(x) = 0 as min 0 subject to h(x) = 0."""
    truth = "solvable" if entry.consistent else "infeasible"
    f_star = 0.0 if entry.consistent else None
    return Case(entry.name, group, partial(golden.of_system, entry), entry.x0, f_star, truth)


def of_trap(group: str, entry: Trap) -> Case:
    """A trap, with the kinds of an answer that are right for it."""
    good = (*entry.good, "value")
    return Case(entry.name, group, entry.build, entry.x0, entry.f_star, entry.truth, good)


def of_tests(_: str) -> Cases:
    """The small cases of known truth that the tests go through."""
    found = []
    for kind, group in golden.verdicts.PROBLEMS.items():
        truth = kind if kind in {"infeasible", "unbounded"} else "solvable"
        for name, entry in group.items() if kind != "roots" else ():
            case = golden.of_verdict(entry)
            found.append(Case(f"{kind} {name}", "truth", case.build, case.x0, truth=truth))
    return tuple(found)


def of_family(group: str, family: str, size: int) -> Case:
    """A member of a family, named by both; its start comes with ``build``."""
    build = FAMILIES[family].build if group == "control" else LARGE[family]
    return Case(f"{family}-{size}", group, partial(build, size))


def of_control(name: str, N: int) -> Case:
    """A control problem with N intervals."""
    return of_family("control", name, N)


def of_sizes(sizes: tuple[str, ...] = ()) -> Cases:
    """The control problems of these sizes (small, medium, large); of all where none is named."""
    found = []
    for name, family in FAMILIES.items():
        every = [N for size in sizes for N in family.sizes(size)] if sizes else family.all_sizes
        found += [of_control(name, N) for N in every]
    return tuple(found)


def of_cute(folder: str) -> Cases:
    """The ``.nl`` files of a folder, as of Pyomo's model libraries; of two writers AMPL's."""
    files = sorted(Path(folder).glob("*.nl"))
    names = {path.name.partition(".")[0]: path for path in reversed(files)}
    return tuple(
        Case(name, "cute", partial(read_nl, path), folder=folder, size=path.stat().st_size)
        for name, path in sorted(names.items())
    )


def of_grids(folder: str) -> Cases:
    """Optimal power flow of the ``.m`` grids of a folder, as of PGLib, the smallest first."""
    costs = published_costs(Path(folder))
    files = sorted(Path(folder).glob("*.m"), key=lambda path: path.stat().st_size)
    return tuple(
        Case(path.stem, "pglib", partial(read_grid, path), f_star=costs.get(path.stem),
             folder=folder, size=path.stat().st_size, digits=1e-4)
        for path in files
    )  # fmt: skip


SETS: dict[str, Callable[[str], Cases]] = {
    "hs": lambda _: tuple(of_nlp("hs", entry) for entry in HS),
    "more": lambda _: tuple(of_nlp("more", entry) for entry in MORE),
    "systems": lambda _: tuple(of_system("systems", entry) for entry in SYSTEMS),
    "squares": lambda _: tuple(of_system("squares", entry) for entry in MORE_SYSTEMS),
    "roots": lambda _: tuple(Case(s.name, "roots", s.build, s.x0, 0.0) for s in SQUARES),
    "hopeless": lambda _: tuple(of_trap("hopeless", entry) for entry in TRAPS),
    "relatives": lambda _: tuple(of_trap("relatives", entry) for entry in RELATIVES),
    "truth": of_tests,
    "control": lambda _: of_sizes(),
    "large": lambda _: tuple(of_family("large", *key) for key in LARGE_SIZES),
    "cops": lambda _: tuple(
        Case(name, "cops", build, f_star=f_star, digits=1e-4)
        for name, (build, f_star) in COPS.items()
    ),
    "black-box": lambda _: tuple(
        Case(name, "black-box", build) for name, build in BLACK_BOXES.items()
    ),
    "cute": of_cute,
    "pglib": of_grids,
}
"""Sets of problems at their published starts; those of ``FOLDERS`` are read from a folder.

"hs" and "more" are the two collections of Hock and Schittkowski, "systems" the over-determined
systems, "squares" the least-squares problems of "more" as systems of equations, "roots" the square
systems, "hopeless" the traps, "relatives" relatives of some traps, "truth" the small cases that the
tests know the answer of, "control" and "large" members of families, "cops" problems of COPS,
"black-box" control problems of a simulator without second derivatives.
"""
FOLDERS = ("cute", "pglib")


@cache
def cases(group: str, folder: str = "") -> Cases:
    """The problems of a set.

    Raises:
        InputError: for a set of files without a folder, or with one that has none.
    """
    if group in FOLDERS and not folder:
        raise InputError(f"the set {group!r} is read from files; name their folder")
    found = SETS[group](folder)
    if not found:
        raise InputError(f"{folder!r} has no file of the set {group!r}")
    return found


def moved(case: Case, noise: float, seed: int) -> Case:
    """The case from x0 + noise·max(1, |x0|)·(standard normal), the same in every run."""
    x0 = np.array(case.x0)
    draws = np.random.default_rng([crc32(case.name.encode()), seed]).standard_normal(x0.size)
    start = x0 + noise * np.maximum(1.0, np.abs(x0)) * draws
    return replace(case, name=f"{case.name}#{seed}", x0=tuple(float(value) for value in start))


def case_named(group: str, name: str, folder: str = "") -> Case:
    """The case at its published start; what follows "#" in the name is left out."""
    if group in ("control", "large"):
        family, _, size = name.rpartition("-")
        return of_family(group, family, int(size))
    return next(case for case in cases(group, folder) if case.name == name.partition("#")[0])


__all__ = ["FOLDERS", "SETS", "SIZES", "Case", "case_named", "cases", "moved", "of_control"]
