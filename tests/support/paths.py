"""Folders of the checkout."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
DATA = ROOT / "tests" / "data"
DOCS = ROOT / "docs"
