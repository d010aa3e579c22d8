"""Published problems: one folder a collection, with ``table.json`` and a ``.nl`` file a problem.

The table says what is known of each problem, and the file holds its functions, bounds and start.
A least-squares problem NAME has the file NAMEE.nl of its residuals, as equations, instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import casadi as ca
from support.problems.formulas import FORMULAS

from casadi_hybrid import Problem

FOLDER = Path(__file__).parent
INF = float("inf")
Point = tuple[float, ...]


@dataclass(frozen=True)
class NLP:
    """A published problem with inequalities, its start x0, minimizer and values.

    ``build`` makes x, f, g and the lists lbx, ubx, lbg, ubg, with new symbols at each call. The
    note names misprints and other minima; unconfirmed numbers are None. ``residuals`` is the
    number of squares in f.
    """

    name: str
    x0: Point
    f_star: float
    source: str
    build: Callable[[], dict[str, Any]] = field(repr=False)
    x_star: Point | None = None
    f0: float | None = None
    feasible: bool | None = None
    residuals: int = 0
    note: str = ""

    @property
    def number(self) -> int:
        """The number in the book."""
        return int(self.name[2:])


@dataclass(frozen=True)
class System:
    """A published system h(x) = 0 of m equations, more than unknowns; consistent if it has a root.

    ``known_norm2`` is the least sum of squares, attained at ``minimizer``; the last of its
    ``digits`` may be cut. ``start_norms`` are ‖h‖₂ at the first of ``starts``, x0 among them.
    """

    name: str
    m: int
    x0: Point
    consistent: bool
    source: str
    build: Callable[[], Problem] = field(repr=False)
    known_norm2: float | None = None
    starts: tuple[Point, ...] = ()
    start_norms: Point = ()
    minimizer: Point | None = None
    digits: int = 6
    note: str = ""

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return len(self.x0)


def read_nl(path: Path) -> dict[str, Any]:
    """Return x, f, g as SX and the lists lbx, ubx, lbg, ubg, x0 of a file."""
    nl = ca.NlpBuilder()
    nl.import_nl(str(path), {"verbose": False})
    outputs = [nl.f, ca.vertcat(ca.MX(0, 1), *nl.g)]
    x = ca.SX.sym("x", len(nl.x))
    f, g = ca.Function("nlp", [ca.vertcat(*nl.x)], outputs).expand()(x)
    bounds = {"lbx": nl.x_lb, "ubx": nl.x_ub, "lbg": nl.g_lb, "ubg": nl.g_ub, "x0": nl.x_init}
    return {"x": x, "f": f, "g": g, **{key: list(value) for key, value in bounds.items()}}


def build_problem(folder: str, name: str) -> dict[str, Any]:
    """Return the problem as ``nlpsol`` takes it, with its bounds."""
    if name in FORMULAS:
        x = ca.SX.sym("x", len(table(folder)[name]["x0"]))
        return {"x": x, **FORMULAS[name](x)}
    path = FOLDER / folder / f"{name.replace('/', '_')}.nl"
    squares = not path.exists()
    data = read_nl(path.with_name(f"{name}E.nl") if squares else path)
    del data["x0"]
    if squares:
        data |= {"f": ca.sumsqr(data["g"]), "g": ca.SX(0, 1), "lbg": [], "ubg": []}
    return data


def build_system(folder: str, name: str) -> Problem:
    """Return min 0 subject to g(x) = 0, without the bounds on x."""
    data = read_nl(FOLDER / folder / f"{name}.nl")
    return Problem(x=data["x"], f=0, h=data["g"], name=name)


@cache
def table(folder: str) -> dict[str, dict[str, Any]]:
    """Return what the table of a collection says of each problem, by name."""
    data = json.loads((FOLDER / folder / "table.json").read_text("utf-8"))
    for name, known in data["problems"].items():
        known.setdefault("source", data.get("source", "").format(name[2:]))
    return data["problems"]


def collection(folder: str, build: Callable[[str, str], Any]) -> Iterator[dict[str, Any]]:
    """Yield name, numbers and ``build`` of each problem; lists become tuples."""
    for name, known in table(folder).items():
        values = {key: _immutable(value) for key, value in known.items()}
        yield {"name": name, "build": partial(build, folder, name), **values}


def _immutable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_immutable(entry) for entry in value)
    return -INF if value == "-inf" else value


def residuals_of(entry: NLP) -> System:
    """Return r(x) = 0 of a least-squares problem; it is consistent where the least Σ rᵢ² is 0.

    Bounds can only raise the least value, so ``known_norm2`` is given for consistent systems alone.
    """
    name, consistent = f"{entry.name}E", entry.f_star == 0
    least = {"known_norm2": 0.0, "minimizer": entry.x_star} if consistent else {}
    build = partial(build_system, "more", name)
    known = {"name": name, "m": entry.residuals, "x0": entry.x0, "source": entry.source}
    return system_of(consistent=consistent, build=build, **known, **least)


def system_of(x0: Point, starts: tuple[Point, ...] = (), **known: Any) -> System:
    """Return a system of a line of the table, whose starts are those after x0."""
    return System(x0=x0, starts=(x0, *starts), **known)


HS = tuple(NLP(**known) for known in collection("hs", build_problem))
MORE = tuple(NLP(**known) for known in collection("more", build_problem))
MORE_SYSTEMS = tuple(residuals_of(entry) for entry in MORE if entry.residuals)
SYSTEMS = tuple(system_of(**known) for known in collection("systems", build_system))


def hs_problem(number: int) -> NLP:
    """Return the problem of Hock & Schittkowski with this number."""
    return next(entry for entry in HS if entry.number == number)
