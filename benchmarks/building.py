"""Costs of building a solver and of its first call: ours, IPOPT's as it is and with expand.

Processor seconds of ``nlpsol`` and the first call together, in brackets those of a second call,
from the answer with its multipliers, and iterations of the first; for predictive controllers
(families of ``warm/families.py``) in the ways in which users write them in MX:

- ``calls``: a Function of one interval in SX, called N times;
- ``map``: the same mapped over the horizon;
- ``opti``: the same under Opti, with a matrix of states and one of inputs;
- ``graph``: the interval written in MX itself;
- ``rk``, ``cvodes``: CasADi's integrators, called N times.

``python benchmarks/building.py`` prints a row for each, in one run; ``--intervals 20``,
``--families chain`` and ``--ways calls map`` choose among them. A ! is a failure. What takes IPOPT
minutes is left out.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from warm.families import FAMILIES
from warm.stages import Family

import casadi_hybrid as ch

INTEGRATORS = ("rk", "cvodes")
WAYS = ("calls", "map", "opti", "graph", *INTEGRATORS)
NAMES = ("van_der_pol", "quadrotor", "cart_pole", "chain")
SOLVERS = ("hybrid", "ipopt", "expand")
INTERVALS = (20, 100, 400)
QUIET = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes"}}


def too_long(name: str, N: int, way: str, solver: str) -> bool:
    """True where a row would take minutes."""
    slow = way in ("graph", *INTEGRATORS) and (name == "chain" or N > 100)
    return slow or (solver == "expand" and (way == "cvodes" or (name == "chain" and N > 100)))


def parts(family: Family, x: Any, u: Any, t: Any) -> tuple[Any, Any, Any]:
    """The next state, the cost of an interval, and the rows c ≥ 0 at its state."""
    rows = type(x)(0, 1) if family.rows is None else family.rows(x, t)
    return family.step(x, u), family.dt * family.cost(x, u, t), rows


def interval(family: Family, way: str) -> Any:
    """(x, u, t) → :func:`parts`, as a Function in SX, in the graph, or with an integrator.

    An integrator of CasADi gets the mean slope of the step as its right-hand side.
    """
    if way == "graph":
        return partial(parts, family)
    symbols = [("x", len(family.start)), ("u", len(family.lower)), ("t", 1)]
    x, u, t = (ca.SX.sym(*symbol) for symbol in symbols)
    step = ca.Function("interval", [x, u, t], parts(family, x, u, t))
    if way not in INTEGRATORS:
        return step
    ode = {"x": x, "u": u, "ode": (family.step(x, u) - x) / family.dt}
    integrate = ca.integrator("step", way, ode, 0.0, family.dt)
    x, u, t = (ca.MX.sym(*symbol) for symbol in symbols)
    return ca.Function("interval", [x, u, t], [integrate(x0=x, u=u)["xf"], *step(x, u, t)[1:]])


def horizon(family: Family, N: int, way: str) -> tuple[Any, Any, Any, Any]:
    """x, u, f and g by columns; the gaps first, then the rows."""
    x = [ca.MX.sym(f"x{k}", len(family.start)) for k in range(N + 1)]
    u = [ca.MX.sym(f"u{k}", len(family.lower)) for k in range(N)]
    times, F = [k * family.dt for k in range(N)], interval(family, way)
    if way == "map":
        ahead, costs, rows = F.map(N)(ca.horzcat(*x[:-1]), ca.horzcat(*u), ca.DM(times).T)
        return x, u, ca.sum2(costs), [ca.vec(ca.horzcat(*x[1:]) - ahead), ca.vec(rows[:, 1:])]
    f, gaps, others = 0, [], []
    for k in range(N):
        ahead, cost, rows = F(x[k], u[k], times[k])
        f += cost
        gaps.append(x[k + 1] - ahead)
        others += [rows] if k else []
    return x, u, f, [ca.vertcat(*gaps), ca.vertcat(*others)]


def dictionary(family: Family, N: int, way: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """CasADi's dictionary, and the arguments of a call."""
    x, u, f, (gaps, rows) = horizon(family, N, way)
    unknowns = [part for pair in zip(x, u, strict=False) for part in pair] + [x[-1]]
    final = family.final(x[-1], N * family.dt)
    nlp = {"x": ca.vertcat(*unknowns), "f": f + final, "g": ca.vertcat(gaps, rows)}
    n, start = len(family.start), family.start
    floor, roof = family.floor or (-np.inf,) * n, family.roof or (np.inf,) * n
    ends = {
        "x0": (family.rest or (0.0,) * len(family.lower)) + start,
        "lbx": family.lower + floor,
        "ubx": family.upper + roof,
    }
    arguments: dict[str, Any] = {key: start + N * values for key, values in ends.items()}
    ubg = np.concatenate([np.zeros(gaps.numel()), np.full(rows.numel(), np.inf)])
    return nlp, arguments | {"lbg": 0.0, "ubg": ubg}


