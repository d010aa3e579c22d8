"""Square systems of mechanics and flight: beams, wings, trims, chains and robots."""

from __future__ import annotations

from functools import partial
from math import pi, radians, sin
from typing import Any

import casadi as ca
import numpy as np

from problems.squares_base import Square, of_list, square

BISSHOPP = "Bisshopp & Drucker, Quart. Appl. Math. 3, 1945, 272–275, implicit midpoint rule"
ANDERSON = "Anderson, Fundamentals of Aerodynamics, section 5.4, numerical nonlinear lifting line"
STEVENS = "Stevens & Lewis, Aircraft Control and Simulation, section 3.6; own light aircraft"
TSAI = "Tsai & Morgan, J. Mech. Transm. Autom. Des. 107, 1985; Floudas et al. 1999, problem 14.1.6"
PAUL = "Paul, Robot Manipulators, 1981: the PUMA 560, lengths of Corke & Armstrong-Hélouvry 1994"
ARM = ((0.0, 0.0, pi / 2), (0.0, 0.4318, 0.0), (0.15005, 0.0203, -pi / 2), (0.4318, 0.0, pi / 2),
       (0.0, 0.0, -pi / 2), (0.0, 0.0, 0.0))  # fmt: skip
POSE = (0.9, 0.5, -2.0, 1.2, 0.8, -1.5)


def elastica(load: float, x: Any) -> Any:
    """Cantilever EI θ'' = −P cos θ of length 1, θ(0) = 0, θ'(1) = 0, and the place of its axis."""
    n = x.numel() // 4
    theta, bend, px, py = (ca.vertcat(0, x[k * n : (k + 1) * n]) for k in range(4))
    bend = ca.vertcat(x[n : 2 * n], 0)
    middle = (theta[1:] + theta[:-1]) / 2
    return ca.vertcat(
        n * (theta[1:] - theta[:-1]) - (bend[1:] + bend[:-1]) / 2,
        n * (bend[1:] - bend[:-1]) + load * ca.cos(middle),
        n * (px[1:] - px[:-1]) - ca.cos(middle),
        n * (py[1:] - py[:-1]) - ca.sin(middle),
    )


def lift(alpha: Any) -> Any:
    """Lift coefficient of a section that stalls near 15°."""
    stall = 0.5 * (1 + ca.tanh((alpha - radians(15)) / radians(2)))
    return (1 - stall) * 2 * pi * alpha + stall * ca.sin(2 * alpha)


def lifting_line(angle: float, x: Any) -> Any:
    """Fourier coefficients of the circulation (×100) of an elliptic-like wing of aspect 8."""
    n = x.numel()
    phi = [pi * (k + 1) / (n + 1) for k in range(n)]
    rows = []
    for p in phi:
        basis = np.array([sin((k + 1) * p) for k in range(n)]) / 100
        circulation = ca.mtimes(ca.DM(basis).T, x)
        induced = ca.mtimes(ca.DM(basis * np.arange(1, n + 1)).T, x) / sin(p)
        chord = (4 / pi) / 8 * (0.35 + 0.65 * sin(p))
        rows.append(2 * circulation - chord / 2 * lift(angle - induced))
    return 100 * ca.vertcat(*rows)


def wing(angle: float, x: Any) -> Any:
    """A bending and twisting wing in a strip-wise flow, integrated by the trapezoidal rule.

    Deflection, slope, moment and shear, twist and torque at every station; clamped at the root,
    free at the tip; the lift stalls with the local angle of attack.
    """
    n = x.numel() // 6
    parts = [x[k * n : (k + 1) * n] for k in range(6)]
    w, slope, twist = (ca.vertcat(0, part) for part in parts[:3])
    moment, shear, torque = (ca.vertcat(part, 0) for part in parts[3:])
    span = np.linspace(0, 1, n + 1)
    force = 3.0 * ca.DM(1 - 0.5 * span) * lift(angle + twist - 0.3 * slope)
    rows = []
    for state, rate in (
        (w, slope),
        (slope, 2 * moment * (1 + slope**2) ** 1.5),
        (twist, 1.5 * torque),
        (moment, -shear),
        (shear, -force),
        (torque, -0.25 * force),
    ):
        rows.append(n * (state[1:] - state[:-1]) - (rate[1:] + rate[:-1]) / 2)
    return ca.vertcat(*rows)


def trim(bank: float, x: list[Any]) -> list[Any]:
    """Level coordinated turn at 55 m/s: α, β, φ, θ, thrust/weight, elevator, aileron, rudder."""
    alpha, beta, phi, theta, thrust, elevator, aileron, rudder = x
    g, speed, mass, area, span, chord = 9.81, 55.0, 1200.0, 16.0, 11.0, 1.5
    inertia, pressure = (1300.0, 1800.0, 2700.0, 100.0), 0.5 * 1.225 * 55.0**2
    u, v, w = (ca.cos(alpha) * ca.cos(beta), ca.sin(beta), ca.sin(alpha) * ca.cos(beta))
    turn = g * np.tan(bank) / speed
    p, q, r = (
        -turn * ca.sin(theta),
        turn * ca.sin(phi) * ca.cos(theta),
        turn * ca.cos(phi) * ca.cos(theta),
    )
    ph, qh, rh = p * span / (2 * speed), q * chord / (2 * speed), r * span / (2 * speed)
    cl = 0.3 + 5.1 * alpha + 3.9 * qh + 0.43 * elevator - 12 * alpha**3
    cd = 0.03 + 0.055 * cl**2 + 0.1 * beta**2
    side = -0.31 * beta - 0.04 * ph + 0.2 * rh + 0.19 * rudder
    load = pressure * area / (mass * g)
    ax = thrust + load * (cl * ca.sin(alpha) - cd * ca.cos(alpha))
    ay = load * side
    az = -load * (cl * ca.cos(alpha) + cd * ca.sin(alpha))
    roll = -0.09 * beta - 0.47 * ph + 0.1 * rh - 0.18 * aileron + 0.015 * rudder
    pitch = 0.02 - 0.9 * alpha - 12 * qh - 1.1 * elevator
    yaw = 0.065 * beta - 0.03 * ph - 0.1 * rh + 0.05 * aileron * alpha - 0.066 * rudder
    scale = speed / g
    jx, jy, jz, jxz = inertia
    torque = pressure * area
    return [
        ax - ca.sin(theta) + scale * (r * v - q * w),
        ay + ca.sin(phi) * ca.cos(theta) + scale * (p * w - r * u),
        az + ca.cos(phi) * ca.cos(theta) + scale * (q * u - p * v),
        roll + (jxz * p * q + (jy - jz) * q * r) / (torque * span),
        pitch + ((jz - jx) * p * r - jxz * (p**2 - r**2)) / (torque * chord),
        yaw + ((jx - jy) * p * q - jxz * q * r) / (torque * span),
        u * ca.sin(theta) - (v * ca.sin(phi) + w * ca.cos(phi)) * ca.cos(theta),
        ay,
    ]


