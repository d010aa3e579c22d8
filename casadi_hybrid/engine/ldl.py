"""The sparse LDLᵀ of the engine (``c/ldl.h``): its analysis.

A front of the factorization chooses pivots among its own rows alone. So each row of A is paired
with a variable that it can be solved for, and both are eliminated together: the pair is a vertex of
the graph whose elimination order is chosen.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.arrays import address, distinct
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.sparse import Layout

Integers = NDArray[np.int32]
SPARE = 8
"""Places for delayed rows in a front."""

PRODUCTS = 4_000_000
"""The most of an elimination in a fixed order: each has a place in its tables."""


class Analysis(ctypes.Structure):
    """``hybrid_ldl``: sizes, and pointers to tables that someone else keeps."""

    _counts = ("size", "entries", "fronts", "deepest", "stack", "factor", "pivots", "room")
    _tables = (
        "starts", "rows", "position", "first", "places", "below", "rest", "local", "panel",
        "block", "parent", "children", "child", "assembled", "entry", "home",
    )  # fmt: skip
    _fields_ = (
        *((name, ctypes.c_int) for name in _counts),
        *((name, ctypes.c_void_p) for name in _tables),
    )


class FixedAnalysis(ctypes.Structure):
    """``hybrid_fixed``: the same for a fixed order."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("size", "entries", "vertices", "factor")),
        *((name, ctypes.c_void_p) for name in (
            "position", "first", "begin", "below", "home", "target",
        )),
    )  # fmt: skip


class Found(ctypes.Structure):
    """``hybrid_inertia``: what a factorization found."""

    _whole = ("positive", "negative", "zero", "singular", "delayed", "doubtful")
    _fields_ = (
        *((name, ctypes.c_int) for name in _whole),
        ("smallest", ctypes.c_double),
        ("growth", ctypes.c_double),
    )


def declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Say what the functions of ``c/ldl.h`` take, in a library that has them; return it."""
    whole, array, number = ctypes.c_int, ctypes.c_void_p, ctypes.c_double
    analysis, found = ctypes.POINTER(Analysis), ctypes.POINTER(Found)
    library.hybrid_ldl_pairing.argtypes = [whole, whole]
    library.hybrid_ldl_pair.argtypes = [whole, whole, *[array] * 5]
    library.hybrid_ldl_analysis.argtypes = [whole, whole]
    library.hybrid_ldl_plan.argtypes = [whole, array, array, array, whole, array]
    library.hybrid_ldl_analyse.argtypes = [whole, *[array] * 3, whole, array, array, analysis]
    library.hybrid_fixed_plan.argtypes = [whole, array, array, array, whole, array]
    library.hybrid_fixed_analyse.argtypes = [whole, *[array] * 5, ctypes.POINTER(FixedAnalysis)]
    library.hybrid_fixed_analyse.restype = None
    library.hybrid_fixed_factor.argtypes = [ctypes.POINTER(FixedAnalysis), *[array] * 3, found]
    library.hybrid_fixed_factor.restype = None
    library.hybrid_fixed_solve.argtypes = [ctypes.POINTER(FixedAnalysis), *[array] * 3]
    library.hybrid_fixed_solve.restype = None
    library.hybrid_ldl_factor.argtypes = [analysis, *[array] * 4, found]
    library.hybrid_ldl_factor.restype = None
    library.hybrid_ldl_solve.argtypes = [analysis, *[array] * 6, whole]
    library.hybrid_ldl_solve.restype = number
    library.hybrid_ldl_product.argtypes = [analysis, *[array] * 3]
    library.hybrid_ldl_product.restype = None
    return library


class Compressed(NamedTuple):
    """The lower triangle of K in compressed columns, as the library takes it."""

    n: int
    starts: Integers
    rows: Integers
    cols: Integers

    @classmethod
    def of(cls, layout: Layout) -> Compressed:
        """The pattern of a layout."""
        pattern = layout.pattern
        starts = np.zeros(layout.size + 1, dtype=np.int32)
        np.cumsum(np.bincount(pattern.cols, minlength=layout.size), out=starts[1:])
        return cls(layout.n, starts, pattern.rows.astype(np.int32), pattern.cols.astype(np.int32))

    @property
    def size(self) -> int:
        """Rows of K."""
        return int(self.starts.size) - 1


def partners(library: ctypes.CDLL, K: Compressed, values: Vector | None = None) -> Integers:
    """With which row of K each is eliminated, or −1: rows of A with variables, and they with rows.

    Args:
        library: with the functions of ``c/ldl.h``, declared.
        K: its pattern.
        values: of its entries; without them all entries of A are alike.
    """
    partner = np.empty(K.size, dtype=np.int32)
    work = np.empty(library.hybrid_ldl_pairing(K.size, K.rows.size), dtype=np.int32)
    given = None if values is None else np.ascontiguousarray(values, dtype=np.float64)
    library.hybrid_ldl_pair(
        K.size,
        K.n,
        address(K.starts),
        address(K.rows),
        None if given is None else address(given),
        address(work),
        address(partner),
    )
    return partner


def eliminations(
    K: Compressed, partner: Integers, curved: NDArray[np.bool_]
) -> tuple[Integers, Integers]:
    """When each row of K is eliminated, rows of one number together, and that for a fixed order.

    An approximate minimum degree order of the graph whose vertices are the pairs.

    Args:
        K: its pattern.
        partner: as :func:`partners` says.
        curved: of each variable, whether K has a number of its own on its diagonal. In a fixed
            order one without is no pivot before a row of its own is eliminated.
    """
    when, group = _order(K, partner)
    free = _numbered(when, group)
    flat = np.flatnonzero(~curved & (partner[: K.n] < 0))
    if not flat.size:
        return free, free
    _put_off(K, flat, partner, curved, when, group)
    return free, _numbered(when, group)


def _order(K: Compressed, partner: Integers) -> tuple[Vector, NDArray[np.intp]]:
    """When the vertices are eliminated, and which of them each row of K belongs to."""
    label = np.arange(K.size)
    rows = np.flatnonzero(partner[K.n :] >= 0) + K.n
    label[rows] = partner[rows]
    vertices, group = distinct(label)
    count = vertices.size
    a, b = group[K.rows], group[K.cols]
    pattern = ca.Sparsity.triplet(count, count, a.tolist(), b.tolist())
    when = np.empty(count)
    when[np.array((pattern + pattern.T).amd(), dtype=np.intp)] = np.arange(count)
    return when, group


def _numbered(when: Vector, group: NDArray[np.intp]) -> Integers:
    """The order of the vertices without gaps and fractions, row by row."""
    return np.asarray(np.argsort(np.argsort(when))[group], dtype=np.int32)


def _put_off(
    K: Compressed,
    flat: NDArray[np.intp],
    partner: Integers,
    curved: NDArray[np.bool_],
    when: Vector,
    group: NDArray[np.intp],
) -> None:
    """Put variables without curvature after what lends them some: a row with a curved partner."""
    turn = when[group]
    for j in flat:
        rows = K.rows[K.starts[j] : K.starts[j + 1]]
        rows = rows[rows >= K.n]
        if not rows.size:
            continue
        lent = rows[(partner[rows] >= 0) & curved[partner[rows]]]
        after = turn[lent].min() if lent.size else turn[rows].max()
        when[group[j]] = max(turn[j], after + 0.5)


class Tables(NamedTuple):
    """The analysis of a pattern, with the arrays it points to. Any threads may use it at once."""

    analysis: Analysis
    arrays: tuple[Integers, ...]

    @classmethod
    def of(cls, library: ctypes.CDLL, K: Compressed, group: Integers, spare: int = SPARE) -> Tables:
        """Analyse the pattern of K for this order of elimination.

        Raises:
            OverflowError: where the factors have more entries than an int counts.
        """
        group = np.ascontiguousarray(group, dtype=np.int32)
        work = np.empty(library.hybrid_ldl_analysis(K.size, K.rows.size), dtype=np.int32)
        arrays = (K.starts, K.rows, group)
        given = (K.size, *(address(array) for array in arrays), spare, address(work))
        needed = library.hybrid_ldl_plan(*given)
        made = Analysis()
        tables = np.zeros(max(needed, 0), dtype=np.int32)
        if needed < 0 or library.hybrid_ldl_analyse(*given, address(tables), made) < 0:
            raise OverflowError("the factors of this sparse system have too many entries to count")
        return cls(made, (K.starts, K.rows, tables))


class FixedTables(NamedTuple):
    """The analysis for a fixed order, with the arrays it points to."""

    analysis: FixedAnalysis
    arrays: tuple[Integers, ...]

    @classmethod
    def of(cls, library: ctypes.CDLL, K: Compressed, group: Integers) -> FixedTables:
        """Analyse the pattern of K; of size 0 where the elimination has too many products."""
        group = np.ascontiguousarray(group, dtype=np.int32)
        work = np.empty(library.hybrid_ldl_analysis(K.size, K.rows.size), dtype=np.int32)
        given = (K.size, *(address(array) for array in (K.starts, K.rows, group)))
        needed = library.hybrid_fixed_plan(*given, PRODUCTS, address(work))
        made = FixedAnalysis()
        tables = np.zeros(max(needed, 0), dtype=np.int32)
        if needed >= 0:
            library.hybrid_fixed_analyse(*given, address(work), address(tables), made)
        return cls(made, (tables,))
