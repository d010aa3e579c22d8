"""Each notebook is the same text as its twin, runs, and shows what its text says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
TWINS = sorted(FOLDER.glob("[0-9]*.py"))


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("notebook_build", FOLDER / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=TWINS, ids=lambda path: path.stem)
def executed(request, build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    notebook = build.to_notebook(request.param)
    build.execute(notebook, folder)
    return request.param, notebook, folder


def outputs(notebook):
    return [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]


def printed(notebook):
    return "".join(out.text for out in outputs(notebook) if out.output_type == "stream")


def test_there_is_a_notebook_for_each_twin_and_no_other():
    assert TWINS
    assert [path.stem for path in sorted(FOLDER.glob("*.ipynb"))] == [p.stem for p in TWINS]


@pytest.mark.parametrize("twin", TWINS, ids=lambda path: path.stem)
def test_notebook_and_twin_agree(twin, build):
    stored = nbformat.read(twin.with_suffix(".ipynb"), as_version=4)
    nbformat.validate(stored)
    cells = [(cell.cell_type, cell.source) for cell in stored.cells]
    assert cells == build.read_cells(twin), "run python notebooks/build.py"


@pytest.mark.parametrize("twin", TWINS, ids=lambda path: path.stem)
def test_stored_outputs_come_from_a_complete_run(twin):
    stored = nbformat.read(twin.with_suffix(".ipynb"), as_version=4)
    counts = [cell.execution_count for cell in stored.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert not [out for out in outputs(stored) if out.output_type == "error"]


def test_text_before_the_first_cell_is_refused(build, tmp_path):
    twin = tmp_path / "00_lost.py"
    twin.write_text('"""Lost."""\n# %%\nx = 1\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"00_lost\.py: text before"):
        build.read_cells(twin)


def test_it_runs_without_warnings_and_leaves_nothing_behind(executed):
    _, notebook, folder = executed
    kinds = {out.output_type for out in outputs(notebook)}
    assert "error" not in kinds
    assert not [out for out in outputs(notebook) if out.get("name") == "stderr"]
    assert any("image/png" in out.get("data", {}) for out in outputs(notebook))
    assert list(folder.iterdir()) == []


def test_first_notebook_shows_what_it_says(executed):
    twin, notebook, _ = executed
    if twin.stem != "01_one_correction_two_channels":
        pytest.skip("claims of the first notebook")
    text = printed(notebook)

    def number(pattern):
        found = re.search(pattern, text)
        assert found, pattern
        return float(found.group(1))

    # Descent–ascent spirals out, corrections contract, too much contracts less.
    assert number(r"descent-ascent: +([\d.]+)") > 1
    radii = [number(rf"with M = {c} I: +([\d.]+)") for c in ("0.0", "1.0", "2.0")]
    assert radii[1] < radii[2] < radii[0] < 1
    assert "descent–ascent     ITERATION_LIMIT" in text
    # The splits are one trajectory.
    apart = [float(value) for value in re.findall(r"largest deviation in x (\S+)", text)]
    assert len(apart) == 4
    assert max(apart) < 1e-13
    # θ: the closed form is the longest step, far ahead of θ = 1 and barely of θ = 0.
    assert number(r"θ = 1: .* is ([\d.]+) times") > 10
    assert 1 < number(r"θ = 0: .* is ([\d.]+) times") < 1.2
    steps = {float(t): int(n) for t, n in re.findall(r"θ = (\S+): +(\d+) steps", text)}
    assert len(steps) == 8
    assert min(steps, key=steps.get) == 0.048
    # Matched or not.
    assert number(r"multipliers +apart by (\S+);") > 1e-2
    assert number(r"effective +apart by (\S+);") < 1e-13
    assert number(r"memory_free +apart by (\S+);") < 1e-13
    assert "ACCEPTED" in text
