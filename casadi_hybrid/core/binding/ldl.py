"""Analysis for the sparse LDLᵀ of the core (``src/ldl.h``).

A front of the factorization chooses pivots among its own rows alone. So each row of A is paired
with a variable that it can be solved for, and both are eliminated together: the pairs are vertices
of the graph whose elimination order is chosen.
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
# Places for delayed rows in a front.
PLACES = 8

# Limit for an elimination in a fixed order, whose tables have an entry for each product.
PRODUCTS = 4_000_000


def partners(library: ct.CDLL, K: Layout, values: Vector) -> Integers:
    """Row of K with which each row is eliminated, or −1: rows of A are paired with variables."""
    partner = np.empty(K.size, dtype=np.int32)
    # An entry that is large in its row is preferred: it is a pivot that grows no others.
    work = np.empty(library.hybrid_ldl_pairing(K.size, K.rows.size), dtype=np.int32)
    arrays: tuple[NDArray[Any], ...] = K.starts, K.rows, values, work, partner
    library.hybrid_ldl_pair(K.size, K.n, *map(address, arrays))
    return partner


def eliminations(
    K: Layout, partner: Integers, curved: NDArray[np.bool_]
) -> tuple[Vector, NDArray[np.intp]]:
    """Turn of each row of K in the elimination, rows of one turn together; and in a fixed order."""
    of_row = partner >= 0
    of_row[: K.n] = False
    count = K.size - int(of_row.sum())
    # A row of A joins the vertex of its partner; every other row of K is a vertex.
    group = np.cumsum(~of_row) - 1  # vertex of each row
    group[of_row] = group[partner[of_row]]
    pattern = ca.Sparsity.triplet(count, count, group[K.rows].tolist(), group[K.cols].tolist())
    # CasADi's amd writes out of bounds unless the diagonal is full; the diagonal of K is.
    # Approximate minimum degree (Amestoy, Davis and Duff, 1996); argsort inverts the order.
    when = np.argsort((pattern + pattern.T).amd()).astype(float)
    turn = when[group]
    # Without pivoting a zero on the diagonal must be filled in before it is a pivot.
    # A variable without curvature follows a row with a curved partner, which fills its diagonal.
    for j in np.flatnonzero(~curved & (partner[: K.n] < 0)):
        rows = K.rows[K.starts[j] : K.starts[j + 1]]
        rows = rows[rows >= K.n]
        if rows.size:
            filling = rows[(partner[rows] >= 0) & curved[partner[rows]]]
            after = turn[filling].min() if filling.size else turn[rows].max()
            # Half a turn later is before the next vertex.
            when[group[j]] = max(turn[j], after + 0.5)
    return turn, np.argsort(np.argsort(when, kind="stable"))[group]


def tables_of(
    library: ct.CDLL, K: Layout, group: NDArray[Any], fixed: bool = False
) -> tuple[Any, tuple[Integers, ...]]:
    """Analyse K with pivoting, fronts in the order of ``group``, or for that order if ``fixed``.

    Returns ``hybrid_ldl`` or ``hybrid_fixed`` (of size 0 for too many products), and its arrays.
    Raises OverflowError if the factors with pivoting have more entries than an int counts.
    """
    arrays = K.starts, K.rows, np.ascontiguousarray(group, dtype=np.int32)
    pattern = K.size, *map(address, arrays)
    work = np.empty(library.hybrid_ldl_analysis(K.size, K.rows.size), dtype=np.int32)
    if fixed:
        data, analyse = C.hybrid_fixed(), partial(library.hybrid_fixed_analyse, *pattern)
        needed = library.hybrid_fixed_plan(*pattern, PRODUCTS, address(work))
    else:
        data, analyse = C.hybrid_ldl(), partial(library.hybrid_ldl_analyse, *pattern, PLACES)
        needed = library.hybrid_ldl_plan(*pattern, PLACES, address(work))
    tables = np.zeros(max(needed, 0), dtype=np.int32)
    # The fixed order is an option of the solver: without it pivoting serves.
    failed = needed < 0 or analyse(address(work), address(tables), ct.byref(data))
    if failed and not fixed:
        raise OverflowError("the factors of this sparse system have too many entries to count")
    return data, (*arrays, tables)
