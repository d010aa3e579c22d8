"""Square systems of power flow and of implicit integration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from problems.squares_base import Square, square

IEEE14 = "IEEE 14-bus test case, University of Washington archive, 1962"
HAIRER = "Hairer & Wanner, Solving Ordinary Differential Equations II, sections IV.1, IV.5, IV.10"
# fmt: off
BRANCHES = (  # from, to, resistance, reactance, line charging, ratio of the transformer
    (1, 2, 0.01938, 0.05917, 0.0528, 1), (1, 5, 0.05403, 0.22304, 0.0492, 1),
    (2, 3, 0.04699, 0.19797, 0.0438, 1), (2, 4, 0.05811, 0.17632, 0.0340, 1),
    (2, 5, 0.05695, 0.17388, 0.0346, 1), (3, 4, 0.06701, 0.17103, 0.0128, 1),
    (4, 5, 0.01335, 0.04211, 0, 1), (4, 7, 0, 0.20912, 0, 0.978),
    (4, 9, 0, 0.55618, 0, 0.969), (5, 6, 0, 0.25202, 0, 0.932),
    (6, 11, 0.09498, 0.1989, 0, 1), (6, 12, 0.12291, 0.25581, 0, 1),
    (6, 13, 0.06615, 0.13027, 0, 1), (7, 8, 0, 0.17615, 0, 1),
    (7, 9, 0, 0.11001, 0, 1), (9, 10, 0.03181, 0.0845, 0, 1),
    (9, 14, 0.12711, 0.27038, 0, 1), (10, 11, 0.08205, 0.19207, 0, 1),
    (12, 13, 0.22092, 0.19988, 0, 1), (13, 14, 0.17093, 0.34802, 0, 1),
)
ACTIVE = (0, 21.7, 94.2, 47.8, 7.6, 11.2, 0, 0, 29.5, 9, 3.5, 6.1, 13.5, 14.9)
REACTIVE = (0, 12.7, 19, -3.9, 1.6, 7.5, 0, 0, 16.6, 5.8, 1.8, 1.6, 5.8, 5)
KEPT = {1: 1.06, 2: 1.045, 3: 1.01, 6: 1.07, 8: 1.09}
RADAU = (
    (0.19681547722366044, -0.06553542585019839, 0.023770974348220152),
    (0.39442431473908727, 0.29207341166522846, -0.041548752125997930),
    (0.37640306270046728, 0.51248582618842161, 0.11111111111111111),
)
# fmt: on


def admittance() -> np.ndarray:
    """The matrix of node admittances, with the capacitor at bus 9."""
    y = np.zeros((14, 14), dtype=complex)
    for a, b, resistance, reactance, charging, ratio in BRANCHES:
        series, half = 1 / complex(resistance, reactance), 0.5j * charging
        i, j = a - 1, b - 1
        y[i, i] += (series + half) / ratio**2
        y[j, j] += series + half
        y[i, j] -= series / ratio
        y[j, i] -= series / ratio
    y[8, 8] += 0.19j
    return y


def power_flow(load: float, x: Any) -> Any:
    """Balance of power at angles of 13 buses and voltages of the nine that do not keep theirs."""
    y = admittance()
    free = [bus for bus in range(1, 15) if bus not in KEPT]
    angle = ca.vertcat(0, x[:13])
    place = {bus: 13 + k for k, bus in enumerate(free)}
    volts = [KEPT[bus] if bus in KEPT else x[place[bus]] for bus in range(1, 15)]
    rows_p, rows_q = [], []
    for i in range(14):
        p, q = load * ACTIVE[i] / 100, load * REACTIVE[i] / 100
        if i == 1:
            p -= 0.4
        for j in np.flatnonzero(y[i]):
            j = int(j)  # noqa: PLW2901 - casadi takes no numpy integers as keys of its lists
            turn, both = angle[i] - angle[j], volts[i] * volts[j]
            real, imaginary = float(y[i, j].real), float(y[i, j].imag)
            p += both * (real * ca.cos(turn) + imaginary * ca.sin(turn))
            q += both * (real * ca.sin(turn) - imaginary * ca.cos(turn))
        rows_p.append(p)
        rows_q.append(q)
    return ca.vertcat(*rows_p[1:], *(rows_q[bus - 1] for bus in free))


def radau(
    rate: Callable[[Any], Any], first: Sequence[float], times: Sequence[float], x: Any
) -> Any:
    """All steps at once of the method Radau IIA of order 5; the unknowns are the stage values."""
    size = len(first)
    before, rows = ca.DM(list(first)), []
    for k, step in enumerate(np.diff(times)):
        stages = [x[(3 * k + i) * size : (3 * k + i + 1) * size] for i in range(3)]
        rates = [rate(stage) for stage in stages]
        for stage, weights in zip(stages, RADAU, strict=True):
            slope = sum(w * r for w, r in zip(weights, rates, strict=True))
            rows.append(stage - before - float(step) * slope)
        before = stages[2]
    return ca.vertcat(*rows)


def robertson(y: Any) -> Any:
    """Robertson's kinetics."""
    slow, medium, fast = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return ca.vertcat(medium - slow, slow - medium - fast, fast)


