"""The test suites of libraries that stand on CasADi, with IPOPT and with this package in its place.

    python benchmarks/clients.py FOLDER [TEST-FILE ...] [--python PYTHON] [--timeout SECONDS]

FOLDER is the root of a checkout of the library, from which its tests run; PYTHON an interpreter
that has the library, its test dependencies, pytest and this package. Each suite runs twice, as it
is and with :mod:`in_place`. Printed are the numbers, every test whose outcome differs with the last
line of its failure, and how many solvers were made by this package: failures that both runs have
are the library's own (or its dependencies').
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

HERE = Path(__file__).resolve().parent


def outcomes(
    python: str, folder: Path, files: list[str], in_place: bool, timeout: float
) -> tuple[dict[str, str], str]:
    """The outcome of every test ("passed" or what it failed with), and the solvers made."""
    plugin = ["-p", "in_place"] if in_place else []
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        paths = [str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "MPLBACKEND": "Agg",
        }
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin]
        run = subprocess.run(
            [*command, f"--junitxml={report}", *files],
            check=False,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
        )
        if not report.exists():
            sys.exit(
                f"pytest made no report in {folder}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}"
            )
        tests = {}
        for case in ET.parse(report).getroot().iter("testcase"):
            bad = next((child for child in case if child.tag in ("failure", "error")), None)
            skipped = any(child.tag == "skipped" for child in case)
            said = "skipped" if skipped else "passed"
            if bad is not None:
                said = "failed: " + " ".join((bad.get("message") or "").split())[:300]
            tests[f"{case.get('classname')}::{case.get('name')}"] = said
    made = re.findall(r"^solvers made: (.*)$", run.stdout, re.MULTILINE)
    return tests, made[-1] if made else ""


def main() -> None:
    """Run both and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--timeout", type=float, default=3600.0)
    chosen = parser.parse_args()
    arguments = chosen.python, chosen.folder.resolve(), chosen.files
    theirs, _ = outcomes(*arguments, in_place=False, timeout=chosen.timeout)
    ours, made = outcomes(*arguments, in_place=True, timeout=chosen.timeout)
    for label, tests in (("ipopt", theirs), ("hybrid", ours)):
        bad = sum(said.startswith("failed") for said in tests.values())
        good = sum(said == "passed" for said in tests.values())
        print(f"{label:8s} {good:4d} passed, {bad:3d} failed, {len(tests) - good - bad:3d} skipped")
    print(f"solvers made in the second run: {made}")
    for heading, first, second in (
        ("failures of the hybrid solver only", ours, theirs),
        ("failures of IPOPT only", theirs, ours),
    ):
        only = [
            name
            for name, said in first.items()
            if said.startswith("failed") and not second.get(name, "").startswith("failed")
        ]
        print(f"{heading}: {len(only)}")
        for name in only:
            print(f"  {name}\n      {first[name]}")


if __name__ == "__main__":
    main()
