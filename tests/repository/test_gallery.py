"""The gallery of the site has the numbers and the figures of every scenario."""

import re

import gallery
import pytest
from support.paths import ROOT


def test_page_is_made_from_kept_files():
    assert (ROOT / "docs/gallery.md").read_text(encoding="utf-8") == gallery.page()


def test_page_shows_every_scenario_with_figures_and_numbers():
    names = {path.stem for path in (ROOT / "scenarios").glob("*.py")} - {"gallery"}
    text = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (\w+)$(.*?)(?=^## |\Z)", text, flags=re.M | re.S))
    assert set(sections) == names == set(gallery.NUMBERS) == set(gallery.stored_numbers())
    for name, section in sections.items():
        assert len(gallery.NUMBERS[name]) >= 3
        pictures = re.findall(r'(?:\]\(|src=")(gallery/[^)"]*)', section)
        assert pictures
        assert all((ROOT / "docs" / picture).is_file() for picture in pictures)


def test_numbers_come_from_printed_text():
    text = "Solved in 7 iterations: chain (cost 61.2491)\nIPOPT from x0    x  [ok, 9 iterations]"
    assert gallery.numbers("chain", text) == ["7 iterations", "IPOPT 9", "cost 61.25"]
    with pytest.raises(ValueError, match="chain printed nothing like"):
        gallery.numbers("chain", "Solved in 7 iterations")


def test_pictures_of_repository_are_small():
    kept = [path for path in (ROOT / "docs").rglob("*") if path.suffix in (".png", ".gif", ".svg")]
    assert sum(path.stat().st_size for path in kept) < 2e6


def test_failed_scenario_keeps_former_files(tmp_path, monkeypatch):
    (tmp_path / "block.py").write_text(
        '"""Block."""\n\ndef problem(): ...\n\nraise SystemExit(1)\n'
    )
    (tmp_path / "numbers.json").write_text("{}")
    monkeypatch.setattr(gallery, "SCENARIOS", tmp_path)
    monkeypatch.setattr(gallery, "PICTURES", tmp_path)
    assert not gallery.renew("block")
    assert (tmp_path / "numbers.json").read_text() == "{}"


def test_unknown_name_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        gallery.main(["cart"])
    assert stop.value.code == 2
    assert "cart" in capsys.readouterr().err
