"""A nonlinear program as a CasADi graph, with the generated functions a solve needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from casadi_hybrid.basics.errors import InputError, suggest
from casadi_hybrid.problem.columns import as_columns
from casadi_hybrid.problem.functions import Functions, build_functions
from casadi_hybrid.problem.problem import (
    check_expression,
    check_names,
    check_symbols,
    no_free_symbols,
)


@dataclass(frozen=True, eq=False)
class Program:
    """min f(x, p) s.t. lbg ≤ g(x, p) ≤ ubg, lbx ≤ x ≤ ubx; the bounds come with each solve.

    It holds generated functions only, no symbols, so it pickles.

    Attributes:
        functions: f, ∇f, g, J_g and ∇²ₓₓL with L = f + λᵀg.
        n, m, n_p: numbers of variables, constraints and parameters.
        name: for tables and messages.
    """

    functions: Functions
    n: int
    m: int
    n_p: int
    name: str

    def compiled(self) -> Program:
        """The same program with functions compiled by the system's C compiler, where it has one."""
        return replace(self, functions=self.functions.compiled())

    @classmethod
    def from_dict(
        cls,
        nlp: Mapping[str, Any],
        *,
        name: str = "nlp",
        constraint_names: Sequence[str] | None = None,
        variable_names: Sequence[str] | None = None,
        compiled: bool = False,
    ) -> Program:
        """Build from CasADi's dictionary with ``x``, ``f`` and, where there are any, ``g``, ``p``.

        Raises:
            InputError: for no dictionary, an unknown key, a wrong symbol type, free symbols or a
                wrong shape.
        """
        if not isinstance(nlp, Mapping):
            raise InputError(
                "the problem must be CasADi's dictionary with 'x', 'p', 'f', 'g', got "
                f"{type(nlp).__name__}"
            )
        known = ("x", "p", "f", "g")
        for key in nlp:
            if key not in known:
                raise InputError(f"unknown entry {key!r} of the problem{suggest(key, known)}")
        if "x" not in nlp:
            raise InputError("the problem has no 'x'; give its variables")
        nlp, _ = as_columns(nlp)
        x = check_symbols(nlp["x"], "x")
        kind = type(x)
        p = check_symbols(nlp["p"], "p", kind=kind, empty=True) if "p" in nlp else kind.sym("p", 0)
        f = check_expression(nlp.get("f", 0), "f", kind)
        if f.numel() != 1:
            raise InputError(f"f has shape {f.shape}; the objective must be a scalar")
        g = check_expression(nlp.get("g", kind(0, 1)), "g", kind)
        for label, expression in (("f", f), ("g", g)):
            no_free_symbols(expression, label, x, p)
        m = int(g.numel())
        functions = build_functions(
            x,
            p,
            f,
            g if m else kind(0, 1),
            constraint_names=check_names(constraint_names, m, "constraint_names", "g"),
            variable_names=check_names(variable_names, x.numel(), "variable_names", "x"),
            compiled=compiled,
            constraint_label="g",
        )
        return cls(functions, int(x.numel()), m, int(p.numel()), name)

    @cached_property
    def feasibility(self) -> bool:
        """Whether f does not depend on x, so that every feasible point is a solution."""
        return bool(self.functions.first.jac_sparsity(0, 0).nnz() == 0)

    @cached_property
    def linear(self) -> bool:
        """Whether g is affine in x, so that a least violation is the least of all."""
        return bool(self.functions.first.jac_sparsity(3, 0).nnz() == 0)
