"""Own systems: geometry of control and robotics, and classical square systems with a row more.

Nothing here is from the literature except the six square systems of :data:`SQUARE`, whose source
stands with them. Measured data are exact for a stated point (consistent) or carry stated offsets
(inconsistent), so each pair differs only in its data.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import casadi as ca

from problems.systems_base import Point, Residuals, System, define

ANCHORS = ((0, 0, 0), (4, 0, 0.5), (0, 4, 1), (4, 4, 0), (0.5, 0, 3), (4, 3.5, 3))
SCENE = ((1, 1, 4), (-1, 1, 5), (-1, -1, 4.5), (1, -1, 6), (0.5, 0, 5.5))
SHAPE = ((0, 0), (2, 0), (2, 1), (0, 1), (1, 3))
STARS = ((1, 0, 0), (0, 0.6, 0.8), (0.48, 0.64, -0.6))
OFFSETS = (0.05, -0.03, 0.04, -0.02, 0.01, -0.05, 0.03, 0.02, -0.04, 0.01)


def ranges(x: list[Any]) -> Sequence[Any]:
    """Distances of a point to six anchors."""
    return [
        ca.sqrt(sum((xi - ai) ** 2 for xi, ai in zip(x, anchor, strict=True))) for anchor in ANCHORS
    ]


def planar_arm(q: list[Any]) -> Sequence[Any]:
    """Tip and orientation of a planar arm with links 1 and 0.8: three demands, two joints."""
    bend = q[0] + q[1]
    return ca.cos(q[0]) + 0.8 * ca.cos(bend), ca.sin(q[0]) + 0.8 * ca.sin(bend), bend


def elbow_arm(q: list[Any]) -> Sequence[Any]:
    """Tip and tool direction of a yaw–pitch–pitch arm: six demands, three joints."""
    reach = 0.6 * ca.cos(q[1]) + 0.5 * ca.cos(q[1] + q[2])
    level = ca.cos(q[1] + q[2])
    return (
        ca.cos(q[0]) * reach,
        ca.sin(q[0]) * reach,
        0.4 + 0.6 * ca.sin(q[1]) + 0.5 * ca.sin(q[1] + q[2]),
        ca.cos(q[0]) * level,
        ca.sin(q[0]) * level,
        ca.sin(q[1] + q[2]),
    )


def camera(x: list[Any]) -> Sequence[Any]:
    """Images of five points in a pinhole camera with roll, pitch, yaw and position x."""
    cr, sr, cp, sp, cy, sy = (f(angle) for angle in x[:3] for f in (ca.cos, ca.sin))
    rows = (
        (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        (-sp, cp * sr, cp * cr),
    )
    seen = [
        [
            sum(r * p for r, p in zip(row, point, strict=True)) + t
            for row, t in zip(rows, x[3:], strict=True)
        ]
        for point in SCENE
    ]
    return [u / depth for *plane, depth in seen for u in plane]


def registration(x: list[Any]) -> Sequence[Any]:
    """Corners of a planar shape turned by x₁ and moved by (x₂, x₃)."""
    c, s = ca.cos(x[0]), ca.sin(x[0])
    return [v for a, b in SHAPE for v in (c * a - s * b + x[1], s * a + c * b + x[2])]


def attitude(q: list[Any]) -> Sequence[Any]:
    """Three star directions in the frame of the quaternion q, and |q|²."""
    w, a, b, c = q
    rows = (
        (w**2 + a**2 - b**2 - c**2, 2 * (a * b + w * c), 2 * (a * c - w * b)),
        (2 * (a * b - w * c), w**2 - a**2 + b**2 - c**2, 2 * (b * c + w * a)),
        (2 * (a * c + w * b), 2 * (b * c - w * a), w**2 - a**2 - b**2 + c**2),
    )
    return [
        *(sum(r * e for r, e in zip(row, star, strict=True)) for star in STARS for row in rows),
        w**2 + a**2 + b**2 + c**2,
    ]


def against(measure: Residuals, data: Point, x: list[Any]) -> Sequence[Any]:
    """Return measure(x) − data."""
    return [value - datum for value, datum in zip(measure(x), data, strict=True)]


def extended_rosenbrock(x: list[Any]) -> Sequence[Any]:
    return [r for a, b in zip(x[::2], x[1::2], strict=True) for r in (10 * (b - a**2), 1 - a)]


def powell_singular(x: list[Any]) -> Sequence[Any]:
    return (
        x[0] + 10 * x[1],
        5**0.5 * (x[2] - x[3]),
        (x[1] - 2 * x[2]) ** 2,
        10**0.5 * (x[0] - x[3]) ** 2,
    )


def helical_valley(x: list[Any]) -> Sequence[Any]:
    # The angle jumps on the negative x₂ axis, as in the paper; atan2(x₂, x₁) would jump at x0.
    turn = 0.25 - ca.atan2(x[0], x[1]) / (2 * ca.pi)
    return 10 * (x[2] - 10 * turn), 10 * (ca.sqrt(x[0] ** 2 + x[1] ** 2) - 1), x[2]


def freudenstein_roth(x: list[Any]) -> Sequence[Any]:
    return (
        -13 + x[0] + ((5 - x[1]) * x[1] - 2) * x[1],
        -29 + x[0] + ((x[1] + 1) * x[1] - 14) * x[1],
    )


def broyden_tridiagonal(x: list[Any]) -> Sequence[Any]:
    padded = [0, *x, 0]
    return [
        (3 - 2 * b) * b - a - 2 * c + 1
        for a, b, c in zip(padded[:-2], padded[1:-1], padded[2:], strict=True)
    ]


def trigonometric(x: list[Any]) -> Sequence[Any]:
    total = sum(ca.cos(xi) for xi in x)
    return [len(x) - total + i * (1 - ca.cos(xi)) - ca.sin(xi) for i, xi in enumerate(x, 1)]


def with_sum(square: Residuals, x: list[Any]) -> Sequence[Any]:
    """Return the rows of a square system and their sum: consistent, with dependent rows."""
    rows = list(square(x))
    return [*rows, sum(rows)]


MEASURED: tuple[tuple[str, Residuals, Point, Point], ...] = (
    ("trilateration", ranges, (1, 2, 1.5), (3, 3, 2.5)),
    ("planar-arm", planar_arm, (0.6, -0.9), (0, 0)),
    ("elbow-arm", elbow_arm, (0.5, 0.7, -1.1), (0, 0, 0)),
    ("camera", camera, (0.1, -0.2, 0.3, 0.2, -0.1, 0.5), (0, 0, 0, 0, 0, 0)),
    ("registration", registration, (0.8, 1, -2), (0, 0, 0)),
    ("attitude", attitude, (0.5, 0.5, -0.1, 0.7), (1, 0, 0, 0)),
)
SQUARE: tuple[tuple[str, int, Residuals, Point, Point | None], ...] = (
    ("rosenbrock-10", 21, extended_rosenbrock, (-1.2, 1) * 5, (1,) * 10),
    ("powell-singular", 13, powell_singular, (3, -1, 0, 1), (0, 0, 0, 0)),
    ("helical-valley", 7, helical_valley, (-1, 0, 0), (1, 0, 0)),
    ("freudenstein-roth", 2, freudenstein_roth, (0.5, -2), (5, 4)),
    ("broyden-tridiagonal-10", 30, broyden_tridiagonal, (-1,) * 10, None),
    ("trigonometric-5", 26, trigonometric, (0.2,) * 5, (0,) * 5),
)


def own_systems() -> tuple[System, ...]:
    """Return the geometric pairs, then the square systems with their sum as one row more."""
    return (*_geometry(), *_with_sums())


def _geometry() -> tuple[System, ...]:
    systems = []
    for name, measure, truth, x0 in MEASURED:
        exact = tuple(float(value) for value in measure(list(truth)))
        noisy = tuple(value + OFFSETS[i % len(OFFSETS)] for i, value in enumerate(exact))
        for suffix, data in (("", exact), ("-noisy", noisy)):
            systems.append(
                define(
                    f"own-{name}{suffix}",
                    len(data),
                    partial(against, measure, data),
                    x0,
                    source="own",
                    consistent=data is exact,
                    minimizer=truth if data is exact else None,
                )
            )
    return tuple(systems)


def _with_sums() -> tuple[System, ...]:
    return tuple(
        define(
            f"own-{name}-sum",
            len(x0) + 1,
            partial(with_sum, square),
            x0,
            source=f"own row added to Moré, Garbow & Hillstrom 1981, problem {number}",
            consistent=True,
            scales=(10, 100),
            minimizer=root,
            note="the last equation is the sum of the others: the rows are dependent",
        )
        for name, number, square, x0, root in SQUARE
    )
