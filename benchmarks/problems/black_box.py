"""Control problems whose dynamics are a black box: Python with first derivatives, and no second.

The step of each is a ``ca.Callback`` that integrates an ordinary differential equation in NumPy by
Runge–Kutta steps together with its sensitivities, as a simulator that is not written in CasADi
does. CasADi can take first derivatives through it and no second ones. By multiple shooting: states
and inputs of all stages are variables, and the steps are equations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Data = dict[str, Any]
Rates = Callable[[Array, Array], tuple[Array, Array, Array]]
SUBSTEPS = 4


def step_of(rates: Rates, x: Array, u: Array, h: float) -> tuple[Array, Array, Array]:
    """The state after time h and its derivatives by x and u.

    Args:
        rates: (x, u) → ẋ, ∂ẋ/∂x, ∂ẋ/∂u.
        x, u, h: state, input, time, in :data:`SUBSTEPS` steps of Runge and Kutta.
    """
    A, B = np.eye(x.size), np.zeros((x.size, u.size))
    d = h / SUBSTEPS
    for _ in range(SUBSTEPS):
        slopes: list[tuple[Array, Array, Array]] = []
        for c in (0.0, 0.5, 0.5, 1.0):
            k, KA, KB = slopes[-1] if slopes else (0.0 * x, 0.0 * A, 0.0 * B)
            v, Fx, Fu = rates(x + c * d * k, u)
            slopes.append((v, Fx @ (A + c * d * KA), Fx @ (B + c * d * KB) + Fu))
        x, A, B = (
            part + d / 6 * (one + 2 * two + 2 * three + four)
            for part, one, two, three, four in zip((x, A, B), *slopes, strict=True)
        )
    return x, A, B


class _Dense(ca.Callback):
    """A callback between dense columns and matrices of these shapes."""

    def __init__(self, name: str, n_in: list[int], shapes: list[tuple[int, int]]) -> None:
        ca.Callback.__init__(self)
        self._n_in, self._shapes = n_in, shapes
        self.construct(name, {})

    def get_n_in(self) -> int:
        """Number of arguments."""
        return len(self._n_in)

    def get_n_out(self) -> int:
        """Number of outputs."""
        return len(self._shapes)

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        """The shape of an argument."""
        return ca.Sparsity.dense(self._n_in[i], 1)

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        """The shape of an output."""
        return ca.Sparsity.dense(*self._shapes[i])


class _Sensitivity(_Dense):
    """(x, u, x⁺) → ∂x⁺/∂x, ∂x⁺/∂u, without derivatives of its own."""

    def __init__(self, name: str, step: Step) -> None:
        self._step = step
        super().__init__(
            name, [step.nx, step.nu, step.nx], [(step.nx, step.nx), (step.nx, step.nu)]
        )

    def eval(self, arguments: Any) -> list[ca.DM]:
        """The derivatives."""
        _, A, B = self._step.numbers(arguments)
        return [ca.DM(A), ca.DM(B)]


class Step(_Dense):
    """(x, u) → the state after time h.

    Args:
        rates: see :func:`step_of`.
        nx, nu: numbers of states and inputs.
        h: the time.
    """

    def __init__(self, rates: Rates, nx: int, nu: int, h: float) -> None:
        self.rates, self.nx, self.nu, self.h = rates, nx, nu, h
        self._sensitivity: _Sensitivity | None = None
        super().__init__("step", [nx, nu], [(nx, 1)])

    def numbers(self, arguments: Any) -> tuple[Array, Array, Array]:
        """The step for CasADi's arguments."""
        x, u = (np.asarray(argument.full()).ravel() for argument in arguments[:2])
        return step_of(self.rates, x, u, self.h)

    def eval(self, arguments: Any) -> list[ca.DM]:
        """The state."""
        return [ca.DM(self.numbers(arguments)[0])]

    def has_jacobian(self) -> bool:
        """A first derivative is there."""
        return True

    def get_jacobian(self, name: str, inames: Any, onames: Any, opts: Any) -> ca.Function:
        """The first derivative, which has none itself."""
        if self._sensitivity is None:  # CasADi does not keep it alive
            self._sensitivity = _Sensitivity(name, self)
        return self._sensitivity


def _transcribed(
    step: Step,
    stage: Callable[[Any, Any], Any],
    final: Callable[[Any], Any],
    *,
    first: list[float],
    last: list[float] | None,
    guess: Array,
    reach: tuple[list[float], list[float]],
    room: tuple[list[float], list[float]],
) -> Data:
    """By multiple shooting, with a start on which the states are ``guess``, (N + 1)×nx."""
    N, nx, nu = len(guess) - 1, step.nx, step.nu
    parts: list[Any] = []
    f, rows = ca.MX(0), []
    x0, lbx, ubx = [], [], []
    X = [ca.MX.sym(f"x{k}", nx) for k in range(N + 1)]
    for k in range(N + 1):
        fixed = first if k == 0 else last if k == N else None
        parts.append(X[k])
        x0.append(guess[k])
        lbx.append(room[0] if fixed is None else fixed)
        ubx.append(room[1] if fixed is None else fixed)
        if k == N:
            break
        u = ca.MX.sym(f"u{k}", nu)
        parts.append(u)
        x0.append(np.zeros(nu))
        lbx.append(reach[0])
        ubx.append(reach[1])
        f += stage(X[k], u)
        rows.append(X[k + 1] - step(X[k], u))
    f += final(X[N])
    zero = np.zeros(N * nx)
    return {
        "x": ca.vertcat(*parts), "f": f, "g": ca.vertcat(*rows), "x0": np.concatenate(x0),
        "lbx": np.concatenate(lbx), "ubx": np.concatenate(ubx), "lbg": zero, "ubg": zero,
        "step": step,
    }  # fmt: skip


