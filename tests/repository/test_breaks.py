"""The list of deliberate breaks is one that can be applied; ``benchmarks/breaks.py`` applies it."""

from dataclasses import replace

import breaks
import pytest
from support.paths import ROOT


@pytest.mark.parametrize("one", breaks.BREAKS, ids=lambda one: one.name)
def test_the_text_to_be_broken_is_there(one: breaks.Break) -> None:
    broken = one.applied(one.source)
    assert broken != one.source
    if one.file.endswith(".py"):
        compile(broken, one.file, "exec")
    assert one.tests
    assert all((ROOT / "tests" / name.split("::")[0]).is_file() for name in one.tests)


def test_names_are_told_apart() -> None:
    assert len({one.name for one in breaks.BREAKS}) == len(breaks.BREAKS) >= 30


def test_a_text_that_is_gone_is_an_error() -> None:
    gone = replace(breaks.BREAKS[0], old="not there")
    with pytest.raises(LookupError, match="0 times, not once"):
        gone.applied(gone.source)
    with pytest.raises(LookupError, match="times, not once"):
        replace(gone, old="the").applied(gone.source)


def test_the_list_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert breaks.main(["M_max", "--list"]) == 0
    line = capsys.readouterr().out
    assert line.split() == [
        "M_max",
        "is",
        "3,000",
        "paper/rules/design.py",
        "test_paper_constants.py",
    ]
    with pytest.raises(SystemExit):
        breaks.main(["nothing of the kind"])


@pytest.mark.slow
def test_every_break_is_noticed() -> None:
    assert breaks.main([]) == 0
