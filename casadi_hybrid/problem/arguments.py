"""The numbers of one solve: start, parameters, bounds and multipliers, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from casadi_hybrid.problem.bounds import Bounds, check_pair, checked
from casadi_hybrid.problem.graph.expressions import Blocks
from casadi_hybrid.utils.errors import InputError, suggest
from casadi_hybrid.utils.inputs import Vector, as_vector

Pair = tuple[Vector, Vector]
NUMBERS = ("x0", "p0", "lbx", "ubx", "lbg", "ubg", "lam_x0", "lam_g0")
"""The default numbers of a problem."""


@dataclass(frozen=True)
class Numbers:
    """The numbers of one solve, checked.

    Attributes:
        x0: start, n numbers.
        p: parameter values, n_p numbers.
        bounds: of the n variables and of all m rows (h; g); those of h are [0, 0].
        lam_x0, lam_g0: start of the multipliers, n and m numbers.
    """

    x0: Vector
    p: Vector
    bounds: Bounds
    lam_x0: Vector
    lam_g0: Vector


class Sizes(NamedTuple):
    """Names and numbers of entries: of x, of the rows (h; g), how many of these are h's, of p."""

    variables: Sequence[str]
    rows: Sequence[str]
    m_h: int
    n_p: int


@dataclass(frozen=True)
class Defaults:
    """The numbers that a solve takes where it is given none, checked; they cannot be written to.

    Attributes:
        sizes, blocks: of the problem.
        given: by the names of :data:`NUMBERS`: the bounds of x and of g's rows; None for a start,
            parameters or multipliers without a default.
        bounds: of x and of all rows (h; g).
    """

    sizes: Sizes
    blocks: Mapping[str, Blocks]
    given: Mapping[str, Vector | None]
    bounds: Bounds

    @classmethod
    def of(
        cls,
        sizes: Sizes,
        blocks: Mapping[str, Blocks],
        limits: Mapping[str, tuple[Any, Any]],
        given: Mapping[str, Any],
    ) -> Defaults:
        """Check what a problem is given by the names of :data:`NUMBERS`.

        ``limits`` are the bounds that came with blocks of g.

        Raises:
            InputError: naming the argument and the entry or block.
        """
        n, m = len(sizes.variables), len(sizes.rows)
        free = np.full(n, -np.inf), np.full(n, np.inf)
        on_x = bound_pair(given["lbx"], given["ubx"], blocks["x"], free, "x", sizes.variables)
        rows = sizes.rows[sizes.m_h :]
        on_g = default_limits(given["lbg"], given["ubg"], blocks["g"], limits, rows)
        kept: dict[str, Vector | None] = {}
        for label, of, size in (
            ("x0", "x", n), ("p0", "p", sizes.n_p), ("lam_x0", "x", n), ("lam_g0", "c", m)
        ):  # fmt: skip
            value = by_block(given[label], blocks[of], np.zeros(size), label)
            kept[label] = None if value is None else checked(value, size, label)
        bounds = _all_rows(sizes.m_h, on_x, on_g)
        kept |= {"lbx": on_x[0], "ubx": on_x[1], "lbg": on_g[0], "ubg": on_g[1]}
        for vector in kept.values():
            if vector is not None:
                vector.setflags(write=False)
        return cls(sizes, blocks, kept, bounds)

    def numbers(
        self, x0: Any, p: Any, lbx: Any, ubx: Any, lbg: Any, ubg: Any, lam_x0: Any, lam_g0: Any
    ) -> Numbers:
        """Read the numbers of one solve, see :meth:`Problem.numbers`."""
        sizes, blocks, known = self.sizes, self.blocks, self.bounds
        n, m, m_h = len(sizes.variables), len(sizes.rows), sizes.m_h
        start = self._read(x0, "x0", blocks["x"], n)
        on_bounds = self._read(lam_x0, "lam_x0", blocks["x"], n)
        on_rows = self._read(lam_g0, "lam_g0", blocks["c"], m)
        if p is None and self.given["p0"] is None and sizes.n_p:
            raise InputError(f"p is missing; the problem has {sizes.n_p} parameter(s)")
        values = self._read(p, "p", blocks["p"], sizes.n_p)
        bounds = known
        if not (lbx is ubx is lbg is ubg is None):
            of_x, of_g = (known.lbx, known.ubx), (known.lbg[m_h:], known.ubg[m_h:])
            on_x = bound_pair(lbx, ubx, blocks["x"], of_x, "x", sizes.variables)
            on_g = bound_pair(lbg, ubg, blocks["g"], of_g, "g", sizes.rows[m_h:])
            bounds = _all_rows(m_h, on_x, on_g)
        return Numbers(start, values, bounds, on_bounds, on_rows)

    def _read(self, value: Any, name: str, blocks: Blocks, size: int) -> Vector:
        default = self.given["p0" if name == "p" else name]
        if value is None:
            return np.zeros(size) if default is None else default.copy()
        if isinstance(value, Mapping):
            value = by_block(value, blocks, np.zeros(size) if default is None else default, name)
        return checked(value, size, name)


