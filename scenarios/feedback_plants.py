"""Two plants whose constraints are measured: a feeder's voltages, and the levels of four tanks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid import Problem
from casadi_hybrid.problem.oracle import Oracle


@dataclass(frozen=True)
class Plant:
    """A plant as it is, and what its controller knows of it.

    Attributes:
        name: for tables and figures.
        outputs: what h is, with its unit.
        problem: the cheapest inputs, by the plant's true map: what the controller should find.
        h: the true constraints, n×k to m×k: one column a run.
        B: the sensitivity that the controller was given, m×n.
        cost, preferred: H and u_r of the objective ½(u − u_r)ᵀH(u − u_r).
        noise: variances of the sensors, m.
        start: the inputs at the start.
        shown: the noisy constraint, which tables and figures show.
    """

    name: str
    outputs: str
    problem: Problem
    h: Callable[[np.ndarray], np.ndarray]
    B: np.ndarray
    cost: np.ndarray
    preferred: np.ndarray
    noise: np.ndarray
    start: np.ndarray
    shown: int

    def sensitivity(self, u: np.ndarray) -> np.ndarray:
        """The true ∂h/∂u at u, m×n, which the controller does not know."""
        return Oracle(self.problem.functions, np.zeros(0)).first(u).B


def _plant(name: str, h: Callable[[Any], list[Any]], rows: tuple[str, ...], **data: Any) -> Plant:
    """Make the problem, and the function of many runs, of one map that takes symbols and numbers.

    The map returns a list: the rows of an array serve as numbers where CasADi has symbols.
    """
    u = ca.SX.sym("u", len(data["start"]))
    away = u - ca.DM(data["preferred"])
    f = 0.5 * ca.bilin(ca.DM(data["cost"]), away, away)
    problem = Problem(x=u, f=f, h=dict(zip(rows, h(u), strict=True)), name=name)
    return Plant(name, problem=problem, h=lambda many: np.array(h(many)), **data)


def feeder(load: float = 1.0) -> Plant:
    """Six inverters hold three voltages of a 12.66 kV feeder with eight buses in a row.

    The linear power flow: a reactive power at bus j raises the voltage of bus i by the reactance
    that the paths to both share, over the voltage. The loads' reactive powers are an unknown
    disturbance at the inputs of the plant.

    Args:
        load: factor of the loads.
    """
    reactance = np.array([0.45, 0.38, 0.50, 0.42, 0.55, 0.47, 0.52, 0.60])  # Ω, section by section
    inverters, pilots = np.array([2, 3, 4, 6, 7, 8]), np.array([3, 5, 8])
    along = np.cumsum(reactance)
    shared = along[np.minimum.outer(np.arange(8), np.arange(8))] * 100 / 12.66**2  # % per Mvar
    loads = load * np.array([0.10, 0.25, 0.15, 0.30, 0.20, 0.35, 0.25, 0.40])  # Mvar
    B = shared[np.ix_(pilots - 1, inverters - 1)]
    sag = shared[pilots - 1] @ loads
    return _plant(
        "feeder",
        lambda u: [sum(b * u[j] for j, b in enumerate(B[i])) - sag[i] for i in range(3)],
        tuple(f"voltage of bus {i}" for i in pilots),
        outputs="voltage error (% of nominal)",
        B=B,
        cost=np.diag([1.0, 1.4, 0.9, 1.2, 1.1, 1.6]),  # 1/Mvar²
        preferred=np.zeros(6),
        noise=np.array([0.2, 0.0, 0.2]) ** 2,  # %²; bus 5 has a good voltmeter
        start=np.zeros(6),
        shown=2,
    )


def tanks() -> Plant:
    """Two pumps and two valves hold the lower levels of four tanks in the steady state.

    Pump 1 fills tank 1 and, past a valve with the share γ₁, tank 4 above tank 2; pump 2 fills tank
    2 and tank 3 above tank 1. u = (pump voltages in V, γ₁ and γ₂ in shares of 10 %).
    """
    gravity, levels = 981.0, np.array([12.4, 12.7])  # cm/s², cm

    def height(u: Any, areas: np.ndarray, gains: np.ndarray, leak: float) -> list[Any]:
        one, two = gains[0] * u[0], gains[1] * u[1]  # cm³/s
        first = 0.1 * u[2] * one + (1 - 0.1 * u[3]) * two + leak
        second = 0.1 * u[3] * two + (1 - 0.1 * u[2]) * one
        return [
            (flow / area) ** 2 / (2 * gravity) - level
            for flow, area, level in zip((first, second), areas, levels, strict=True)
        ]

    nominal = np.array([3.0, 3.0, 7.0, 6.0])
    areas, gains = np.array([0.071, 0.057]), np.array([3.33, 3.35])  # cm², cm³/(V s)
    u = ca.SX.sym("u", 4)
    known = ca.Function("B", [u], [ca.jacobian(ca.vertcat(*height(u, areas, gains, 0.0)), u)])
    return _plant(
        "tanks",
        lambda u: height(u, areas * [1.05, 0.96], gains * [0.95, 1.04], 0.6),
        ("level of tank 1", "level of tank 2"),
        outputs="level error (cm)",
        B=known(nominal).full(),
        cost=np.diag([1.0, 1.2, 0.3, 0.3]),
        preferred=np.array([2.5, 2.5, 7.0, 6.0]),
        noise=np.array([0.3, 0.0]) ** 2,  # cm²; the jet of tank 3 falls on the gauge of tank 1
        start=nominal,
        shown=0,
    )