def chain(x: Any) -> Any:
    """Balance of forces at the knots of a hanging chain of stiff springs, three long over two."""
    n = x.numel() // 2
    ends = (ca.vertcat(0, x[:n], 2), ca.vertcat(0, x[n:], 0))
    along = [end[1:] - end[:-1] for end in ends]
    rest = 3 / (n + 1)
    force = 1e3 * (1 - rest / ca.sqrt(along[0] ** 2 + along[1] ** 2)) / rest * 0.1
    pull = [force * part for part in along]
    return ca.vertcat(pull[0][1:] - pull[0][:-1], pull[1][1:] - pull[1][:-1] - 1 / n)


def arm(x: list[Any]) -> tuple[Any, Any]:
    """Place and orientation of the hand of a six-jointed arm (Denavit & Hartenberg)."""
    place, turn = ca.DM.zeros(3), ca.DM.eye(3)
    for q, (offset, length, twist) in zip(x, ARM, strict=True):
        c, s, ct, st = ca.cos(q), ca.sin(q), np.cos(twist), np.sin(twist)
        place = place + ca.mtimes(turn, ca.vertcat(length * c, length * s, offset))
        rows = (ca.horzcat(c, -s * ct, s * st), ca.horzcat(s, c * ct, -c * st))
        turn = ca.mtimes(turn, ca.vertcat(*rows, ca.horzcat(0, st, ct)))
    return place, turn


def inverse_kinematics(x: list[Any]) -> list[Any]:
    """The hand at the place and orientation of ``POSE``: their difference in six numbers."""
    place, turn = arm(x)
    wanted, goal = arm([ca.DM(angle) for angle in POSE])
    error = ca.mtimes(goal.T, turn)
    rows = ((2, 1), (0, 2), (1, 0))
    return [*ca.vertsplit(place - wanted), *(error[i, j] - error[j, i] for i, j in rows)]


def robot(x: list[Any]) -> list[Any]:
    """Sines and cosines of an arm, eight quadratic equations with sixteen roots."""
    a, b, c, d, e, f, g, h = x
    return [
        4.731e-3 * a * c - 0.3578 * b * c - 0.1238 * a + g - 1.637e-3 * b - 0.9338 * d - 0.3571,
        0.2238 * a * c + 0.7623 * b * c + 0.2638 * a - g - 0.07745 * b - 0.6734 * d - 0.6022,
        f * h + 0.3578 * a + 4.731e-3 * b,
        -0.7623 * a + 0.2238 * b + 0.3461,
        *(u**2 + v**2 - 1 for u, v in ((a, b), (c, d), (e, f), (g, h))),
    ]


def mechanics_squares() -> tuple[Square, ...]:
    """Return the systems; starts are the undeformed state or the middle of the ranges."""
    line = np.linspace(0, 2, 42)[1:-1]
    limits = (0.3, 0.2, 1.2, 0.4, 1.0, 0.45, 0.35, 0.45)
    flat = (*np.linspace(0, 1, 61)[1:],)
    return (
        square("elastica-2", partial(elastica, 2.0), (0,) * 120 + flat + (0,) * 60,
               symbol=ca.MX, source=BISSHOPP),
        square("elastica-50", partial(elastica, 50.0), (0,) * 120 + flat + (0,) * 60,
               symbol=ca.MX, source=BISSHOPP),
        square("lifting-line-5", partial(lifting_line, radians(5)), (0,) * 40, source=ANDERSON),
        square("lifting-line-17", partial(lifting_line, radians(17)), (0,) * 40, source=ANDERSON),
        square("wing", partial(wing, radians(8)), (0,) * 360, symbol=ca.MX,
               source="own; beam and torsion as in static aeroelasticity"),
        square("trim", of_list(partial(trim, 0.0)), (0,) * 8, source=STEVENS,
               lbx=[-b for b in limits], ubx=limits),
        square("trim-turn", of_list(partial(trim, radians(45))), (0,) * 8, source=STEVENS,
               lbx=[-b for b in limits], ubx=limits),
        square("chain", chain, (*line, *(0,) * 40), symbol=ca.MX, source="own"),
        square("arm", of_list(inverse_kinematics), (0.1,) * 6, source=PAUL),
        square("arm-limited", of_list(inverse_kinematics), (0.1,) * 6, source=PAUL, lbx=-2.8,
               ubx=2.8),
        square("robot", of_list(robot), (0.5,) * 8, source=TSAI, lbx=-1, ubx=1),
    )  # fmt: skip