def refuse_stray_parameters(p: Any, n_p: int) -> None:
    """CasADi's solvers take a number for parameters that do not exist; here it is a mistake.

    Raises:
        InputError: for values of parameters that a problem does not have.
    """
    if p is not None and not n_p and not isinstance(p, Mapping):
        as_vector(p, 0, "p")


def _all_rows(m_h: int, on_x: Pair, on_g: Pair) -> Bounds:
    if m_h:
        zeros = np.zeros(m_h)
        on_g = np.concatenate((zeros, on_g[0])), np.concatenate((zeros, on_g[1]))
    for side in (*on_x, *on_g):
        side.setflags(write=False)
    return Bounds(*on_x, *on_g)


def by_block(value: Any, blocks: Blocks, base: Vector, name: str, *, infinite: bool = False) -> Any:
    """Return numbers as they are; of a mapping by block the base with these blocks replaced.

    Raises:
        InputError: for a block that does not exist, or numbers that do not fit it.
    """
    if not isinstance(value, Mapping):
        return value
    vector = base.copy()
    for key, part in value.items():
        if key not in blocks:
            known = suggest(str(key), blocks) if blocks else "; no mapping has named any"
            raise InputError(f"{name} names an unknown block {key!r}{known}")
        where = blocks[key]
        size = where.stop - where.start
        vector[where] = checked(part, size, f"{name}[{key!r}]", infinite=infinite)
    return vector


def bound_pair(
    lower: Any, upper: Any, blocks: Blocks, base: Pair, of: str, names: Sequence[str]
) -> Pair:
    """Lower and upper bounds of x or g, checked; those of the base where both are None.

    Args:
        lower, upper: numbers, mappings by block, or None.
        of: ``"x"`` or ``"g"``.
        names: of the entries.

    Raises:
        InputError: naming ``lbx``, ``ubx``, ``lbg`` or ``ubg`` and the entry.
    """
    if lower is None and upper is None:
        return base
    low = by_block(lower, blocks, base[0], f"lb{of}", infinite=True)
    high = by_block(upper, blocks, base[1], f"ub{of}", infinite=True)
    low, high = base[0] if low is None else low, base[1] if high is None else high
    return check_pair(low, high, len(names), of, names)


def default_limits(
    lower: Any,
    upper: Any,
    blocks: Blocks,
    limits: Mapping[str, tuple[Any, Any]],
    names: Sequence[str],
) -> Pair:
    """Default bounds of g's rows: from its triples (``limits``), and from lbg and ubg elsewhere.

    Raises:
        InputError: where a block has its bounds twice, or they are no bounds.
    """
    ends = []
    for k, (label, given, far) in enumerate((("lbg", lower, -np.inf), ("ubg", upper, np.inf))):
        base = np.full(len(names), far)
        for key, triple in limits.items():
            where, side = blocks[key], ("lower", "upper")[k]
            value, size = far if triple[k] is None else triple[k], where.stop - where.start
            base[where] = checked(value, size, f"the {side} bound in g[{key!r}]", infinite=True)
            if isinstance(given, Mapping) and key in given:
                raise InputError(
                    f"{label} names {key!r}, which has its bounds in g[{key!r}]; give them once"
                )
        if limits and isinstance(given, float) and given == far:
            given = base  # noqa: PLW2901
        elif limits and not isinstance(given, Mapping):
            raise InputError(
                f"{label} is given for all rows, but {', '.join(map(repr, limits))} of g came "
                "with bounds; give the others by the names of their blocks"
            )
        ends.append(by_block(given, blocks, base, label, infinite=True))
    return check_pair(ends[0], ends[1], len(names), "g", names)
