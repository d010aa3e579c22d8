"""The verdict on a point of a nonlinear program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.verify.first_order.active import ActiveSet, Qualification
from casadi_hybrid.verify.first_order.infeasible import ViolationSlope
from casadi_hybrid.verify.first_order.kkt import NlpFirstOrder, NlpGiven, Residuals
from casadi_hybrid.verify.first_order.measure import Measure
from casadi_hybrid.verify.verdict import (
    Comparison,
    Verdict,
    measure_dict,
    residual_text,
    second_lines,
)

SHOWN = 6
RESIDUALS = ("feasibility", "stationarity", "complementarity", "dual_sign")


@dataclass(frozen=True, eq=False)
class NlpReport(Verdict):
    """The verdict on a point of min f s.t. lbg ≤ g ≤ ubg, lbx ≤ x ≤ ubx; see :class:`.Verdict`.

    Attributes:
        first: first-order conditions; None where the functions are undefined.
        active: the active set; None where the functions are undefined.
        qualification: rank, LICQ and MFCQ of the active gradients; None likewise.
        violation: for an infeasible point, how far its violation is from stationary.
    """

    first: NlpFirstOrder | None = None
    active: ActiveSet | None = None
    qualification: Qualification | None = None
    violation: ViolationSlope | None = None

    @property
    def feasibility(self) -> Measure | None:
        """The largest violation of a bound or a constraint."""
        return None if self.first is None else self.first.residuals.feasibility

    @property
    def stationarity(self) -> Measure | None:
        """‖∇f + J_gᵀlam_g + lam_x‖_∞ with the fitted multipliers."""
        return None if self.first is None else self.first.residuals.stationarity

    @property
    def complementarity(self) -> Measure | None:
        """The largest |multiplier|·(distance to its bound)."""
        return None if self.first is None else self.first.residuals.complementarity

    @property
    def dual_sign(self) -> Measure | None:
        """The largest multiplier of the wrong sign."""
        return None if self.first is None else self.first.residuals.dual_sign

    @property
    def given(self) -> NlpGiven | None:
        """How the multipliers that came with the point fare; None without."""
        return None if self.first is None else self.first.given

    @property
    def lam_x(self) -> Vector | None:
        """The fitted multipliers of the bounds on x."""
        return None if self.first is None else self.first.multipliers[: self.x.size]

    @property
    def lam_g(self) -> Vector | None:
        """The fitted multipliers of the constraints."""
        return None if self.first is None else self.first.multipliers[self.x.size :]

    @property
    def rank(self) -> int | None:
        """Rank of the active rows' Jacobian."""
        return None if self.qualification is None else self.qualification.rank

    @property
    def licq(self) -> bool | None:
        """Whether the active gradients are linearly independent."""
        return None if self.qualification is None else self.qualification.licq

    @property
    def mfcq(self) -> bool | None:
        """The condition of Mangasarian and Fromovitz; None where it was not decided."""
        return None if self.qualification is None else self.qualification.mfcq

    @property
    def inertia(self) -> tuple[int, int, int] | None:
        """Positive, negative and zero eigenvalues of the Hessian of L on ker A of binding rows."""
        return None if self.second is None else self.second.inertia

    @property
    def infeasible_stationary(self) -> bool:
        """Whether x is infeasible and no small step reduces the violation."""
        return self.violation is not None and self.violation.stationary

    @property
    def comparison(self) -> Comparison | None:
        """IPOPT from the start of the solve where that is known, else from x."""
        return self.restart if self.reference is None else self.reference

    def _facts(self) -> dict[str, Any]:
        first, active, qualification = self.first, self.active, self.qualification
        if first is None or active is None or qualification is None:
            return {"residuals": None}
        n = self.x.size
        given = first.given
        return {
            "residuals": _residuals(first.residuals),
            "lam_x": first.multipliers[:n].tolist(),
            "lam_g": first.multipliers[n:].tolist(),
            "given_residuals": given and _residuals(given.residuals),
            "active": {
                "equations": list(active.names_of(active.equations)),
                "strong": list(active.names_of(active.strong)),
                "weak": list(active.names_of(active.weak)),
            },
            "qualification": {
                "active": qualification.active,
                "rank": qualification.rank,
                "condition": qualification.condition,
                "licq": qualification.licq,
                "mfcq": qualification.mfcq,
            },
            "violation": self.violation
            and {
                "kind": self.violation.kind,
                "slope": measure_dict(self.violation.slope),
                "stationary": self.violation.stationary,
                "weights": self.violation.weights.tolist(),
            },
        }

    def _lines(self) -> list[tuple[str, str]]:
        first, active, qualification = self.first, self.active, self.qualification
        if first is None or active is None or qualification is None:
            return []
        rows = [
            (name.replace("_", " "), residual_text(getattr(first.residuals, name)))
            for name in RESIDUALS
        ]
        if first.given is not None:
            worst = max(
                (getattr(first.given.residuals, name) for name in RESIDUALS[1:]),
                key=lambda measure: measure.value,
            )
            rows.append(("given", f"{residual_text(worst)}, the worst with given multipliers"))
        rows += _active_lines(active, qualification, first.multipliers)
        return rows if self.second is None else rows + second_lines(self.second)


def _active_lines(
    active: ActiveSet, qualification: Qualification, multipliers: Vector
) -> list[tuple[str, str]]:
    lines = []
    for label, rows in (("strongly", active.strong), ("weakly", active.weak)):
        if rows.size:
            names = active.names_of(rows[:SHOWN])
            more = ", …" if rows.size > SHOWN else ""
            lines.append(f"{rows.size} {label} active: {', '.join(names)}{more}")
    lines.append(
        f"{active.equations.size} equations; rank {qualification.rank} of {qualification.active} "
        f"active gradients; largest multiplier {float(np.abs(multipliers).max()):.2e}"
    )
    words = {True: "holds", False: "fails", None: "not decided"}
    lines.append(f"LICQ {words[qualification.licq]}, MFCQ {words[qualification.mfcq]}")
    return [("active set", "\n".join(lines))]


def _residuals(residuals: Residuals) -> dict[str, Any]:
    return {name: measure_dict(getattr(residuals, name)) for name in RESIDUALS}
