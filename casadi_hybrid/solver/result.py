"""The immutable result of a solve, with its explanation and its report."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from casadi_hybrid.problem.graph.derivatives import EXACT, MEANING
from casadi_hybrid.solver.record.answer import Answer
from casadi_hybrid.utils.errors import MissingNumberError
from casadi_hybrid.utils.status import StopReason


@dataclass(frozen=True, eq=False, kw_only=True)
class Result(Answer):
    """Result of a solve; :class:`~casadi_hybrid.solver.record.answer.Answer` has its attributes."""

    def findings(self) -> tuple[str, ...]:
        """Sentences on violations, dependent rows, diverging iterates and bad scaling."""
        from casadi_hybrid.solver.explain.findings import findings  # noqa: PLC0415 (scipy.optimize)

        return (*findings(self), *(f"Remark: {remark}." for remark in self.remarks))

    def explain(self) -> str:
        """Explain in sentences the end of the solve, the point, and the cause of a failure.

        At a point from which the violation cannot be reduced, the cause comes first.
        """
        kinds = [
            f"{kind} {value:.2e}{place and f' at {place}'} (at most {tolerance:g})"
            for kind, value, tolerance, place in self._measured()
        ]
        head = [
            f"Stopped after {self.iterations} iterations: {self.stop.value}.",
            f"The point: {self.point.value}{self.success * f'; {self.conditions.value}'}.",
        ]
        value = f": f(x) = {self.f:.10g}" if np.isfinite(self.f) else " is not known there"
        lines = [f"The objective{value}.", f"Residuals: {', '.join(kinds)}."]
        if self.hessian != EXACT:
            lines.append(f"The Hessian: {MEANING[self.hessian]}.")
        undefined = self._undefined_start()
        if self.detail and not undefined and self.stop is not StopReason.LOCALLY_INFEASIBLE:
            lines.append(f"Detail: {self.detail}.")
        # The conflict is what a reader of an infeasible solve needs: it comes first.
        if self.infeasible:
            return "\n".join([*head, *self.findings(), *lines])
        return "\n".join([*head, *lines, *undefined, *self.findings()])

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write one self-contained HTML page of the solve, and return its path.

        The page has both statuses, the explanation, curves of the residuals and of the barrier, the
        active set over the iterations, multipliers by name, the structure of the KKT matrix, the
        work of the solve, its options and the versions. It names missing records and the way to
        them; ``history=True`` at the solve records all.

        Args:
            path: file to write, ``.html``; an existing file is replaced.

        Raises:
            InputError: for a value that is no path, another suffix, or a missing folder.
            OSError: if the file cannot be written.
        """
        from casadi_hybrid.solver.report.page import write_page  # noqa: PLC0415 - only for this

        return write_page(self, self.explain, path)

    def _measured(self) -> Iterator[tuple[str, float, float, str]]:
        """Each meaningful residual: kind, value, tolerance, and the name of its largest entry."""
        kinds = ("feasibility", "stationarity", "complementarity")
        complementary = self.bounds.inequalities or self.residuals.complementarity > 0.0
        # Where the violation cannot be reduced, the multipliers grow without a meaning.
        for kind in kinds[: 1 if self.infeasible else 3 if complementary else 2]:
            place = self.worst() if kind == "feasibility" else ""
            yield kind, getattr(self.residuals, kind), getattr(self.tolerances, kind), place

    def _undefined_start(self) -> list[str]:
        """Sentences on a function that is not defined at the start, and on remedies."""
        error = self.error
        if error is None or self.stop is not StopReason.EVALUATION_ERROR or self.iterations:
            return []
        if isinstance(error, MissingNumberError):
            return [f"{error}."]
        moved = error.x is not None and not np.array_equal(error.x, self.x0)
        bounded = self.for_bounds
        if moved and not bounded:
            return []  # a trial point of the first step
        lines = [f"At the start{', moved inside its bounds' if moved else ''}: {error.fault()}."]
        remedy = "or write the function so that it is defined there."
        if not bounded:
            return [*lines, f"Start from another x0, {remedy}"]
        if np.isfinite(error.objective):
            kink = "Only this derivative is undefined, as those of norm_2 and sqrt are at 0."
            lines.append(kink)
        bound = "bound the variables so that the argument stays in its domain"
        return [*lines, f"Start from another x0, {bound},", remedy]

    def __str__(self) -> str:
        calls = ", ".join(f"{count} {kind}" for kind, count in self.evaluations.items() if count)
        rows = [
            ("problem", f"{self.problem}  (n = {self.x.size}, m = {self.g.size})"),
            ("method", self.method),
            ("stopped", f"{self.stop.value}  [{self.stop.name}]"),
            ("point", f"{self.point.value}  [{self.point.name}]"),
            ("objective", f"{self.f:.10g}"),
        ]
        for kind, value, tolerance, place in self._measured():
            where = place and f"; largest at {place}"
            rows.append((kind, f"{value:.2e}  (tolerance {tolerance:.0e}{where})"))
        took = f"{self.iterations}  ({calls or 'no'} evaluations, {self.elapsed:.3g} s)"
        rows.append(("iterations", took))
        if self.hessian != EXACT:
            rows.append(("Hessian", MEANING[self.hessian]))
        if self.detail:
            rows.append(("detail", self.detail))
        rows += [("remark", remark) for remark in self.remarks]
        width = 1 + max(len(label) for label, _ in rows)
        return "\n".join(f"{label:<{width}}{text}" for label, text in rows)

    __repr__ = __str__
