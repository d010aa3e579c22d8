"""Folders of the checkout."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
TESTS = ROOT / "tests"
DATA = TESTS / "data"
DOCS = ROOT / "docs"
