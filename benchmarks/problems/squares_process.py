"""Square systems of chemistry, process engineering, pipes and circuits."""

from __future__ import annotations

from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from problems.squares_base import Square, of_list, square

MEINTJES = "Meintjes & Morgan, ACM Trans. Math. Softw. 16(2), 1990, 143–151"
MINPACK2 = "Averick, Carter, Moré & Xue, The MINPACK-2 test problem collection, 1992"
FLOUDAS = "Floudas et al., Handbook of Test Problems in Local and Global Optimization, 1999, {}"
SKOGESTAD = "Skogestad, Trans. IChemE 75A, 1997, 539–562, column A"
# fmt: off
TRANSISTOR = ((0.4850, 0.7520, 0.8690, 0.9820), (0.3690, 1.2540, 0.7030, 1.4550),
              (5.2095, 10.0677, 22.9274, 20.2153), (23.3037, 101.7790, 111.4610, 191.2670),
              (28.5132, 111.8467, 134.3884, 211.4823))
PROPANE = (0.193, 2.597e-3, 3.448e-3, 1.799e-5, 2.155e-4, 3.846e-5)
ANTOINE = ((15.9008, 2788.51, -52.36), (16.0137, 3096.52, -53.67), (16.1390, 3366.99, -58.04))
# fmt: on


def equilibrium(x: list[Any]) -> list[Any]:
    """Combustion of propane reduced to five element variables, roots up to 34.6."""
    r = 10.0
    r5, r6, r7, r8, r9, r10 = (
        value / scale
        for value, scale in zip(PROPANE, (1, 40**0.5, 40**0.5, 40, 40**0.5, 40), strict=True)
    )
    a, b, c, d, e = x
    return [
        a * b + a - 3 * e,
        2 * a * b + a + b * c**2 + r8 * b - r * e + 2 * r10 * b**2 + r7 * b * c + r9 * b * d,
        2 * b * c**2 + 2 * r5 * c**2 - 8 * e + r6 * c + r7 * b * c,
        r9 * b * d + 2 * d**2 - 4 * r * e,
        a * (b + 1) + r10 * b**2 + b * c**2 + r8 * b + r5 * c**2 + d**2 - 1
        + r6 * c + r7 * b * c + r9 * b * d,
    ]  # fmt: skip


def propane(x: list[Any]) -> list[Any]:
    """Combustion of propane, full formulation: eleven amounts, with square roots."""
    k5, k6, k7, k8, k9, k10 = PROPANE
    per = 40 / x[10]
    root = [ca.sqrt(xi) for xi in x[:4]]
    half = ca.sqrt(per)
    return [
        x[0] + x[3] - 3,
        2 * x[0] + x[1] + x[3] + x[6] + x[7] + x[8] + 2 * x[9] - 10,
        2 * x[1] + 2 * x[4] + x[5] + x[6] - 8,
        2 * x[2] + x[8] - 40,
        k5 * x[1] * x[3] - x[0] * x[4],
        k6 * root[1] * root[3] - root[0] * x[5] * half,
        k7 * root[0] * root[1] - root[3] * x[6] * half,
        k8 * x[0] - x[3] * x[7] * per,
        k9 * x[0] * root[2] - x[3] * x[8] * half,
        k10 * x[0] ** 2 - x[3] ** 2 * x[9] * per,
        x[10] - sum(x[:10]),
    ]


def recycle(share: float, x: list[Any]) -> list[Any]:
    """Two stirred tanks with an exothermic reaction and recycle (Kubíček et al. 1980)."""
    gamma, load, b1, b2 = 1000.0, 22.0, 2.0, 2.0

    def rate(phi: Any) -> Any:
        return (1 - share) * ca.exp(10 * phi / (1 + 10 * phi / gamma))

    return [
        rate(x[0]) * (load / (10 * (1 + b1)) - x[0]) - x[0],
        rate(x[1]) * (load / 10 - b1 * x[0] - (1 + b2) * x[1]) + x[0] - (1 + b2) * x[1],
    ]


def tank_series(x: Any) -> Any:
    """Conversion and temperature (K/350) of tanks in series that the reaction lights up."""
    tanks = x.numel() // 2
    c, heat = x[:tanks], x[tanks:]
    before, cooler = ca.vertcat(1, c[:-1]), ca.vertcat(1, heat[:-1])
    rate = 0.1 * c * ca.exp(25 * (1 - 1 / heat))
    return ca.vertcat(before - c - rate, cooler - heat + 0.25 * rate - 0.02 * (heat - 0.95))


def column(x: Any) -> Any:
    """Binary column of constant molar flows: liquid fractions from the reboiler to the top."""
    n, feed, reflux, boilup = x.numel(), 20, 2.706, 3.206
    y = 1.5 * x / (1 + 0.5 * x)
    rows = [(reflux + 1) * x[1] - boilup * y[0] - 0.5 * x[0]]
    for i in range(1, n - 1):
        above = reflux + (1 if i + 1 <= feed else 0)
        below = reflux + (1 if i <= feed else 0)
        entering = 0.5 if i == feed else 0
        rows.append(above * x[i + 1] - below * x[i] + boilup * (y[i - 1] - y[i]) + entering)
    rows.append(boilup * (y[n - 2] - x[n - 1]))
    return ca.vertcat(*rows)


