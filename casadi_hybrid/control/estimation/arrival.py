"""Extended Kalman filter of the measurements that have left a window.

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

# Least deviation of a direction, as a part of the deviations of its entries or their scales.
LEAST = 1e-6


@dataclass(frozen=True)
class Gaussian:
    """A normal distribution of ξ."""

    mean: Array
    covariance: Array

    def whitening(self, scale: Array) -> Array:
        """Return S with SᵀS = P⁻¹, after P is raised to the least deviations."""
        P = self.covariance
        std = np.sqrt(np.maximum(P.diagonal(), 0.0))
        std = np.where(std > LEAST**2 * scale, std, scale)  # below, it is zero but for rounding
        # Of the correlations, so that units do not decide which direction is small.
        values, vectors = np.linalg.eigh(P / np.outer(std, std))
        return np.asarray((vectors / np.sqrt(np.maximum(values, LEAST**2))).T / std)


@dataclass(frozen=True)
class Place:
    """Grid point of a window and the interval after it."""

    x: Array
    z: Array
    p: Array  # the model's parameters, free ones as estimated
    before: Array  # control before the point
    held: Array  # control after it
    time: float
    y: Array  # NaN for lost measurements


@dataclass(frozen=True)
class Filter:
    """Recursion of the module's docstring for one model."""

    free: list[int]  # places of the free parameters among the model's
    noise: Array  # R
    process: Array  # Q
    move: ca.Function  # see linear_step
    see: ca.Function  # see linear_sensors

    def measured(self, at: Place, now: Gaussian) -> Gaussian:
        """Return the distribution given the measurement at a point."""
        finite = np.flatnonzero(np.isfinite(at.y))
        if not finite.size:
            return now
        h, by_x, by_p = (part.full() for part in self.see(at.x, at.z, at.before, at.p, at.time))
        H = np.hstack((by_x, by_p[:, self.free]))[finite]
        R = self.noise[np.ix_(finite, finite)]
        P, m = now.covariance, now.mean
        # P Hᵀ S⁻¹ without an inverse, as S and P are symmetric.
        K = np.linalg.solve(H @ P @ H.T + R, H @ P).T
        # Joseph's form below stays positive semidefinite under rounding, unlike (I − K H) P.
        rest = np.eye(m.size) - K @ H
        # h is linearized at the window's estimate, not at m: hence the term H (m − ξ̂).
        error = at.y[finite] - h.ravel()[finite] - H @ (m - self.estimate(at))
        return Gaussian(m + K @ error, _symmetric(rest @ P @ rest.T + K @ R @ K.T))

    def moved(self, at: Place, now: Gaussian) -> Gaussian:
        """Return the distribution one period later."""
        after, by_x, by_p = (part.full() for part in self.move(at.x, at.z, at.held, at.p, at.time))
        n, free = at.x.size, len(self.free)
        # The free parameters are constant: θ⁺ = θ; their drift is in Q.
        A = np.eye(n + free)
        A[:n, :n], A[:n, n:] = by_x, by_p[:, self.free]
        estimate = self.estimate(at)
        # F(ξ̂) + A (m − ξ̂): linear around the window's estimate, not around m.
        mean = np.concatenate((after.ravel(), estimate[n:])) + A @ (now.mean - estimate)
        return Gaussian(mean, _symmetric(A @ now.covariance @ A.T + self.process))

    def step(self, at: Place) -> Array:
        """Return ξ one period after a point."""
        after = self.move(at.x, at.z, at.held, at.p, at.time)[0].full().ravel()
        return np.concatenate((after, self.estimate(at)[at.x.size :]))

    def estimate(self, at: Place) -> Array:
        """Return ξ at a point."""
        return np.concatenate((at.x, at.p[self.free]))


def _symmetric(matrix: Array) -> Array:
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
    h = sensors.function(*symbols)
    by_x, by_p = ca.jacobian(h, x), ca.jacobian(h, p)
    if model.size("algebraic"):
        # The implicit function theorem gives ∂z/∂(x, p).
        equations = model.moves.equations(*symbols)
        by_both = ca.horzcat(ca.jacobian(equations, x), ca.jacobian(equations, p))
        dz = -ca.solve(ca.jacobian(equations, z), by_both)
        change = ca.mtimes(ca.jacobian(h, z), dz)
        n = int(x.numel())
        by_x, by_p = by_x + change[:, :n], by_p + change[:, n:]
    return ca.Function("see", symbols, [h, ca.densify(by_x), ca.densify(by_p)])
