"""CasADi's own tests of solvers and of Opti, with IPOPT and with this package in its place.

    python benchmarks/casadi_tests.py FOLDER [--only TEXT ...] [--limit SECONDS] [--jobs N]

FOLDER is test/python of a checkout of CasADi's repository. Of ``nlp.py`` a test that goes through
the list ``solvers`` gets this package alone in that list; one that names IPOPT gets this package by
:mod:`in_place`. ``optistack.py`` likewise. Every test runs as it is, in a process of its own.
Printed are the tests that do not pass, with the line that says why, and the counts.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MODULES = {"nlp": "NLPtests", "optistack": "OptiStacktests"}
# As CasADi's own list has IPOPT: a tight tolerance. The rest are the harness's words for features.
IPOPT = ("ipopt", {"print_time": False, "ipopt": {"tol": 1e-10, "print_level": 0}})
HYBRID = ("hybrid", {"print_time": False, "tol": 1e-10})
FEATURES = {"codegen": False, "discrete": False}


def child(folder: Path, solver: str, module: str, test: str) -> None:
    """Run one test; exit 0 where it passes."""
    sys.argv = ["test"]  # CasADi's helpers read the command line
    if solver == "hybrid":
        importlib.import_module("in_place")
    sys.path.insert(0, str(folder))
    tests = importlib.import_module(module)
    if hasattr(tests, "solvers"):
        entry = HYBRID if solver == "hybrid" else IPOPT
        tests.solvers[:] = [(*entry, FEATURES)]
    suite = unittest.TestSuite([getattr(tests, MODULES[module])(test)])
    ran = unittest.TextTestRunner(stream=sys.stderr).run(suite)
    sys.stdout.flush()
    os._exit(0 if ran.wasSuccessful() else 1)


def outcome(folder: Path, solver: str, module: str, test: str, limit: float) -> str:
    """Run one test in its own process: "" where it passes, else the last line it wrote."""
    script = str(Path(__file__).resolve())
    command = [sys.executable, script, str(folder), "--child", solver, module, test]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    try:
        with tempfile.TemporaryDirectory() as scratch:  # some tests write files where they stand
            run = subprocess.run(
                command,
                cwd=scratch,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=limit,
                env=environment,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return f"not within {limit:g} s"
    if run.returncode == 0:
        return ""
    said = re.findall(r"^\w*(?:Error|Exception)\b.*", run.stderr, re.MULTILINE)
    return said[-1][:160] if said else f"ended with {run.returncode}"


def main() -> None:
    """Run all and print what does not pass."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    folder = chosen.folder.resolve()
    if chosen.child:
        child(folder, *chosen.child)
    for module in MODULES:
        text = (folder / f"{module}.py").read_text()
        names = dict.fromkeys(re.findall(r"^\s+def (test_\w+)", text, re.MULTILINE))
        names = [n for n in names if not chosen.only or any(t in n for t in chosen.only)]
        pairs = [(solver, name) for name in names for solver in ("ipopt", "hybrid")]
        with ThreadPoolExecutor(chosen.jobs) as pool:
            runs = [
                pool.submit(outcome, folder, solver, module, name, chosen.limit)
                for solver, name in pairs
            ]
            found = {pair: run.result() for pair, run in zip(pairs, runs, strict=True)}
        width = max(map(len, names), default=0)
        counts = Counter(solver for (solver, _), bad in found.items() if not bad)
        for name in names:
            theirs, ours = found["ipopt", name], found["hybrid", name]
            if ours:
                print(f"{name:{width}s}  {ours}" + ("  [nor does IPOPT]" if theirs else ""))
        print(f"{module}: of {len(names)} pass", dict(counts), flush=True)


if __name__ == "__main__":
    main()
