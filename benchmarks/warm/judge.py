"""The judge of warm steps: :class:`peers.judge.Judge` for a program whose parameters change.

Interior-point solvers move bounds outwards by 1e-8·max(1, |bound|), which fatrop cannot be told not
to do: the distance of complementarity is to the bound or to the moved one, whichever is nearer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from peers.judge import TOLERANCE
from peers.judge import Judge as SharedJudge

from warm.stages import Program

MOVED = 1e-8
"""IPOPT's and fatrop's relaxation of bounds."""

__all__ = ["MOVED", "TOLERANCE", "Judge"]


class Judge:
    """The functions of one program, evaluated at points and multipliers."""

    def __init__(self, program: Program) -> None:
        bounds = {key: getattr(program, key) for key in ("lbx", "ubx", "lbg", "ubg")}
        self._judge = SharedJudge({**program.nlp, **bounds}, relaxed=MOVED)

    def __call__(self, answer: Mapping[str, Any], p: Any) -> tuple[float, float]:
        """The residual and the objective, from the functions; infinite where undefined."""
        x, lam_x, lam_g = (np.asarray(answer[key]).ravel() for key in ("x", "lam_x", "lam_g"))
        if not (np.isfinite(x).all() and np.isfinite(lam_g).all()):
            return np.inf, np.inf
        judge = self._judge.at(p=np.asarray(p))
        return judge.residual(x, lam_g, lam_x, fit=False), judge.objective(x)
