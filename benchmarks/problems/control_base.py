"""How an optimal-control problem is transcribed into what ``casadi.nlpsol`` takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

import casadi as ca
import numpy as np

SIZES = ("small", "medium", "large")
Build = Callable[[int], dict[str, Any]]


@dataclass(frozen=True)
class Family:
    """One control problem at several sizes.

    Attributes:
        name: short name, a word.
        build: makes the problem for N intervals (or grid points a side): ``x``, ``f``, ``g`` and
            the lists of floats ``lbx``, ``ubx``, ``lbg``, ``ubg``, ``x0``; new symbols every call.
        small: the values of N that are called small.
        medium: those called medium.
        large: those called large.
        between: further ones, so that a method is judged by a family and not by single sizes.
    """

    name: str
    build: Build = field(repr=False)
    small: tuple[int, ...]
    medium: tuple[int, ...]
    large: tuple[int, ...]
    between: tuple[int, ...] = ()

    def sizes(self, size: str) -> tuple[int, ...]:
        """The values of N of one of ``SIZES``."""
        return {"small": self.small, "medium": self.medium, "large": self.large}[size]

    @property
    def all_sizes(self) -> tuple[int, ...]:
        """The values of N."""
        return (*self.small, *self.medium, *self.large, *self.between)


class Program:
    """Collects variables, rows and costs, in the order in which they are named.

    Args:
        symbols: ``ca.SX`` or ``ca.MX``.
    """

    def __init__(self, symbols: type = ca.SX) -> None:
        self._symbols = symbols
        self._x: list[Any] = []
        self._g: list[Any] = []
        self._numbers: dict[str, list[float]] = {
            key: [] for key in ("lbx", "ubx", "x0", "lbg", "ubg")
        }
        self._f: Any = 0

    def variable(
        self,
        name: str,
        rows: int,
        columns: int = 1,
        *,
        lower: Any = -inf,
        upper: Any = inf,
        start: Any = 0.0,
    ) -> Any:
        """A matrix of variables; a list of numbers holds for every column, one for every entry."""
        symbol = self._symbols.sym(name, rows, columns)
        self._x.append(ca.vec(symbol))
        for key, value in (("lbx", lower), ("ubx", upper), ("x0", start)):
            self._extend(key, value, rows, columns)
        return symbol

    def rows(self, expression: Any, lower: Any = 0.0, upper: Any = 0.0) -> None:
        """Lower ≤ expression ≤ upper; an equation with zero unless told otherwise."""
        self._g.append(ca.vec(expression))
        for key, value in (("lbg", lower), ("ubg", upper)):
            self._extend(key, value, *expression.shape)

    def cost(self, expression: Any) -> None:
        """Add to what is minimized."""
        self._f = self._f + expression

    def build(self) -> dict[str, Any]:
        """The program, its bounds and its start."""
        kept = {key: list(values) for key, values in self._numbers.items()}
        return {"x": ca.vertcat(*self._x), "f": self._f, "g": ca.vertcat(*self._g), **kept}

    def _extend(self, key: str, value: Any, rows: int, columns: int) -> None:
        numbers = np.asarray(value, dtype=float)
        if numbers.ndim == 1:
            numbers = numbers[:, None]
        entries = np.broadcast_to(numbers, (rows, columns)).ravel(order="F")
        self._numbers[key] += entries.tolist()


def runge_kutta(right: Callable[[Any, Any], Any], x: Any, u: Any, h: Any, steps: int = 1) -> Any:
    """x after steps of order four, of the length h together, under the constant control u."""
    h = h / steps
    for _ in range(steps):
        k1 = right(x, u)
        k2 = right(x + h / 2 * k1, u)
        k3 = right(x + h / 2 * k2, u)
        k4 = right(x + h * k3, u)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return x


def trapezoid(program: Program, right: Callable[[Any, Any], Any], X: Any, U: Any, h: Any) -> None:
    """Rows of the trapezoidal rule between the columns of X, with controls at the same points."""
    slopes = [right(X[:, k], U[:, k]) for k in range(X.shape[1])]
    for k in range(X.shape[1] - 1):
        program.rows(X[:, k + 1] - X[:, k] - h / 2 * (slopes[k] + slopes[k + 1]))


def radau(degree: int) -> tuple[Any, Any]:
    """Of Radau collocation on [0, 1]: the derivative matrix C and the weights of the quadrature.

    With the states at 0 and at the collocation points as columns of Z, the derivatives at the
    points are Z C; the last point is the end of the interval.
    """
    C, _, weights = ca.collocation_coeff(ca.collocation_points(degree, "radau"))
    return C, weights


def line(first: list[float], last: list[float], points: int) -> Any:
    """The straight line between two states, a column for every point."""
    return np.linspace(first, last, points).T
