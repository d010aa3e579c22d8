"""How a horizon becomes unknowns and rows: multiple shooting, single shooting, collocation.

A method is an immutable object with two calls: ``begin`` adds the unknown states, ``connect`` the
rows of the dynamics, and returns the integrals of the costs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.horizon import Horizon, each
from casadi_hybrid.control.model import Model
from casadi_hybrid.control.signals import Array, between
from casadi_hybrid.control.steps import DiscreteMap, Integrator, RungeKutta

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
class MultipleShooting:
    """x_{k+1} = step(x_k, u_k), with the states of all grid points as unknowns.

    Attributes:
        step: :class:`RungeKutta` or :class:`Integrator`; a discrete model has its own.

    Source: H. G. Bock, K. J. Plitt, "A multiple shooting algorithm for direct solution of optimal
    control problems", IFAC World Congress 1984.
    """

    step: RungeKutta | Integrator = field(default_factory=RungeKutta)

    def graphs(self, model: Model) -> Any:
        """See :class:`Method`."""
        return _step(self.step, model).graphs

    def begin(self, horizon: Horizon) -> None:
        """See :class:`Method`."""
        horizon.X = horizon.states(range(horizon.N + 1))

    def connect(self, horizon: Horizon) -> Any:
        """See :class:`Method`."""
        ends, integrals = _ends(self.step, horizon, horizon.X[:, :-1])
        horizon.assembly.constrain(
            horizon.name("dynamics"),
            horizon.X[:, 1:] - ends,
            horizon.stages(),
            scale=horizon.model.limits("state", "scale"),
        )
        return ca.sum2(integrals)


@dataclass(frozen=True)
class SingleShooting:
    """The same steps with the first state alone as an unknown; limits of states become rows.

    All derivatives are dense, so a solve grows with the cube of the intervals; for more than some
    fifty :class:`MultipleShooting` is the better choice.

    Attributes:
        step: see :class:`MultipleShooting`.
        unrolled: number of intervals up to which the graph is unrolled by default: the Hessian of
            steps within steps grows faster than that of the step as a function.
    """

    step: RungeKutta | Integrator = field(default_factory=RungeKutta)
    unrolled: ClassVar[int] = 30

    def graphs(self, model: Model) -> Any:
        """See :class:`Method`."""
        return _step(self.step, model).graphs

    def begin(self, horizon: Horizon) -> None:
        """See :class:`Method`."""
        horizon.X = horizon.states([0])

    def connect(self, horizon: Horizon) -> Any:
        """See :class:`Method`."""
        step = _step(self.step, horizon.model).function(horizon.model, horizon.integrand)
        states, total = [horizon.X], ca.DM.zeros(horizon.integrand.numel_out(0))
        for k in range(horizon.N):
            after, integral = step.call(
                [states[-1], *(column[:, k] for column in _columns(horizon))], False, False
            )
            states.append(after)
            total = total + integral
        horizon.X = ca.horzcat(*states)
        for name, where in horizon.model.places("state").items():
            signal = horizon.model.signals["state"][name]
            if np.isfinite(np.append(signal.lower, signal.upper)).any():
                horizon.assembly.constrain(
                    horizon.name(name),
                    horizon.X[where, 1:],
                    horizon.stages(points=True)[1:],
                    signal.lower,
                    signal.upper,
                    scale=signal.scale,
                )
        return total


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

    Source: L. T. Biegler, "Nonlinear Programming", SIAM 2010, chapter 10.
    """

    degree: int = 3
    points: str = "radau"
    coefficients: tuple[Array, Array, Array, Array] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.degree, int) or not 1 <= self.degree <= 9:
            raise InputError(f"degree must be an integer from 1 to 9, got {self.degree!r}")
        if self.points not in ("radau", "legendre"):
            raise InputError(f"points must be 'radau' or 'legendre', got {self.points!r}")
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
        function = self._interval(model, horizon.integrand, inner)
        nx, nz = model.size("state"), model.size("algebraic")
        inside = ca.reshape(X, nx * inner, N) if inner else horizon.assembly.kind(0, N)
        found = each(
            function,
            horizon.assembly.kind,
            [horizon.X[:, :-1], inside, ca.reshape(Z, nz * degree, N), horizon.X[:, 1:],
             *_columns(horizon)[1:]],
        )  # fmt: skip
        defects, gaps, equations, integrals = found
        scale = model.limits("state", "scale")
        if self.points == "legendre":
            name = horizon.name("continuity")
            horizon.assembly.constrain(name, gaps, horizon.stages(), scale=scale)
        stages = np.repeat(horizon.stages(), degree).tolist()
        horizon.assembly.constrain(
            horizon.name("dynamics"),
            ca.reshape(defects, nx, N * degree),
            stages,
            scale=scale,
            stride=degree,
        )
        if nz:
            horizon.assembly.constrain(
                horizon.name("equations"), ca.reshape(equations, nz, N * degree), stages,
                stride=degree,
            )  # fmt: skip
        if inner or nz:
            horizon.inside = (np.tile(taus[:inner], N), X, Z)
        return ca.sum2(integrals)

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


def _columns(horizon: Horizon) -> list[Any]:
    """(z, u, v, p, t, dt) of each interval."""
    N = horizon.N
    Z = horizon.Z if horizon.Z.shape[0] else horizon.assembly.kind(0, N + 1)
    return [Z[:, :N], horizon.U, horizon.V, horizon.P[:, :N], horizon.T[:, :N], horizon.dt]


def _step(step: Step, model: Model) -> Step:
    return DiscreteMap() if model.discrete else step


def _ends(step: Step, horizon: Horizon, starts: Any) -> list[Any]:
    function = _step(step, horizon.model).function(horizon.model, horizon.integrand)
    return each(function, horizon.assembly.kind, [starts, *_columns(horizon)])


def _points(horizon: Horizon, kind: str, at: Array, each_interval: int) -> Any:
    """Add the unknowns of a kind at points between the grid points, and return them."""
    rows = [horizon.assembly.kind(0, horizon.N * each_interval)]
    if not each_interval:
        return rows[0]
    for name, signal in horizon.model.signals[kind].items():
        guess = horizon.guess[name]
        start = np.stack([np.interp(at, horizon.fractions, row) for row in guess])
        rows.append(
            horizon.assembly.variable(
                horizon.name(f"{name} inside"),
                signal.size,
                np.repeat(horizon.stages(), each_interval).tolist(),
                lower=signal.lower,
                upper=signal.upper,
                start=start,
                scale=signal.scale,
                stride=each_interval,
            )
        )
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
