"""The method "look-ahead" and the reduction of the violation in C, written again by hand."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import casadi as ca
import numpy as np
import pytest
from engine_runs import reduction_of
from scipy.optimize import brentq

from casadi_hybrid import Problem, Solver
from casadi_hybrid.problem.oracle import Oracle

Array = Any
Made = dict[str, Any]  # what Problem takes
norm = np.linalg.norm
EPS = np.finfo(float).eps
CUBIC = 96, 208  # whose steps raise ν for want of progress, and reduce the violation alone


def oracle_of(made: Made) -> Oracle:
    return Oracle(Problem(**made).functions, np.zeros(0))


def subproblem(G: Array, b: Array, radius: float) -> tuple[Array, float]:
    """The least ½t'Gt + b't with ‖t‖ ≤ Δ, and σ ≥ 0 with (G + σ)t = −b; not for the hard case."""
    e, W = np.linalg.eigh(G)
    s = W.T @ b

    def size(sigma: float) -> float:
        return float(norm(s / radius / (e + sigma)))  # of a radius whose square is no number, too

    sigma = 0.0
    if e[0] <= 0 or size(0.0) > 1:
        low, least = max(0.0, -e[0]), norm(s / radius)
        near = low + 1e-12 * (low + least)
        assert size(near) > 1, "the hard case"
        far = low + 2 * least + 1e-12 * low  # beyond the root, whatever is rounded
        sigma = float(brentq(lambda at: 1 / size(at) - 1, near, far, rtol=1e-14))
    return -W @ (s / (e + sigma)), sigma


def normal(B: Array, h: Array, radius: float) -> tuple[Array, float]:
    """The least ‖h + Bd‖ with ‖d‖ ≤ Δ and d in range(Bᵀ), and λ of (BᵀB + λ)d = −Bᵀh."""
    Y = np.linalg.svd(B)[2][: len(h)].T
    y, damping = subproblem(Y.T @ B.T @ B @ Y, Y.T @ B.T @ h, radius)
    return Y @ y, damping


def composite(at: Any, radius: float) -> tuple[Array, Array, float, float]:
    """d = d_y + d_z, d_y, and the multipliers of the two radii, 0.8Δ and what it leaves of Δ."""
    d_y, damping = normal(at.B, at.h, 0.8 * radius)
    Z = np.linalg.svd(at.B)[2][len(at.h) :].T
    slope = Z.T @ (at.gradient + at.hessian @ d_y)
    z, lift = subproblem(Z.T @ at.hessian @ Z, slope, np.sqrt(radius**2 - d_y @ d_y))
    return d_y + Z @ z, d_y, damping, lift


def fitted(at: Any) -> Array:
    """The multipliers of least squares."""
    return np.linalg.lstsq(at.B.T, -at.gradient, rcond=None)[0]


def error(at: Any) -> float:
    """The larger of ‖h‖ and ‖∇f + Bᵀλ‖."""
    return float(max(norm(at.h), norm(at.gradient + at.B.T @ fitted(at))))


def resized(radius: float, size: float, ratio: float, seen: Counter[str]) -> float:
    """The radius after a step of this size and ratio."""
    size = min(size, radius)
    if ratio >= 0.75 and 3 * size > radius:
        seen["longer"] += 1
        return 3 * size
    if ratio >= 0.25:
        return radius
    seen["shorter"] += 1
    return 0.25 * size


@dataclass
class Mode:
    """When ‖h‖ alone is reduced, down to the goal."""

    mark: float = np.inf
    patience: int = 6
    goal: float = 0.0  # 0: the reduction is not under way

    def turn(self, size: float, seen: Counter[str]) -> None:
        """What the next step does at this ‖h‖."""
        if self.goal and size <= self.goal:
            self.goal, self.mark = 0.0, np.inf
        if self.goal:
            seen["the violation alone"] += 1
        elif size <= max(self.mark, 1e-11):
            self.mark, self.patience = 0.5 * size, 6
        elif self.patience > 0:
            self.patience -= 1
        else:
            self.goal = 0.5 * size


def look_ahead(made: Made, x: Array, seen: Counter[str]) -> Iterator[Array]:
    """x_0, x_1, … for a Jacobian of full row rank, n > m, up to a stationary violation.

    Args:
        made: the functions, whose derivatives are not in question here.
        x: x_0.
        seen: counts what has happened.
    """
    oracle, violation = oracle_of(made), violation_of(made)
    radius, nu = max(1.0, 0.5 * norm(x)), 1.0
    mode, search = Mode(), None
    while True:
        yield x
        at = oracle.first(x)
        at = oracle.second(x, np.zeros(at.h.size) if mode.goal else fitted(at))
        f, g, h, B, H = at.f, at.gradient, at.h, at.B, at.hessian
        if norm(B.T @ h) <= 1e-5 * norm(B) * norm(h):
            return
        mode.turn(float(norm(h)), seen)
        if mode.goal:
            search = search or Search(violation)
            x = search.step(x, Counter())
            continue
        search = None
        newton, d_y, *damped = composite(at, 1e9)
        whole = max(norm(newton), norm(d_y) / 0.8) if not any(damped) else 0.0
        nu_before, daring = nu, radius < whole <= 10 * radius
        while True:
            undamped = daring or 0 < whole <= radius
            d, _, damping, lift = composite(at, 1e9 if undamped else radius)
            seen["normal part damped"] += damping > 0
            seen["tangential part damped"] += lift > 0
            change = g @ d + 0.5 * d @ H @ d
            gain = norm(h) - norm(h + B @ d)
            if gain > EPS * norm(h) and change > 0.7 * nu * gain:
                nu = 1.5 * change / (0.7 * gain)
                seen["ν raised"] += 1
            predicted = nu * gain - change
            noise = 10 * EPS * (abs(f) + nu * norm(h))

            def measured(
                step: Array, at: Any = at, nu: float = nu, whole: float = predicted + noise,
                noise: float = noise,
            ) -> tuple[float, Array, Any]:  # fmt: skip
                new = oracle.first(at.x + step)
                actual = at.f - new.f + nu * (norm(at.h) - norm(new.h))
                return (actual + noise) / whole, step, new

            plain = taken = measured(d)
            if plain[0] < 0.75 and damping == 0:
                back, shortened = normal(B, plain[2].h, radius)
                corrected = measured(d + back)
                if corrected[0] > plain[0]:
                    taken = corrected
                    seen["corrected"] += 1
                    seen["corrected by a shorter step"] += shortened > 0
            if daring:
                daring = False
                if taken[0] < 0.25:
                    nu = nu_before
                    seen["too daring"] += 1
                    continue
                radius = whole
                seen["daring"] += 1
            radius = resized(radius, norm(taken[1]), taken[0], seen)
            if taken[0] >= 1e-4:
                x = taken[2].x
                break
            seen["refused"] += 1


def bent(seed: int) -> tuple[Made, Array]:
    """A curved valley on two curved surfaces, and a start that is not near."""
    x = ca.SX.sym("x", 4)
    f = 5 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2 + ca.cos(x[2]) + 0.3 * (x[3] - x[0]) ** 2
    h = ca.vertcat(ca.sumsqr(x) - 4, x[0] * x[1] - ca.sin(x[2]) - 0.5)
    return {"x": x, "f": f, "h": h}, 3 * np.random.default_rng(seed).normal(size=4)


def steep(seed: int) -> tuple[Made, Array]:
    """Multipliers so large that ν leaves a correct step no merit."""
    x = ca.SX.sym("x", 3)
    f = ca.exp(3 * x[0]) + 1e3 * ca.exp(x[1]) + x[2] ** 4
    h = ca.vertcat(x[0] ** 3 + x[1] - x[2], ca.exp(x[1]) - x[2] ** 2 - 1)
    return {"x": x, "f": f, "h": h}, 2 * np.random.default_rng(seed).normal(size=3)


def cubic(seed: int) -> tuple[Made, Array]:
    """Equations that are far from linear, from some way off."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    m = int(rng.integers(1, n))
    x = ca.SX.sym("x", n)
    A, B, c = rng.normal(size=(m, n)), rng.normal(size=(m, n)), rng.normal(size=m)
    h = ca.mtimes(A, x) + ca.mtimes(B, x**3) - c + ca.sin(3 * x[0]) * x[-1]
    return {"x": x, "f": ca.sumsqr(x - 1) + ca.cos(2 * x[0]), "h": h}, 3 * rng.normal(size=n)


