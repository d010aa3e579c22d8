"""The functions of a problem under the names and signatures of CasADi's own solvers."""

from __future__ import annotations

import casadi as ca

from casadi_hybrid.problem.graph.external import DERIVED, derived
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.nlpsol.function import shapes_of
from casadi_hybrid.solver.options.foreign import CACHED
from casadi_hybrid.utils.errors import InputError, suggest


class ProblemFunctions(dict[str, ca.Function]):
    """``nlp``, (x, p) → (f, g) in the user's shapes, and its derivatives by their names."""

    def __init__(self, problem: Problem, *, scalar: bool) -> None:
        # A derivative of the user is returned as it is.
        supplied = {label: getattr(problem.derivatives, name) for label, name in CACHED.items()}
        super().__init__((label, function) for label, function in supplied.items() if function)
        kind, shapes = type(problem.x), shapes_of(problem)
        x, p = (kind.sym(label, *shapes[label]) for label in "xp")
        f, g = problem.graph.call([ca.vec(x), ca.vec(p)], True, False)
        g = ca.reshape(g, shapes["g"])
        self["nlp"] = ca.Function("nlp", [x, p], [f, g], ["x", "p"], ["f", "g"])
        self._scalar = scalar  # True: derivatives are expanded to SX

    def __missing__(self, name: str) -> ca.Function:
        if name not in DERIVED:
            raise InputError(f"no function {name!r}{suggest(name, (*DERIVED, 'nlp'))}")
        function = derived(self["nlp"], name)
        self[name] = function.expand() if self._scalar else function
        return self[name]
