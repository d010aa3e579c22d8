"""One step of an integrator, for the small control problems of the tests."""

from collections.abc import Callable
from typing import Any


def runge_kutta(rate: Callable[[Any, Any], Any], x: Any, u: Any, h: Any) -> Any:
    """Return x after one step h of order four of x' = rate(x, u) under a constant control u."""
    k1 = rate(x, u)
    k2 = rate(x + h / 2 * k1, u)
    k3 = rate(x + h / 2 * k2, u)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(x + h * k3, u))
