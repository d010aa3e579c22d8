"""Verdicts on the paper's statements about its experiment: statistic, threshold, figures.

The same code computes each statistic from the runs and from the printed tables. A statement whose
computation fails has the outcome FAILS, and the reason.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from casadi_hybrid.paper.experiment import printed
from casadi_hybrid.paper.experiment.experiment import LABELS
from casadi_hybrid.paper.experiment.generator import CONDITIONS
from casadi_hybrid.paper.experiment.norms import RATIO, ZEROS, Norms
from casadi_hybrid.paper.experiment.tables import FAILS, FIVE, Cell, Summary
from casadi_hybrid.paper.iterations import PrimalDualHybridGradient

HOLDS, IN_PART, REFUTED = "holds", "holds in part", "does not hold"
SILENT = "not judged"  # without any figure
MILD, HIGH = (1, 2, 3, 5), (8, 13)
ONE_METHOD = (5, 8, 13)  # levels at which S1 and S3 bind under either margin
RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "≤": operator.le,
    ">": operator.gt,
    "≥": operator.ge,
    "within a factor of": lambda value, factor: 1 / factor <= value <= factor,
}
# The cells of one level by method.
Level = Callable[[str], Cell]


def printed_cells() -> Summary:
    """Return the print as cells: as many hits as in table 1, or five, at the median of table 2."""
    summary: Summary = {}
    for key in printed.SUCCESS | printed.HITS:
        summary[key], hits = {}, printed.HITS.get(key, {})
        for c in CONDITIONS:
            count = printed.SUCCESS.get(key, {}).get(c, FIVE * (hits.get(c) is not None))
            summary[key][c] = Cell(FIVE, dict.fromkeys(range(count), hits.get(c) or 0.0))
    return summary


def share(cell: Cell) -> float:
    """Return the share of runs that cross."""
    return cell.successes / (cell.runs or np.nan)


def hit_over(one: Cell, two: Cell) -> float:
    """Return the ratio of median hits on instances where both cross; NaN for fewer than half."""
    both = one.hits.keys() & two.hits.keys()
    if not both or 2 * len(both) < one.runs:
        return np.nan
    # On the same instances: a method that fails on the hard ones would look fast.
    medians = [float(np.median([cell.hits[seed] for seed in both])) for cell in (one, two)]
    return medians[0] / medians[1]


def ended(cell: Cell) -> float:
    """Return the share of the norm budget in runs that do not cross; NaN without a design."""
    # Zero missed runs: no share, NaN.
    missed = cell.runs - cell.successes if cell.norms or cell.over_budget else 0
    return len(set(cell.over_budget) - cell.hits.keys()) / (missed or np.nan)


class Judged(NamedTuple):
    """Outcome, figures by level, and levels at which the threshold is missed."""

    outcome: str
    figures: dict[str, float]
    missed: list[str]

    def __str__(self) -> str:
        marks = {c: " (missed)" if c in self.missed else "" for c in self.figures}
        return ", ".join(f"{c}: {v:.2f}{marks[c]}" for c, v in self.figures.items()) or "no figure"


class Statement(NamedTuple):
    """A statement of the paper, and a statistic that keeps its threshold if it holds."""

    words: str
    statistic: str  # the measured quantity, in words
    threshold: str  # a key of RELATIONS and a number
    levels: tuple[int, ...]
    # Statistic of the cells and the norms of a level; NaN if undefined.
    measure: Callable[[Level, dict[str, float]], float]
    note: str = ""

    def judged(self, summary: Summary, norms: Norms) -> Judged:
        """Compare the statistic with the threshold at every level with a figure."""

        def cell(c: int, key: str) -> Cell:
            group = summary.get(key, {}).get(c, Cell(0, {}))
            if group.failure:
                raise ArithmeticError(f"a run could not be computed: {group.failure}")
            return group

        relation, _, number = self.threshold.rpartition(" ")
        figures = {}
        for c in self.levels:
            value = float(self.measure(partial(cell, c), norms.get(c, {})))
            # A level without a figure neither supports nor refutes.
            if not np.isnan(value):
                figures[f"{c}"] = value
        missed = [c for c, v in figures.items() if not RELATIONS[relation](v, float(number))]
        outcome = HOLDS if not missed else REFUTED if len(missed) == len(figures) else IN_PART
        return Judged(outcome if figures else SILENT, figures, missed)


STATEMENTS = (
    Statement(
        "The weighted hybrids are reliable under mild-to-moderate ill-conditioning.",
        "share of runs that cross, the lesser of grid and closed form",
        "≥ 0.8",
        MILD,
        lambda at, _: np.minimum(share(at("grid-w")), share(at("closed-w"))),
    ),
    Statement(
        "The hybrid improves over the pure augmented and the pure optimistic endpoint.",
        "share of runs that cross, closed form less the better endpoint",
        "> 0",
        CONDITIONS,
        lambda at, _: share(at("closed-w")) - np.maximum(share(at("aug-w")), share(at("opt-w"))),
    ),
    Statement(
        "Pure augmented correction becomes unreliable once B is mildly ill-conditioned.",
        "share of runs that cross",
        "< 0.8",
        CONDITIONS[1:],
        lambda at, _: share(at("aug-w")),
    ),
    Statement(
        "OGDA and extragradient do not reach the target.",
        "share of runs that cross, the larger of the two",
        "≤ 0",
        CONDITIONS,
        lambda at, _: np.maximum(share(at("ogda")), share(at("eg"))),
    ),
    Statement(
        "The closed form tracks the grid oracle closely.",
        "median hit, closed form over grid",
        "within a factor of 1.5",
        MILD,
        lambda at, _: hit_over(at("closed-w"), at("grid-w")),
        "Nearly by construction: the weighted margin does not depend on α, so the strengths of the "
        "grid tie; the first is taken, always 4·α_t, a fitted number. At 8 print has 112/60.",
    ),
    Statement(
        "At level 1 PDHG is the fastest.",
        "median hit, PDHG over the faster of grid and closed form",
        "< 1",
        (1,),
        lambda at, _: np.max([hit_over(at("pdhg"), at(key)) for key in ("grid-w", "closed-w")]),
    ),
    Statement(
        "At 3 and 5 the hybrid is competitive with PDHG.",
        "median hit, closed form over PDHG",
        "≤ 1.5",
        (3, 5),
        lambda at, _: hit_over(at("closed-w"), at("pdhg")),
        "At 5 print has 71/74, the latter of 2 runs.",
    ),
    Statement(
        "The weighted variants generally improve over the unit ones, in hitting times.",
        "median hit, closed form weighted over unit",
        "< 1",
        CONDITIONS,
        lambda at, _: hit_over(at("closed-w"), at("closed-u")),
    ),
    Statement(
        "‖C_can‖ ≲ ‖H‖‖B†‖².",
        "largest ‖C_can‖/(‖H‖‖B†‖²) at any x*; to rounding, for the bound is attained",
        "≤ 1.000000001",
        CONDITIONS,
        lambda _, norms: norms.get(RATIO, np.nan),
    ),
    Statement(
        "Exact cancellation begins to fail around 8 and 13.",
        "share of runs of the closed form that cross",
        "< 0.5",
        HIGH,
        lambda at, _: share(at("closed-w")),
    ),
    Statement(
        "It fails because ‖M‖ has to exceed the norm budget.",
        "of the closed form's runs that do not cross, the share that the budget ended",
        "> 0.5",
        HIGH,
        lambda at, _: ended(at("closed-w")),
    ),
    Statement(
        "Partial cancellation extends the method to where ‖M‖ becomes too large.",
        "where the budget ends runs, share that cross, the γ of the least ‖M‖ less the closed form",
        "> 0",
        CONDITIONS,
        lambda at, _: (
            share(at("least")) - share(at("closed-w")) if ended(at("closed-w")) > 0 else np.nan
        ),
    ),
)


class Verdict(NamedTuple):
    """A statement, its statistic and threshold, judged by the runs and by the print."""

    statement: str
    statistic: str
    threshold: str
    here: Judged
    in_print: Judged
    note: str

    def __str__(self) -> str:
        lines = [
            f"{self.statement} {self.here.outcome.upper()}; in print: {self.in_print.outcome}.",
            f"{self.statistic}: {self.threshold}",
            f"here:  {self.here}",
            f"print: {self.in_print}",
        ]
        return "\n    ".join([*lines, self.note] if self.note else lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict, ready for JSON."""
        here, in_print = self.here._asdict(), self.in_print._asdict()
        return {**self._asdict(), "here": here, "in_print": in_print}


