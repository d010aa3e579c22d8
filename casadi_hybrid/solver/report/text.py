"""Names, numbers and times as the page shows them."""

from __future__ import annotations

import math


def printable(text: object, longest: int = 120) -> str:
    """Return the text with codes for unprintable characters and without its middle if it is long.

    The two ends stay, since long names differ there.
    """
    plain = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(text))
    half = (longest - 1) // 2
    return plain if len(plain) <= longest else f"{plain[:half]}…{plain[-half:]}"


def number(value: float, form: str = ".6g") -> str:
    """Return a number with a minus sign, and signs for infinite ones."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return format(value, form).replace("-", "−")


def seconds(value: float) -> str:
    """Return a time in s or ms."""
    return f"{number(value, '.3g')} s" if value >= 1.0 else f"{number(1e3 * value, '.3g')} ms"


def counted(many: int, noun: str) -> str:
    """Return ``3 rows``, ``1 row``."""
    return f"{many:,} {noun}{'' if many == 1 else 's'}"
