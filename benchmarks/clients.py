"""The test suites of libraries that stand on CasADi, with IPOPT and with this package in its place.

    python benchmarks/clients.py FOLDER [TEST-FILE ...] [--python PYTHON] [--timeout SECONDS]

FOLDER is the root of a checkout of the library, from which its tests run; PYTHON an interpreter
that has the library, its test dependencies, pytest and this package. Each suite runs twice, as it
is and with this file as a plugin of pytest, by which :class:`casadi_hybrid.in_place` is called
before any other import. Printed are the numbers, every test whose outcome differs with its failure,
and how many solvers were made by this package.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if __name__ == "clients":
    import casadi_hybrid

    IN_PLACE = casadi_hybrid.in_place()

    def pytest_terminal_summary(terminalreporter: Any) -> None:
        """Say how many solvers were made, so that nobody compares IPOPT with itself."""
        made = ", ".join(f"{count} {name}" for name, count in sorted(IN_PLACE.made.items()))
        terminalreporter.write_line(f"solvers made: {made or 'none'}")


def outcomes(
    python: str, folder: Path, files: list[str], plugin: bool, timeout: float
) -> tuple[dict[str, str], str]:
    """The outcome of every test ("passed" or what it failed with), and the solvers made."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        paths = [str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += [*(["-p", "clients"] if plugin else []), f"--junitxml={report}", *files]
        kept: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace"}
        run = subprocess.run(
            command, check=False, cwd=folder, env=environment, timeout=timeout, **kept
        )
        if not report.exists():
            sys.exit(f"no report of pytest in {folder}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        tests = {
            f"{case.get('classname')}::{case.get('name')}": outcome(case)
            for case in ET.parse(report).getroot().iter("testcase")
        }
    made = re.findall(r"^solvers made: (.*)$", run.stdout, re.MULTILINE)
    return tests, made[-1] if made else ""


def outcome(case: ET.Element) -> str:
    """Passed, skipped, or failed with its message."""
    for child in case:
        if child.tag in ("failure", "error"):
            return "failed: " + " ".join((child.get("message") or "").split())[:300]
        if child.tag == "skipped":
            return "skipped"
    return "passed"


def main() -> None:
    """Run both and print what differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--timeout", type=float, default=3600.0)
    chosen = parser.parse_args()
    arguments = chosen.python, chosen.folder.resolve(), chosen.files
    theirs, _ = outcomes(*arguments, plugin=False, timeout=chosen.timeout)
    ours, made = outcomes(*arguments, plugin=True, timeout=chosen.timeout)
    failed = [{name for name, word in t.items() if word[:6] == "failed"} for t in (theirs, ours)]
    for label, tests, bad in (("ipopt", theirs, failed[0]), ("hybrid", ours, failed[1])):
        good = sum(word == "passed" for word in tests.values())
        skipped = len(tests) - good - len(bad)
        print(f"{label:8s} {good:4d} passed, {len(bad):3d} failed, {skipped:3d} skipped")
    print(f"solvers made in the second run: {made}")
    for solver, tests, only in (
        ("the hybrid solver", ours, failed[1] - failed[0]),
        ("IPOPT", theirs, failed[0] - failed[1]),
    ):
        print(f"failures of {solver} only: {len(only)}")
        for name in sorted(only):
            print(f"  {name}\n      {tests[name]}")


if __name__ == "__main__":
    main()
