"""From a control problem in words to a nonlinear program with names: shooting and collocation.

A :class:`Transcription` collects named variables, parameters, constraints and the objective. The
variables are handed out in physical units and kept, divided by their ``unit``, as the unknowns of
the program, so that unknowns of different size meet the solver in like size. :meth:`build` closes
the collection into an immutable :class:`~program.Program`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
from program import Block, Program, spread

Dynamics = Callable[[Any, Any], Any]
"""A function of state and input: the time derivative of the state, or the next state."""


class Transcription:
    """Collects a control problem piece by piece; all symbols are in physical units.

    Args:
        name: of the problem.
        symbols: ``ca.SX`` unrolls the horizon, which evaluates fastest; ``ca.MX`` builds one
            interval and maps it over the horizon, which builds in a time that hardly depends on
            its length, and is for large states and long horizons.
    """

    def __init__(self, name: str, symbols: Any = ca.SX) -> None:
        self.name = name
        self._symbols = symbols
        self._objective: Any = symbols(0)
        self._x: list[Any] = []
        self._p: list[Any] = []
        self._g: list[Any] = []
        self._numbers: dict[str, list[np.ndarray]] = {
            key: [] for key in ("x0", "lbx", "ubx", "lbg", "ubg", "p")
        }
        self._blocks: dict[str, dict[str, Block]] = {"x": {}, "p": {}, "g": {}}

    def variable(
        self,
        name: str,
        rows: int = 1,
        columns: int = 1,
        *,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        start: Any = 0.0,
        unit: Any = 1.0,
        stride: int = 1,
    ) -> Any:
        """Add rows×columns unknowns.

        Args:
            name: its name in messages and in :meth:`Program.unpack`.
            rows, columns: for a trajectory, one column per time.
            lower, upper, start, unit: numbers, vectors (one entry a row) or matrices.
            stride: columns an interval, of a trajectory.

        Returns:
            The symbols in physical units.
        """
        shape = (rows, columns)
        scale = spread(unit, shape)
        symbol = self._symbols.sym(name, rows, columns)
        self._place("x", name, Block(slice(0), shape, scale, stride))
        self._x.append(ca.vec(symbol))
        for key, value in (("x0", start), ("lbx", lower), ("ubx", upper)):
            self._numbers[key].append((spread(value, shape) / scale).ravel(order="F"))
        return symbol * scale

    def parameter(self, name: str, value: Any) -> Any:
        """Add a parameter with a value that may change between solves; return its symbols."""
        values = np.atleast_1d(np.asarray(value, dtype=float))
        values = values[:, None] if values.ndim == 1 else values
        shape = (values.shape[0], values.shape[1])
        symbol = self._symbols.sym(name, *shape)
        self._place("p", name, Block(slice(0), shape, np.ones(shape)))
        self._p.append(ca.vec(symbol))
        self._numbers["p"].append(values.ravel(order="F"))
        return symbol

    def constrain(
        self,
        name: str,
        rows: Any,
        lower: Any = 0.0,
        upper: Any = 0.0,
        *,
        unit: Any = 1.0,
        stride: int = 1,
    ) -> None:
        """Add lower ≤ rows ≤ upper, an equation by default, divided by ``unit``.

        For a trajectory, give one column per time.
        """
        rows = self._symbols(rows)
        shape = (int(rows.shape[0]), int(rows.shape[1]))
        scale = spread(unit, shape)
        self._place("g", name, Block(slice(0), shape, scale, stride))
        self._g.append(ca.vec(rows / scale))
        for key, value in (("lbg", lower), ("ubg", upper)):
            self._numbers[key].append((spread(value, shape) / scale).ravel(order="F"))

    def minimize(self, cost: Any) -> None:
        """Add a term to the objective."""
        self._objective = self._objective + cost

    def shoot(self, name: str, step: Dynamics, X: Any, U: Any, **options: Any) -> None:
        """Multiple shooting: X_{k+1} = step(X_k, U_k) for every column of U."""
        N = int(U.shape[1])
        if self._symbols is ca.MX:
            x, u = ca.SX.sym("x", X.shape[0]), ca.SX.sym("u", U.shape[0])
            ends = ca.Function("interval", [x, u], [step(x, u)]).map(N)(X[:, :-1], U)
        else:
            ends = ca.horzcat(*(step(X[:, k], U[:, k]) for k in range(N)))
        self.constrain(name, X[:, 1:] - ends, **options)

    def collocate(
        self,
        name: str,
        dynamics: Dynamics,
        X: Any,
        U: Any,
        dt: Any,
        *,
        degree: int = 3,
        cost: Dynamics | None = None,
        **options: Any,
    ) -> None:
        """Radau collocation: a polynomial of the degree an interval, U constant on it.

        The last collocation point is the end of the interval, X_{k+1}; the states at the others
        become the variables ``<name> points``. The integral of ``cost`` joins the objective.

        Args:
            name: of the rows, one column per collocation point.
            dynamics: (x, u) → dx/dt.
            X, U: states (one column more than U) and inputs.
            dt: length of an interval, a number or a symbol.
            degree: order of accuracy 2·degree − 1 in dt.
            cost: (x, u) → integrand.
            **options: ``lower``, ``upper``, ``start``, ``unit`` of the point variables.
        """
        C, weights = _radau(degree)
        rows, N, inner = int(X.shape[0]), int(U.shape[1]), degree - 1
        points = (
            self.variable(f"{name} points", rows, N * inner, stride=inner, **options)
            if inner
            else self._symbols(rows, 0)
        )
        defects = []
        for k in range(N):
            at = ca.horzcat(X[:, k], points[:, k * inner : (k + 1) * inner], X[:, k + 1])
            slopes = ca.mtimes(at, C)
            for j in range(degree):
                x = at[:, j + 1]
                defects.append(slopes[:, j] - dt * dynamics(x, U[:, k]))
                if cost is not None:
                    self.minimize(dt * weights[j] * cost(x, U[:, k]))
        unit = options.get("unit", 1.0)
        self.constrain(name, ca.horzcat(*defects), unit=unit, stride=degree)

    def build(self) -> Program:
        """Return the collected program."""
        empty = self._symbols(0, 1)
        parts = {"x": self._x, "p": self._p, "g": self._g}
        nlp = {key: ca.vertcat(empty, *collected) for key, collected in parts.items()}
        nlp["f"] = self._objective
        numbers = {
            key: np.concatenate(parts) if parts else np.zeros(0)
            for key, parts in self._numbers.items()
        }
        blocks = self._blocks
        return Program(self.name, nlp, **numbers, variables=blocks["x"], parameters=blocks["p"],
                       constraints=blocks["g"])  # fmt: skip

    def _place(self, kind: str, name: str, block: Block) -> None:
        blocks = self._blocks[kind]
        if name in blocks:
            raise ValueError(f"{self.name} has two blocks named {name!r}; give each its own name")
        begin = max((other.where.stop for other in blocks.values()), default=0)
        end = begin + block.shape[0] * block.shape[1]
        blocks[name] = replace(block, where=slice(begin, end))


def runge_kutta(dynamics: Dynamics, dt: Any, *, steps: int = 1) -> Dynamics:
    """Return (x, u) → x(dt) by the classical Runge–Kutta method of order four.

    Args:
        dynamics: (x, u) → dx/dt, on symbols or numbers.
        dt: seconds, a number or a symbol.
        steps: Runge–Kutta steps within dt.
    """
    h = dt / steps

    def step(x: Any, u: Any) -> Any:
        for _ in range(steps):
            a = dynamics(x, u)
            b = dynamics(x + h / 2 * a, u)
            c = dynamics(x + h / 2 * b, u)
            d = dynamics(x + h * c, u)
            x = x + h / 6 * (a + 2 * b + 2 * c + d)
        return x

    return step


def exact_step(
    dynamics: Dynamics, states: int, inputs: int, dt: float, *, tolerance: float = 1e-9
) -> ca.Function:
    """Return (x, u) → x(dt) by the variable-order integrator CVODES, as a plant to simulate."""
    x, u = ca.SX.sym("x", states), ca.SX.sym("u", inputs)
    ode = {"x": x, "u": u, "ode": dynamics(x, u)}
    options = {"abstol": tolerance, "reltol": tolerance}
    integrate = ca.integrator("integrate", "cvodes", ode, 0.0, dt, options)
    x, u = ca.MX.sym("x", states), ca.MX.sym("u", inputs)
    return ca.Function("plant", [x, u], [integrate(x0=x, u=u)["xf"]])


def _radau(degree: int) -> tuple[Any, np.ndarray]:
    """Weights of the states for dt times their slopes at the points, and of the quadrature."""
    points = ca.collocation_points(degree, "radau")
    C, _, _ = ca.collocation_coeff(points)
    # Exact for powers below the degree. CasADi's own weights add up to 1/2 where the degree is 1.
    powers = np.vander(points, increasing=True).T
    return C, np.linalg.solve(powers, 1.0 / np.arange(1, degree + 1))
