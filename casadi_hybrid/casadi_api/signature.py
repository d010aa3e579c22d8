"""What a solver answers about its name, arguments and shapes, as any Function of CasADi does."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import casadi as ca

from casadi_hybrid.casadi_api.graphs.function import columns_of, make_function, shapes_of
from casadi_hybrid.problem.problem import Problem

# What a script asks of inputs and outputs, answered without a Function that could be in a graph.
_INFORMATION = [name for name in dir(ca.Function) if name.endswith(("_in", "_out"))]


class Signature(ca.Function):  # type: ignore[misc]
    """A Function's names, sizes and defaults, from a problem and a name.

    ``ca.Function.__init__`` is not called: CasADi's own object is made by a subclass, as ``this``,
    when it is asked for.
    """

    def __init__(self, name: str, problem: Problem) -> None:
        self._name, self._problem = name, problem

    def name(self) -> str:
        """The name given to it."""
        return self._name

    def class_name(self) -> str:
        """What it is."""
        return type(self).__name__

    def __str__(self) -> str:
        return str(self._signature).rpartition(" ")[0] + f" {self.class_name()}"

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, int]]:
        return shapes_of(self._problem)

    @cached_property
    def _signature(self) -> ca.Function:
        """A Function of the same shapes and defaults that computes nothing."""
        zeros = [ca.MX.zeros(rows) for rows in columns_of(self._problem)[1]]
        return make_function(self._name, self._problem, lambda _: zeros)


def _informed(name: str) -> Callable[..., Any]:
    def ask(self: Signature, *which: Any) -> Any:
        return getattr(self._signature, name)(*which)

    ask.__name__, ask.__doc__ = name, f"As ``ca.Function.{name}``."
    return ask


for _name in _INFORMATION:
    setattr(Signature, _name, _informed(_name))
