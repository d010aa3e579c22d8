"""Between plant and controller: noise, lost and late measurements."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import count
from casadi_hybrid.control.loop.noise import covariance, draw, factor
from casadi_hybrid.control.loop.table import Places
from casadi_hybrid.control.signals import Array


class Channel:
    """Adds noise to measurements, loses some and hands the others on late.

    Args:
        places: the rows of each measured name.
        noise: see :func:`~casadi_hybrid.control.loop.noise.covariance`.
        dropout: probability that a measurement is lost, all of its entries at once.
        delay: steps that a measurement takes.
        seeds: one of the noise and one of the losses, so that neither changes the other.
    """

    def __init__(
        self, places: Places, noise: Any, dropout: float, delay: int, seeds: list[Any]
    ) -> None:
        if not isinstance(dropout, int | float) or not 0.0 <= dropout <= 1.0:
            raise InputError(f"dropout must be a probability from 0 to 1, got {dropout!r}")
        self._root = factor(covariance(noise, places, "noise"))
        self._dropout = dropout
        self._late: deque[Array | None] = deque([None] * count(delay, "measurement_delay"))
        self._noise, self._losses = (np.random.default_rng(seed) for seed in seeds)

    def send(self, shown: Array) -> Array | None:
        """Take what the sensors show now; return what arrives now, or None."""
        # Both are drawn at every step: a loss does not move the noise of later steps.
        seen = shown + draw(self._noise, self._root)
        lost = self._losses.random() < self._dropout
        self._late.append(None if lost else seen)
        return self._late.popleft()
