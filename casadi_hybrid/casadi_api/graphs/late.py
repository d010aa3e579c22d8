"""Derivatives of a solve as Functions that are there from the beginning, and made where called."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import casadi as ca

from casadi_hybrid.casadi_api.convention import INPUTS, Columns
from casadi_hybrid.casadi_api.graphs.on_demand import LateDerivatives
from casadi_hybrid.engine.in_graph import NAME, WIDTHS
from casadi_hybrid.problem.problem import Problem


def directional_derivatives(
    problem: Problem, columns: tuple[Sequence[int], Sequence[int]]
) -> list[ca.Function]:
    """Those of :mod:`casadi_hybrid.engine.in_graph`, by the names that CasADi looks for.

    CasADi takes them when a Function is made, and most are never called: what stands behind each is
    made when it is. It holds no reference to them; who has them keeps them.
    """
    of = LateDerivatives(problem, ("solver", *INPUTS))
    rows = (1, *columns[0]), tuple(columns[1])
    return [_Derivative(of, mode, k, *rows) for mode in ("fwd", "adj") for k in WIDTHS]


class _Derivative(Columns):
    """(inputs, outputs, seeds) → directional or adjoint derivatives, a column a direction."""

    def __init__(
        self,
        of: LateDerivatives,
        mode: str,
        directions: int,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
    ) -> None:
        self._of, self._mode, self._directions = of, mode, directions
        self._given = len(inputs) + len(outputs)
        seeds, found = (inputs, outputs) if mode == "fwd" else (outputs, inputs)
        super().__init__(f"{mode}{directions}_{NAME}", (*inputs, *outputs, *seeds), found)

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        """A dense column, or as many as there are directions."""
        return ca.Sparsity.dense(self._rows_in[i], 1 if i < self._given else self._directions)

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        """A dense column for each direction."""
        return ca.Sparsity.dense(self._rows_out[i], self._directions)

    def eval(self, arguments: Sequence[ca.DM]) -> list[ca.DM]:
        """Derivatives in numbers."""
        return [ca.densify(value) for value in self._made.call(arguments)]

    def get_forward(
        self, directions: int, name: str, inames: Any, onames: Any, _options: Any
    ) -> ca.Function:
        """The Function of directional derivatives of these."""
        return _named(self._made.forward(directions), name, inames, onames)

    def get_reverse(
        self, directions: int, name: str, inames: Any, onames: Any, _options: Any
    ) -> ca.Function:
        """The Function of adjoint derivatives of these."""
        return _named(self._made.reverse(directions), name, inames, onames)

    @cached_property
    def _made(self) -> ca.Function:
        made = self._of.made
        names = [[f"i{k}" for k in range(self.n_in())], [f"o{k}" for k in range(self.n_out())]]
        return (made.forward if self._mode == "fwd" else made.reverse)(
            self._directions, self.name(), *names
        )


def _named(function: ca.Function, name: str, inames: Any, onames: Any) -> ca.Function:
    symbols = function.mx_in()
    return ca.Function(name, symbols, function.call(symbols), list(inames), list(onames))
