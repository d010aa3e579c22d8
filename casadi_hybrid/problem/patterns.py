"""Where a problem's derivatives may be nonzero: made once, kept with the problem."""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from casadi_hybrid.kernel.sparse import Pattern
from casadi_hybrid.problem.problem import Problem

_lock = threading.Lock()
_patterns: WeakKeyDictionary[Problem, tuple[Pattern, Pattern]] = WeakKeyDictionary()


def patterns_of(program: Problem) -> tuple[Pattern, Pattern]:
    """The patterns of J_g and of the Hessian of the Lagrangian."""
    with _lock:
        known = _patterns.get(program)
        if known is None:
            functions = program.functions
            known = Pattern.of(functions.jacobian_sparsity), Pattern.of(functions.hessian_sparsity)
            _patterns[program] = known
    return known
