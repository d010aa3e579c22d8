"""The horizon of one phase while it is laid out: its grid and the symbols on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca

from casadi_hybrid.control.assembly import Assembly
from casadi_hybrid.control.model import Model
from casadi_hybrid.control.signals import Array


@dataclass
class Horizon:
    """Grid points 0 … N with N intervals between them; symbols in physical units, by columns.

    Attributes:
        assembly: what collects the program.
        model: of the phase.
        integrand: (x, z, u, p, t) → what the integral costs add up, 1×1.
        fractions: of the N + 1 grid points in the duration, from 0 to 1.
        first: the stage of its first grid point.
        prefix: of the names of its blocks.
        guess: by name of the block, start values.
        duration: a number or a symbol.
        T: times, 1×(N + 1).
        dt: lengths of the intervals, 1×N.
        X, Z: states and algebraic states at the grid points; Z has no rows where nothing asks.
        U, V: controls at the beginning and at the end of each interval.
        W: controls at the grid points; at the last that of the end of the last interval.
        P: parameters at the grid points, the model's first.
        inside: times in [0, 1], states, algebraic states at points between the grid points, as
            (fractions of an interval, X, Z) with one column a point, interval by interval.
    """

    assembly: Assembly
    model: Model
    integrand: ca.Function
    fractions: Array
    first: int = 0
    prefix: str = ""
    guess: dict[str, Array] = field(default_factory=dict)
    duration: Any = 1.0
    T: Any = None
    dt: Any = None
    X: Any = None
    Z: Any = None
    U: Any = None
    V: Any = None
    W: Any = None
    P: Any = None
    inside: tuple[Array, Any, Any] | None = None

    @property
    def N(self) -> int:
        """Number of intervals."""
        return int(self.fractions.size) - 1

    def stages(self, points: bool = False) -> list[int]:
        """Return the stages of the intervals, or of all grid points."""
        return list(range(self.first, self.first + self.N + points))

    def name(self, name: str) -> str:
        """Return the name of a block of this phase."""
        return self.prefix + name

    def states(self, columns: Sequence[int]) -> Any:
        """Add the states at these grid points as unknowns; return them, one column each."""
        rows = []
        for name, signal in self.model.signals["state"].items():
            label = self.name(name)
            rows.append(
                self.assembly.variable(
                    label,
                    signal.size,
                    [self.first + k for k in columns],
                    lower=signal.lower,
                    upper=signal.upper,
                    start=self.guess[name][:, list(columns)],
                    scale=signal.scale,
                )
            )
        return ca.vertcat(*rows)


def each(function: ca.Function, kind: Any, columns: Sequence[Any]) -> list[Any]:
    """Return the outputs of a function for each column of its arguments, side by side.

    In MX graphs the function is mapped, so that the graph does not grow with the columns.
    """
    count = max(int(column.shape[1]) for column in columns)
    if kind is ca.MX:
        if count == 1:
            return list(function.call([ca.MX(column) for column in columns], False, False))
        return list(function.map(count).call([ca.MX(column) for column in columns]))
    each_of = [function.call([column[:, k] for column in columns], True, False)
               for k in range(count)]  # fmt: skip
    return [ca.horzcat(*outputs) for outputs in zip(*each_of, strict=True)]