def pendulum(N: int = 40) -> Data:
    """A damped pendulum swung up by a torque that cannot hold it level."""

    def rates(x: Array, u: Array) -> tuple[Array, Array, Array]:
        v = np.array([x[1], -9.81 * np.sin(x[0]) - 0.1 * x[1] + u[0]])
        return v, np.array([[0, 1], [-9.81 * np.cos(x[0]), -0.1]]), np.array([[0.0], [1.0]])

    h = 4.0 / N
    ramp = np.linspace(0, 1, N + 1)[:, None]
    return _transcribed(
        Step(rates, 2, 1, h),
        lambda x, u: h * ca.sumsqr(u),
        lambda x: 0,
        first=[0, 0],
        last=[np.pi, 0],
        guess=ramp * np.array([np.pi, 0]),
        reach=([-5], [5]),
        room=([-2 * np.pi, -15], [2 * np.pi, 15]),
    )


def cart_pole(N: int = 40) -> Data:
    """A pole on a cart swung up by a force on the cart."""
    M, m, length, g = 1.0, 0.3, 0.5, 9.81

    def rates(x: Array, u: Array) -> tuple[Array, Array, Array]:
        s, c, w = np.sin(x[1]), np.cos(x[1]), x[3]
        D = M + m * s * s
        dD = 2 * m * s * c
        top = u[0] + m * s * (length * w * w + g * c)
        low = -u[0] * c - m * length * w * w * c * s - (M + m) * g * s
        v = np.array([x[2], w, top / D, low / (length * D)])
        A, B = np.zeros((4, 4)), np.zeros((4, 1))
        A[0, 2] = A[1, 3] = 1.0
        dtop = m * c * (length * w * w + g * c) - m * s * g * s
        dlow = u[0] * s - m * length * w * w * (c * c - s * s) - (M + m) * g * c
        A[2, 1] = dtop / D - top * dD / D**2
        A[3, 1] = (dlow / D - low * dD / D**2) / length
        A[2, 3], A[3, 3] = 2 * m * s * length * w / D, -2 * m * length * w * c * s / (length * D)
        B[2, 0], B[3, 0] = 1 / D, -c / (length * D)
        return v, A, B

    h = 2.0 / N
    ramp = np.linspace(0, 1, N + 1)[:, None]
    return _transcribed(
        Step(rates, 4, 1, h),
        lambda x, u: h * ca.sumsqr(u),
        lambda x: 0,
        first=[0, 0, 0, 0],
        last=[0.8, np.pi, 0, 0],
        guess=ramp * np.array([0.8, np.pi, 0, 0]),
        reach=([-20], [20]),
        room=([-2, -2 * np.pi, -20, -20], [2, 2 * np.pi, 20, 20]),
    )


def reactor(N: int = 40) -> Data:
    """A stirred tank with an exothermic reaction (Hicks and Ray) taken to another steady state."""
    theta, k10, E, Tf, Tc, alpha = 20.0, 300.0, 5.0, 0.3947, 0.3816, 1.95e-2  # flow in hundreds

    def rates(x: Array, u: Array) -> tuple[Array, Array, Array]:
        C, T = x
        r = k10 * C * np.exp(-E / T)
        v = np.array([(1 - C) / theta - r, (Tf - T) / theta + r - alpha * u[0] * (T - Tc)])
        dC, dT = k10 * np.exp(-E / T), r * E / T**2
        A = np.array([[-1 / theta - dC, -dT], [dC, -1 / theta + dT - alpha * u[0]]])
        return v, A, np.array([[0.0], [-alpha * (T - Tc)]])

    h = 10.0 / N
    goal, first = ca.DM([0.4083, 0.7293]), np.array([0.1367, 0.7293])
    ramp = np.linspace(0, 1, N + 1)[:, None]
    return _transcribed(
        Step(rates, 2, 1, h),
        lambda x, u: h * (1e3 * ca.sumsqr(x - goal) + 0.1 * ca.sumsqr(u - 3.9)),
        lambda x: 1e3 * ca.sumsqr(x - goal),
        first=first.tolist(),
        last=None,
        guess=first + ramp * (np.array([0.4083, 0.7293]) - first),
        reach=([0], [20]),
        room=([0.0, 0.3], [1.0, 1.5]),
    )


BLACK_BOXES: dict[str, Callable[[], Data]] = {
    # Cached with their steps: CasADi does not keep a callback alive.
    build.__name__: cache(build)
    for build in (pendulum, cart_pole, reactor)
}
