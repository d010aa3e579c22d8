"""The deliberate breaks of ``benchmarks/breaks.py`` can be applied, and are noticed."""

import breaks
import pytest
from support.paths import TESTS


@pytest.mark.parametrize("change", breaks.BREAKS, ids=lambda change: change.name)
def test_break_can_be_applied(change):
    broken = change.applied(change.source)
    if change.file.endswith(".py"):
        compile(broken, change.file, "exec")
    assert change.tests
    assert all((TESTS / name.split("::")[0]).is_file() for name in change.tests)


@pytest.mark.slow
def test_every_break_is_noticed():
    assert breaks.main([]) == 0
