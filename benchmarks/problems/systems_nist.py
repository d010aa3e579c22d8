"""Nonlinear regressions of the NIST Statistical Reference Datasets, as systems y − model(x) = 0.

Models, both starts and certified values: National Institute of Standards and Technology,
"Statistical Reference Datasets", nonlinear regression, www.itl.nist.gov/div898/strd. The certified
sums of squares and parameters have 11 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import pi
from typing import Any

import casadi as ca

from problems import systems_nist_data as nist
from problems.systems_base import Point, System, define

Model = Callable[[list[Any], float], Any]


def misra1a(b: list[Any], x: float) -> Any:
    return b[0] * (1 - ca.exp(-b[1] * x))


def misra1b(b: list[Any], x: float) -> Any:
    return b[0] * (1 - (1 + b[1] * x / 2) ** -2)


def misra1c(b: list[Any], x: float) -> Any:
    return b[0] * (1 - (1 + 2 * b[1] * x) ** -0.5)


def misra1d(b: list[Any], x: float) -> Any:
    return b[0] * b[1] * x / (1 + b[1] * x)


def chwirut(b: list[Any], x: float) -> Any:
    return ca.exp(-b[0] * x) / (b[1] + b[2] * x)


def danwood(b: list[Any], x: float) -> Any:
    return b[0] * x ** b[1]


def logistic(b: list[Any], x: float) -> Any:
    return b[0] / (1 + ca.exp(b[1] - b[2] * x))


def generalized_logistic(b: list[Any], x: float) -> Any:
    return b[0] / (1 + ca.exp(b[1] - b[2] * x)) ** (1 / b[3])


def gaussian_peak(b: list[Any], x: float) -> Any:
    return b[0] / b[1] * ca.exp(-0.5 * ((x - b[2]) / b[1]) ** 2)


def roszman(b: list[Any], x: float) -> Any:
    return b[0] - b[1] * x - ca.atan(b[2] / (x - b[3])) / pi


def cubic_ratio(b: list[Any], x: float) -> Any:
    above = b[0] + b[1] * x + b[2] * x**2 + b[3] * x**3
    return above / (1 + b[4] * x + b[5] * x**2 + b[6] * x**3)


def three_exponentials(b: list[Any], x: float) -> Any:
    return sum(b[k] * ca.exp(-b[k + 1] * x) for k in (0, 2, 4))


def misfit(data: nist.Data, model: Model, b: list[Any]) -> Sequence[Any]:
    return [y - model(b, x) for x, y in zip(*data, strict=True)]


def nist_systems() -> tuple[System, ...]:
    """Return the regressions."""
    return tuple(_fit(*row) for row in _ROWS)


def _fit(
    name: str,
    author: str,
    data: nist.Data,
    model: Model,
    starts: tuple[Point, Point],
    known_norm2: float,
    minimizer: Point,
) -> System:
    # Lanczos1 is exact up to the 13 digits of its data: a root to rounding.
    consistent = known_norm2 < 1e-20
    return define(
        f"nist-{name}",
        len(data[0]),
        partial(misfit, data, model),
        starts[0],
        source=f"NIST StRD, nonlinear regression, {name}: {author}",
        consistent=consistent,
        known_norm2=known_norm2,
        starts=starts[1:],
        minimizer=minimizer,
        digits=11,
        note="the residual at the root is the rounding of the 13-digit data" if consistent else "",
    )


_LANCZOS = ((1.2, 0.3, 5.6, 5.5, 6.5, 7.6), (0.5, 0.7, 3.6, 4.2, 4.0, 6.3))
# fmt: off
_ROWS: tuple[tuple[str, str, nist.Data, Model, tuple[Point, Point], float, Point], ...] = (
    ("misra1a", "Misra 1978", nist.MISRA, misra1a, ((500, 1e-4), (250, 5e-4)),
     1.2455138894e-1, (2.3894212918e2, 5.5015643181e-4)),
    ("misra1b", "Misra 1978", nist.MISRA, misra1b, ((500, 1e-4), (300, 2e-4)),
     7.5464681533e-2, (3.3799746163e2, 3.9039091287e-4)),
    ("misra1c", "Misra 1978", nist.MISRA, misra1c, ((500, 1e-4), (600, 2e-4)),
     4.0966836971e-2, (6.3642725809e2, 2.0813627256e-4)),
    ("misra1d", "Misra 1978", nist.MISRA, misra1d, ((500, 1e-4), (450, 3e-4)),
     5.6419295283e-2, (4.3736970754e2, 3.0227324449e-4)),
    ("danwood", "Daniel & Wood 1980", nist.DANWOOD, danwood, ((1, 5), (0.7, 4)),
     4.3173084083e-3, (7.6886226176e-1, 3.8604055871)),
    ("chwirut2", "Chwirut 197?", nist.CHWIRUT2, chwirut, ((0.1, 0.01, 0.02), (0.15, 0.008, 0.010)),
     5.1304802941e2, (1.6657666537e-1, 5.1653291286e-3, 1.2150007096e-2)),
    ("lanczos1", "Lanczos 1956", nist.LANCZOS1, three_exponentials, _LANCZOS, 1.4307867721e-25,
     (9.5100000027e-2, 1.0000000001, 8.6070000013e-1, 3.0000000002, 1.5575999998, 5.0000000001)),
    ("lanczos2", "Lanczos 1956", nist.LANCZOS2, three_exponentials, _LANCZOS, 2.2299428125e-11,
     (9.6251029939e-2, 1.0057332849, 8.6424689056e-1, 3.0078283915, 1.5529016879, 5.0028798100)),
    ("lanczos3", "Lanczos 1956", nist.LANCZOS3, three_exponentials, _LANCZOS, 1.6117193594e-8,
     (8.6816414977e-2, 9.5498101505e-1, 8.4400777463e-1, 2.9515951832, 1.5825685901, 4.9863565084)),
    ("roszman1", "Roszman 19??", nist.ROSZMAN1, roszman,
     ((0.1, -1e-5, 1000, -100), (0.2, -5e-6, 1200, -150)),
     4.9484847331e-4, (2.0196866396e-1, -6.1953516256e-6, 1.2044556708e3, -1.8134269537e2)),
    ("boxbod", "Box, Hunter & Hunter 1978", nist.BOXBOD, misra1a, ((1, 1), (100, 0.75)),
     1.1680088766e3, (2.1380940889e2, 5.4723748542e-1)),
    ("rat42", "Ratkowsky 1983", nist.RAT42, logistic, ((100, 1, 0.1), (75, 2.5, 0.07)),
     8.0565229338, (7.2462237576e1, 2.6180768402, 6.7359200066e-2)),
    ("rat43", "Ratkowsky 1983", nist.RAT43, generalized_logistic,
     ((100, 10, 1, 1), (700, 5, 0.75, 1.3)),
     8.7864049080e3, (6.9964151270e2, 5.2771253025, 7.5962938329e-1, 1.2792483859)),
    ("eckerle4", "Eckerle 197?", nist.ECKERLE4, gaussian_peak, ((1, 10, 500), (1.5, 5, 450)),
     1.4635887487e-3, (1.5543827178, 4.0888321754, 4.5154121844e2)),
    ("thurber", "Thurber 197?", nist.THURBER, cubic_ratio,
     ((1000, 1000, 400, 40, 0.7, 0.3, 0.03), (1300, 1500, 500, 75, 1, 0.4, 0.05)),
     5.6427082397e3, (1.2881396800e3, 1.4910792535e3, 5.8323836877e2, 7.5416644291e1,
                      9.6629502864e-1, 3.9797285797e-1, 4.9727297349e-2)),
)
# fmt: on
