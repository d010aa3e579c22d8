"""How a horizon becomes unknowns and rows: multiple shooting, single shooting, collocation.

A method is an immutable object with two calls: ``begin`` adds the unknown states, ``connect`` the
rows of the dynamics, and returns the integrals of the costs. ``inner`` of any method is a number of
equally spaced points inside of each interval at which limits and path constraints hold too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import count, one_of
from casadi_hybrid.control.horizon import Horizon, each
from casadi_hybrid.control.model import Model
from casadi_hybrid.control.signals import Array, between, lagrange
from casadi_hybrid.control.steps import DiscreteMap, Integrator, RungeKutta, check_step, plain_step

Step = RungeKutta | Integrator | DiscreteMap


class Method(Protocol):
    """What lays a horizon out."""

    def graphs(self, model: Model) -> Any:
        """Return ``ca.SX``, or ``ca.MX`` where the method needs it."""
        ...

    def begin(self, horizon: Horizon) -> None:
        """Add the unknown states."""
        ...

    def connect(self, horizon: Horizon) -> Any:
        """Add the rows of the dynamics; return the integrals of the integrand."""
        ...


@dataclass(frozen=True)
class _Shooting:
    """What both ways of shooting have."""

    step: RungeKutta | Integrator = field(default_factory=RungeKutta)
    inner: int = 0

    def __post_init__(self) -> None:
        check_step(self.step)
        count(self.inner, "inner")

    def graphs(self, model: Model) -> Any:
        """See :class:`Method`."""
        return _step(self.step, model).graphs


@dataclass(frozen=True)
class MultipleShooting(_Shooting):
    """x_{k+1} = step(x_k, u_k), with the states of all grid points as unknowns.

    Attributes:
        step: :class:`RungeKutta` or :class:`Integrator`; a discrete model has its own.
        inner: number of points inside of an interval where limits hold too.

    Source: H. G. Bock, K. J. Plitt, "A multiple shooting algorithm for direct solution of optimal
    control problems", IFAC World Congress 1984.
    """

    def begin(self, horizon: Horizon) -> None:
        """See :class:`Method`."""
        horizon.X = horizon.states(range(horizon.N + 1))

    def connect(self, horizon: Horizon) -> Any:
        """See :class:`Method`."""
        ends, integrals = each(
            _step(self.step, horizon.model).function(horizon.model, horizon.integrand),
            horizon.assembly.kind,
            [horizon.X[:, :-1], *_columns(horizon)],
        )[:2]
        _move(horizon, "dynamics", horizon.X[:, 1:] - ends)
        _limit_between(horizon, *_shot(self.step, horizon, self.inner))
        return ca.sum2(integrals)


@dataclass(frozen=True)
class SingleShooting(_Shooting):
    """The same steps with the first state alone as an unknown; limits of states become rows.

    All derivatives are dense, so a solve grows with the cube of the intervals; for more than some
    fifty :class:`MultipleShooting` is the better choice.

    Attributes:
        step, inner: see :class:`MultipleShooting`.
        unrolled: number of intervals up to which the graph is unrolled by default: the Hessian of
            steps within steps grows faster than that of the step as a function.
    """

    unrolled: ClassVar[int] = 30

    def begin(self, horizon: Horizon) -> None:
        """See :class:`Method`."""
        horizon.X = horizon.states([0])

    def connect(self, horizon: Horizon) -> Any:
        """See :class:`Method`."""
        step = _step(self.step, horizon.model).function(horizon.model, horizon.integrand)
        states, integrals = [horizon.X], []
        for k in range(horizon.N):
            at = [states[-1], *(column[:, k] for column in _columns(horizon))]
            after, integral = step.call(at, False, False)[:2]
            states.append(after)
            integrals.append(integral)
        horizon.X = ca.horzcat(*states)
        horizon.limit("state", horizon.X[:, 1:], "", horizon.stages(points=True)[1:])
        _limit_between(horizon, *_shot(self.step, horizon, self.inner))
        return ca.sum2(ca.horzcat(*integrals))


@dataclass(frozen=True)
class Collocation:
    """A polynomial of each interval that satisfies the model's equations at the points.

    With D the derivatives of the Lagrange polynomials on the points and the beginning,
    D x = dt f(x, z, u, p, t) at each of ``degree`` points; the end of the interval is the
    polynomial's value there.

    Attributes:
        degree: number of points an interval.
        points: ``"radau"``, of order 2·degree − 1, the last point being the end of the interval,
            or ``"legendre"``, of order 2·degree.
        inner: number of points inside of an interval, besides those, where limits hold too.

    Source: L. T. Biegler, "Nonlinear Programming", SIAM 2010, chapter 10.
    """

    degree: int = 3
    points: str = "radau"
    inner: int = 0
    coefficients: tuple[Array, Array, Array, Array] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.degree, int) or not 1 <= self.degree <= 9:
            raise InputError(f"degree must be an integer from 1 to 9, got {self.degree!r}")
        one_of(self.points, "points", ("radau", "legendre"))
        count(self.inner, "inner")
        object.__setattr__(self, "coefficients", _coefficients(self.degree, self.points))

    def graphs(self, model: Model) -> Any:
        """See :class:`Method`."""
        if model.discrete:
            raise InputError(f"{model.name} is discrete; collocation is for rates. Take "
                             "MultipleShooting()")  # fmt: skip
        return ca.SX

    def begin(self, horizon: Horizon) -> None:
        """See :class:`Method`."""
        horizon.X = horizon.states(range(horizon.N + 1))

    def connect(self, horizon: Horizon) -> Any:
        """See :class:`Method`."""
        model, N, degree = horizon.model, horizon.N, self.degree
        taus = self.coefficients[0]
        inner = degree - 1 if self.points == "radau" else degree
        at = between(horizon.fractions, taus)
        X = _points(horizon, "state", at.reshape(N, degree)[:, :inner].ravel(), inner)
        Z = _points(horizon, "algebraic", at, degree)
        nx, nz = model.size("state"), model.size("algebraic")
        inside = ca.reshape(X, nx * inner, N) if inner else horizon.assembly.kind(0, N)
        defects, gaps, equations, integrals = each(
            self._interval(model, horizon.integrand, inner),
            horizon.assembly.kind,
            [horizon.X[:, :-1], inside, ca.reshape(Z, nz * degree, N), horizon.X[:, 1:],
             *_columns(horizon)[1:]],
        )  # fmt: skip
        if self.points == "legendre":
            _move(horizon, "continuity", gaps)
        _move(horizon, "dynamics", ca.reshape(defects, nx, N * degree), degree)
        if nz:
            stages = np.repeat(horizon.stages(), degree).tolist()
            equations = ca.reshape(equations, nz, N * degree)
            horizon.constrain("equations", equations, stages, stride=degree,
                              scale=horizon.sizes, entries=model.equation_names)  # fmt: skip
        if inner or nz:
            horizon.inside = X, Z
        self._between(horizon, X, Z, inner)
        return ca.sum2(integrals)

    def _between(self, horizon: Horizon, X: Any, Z: Any, inner: int) -> None:
        """The values of the polynomials at the inner points, and where constraints hold."""
        taus = self.coefficients[0]
        at_x = [horizon.X[:, :-1], *(X[:, j::inner] for j in range(inner)), horizon.X[:, 1:]]
        at_z = [Z[:, j :: self.degree] for j in range(self.degree)]
        own = (taus[:inner], at_x[1 : inner + 1], at_z[:inner])
        z_taus = taus
        if horizon.Z.shape[0]:
            z_taus, at_z = np.append(0.0, taus), [horizon.Z[:, :-1], *at_z]
        s = inner_points(self.inner)

        def values(nodes: Array, at: list[Any]) -> list[Any]:
            return [
                sum((w * part for w, part in zip(row, at, strict=False)), horizon.assembly.kind(0))
                for row in lagrange(nodes, s).tolist()
            ]

        added = (s, values(np.append(0.0, taus), at_x), values(z_taus, at_z))
        _limit_between(horizon, *added, own)

    def _interval(self, model: Model, integrand: ca.Function, inner: int) -> ca.Function:
        taus, slopes, weights, ends = self.coefficients
        nx, nz, nu = (model.size(kind) for kind in ("state", "algebraic", "control"))
        x, y = ca.SX.sym("x", nx), ca.SX.sym("y", nx)
        X, Z = ca.SX.sym("X", nx, inner), ca.SX.sym("Z", nz, self.degree)
        u, v, p = ca.SX.sym("u", nu), ca.SX.sym("v", nu), ca.SX.sym("p", integrand.numel_in(3))
        t, dt = ca.SX.sym("t"), ca.SX.sym("dt")
        own = p[: model.size("parameter")]
        points = ca.horzcat(x, X, y) if inner < self.degree else ca.horzcat(x, X)
        rates, equations, total = [], [], ca.SX.zeros(integrand.numel_out(0))
        for j, tau in enumerate(taus):
            w, s = u + tau * (v - u), t + tau * dt
            at, z = points[:, j + 1], Z[:, j]
            rates.append(dt * model.moves.rate(at, z, w, own, s))
            equations.append(model.moves.equations(at, z, w, own, s))
            total += weights[j] * dt * integrand(at, z, w, p, s)
        defects = ca.mtimes(points, ca.DM(slopes)) - ca.horzcat(*rates)
        gap = y - ca.mtimes(points, ca.DM(ends))
        return ca.Function(
            "interval",
            [x, ca.vec(X), ca.vec(Z), y, u, v, p, t, dt],
            [ca.vec(defects), gap, ca.vec(ca.horzcat(*equations)), total],
        )


def points_of(method: Method) -> Array:
    """Where in an interval, from 0 to 1, a collocation has its points."""
    assert isinstance(method, Collocation)
    return method.coefficients[0]


def within(method: Method, *, algebraic: bool) -> dict[str, Array]:
    """Where in an interval what is called "… inside", of an algebraic state or else, stands, and
    what is called "… between"."""
    own = points_of(method) if isinstance(method, Collocation) else np.zeros(0)
    inner = inner_points(getattr(method, "inner", 0))
    return {"inside": own if algebraic else np.append(own[own < 1.0], inner), "between": inner}


def _move(horizon: Horizon, name: str, gaps: Any, stride: int = 1) -> None:
    """Add the rows of a gap of each state, so many columns an interval, that are to be zero."""
    horizon.constrain(
        name, gaps, np.repeat(horizon.stages(), stride).tolist(), stride=stride,
        scale=horizon.model.limits("state", "scale"),
        entries=horizon.model.entry_names("state"),
    )  # fmt: skip


def _columns(horizon: Horizon) -> list[Any]:
    """(z, u, v, p, t, dt) of each interval."""
    N = horizon.N
    Z = horizon.Z if horizon.Z.shape[0] else horizon.assembly.kind(0, N + 1)
    return [Z[:, :N], horizon.U, horizon.V, horizon.P[:, :N], horizon.T[:, :N], horizon.dt]


def _step(step: Step, model: Model) -> Step:
    return DiscreteMap() if model.discrete else step


def inner_points(inner: int) -> Array:
    """Fractions of an interval of that many equally spaced points inside of it."""
    return np.arange(1, inner + 1) / (inner + 1)


def _shot(step: Step, horizon: Horizon, inner: int) -> tuple[Array, list[Any], list[Any]]:
    """Fractions, states and algebraic states at the inner points, each of all intervals."""
    model, taus = horizon.model, inner_points(inner)
    if inner and model.discrete:
        raise InputError(f"{model.name} is discrete; there are no inner points between its steps")
    function = plain_step(_step(step, model), model)
    z, u, v, p, t, dt = _columns(horizon)
    own = p[: model.size("parameter"), :]
    found = [
        each(function, horizon.assembly.kind,
             [horizon.X[:, :-1], z, u, u + s * (v - u), own, t, s * dt])
        for s in taus.tolist()
    ]  # fmt: skip
    return taus, [x for x, _, _ in found], [z for _, _, z in found]


def _limit_between(
    horizon: Horizon,
    taus: Array,
    X: list[Any],
    Z: list[Any],
    points: tuple[Array, list[Any], list[Any]] | None = None,
) -> None:
    """Add the rows of the declared limits at inner points, and say where constraints hold.

    The fractions, and the states and algebraic states there of all intervals; ``points`` are the
    same where the limits are those of unknowns.
    """
    model, several = horizon.model, taus.size
    stages = np.repeat(horizon.stages(), several).tolist()
    for kind, parts in (("state", X), ("algebraic", Z)) if several else ():
        rows = _by_interval(parts, horizon, model.size(kind))
        horizon.limit(kind, rows, " between", stages, several)
    if points is not None:
        taus, X, Z = np.append(points[0], taus), points[1] + X, points[2] + Z
    if taus.size:
        horizon.between = (
            taus,
            _by_interval(X, horizon, model.size("state")),
            _by_interval(Z, horizon, model.size("algebraic")),
        )


def _by_interval(parts: list[Any], horizon: Horizon, size: int) -> Any:
    """Columns of all intervals, one point after the other, as interval by interval."""
    several, N = len(parts), horizon.N
    if not size or not several:
        return horizon.assembly.kind(size, several * N)
    return ca.horzcat(*parts)[:, [j * N + k for k in range(N) for j in range(several)]]


def _points(horizon: Horizon, kind: str, at: Array, each_interval: int) -> Any:
    """Add the unknowns of a kind at points between the grid points, and return them."""
    rows = [horizon.assembly.kind(0, horizon.N * each_interval)]
    if not each_interval:
        return rows[0]
    stages = np.repeat(horizon.stages(), each_interval).tolist()
    for name, signal in horizon.model.signals[kind].items():
        start = np.stack([np.interp(at, horizon.fractions, row) for row in horizon.guess[name]])
        rows.append(horizon.unknown(f"{name} inside", signal, stages, start, each_interval))
    return ca.vertcat(*rows)


def _coefficients(degree: int, points: str) -> tuple[Array, Array, Array, Array]:
    """Points in (0, 1], slopes of the polynomials there, weights of the integral, values at 1."""
    taus: Array = np.array(ca.collocation_points(degree, points))
    slopes, ends, _ = (
        np.array(ca.DM(part), dtype=float) for part in ca.collocation_coeff(taus.tolist())
    )
    # Exact for powers below the degree. CasADi's own weights add up to 1/2 where the degree is 1.
    powers = np.vander(taus, increasing=True).T
    weights = np.linalg.solve(powers, 1.0 / np.arange(1, degree + 1))
    return taus, slopes, np.asarray(weights, dtype=float), ends
