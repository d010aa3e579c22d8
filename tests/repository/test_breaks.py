"""The deliberate breaks can be applied; ``benchmarks/breaks.py`` says which test notices each."""

import breaks
import pytest
from support.paths import ROOT


@pytest.mark.parametrize("one", breaks.BREAKS, ids=lambda one: one.name)
def test_break_can_be_applied(one):
    broken = one.applied(one.source)
    assert broken != one.source
    if one.file.endswith(".py"):
        compile(broken, one.file, "exec")
    assert one.tests
    assert all((ROOT / "tests" / name.split("::")[0]).is_file() for name in one.tests)


@pytest.mark.slow
def test_every_break_is_noticed():
    assert breaks.main([]) == 0
