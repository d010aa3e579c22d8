"""Verdicts, tables, files and figures of the paper's runs, from runs built by hand."""

import csv
import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from support.cases.paper_runs import KEYS, cells, every_run, run
from support.problems.verdicts import read

from casadi_hybrid.paper.experiment import CONDITIONS, files, printed, tables
from casadi_hybrid.paper.experiment import verdicts as judging
from casadi_hybrid.paper.experiment.experiment import LABELS
from casadi_hybrid.paper.experiment.norms import RATIO, ZEROS, norm_rows, norms_at_solutions, power
from casadi_hybrid.paper.experiment.tables import Cell, text_tables
from casadi_hybrid.paper.experiment.verdicts import HOLDS, IN_PART, REFUTED, SILENT, verdicts

FINE = {c: {RATIO: 1.0, ZEROS: 2.0} for c in CONDITIONS}
BEYOND = {c: {RATIO: 1.0001, ZEROS: 2.0} for c in CONDITIONS}
# Statement, threshold, levels, and results of ten runs just within the threshold and just beyond.
SIDES = [tuple(side.values()) for side in read("sides")]


def verdict(begin: str, summary, norms=FINE):
    (row,) = [row for row in verdicts(summary, norms) if row.statement.startswith(begin)]
    return row


@pytest.mark.parametrize(("begin", "threshold", "levels", "inside", "outside"), SIDES)
def test_statement_holds_within_its_threshold(begin, threshold, levels, inside, outside):
    assert verdict(begin, {}).here.outcome == SILENT
    for good, ended in inside:
        row = verdict(begin, cells(CONDITIONS, good, ended))
        assert row.threshold == threshold
        assert (row.here.outcome, row.here.missed) == (HOLDS, [])
        assert list(row.here.figures) == [f"{c}" for c in levels]
    for bad, ended in outside:
        row = verdict(begin, cells(CONDITIONS, bad, ended))
        assert row.here.outcome == REFUTED
        assert row.here.missed == [f"{c}" for c in levels]
    if len(levels) > 1:
        mixed = cells(CONDITIONS, bad, ended)
        for key, row in cells(CONDITIONS, good, inside[-1][1]).items():
            mixed[key] |= {levels[-1]: row[levels[-1]]}
        row = verdict(begin, mixed)
        assert row.here.outcome == IN_PART
        assert f"{levels[-1]}" not in row.here.missed
        assert f"{levels[-1]}: {row.here.figures[str(levels[-1])]:.2f}" in str(row)


def test_bound_of_the_cancellation_is_an_inequality() -> None:
    """The largest ratio may be 1, to rounding; the power of growth has no threshold."""
    for norms, outcome in ((FINE, HOLDS), (BEYOND, REFUTED), ({}, SILENT)):
        assert verdict("‖C_can‖ ≲", {}, norms).here.outcome == outcome
    assert len(judging.STATEMENTS) == len(SIDES) + 1  # each has its two sides here


def test_medians_are_over_common_instances() -> None:
    cell = Cell(4, {0: 10, 1: 20, 2: 90})
    assert judging.hit_over(cell, Cell(4, {0: 20, 1: 40})) == 0.5
    assert np.isnan(judging.hit_over(cell, Cell(4, {2: 20})))  # one of four
    assert np.isnan(judging.hit_over(Cell(0, {}), Cell(0, {})))


def test_print_is_judged_by_the_same_statistic() -> None:
    rows = verdicts({}, {})

    def in_print(part: str):
        return next(row for row in rows if part in row.statement).in_print

    tracks = in_print("tracks")
    assert tracks.outcome == HOLDS
    assert tracks.figures == {"1": 19.5 / 15, "2": 36 / 35, "3": 49 / 43, "5": 71 / 60}
    improves = in_print("improves over the pure")
    assert improves.outcome == IN_PART
    assert improves.figures["1"] == pytest.approx(-0.2)
    assert improves.missed == ["1", "2", "3", "8", "13"]
    unit = in_print("over the unit")
    assert unit.figures["1"] == 19.5 / 69
    assert "8" not in unit.figures  # of the weighted form table 1 counts none there
    assert in_print("‖C_can‖ ≲").outcome == in_print("exceed the norm budget").outcome == SILENT
    written = json.loads(json.dumps(rows[0].to_dict()))
    assert written["here"]["outcome"] == SILENT
    assert written["in_print"]["figures"]["2"] == 1.0


