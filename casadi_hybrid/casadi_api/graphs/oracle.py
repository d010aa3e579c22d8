"""The functions of a problem under the names and signatures of CasADi's own solvers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca

from casadi_hybrid.basics.errors import InputError, suggest
from casadi_hybrid.casadi_api.foreign import CACHED
from casadi_hybrid.problem.external import DERIVED, derived
from casadi_hybrid.problem.problem import Problem

# Those that IPOPT's plugin lists; it knows no nlp_fg, which others have.
LISTED = ("nlp_f", "nlp_g", "nlp_grad", "nlp_grad_f", "nlp_hess_l", "nlp_jac_g")


class ProblemFunctions:
    """(x, p) → (f, g) of a problem in the user's shapes, and what CasADi's solvers derive of it.

    For a :class:`~casadi_hybrid.Problem` with equations g is all its rows, equations first. What
    the user gave in place of a derivative is given back.

    Args:
        problem: the problem.
        scalar: turn what is derived into scalar operations (SX).
    """

    def __init__(self, problem: Problem, *, scalar: bool = False) -> None:
        kind = type(problem.x)
        shapes = problem.shapes
        x = kind.sym("x", *shapes.get("x", (problem.n, 1)))
        p = kind.sym("p", *shapes.get("p", (problem.n_p, 1)))
        f, g = problem.graph.call([ca.vec(x), ca.vec(p)], True, False)
        g = ca.reshape(g, shapes.get("g", (problem.m, 1)))
        self.nlp = ca.Function("nlp", [x, p], [f, g], ["x", "p"], ["f", "g"])
        self._scalar = scalar
        given = ((label, getattr(problem.derivatives, own)) for label, own in CACHED.items())
        self._made: dict[str, ca.Function] = {
            "nlp": self.nlp, **{label: function for label, function in given if function},
        }  # fmt: skip

    def __getitem__(self, name: str) -> ca.Function:
        """One of them by its name."""
        if name not in self._made:
            if name not in DERIVED:
                raise InputError(f"no function {name!r}{suggest(name, (*DERIVED, 'nlp'))}")
            made = derived(self.nlp, name)
            self._made[name] = made.expand() if self._scalar else made
        return self._made[name]

    def generate(self, fname: str, options: Mapping[str, Any]) -> str:
        """Write their C code to a file and return its name; ``ca.CodeGenerator`` has options."""
        generator = ca.CodeGenerator(fname, dict(options))
        generator.add(self.nlp)
        for name in LISTED:
            generator.add(self[name])
        return str(generator.generate())
