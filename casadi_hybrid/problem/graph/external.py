"""The functions of a problem whose f and g are foreign code, which knows its own derivatives."""

from __future__ import annotations

import casadi as ca

from casadi_hybrid.problem.graph.functions import Functions, first_of, functions_of
from casadi_hybrid.utils.errors import InputError

_AT, _L = ("x", "p"), ("x", "p", "lam:f", "lam:g")
DERIVED = {
    "nlp_f": (_AT, ("f",)),
    "nlp_g": (_AT, ("g",)),
    "nlp_fg": (_AT, ("f", "g")),
    "nlp_grad": (_L, ("f", "g", "grad:gamma:x", "grad:gamma:p")),
    "nlp_grad_f": (_AT, ("f", "grad:f:x")),
    "nlp_hess_l": (_L, ("triu:hess:gamma:x:x",)),
    "nlp_jac_g": (_AT, ("g", "jac:g:x")),
}
"""Functions of CasADi's solvers: inputs and outputs in the words of its factory; gamma is L."""


def external_functions(
    oracle: ca.Function, constraint_names: tuple[str, ...], variable_names: tuple[str, ...]
) -> Functions:
    """The functions of (x, p) → (f, g), from the derivatives that the oracle has or CasADi makes.

    A library made of what ``solver.generate_dependencies`` writes has ``nlp_grad_f``,
    ``nlp_jac_g`` and ``nlp_hess_l``; a ``ca.Callback`` with ``enable_fd`` gets differences.

    Raises:
        InputError: where a derivative is neither there nor can be made.
    """
    x, p = ca.MX.sym("x", oracle.numel_in("x")), ca.MX.sym("p", oracle.numel_in("p"))
    given = ca.reshape(x, oracle.size_in("x")), ca.reshape(p, oracle.size_in("p"))
    lam = ca.MX.sym("lam", oracle.numel_out("g"))
    multipliers = ca.MX(1), ca.reshape(lam, oracle.size_out("g"))
    f, gradient = derived(oracle, "nlp_grad_f")(*given)
    g, jacobian = derived(oracle, "nlp_jac_g")(*given)
    hessian = ca.triu2symm(derived(oracle, "nlp_hess_l")(*given, *multipliers))
    outputs = ca.densify(f), ca.densify(ca.vec(gradient)), ca.densify(ca.vec(g)), jacobian
    rows = ca.densify(ca.vec(oracle(*given)[1]))
    return functions_of(
        first_of(x, p, *outputs), (x, lam, p), outputs, hessian, rows,
        constraint_names=constraint_names, variable_names=variable_names, backend="external",
        constraint_label="g",
    )  # fmt: skip


def external_parameter_gradient(oracle: ca.Function) -> ca.Function:
    """(x, λ, p) → ∂(f + λᵀg)/∂p, a column."""
    x, p = ca.MX.sym("x", oracle.numel_in("x")), ca.MX.sym("p", oracle.numel_in("p"))
    lam = ca.MX.sym("lam", oracle.numel_out("g"))
    slope = derived(oracle, "nlp_grad")(
        ca.reshape(x, oracle.size_in("x")), ca.reshape(p, oracle.size_in("p")),
        1, ca.reshape(lam, oracle.size_out("g")),
    )[-1]  # fmt: skip
    return ca.Function("gradient_p", [x, lam, p], [ca.densify(ca.vec(slope))])


def derived(oracle: ca.Function, name: str) -> ca.Function:
    """One of :data:`DERIVED`, by the name and in the words of CasADi: a library's own is found."""
    try:
        return oracle.factory(name, *map(list, DERIVED[name]), {"gamma": ["f", "g"]})
    except RuntimeError:
        raise InputError(
            f"the function {oracle.name()!r} has no derivative {name!r}, and none can be made of "
            "it; solver.generate_dependencies writes C code with all that are needed, and a "
            "ca.Callback has differences with the option enable_fd"
        ) from None