def test_contradictions_are_computed() -> None:
    seeds = {seed: 50 + seed for seed in range(5)}
    summary = cells(CONDITIONS, {}, ended=(1, 2))
    for c, other in {5: seeds, 8: {**seeds, 0: 51}, 13: {**seeds, 9: 7}}.items():
        summary["closed-w"][c], summary["closed-u"][c] = Cell(10, seeds), Cell(10, other)
    summary["grid-w"][13] = Cell(10, {}, over_budget=(3, 4, 5))
    same, dashes, *others = judging.contradictions(summary, FINE)
    assert re.findall(r"at (\d+) in (\d+) of 10", same) == [("5", "10"), ("8", "9"), ("13", "9")]
    counts = {}
    for name, _, c, n in re.findall(r"(?:has|;) ([\w. ]{4,13}) ([\d.]+) at (\d+), (\d) of", dashes):
        counts.setdefault(name, []).append((int(c), int(n)))
    assert counts == {
        "Grid Hyb. W": [(8, 1), (13, 0)],
        "Closed Hyb. W": [(8, 0), (13, 0)],
        "PDHG": [(5, 2), (8, 1), (13, 1)],
    }
    assert all(number in " ".join(others) for number in ("81.16", "299.94", "3 of 10"))


def test_norms_at_solutions_keep_the_bound() -> None:
    """And S_M has m − n zero eigenvalues, so it is not Hurwitz; for m = n it has none."""
    (row,) = norms_at_solutions((5.0,), range(4), (3, 5)).values()
    assert row["‖C_can‖"] <= row["‖H‖‖B†‖²"] * (1 + 1e-12)
    alone = [norms_at_solutions((5.0,), [seed], (3, 5))[5.0] for seed in range(4)]
    ratios = [of_seed["‖C_can‖"] / of_seed["‖H‖‖B†‖²"] for of_seed in alone]
    assert row[RATIO] == pytest.approx(max(ratios))
    assert min(ratios) < row[RATIO] <= 1 + 1e-12
    assert row["least ‖M‖"] <= row["‖M‖ partial"] * (1 + 1e-9) <= row["‖M‖ closed"] * (1 + 2e-9)
    assert row[ZEROS] == 2
    assert norms_at_solutions((5.0,), range(2), (3, 3))[5.0][ZEROS] == 0


def test_power_of_growth_is_least_squares() -> None:
    slope = np.polyfit(np.log([1, 2, 8]), np.log([1, 8, 8]), 1)[0]
    for levels, values, expected in (
        ((1.0, 2.0, 4.0), (3.0, 12.0, 48.0), 2.0),
        ((1.0, 2.0, 4.0), (3.0, 48.0, 48.0), 2.0),  # as of the end levels alone
        ((1.0, 2.0, 8.0), (1.0, 8.0, 8.0), slope),
    ):
        assert power(levels, values) == pytest.approx(expected)
    norms = norms_at_solutions((1.0, 5.0), range(2), (3, 5))
    head, *rows = norm_rows(norms, compare=True)
    sizes = [norms[c]["‖C_can‖"] for c in (1, 5)]
    shown = [row[head.index("‖C_can‖")] for row in rows]
    assert shown == [f"{value:.2f}" for value in (*sizes, power((1, 5), sizes))]
    assert [row[-1] for row in rows[:2]] == ["1.98", "21.03"]


def table(text: str, title: str) -> dict[str, dict[float, str]]:
    """A table of the text by label and level."""
    lines = text[text.index(title) :].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("---"))
    labels, *rows = (
        re.split(r"\s{2,}", line.strip())
        for line in (lines[start - 1], *itertools.takewhile(bool, lines[start + 1 :]))
    )
    return {label: {float(row[0]): row[k] for row in rows} for k, label in enumerate(labels) if k}


PRINTED = (
    ("Runs of 20 that cross 1e-3", printed.SUCCESS),
    ("Median hitting time", printed.HITS),
    ("Median of max‖M‖₂", printed.NORM_M),
)