def compared(made: Made, x0: Array, seen: Counter[str]) -> None:
    """The iterates by C and by hand."""
    # C divides f by what makes its slope at the start 100, where that is larger.
    steep = float(np.abs(oracle_of(made).first(x0).gradient).max())
    by_hand, expected = {**made, "f": min(1.0, 100 / steep) * made["f"]}, []
    oracle = oracle_of(by_hand)
    for x in islice(look_ahead(by_hand, x0, seen), 60):
        expected.append(x)
        if error(oracle.first(x)) <= 1e-6:  # what comes now is rounding
            break
    solver = Solver(Problem(**made), "look-ahead", tol=1e-300, max_iter=len(expected) - 1)
    got = solver.solve(x0, history=True).history.x
    assert len(got) == len(expected) >= 9
    assert got == pytest.approx(np.array(expected), rel=1e-7, abs=1e-7)


def test_the_look_ahead_iteration() -> None:
    seen: Counter[str] = Counter()
    starts = *map(bent, (3, 5, 12, 14)), *map(steep, (9, 18)), *map(cubic, CUBIC)
    for made, x0 in starts:
        compared(made, x0, seen)
    assert set(+seen) == {
        "normal part damped", "tangential part damped", "ν raised", "corrected",
        "corrected by a shorter step", "daring", "too daring", "refused",
        "shorter", "longer", "the violation alone",
    }  # fmt: skip


