"""What a user can import, and that the examples in the documentation run."""

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


def test_everything_exported_exists_and_is_documented() -> None:
    assert sorted(casadi_hybrid.__all__) == sorted(set(casadi_hybrid.__all__))
    for name in casadi_hybrid.__all__:
        thing = getattr(casadi_hybrid, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            documentation = inspect.getdoc(thing) or ""
            # A dataclass without a docstring is given its own signature for one.
            assert documentation, name
            assert not documentation.startswith(f"{name}("), name
    for expected in ("Problem", "Solver", "Result", "History", "StopReason", "PointStatus"):
        assert expected in casadi_hybrid.__all__


class Finder(doctest.DocTestFinder):
    """Finds the examples of decorated functions too."""

    def _from_module(self, module: Any, thing: Any) -> bool:
        return super()._from_module(module, inspect.unwrap(thing))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    """That all that is public is documented ruff looks after, by its rules D1."""
    runner = doctest.DocTestRunner()
    for test in Finder().find(importlib.import_module(name)):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_there_are_examples() -> None:
    finder = Finder(exclude_empty=True)
    modules = map(importlib.import_module, MODULES)
    assert sum(len(test.examples) for m in modules for test in finder.find(m)) >= 8