def test_printed_numbers_stand_beside_their_cells() -> None:
    """In brackets, with the chance where both are numbers."""
    runs = [
        replace(r, norm_M=10.0 + 7 * r.seed, **({"errors": run().errors} if r.seed > 14 else {}))
        for r in every_run({key: 40 for key in KEYS if key != "eg"}, CONDITIONS, range(20))
        if r.seed >= 8 or r.method != "pdhg"
    ]
    summary = tables.summarize(runs, range(20))
    plain = text_tables(summary, compare=True, chances=False)
    with_chance = text_tables(summary, compare=True, chances=True)
    for title, numbers in PRINTED:
        shown, chances = table(plain, title), table(with_chance, title)
        for key, c in ((key, c) for key, row in numbers.items() for c in row):
            number, cell = numbers[key][c], summary[key][c]
            text = "–" if number is None else f"{number:g}"
            assert shown[LABELS[key]][c].endswith(f" [{text}]")
            if numbers is printed.SUCCESS:
                text += f"; {tables.count_chance(number, cell.successes, cell.runs):.2f}"
            elif number is not None:
                values = list(cell.hits.values()) if numbers is printed.HITS else cell.norms
                text += f"; {tables.median_chance(number, values):.2f}"
            assert chances[LABELS[key]][c].endswith(f" [{text}]")
    counts, hits, norms = (table(plain, title) for title, _ in PRINTED)
    assert counts["PDHG"][8] == "12 [1]"
    assert counts["EG"][1] == "0 [0]"
    assert hits["Grid Hyb. W"][5] == "40 (n=20) [60]"
    assert norms["Closed Hyb. U"][2] == "76.50 [4.74]"
    assert "[" not in text_tables(summary, compare=False, chances=True)


def test_median_of_fewer_than_half_is_a_dash() -> None:
    for crossing, shown in ((10, "40 (n=10)"), (9, "– (n=9)")):
        summary = cells((13,), {})
        summary["closed-u"] = {13: Cell(20, dict.fromkeys(range(crossing), 40))}
        hits = table(text_tables(summary, compare=True), "Median hitting time")
        assert hits["Closed Hyb. U"][13] == f"{shown} [–]"
        assert summary["closed-u"][13].median_hit == 40


def test_each_table_shows_its_own_number() -> None:
    summary = cells((8,), dict.fromkeys(KEYS, (3, 70)))
    cell = Cell(10, {0: 5, 1: 6}, (2.0, 4.0), (7, 8, 9), 1, 4, 6, 5)
    summary |= {key: {8: cell} for key in ("closed-w", "lin-al-20", "half", "aug-u")}
    text = text_tables(summary, compare=False)
    for title, shown, other in (
        ("Runs of 10 that cross 1e-3", "2", "3"),
        ("Of these, still below", "1", "0"),
        ("Of these, never left", "4", "0"),
        ("Of those that were followed", "5 of 6", "–"),
        ("Median of max‖M‖₂", "3.00", "50.00"),
        ("Runs of 10 that the norm budget ended", "3", "0"),
    ):
        assert table(text, title)["Closed Hyb. W"][8] == shown
        assert table(text, title)["Grid Hyb. W"][8] == other
    beside = table(text, "Runs of 10 that cross, not printed")
    assert {name for name, row in beside.items() if row[8] == "2"} == {
        "Pure Aug. U",
        "Lin. AL 20",
        "γ = ½",
    }
    assert beside["Lin. AL 10"][8] == "3"


def test_distance_of_table_1_is_counted() -> None:
    runs, other = every_run({"closed-w": 50}, conditions=(8.0,)), {"errors": run().errors}
    runs = [replace(r, **other) if r.method == "closed-w" and r.seed else r for r in runs]
    summary = tables.summarize(runs, range(5))
    off = [int(n) for n in re.findall(r"off by (\d+) of 40", tables.distances(summary))]
    assert off == [7, 3, 3]  # print: grid 1, PDHG 1, all others 0


