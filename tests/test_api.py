"""What a user can import, and that the examples in the documentation run."""

import doctest
import importlib
import inspect
import pkgutil
from types import ModuleType
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


def members(module: ModuleType) -> list[tuple[str, object]]:
    """Public classes and functions that a module defines, with the methods of the classes."""
    found = []
    for name, thing in vars(module).items():
        if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(thing):
            found.append((name, thing))
        elif inspect.isclass(thing):
            found.append((name, thing))
            found += [
                (f"{name}.{key}", getattr(thing, key))
                for key, value in vars(thing).items()
                # (a function that is a field's default has a name of its own)
                if inspect.isfunction(value) and value.__name__ == key and key[0] != "_"
            ]
    return found


class Finder(doctest.DocTestFinder):
    """Finds the examples of decorated functions too."""

    def _from_module(self, module: Any, thing: Any) -> bool:
        return super()._from_module(module, inspect.unwrap(thing))


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_documented_and_their_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, name
    for label, thing in members(module):
        assert inspect.getdoc(thing), f"{name}.{label}"
    runner = doctest.DocTestRunner()
    for test in Finder().find(module):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_there_are_examples() -> None:
    finder = Finder(exclude_empty=True)
    modules = map(importlib.import_module, MODULES)
    assert sum(len(test.examples) for m in modules for test in finder.find(m)) >= 8
