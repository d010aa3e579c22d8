"""What it costs to build a solver and to call it once: ours, and IPOPT's as it is and with expand.

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
from typing import Any

import casadi as ca
import numpy as np
from warm.families import FAMILIES
from warm.stages import Family

import casadi_hybrid as ch

WAYS = ("calls", "map", "opti", "graph", "rk", "cvodes")
NAMES = ("van_der_pol", "quadrotor", "cart_pole", "chain")
SOLVERS = ("hybrid", "ipopt", "expand")
INTERVALS = (20, 100, 400)
QUIET = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes"}}


def too_long(name: str, N: int, way: str, solver: str) -> bool:
    """Whether it would take minutes."""
    slow = way in ("graph", "rk", "cvodes") and (name == "chain" or N > 100)
    return slow or (solver == "expand" and (way == "cvodes" or (name == "chain" and N > 100)))


def interval(family: Family, kind: Any = ca.SX) -> ca.Function:
    """(x, u, t) → the next state, the cost, the rows c ≥ 0 at the state."""
    n, m = len(family.start), len(family.lower)
    x, u, t = kind.sym("x", n), kind.sym("u", m), kind.sym("t")
    rows = kind(0, 1) if family.rows is None else family.rows(x, t)
    cost = family.dt * family.cost(x, u, t)
    return ca.Function("interval", [x, u, t], [family.step(x, u), cost, rows])


def integrated(family: Family, plugin: str) -> ca.Function:
    """The same with the mean slope of the step as right-hand side of CasADi's integrator."""
    n, m = len(family.start), len(family.lower)
    x, u = ca.SX.sym("x", n), ca.SX.sym("u", m)
    slope = (family.step(x, u) - x) / family.dt
    step = ca.integrator("step", plugin, {"x": x, "u": u, "ode": slope}, 0.0, family.dt)
    y, v, s = ca.MX.sym("x", n), ca.MX.sym("u", m), ca.MX.sym("t")
    _, cost, rows = interval(family)(y, v, s)
    return ca.Function("interval", [y, v, s], [step(x0=y, u=v)["xf"], cost, rows])


def horizon(family: Family, N: int, way: str) -> tuple[Any, Any, Any, Any]:
    """x, u, f and g by columns; the gaps first, then the rows."""
    n, m = len(family.start), len(family.lower)
    x = [ca.MX.sym(f"x{k}", n) for k in range(N + 1)]
    u = [ca.MX.sym(f"u{k}", m) for k in range(N)]
    times = [k * family.dt for k in range(N)]
    if way == "map":
        F = interval(family).map(N)
        ahead, costs, rows = F(ca.horzcat(*x[:-1]), ca.horzcat(*u), ca.DM(times).T)
        gaps, f = ca.horzcat(*x[1:]) - ahead, ca.sum2(costs)
        return x, u, f, [ca.vec(gaps), ca.vec(rows[:, 1:])]
    step = integrated(family, way) if way in ("rk", "cvodes") else interval(family)
    f, gaps, others = 0, [], []
    for k in range(N):
        if way == "graph":
            ahead = family.step(x[k], u[k])
            cost = family.dt * family.cost(x[k], u[k], times[k])
            rows = ca.MX(0, 1) if family.rows is None else family.rows(x[k], times[k])
        else:
            ahead, cost, rows = step(x[k], u[k], times[k])
        f, gaps = f + cost, [*gaps, x[k + 1] - ahead]
        others += [rows] if k else []
    return x, u, f, [ca.vertcat(*gaps), ca.vertcat(*others)]


def dictionary(family: Family, N: int, way: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """CasADi's dictionary, and the arguments of a call."""
    x, u, f, (gaps, rows) = horizon(family, N, way)
    n, m, start = len(family.start), len(family.lower), np.array(family.start)
    unknowns = [part for pair in zip(x, u, strict=False) for part in pair] + [x[-1]]
    final = family.final(x[-1], N * family.dt)
    nlp = {"x": ca.vertcat(*unknowns), "f": f + final, "g": ca.vertcat(gaps, rows)}
    floor, roof = family.floor or (-np.inf,) * n, family.roof or (np.inf,) * n
    lower = np.concatenate([start, *([*family.lower, *floor] for _ in range(N))])
    upper = np.concatenate([start, *([*family.upper, *roof] for _ in range(N))])
    rest = family.rest or (0.0,) * m
    x0 = np.concatenate([start, *([*rest, *start] for _ in range(N))])
    ubg = np.concatenate([np.zeros(gaps.numel()), np.full(rows.numel(), np.inf)])
    return nlp, {"x0": x0, "lbx": lower, "ubx": upper, "lbg": 0.0, "ubg": ubg}


def stated(family: Family, N: int, opti: Any) -> Any:
    """The same as a user of Opti writes it."""
    n, m = len(family.start), len(family.lower)
    X, U, F = opti.variable(n, N + 1), opti.variable(m, N), interval(family)
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


def measure(family: Family, N: int, way: str, solver: str) -> tuple[float, float, float, float]:
    """Seconds of building and the first call, and of a second; iterations; f, NaN of a failure."""
    ours = solver == "hybrid"
    options: dict[str, Any] = {} if ours else {**QUIET, "expand": solver == "expand"}
    clock = time.process_time
    if way == "opti":
        opti = stated(family, N, ch.Opti() if ours else ca.Opti())
        began = clock()
        opti.solver("hybrid" if ours else "ipopt", options)
        try:
            found = opti.solve()
        except RuntimeError:
            return clock() - began, np.nan, np.nan, np.nan
        first = clock() - began
        opti.set_initial(found.value_variables())
        opti.set_initial(opti.lam_g, found.value(opti.lam_g))
        began = clock()
        again = opti.solve()
        return first, clock() - began, found.stats()["iter_count"], float(again.value(opti.f))
    nlp, arguments = dictionary(family, N, way)
    began = clock()
    made = ch.nlpsol("S", "hybrid", nlp) if ours else ca.nlpsol("S", "ipopt", nlp, options)
    found = made(**arguments)
    first = clock() - began
    good, steps = made.stats()["success"], made.stats()["iter_count"]
    start = {"x0": found["x"], "lam_x0": found["lam_x"], "lam_g0": found["lam_g"]}
    began = clock()
    made(**{**arguments, **start})
    return first, clock() - began, steps, float(found["f"]) if good else np.nan


def row(name: str, N: int, way: str, solvers: list[str]) -> str:
    """A line of the table."""
    text, seconds = f"{way} {name} {N}".ljust(24), {}
    for solver in solvers:
        if too_long(name, N, way, solver):
            text += "-".rjust(26)
            continue
        first, second, steps, f = measure(FAMILIES[name], N, way, solver)
        text += f"{first:10.3f} ({second:7.4f}){steps:5.0f}{' ' if np.isfinite(f) else '!'} "
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