def read_csv(path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


BROKEN_OFF = """
    method=closed-w condition=13 seed=1 hit_0.01=60 hit_0.001=60 hit_0.0001= max_norm_M=50
    below_at_200=0 never_left=0 distance_200=0.1 distance_1500= feasibility_hit=0.001
    feasibility_200=0.2 stationarity_hit=0.0015 stationarity_200=0.3 stop=DESIGN_INFEASIBLE failure=
"""
KEPT = "below_at_200=1 never_left=1 distance_1500=0.25 stop=ITERATION_LIMIT"


def test_runs_csv_has_each_number_in_its_column(tmp_path) -> None:
    kept = run("pdhg", 8.0, 3, below=(range(50, 201),), longest=0.25)
    broken = run("closed-w", 13.0, 1, below=(range(60, 70),), over_budget=True)
    files.write_runs([kept, broken], tmp_path / "runs.csv")
    first, second = read_csv(tmp_path / "runs.csv")
    assert first == dict(cell.split("=") for cell in BROKEN_OFF.split())
    assert dict(cell.split("=") for cell in KEPT.split()).items() <= second.items()


def test_residuals_csv_has_medians_and_no_stagnation(tmp_path) -> None:
    """A run that broke off counts as ∞ from there on, and not as its last value."""
    group = [run(below=(range(t, 201),), seed=t) for t in (20, 60)]
    files.write_residuals([*group, run(seed=1, over_budget=True)], tmp_path / "r.csv")
    rows = {int(row["t"]): row for row in read_csv(tmp_path / "r.csv")}
    assert list(rows) == list(range(0, 201, 10))
    names = ("distance", "feasibility", "stationarity_mu", "stationarity_nu")
    assert [float(rows[30][name]) for name in names] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert [float(rows[70][name]) for name in names] == pytest.approx([5e-4, 1e-3, 1.5e-3, 2e-3])
    assert rows[30]["instances"] == "3"
    files.write_residuals([run(over_budget=True)], tmp_path / "r.csv")
    ends = {int(row["t"]): row["distance"] for row in read_csv(tmp_path / "r.csv")}
    assert (ends[90], ends[100]) == ("0.1", "inf")


def lines(ax) -> dict[str, np.ndarray]:
    """The data of the lines of a panel that have a label."""
    curves = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    return {label: values for label, values in curves.items() if not label.startswith("_")}


ENDED = ("closed-w", 0)  # by the norm budget, of the runs of figures


def figure_runs(seeds: int) -> list:
    """Crossing at 10, 15, … by seed; the first of the closed form's is ended by the budget."""
    return [
        run(key, 8.0, seed, below=(range(10 + 5 * seed, 201),), over_budget=(key, seed) == ENDED)
        for key in KEYS
        for seed in range(seeds)
    ]


def test_trajectories_are_medians_of_live_runs() -> None:
    few = figure_runs(3)
    ax = files.trajectories(few).axes[0]
    shown = lines(ax)
    assert list(shown) == [LABELS[key] for key in files.SHOWN]
    for key in files.SHOWN:
        errors = np.array([r.errors for r in few if r.method == key])
        if key == "closed-w":
            errors[0, 91:] = np.inf
        assert shown[LABELS[key]] == pytest.approx(np.median(errors, axis=0))
    crosses = [line for line in ax.get_lines() if line.get_marker() == "x"]
    assert [(c.get_xdata()[0], c.get_ydata()[0]) for c in crosses] == [(90, 5e-4)]
    thin = [line for line in ax.get_lines() if line.get_linewidth() == 0.5]
    assert len(thin) == 3 * len(files.SHOWN)
    assert not ax.collections  # of three runs there is no band
    many = files.trajectories(figure_runs(files.ENOUGH)).axes[0]
    assert len(many.collections) == len(files.SHOWN)
    assert not [line for line in many.get_lines() if line.get_linewidth() == 0.5]
    # At 27 four of twenty are below, a fifth: the lower quartile of the grid is still above.
    corners = many.collections[1].get_paths()[0].vertices
    assert set(corners[corners[:, 0] == 27, 1]) == {0.1}
    assert set(corners[corners[:, 0] == 60, 1]) == {5e-4, 0.1}


def test_levels_have_their_numbers_and_runs() -> None:
    summary = cells((1, 8), {key: (7, 30 + i) for i, key in enumerate(KEYS)})
    summary["closed-w"][8] = Cell(10, {0: 9}, (80.0, 90.0))
    figure = files.by_level(summary, is_paper=True)
    crossing, hitting, growing = (lines(ax) for ax in figure.axes[:3])
    assert list(crossing["Closed Hyb. W"]) == [70, 10]
    assert list(hitting["Closed Hyb. W"]) == [30 + KEYS.index("closed-w")]  # one of ten is a dash
    assert list(hitting["PDHG"]) == [30 + KEYS.index("pdhg")] * 2
    assert list(growing["Closed Hyb. W"]) == [50, 85]
    known = [v for v in printed.NORM_M["closed-u"].values() if v is not None]
    assert list(growing["Closed Hyb. U, printed"]) == known
    assert list(growing["Grid Hyb. W, printed"]) == list(printed.NORM_M["grid-w"].values())
    assert set(growing["norm budget"]) == {300}
    assert ((8, 85.0), "2") in {(text.xy, text.get_text()) for text in figure.axes[2].texts}
    assert "Grid Hyb. W, printed" not in lines(files.by_level(summary, is_paper=False).axes[2])