def ternary_column(x: Any) -> Any:
    """Benzene, toluene, o-xylene with bubble points by Antoine: fractions and T/100 K by stage."""
    stages = x.numel() // 4
    liquid, heat = ca.reshape(x[: 3 * stages], 3, stages), x[3 * stages :]
    reflux, boilup, feed = 2.0, 2.5, stages // 2
    vapour = []
    for i in range(stages):
        pressure = ca.vertcat(*(ca.exp(a - b / (100 * heat[i] + c)) / 760 for a, b, c in ANTOINE))
        vapour.append(pressure * liquid[:, i])
    rows = [(reflux + 1) * liquid[:, 1] - boilup * vapour[0] - 0.5 * liquid[:, 0]]
    for i in range(1, stages - 1):
        above = reflux + (1 if i + 1 <= feed else 0)
        below = reflux + (1 if i <= feed else 0)
        entering = ca.DM([0.4, 0.3, 0.3]) if i == feed else ca.DM.zeros(3)
        change = boilup * (vapour[i - 1] - vapour[i])
        rows.append(above * liquid[:, i + 1] - below * liquid[:, i] + change + entering)
    rows.append(boilup * (vapour[-2] - liquid[:, -1]))
    rows += [ca.sum1(v) - 1 for v in vapour]
    return ca.vertcat(*rows)


def transistor(x: list[Any]) -> list[Any]:
    """Model of a transistor after Ebers and Moll with the data of Ratschek & Rokne (1993)."""
    rows = []
    for a, b, c, d, e in zip(*TRANSISTOR, strict=True):
        inner, outer = 1e-3 * (c * x[6] + e * x[7]), 1e-3 * (c * x[6] - d * x[8])
        rows += [
            (1 - x[0] * x[1]) * x[2] * (ca.exp(x[4] * (a - inner)) - 1) - e + d * x[1],
            (1 - x[0] * x[1]) * x[3] * (ca.exp(x[5] * (a - b - outer)) - 1) - e * x[0] + d,
        ]
    return [*rows, x[0] * x[2] - x[1] * x[3]]


def diode_ladder(x: Any) -> Any:
    """Voltages of a ladder of 100 Ω with a diode to ground at every node, fed with 20 V."""
    v = ca.vertcat(20, x, x[-1])
    into = (v[:-2] - 2 * v[1:-1] + v[2:]) / 100
    return 1e3 * (into - 1e-9 * (ca.exp(x / 0.025852) - 1))


def pipes(side: int, x: Any) -> Any:
    """Flows and heads of a square grid of pipes, one corner a reservoir, every node a draw-off."""
    nodes = [(i, j) for i in range(side) for j in range(side)]
    edges = [
        (a, b)
        for a in nodes
        for b in ((a[0] + 1, a[1]), (a[0], a[1] + 1))
        if b[0] < side and b[1] < side
    ]
    flow, head = x[: len(edges)], ca.vertcat(50, x[len(edges) :])
    place = {node: k for k, node in enumerate(nodes)}
    incidence = np.zeros((len(nodes), len(edges)))
    for k, (a, b) in enumerate(edges):
        incidence[place[a], k], incidence[place[b], k] = -1, 1
    resistance = ca.DM([0.02 * (1 + (7 * k) % 5) for k in range(len(edges))])
    drop = ca.mtimes(ca.sparsify(ca.DM(-incidence.T)), head) - resistance * flow * ca.fabs(flow)
    kept = ca.mtimes(ca.sparsify(ca.DM(incidence[1:])), flow) - 0.5
    return ca.vertcat(drop, kept)


def process_squares() -> tuple[Square, ...]:
    """Return the systems; starts are those of the source or the simplest physical guess."""
    p, root = 40, 40**0.5
    scales = (5e-2, 1 / root, 50 / root, 1e3 / p, 500 / root, 5e4 / p)
    small = [a * b for a, b in zip(scales, PROPANE, strict=True)]
    stages = 24
    fractions, kelvin = (1 / 3,) * 3 * stages, (3.8,) * stages
    return (
        square("equilibrium", of_list(equilibrium), (1,) * 5, source=MEINTJES, lbx=0),
        square("propane", of_list(propane), (5, 2.5, 5, 0.1, *small, 20), source=MINPACK2, lbx=0),
        square("tanks-recycle-0.935", of_list(partial(recycle, 0.935)), (0.5,) * 2, lbx=0, ubx=1,
               source=FLOUDAS.format("14.1.9")),
        square("tanks-recycle-0.99", of_list(partial(recycle, 0.99)), (0.5,) * 2, lbx=0, ubx=1,
               source=FLOUDAS.format("14.1.9")),
        square("tank-series", tank_series, (1,) * 40, source="own", lbx=[0] * 20 + [0.8] * 20,
               symbol=ca.MX),
        square("column-binary", column, (0.5,) * 41, source=SKOGESTAD, lbx=0, ubx=1),
        square("column-ternary", ternary_column, (*fractions, *kelvin), source="own; constants of "
               "Reid, Prausnitz & Poling, 1987", lbx=[0] * 3 * stages + [3] * stages,
               ubx=[1] * 3 * stages + [5] * stages),
        square("transistor", of_list(transistor), (5,) * 9, lbx=0, ubx=10,
               source="Ratschek & Rokne, J. Global Optim. 3, 1993, 501–518"),
        square("diode-ladder", diode_ladder, (0,) * 100, source="own", symbol=ca.MX),
        square("pipe-grid", partial(pipes, 8), (1,) * 112 + (50,) * 63, symbol=ca.MX,
               source="own; the head losses of Darcy and Weisbach"),
    )  # fmt: skip
