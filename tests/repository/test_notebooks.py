"""Each notebook is the same text as its twin, runs, and shows what its text says.

The twins are run here, in this process, which is quicker than a kernel; the notebooks themselves
are run in kernels by ``-m slow``, the shortest of them always.
"""

import ast
import contextlib
import importlib.util
import io
import math
import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from support.paths import ROOT

from casadi_hybrid.paper.experiment.fitted import listing
from casadi_hybrid.utils.output.plotting import PALETTE

FOLDER = ROOT / "notebooks"
TWINS = {twin.stem[:2]: twin for twin in sorted(FOLDER.glob("[0-9]*.py"))}
ALWAYS = "04"
"""The notebook that is run in a kernel by default."""
GREYS = {"#bbbbbb", "#000000"}


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("notebook_build", FOLDER / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Ran:
    """What a twin left: its names, what it printed, its figures, its folder."""

    names: dict[str, Any]
    text: str
    figures: list[Figure]
    folder: Path

    def __getitem__(self, name: str) -> Any:
        return self.names[name]


@pytest.fixture(scope="module")
def ran(build, tmp_path_factory):
    """Run a twin by its number, once."""
    kept: dict[str, Ran] = {}

    def run(number: str) -> Ran:
        if number not in kept:
            kept[number] = in_process(build, TWINS[number], tmp_path_factory.mktemp("twin"))
        return kept[number]

    return run


def in_process(build, twin: Path, folder: Path) -> Ran:
    """Run the cells of a twin as a kernel does: the value of a last expression is shown."""
    module = types.ModuleType("__twin__")
    names, figures, said = module.__dict__, [], io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(said),
    ):
        patch.setitem(sys.modules, "__twin__", module)  # where a dataclass looks for its names
        for i, (kind, source) in enumerate(build.read_cells(twin)):
            if kind != "code":
                continue
            where, body = f"{twin.name}, cell {i}", ast.parse(source)
            shown = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
            exec(compile(body, where, "exec"), names)
            if shown is not None:
                value = eval(compile(ast.Expression(shown.value), where, "eval"), names)
                if isinstance(value, Figure):
                    figures.append(value)
    return Ran(names, said.getvalue(), figures, folder)


def outputs(notebook):
    return [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]


def test_there_is_a_notebook_for_each_twin_and_no_other_also_in_the_list():
    assert list(TWINS) == [f"{i:02d}" for i in range(1, 9)]
    stems = [twin.stem for twin in TWINS.values()]
    assert [path.stem for path in sorted(FOLDER.glob("*.ipynb"))] == stems
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((\d\d_\w+)\.ipynb\)", page) == stems


