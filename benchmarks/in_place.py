"""A pytest plugin that puts this package's solver where scripts and libraries name IPOPT.

    PYTHONPATH=benchmarks python -m pytest -p in_place …

``ca.nlpsol(name, "ipopt", …)`` makes a :func:`casadi_hybrid.nlpsol`, and ``ca.Opti`` is a
:class:`casadi_hybrid.Opti` whose ``solver("ipopt", …)`` is ``solver("hybrid", …)``. Options are
handed over as they are, and nothing else of CasADi is changed. The run's last lines say how many
solvers were made. It is imported before anything else, so that ``from casadi import nlpsol`` finds
it too.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import casadi as ca

import casadi_hybrid

REPLACED = ("ipopt", "hybrid")
COUNTS: Counter[str] = Counter()
_nlpsol = ca.nlpsol


class CountedOpti(casadi_hybrid.Opti):
    """An Opti that takes the name of IPOPT for this package's."""

    def solver(self, name: str, *options: Any, **named: Any) -> None:
        """Choose the solver; IPOPT's name means this package's."""
        COUNTS[f"Opti with {name}"] += 1
        super().solver("hybrid" if name in REPLACED else name, *options, **named)


def nlpsol(name: str, solver: str, *rest: Any, **named: Any) -> Any:
    """Make a solver as ``ca.nlpsol`` does; IPOPT's name means this package's."""
    COUNTS[f"nlpsol with {solver}"] += 1
    if solver in REPLACED:
        return casadi_hybrid.nlpsol(name, "hybrid", *rest, **named)
    return _nlpsol(name, solver, *rest, **named)


ca.nlpsol, ca.Opti = nlpsol, CountedOpti


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many solvers were made, so that nobody compares IPOPT with itself."""
    made = ", ".join(f"{count} {what}" for what, count in sorted(COUNTS.items())) or "none"
    terminalreporter.write_line(f"solvers made: {made}")
