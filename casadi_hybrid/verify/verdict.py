"""What every report of the verifier has: findings, notes, the second order, IPOPT's runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.verify.first_order.measure import Measure
from casadi_hybrid.verify.ipopt import IpoptRun
from casadi_hybrid.verify.second_order.curvature import SecondOrder


class Rejection(Enum):
    """Why a point is rejected; the sentences of a report say it with numbers and names."""

    UNDEFINED = "the point, or a function of the problem there, is not finite"
    INFEASIBLE = "a constraint is violated"
    INFEASIBLE_STATIONARY = "no small step reduces the violation"
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
    """Where an IPOPT run ended, seen from the judged point."""

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
    """An IPOPT run beside the judged point.

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
        """IPOPT's own word."""
        return self.run.status

    @property
    def iterations(self) -> int:
        """IPOPT's iterations."""
        return self.run.iterations

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        run = self.run
        return {
            "relation": self.relation.name,
            "distance": self.distance,
            "f_difference": self.f_difference,
            "relative_difference": self.relative_difference,
            "multiplier_difference": self.multiplier_difference,
            "x": run.x.tolist(),
            "f": run.f,
            "multipliers": run.multipliers.tolist(),
            "feasibility": None if run.conditions is None else run.conditions.feasibility.value,
            "stationarity": None if run.conditions is None else run.conditions.stationarity.value,
            "form": run.form,
            "rho": run.rho,
            "rho_raises": run.raises,
            "status": run.status,
            "iterations": run.iterations,
            "elapsed": run.elapsed,
        }

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


@dataclass(frozen=True, eq=False)
class Verdict:
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
        rows = [("ACCEPTED" if self.accepted else "REJECTED", self._headline())]
        rows += [("", reason) for reason in self.reasons]
        rows.append(("objective", f"{self.f + 0.0:.10g}"))
        rows += self._lines()
        for label, comparison in (("from x", self.restart), ("from x0", self.reference)):
            if comparison is not None:
                rows.append((f"IPOPT {label}", str(comparison)))
        return "\n".join(_aligned(rows + [("note", note) for note in self.notes]))

    def _facts(self) -> dict[str, Any]:
        """The first-order part of :meth:`to_dict`."""
        return {}

    def _lines(self) -> list[tuple[str, str]]:
        """The lines between the objective and IPOPT: label and text."""
        return []

    def _headline(self) -> str:
        if self.accepted:
            assert self.second is not None
            return (
                f"{self.problem}: a KKT point within {self.tol:.0e}, and "
                f"{self.second.verdict.value}"
            )
        count = len(self.findings)
        return f"{self.problem}: {count} reason{'s' if count > 1 else ''} against this point"


def second_lines(second: SecondOrder) -> list[tuple[str, str]]:
    """The lines of a report on the second order."""
    rows = [("second order", f"{second.verdict.value}  [{second.verdict.name}]")]
    if second.smallest is not None or second.counted is not None:
        positive, negative, zero = second.inertia
        smallest = "" if second.smallest is None else f"smallest {second.smallest:.3e}; "
        rows.append(
            (
                "ker J",
                f"Hessian of L with {positive} positive, {negative} negative, {zero} zero "
                f"eigenvalues; {smallest}{second.chosen} multipliers",
            )
        )
    return rows


def residual_text(measure: Measure) -> str:
    """One residual for a person."""
    return f"{measure.value:.2e}  (scaled {measure.scaled:.2e}; largest at {measure.where})"


def measure_dict(measure: Measure) -> dict[str, Any]:
    """One residual for a program."""
    return {"value": measure.value, "scaled": measure.scaled, "where": measure.where}


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
