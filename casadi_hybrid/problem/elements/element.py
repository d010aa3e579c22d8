"""What the elements of a problem are, and their derivatives, taken once for all that are alike."""

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
    """Elements that are the same function of other variables.

    Each is (x, p, c) → rows of the constraints and, where it has one, a term of the objective: x
    and p are entries of the problem's, c constants that differ between the elements.

    Args:
        x, p, c: symbols, columns of SX.
        rows: expressions, a column.
        term: an expression, None where these elements add nothing to the objective.
        x_at, p_at, row_at: which entries and rows those of each element are, one element a line.
        constants: the numbers c, one element a line.
    """

    x: Any
    p: Any
    c: Any
    rows: Any
    term: Any | None
    x_at: Places
    p_at: Places
    row_at: Places
    constants: NDArray[np.float64]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.x_at)

    @cached_property
    def values(self) -> Any:
        """Rows and term, a column."""
        return self.rows if self.term is None else ca.vertcat(self.rows, self.term)

    @cached_property
    def _jacobian(self) -> Any:
        return ca.jacobian(self.values, self.x)

    @cached_property
    def jacobian_at(self) -> tuple[Places, Places]:
        """Which value and which of x each entry of the Jacobian belongs to."""
        return _triplet(self._jacobian.sparsity())

    @cached_property
    def first(self) -> ca.Function:
        """(x, p, c) → values and the nonzeros of their Jacobian, one column."""
        J = ca.vec(self._jacobian.nz[:])
        column = ca.densify(ca.vertcat(self.values, J))
        return ca.Function("element_first", [self.x, self.p, self.c], [column])

    @cached_property
    def _curvature(self) -> tuple[Any, Any]:
        lam = ca.SX.sym("lam", self.rows.numel())
        L = ca.dot(lam, self.rows) + (0 if self.term is None else self.term)
        return lam, ca.triu(ca.hessian(L, self.x)[0])

    @cached_property
    def hessian_at(self) -> tuple[Places, Places]:
        """Which two of x each entry of the Hessian belongs to; those above the diagonal once."""
        return _triplet(self._curvature[1].sparsity())

    @cached_property
    def second(self) -> ca.Function:
        """(x, λ, p, c) → the nonzeros of the Hessian of term + λᵀ rows, a column."""
        lam, H = self._curvature
        inputs = [self.x, lam, self.p, self.c]
        return ca.Function("element_second", inputs, [ca.densify(ca.vec(H.nz[:]))])


def together(kinds: list[Kind]) -> tuple[Kind, ...]:
    """Kinds with as many elements as each other as one, so that there is less to be called."""
    by_count: dict[int, list[Kind]] = {}
    for kind in kinds:
        by_count.setdefault(kind.count, []).append(kind)
    made = []
    for some in by_count.values():
        x, p, c, rows = (
            ca.vertcat(*(getattr(kind, one) for kind in some)) for one in ("x", "p", "c", "rows")
        )
        x_at, p_at, row_at, constants = (
            np.hstack([getattr(kind, one) for kind in some])
            for one in ("x_at", "p_at", "row_at", "constants")
        )
        term = total([kind.term for kind in some if kind.term is not None])
        made.append(Kind(x, p, c, rows, term, x_at, p_at, row_at, constants))
    return tuple(made)


def total(terms: list[Any]) -> Any | None:
    """Their sum, None where there are none."""
    return sum(terms[1:], terms[0]) if terms else None


class Elements(NamedTuple):
    """A problem as the sum of its elements.

    Attributes:
        kinds: of all elements; a row is the sum of what they add to it.
        n, m, n_p: variables, rows and parameters of the problem.
        rows_at: the rows that are not zero by structure.
    """

    kinds: tuple[Kind, ...]
    n: int
    m: int
    n_p: int
    rows_at: Places


def _triplet(sparsity: ca.Sparsity) -> tuple[Places, Places]:
    rows, columns = sparsity.get_triplet()
    return np.array(rows, dtype=np.int32), np.array(columns, dtype=np.int32)
