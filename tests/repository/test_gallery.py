"""The gallery of the site has the text and the figures of every scenario."""

import re

import gallery
import pytest
from support.paths import DOCS, ROOT


def test_page_shows_every_scenario_with_figures():
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert text == gallery.page()
    sections = dict(re.findall(r"^## (\w+)$(.*?)(?=^## |\Z)", text, flags=re.M | re.S))
    assert set(sections) == {path.stem for path in (ROOT / "scenarios").glob("*.py")} - {"gallery"}
    for section in sections.values():
        assert "ACCEPTED" in section
        pictures = re.findall(r"\]\((gallery/[^)]*)\)", section)
        assert pictures
        assert all((DOCS / picture).is_file() for picture in pictures)


def test_pictures_of_repository_are_small():
    stored = [path for path in DOCS.rglob("*") if path.suffix in (".png", ".gif", ".svg")]
    assert sum(path.stat().st_size for path in stored) < 2e6


def test_failed_scenario_keeps_former_files(tmp_path, monkeypatch):
    (tmp_path / "block.py").write_text("raise SystemExit(1)\n")
    (tmp_path / "block.txt").write_text("before")
    monkeypatch.setattr(gallery, "SCENARIOS", tmp_path)
    monkeypatch.setattr(gallery, "PICTURES", tmp_path)
    assert not gallery.renew("block")
    assert (tmp_path / "block.txt").read_text() == "before"


def test_unknown_name_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        gallery.main(["cart"])
    assert stop.value.code == 2
    assert "cart" in capsys.readouterr().err
