"""This package's solver where a library names IPOPT, as rockit, AeroSandbox and csnlp do."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager
from typing import Any

import casadi as ca

from casadi_hybrid.problem.point.limits import METHOD_NAMES
from casadi_hybrid.solver.nlpsol.interface import nlpsol
from casadi_hybrid.solver.opti.opti import HYBRID, Opti

_REPLACED = ("ipopt", *METHOD_NAMES)


class in_place(AbstractContextManager["in_place"]):
    """Put this package where ``ca.nlpsol`` and ``ca.Opti`` are asked for IPOPT.

    From the call on ``ca.nlpsol(name, "ipopt", …)`` makes a :func:`casadi_hybrid.nlpsol`, and
    ``ca.Opti`` is a :class:`casadi_hybrid.Opti` whose ``solver("ipopt", …)`` is
    ``solver("hybrid", …)``. Options are passed on unchanged; other solvers and the rest of CasADi
    stay. Call it before the library is imported: a module that has copied a name by
    ``from casadi import …``, or derived a class from ``ca.Opti``, keeps CasADi's.

    ``with in_place(): …``, or :meth:`restore`, puts CasADi's own back; existing solvers stay.

    Attributes:
        made: number of solvers made, by ``"nlpsol with ipopt"`` and the like.

    Example:
        >>> import casadi as ca
        >>> x = ca.SX.sym("x")
        >>> with in_place() as here:
        ...     solver = ca.nlpsol("solver", "ipopt", {"x": x, "f": (x - 1) ** 2})
        >>> type(solver).__name__, dict(here.made)
        ('NlpSolver', {'nlpsol with ipopt': 1})
    """

    def __init__(self) -> None:
        self.made = made = Counter[str]()
        self._theirs = theirs = ca.nlpsol, ca.Opti

        class InPlace(Opti):
            """An Opti that takes the name of IPOPT for this package's."""

            def solver(self, name: str, *options: Any, **named: Any) -> None:
                """Choose the solver; IPOPT's name means this package's."""
                made[f"Opti with {name}"] += 1
                super().solver(HYBRID if name in _REPLACED else name, *options, **named)

        def make(name: str, solver: str, *rest: Any, **named: Any) -> Any:
            """Make a solver as ``ca.nlpsol`` does; IPOPT's name means this package's."""
            made[f"nlpsol with {solver}"] += 1
            if solver in _REPLACED:
                return nlpsol(name, HYBRID, *rest, **named)
            return theirs[0](name, solver, *rest, **named)

        ca.nlpsol, ca.Opti = make, InPlace

    def __repr__(self) -> str:
        return f"<in_place: {dict(self.made) or 'no solver asked for yet'}>"

    def restore(self) -> None:
        """Put back the previous names."""
        ca.nlpsol, ca.Opti = self._theirs

    def __exit__(self, *_: object) -> None:
        self.restore()
