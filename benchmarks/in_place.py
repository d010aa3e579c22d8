"""A pytest plugin that puts this package's solver where scripts and libraries name IPOPT.

    PYTHONPATH=benchmarks python -m pytest -p in_place …

It is :class:`casadi_hybrid.in_place`, imported before anything else, so that ``from casadi import
nlpsol`` finds it too. The run's last lines say how many solvers were made.
"""

from __future__ import annotations

from typing import Any

import casadi_hybrid

HERE = casadi_hybrid.in_place()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many solvers were made, so that nobody compares IPOPT with itself."""
    made = ", ".join(f"{count} {what}" for what, count in sorted(HERE.made.items())) or "none"
    terminalreporter.write_line(f"solvers made: {made}")