def violation_of(made: Made) -> ca.Function:
    """x → h, B and Σ h_i ∇²h_i."""
    x, h = made["x"], made["h"]
    fixed = ca.SX.sym("fixed", h.numel())
    curvature = ca.hessian(ca.dot(fixed, h), x)[0]
    return ca.Function("of", [x], [h, ca.jacobian(h, x), ca.substitute(curvature, fixed, h)])


@dataclass
class Search:
    """The least ½‖h‖² from here on: damped steps of Gauss and Newton, or of Newton where slow."""

    functions: Any  # see violation_of
    damping: float = 1e-3
    curved: bool = False

    def step(self, x: Array, seen: Counter[str]) -> Array:
        """The next point, far from a stationary one."""
        h, B, curvature = (np.array(out) for out in self.functions(x))
        h, growth, curved = h.ravel(), 2.0, self.curved
        units = (B**2).sum(axis=0)
        slope = B.T @ h
        while True:
            G = B.T @ B + curved * curvature
            M = G + np.diag(self.damping * units)
            if curved and np.linalg.eigvalsh(M)[0] <= 0:
                curved = False
                seen["indefinite"] += 1
                continue
            d = -np.linalg.solve(M, slope)
            left = np.array(self.functions(x + d)[0]).ravel()
            ratio = 0.5 * (h @ h - left @ left) / -(slope @ d + 0.5 * d @ G @ d)
            if ratio > 1e-4:
                break
            seen["refused"] += 1
            self.damping *= growth
            growth *= 2
        seen["curved"] += int(curved)
        if ratio > 0.75:
            self.damping = max(0.1 * self.damping, 1e-14)
            seen["longer"] += 1
        elif ratio < 0.25:
            self.damping *= 2
            seen["shorter"] += 1
        self.curved = left @ left > 0.8 * (h @ h)
        return x + d


def test_the_reduction_of_the_violation() -> None:
    x = ca.SX.sym("x", 3)
    bent = 2 * ca.cos(3 * x[0] * x[1]) + 3
    h = ca.vertcat(3 * (x[1] - x[0] ** 2), 1 - x[0] * x[2], ca.exp(x[2]) - x[1], bent)
    made = {"x": x, "f": ca.sumsqr(x), "h": h}
    functions, seen = violation_of(made), Counter[str]()
    for seed in range(30):
        expected = 2 * np.random.default_rng(seed).normal(size=3)
        search = Search(functions)
        for got, _ in islice(reduction_of(Problem(**made), expected), 11):
            left, B, _ = (np.array(out) for out in functions(expected))
            if norm(B.T @ left) <= 1e-4:  # what comes now is rounding
                break
            expected = search.step(expected, seen)
            assert got == pytest.approx(expected, rel=1e-7, abs=1e-7)
    assert set(+seen) == {"curved", "indefinite", "shorter", "longer", "refused"}
