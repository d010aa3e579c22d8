"""Families of problems with planted solutions, for ``doubt.py``: chains of calls, the first cold.

x* and λ* are drawn, and a linear term of f makes them a KKT point. Where bounds alone change, x* of
a quadratic f comes from its KKT system on the independent rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from peers.judge import TOLERANCE, Vector

from casadi_hybrid.control import MHE, MPC, Model, OptimalControl

EPS = float(np.finfo(float).eps)
NAMES = "p", "lbx", "ubx", "lbg", "ubg"
Call = dict[str, Any]


def planted(
    random: np.random.Generator, steps: int, *, n: int = 0, rows: int = 1, nested: str = "",
    cheap: int = 0, limits: str = "", curved: str = "", scale: float = 1.0, units: float = 1.0,
    sparse: bool = False, slide: bool = False, given: float = 0.0, local: bool = False,
    tenths: bool = False, row: tuple[float, ...] = (),
) -> tuple[dict[str, Any], list[Call], list[Any]]:  # fmt: skip
    """CasADi's dictionary, a chain of calls, and of each x* and how far x may be from it.

    Args:
        random, steps: draws all; the number of calls.
        n, rows, nested, cheap: variables (2 to 10), independent equations, what depends on them
            (see :func:`beside`), inequalities.
        limits: ``"box"``; ``"vertex"``: more active ones than variables; ``"fixed"``: one variable.
        curved, local: "f", "g" or both are curved; f has several minima.
        scale, units: of f and of the equations.
        sparse, tenths, row: equations of two entries, in tenths (with ‖x‖² in f), or this one.
        slide: bounds alone change.
        given: size of the multipliers that a warm call is given.
    """
    n = n or int(random.integers(max(2, rows + 1), 11))
    x, p = ca.SX.sym("x", n), ca.SX.sym("p", n + 2)
    A, root = some_rows(random, rows, n, sparse), random.standard_normal((n, n)) / np.sqrt(n)
    A = np.array([row]) if row else np.round(A, 1) if tenths else A
    H = np.eye(n) + (np.diag(9 * random.random(n)) if sparse else root @ root.T)
    H = 2 * np.eye(n) if tenths else H
    f, base = 0.5 * ca.bilin(H, x, x), ca.mtimes(ca.DM(A), x)
    f += (ca.sum1(ca.log(1 + ca.exp(x))) + ca.sum1(x**4) / 12) if "f" in curved else 0
    f += 3 * ca.sum1(ca.cos(2 * x)) if local else 0
    if "g" in curved:
        base += 0.3 * ca.sin(ca.mtimes(ca.DM(some_rows(random, rows, n, sparse)), x))
    equations = units * ca.vertcat(base, *beside(random, nested, base, x, p[n:]))
    g = ca.vertcat(equations, ca.mtimes(ca.DM(random.standard_normal((cheap, n))), x))
    e, m = equations.numel(), g.numel()
    slopes = ca.Function("slopes", [x, p], [ca.gradient(scale * f, x), g, ca.jacobian(g, x)])
    convex = not local and "g" not in curved
    known = not (cheap or limits or curved or nested == "half")
    point, cost, calls, right = random.standard_normal(n), np.zeros(n), list[Call](), list[Any]()
    for k in range(steps):
        along = 0.1 * np.linalg.pinv(A).sum(axis=1) if tenths else 0.3 * random.standard_normal(n)
        point = point + (along if k else 0)
        extra = np.r_[point[: n // 2 + 1].sum(), A[0] @ point]
        slope, values, J = (v.full() for v in slopes(point, np.r_[np.zeros(n), extra]))
        lbg, ubg, values = (values.ravel().copy() for _ in range(3))
        lbx, ubx, share = (
            np.full(n, -np.inf),
            np.full(n, np.inf),
            0.9 if limits == "vertex" else 0.4,
        )
        lam_g, lam_x = scale * random.standard_normal(m) / units, np.zeros(n)
        on = random.random(m - e) < share
        lbg[e:], ubg[e:] = -np.inf, values[e:] + np.where(on, 0, 0.1 + random.random(m - e))
        lam_g[e:] = np.abs(lam_g[e:]) * on * (random.random(m - e) < 0.7)
        if nested == "half":  # the dependent row has two bounds, one of them at its value
            lbg[rows:e], lam_g[rows:e] = values[rows:e] - 1, np.abs(lam_g[rows:e])
        if limits in ("box", "vertex"):
            on = random.random(n) < share
            lbx = np.where(on, point, point - 0.1 - random.random(n))
            ubx = lbx + 2 + random.random(n)
            lam_x = -scale * np.abs(random.standard_normal(n)) * on * (random.random(n) < 0.7)
        if limits == "fixed":
            lbx[0] = ubx[0] = point[0]
        cost = cost if slide and k else -(slope.ravel() + J.T @ lam_g + lam_x)
        call = dict(zip(NAMES, (np.r_[cost, extra], lbx, ubx, lbg, ubg), strict=True))
        call |= {"lam_g0": given * random.standard_normal(m)} if given and k else {}
        calls.append(call if k else call | {"x0": random.standard_normal(n)})
        best, spread = point, np.abs(lam_g).sum() + np.abs(lam_x).sum()
        if slide and k and known:
            system = np.block([[scale * H, A.T], [A, np.zeros((rows, rows))]])
            best, lam = np.split(np.linalg.solve(system, np.r_[-cost, A @ point]), [n])
            spread = np.abs(lam).sum()
        # Strong monotony: scale·‖x − x*‖² is at most what slope, pairs and violation are at x.
        near = 2 * np.sqrt(TOLERANCE * (n + m + spread) / scale) + 100 * EPS * np.abs(best).max()
        near += 2 * TOLERANCE * (np.sqrt(n) / scale + 10 * np.sqrt(m) / min(units, 1))
        right.append((best, near) if convex and (known or not (slide and k)) else None)
    return {"x": x, "p": p, "f": scale * f + ca.dot(p[:n], x), "g": g}, calls, right


def some_rows(random: np.random.Generator, rows: int, n: int, sparse: bool) -> Vector:
    """Rows with singular values of at least 0.2."""
    while True:
        A = random.standard_normal((rows, n))
        A *= (random.random((rows, n)).argsort(axis=1).argsort(axis=1) < 2) if sparse else 1
        if np.linalg.svd(A, compute_uv=False).min() >= 0.2:
            return A


def beside(random: np.random.Generator, nested: str, base: Any, x: Any, s: Any) -> list[Any]:
    """Rows that depend on the rows of ``base``, always, or at the solution (odd, flat)."""
    one, several = base[0], ca.DM(random.standard_normal((2, base.numel())))
    odd = one + (ca.sum1(x[: x.numel() // 2 + 1]) - s[0]) ** 2
    return list({
        "": [], "same": [one], "twice": [2 * one], "thrice": [3 * one], "minus": [-one],
        "third": [one / 3, 0.1 * one], "many": [one, 2 * one, 3 * one, -one], "half": [2 * one],
        "sum": [ca.sum1(base)], "mixed": [ca.mtimes(several, base)], "all": [2 * base, 3 * base],
        "far": [1e4 * one, 1e-4 * one], "odd": [odd], "flat": [(one - s[1]) ** 2],
    }[nested])  # fmt: skip


def steered(random: np.random.Generator, steps: int, *, kind: str) -> Iterator[tuple[Any, ...]]:
    """Steps of a controller or an estimator of a sledge with two drives."""
    model = Model("sledge")
    x, v = model.state("x"), model.state("v", lower=-2, upper=2)
    u, w = (model.control(name, lower=-1, upper=1) for name in "uw")
    model.rates(x=v, v=u + w - (0.3 * ca.sin(v) if "curved" in kind else 0.2 * v))
    weight, state = 1e6 if "heavy" in kind else 1.0, random.uniform(-1, 1, 2)
    size, control = 10.0 ** random.uniform(-3, -1), np.zeros(2)
    mhe = MHE(model, 0.2, window=6, outputs=["x"], noise=size, process=size, prior=1.0)
    ocp = OptimalControl(model, duration=2.0, intervals=int(random.integers(4, 10)))
    ocp.initial()
    running = weight * (x**2 + v**2 + 0.1 * u**2 + 0.2 * w**2)
    ocp.minimize("error", integral=running, end=weight * x**2)
    if "twice" in kind:
        ocp.path("shared", u - 0.5 * w, equal=0)
        ocp.path("again", 2 * u - w, equal=0)
    if "rest" in kind:
        ocp.at_end("slow", v, equal=0)
        ocp.at_end("slower", 3 * v, equal=0)
    mpc = MPC(ocp)
    for _ in range(steps):
        if "mhe" in kind:
            control = random.uniform(-0.5, 0.5, 2)
            mhe.step([state[0] + size * random.standard_normal()], control)
            found, solved = mhe.solution, mhe.success
        else:
            step = mpc.step(state)
            found, solved, control = step.plan, step.status == "solved", step.control
        state = state + 0.2 * np.r_[state[1], np.sum(control) - 0.2 * state[1]]
        state += random.uniform(-0.05, 0.05, 2)
        if not solved:
            yield (False,)
            continue
        yield True, found.x, found.lam_x, found.lam_g, found.program


def _families() -> dict[str, Callable[..., Any]]:
    slide, box = {"slide": True}, {"limits": "box", "cheap": 2}
    tenths = {"nested": "twice", "slide": True, "tenths": True}
    made: dict[str, dict[str, Any]] = {
        "one row in tenths": tenths | {"n": 3, "row": (1.3, -0.7, 0.4)},
        "dependent, box": {"nested": "mixed", "rows": 2, "limits": "box"},
        "dependent, box, slide": {"nested": "twice", "limits": "box", "slide": True},
        "dependent, rows": {"nested": "thrice", "cheap": 4},
        "dependent, fixed": {"nested": "twice", "limits": "fixed"},
        "dependent, units": {"nested": "twice", "units": 1e3, "slide": True},
        "half redundant": {"nested": "half"},
        "half redundant, slide": {"nested": "half", "slide": True, "limits": "box"},
        "dependent at x*": {"nested": "odd"}, "flat at x*": {"nested": "flat"},
        "curved twice": {"nested": "twice", "curved": "g", "slide": True},
        "curved mixed": {"nested": "mixed", "curved": "fg", "rows": 3},
        "curved odd": {"nested": "odd", "curved": "g"},
        "vertex": {"limits": "vertex", "cheap": 12},
        "vertex, slide": {"limits": "vertex", "cheap": 8, "slide": True},
        "vertex, curved": {"limits": "vertex", "cheap": 12, "curved": "f"},
        "plain": box | {"rows": 2}, "curved": {"rows": 2, "cheap": 2, "curved": "fg"},
        "local": box | {"local": True}, "local, dependent": {"nested": "twice", "local": True},
    }  # fmt: skip
    for nested in ("same", "twice", "thrice", "minus", "third", "many", "far"):
        made[f"(a, {nested})"] = slide | {"nested": nested}
        made[f"sparse {nested}"] = slide | {"nested": nested, "sparse": True}
        made[f"tenths {nested}"] = tenths | {"nested": nested, "sparse": nested < "t"}
    for nested in ("sum", "mixed", "all"):
        made[f"dense {nested}"] = slide | {"nested": nested, "rows": 3}
        made[f"sparse {nested}"] = slide | {"nested": nested, "rows": 3, "sparse": True}
        made[f"{nested}, costs too"] = {"nested": nested, "rows": 2}
    for n in (25, 60):
        made[f"{n} variables"] = slide | {"n": n, "rows": n // 3, "nested": "mixed"}
    for power in (-6, -3, 3, 6, 9):
        made[f"f · 1e{power}"] = box | {"scale": 10.0**power}
        made[f"f · 1e{power}, dependent"] = {"scale": 10.0**power, "nested": "mixed", "rows": 2}
    for power in (3, 9, 15):
        made[f"given 1e{power}"] = box | {"given": 10.0**power, "rows": 2}
        made[f"given 1e{power}, dependent"] = {"given": 10.0**power, "nested": "twice"}
    controlled = "mpc", "mpc twice", "mpc rest", "mpc heavy curved twice", "mhe", "mhe curved"
    return {name: partial(planted, **what) for name, what in made.items()} | {
        kind: partial(steered, kind=kind) for kind in controlled
    }


FAMILIES = _families()
