"""Deliberate errors in the paper's part of the package, and the test that notices each.

    python benchmarks/breaks.py [WORD ...] [--list]

``breaks.toml`` lists the errors. Each replaces one exact text in a copy of the package, in a
temporary folder, and the few tests that are meant to notice it run there. With words, only the
errors whose name contains one of them. Exit status 1: an error went unnoticed, its text is no
longer in the package, or the tests fail without any error.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "casadi_hybrid"
LIMIT = 300.0


@dataclass(frozen=True)
class Break:
    """One deliberate error.

    Attributes:
        name: what is wrong then.
        file: in the package.
        old, new: the text that is there exactly once, and what takes its place.
        tests: files of tests/, or tests in them, that are meant to notice.
    """

    name: str
    file: str
    old: str
    new: str
    tests: Sequence[str]

    @property
    def source(self) -> str:
        """The file's text as it is."""
        return (PACKAGE / self.file).read_text(encoding="utf-8")

    def applied(self, text: str) -> str:
        """Return the text of the file with the error.

        Raises:
            LookupError: if the text is not there, or more than once.
        """
        count = text.count(self.old)
        if count != 1:
            raise LookupError(
                f"{self.name}: {self.file} has the text {self.old!r} {count} times, not once; "
                "benchmarks/breaks.toml has to follow"
            )
        return text.replace(self.old, self.new)


def read() -> tuple[Break, ...]:
    """The errors of ``breaks.toml``."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return tuple(Break(**entry) for entry in tomllib.loads(text)["break"])


BREAKS = read()


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the folder, whose package comes first."""
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def copied(folder: Path) -> None:
    """Copy what the tests need, and make sure that they take the copy."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("casadi_hybrid", "tests", "benchmarks", "scenarios"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    imported = python(folder, "-c", "import casadi_hybrid; print(casadi_hybrid.__file__)").stdout
    if not Path(imported.strip()).is_relative_to(folder):
        raise RuntimeError(f"Python takes {imported}, not the copy in {folder}")


def first_failure(folder: Path, tests: Sequence[str]) -> str:
    """The first of the tests that fails in the copy, or an empty text."""
    files = [str(folder / "tests" / name) for name in tests]
    ended = python(folder, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files)
    if ended.returncode not in (0, 1):
        raise RuntimeError(f"pytest could not run:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    failed = re.search(r"^(?:FAILED|ERROR) \S*?tests/(\S+)", ended.stdout, re.MULTILINE)
    return failed.group(1) if failed else ""


def noticed_by(folder: Path, error: Break) -> str:
    """The test that notices an error, or an empty text."""
    file = folder / "casadi_hybrid" / error.file
    text = file.read_text(encoding="utf-8")
    file.write_text(error.applied(text), encoding="utf-8")
    try:
        return first_failure(folder, error.tests)
    finally:
        file.write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0 if every error was noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="WORD", help="parts of the names of errors")
    parser.add_argument("--list", action="store_true", help="print the errors and run nothing")
    options = parser.parse_args(arguments)
    words = [word.lower() for word in options.words] or [""]
    chosen = [one for one in BREAKS if any(word in one.name.lower() for word in words)]
    if not chosen:
        parser.error(f"no error has any of {', '.join(options.words)} in its name; see --list")
    for one in chosen:
        one.applied(one.source)
        if options.list:
            print(f"{one.name:<38} {one.file:<28} {' '.join(one.tests)}")
    if options.list:
        return 0
    unnoticed = 0
    with tempfile.TemporaryDirectory(prefix="breaks-") as name:
        folder = Path(name).resolve()
        copied(folder)
        if failed := first_failure(folder, sorted({test for one in chosen for test in one.tests})):
            print(f"The tests fail without any break: {failed}")
            return 1
        print(f"{'break':<38} {'noticed by':<84} {'seconds':>7}")
        for one in chosen:
            began = time.perf_counter()
            test = noticed_by(folder, one)
            unnoticed += not test
            seconds = time.perf_counter() - began
            print(f"{one.name:<38} {test or 'UNNOTICED':<84} {seconds:7.1f}", flush=True)
    print(f"{len(chosen) - unnoticed} of {len(chosen)} breaks noticed")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