def verdicts(summary: Summary, norms: Norms) -> tuple[Verdict, ...]:
    """Judge every statement by the cells of some instances, and by the print."""
    rows, in_print = [], printed_cells()
    for statement in STATEMENTS:
        note = statement.note
        try:
            here = statement.judged(summary, norms)
        except Exception as error:  # noqa: BLE001 - one verdict may fail, the others may not
            here, note = Judged(FAILS, {}, []), f"{type(error).__name__}: {error}"
        rows.append(Verdict(*statement[:3], here, statement.judged(in_print, {}), note))
    return tuple(rows)


def contradictions(summary: Summary, norms: Norms) -> list[str]:
    """Return contradictions within the print, and of the print with the runs."""
    same = []
    for c, weighted in summary["closed-w"].items():
        if c in ONE_METHOD:
            differ = len(dict(weighted.hits.items() ^ summary["closed-u"][c].hits.items()))
            same.append(f"at {c:g} in {weighted.runs - differ} of {weighted.runs}")
    # By its caption table 2 has a dash where fewer than half cross.
    dashes = [
        f"{LABELS[key]} {hit:g} at {c}, {printed.SUCCESS[key][c]} of {FIVE}"
        for key, row in printed.HITS.items()
        for c, hit in row.items()
        if hit is not None and 2 * printed.SUCCESS.get(key, {}).get(c, FIVE) < FIVE
    ]
    hits = ((printed.HITS[key][c] for key in ("closed-w", "closed-u")) for c in ONE_METHOD)
    pairs = (" and ".join("a dash" if t is None else f"{t:g}" for t in pair) for pair in hits)
    pdhg, beyond = PrimalDualHybridGradient(), summary["grid-w"].get(13)
    censored = beyond and f": here the budget ends {len(beyond.over_budget)} of {beyond.runs}"
    zeros = int(min((row[ZEROS] for row in norms.values()), default=0))
    return [
        "Under the printed rule S1 and S3 bind at 5, 8 and 13, and the weighted and the unit "
        f"closed form are one method: the same hit {', '.join(same) or 'in no run'}. Table 2 "
        f"prints {', '.join(pairs)}.",
        "By its caption table 2 has a dash where fewer than half cross. It has "
        f"{'; '.join(dashes)}.",
        "At 8 the required ‖M‖ exceeds the norm budget, says the text; table 3 prints "
        f"{printed.NORM_M['closed-u'][8]:g} of {printed.M_MAX:g}.",
        f"At 13 table 3 prints {printed.NORM_M['grid-w'][13]:g}, which the cap of "
        f"{printed.M_MAX:g} censors{censored or ''}.",
        f"PDHG has τσ‖B*‖² = {pdhg.tau * pdhg.sigma:g} with the steps fitted to the tables (‖B*‖ = "
        "1); the appendix prints < 1.",
        f"Appendix E assumes S_M Hurwitz. Where m > n it never is: at every x* at least {zeros} of "
        "its eigenvalues are 0.",
        "Algorithm 1 needs h_−1 and C_opt,−1, and does not say what they are at its first step.",
    ]
