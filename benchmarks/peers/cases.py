"""The problems of a comparison: what a solver is given and what is known about the answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any
from zlib import crc32

import casadi as ca
import numpy as np
from problems.control import FAMILIES
from problems.hopeless import TRAPS, Trap
from problems.published import HS, MORE, MORE_SYSTEMS, NLP, SYSTEMS, System
from problems.relatives import RELATIVES
from problems.squares import SQUARES

SETS = ("hs", "more", "systems", "squares")
# Groups, but no sets: those below are compared by commands of their own.
ROOTS, HOPELESS, CONTROL, TRUTH, KIN = "roots", "hopeless", "control", "truth", "relatives"
TESTS = Path(__file__).parents[2] / "tests"


@dataclass(frozen=True)
class Case:
    """One problem from one start.

    Attributes:
        name: name in its collection, with the number of the start behind "#" where that is moved.
        group: one of ``SETS``, or ``ROOTS``, ``HOPELESS``, ``CONTROL``, ``TRUTH`` or ``KIN``.
        build: makes x, f, g (SX or MX) and the lists lbx, ubx, lbg, ubg.
        x0: start; empty where ``build`` makes the list x0 too.
        f_star: published least value, None where there is none.
        truth: "solvable", "infeasible" or "unbounded", as the collection says.
    """

    name: str
    group: str
    build: Callable[[], dict[str, Any]]
    x0: tuple[float, ...]
    f_star: float | None
    truth: str = "solvable"


def of_nlp(entry: NLP, group: str) -> Case:
    unbounded = entry.f_star == -np.inf
    f_star, truth = (None, "unbounded") if unbounded else (entry.f_star, "solvable")
    return Case(entry.name, group, entry.build, entry.x0, f_star, truth)


def of_system(entry: System, group: str) -> Case:
    """h(x) = 0 as min 0 subject to h(x) = 0."""

    def build() -> dict[str, Any]:
        problem = entry.build()
        free, zero = [np.inf] * entry.n, [0.0] * entry.m
        return {
            "x": problem.x,
            "f": problem.f,
            "g": problem.h,
            "lbg": zero,
            "ubg": zero,
            "lbx": [-bound for bound in free],
            "ubx": free,
        }

    truth = "solvable" if entry.consistent else "infeasible"
    return Case(entry.name, group, build, entry.x0, 0.0 if entry.consistent else None, truth)


def of_traps(traps: Sequence[Trap], group: str) -> tuple[Case, ...]:
    return tuple(Case(t.name, group, t.build, t.x0, t.f_star, t.truth) for t in traps)


def of_test(name: str, nlp: dict[str, Any], call: dict[str, Any], truth: str) -> Case:
    """A case of the tests, its parameters put into its functions."""
    x = nlp["x"]
    f, g = nlp.get("f", 0), nlp.get("g", type(x)(0, 1))
    if "p" in nlp:
        f, g = ca.substitute([f, g], [nlp["p"]], [ca.DM(call["p"])])
    sizes = {"x": x.numel(), "g": ca.vertcat(g).numel()}
    data = {"x": x, "f": type(x)(f), "g": ca.vec(g)}
    for kind, size in sizes.items():
        for side, none in (("lb", -np.inf), ("ub", np.inf)):
            entries = np.broadcast_to(np.ravel(call.get(side + kind, none)).astype(float), size)
            data[side + kind] = entries.tolist()
    x0 = np.broadcast_to(np.ravel(call.get("x0", 0.0)).astype(float), sizes["x"])
    return Case(name, TRUTH, lambda: data, tuple(x0.tolist()), None, truth)


def of_tests() -> tuple[Case, ...]:
    """The small cases of known truth that the tests go through."""
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    kinds = import_module("support.problems.verdicts").PROBLEMS
    return tuple(
        of_test(f"{kind} {name}", entry.nlp, entry.call,
                kind if kind in {"infeasible", "unbounded"} else "solvable")
        for kind, group in kinds.items() if kind != "roots" for name, entry in group.items()
    )  # fmt: skip


def of_control(name: str, N: int) -> Case:
    """A control problem with N intervals, named by both; its start comes with ``build``."""
    return Case(f"{name}-{N}", CONTROL, partial(FAMILIES[name].build, N), (), None)


@cache
def cases(group: str) -> tuple[Case, ...]:
    """The problems of a set at their published starts.

    "hs" and "more" are the two collections of Schittkowski, "systems" the over-determined systems,
    "squares" the least-squares problems of "more" as systems of equations, ``ROOTS`` the square
    systems up to a thousand unknowns, ``HOPELESS`` the traps, ``KIN`` relatives of some of them,
    ``CONTROL`` the control problems of all sizes, ``TRUTH`` the small cases that the tests know the
    answer of.
    """
    if group == CONTROL:
        sizes = [(name, N) for name, family in FAMILIES.items() for N in family.all_sizes]
        return tuple(of_control(name, N) for name, N in sizes)
    if group == TRUTH:
        return of_tests()
    if group == ROOTS:
        return tuple(Case(s.name, group, s.build, s.x0, 0.0) for s in SQUARES)
    if group == HOPELESS:
        return of_traps(TRAPS, group)
    if group == KIN:
        return of_traps(RELATIVES, group)
    if group in {"hs", "more"}:
        return tuple(of_nlp(entry, group) for entry in (HS if group == "hs" else MORE))
    entries = SYSTEMS if group == "systems" else MORE_SYSTEMS
    return tuple(of_system(entry, group) for entry in entries)


def moved(case: Case, noise: float, seed: int) -> Case:
    """The case from x0 + noise·max(1, |x0|)·(standard normal), the same in every run."""
    x0 = np.array(case.x0)
    draws = np.random.default_rng([crc32(case.name.encode()), seed]).standard_normal(x0.size)
    start = x0 + noise * np.maximum(1.0, np.abs(x0)) * draws
    return replace(case, name=f"{case.name}#{seed}", x0=tuple(float(value) for value in start))


def case_named(group: str, name: str) -> Case:
    """The case at its published start; what follows "#" in the name is left out."""
    if group == CONTROL:
        family, _, N = name.rpartition("-")
        return of_control(family, int(N))
    return next(case for case in cases(group) if case.name == name.partition("#")[0])
