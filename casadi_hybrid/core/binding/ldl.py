"""The sparse LDLᵀ of the engine (``c/ldl.h``): its analysis.

A front of the factorization chooses pivots among its own rows alone. So each row of A is paired
with a variable that it can be solved for, and both are eliminated together: the pair is a vertex of
the graph whose elimination order is chosen.
"""

from __future__ import annotations

import ctypes as ct
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.header import C
from casadi_hybrid.utils.arrays import address
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.linear_algebra.sparse import Layout

Integers = NDArray[np.int32]
PLACES = 8
"""Places for delayed rows in a front."""

PRODUCTS = 4_000_000
"""The most of an elimination in a fixed order: each has a place in its tables."""


def partners(library: ct.CDLL, K: Layout, values: Vector) -> Integers:
    """With which row of K each is eliminated, or −1: rows of A with variables, and they with rows.

    ``values`` are those of K's entries.
    """
    partner = np.empty(K.size, dtype=np.int32)
    work = np.empty(library.hybrid_ldl_pairing(K.size, K.rows.size), dtype=np.int32)
    arrays: tuple[NDArray[Any], ...] = K.starts, K.rows, values, work, partner
    library.hybrid_ldl_pair(K.size, K.n, *map(address, arrays))
    return partner


def eliminations(
    K: Layout, partner: Integers, curved: NDArray[np.bool_]
) -> tuple[Vector, NDArray[np.intp]]:
    """When each row of K is eliminated, rows of one number together, and that for a fixed order.

    An approximate minimum degree order of the graph whose vertices are the pairs. ``curved`` says
    of each variable whether K has a number of its own on its diagonal: in a fixed order one without
    is no pivot before a row of its own is eliminated.
    """
    of_row = partner >= 0
    of_row[: K.n] = False
    count = K.size - int(of_row.sum())
    group = np.cumsum(~of_row) - 1  # the vertex of each row
    group[of_row] = group[partner[of_row]]
    pattern = ca.Sparsity.triplet(count, count, group[K.rows].tolist(), group[K.cols].tolist())
    # CasADi's function writes beyond its memory where the diagonal is not full; that of K is.
    when = np.argsort((pattern + pattern.T).amd()).astype(float)
    turn = when[group]
    # A variable without curvature comes after what lends it some: a row with a curved partner.
    for j in np.flatnonzero(~curved & (partner[: K.n] < 0)):
        rows = K.rows[K.starts[j] : K.starts[j + 1]]
        rows = rows[rows >= K.n]
        if rows.size:
            lent = rows[(partner[rows] >= 0) & curved[partner[rows]]]
            after = turn[lent].min() if lent.size else turn[rows].max()
            when[group[j]] = max(turn[j], after + 0.5)
    return turn, np.argsort(np.argsort(when, kind="stable"))[group]


def tables_of(
    library: ct.CDLL, K: Layout, group: NDArray[Any], fixed: bool = False
) -> tuple[Any, tuple[Integers, ...]]:
    """The analysis for chosen pivots, fronts being eliminated in this order, or for this order.

    It is a ``hybrid_ldl``, or a ``hybrid_fixed`` of size 0 where that has too many products. With
    it come the arrays that it points to. Any threads may use it at once.

    Raises:
        OverflowError: where the factors for chosen pivots have more entries than an int counts.
    """
    arrays = K.starts, K.rows, np.ascontiguousarray(group, dtype=np.int32)
    given = K.size, *map(address, arrays)
    work = np.empty(library.hybrid_ldl_analysis(K.size, K.rows.size), dtype=np.int32)
    if fixed:
        made, analyse = C.hybrid_fixed(), partial(library.hybrid_fixed_analyse, *given)
        needed = library.hybrid_fixed_plan(*given, PRODUCTS, address(work))
    else:
        made, analyse = C.hybrid_ldl(), partial(library.hybrid_ldl_analyse, *given, PLACES)
        needed = library.hybrid_ldl_plan(*given, PLACES, address(work))
    tables = np.zeros(max(needed, 0), dtype=np.int32)
    fault = needed < 0 or analyse(address(work), address(tables), ct.byref(made))
    if fault and not fixed:
        raise OverflowError("the factors of this sparse system have too many entries to count")
    return made, (*arrays, tables)
