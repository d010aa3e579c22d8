"""The verdict on a point, for a person and for a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.verify.first_order.active import ActiveSet, Qualification
from casadi_hybrid.verify.first_order.infeasible import ViolationSlope
from casadi_hybrid.verify.first_order.kkt import FirstOrder, Given, PointResiduals
from casadi_hybrid.verify.first_order.rows import Measure
from casadi_hybrid.verify.second_order.curvature import SecondOrder
from casadi_hybrid.verify.verdict import Comparison, Finding, Rejection

UNBOUNDED = (
    "No row of g has a bound: where lbg and ubg are not given they are −∞ and ∞, as in CasADi, so "
    "that g limits nothing."
)
SHOWN = 6


@dataclass(frozen=True, eq=False)
class Report:
    """The verdict on a point, for a person (``print``) and for a program (``to_dict``). Immutable.

    Attributes:
        problem: name of the problem.
        x, f: the point and the objective there (NaN where undefined).
        tol: what counts as zero in the residuals.
        scaled: whether the scaled residuals are held against ``tol``.
        findings: the reasons for a rejection; none for an accepted point.
        notes: what a reader should know beside the verdict.
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
        """Whether nothing speaks against the point."""
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

    def exceeded(self, sentences: Sequence[str]) -> Report:
        """Return the report with limits that are exceeded between grid points as reasons more."""
        category = Rejection.EXCEEDED_BETWEEN
        found = [Finding(category, f"Between the grid points {text}.") for text in sentences]
        return replace(self, findings=(*self.findings, *found))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain Python values, ready for JSON (NaN and Inf become None)."""
        second = self.second
        data = {
            "problem": self.problem,
            "accepted": self.accepted,
            "reasons": [
                {"category": f.category.name, "sentence": f.sentence} for f in self.findings
            ],
            "notes": list(self.notes),
            "x": self.x.tolist(),
            "f": self.f,
            "tol": self.tol,
            "scaled": self.scaled,
            **self._facts(),
            "second_order": second
            and {
                "verdict": second.verdict.name,
                "inertia": list(second.inertia),
                "smallest_eigenvalue": second.smallest,
                "zero": second.zero,
                "direction": None if second.direction is None else second.direction.tolist(),
                "multipliers": second.multipliers.tolist(),
                "multipliers_from": second.chosen,
            },
            "ipopt_from_point": self.restart and self.restart.to_dict(),
            "ipopt_from_start": self.reference and self.reference.to_dict(),
        }
        plain: dict[str, Any] = _finite(data)
        return plain

    def __str__(self) -> str:
        late = [note for note in self.notes if note != UNBOUNDED]
        rows = [("ACCEPTED" if self.accepted else "REJECTED", self._headline())]
        rows += [("", said) for said in (*self.reasons, *self.notes) if said not in late]
        rows.append(("objective", f"{self.f + 0.0:.10g}"))
        rows += self._lines()
        for label, comparison in (("from x", self.restart), ("from x0", self.reference)):
            if comparison is not None:
                rows.append((f"IPOPT {label}", str(comparison)))
        return "\n".join(_aligned(rows + [("note", note) for note in late]))

    __repr__ = __str__

    def _facts(self) -> dict[str, Any]:
        first, active, qualification = self.first, self.active, self.qualification
        if first is None or active is None or qualification is None:
            return {"residuals": None}
        n = self.x.size
        given, violation = first.given, self.violation
        return {
            "residuals": _residuals(first.residuals),
            "lam_x": first.multipliers[:n].tolist(),
            "lam_g": first.multipliers[n:].tolist(),
            "given_residuals": given and _residuals(given.residuals),
            "given_distance": given and given.distance,
            "active": {
                kind: list(active.names_of(getattr(active, kind)))
                for kind in ("equations", "strong", "weak")
            },
            "qualification": {**asdict(qualification), "licq": qualification.licq},
            "violation": violation
            and {
                "kind": violation.kind,
                "slope": violation.slope._asdict(),
                "stationary": violation.stationary,
                "weights": violation.weights.tolist(),
            },
        }

    def _lines(self) -> list[tuple[str, str]]:
        first, active, qualification = self.first, self.active, self.qualification
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
        rows += _active_lines(active, qualification, first.multipliers)
        return rows if self.second is None else rows + _second_lines(self.second)

    def _headline(self) -> str:
        if self.accepted:
            assert self.second is not None
            verdict = self.second.verdict.value
            return f"{self.problem}: a KKT point within {self.tol:.0e}, and {verdict}"
        count = len(self.findings)
        return f"{self.problem}: {count} reason{'s' if count > 1 else ''} against this point"


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


def _residuals(residuals: PointResiduals) -> dict[str, Any]:
    return {name: measure._asdict() for name, measure in residuals._asdict().items()}


def _second_lines(second: SecondOrder) -> list[tuple[str, str]]:
    rows = [("second order", f"{second.verdict.value}  [{second.verdict.name}]")]
    if second.smallest is not None or second.counted is not None:
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


def _aligned(rows: list[tuple[str, str]]) -> list[str]:
    return [
        f"{label if i == 0 else '':<17}{line}".rstrip()
        for label, text in rows
        for i, line in enumerate(text.split("\n"))
    ]


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
