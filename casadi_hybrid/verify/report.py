"""The verdict on a point of an equality-constrained problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.verify.kkt import FirstOrder
from casadi_hybrid.verify.verdict import Verdict, measure_dict, residual_text, second_lines


@dataclass(frozen=True, eq=False)
class Report(Verdict):
    """The verdict on a point x of min f s.t. h = 0, with what it rests on; see :class:`.Verdict`.

    Attributes:
        first: first-order conditions; None where the functions are undefined.
    """

    first: FirstOrder | None = None

    @property
    def multipliers(self) -> Vector | None:
        """The fitted multipliers, L = f + λᵀh."""
        return None if self.first is None else self.first.fit.multipliers

    def _facts(self) -> dict[str, Any]:
        first = self.first
        given = None if first is None else first.given
        return {
            "feasibility": first and measure_dict(first.feasibility),
            "stationarity": first and measure_dict(first.stationarity),
            "multipliers": first and first.fit.multipliers.tolist(),
            "given_multipliers": given
            and {
                "stationarity": measure_dict(given.stationarity),
                "stationarity_flipped": measure_dict(given.flipped),
                "distance": given.distance,
            },
            "jacobian": first
            and {
                "rank": first.fit.rank,
                "m": first.fit.multipliers.size,
                "n": self.x.size,
                "condition": first.fit.condition,
                "unique_multipliers": first.fit.unique,
            },
        }

    def _lines(self) -> list[tuple[str, str]]:
        rows = [] if self.first is None else _first_lines(self.x.size, self.first)
        return rows if self.second is None else rows + second_lines(self.second)


def _first_lines(n: int, first: FirstOrder) -> list[tuple[str, str]]:
    fit = first.fit
    rows = [
        ("feasibility", f"{residual_text(first.feasibility)}"),
        ("stationarity", f"{residual_text(first.stationarity)}, fitted multipliers"),
    ]
    if first.given is not None:
        text = f"{residual_text(first.given.stationarity)}, given multipliers"
        if first.given.distance is not None:
            text += f"; they differ from the fitted by {first.given.distance:.2e}"
        rows.append(("", text))
    unique = "unique" if fit.unique else "not unique"
    largest = float(np.abs(fit.multipliers).max())
    rows.append(
        (
            "Jacobian",
            f"{fit.multipliers.size}×{n}, rank {fit.rank}, condition "
            f"{fit.condition:.1e}; multipliers {unique}, largest {largest:.2e}",
        )
    )
    return rows
