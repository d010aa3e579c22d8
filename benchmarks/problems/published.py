"""The published problems, read from ``tests/support/problems``."""

from support.problems.published import (
    HS,
    MORE,
    MORE_SYSTEMS,
    NLP,
    SYSTEMS,
    System,
    build_problem,
    collection,
    read_nl,
)

__all__ = [
    "HS", "MORE", "MORE_SYSTEMS", "NLP", "SYSTEMS", "System", "build_problem", "collection",
    "read_nl",
]  # fmt: skip