def stated(family: Family, N: int, opti: Any) -> Any:
    """The same as a user of Opti writes it."""
    n, m = len(family.start), len(family.lower)
    X, U, F = opti.variable(n, N + 1), opti.variable(m, N), interval(family, "opti")
    f = family.final(X[:, N], N * family.dt)
    opti.subject_to(X[:, 0] == np.array(family.start))
    for k in range(N):
        ahead, cost, rows = F(X[:, k], U[:, k], k * family.dt)
        f += cost
        opti.subject_to(X[:, k + 1] == ahead)
        if k and rows.numel():
            opti.subject_to(rows >= 0)
        opti.subject_to(opti.bounded(np.array(family.lower), U[:, k], np.array(family.upper)))
        for i, (low, high) in enumerate(zip(family.floor, family.roof, strict=True)):
            if np.isfinite(low) or np.isfinite(high):
                opti.subject_to(opti.bounded(low, X[i, k + 1], high))
    opti.minimize(f)
    opti.set_initial(X, np.repeat(np.array(family.start)[:, None], N + 1, axis=1))
    opti.set_initial(U, np.repeat(np.array(family.rest or (0.0,) * m)[:, None], N, axis=1))
    return opti


def measure(family: Family, N: int, way: str, solver: str) -> tuple[float, float, int, bool]:
    """Seconds of building and the first call, and of a second; iterations; success."""
    ours, clock = solver == "hybrid", time.process_time
    plugin, options = ("hybrid", {}) if ours else ("ipopt", {**QUIET, "expand": solver == "expand"})
    if way == "opti":
        opti = stated(family, N, ch.Opti() if ours else ca.Opti())
        began = clock()
        opti.solver(plugin, options)
        try:
            solution = opti.solve()
        except RuntimeError:
            return clock() - began, np.nan, 0, False
        first = clock() - began
        opti.set_initial(solution.value_variables())
        opti.set_initial(opti.lam_g, solution.value(opti.lam_g))
        began = clock()
        opti.solve()
        return first, clock() - began, solution.stats()["iter_count"], True
    nlp, arguments = dictionary(family, N, way)
    began = clock()
    solve = (ch.nlpsol if ours else ca.nlpsol)("S", plugin, nlp, options)
    answer = solve(**arguments)
    first, stats = clock() - began, solve.stats()
    start = {"x0": answer["x"], "lam_x0": answer["lam_x"], "lam_g0": answer["lam_g"]}
    began = clock()
    solve(**{**arguments, **start})
    return first, clock() - began, stats["iter_count"], stats["success"]


def row(name: str, N: int, way: str, solvers: list[str]) -> str:
    """A line of the table."""
    text, seconds = f"{way} {name} {N}".ljust(24), {}
    for solver in solvers:
        if too_long(name, N, way, solver):
            text += "-".rjust(26)
            continue
        first, second, steps, success = measure(FAMILIES[name], N, way, solver)
        text += f"{first:10.3f} ({second:7.4f}){steps:5.0f}{' ' if success else '!'} "
        seconds[solver] = first
    if {"hybrid", "ipopt"} <= seconds.keys():
        text += f"{seconds['hybrid'] / seconds['ipopt']:8.2f}"
    return text


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", nargs="+", default=NAMES, choices=sorted(FAMILIES))
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--intervals", nargs="+", type=int, default=INTERVALS)
    parser.add_argument("--solvers", nargs="+", default=SOLVERS, choices=SOLVERS)
    chosen = parser.parse_args()
    for solver in chosen.solvers:  # libraries are loaded before anything is timed
        for way in ("calls", "opti"):
            measure(FAMILIES["pendulum"], 20, way, solver)
    titles = "".join(solver.rjust(26) for solver in chosen.solvers)
    print(f"{'':24}{titles}  hybrid/ipopt")
    for way in chosen.ways:
        for name in chosen.families:
            for N in chosen.intervals:
                if not too_long(name, N, way, "hybrid"):
                    print(row(name, N, way, chosen.solvers), flush=True)


if __name__ == "__main__":
    main()
