"""Derivatives that are made at their first use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from casadi_hybrid.problem.problem import Problem

if TYPE_CHECKING:
    from casadi_hybrid.casadi_api.graphs.derivatives import Derivatives


class LateDerivatives:
    """The derivatives of a solve by its inputs, made at their first use.

    Args:
        problem: the problem.
        inputs: names in order, with ``solver`` where a number that names the solver is one.
    """

    def __init__(self, problem: Problem, inputs: Sequence[str]) -> None:
        self._problem, self._inputs = problem, inputs

    @cached_property
    def made(self) -> Derivatives:
        """They."""
        # SciPy's matrices come along.
        from casadi_hybrid.casadi_api.graphs.derivatives import Derivatives  # noqa: PLC0415

        return Derivatives(self._problem, self._inputs)
