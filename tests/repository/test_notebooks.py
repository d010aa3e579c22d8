"""The notebooks: their stored form, and the statements of their text, held against their cells."""

import importlib.util
import re
from typing import Any

import nbformat
import numpy as np
import pytest
from support.paths import ROOT

FOLDER = ROOT / "notebooks"
NOTEBOOKS = {path.stem[:2]: path for path in sorted(FOLDER.glob("*.ipynb"))}


def read(number: str) -> Any:
    return nbformat.read(NOTEBOOKS[number], as_version=4)


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def run(number: str) -> dict[str, Any]:
    """Run the cells in this process, which is quicker than a kernel; return their names."""
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in code(read(number)):
        exec(compile(cell.source, NOTEBOOKS[number].name, "exec"), names)
    return names


@pytest.fixture(scope="module")
def build() -> Any:
    spec = importlib.util.spec_from_file_location("notebook_build", FOLDER / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("number", NOTEBOOKS)
def test_stored_outputs_are_of_one_clean_run(number):
    notebook = read(number)
    nbformat.validate(notebook)
    assert list(notebook.metadata) == ["kernelspec"], "run python notebooks/build.py"
    assert not any(cell.metadata for cell in notebook.cells)
    cells = code(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert "error" not in {output.output_type for output in outputs}
    assert "stderr" not in {output.get("name") for output in outputs}
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert NOTEBOOKS[number].stat().st_size < 150_000
    text = "\n".join(cell.source for cell in notebook.cells)
    assert all((FOLDER / name).is_file() for name in re.findall(r"\]\(([^)]+\.ipynb)\)", text))


def test_list_has_every_notebook():
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((\w+\.ipynb)\)", page)) == {p.name for p in NOTEBOOKS.values()}


@pytest.mark.parametrize(
    "numbers", [["08"], pytest.param([], marks=pytest.mark.slow)], ids=["shortest", "all"]
)
def test_kernel_runs_notebooks(build, numbers, capsys):
    assert build.main([*numbers, "--check"]) == 0
    first = numbers[0] if numbers else "01"
    assert capsys.readouterr().out.startswith(first)


def test_build_refuses_unknown_notebook(build, capsys):
    with pytest.raises(SystemExit):
        build.main(["01", "99"])
    assert "99" in capsys.readouterr().err


def test_first_shows_one_correction_and_matrix():
    names = run("01")
    deviation = names["deviation"]
    apart = {
        start: max(deviation(split.history.x, splits[0].history.x).max() for split in splits)
        for start, splits in names["started"].items()
    }
    assert apart["multipliers"] > 1e-2
    assert max(apart["effective"], apart["memory_free"]) < 1e-12
    scalar, matrix, metric = names["needed"].values()
    assert scalar[-1] > 4 * max(scalar[0], matrix[-1])
    assert max(metric) - min(metric) <= 5
    assert names["report"].accepted


def test_second_shows_each_part_of_a_design():
    names = run("02")
    model, designed, kinds = names["model"], names["designed"], names["cancellations"]
    full = [designed(model(c), cancellation=kinds["full (paper)"]).norm_M for c in (3.0, 30.0)]
    assert 50 < full[1] / full[0] < 200  # as cond(B)²
    closed = names["closed"]
    assert closed.theta == pytest.approx(names["constant"], rel=1e-9)
    steps = [designed(model(3.0), split=split).eta_x for split in names["splits"].values()]
    assert max(steps) < closed.eta_x < 1.2 * max(steps)
    gaps = [names["gap"](names[kind], names[kind].eta_x) for kind in ("weighted", "unit")]
    assert gaps[0] > 2 * gaps[1] > 0


def test_third_shows_crossing_is_not_settling():
    names = run("03")
    seeds = [*names["FITTED"], *names["OTHERS"]]
    for level in (5, 8):
        assert names["count"]("closed-w", level, seeds, names["crossed"]) >= 8
        assert names["count"]("closed-w", level, seeds, names["stays"]) <= 2
    error = names["longer"][8, 0]
    assert error[-1] < 1e-3 < error[names["BUDGET"]]
    assert not any(names["reached"]["lin-al"])


def test_fourth_shows_who_hears_noise():
    names = run("04")
    both, heard = (
        {
            label: names["deviation"](history.x, names[way]["no memory"].x).max()
            for label, history in names[way].items()
        }
        for way in ("both", "heard")
    )
    assert max(both.values()) < 1e-12
    assert heard["memory on the clean sensor"] < 1e-12
    assert heard["all memory"] > heard["half and half"] > 0.01
    for label, values in names["measured"].items():
        np.testing.assert_allclose(values, names["predicted"][label][::5], rtol=0.15)


def test_fifth_closes_a_verified_loop():
    names = run("05")
    assert [category.name for category in names["report"].categories] == ["EXCEEDED_BETWEEN"]
    assert names["finer"].accepted
    assert names["after"] < 0.1 * names["between"]["sway"]
    loop = names["run"]
    assert abs(loop["load"][-1] - 3.0) < 0.2
    assert loop.status.count("solved") > 90
    assert max(names["apart"]) < 1e-4


def test_sixth_reads_diagnostics():
    names = run("06")
    sentences = names["impossible"].explain()
    assert names["impossible"].stop.name == "LOCALLY_INFEASIBLE"
    assert all(row in sentences for row in ("demand", "connection", "emissions"))
    assert "budget" not in sentences
    assert names["wrong"].stop.name == "UNBOUNDED"
    assert names["hard"].stop.name == "ITERATION_LIMIT"
    assert all(names[name].success for name in ("mended", "right", "twice", "inside", "easy"))


def test_seventh_closes_the_same_loop_in_c():
    names = run("07")
    if names["in_c"] is None:
        pytest.skip("no C compiler on this machine, or no engine")
    assert names["in_c"].shape == names["python"].shape
    assert names["apart"].max() < 1e-5


def test_eighth_makes_a_rule_without_units():
    names = run("08")
    assert names["found"].success
    for split in names["runs"]:
        np.testing.assert_allclose(names["by_hand"](split.history), split.history.x, atol=1e-12)
    own, paper, *_ = names["steps"].values()
    assert max(own) - min(own) <= 2
    assert min(paper[0], paper[-1]) > 2 * own[0]
