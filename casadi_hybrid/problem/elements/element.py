"""Elements of a problem by kinds, with derivatives generated once for each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.signedinteger[Any]]
Find = Callable[[ca.Function], "Elements | None"]


@dataclass(frozen=True, eq=False)
class Kind:
    """Elements that are the same function (x, p, c) → rows, term of different variables."""

    # Symbols, columns of SX: entries of the problem's x and p, and constants of an element.
    x: Any
    p: Any
    c: Any
    rows: Any  # column of expressions, summed into the rows of the constraints
    term: Any | None  # of the objective
    # Indices in the problem of x, p and rows, one element per line.
    x_at: Places
    p_at: Places
    row_at: Places
    constants: NDArray[np.float64]  # values of c, one element per line

    @property
    def count(self) -> int:
        """Number of elements."""
        return len(self.x_at)

    @cached_property
    def values(self) -> Any:
        """Column of the rows and the term."""
        return self.rows if self.term is None else ca.vertcat(self.rows, self.term)

    @cached_property
    def _jacobian(self) -> Any:
        return ca.jacobian(self.values, self.x)

    @cached_property
    def jacobian_at(self) -> tuple[Places, Places]:
        """Indices of value and variable of each entry of the Jacobian."""
        return _triplet(self._jacobian.sparsity())

    @cached_property
    def first(self) -> ca.Function:
        """(x, p, c) → column of the values and the nonzeros of their Jacobian."""
        J = ca.vec(self._jacobian.nz[:])
        column = ca.densify(ca.vertcat(self.values, J))
        return ca.Function("element_first", [self.x, self.p, self.c], [column])

    @cached_property
    def _curvature(self) -> tuple[Any, Any]:
        lam = ca.SX.sym("lam", self.rows.numel())
        L = ca.dot(lam, self.rows) + (0 if self.term is None else self.term)
        # The assembly mirrors the upper triangle.
        return lam, ca.triu(ca.hessian(L, self.x)[0])

    @cached_property
    def hessian_at(self) -> tuple[Places, Places]:
        """Indices of the two variables of each entry of the Hessian's upper triangle."""
        return _triplet(self._curvature[1].sparsity())

    @cached_property
    def second(self) -> ca.Function:
        """(x, λ, p, c) → column of the nonzeros of the upper Hessian of term + λᵀ rows."""
        lam, H = self._curvature
        inputs = [self.x, lam, self.p, self.c]
        return ca.Function("element_second", inputs, [ca.densify(ca.vec(H.nz[:]))])


def together(kinds: list[Kind]) -> tuple[Kind, ...]:
    """Merge kinds with equal numbers of elements, which saves function calls."""
    by_count: dict[int, list[Kind]] = {}
    for kind in kinds:
        by_count.setdefault(kind.count, []).append(kind)
    merged = []
    for group in by_count.values():
        # Elements k of all these kinds become one element: symbols in one column, indices in one
        # line.
        symbols = {
            name: ca.vertcat(*(getattr(kind, name) for kind in group))
            for name in ("x", "p", "c", "rows")
        }
        tables = {
            name: np.hstack([getattr(kind, name) for kind in group])
            for name in ("x_at", "p_at", "row_at", "constants")
        }
        term = total([kind.term for kind in group if kind.term is not None])
        merged.append(Kind(**symbols, term=term, **tables))
    return tuple(merged)


def total(terms: list[Any]) -> Any | None:
    """Sum of the terms; None for no terms."""
    return sum(terms[1:], terms[0]) if terms else None


class Elements(NamedTuple):
    """A problem as the sum of its elements: its rows are sums of their rows."""

    kinds: tuple[Kind, ...]
    n: int
    m: int
    n_p: int
    rows_at: Places  # structurally nonzero rows


def _triplet(sparsity: ca.Sparsity) -> tuple[Places, Places]:
    rows, columns = sparsity.get_triplet()
    return np.array(rows, dtype=np.int32), np.array(columns, dtype=np.int32)
