"""The verdict on a point, for a person and for a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.verify.first_order.active import ActiveSet
from casadi_hybrid.verify.first_order.infeasible import ViolationSlope
from casadi_hybrid.verify.first_order.kkt import Given, PointResiduals
from casadi_hybrid.verify.first_order.rows import Measure
from casadi_hybrid.verify.ipopt import IpoptRun
from casadi_hybrid.verify.second_order.curvature import SecondOrder

UNBOUNDED = (
    "No row of g has a bound: where lbg and ubg are not given they are −∞ and ∞, as in CasADi, so "
    "that g limits nothing."
)
SHOWN = 6
RESIDUALS = PointResiduals._fields


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
class Comparison(IpoptRun):
    """An IPOPT run compared with the judged point.

    Attributes:
        relation: its end relative to the point.
        distance: ‖x_IPOPT − x‖_∞.
        f_difference: f(x_IPOPT) − f(x).
        multiplier_difference: ‖λ_IPOPT − λ_fit‖_∞; None for another point or if multipliers are
            not unique.
    """

    relation: Relation
    distance: float
    f_difference: float
    multiplier_difference: float | None

    @property
    def relative_difference(self) -> float:
        """f(x_IPOPT) − f(x) relative to max(1, |f(x_IPOPT)|)."""
        return self.f_difference / max(1.0, abs(self.f))

    def __str__(self) -> str:
        form = "" if self.rho is None else f"; L1-elastic form, rho = {self.rho:g}"
        text = f"{self.relation.value}  [{self.status}, {self.iterations} iterations{form}]"
        if self.relation is Relation.NO_RUN:
            return text
        text += f"\ndistance {self.distance:.2e}, f difference {self.f_difference:+.2e}"
        if self.multiplier_difference is not None:
            text += f", multiplier difference {self.multiplier_difference:.2e}"
        return text


@dataclass(frozen=True, eq=False)
class Report:
    """The verdict on a point, for a person (``print``) and for a program (``to_dict``). Immutable.

    All but the first six attributes are None if a function is undefined at x.

    Attributes:
        problem: name of the problem.
        x, f: the point and the objective there (NaN if undefined).
        tol: tolerance on the residuals.
        scaled: True if the scaled residuals are compared with ``tol``.
        findings: the reasons for a rejection; empty for an accepted point.
        notes: remarks that do not change the verdict.
        feasibility: the largest violation of a bound or a constraint.
        stationarity: ‖∇f + J_gᵀlam_g + lam_x‖_∞ with the fitted multipliers.
        complementarity: the largest |multiplier|·(distance to its bound).
        dual_sign: the largest multiplier of the wrong sign.
        lam_x, lam_g: the fitted multipliers of the bounds on x and of the constraints.
        given: residuals of the multipliers that came with the point; None without.
        active: the active set.
        rank: rank of the active rows' Jacobian.
        condition: its condition number on the free variables, row-scaled; None for large ones.
        licq: linear independence of the active gradients.
        mfcq: condition of Mangasarian and Fromovitz.
        second: second-order condition; None unless the first-order ones hold.
        violation: for an infeasible point, distance of its violation from stationary.
        restart: IPOPT started at x; None if it was not run.
        reference: IPOPT started at the start of the solve; None if it was not run.
    """

    problem: str
    x: Vector
    f: float
    tol: float
    scaled: bool
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    feasibility: Measure | None = None
    stationarity: Measure | None = None
    complementarity: Measure | None = None
    dual_sign: Measure | None = None
    lam_x: Vector | None = None
    lam_g: Vector | None = None
    given: Given | None = None
    active: ActiveSet | None = None
    rank: int | None = None
    condition: float | None = None
    licq: bool | None = None
    mfcq: bool | None = None
    second: SecondOrder | None = None
    violation: ViolationSlope | None = None
    restart: Comparison | None = None
    reference: Comparison | None = None

    @property
    def accepted(self) -> bool:
        """Absence of reasons against the point."""
        return not self.findings

    @property
    def reasons(self) -> tuple[str, ...]:
        """Sentence of each reason to reject the point."""
        return tuple(finding.sentence for finding in self.findings)

    @property
    def categories(self) -> tuple[Rejection, ...]:
        """The category of each reason, in the same order."""
        return tuple(finding.category for finding in self.findings)

    @property
    def inertia(self) -> tuple[int, int, int] | None:
        """Positive, negative and zero eigenvalues of the Hessian of L on ker A of binding rows."""
        return None if self.second is None else self.second.inertia

    @property
    def infeasible_stationary(self) -> bool:
        """True if x is infeasible and no small step reduces the violation."""
        return self.violation is not None and self.violation.stationary

    @property
    def comparison(self) -> Comparison | None:
        """IPOPT from the start of the solve if it is known, else from x."""
        return self.reference or self.restart

    def exceeded(self, sentences: Sequence[str]) -> Report:
        """Return the report with limits exceeded between grid points as further reasons."""
        category = Rejection.EXCEEDED_BETWEEN
        between = [Finding(category, f"Between the grid points {text}.") for text in sentences]
        return replace(self, findings=(*self.findings, *between))

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as plain Python values, ready for JSON (NaN and Inf become None).

        Active rows stand by their names.
        """
        active = self.active
        names = active and {kind: active.names_of(getattr(active, kind)) for kind in active.KINDS}
        data: dict[str, Any] = _plain({"accepted": self.accepted, **vars(self), "active": names})
        return data

    def __str__(self) -> str:
        count = len(self.findings)
        head = f"{count} reason{'s' if count > 1 else ''} against this point"
        if self.second is not None and self.accepted:
            head = f"a KKT point within {self.tol:.0e}, and {self.second.verdict.value}"
        # The note on missing bounds stands with the reasons; all others come last.
        late = [note for note in self.notes if note != UNBOUNDED]
        rows = [("ACCEPTED" if self.accepted else "REJECTED", f"{self.problem}: {head}")]
        rows += [("", text) for text in (*self.reasons, *self.notes) if text not in late]
        # −0 is printed as 0.
        rows.append(("objective", f"{self.f + 0.0:.10g}"))
        if self.active is not None:
            rows += self._facts(self.active)
        for label, comparison in (("from x", self.restart), ("from x0", self.reference)):
            if comparison is not None:
                rows.append((f"IPOPT {label}", str(comparison)))
        return "\n".join(
            f"{'' if i else label:<17}{line}".rstrip()
            for label, text in rows + [("note", note) for note in late]
            for i, line in enumerate(text.split("\n"))
        )

    __repr__ = __str__

    def _facts(self, active: ActiveSet) -> list[tuple[str, str]]:
        rows = [(name.replace("_", " "), _text(getattr(self, name))) for name in RESIDUALS]
        if self.given is not None:
            worst = max(self.given.residuals[1:], key=lambda measure: measure.value)
            text = f"{_text(worst)}, the worst with given multipliers"
            if self.given.distance is not None:
                text += f"; they differ from the fitted by {self.given.distance:.2e}"
            rows.append(("given", text))
        lines = [
            f"{indices.size} {label} active: {', '.join(active.names_of(indices[:SHOWN]))}"
            + (", …" if indices.size > SHOWN else "")
            for label, indices in (("strongly", active.strong), ("weakly", active.weak))
            if indices.size
        ]
        both = [lam for lam in (self.lam_x, self.lam_g) if lam is not None]
        largest = float(np.abs(np.concatenate(both)).max())
        lines += [
            f"{active.equations.size} equations; rank {self.rank} of {active.all.size} active "
            f"gradients; largest multiplier {largest:.2e}",
            f"LICQ {'holds' if self.licq else 'fails'}, MFCQ {'holds' if self.mfcq else 'fails'}",
        ]
        rows.append(("active set", "\n".join(lines)))
        second = self.second
        if second is not None:
            rows.append(("second order", f"{second.verdict.value}  [{second.verdict.name}]"))
        if second is not None and any(second.inertia):
            positive, negative, zero = second.inertia
            smallest = "" if second.smallest is None else f"smallest {second.smallest:.3e}; "
            text = (
                f"Hessian of L with {positive} positive, {negative} negative, {zero} zero "
                f"eigenvalues; {smallest}{second.chosen} multipliers"
            )
            rows.append(("ker J", text))
        return rows


def _text(measure: Measure) -> str:
    return f"{measure.value:.2e}  (scaled {measure.scaled:.2e}; largest at {measure.where})"


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, np.ndarray):
        value = value.tolist()
    # Before the test for tuples: a named tuple is one.
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
