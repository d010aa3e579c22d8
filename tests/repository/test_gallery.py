"""The gallery page says what the scenarios wrote, and leaves none out."""

import json
import re
from pathlib import Path

import gallery
import pytest
from support.paths import ROOT

MODULES = sorted(
    path.stem
    for path in (ROOT / "scenarios").glob("*.py")
    if "\nSUMMARY = " in path.read_text(encoding="utf-8")
)


def written(folder: Path, name: str, **changes: object) -> None:
    data = {
        "accepted": True,
        "problem": {"name": name, "n": 7, "m": 3},
        "tables": {
            "first": "|a|  b\n---  -\n  1  2",
            "": "method  iter\n------  ----\nof_us      5",
        },
        "facts": {"largest force (N)": 8.0, "rows": [1, 2]},
        "checks": [
            {"name": "gap", "value": 1e-9, "limit": 1e-6, "passed": True},
            {"name": "ratio", "value": 1.05, "limit": 1.1, "passed": True},
        ],
        "files": [f"{name}/picture.png", f"{name}/report.json"],
    }
    (folder / name).mkdir(parents=True)
    (folder / name / "picture.png").write_bytes(b"")
    (folder / name / "report.json").write_text(json.dumps(data | changes), encoding="utf-8")


def test_every_scenario_is_on_the_page():
    assert gallery.scenarios() == MODULES


def test_the_page_shows_tables_facts_checks_and_pictures(tmp_path):
    written(tmp_path, "cartpole")
    text = gallery.page(["cartpole", "reactor"], tmp_path)
    assert "| [cartpole](#cartpole) |" in text
    assert "| 7 | 3 |" in text
    assert "\n| \\|a\\| | b |\n| --: | --: |\n| 1 | 2 |\n" in text.split("first:")[1]
    assert "\n| method | iter |\n| --- | --: |\n| of\\_<wbr>us | 5 |\n" in text
    assert "- largest force (N): 8" in text
    assert "rows" not in text.split("## cartpole")[1].split("## reactor")[0]
    assert "- gap: 1e-09 (limit 1e-06)\n- ratio: 1.05 (limit 1.1)\n" in text
    assert "](gallery/cartpole/picture.png)" in text
    assert "failed" not in text
    assert "Not run yet." in text.split("## reactor")[1]


def test_a_failed_run_is_called_one(tmp_path):
    broken = [{"name": "gap", "value": None, "limit": 1e-6, "passed": False}]
    written(tmp_path, "cartpole", accepted=False, checks=broken)
    text = gallery.page(["cartpole"], tmp_path)
    assert "**This run failed.**" in text
    assert "- gap: none (limit 1e-06) **failed**" in text


REPORT = {
    "methods": [
        {"method": "hybrid", "verdict": "accepted", "objective": 3.0, "iterations": 40, "time": 1},
        {"method": "loop: hybrid", "solved": "8/8", "cost": 8.5, "mean_iterations": 6.8},
        {"method": "hybrid: scalar", "verdict": "rejected", "accepted": False, "iterations": 500},
        {"method": "IPOPT", "verdict": "accepted", "objective": 3.0, "iterations": 40},
    ]
}


@pytest.mark.parametrize(
    ("row", "changes", "said"),
    [
        (0, {}, []),
        (0, {"time": 9, "iterations": 45, "objective": 3.00001}, []),
        (0, {"iterations": 55}, ["hybrid: iterations was 40, is 55"]),
        (0, {"verdict": "undecided"}, ["hybrid: verdict was accepted, is undecided"]),
        (0, {"objective": 3.01}, ["hybrid: objective was 3.0, is 3.01"]),
        (0, {"objective": None}, ["hybrid: objective was 3.0, is None"]),
        (0, {"accepted": False}, ["hybrid is missing or new"]),
        (1, {"mean_iterations": 10.3}, ["loop: hybrid: mean_iterations was 6.8, is 10.3"]),
        (1, {"solved": "7/8"}, ["loop: hybrid: solved was 8/8, is 7/8"]),
        (2, {"iterations": 3}, []),
        (3, {"iterations": 3}, []),
    ],
)
def test_drift_is_told_and_scatter_is_not(row, changes, said):
    rows = [dict(one) for one in REPORT["methods"]]
    rows[row] |= changes
    known, now = gallery.outcome(REPORT), gallery.outcome({"methods": rows})
    assert gallery.drift(known, now) == said


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_a_run_in_full_is_what_the_gallery_says(name):
    assert gallery.main(["--check", name]) == 0


def test_an_unknown_name_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        gallery.main(["cart"])
    assert stop.value.code == 2
    assert "no scenario cart" in capsys.readouterr().err


def test_the_page_in_the_repository_has_every_scenario_accepted_and_its_pictures():
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (\w+)$", text, flags=re.M)
    assert headings == gallery.scenarios()
    assert "Not run yet" not in text
    assert "failed" not in text
    pictures = re.findall(r"\]\((gallery/[^)]*)\)", text)
    assert len(pictures) >= len(headings)
    for picture in pictures:
        assert (ROOT / "docs" / picture).is_file()
