"""Names that a user can import, and the examples in their documentation."""

import doctest
import importlib
import inspect
import pkgutil
from typing import Any

import pytest

import casadi_hybrid

MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(casadi_hybrid.__path__, "casadi_hybrid.")
    if not info.name.endswith("__main__")
)


@pytest.mark.parametrize("name", casadi_hybrid.__all__)
def test_public_name_is_documented(name):
    thing = getattr(casadi_hybrid, name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        documentation = inspect.getdoc(thing) or ""
        # A dataclass without a docstring is given its own signature for one.
        assert documentation
        assert not documentation.startswith(f"{name}(")


class Finder(doctest.DocTestFinder):
    """Finds the examples of decorated functions too."""

    def _from_module(self, module: Any, thing: Any) -> bool:
        return super()._from_module(module, inspect.unwrap(thing))


def test_examples_of_docstrings_run():
    runner = doctest.DocTestRunner()
    for name in MODULES:
        for test in Finder(exclude_empty=True).find(importlib.import_module(name)):
            runner.run(test)
    results = runner.summarize(verbose=False)
    assert results.attempted
    assert not results.failed
