"""Equivalent forms of a problem, and the way back for their answers.

Each function takes a problem and a generator of random numbers and returns the other form with the
map from its answers to those of the first. L = f + λ_gᵀg + λ_xᵀx is one function in all forms (up
to the scale of f), which fixes how multipliers translate.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
from support.cases.random_nlp import Answer, Random
from support.judges.kkt import INF

Back = Callable[[Answer], Answer]
Form = Callable[[Random, np.random.Generator], tuple[Random, Back]]


def _scales(rng: np.random.Generator, size: int) -> Any:
    return 10.0 ** rng.uniform(-3, 3, size)


def permuted_variables(a: Random, rng: np.random.Generator) -> tuple[Random, Back]:
    order = rng.permutation(a.x.numel())
    back = np.argsort(order)
    x = ca.SX.sym("y", order.size)
    f, g = a.at(x[back.tolist()])
    b = replace(a, x=x, f=f, g=g, lbx=a.lbx[order], ubx=a.ubx[order], x0=a.x0[order])
    return b, lambda s: replace(s, x=s.x[back], lam_x=s.lam_x[back])


def permuted_rows(a: Random, rng: np.random.Generator) -> tuple[Random, Back]:
    order = rng.permutation(a.g.numel())
    back = np.argsort(order)
    b = replace(a, g=a.g[order.tolist()], lbg=a.lbg[order], ubg=a.ubg[order])
    return b, lambda s: replace(s, lam_g=s.lam_g[back])


def permuted_parameters(a: Random, rng: np.random.Generator) -> tuple[Random, Back]:
    order = rng.permutation(a.p.numel())
    p = ca.SX.sym("q", order.size)
    f, g = ca.substitute([a.f, a.g], [a.p], [p[np.argsort(order).tolist()]])
    return replace(a, p=p, f=f, g=g, values=a.values[order]), lambda s: s


def scaled_variables(a: Random, rng: np.random.Generator) -> tuple[Random, Back]:
    """x = d·y + c, and some d negative: lower bounds become upper ones."""
    n = a.x.numel()
    d, c = _scales(rng, n) * rng.choice([-1, 1], n), 10 * rng.normal(size=n)
    y = ca.SX.sym("y", n)
    f, g = a.at(ca.DM(d) * y + ca.DM(c))
    ends = np.sort(np.vstack(((a.lbx - c) / d, (a.ubx - c) / d)), axis=0)
    b = replace(a, x=y, f=f, g=g, lbx=ends[0], ubx=ends[1], x0=(a.x0 - c) / d)
    return b, lambda s: replace(s, x=s.x * d + c, lam_x=s.lam_x / d)


def scaled_rows(a: Random, rng: np.random.Generator) -> tuple[Random, Back]:
    """d·g, and some d negative: lower limits become upper ones."""
    d = _scales(rng, a.g.numel()) * rng.choice([-1, 1], a.g.numel())
    ends = np.sort(np.vstack((d * a.lbg, d * a.ubg)), axis=0)
    b = replace(a, g=ca.DM(d) * a.g, lbg=ends[0], ubg=ends[1])
    return b, lambda s: replace(s, lam_g=s.lam_g * d)


def scaled_objective(a: Random, rng: np.random.Generator) -> tuple[Random, Back]:
    """t·f + c."""
    t, c = float(_scales(rng, 1)[0]), float(rng.normal())
    return replace(a, f=t * a.f + c), lambda s: replace(
        s, f=(s.f - c) / t, lam_x=s.lam_x / t, lam_g=s.lam_g / t
    )


def more_rows(a: Random, rows: Sequence[ca.SX], low: Any, high: Any) -> Random:
    g, lbg, ubg = ca.vertcat(a.g, *rows), np.append(a.lbg, low), np.append(a.ubg, high)
    return replace(a, g=g, lbg=lbg, ubg=ubg)


def back_to_rows(m: int, index: Any, factor: Any = 1.0) -> Back:
    """Add the multipliers beyond the first m rows, times a factor, to those of rows by index."""

    def back(s: Answer) -> Answer:
        lam = s.lam_g[:m].copy()
        lam[index] += factor * s.lam_g[m:]
        return replace(s, lam_g=lam)

    return back


def equations_as_inequalities(a: Random, rng: np.random.Generator) -> tuple[Random, Back]:
    """Every equation as two rows, one multiplier each way."""
    twice = np.flatnonzero(a.lbg == a.ubg)
    b = more_rows(a, [a.g[int(i)] for i in twice], np.full(twice.size, -INF), a.ubg[twice])
    b.ubg[twice] = INF
    return b, back_to_rows(a.g.numel(), twice)


def duplicated_rows(a: Random, rng: np.random.Generator) -> tuple[Random, Back]:
    """Some rows once more, in other units."""
    again = np.flatnonzero(rng.random(a.g.numel()) < 0.5)
    d = 10.0 ** rng.uniform(-1, 1, again.size)
    rows = [size * a.g[int(i)] for size, i in zip(d, again, strict=True)]
    b = more_rows(a, rows, d * a.lbg[again], d * a.ubg[again])
    return b, back_to_rows(a.g.numel(), again, d)


def bounds_as_rows(a: Random, rng: np.random.Generator) -> tuple[Random, Back]:
    """Some bounds on variables become rows; also those of fixed variables."""
    moved = rng.random(a.x.numel()) < 0.5
    b = more_rows(a, [a.x[int(i)] for i in np.flatnonzero(moved)], a.lbx[moved], a.ubx[moved])
    b = replace(b, lbx=np.where(moved, -INF, a.lbx), ubx=np.where(moved, INF, a.ubx))
    m = a.g.numel()

    def back(s: Answer) -> Answer:
        lam_x = s.lam_x.copy()
        lam_x[moved] += s.lam_g[m:]
        return replace(s, lam_x=lam_x, lam_g=s.lam_g[:m])

    return b, back


def slack_form(a: Random, rng: np.random.Generator) -> tuple[Random, Back]:
    """g(x) − s = 0 with bounds on s: λ_g of the rows, and λ_s = λ_g."""
    n, m = a.x.numel(), a.g.numel()
    s = ca.SX.sym("s", m)
    start = np.array(ca.Function("g", [a.x, a.p], [a.g])(a.x0, a.values).full()).ravel()
    x, lbx, ubx = ca.vertcat(a.x, s), np.append(a.lbx, a.lbg), np.append(a.ubx, a.ubg)
    b = replace(a, x=x, g=a.g - s, lbx=lbx, ubx=ubx, x0=np.append(a.x0, start))
    b = replace(b, lbg=np.zeros(m), ubg=np.zeros(m))

    def back(found: Answer) -> Answer:
        np.testing.assert_allclose(found.lam_x[n:], found.lam_g, rtol=1e-5, atol=1e-5)
        return replace(found, x=found.x[:n], lam_x=found.lam_x[:n])

    return b, back


def fixed_eliminated(a: Random, rng: np.random.Generator) -> tuple[Random, Back]:
    """Numbers in place of fixed variables; their multipliers are what stationarity leaves."""
    fixed = a.lbx == a.ubx
    if fixed.all():
        return a, lambda s: s
    free = np.flatnonzero(~fixed)
    y = ca.SX.sym("y", free.size)
    whole = ca.SX(ca.DM(a.lbx))
    whole[free.tolist()] = y
    f, g = a.at(whole)
    b = replace(a, x=y, f=f, g=g, lbx=a.lbx[free], ubx=a.ubx[free], x0=a.x0[free])
    lam = ca.SX.sym("lam", a.g.numel())
    slope = ca.Function("slope", [a.x, a.p, lam], [ca.gradient(a.f + ca.dot(lam, a.g), a.x)])

    def back(s: Answer) -> Answer:
        x, lam_x = a.lbx.copy(), np.zeros(fixed.size)
        x[free], lam_x[free] = s.x, s.lam_x
        missing = -np.array(slope(x, a.values, s.lam_g).full()).ravel()
        return replace(s, x=x, lam_x=np.where(fixed, missing, lam_x))

    return b, back


def with_mx(a: Random, rng: np.random.Generator) -> tuple[Random, Back]:
    """The graph as one call in MX."""
    x, p = ca.MX.sym("x", a.x.numel()), ca.MX.sym("p", a.p.numel())
    f, g = ca.Function("graph", [a.x, a.p], [a.f, ca.densify(a.g)])(x, p)
    return replace(a, x=x, p=p, f=f, g=g), lambda s: s


UNITS = scaled_variables, scaled_rows, scaled_objective
ORDERS = permuted_variables, permuted_rows, permuted_parameters
ROWS = equations_as_inequalities, duplicated_rows, bounds_as_rows, slack_form, fixed_eliminated
FORMS: dict[str, Form] = {form.__name__: form for form in (*ORDERS, *UNITS, *ROWS)}


def rewritten(a: Random, names: list[str], seed: int, *, mx: bool) -> tuple[Random, Back]:
    """Apply the named forms one after the other, and last, where ``mx``, turn SX into MX."""
    rng = np.random.default_rng(seed)
    maps = []
    for name in names:
        a, back = FORMS[name](a, rng)
        maps.append(back)
    if mx:
        a, back = with_mx(a, rng)
        maps.append(back)

    def all_back(s: Answer) -> Answer:
        for one in reversed(maps):
            s = one(s)
        return s

    return a, all_back