def van_der_pol(mu: float, y: Any) -> Any:
    """Van der Pol's oscillator."""
    return ca.vertcat(y[1], mu * (1 - y[0] ** 2) * y[1] - y[0])


def brusselator(y: Any) -> Any:
    """The Brusselator with diffusion on 20 inner points, both species (problem BRUSS)."""
    n = y.numel() // 2
    u, v = ca.vertcat(1, y[:n], 1), ca.vertcat(3, y[n:], 3)
    spread = 0.02 * (n + 1) ** 2
    product = u[1:-1] ** 2 * v[1:-1]
    return ca.vertcat(
        1 + product - 4 * u[1:-1] + spread * (u[:-2] - 2 * u[1:-1] + u[2:]),
        3 * u[1:-1] - product + spread * (v[:-2] - 2 * v[1:-1] + v[2:]),
    )


def integration(
    name: str,
    rate: Callable[[Any], Any],
    first: Sequence[float],
    times: Sequence[float],
    lbx: float = -np.inf,
) -> Square:
    """The collocation equations from the initial state at every stage."""
    x0 = tuple(first) * (3 * (len(times) - 1))
    return square(
        name, partial(radau, rate, first, times), x0, source=HAIRER, symbol=ca.MX, lbx=lbx
    )


def power_squares() -> tuple[Square, ...]:
    """Return the systems; power flow from the flat start, integration from a constant state."""
    grid = np.arange(1, 21) / 21
    bump = (*(1 + np.sin(2 * np.pi * grid)), *(3.0,) * 20)
    decades = (0, *np.logspace(-5, 4, 37))
    flat = (0,) * 13 + (1,) * 9
    return (
        square("power-flow-1", partial(power_flow, 1.0), flat, source=IEEE14),
        square("power-flow-3.9", partial(power_flow, 3.9), flat, source=IEEE14),
        square("power-flow-1-limits", partial(power_flow, 1.0), flat, source=IEEE14,
               lbx=[-1.6] * 13 + [0.9] * 9, ubx=[1.6] * 13 + [1.1] * 9),
        integration("robertson", robertson, (1, 0, 0), decades),
        integration("robertson-positive", robertson, (1, 0, 0), decades, lbx=0),
        integration("van-der-pol-5", partial(van_der_pol, 5.0), (2, 0), np.linspace(0, 12, 101)),
        integration("van-der-pol-1000", partial(van_der_pol, 1e3), (2, 0), (0, 1e-3, 1e-2, 1, 100)),
        integration("brusselator", brusselator, bump, np.linspace(0, 2, 9)),
    )  # fmt: skip
