"""The verdict on a point, for a person (``print``) and for a program (``to_dict``)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from casadi_hybrid.inputs import Vector
from casadi_hybrid.verify.curvature import SecondOrder
from casadi_hybrid.verify.ipopt import IpoptRun
from casadi_hybrid.verify.kkt import FirstOrder, Measure


class Rejection(Enum):
    """Why a point is rejected; the sentences of a report say it with numbers and names."""

    UNDEFINED = "the point, or a function of the problem there, is not finite"
    INFEASIBLE = "a constraint is violated"
    NOT_STATIONARY = "no multipliers satisfy the first-order condition"
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        run = self.run
        return {
            "relation": self.relation.name,
            "distance": self.distance,
            "f_difference": self.f_difference,
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
class Report:
    """The verdict on a point x of min f s.t. h = 0, with what it rests on. Immutable.

    Attributes:
        problem: name of the problem.
        x, f: the point and the objective there (NaN where undefined).
        tol: what counts as zero in the residuals.
        scaled: whether the scaled residuals are held against ``tol``.
        findings: the reasons for a rejection; none for an accepted point.
        notes: what a reader should know beside the verdict.
        first: first-order conditions; None where the functions are undefined.
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
    first: FirstOrder | None = None
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

    @property
    def multipliers(self) -> Vector | None:
        """The fitted multipliers, L = f + λᵀh."""
        return None if self.first is None else self.first.fit.multipliers

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain Python values, ready for JSON (NaN and Inf become None)."""
        first, second = self.first, self.second
        given = None if first is None else first.given
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
            "feasibility": first and _measure(first.feasibility),
            "stationarity": first and _measure(first.stationarity),
            "multipliers": first and first.fit.multipliers.tolist(),
            "given_multipliers": given
            and {
                "stationarity": _measure(given.stationarity),
                "stationarity_flipped": _measure(given.flipped),
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
        return "\n".join(_aligned(_rows(self)))


def _rows(report: Report) -> list[tuple[str, str]]:
    rows = [(f"{'ACCEPTED' if report.accepted else 'REJECTED'}", _headline(report))]
    rows += [("", reason) for reason in report.reasons]
    rows.append(("objective", f"{report.f + 0.0:.10g}"))
    if report.first is not None:
        rows += _first_rows(report, report.first)
    if report.second is not None:
        rows += _second_rows(report, report.second)
    for label, comparison in (("from x", report.restart), ("from x0", report.reference)):
        if comparison is not None:
            rows.append((f"IPOPT {label}", str(comparison)))
    return rows + [("note", note) for note in report.notes]


def _headline(report: Report) -> str:
    if report.accepted:
        assert report.second is not None
        return f"{report.problem}: a KKT point within {report.tol:.0e}, and {_verdict(report)}"
    count = len(report.findings)
    return f"{report.problem}: {count} reason{'s' if count > 1 else ''} against this point"


def _verdict(report: Report) -> str:
    assert report.second is not None
    return report.second.verdict.value


def _first_rows(report: Report, first: FirstOrder) -> list[tuple[str, str]]:
    fit = first.fit
    rows = [
        ("feasibility", f"{_residual(first.feasibility)}"),
        ("stationarity", f"{_residual(first.stationarity)}, fitted multipliers"),
    ]
    if first.given is not None:
        text = f"{_residual(first.given.stationarity)}, given multipliers"
        if first.given.distance is not None:
            text += f"; they differ from the fitted by {first.given.distance:.2e}"
        rows.append(("", text))
    unique = "unique" if fit.unique else "not unique"
    largest = float(np.abs(fit.multipliers).max())
    rows.append(
        (
            "Jacobian",
            f"{fit.multipliers.size}×{report.x.size}, rank {fit.rank}, condition "
            f"{fit.condition:.1e}; multipliers {unique}, largest {largest:.2e}",
        )
    )
    return rows


def _second_rows(report: Report, second: SecondOrder) -> list[tuple[str, str]]:
    rows = [("second order", f"{second.verdict.value}  [{second.verdict.name}]")]
    if second.smallest is not None:
        positive, negative, zero = second.inertia
        rows.append(
            (
                "ker J",
                f"Hessian of L with {positive} positive, {negative} negative, {zero} zero "
                f"eigenvalues; smallest {second.smallest:.3e}; {second.chosen} multipliers",
            )
        )
    return rows


def _residual(measure: Measure) -> str:
    return f"{measure.value:.2e}  (scaled {measure.scaled:.2e}; largest at {measure.where})"


def _aligned(rows: list[tuple[str, str]]) -> list[str]:
    return [
        f"{label if i == 0 else '':<14}{line}".rstrip()
        for label, text in rows
        for i, line in enumerate(text.split("\n"))
    ]


def _measure(measure: Measure) -> dict[str, Any]:
    return {"value": measure.value, "scaled": measure.scaled, "where": measure.where}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
