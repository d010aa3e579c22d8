"""Checked arguments of one solve: start, parameters, bounds and multipliers."""

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
# Names of the default arguments of a problem.
NUMBERS = ("x0", "p0", "lbx", "ubx", "lbg", "ubg", "lam_x0", "lam_g0")


@dataclass(frozen=True)
class Numbers:
    """Checked arguments of one solve."""

    x0: Vector  # n
    p: Vector  # n_p
    bounds: Bounds  # of the n variables and of all m rows (h; g); h has [0, 0]
    lam_x0: Vector  # n
    lam_g0: Vector  # m


class Sizes(NamedTuple):
    """Names of x and of the rows (h; g), number m_h of rows in h, number n_p of parameters."""

    variables: Sequence[str]
    rows: Sequence[str]
    m_h: int
    n_p: int


@dataclass(frozen=True)
class Defaults:
    """Checked default arguments of a problem, read-only."""

    sizes: Sizes
    blocks: Mapping[str, Blocks]
    # By the names NUMBERS; bounds are those of x and of g. None: no default.
    given: Mapping[str, Vector | None]
    bounds: Bounds  # of x and of all rows (h; g)

    @classmethod
    def of(
        cls,
        sizes: Sizes,
        blocks: Mapping[str, Blocks],
        limits: Mapping[str, tuple[Any, Any]],
        given: Mapping[str, Any],
    ) -> Defaults:
        """Check the defaults ``given`` by :data:`NUMBERS`; ``limits`` are bounds stated in g."""
        n, m = len(sizes.variables), len(sizes.rows)
        free = np.full(n, -np.inf), np.full(n, np.inf)
        on_x = bound_pair(given["lbx"], given["ubx"], blocks["x"], free, "x", sizes.variables)
        rows = sizes.rows[sizes.m_h :]
        on_g = default_limits(given["lbg"], given["ubg"], blocks["g"], limits, rows)
        defaults: dict[str, Vector | None] = {
            "lbx": on_x[0],
            "ubx": on_x[1],
            "lbg": on_g[0],
            "ubg": on_g[1],
        }
        shapes = {"x0": ("x", n), "p0": ("p", sizes.n_p), "lam_x0": ("x", n), "lam_g0": ("c", m)}
        for label, (block, size) in shapes.items():
            value = by_block(given[label], blocks[block], np.zeros(size), label)
            defaults[label] = None if value is None else checked(value, size, label)
        for vector in defaults.values():
            if vector is not None:
                vector.setflags(write=False)
        return cls(sizes, blocks, defaults, _all_rows(sizes.m_h, on_x, on_g))

    def numbers(
        self, x0: Any, p: Any, lbx: Any, ubx: Any, lbg: Any, ubg: Any, lam_x0: Any, lam_g0: Any
    ) -> Numbers:
        """Check the arguments of one solve, see :meth:`Problem.numbers`."""
        sizes, blocks, bounds = self.sizes, self.blocks, self.bounds
        n, m, m_h = len(sizes.variables), len(sizes.rows), sizes.m_h
        start = self._read(x0, "x0", blocks["x"], n)
        multipliers_x = self._read(lam_x0, "lam_x0", blocks["x"], n)
        multipliers_c = self._read(lam_g0, "lam_g0", blocks["c"], m)
        if p is None and self.given["p0"] is None and sizes.n_p:
            raise InputError(f"p is missing; the problem has {sizes.n_p} parameter(s)")
        parameters = self._read(p, "p", blocks["p"], sizes.n_p)
        # Most solves keep the default bounds, which are checked already.
        if not (lbx is ubx is lbg is ubg is None):
            base_x, base_g = (bounds.lbx, bounds.ubx), (bounds.lbg[m_h:], bounds.ubg[m_h:])
            on_x = bound_pair(lbx, ubx, blocks["x"], base_x, "x", sizes.variables)
            on_g = bound_pair(lbg, ubg, blocks["g"], base_g, "g", sizes.rows[m_h:])
            bounds = _all_rows(m_h, on_x, on_g)
        return Numbers(start, parameters, bounds, multipliers_x, multipliers_c)

    def _read(self, value: Any, name: str, blocks: Blocks, size: int) -> Vector:
        default = self.given["p0" if name == "p" else name]
        if value is None:
            # A copy: the default is read-only, and serves all solves.
            return np.zeros(size) if default is None else default.copy()
        if isinstance(value, Mapping):
            value = by_block(value, blocks, np.zeros(size) if default is None else default, name)
        return checked(value, size, name)


def refuse_stray_parameters(p: Any, n_p: int) -> None:
    """Refuse values of parameters that a problem lacks; CasADi's solvers ignore them."""
    if p is not None and not n_p and not isinstance(p, Mapping):
        as_vector(p, 0, "p")


def _all_rows(m_h: int, on_x: Pair, on_g: Pair) -> Bounds:
    """Return read-only bounds of x and of (h; g), with [0, 0] for the ``m_h`` rows of h."""
    if m_h:
        zeros = np.zeros(m_h)
        on_g = np.concatenate((zeros, on_g[0])), np.concatenate((zeros, on_g[1]))
    for side in (*on_x, *on_g):
        side.setflags(write=False)
    return Bounds(*on_x, *on_g)


def by_block(value: Any, blocks: Blocks, base: Vector, name: str, *, infinite: bool = False) -> Any:
    """Return the base with the blocks of a mapping replaced; any other value unchanged."""
    if not isinstance(value, Mapping):
        return value
    vector = base.copy()
    for key, part in value.items():
        if key not in blocks:
            hint = suggest(str(key), blocks) if blocks else "; no mapping has named any"
            raise InputError(f"{name} names an unknown block {key!r}{hint}")
        block = blocks[key]
        size = block.stop - block.start
        vector[block] = checked(part, size, f"{name}[{key!r}]", infinite=infinite)
    return vector


def bound_pair(
    lower: Any, upper: Any, blocks: Blocks, base: Pair, of: str, names: Sequence[str]
) -> Pair:
    """Return checked lower and upper bounds of x or g; the base if both are None."""
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
    """Default bounds of g: from its triples (``limits``), and from lbg and ubg elsewhere."""
    sides = ("lower", "lbg", lower, -np.inf), ("upper", "ubg", upper, np.inf)
    ends = []
    for k, (side, label, value, infinity) in enumerate(sides):
        base = np.full(len(names), infinity)
        for key, triple in limits.items():
            if isinstance(value, Mapping) and key in value:
                raise InputError(
                    f"{label} names {key!r}, which has its bounds in g[{key!r}]; give them once"
                )
            block = blocks[key]
            end, size = infinity if triple[k] is None else triple[k], block.stop - block.start
            base[block] = checked(end, size, f"the {side} bound in g[{key!r}]", infinite=True)
        # The default of Problem; the same number given explicitly means the same.
        is_default = isinstance(value, float) and value == infinity
        if limits and not is_default and not isinstance(value, Mapping):
            raise InputError(
                f"{label} is given for all rows, but {', '.join(map(repr, limits))} of g came "
                "with bounds; give the others by the names of their blocks"
            )
        values = base if limits and is_default else value
        ends.append(by_block(values, blocks, base, label, infinite=True))
    return check_pair(ends[0], ends[1], len(names), "g", names)
