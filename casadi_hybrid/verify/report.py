"""The verdict on a point, for a person and for a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.verify.first_order.active import ActiveSet, Qualification
from casadi_hybrid.verify.first_order.infeasible import ViolationSlope
from casadi_hybrid.verify.first_order.kkt import FirstOrder, Given
from casadi_hybrid.verify.first_order.rows import Measure
from casadi_hybrid.verify.second_order.curvature import SecondOrder
from casadi_hybrid.verify.verdict import Comparison, Finding, Rejection, plain_value

UNBOUNDED = (
    "No row of g has a bound: where lbg and ubg are not given they are −∞ and ∞, as in CasADi, so "
    "that g limits nothing."
)
SHOWN = 6
_KINDS = "equations", "strong", "weak"
_HOLDS = {True: "holds", False: "fails", None: "not decided"}


@dataclass(frozen=True, eq=False)
class Report:
    """The verdict on a point, for a person (``print``) and for a program (``to_dict``). Immutable.

    Attributes:
        problem: name of the problem.
        x, f: the point and the objective there (NaN where undefined).
        tol: tolerance on the residuals.
        scaled: whether the scaled residuals are held against ``tol``.
        findings: the reasons for a rejection; none for an accepted point.
        notes: remarks that do not change the verdict.
        second: second-order condition; None unless the first-order ones hold.
        restart: IPOPT started at x; None where it was not run.
        reference: IPOPT started where the solver had started; None where it was not run.
        first: first-order conditions; None where the functions are undefined.
        active: the active set; None likewise.
        qualification: rank, LICQ and MFCQ of the active gradients; None likewise.
        violation: for an infeasible point, how far its violation is from stationary.
    """

    problem: str
    x: Vector
    f: float
    tol: float
    scaled: bool
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    second: SecondOrder | None = None
    restart: Comparison | None = None
    reference: Comparison | None = None
    first: FirstOrder | None = None
    active: ActiveSet | None = None
    qualification: Qualification | None = None
    violation: ViolationSlope | None = None

    @property
    def accepted(self) -> bool:
        """Absence of reasons against the point."""
        return not self.findings

    @property
    def reasons(self) -> tuple[str, ...]:
        """One sentence for each reason to reject the point."""
        return tuple(finding.sentence for finding in self.findings)

    @property
    def categories(self) -> tuple[Rejection, ...]:
        """The category of each reason, in the same order."""
        return tuple(finding.category for finding in self.findings)

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
    def given(self) -> Given | None:
        """Residuals of the multipliers that came with the point; None without."""
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
        """Linear independence of the active gradients."""
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
        """Proof that x is infeasible and no small step reduces the violation."""
        return self.violation is not None and self.violation.stationary

    @property
    def comparison(self) -> Comparison | None:
        """IPOPT from the start of the solve where that is known, else from x."""
        return self.reference or self.restart

    def exceeded(self, sentences: Sequence[str]) -> Report:
        """Return the report with limits exceeded between grid points as further reasons."""
        category = Rejection.EXCEEDED_BETWEEN
        between = [Finding(category, f"Between the grid points {text}.") for text in sentences]
        return replace(self, findings=(*self.findings, *between))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain Python values, ready for JSON (NaN and Inf become None)."""
        first, given, active, second = self.first, self.given, self.active, self.second
        qualification, violation = self.qualification, self.violation
        names = "problem", "accepted", "notes", "x", "f", "tol", "scaled", "lam_x", "lam_g"
        data = {name: getattr(self, name) for name in names} | {
            "reasons": self.findings,
            "residuals": first and first.residuals,
            "given_residuals": given and given.residuals,
            "given_distance": given and given.distance,
            "active": active and {kind: active.names_of(getattr(active, kind)) for kind in _KINDS},
            "qualification": qualification
            and {**asdict(qualification), "licq": qualification.licq},
            "violation": violation and {**vars(violation), "stationary": violation.stationary},
            "second_order": second
            and {
                "verdict": second.verdict,
                "inertia": second.inertia,
                "smallest_eigenvalue": second.smallest,
                "zero": second.zero,
                "direction": second.direction,
                "multipliers": second.multipliers,
                "multipliers_from": second.chosen,
            },
            "ipopt_from_point": self.restart and self.restart.to_dict(),
            "ipopt_from_start": self.reference and self.reference.to_dict(),
        }
        plain: dict[str, Any] = plain_value(data)
        return plain

    def __str__(self) -> str:
        late = [note for note in self.notes if note != UNBOUNDED]
        rows = [("ACCEPTED" if self.accepted else "REJECTED", self._headline())]
        rows += [("", text) for text in (*self.reasons, *self.notes) if text not in late]
        rows += [("objective", f"{self.f + 0.0:.10g}"), *self._lines()]
        for label, comparison in (("from x", self.restart), ("from x0", self.reference)):
            if comparison is not None:
                rows.append((f"IPOPT {label}", str(comparison)))
        return "\n".join(
            f"{'' if i else label:<17}{line}".rstrip()
            for label, text in rows + [("note", note) for note in late]
            for i, line in enumerate(text.split("\n"))
        )

    __repr__ = __str__

    def _headline(self) -> str:
        if self.second is not None and self.accepted:
            verdict = self.second.verdict.value
            return f"{self.problem}: a KKT point within {self.tol:.0e}, and {verdict}"
        count = len(self.findings)
        return f"{self.problem}: {count} reason{'s' if count > 1 else ''} against this point"

    def _lines(self) -> list[tuple[str, str]]:
        first, active, qualification, second = (
            self.first,
            self.active,
            self.qualification,
            self.second,
        )
        if first is None or active is None or qualification is None:
            return []
        residuals = first.residuals._asdict()
        rows = [(name.replace("_", " "), _residual_text(one)) for name, one in residuals.items()]
        if first.given is not None:
            worst = max(first.given.residuals[1:], key=lambda measure: measure.value)
            text = f"{_residual_text(worst)}, the worst with given multipliers"
            if first.given.distance is not None:
                text += f"; they differ from the fitted by {first.given.distance:.2e}"
            rows.append(("given", text))
        lines = [
            f"{indices.size} {label} active: {', '.join(active.names_of(indices[:SHOWN]))}"
            + (", …" if indices.size > SHOWN else "")
            for label, indices in (("strongly", active.strong), ("weakly", active.weak))
            if indices.size
        ]
        lines += [
            f"{active.equations.size} equations; rank {qualification.rank} of "
            f"{qualification.active} active gradients; largest multiplier "
            f"{float(np.abs(first.multipliers).max()):.2e}",
            f"LICQ {_HOLDS[qualification.licq]}, MFCQ {_HOLDS[qualification.mfcq]}",
        ]
        rows.append(("active set", "\n".join(lines)))
        if second is not None:
            rows.append(("second order", f"{second.verdict.value}  [{second.verdict.name}]"))
            if any(second.inertia):
                positive, negative, zero = second.inertia
                smallest = "" if second.smallest is None else f"smallest {second.smallest:.3e}; "
                text = (
                    f"Hessian of L with {positive} positive, {negative} negative, {zero} zero "
                    f"eigenvalues; {smallest}{second.chosen} multipliers"
                )
                rows.append(("ker J", text))
        return rows


def _residual_text(measure: Measure) -> str:
    return f"{measure.value:.2e}  (scaled {measure.scaled:.2e}; largest at {measure.where})"
