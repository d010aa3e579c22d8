"""The extended Kalman filter that carries what a window has left behind.

The state ξ = (x, θ) has the free parameters below the model's states. Linearized at ξ̂,

    measurement:  S = H P Hᵀ + R,  K = P Hᵀ S⁻¹,
                  m ← m + K (y − h(ξ̂) − H (m − ξ̂)),  P ← (I − K H) P (I − K H)ᵀ + K R Kᵀ
    step:         m ← F(ξ̂) + A (m − ξ̂),  P ← A P Aᵀ + Q

Sources: C. V. Rao, J. B. Rawlings, D. Q. Mayne, "Constrained state estimation for nonlinear
discrete-time systems", IEEE Transactions on Automatic Control 48 (2003), for the filter as the
arrival cost; P. Kühl, M. Diehl, T. Kraus, J. P. Schlöder, H. G. Bock, "A real-time algorithm for
moving horizon state and parameter estimation", Computers & Chemical Engineering 35 (2011), for the
linearization at the window's own estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.model import Model
from casadi_hybrid.control.model.plant import Sensors
from casadi_hybrid.control.model.signals import Array
from casadi_hybrid.control.model.steps import nothing, plain_step, symbols_of

LEAST = 1e-6
"""The least deviation of a direction as a part of its entries' own, of their scales without any."""


@dataclass(frozen=True)
class Gaussian:
    """A normal distribution of ξ."""

    mean: Array
    covariance: Array

    def whitening(self, scale: Array) -> Array:
        """Return S with SᵀS = P⁻¹, of P with least directions up."""
        P = self.covariance
        own = np.sqrt(np.maximum(P.diagonal(), 0.0))
        own = np.where(own > LEAST**2 * scale, own, scale)  # else it is none, but for rounding
        values, vectors = np.linalg.eigh(P / np.outer(own, own))
        return np.asarray((vectors / np.sqrt(np.maximum(values, LEAST**2))).T / own)


@dataclass(frozen=True)
class Place:
    """A grid point of a window and the interval after it.

    p has the model's own parameters, free ones as estimated; ``before`` and ``held`` are the
    controls before and after the point; y is NaN for what was lost.
    """

    x: Array
    z: Array
    p: Array
    before: Array
    held: Array
    time: float
    y: Array


@dataclass(frozen=True)
class Filter:
    """The recursion of the module's docstring for one model.

    ``free`` are places of the free parameters in the model's, ``noise`` is R, ``process`` Q;
    :func:`linear_step` and :func:`linear_sensors` make the others.
    """

    free: list[int]
    noise: Array
    process: Array
    move: ca.Function
    see: ca.Function

    def measured(self, at: Place, now: Gaussian) -> Gaussian:
        """Return the distribution given the measurement at a point."""
        there = np.flatnonzero(np.isfinite(at.y))
        if not there.size:
            return now
        seen, by_x, by_p = (part.full() for part in self.see(at.x, at.z, at.before, at.p, at.time))
        H = np.hstack((by_x, by_p[:, self.free]))[there]
        R = self.noise[np.ix_(there, there)]
        P, m = now.covariance, now.mean
        gain = np.linalg.solve(H @ P @ H.T + R, H @ P).T
        rest = np.eye(m.size) - gain @ H
        error = at.y[there] - seen.ravel()[there] - H @ (m - self.estimate(at))
        return Gaussian(m + gain @ error, _even(rest @ P @ rest.T + gain @ R @ gain.T))

    def moved(self, at: Place, now: Gaussian) -> Gaussian:
        """Return the distribution one period later."""
        after, by_x, by_p = (part.full() for part in self.move(at.x, at.z, at.held, at.p, at.time))
        n, free = at.x.size, len(self.free)
        A = np.eye(n + free)
        A[:n, :n], A[:n, n:] = by_x, by_p[:, self.free]
        here = self.estimate(at)
        mean = np.concatenate((after.ravel(), here[n:])) + A @ (now.mean - here)
        return Gaussian(mean, _even(A @ now.covariance @ A.T + self.process))

    def step(self, at: Place) -> Array:
        """Return ξ one period after a point."""
        after = self.move(at.x, at.z, at.held, at.p, at.time)[0].full().ravel()
        return np.concatenate((after, self.estimate(at)[at.x.size :]))

    def estimate(self, at: Place) -> Array:
        """Return ξ at a point."""
        return np.concatenate((at.x, at.p[self.free]))


def _even(matrix: Array) -> Array:
    return np.asarray((matrix + matrix.T) / 2.0)


def linear_step(model: Model, step: Any, period: float) -> ca.Function:
    """Return (x, z, u, p, t) → x one period later and its derivatives by x and p."""
    x, z, u, _, p, t, _ = symbols_of(model, nothing(model), step.graphs)
    after = plain_step(step, model).call([x, z, u, u, p, t, step.graphs(period)])[0]
    outputs = [after, ca.jacobian(after, x), ca.jacobian(after, p)]
    return ca.Function("move", [x, z, u, p, t], outputs)


def linear_sensors(model: Model, sensors: Sensors) -> ca.Function:
    """Return (x, z, u, p, t) → y and its derivatives by x and p, of z by the model's equations."""
    x, z, _, p, _ = symbols = model.arguments
    seen = sensors.function(*symbols)
    by_x, by_p = ca.jacobian(seen, x), ca.jacobian(seen, p)
    if model.size("algebraic"):
        equations = model.moves.equations(*symbols)
        follow = -ca.solve(ca.jacobian(equations, z), ca.horzcat(
            ca.jacobian(equations, x), ca.jacobian(equations, p)))  # fmt: skip
        change = ca.mtimes(ca.jacobian(seen, z), follow)
        n = int(x.numel())
        by_x, by_p = by_x + change[:, :n], by_p + change[:, n:]
    return ca.Function("see", symbols, [seen, ca.densify(by_x), ca.densify(by_p)])
