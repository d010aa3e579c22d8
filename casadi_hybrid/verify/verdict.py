"""Reasons to reject a point, and IPOPT's answer compared with it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from casadi_hybrid.verify.ipopt import IpoptRun


class Rejection(Enum):
    """Category of a reason to reject a point; the report's sentences add numbers and names."""

    UNDEFINED = "the point, or a function of the problem there, is not finite"
    INFEASIBLE = "a constraint is violated"
    INFEASIBLE_STATIONARY = "no small step reduces the violation"
    EXCEEDED_BETWEEN = "a limit is exceeded between the grid points"
    NOT_STATIONARY = "no multipliers satisfy the first-order condition"
    NOT_COMPLEMENTARY = "a constraint needs a multiplier though x is off its bound"
    WRONG_SIGN = "an active inequality would need a multiplier of the wrong sign"
    WRONG_MULTIPLIERS = "the given multipliers do not satisfy the first-order condition"
    FLIPPED_SIGN = "the given multipliers satisfy it after a change of sign"
    NOT_A_MINIMIZER = "a feasible direction leads to lower values of f"
    UNDECIDED = "the second-order condition could be neither proved nor refuted"
    IPOPT_MOVED = "IPOPT started at the point goes elsewhere"
    IPOPT_FAILED = "IPOPT could not be run from the point"


class Relation(Enum):
    """End of an IPOPT run relative to the judged point."""

    SAME_POINT = "the same point"
    LOWER = "another KKT point with lower f"
    HIGHER = "another KKT point with higher f"
    EQUAL = "another KKT point with the same f"
    NO_KKT_POINT = "no KKT point"
    NO_RUN = "no answer"


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason for a rejection: its category and its sentence."""

    category: Rejection
    sentence: str


@dataclass(frozen=True, eq=False)
class Comparison:
    """An IPOPT run compared with the judged point.

    Attributes:
        run: the run.
        relation: where it ended.
        distance: ‖x_IPOPT − x‖_∞.
        f_difference: f(x_IPOPT) − f(x).
        multiplier_difference: ‖λ_IPOPT − λ_fit‖_∞, None where it is another point or
            multipliers are not unique.
    """

    run: IpoptRun
    relation: Relation
    distance: float
    f_difference: float
    multiplier_difference: float | None

    @property
    def relative_difference(self) -> float:
        """f(x_IPOPT) − f(x) relative to max(1, |f(x_IPOPT)|)."""
        return self.f_difference / max(1.0, abs(self.run.f))

    @property
    def status(self) -> str:
        """IPOPT's return status."""
        return self.run.status

    @property
    def iterations(self) -> int:
        """IPOPT's iterations."""
        return self.run.iterations

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        run, conditions = self.run, self.run.conditions
        names = "x", "f", "multipliers", "form", "rho", "status", "iterations", "elapsed"
        values = {name: getattr(run, name) for name in names}
        values |= {
            "relation": self.relation,
            "distance": self.distance,
            "f_difference": self.f_difference,
            "relative_difference": self.relative_difference,
            "multiplier_difference": self.multiplier_difference,
            "feasibility": conditions and conditions.feasibility.value,
            "stationarity": conditions and conditions.stationarity.value,
            "rho_raises": run.raises,
        }
        plain: dict[str, Any] = plain_value(values)
        return plain

    def __str__(self) -> str:
        run = self.run
        form = "" if run.rho is None else f"; L1-elastic form, rho = {run.rho:g}"
        text = f"{self.relation.value}  [{run.status}, {run.iterations} iterations{form}]"
        if self.relation is Relation.NO_RUN:
            return text
        text += f"\ndistance {self.distance:.2e}, f difference {self.f_difference:+.2e}"
        if self.multiplier_difference is not None:
            text += f", multiplier difference {self.multiplier_difference:.2e}"
        return text


def plain_value(value: Any) -> Any:
    """Return dictionaries, lists, numbers and words, ready for JSON; NaN and Inf become None."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, np.ndarray):
        value = value.tolist()
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, dict):
        return {key: plain_value(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(entry) for entry in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
