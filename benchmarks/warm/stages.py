"""From one interval of a predictive controller to the program of its whole horizon.

The unknowns stand stage by stage, x_0, u_0, x_1, u_1, …, x_N, and the rows too: first those that
close the gap to the next state, then the others of the stage. It is the order that solvers made
for optimal control ask for; the others do not mind. The measured state and the time enter as the
parameter p = (x̂, t).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.utils.errors import InputError

Vector = NDArray[np.float64]
SOFT = 50.0
"""Price of a soft row: s + s² of its violation s, times this."""


@dataclass(frozen=True)
class Family:
    """A plant and its controller, for any horizon.

    Attributes:
        name: a word.
        step: F(x, u), the state one interval later; plant and model are the same.
        cost: ℓ(x, u, t) of an interval; ``final``: ℓ_N(x, t).
        start: the first state.
        scale: a usual size of each state; the noise is 1 % of it.
        lower, upper: bounds of u; ``floor``, ``roof``: of x_1 … x_N.
        rows: c(x, t) ≥ 0 at x_1 … x_{N−1}, softened by one more input s ≥ 0 a stage.
        dt: length of an interval in seconds.
        horizons: the N that are measured.
        rest: the input to begin with.
    """

    name: str
    step: Callable[[Any, Any], Any]
    cost: Callable[[Any, Any, Any], Any]
    final: Callable[[Any, Any], Any]
    start: tuple[float, ...]
    scale: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    dt: float
    horizons: tuple[int, ...]
    floor: tuple[float, ...] = ()
    roof: tuple[float, ...] = ()
    rows: Callable[[Any, Any], Any] | None = None
    rest: tuple[float, ...] = ()


@dataclass(frozen=True)
class Program:
    """A controller as a nonlinear program.

    Attributes:
        family, N: which.
        nlp: CasADi's dictionary.
        lbx, ubx, lbg, ubg: bounds.
        nx, nu, ng: states, inputs and rows besides the gaps of every stage.
        step: the plant, (x, u) → x one interval later.
    """

    family: Family
    N: int
    nlp: dict[str, Any]
    lbx: Vector
    ubx: Vector
    lbg: Vector
    ubg: Vector
    nx: list[int]
    nu: list[int]
    ng: list[int]
    step: ca.Function = field(repr=False)

    @property
    def label(self) -> str:
        """Name and horizon."""
        return f"{self.family.name} N={self.N}"

    def first_input(self, x: Vector) -> Vector:
        """u_0 of a solution, the slack of soft rows left out."""
        n = self.nx[0]
        return x[n : n + len(self.family.lower)]

    def cold(self, state: Vector) -> Vector:
        """The guess without a solution: the measured state all along, and the input at rest."""
        inputs = self.family.rest or (0.0,) * len(self.family.lower)
        stages = zip(self.nx, self.nu, strict=True)
        return np.concatenate([[*state[:n], *(*inputs, 0.0)[:m]] for n, m in stages])

    def shifted(self, x: Vector, lam_x: Vector, lam_g: Vector) -> tuple[Vector, Vector, Vector]:
        """A solution one interval on; the last input is held for one more interval.

        The multipliers of x_0 = x̂ become those of the first gap: both are the slope of the cost
        to go by the state that the horizon begins with.
        """
        n, width = self.nx[0], len(self.family.lower)
        ahead, held = self._along(x), x[-n - self.nu[-2] :][:width]
        ahead[-n:] = self.step(x[-n:], held).full().ravel()
        return ahead, self._along(lam_x), self._across(lam_g)

    def _along(self, values: Vector) -> Vector:
        """The shift of unknowns, or of what belongs to each of them; the last stages stay."""
        wide = np.add(self.nx, self.nu)
        stages = np.split(values, np.cumsum(wide)[:-1])
        held = stages[-2][self.nx[0] :]
        ahead = [*stages[1:-1], np.concatenate([stages[-1], held]), stages[-1]]
        # Without a slack of its own, the first stage takes the inputs alone.
        return np.concatenate([ahead[0][: wide[0]], *ahead[1:]])

    def _across(self, values: Vector) -> Vector:
        """The shift of what belongs to the rows."""
        n = self.nx[0]
        stages = np.split(values, np.cumsum(n + np.array(self.ng[:-1]))[:-1])
        return np.concatenate([stages[1][:n], stages[0][:n], *stages[2:], stages[-1]])


def program(family: Family, N: int) -> Program:
    """Write the controller with N intervals.

    Raises:
        InputError: for fewer than two intervals.
    """
    if N < 2:
        raise InputError(f"a horizon needs at least 2 intervals, got {N}")
    n, inputs = len(family.start), len(family.lower)
    soft = family.rows is not None
    x, u = ca.SX.sym("x", n), ca.SX.sym("u", inputs)
    step = ca.Function("step", [x, u], [family.step(x, u)], {"cse": True})
    measured, t0 = ca.SX.sym("measured", n), ca.SX.sym("t")
    states = [ca.SX.sym(f"x{k}", n) for k in range(N + 1)]
    controls = [ca.SX.sym(f"u{k}", inputs + (soft and k > 0)) for k in range(N)]
    floor = np.array(family.floor or [-np.inf] * n)
    roof = np.array(family.roof or [np.inf] * n)

    f: Any = family.final(states[N], t0 + N * family.dt)
    g: list[Any] = []
    w, lbx, ubx, ubg, ng = [], [], [], [], []
    for k in range(N):
        t, v = t0 + k * family.dt, controls[k]
        f += family.dt * family.cost(states[k], v[:inputs], t)
        w += [states[k], v]
        lbx += [floor if k else [-np.inf] * n, family.lower]
        ubx += [roof if k else [np.inf] * n, family.upper]
        g.append(states[k + 1] - step(states[k], v[:inputs]))
        ubg.append([0.0] * n)
        rows = states[0] - measured if k == 0 else ca.SX(0, 1)
        if family.rows is not None and k:
            s = v[inputs]
            f += family.dt * SOFT * (s + s**2)
            rows = family.rows(states[k], t) + s
            lbx.append([0.0])
            ubx.append([np.inf])
        g.append(rows)
        ng.append(rows.numel())
        ubg.append([np.inf if k else 0.0] * ng[-1])
    w.append(states[N])
    lbx.append(floor)
    ubx.append(roof)
    most = np.concatenate(ubg)
    return Program(
        family, N,
        {"x": ca.vertcat(*w), "p": ca.vertcat(measured, t0), "f": f, "g": ca.vertcat(*g)},
        np.concatenate(lbx), np.concatenate(ubx), np.zeros(most.size), most,
        [n] * (N + 1), [v.numel() for v in controls] + [0], [*ng, 0], step,
    )  # fmt: skip


def runge_kutta(slope: Callable[[Any, Any], Any], dt: float, steps: int = 1) -> Any:
    """F(x, u): classical Runge–Kutta steps over one interval of constant input."""
    h = dt / steps

    def step(x: Any, u: Any) -> Any:
        for _ in range(steps):
            a = slope(x, u)
            b = slope(x + h / 2 * a, u)
            c = slope(x + h / 2 * b, u)
            x = x + h / 6 * (a + 2 * b + 2 * c + slope(x + h * c, u))
        return x

    return step