@pytest.mark.parametrize("number", TWINS)
def test_notebook_and_twin_agree_and_stored_outputs_come_from_a_complete_run(number, build):
    stored = nbformat.read(TWINS[number].with_suffix(".ipynb"), as_version=4)
    nbformat.validate(stored)
    cells = [(cell.cell_type, cell.source) for cell in stored.cells]
    assert cells == build.read_cells(TWINS[number]), "run python notebooks/build.py"
    counts = [cell.execution_count for cell in stored.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert "error" not in [out.output_type for out in outputs(stored)]
    assert any("image/png" in out.get("data", {}) for out in outputs(stored))


@pytest.mark.parametrize("number", TWINS)
def test_links_lead_to_notebooks_that_exist(number):
    text = TWINS[number].read_text(encoding="utf-8")
    assert all((FOLDER / name).is_file() for name in re.findall(r"\]\(([^)]+\.ipynb)\)", text))


def test_text_before_the_first_cell_is_refused(build, tmp_path):
    twin = tmp_path / "00_lost.py"
    twin.write_text('"""Lost."""\n# %%\nx = 1\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"00_lost\.py: text before"):
        build.read_cells(twin)


def test_a_notebook_that_is_not_there_is_refused_before_any_work(build, capsys):
    with pytest.raises(SystemExit):
        build.main(["01", "09"])
    assert "'09' begins no notebook's name" in capsys.readouterr().err


@pytest.mark.parametrize(
    "number", [n if n == ALWAYS else pytest.param(n, marks=pytest.mark.slow) for n in TWINS]
)
def test_it_runs_in_a_kernel_without_warnings_and_leaves_nothing_behind(number, build, tmp_path):
    notebook = build.to_notebook(TWINS[number])
    build.execute(notebook, tmp_path)
    assert "error" not in {out.output_type for out in outputs(notebook)}
    assert not [out for out in outputs(notebook) if out.get("name") == "stderr"]
    assert any("image/png" in out.get("data", {}) for out in outputs(notebook))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", TWINS)
def test_its_figures_can_be_read_in_print_and_by_the_colour_blind(number, ran):
    run = ran(number)
    assert list(run.folder.iterdir()) == []
    assert run.figures
    for fig in run.figures:
        for ax in fig.axes:
            for axis, shared in (("x", ax.get_shared_x_axes()), ("y", ax.get_shared_y_axes())):
                named = [getattr(one, f"get_{axis}label")() for one in shared.get_siblings(ax)]
                assert any(named), f"an axis {axis} of a figure of {TWINS[number].name} has no name"
            colours = {to_hex(line.get_color()) for line in ax.lines}
            assert colours <= {colour.lower() for colour in PALETTE} | GREYS
        sizes = [text.get_fontsize() for text in fig.findobj(Text) if text.get_text()]
        assert min(sizes) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("number", TWINS)
def test_nothing_of_a_figure_is_cut_off(number, ran):
    for fig in ran(number).figures:
        fig.draw_without_rendering()
        drawn, frame = fig.get_tightbbox(), fig.get_size_inches()
        assert drawn.x0 > -0.02
        assert drawn.y0 > -0.02
        assert drawn.x1 < frame[0] + 0.02
        assert drawn.y1 < frame[1] + 0.02


def numbers(text, pattern):
    found = re.findall(pattern, text)
    assert found, pattern
    return [float(value) for value in found]


def test_the_first_shows_one_correction_and_that_the_matrix_matters(ran):
    run = ran("01")
    # f has a say: the solution is the least of f on the feasible curve, which is not constant.
    angle = np.linspace(-np.pi, np.pi, 721)
    along = run["on_saddle"](np.sqrt(2) * np.cos(angle), np.sqrt(2) * np.sin(angle))
    assert run["solution"].f <= along.min() + 1e-6
    assert along.max() - along.min() > 1
    # Descent–ascent spirals out, corrections contract, too much contracts less.
    (plain,) = numbers(run.text, r"descent-ascent: +([\d.]+)")
    radii = numbers(run.text, r"with M = [\d.]+ I: +([\d.]+)")
    assert plain > 1
    assert radii[0] > 1 > max(radii[1:])
    assert radii[-1] > min(radii)
    assert run["plain"].stop.name == "ITERATION_LIMIT"
    assert all(one.success for one in run["runs"].values())
    # The splits are one trajectory.
    assert max(numbers(run.text, r"largest deviation in x (\S+)")) < 1e-12
    scalar, matrix, metric = run["needed"].values()
    assert scalar[-1] > 5 * scalar[0]
    assert all(m < s for s, m in zip(scalar, matrix, strict=True))
    assert scalar[-1] > 4 * matrix[-1]
    assert max(metric) - min(metric) <= 5
    # Matched or not.
    (unmatched,) = numbers(run.text, r"multipliers +apart by (\S+);")
    assert unmatched > 1e-2
    assert max(numbers(run.text, r"(?:effective|memory_free) +apart by (\S+);")) < 1e-12
    assert run["report"].accepted


def test_the_second_shows_what_each_part_of_a_design_does(ran):
    run = ran("02")
    model, designed, delta = run["model"], run["designed"], run["DELTA"]
    kinds = run["cancellations"]
    for cancellation in kinds.values():
        found = designed(model(3.0), cancellation=cancellation)
        assert found.min_eig_A >= delta - 1e-9
        assert designed(model(30.0, 0), cancellation=cancellation).norm_M > 300
    full, least = (
        [designed(model(c), cancellation=kinds[name]).norm_M for c in (3.0, 30.0)]
        for name in ("full (paper)", "least norm")
    )
    assert 50 < full[1] / full[0] < 200  # as cond(B)²
    assert least[1] < 2 * least[0]
    closed = run["closed"]
    assert math.isclose(closed.theta, run["constant"], rel_tol=1e-9)
    (zero, one, optimistic, augmented) = (
        designed(model(3.0), split=split).eta_x for split in run["splits"].values()
    )
    assert 1 < closed.eta_x / zero < 1.2 < closed.eta_x / optimistic
    assert math.isclose(one, augmented, rel_tol=1e-9)
    assert closed.eta_x / one > 10
    gap, weighted, unit = run["gap"], run["weighted"], run["unit"]
    assert gap(weighted, weighted.eta_x) > 2 * gap(unit, unit.eta_x) > 0
    both = r"cond B = 5.0: η_x weighted and unit (\S+) \(S1 = S3\) and (\S+) \(S1 = S3\)"
    same = re.search(both, run.text)
    assert same
    assert same[1] == same[2]


def test_the_third_shows_that_crossing_is_not_settling(ran):
    run = ran("03")
    every = [*run["FITTED"], *run["OTHERS"]]
    counts = {
        level: [
            run["count"]("closed-w", level, every, run[test])
            for test in ("crossed", "at_end", "stays")
        ]
        for level in run["LEVELS"]
    }
    assert all(sorted(row, reverse=True) == row for row in counts.values())
    assert len(set(counts[1])) == 1
    assert min(counts[5][0], counts[8][0]) >= 8
    assert max(counts[5][2], counts[8][2]) <= 2
    assert counts[8][1] <= 5
    assert counts[13][0] <= 3
    budget, error = run["BUDGET"], run["longer"][8, 0]
    assert error[: budget + 1].min() <= 1e-3 < error[budget]
    assert error[-1] < 1e-3
    medians = numbers(run.text, r"median of the largest ‖M‖ +([\d.]+)")
    assert sorted(medians) == medians
    assert run.text.count("CONVERGED in") == len(run["LEVELS"])
    assert listing() in run.text
    apart = numbers(run.text, r"the errors differ by (\S+) at most")
    assert len(apart) == 3
    assert max(apart) < 1e-9
    reached = run["reached"]
    assert not any(reached["lin-al"])
    assert reached["lin-al-20"] == reached["pdhg"]
    pairs = re.findall(r"cross (\d+) as printed, (\d+) as read", run.text)
    assert len(pairs) == len(run["LEVELS"])
    assert all(int(read) >= int(as_printed) for as_printed, read in pairs)


def test_the_fourth_shows_who_hears_the_noise(ran):
    run = ran("04")
    shared = numbers(run.text, r"apart from the first by (\S+)")
    assert len(shared) == 3
    assert max(shared) < 1e-12
    by = dict(re.findall(r"(.+?) +apart by (\S+);", run.text))
    assert float(by["memory on the clean sensor"]) < 1e-12
    assert float(by["all memory"]) > float(by["half and half"]) > 0.01
    alone, slow, fast = run["predicted"].values()
    assert sorted(alone) == alone
    assert sorted(fast, reverse=True) == fast
    assert 0 < int(np.argmin(slow)) < len(slow) - 1
    assert max(numbers(run.text, r"measured within ([\d.]+) %")) < 15


def test_the_fifth_plans_checks_and_closes_the_loop(ran):
    run = ran("05")
    assert run["plan"].success
    assert [one.name for one in run["report"].categories] == ["EXCEEDED_BETWEEN"]
    assert run.text.count("the same point") == 2
    assert run["between"]["sway"] > 1e-3  # as its text says of the first mesh
    assert run["fine"].success
    assert run["finer"].accepted
    assert run["after"] < 0.1 * run["between"]["sway"]
    loop = run["run"]
    assert abs(loop["load"][-1] - 3.0) < 0.2
    assert loop.status.count("solved") > 90
    assert len(run["apart"]) >= 6
    assert max(run["apart"]) < 1e-4


def test_the_sixth_reads_what_is_wrong(ran):
    run = ran("06")
    said = run["impossible"].explain()
    assert run["impossible"].stop.name == "LOCALLY_INFEASIBLE"
    contradiction = said[said.index("These contradict each other") :]
    assert all(name in contradiction for name in ("demand", "connection", "emissions"))
    assert "budget" not in said
    assert run["mended"].success
    assert run["wrong"].stop.name == "UNBOUNDED"
    assert "force" in run["wrong"].explain()
    assert run["right"].success
    assert run["twice"].success
    assert "Their multipliers are not unique" in run["twice"].explain()
    assert "node A, node B, node C = 0 (3 equations)" in run.text
    assert run["hard"].stop.name == "ITERATION_LIMIT"
    assert "Badly scaled" in run["hard"].explain()
    assert run["long"].success
    assert run["easy"].success
    assert run["easy"].iterations < run["long"].iterations
    assert "At the start: the objective f is nan" in run.text
    assert run["inside"].success


def test_the_seventh_closes_the_same_loop_in_c(ran):
    run = ran("07")
    if run["in_c"] is None:
        assert "so the program is not run" in run.text or "so nothing is run" in run.text
        pytest.skip("no C compiler on this machine, or no engine")
    assert run["in_c"].shape == run["python"].shape
    assert run["apart"].max() < 1e-5
    assert re.findall(r"^solve (\d+):", run.text, re.MULTILINE) == ["0"]


def test_the_eighth_makes_a_rule_that_does_not_feel_units(ran):
    run = ran("08")
    assert run["found"].success
    assert max(numbers(run.text, r"share \d\.\d: \d+ steps, apart by (\S+)")) < 1e-12
    assert max(numbers(run.text, r"by the loop apart by (\S+)")) < 1e-12
    assert "ACCEPTED" in run.text
    steps = run["steps"]
    own, paper, metric, whitened = steps.values()
    assert max(own) - min(own) <= 2
    assert paper[2] < own[2]
    assert min(paper[0], paper[-1]) > 2 * own[0]
    assert metric[-1] < paper[-1]
    assert max(whitened) < min(min(values) for values in (own, paper, metric))
