"""The plants of the three closed loops, apart from every controller: rates, costs of a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np


@dataclass(frozen=True)
class Plant:
    """A plant and what its closed loop is judged by.

    Attributes:
        x0, u0: state at the start, and the control applied before it.
        dt: seconds or hours of a step.
        rate: (x, u) → dx/dt.
        cost: (x, u, u before, t) → the cost of a step, that of the controllers.
        steps: of the loop.
    """

    x0: tuple[float, ...]
    u0: tuple[float, ...]
    dt: float
    rate: Callable[..., Any]
    cost: Callable[..., float]
    steps: int

    def after(self) -> Callable[..., Any]:
        """Return (x, u) → x a step later, by CVODES to 1e-12."""
        x, u = ca.SX.sym("x", len(self.x0)), ca.SX.sym("u", len(self.u0))
        ode = {"x": x, "u": u, "ode": self.rate(x, u)}
        tight = {"abstol": 1e-12, "reltol": 1e-12}
        solve = ca.integrator("plant", "cvodes", ode, 0.0, self.dt, tight)
        return lambda x, u: np.asarray(solve(x0=x, u=u)["xf"]).ravel()


def _cartpole(x: Any, u: Any) -> Any:
    _, angle, v, w = ca.vertsplit(x)
    s, c = ca.sin(angle), ca.cos(angle)
    a = (u + 0.3 * s * (0.5 * w**2 + 9.81 * c)) / (1 + 0.3 * s**2)
    return ca.vertcat(v, w, a, -(a * c + 9.81 * s) / 0.5)


def _cartpole_cost(x: Any, u: Any, _: Any, __: float) -> float:
    weights = np.array([10.0, 0.0, 0.1, 0.1])
    return float(weights @ x**2 + 20 * (1 + np.cos(x[1])) + 0.01 * u[0] ** 2)


def _cstr(x: Any, u: Any) -> Any:
    a, b, reactor, coolant = ca.vertsplit(x)
    flow, heating = ca.vertsplit(u)
    k1 = 1.287e12 * ca.exp(-9758.3 / (reactor + 273.15))
    k3 = 9.043e9 * ca.exp(-8560.0 / (reactor + 273.15))
    heat = 4.2 * k1 * a - 11 * k1 * b - 41.85 * k3 * a**2
    over = 4032 * 0.215 * (reactor - coolant)
    cooling = heat / (0.9342 * 3.01) + over / (0.9342 * 3.01 * 10.01)
    return ca.vertcat(
        flow * (5.1 - a) - k1 * a - k3 * a**2,
        -flow * b + k1 * a - k1 * b,
        flow * (130 - reactor) - cooling,
        (heating + over) / 10,
    )


def _cstr_cost(x: Any, u: Any, before: Any, _: float) -> float:
    change = (u - before) / np.array([100.0, 2000.0])
    price = 0.1 * change[0] ** 2 + 1e-3 * change[1] ** 2
    return float((x[1] - 0.6) ** 2 + price + 100 * max(0.0, x[2] - 140))


def _quadrotor(x: Any, u: Any) -> Any:
    lift = (u[0] + u[1]) / 0.5
    drive = ca.vertcat(-lift * ca.sin(x[2]), lift * ca.cos(x[2]) - 9.81)
    return ca.vertcat(x[3:], drive, 20 * (u[1] - u[0]))


def _quadrotor_cost(x: Any, u: Any, _: Any, t: float) -> float:
    gap = x[:2] - np.array([1.5 * np.sin(t), 1 + 0.5 * np.sin(2 * t)])
    weights = np.array([0.0, 0.0, 1.0, 0.1, 0.1, 0.1])
    return float(20 * gap @ gap + weights @ x**2 + 0.1 * np.sum((u - 2.4525) ** 2))


PLANTS = {
    "cartpole": Plant((0, 0.1, 0, 0), (0,), 0.05, _cartpole, _cartpole_cost, 80),
    "cstr": Plant((0.8, 0.5, 134.14, 130), (5, 0), 0.005, _cstr, _cstr_cost, 50),
    "quadrotor": Plant((0, 1, 0, 0, 0, 0), (0, 0), 0.05, _quadrotor, _quadrotor_cost, 100),
}
