"""Functions of a problem whose f and g are foreign code with derivatives of its own."""

from __future__ import annotations

import casadi as ca

from casadi_hybrid.problem.graph.derivatives import EXACT, Derivatives, called, uses_differences
from casadi_hybrid.problem.graph.functions import Functions, first_of, functions_of
from casadi_hybrid.utils.errors import InputError

_AT, _L = ("x", "p"), ("x", "p", "lam:f", "lam:g")
# Inputs and outputs of CasADi's solver functions, as its factory names them; gamma is L.
DERIVED = {
    "nlp_f": (_AT, ("f",)),
    "nlp_g": (_AT, ("g",)),
    "nlp_fg": (_AT, ("f", "g")),
    "nlp_grad": (_L, ("f", "g", "grad:gamma:x", "grad:gamma:p")),
    "nlp_grad_f": (_AT, ("f", "grad:f:x")),
    "nlp_hess_l": (_L, ("triu:hess:gamma:x:x",)),
    "nlp_jac_g": (_AT, ("g", "jac:g:x")),
}


def external_functions(
    oracle: ca.Function, derivatives: Derivatives, **names: tuple[str, ...]
) -> Functions:
    """Make the functions of (x, p) → (f, g), with derivatives of the user, the oracle or CasADi."""
    # Code of solver.generate_dependencies has all three; of a Callback CasADi takes differences.
    (x, lam, p), inputs, multipliers = _symbols(oracle)
    given = {"nlp_grad_f": derivatives.grad_f, "nlp_jac_g": derivatives.jac_g}
    (f, gradient), (g, jacobian) = (
        # The user's take columns, the oracle's its own shapes.
        derived(oracle, name)(*inputs) if function is None else called(function, x, p)[:2]
        for name, function in given.items()
    )
    f, gradient, g = ca.densify(f), ca.densify(ca.vec(gradient)), ca.densify(ca.vec(g))
    first = first_of(x, p, f, gradient, g, jacobian)
    differenced, kind = uses_differences(first), derivatives.hessian
    if derivatives.hess_lag is None and (kind == EXACT or (kind is None and not differenced)):
        # nlp_hess_l is the upper triangle alone.
        hessian, lacking = ca.triu2symm(derived(oracle, "nlp_hess_l")(*inputs, *multipliers)), ""
        kind = EXACT
    else:
        hessian, kind, lacking = derivatives.second(
            f, g, x, p, lam, lambda: gradient + jacobian.T @ lam, differenced=differenced
        )
    return functions_of(
        first,
        (x, lam, p),
        (f, gradient, g, jacobian),
        hessian,
        rows=ca.densify(ca.vec(oracle(*inputs)[1])),
        backend="external",
        constraint_label="g",
        hessian=kind,
        lacking=lacking,
        differenced=differenced,
        **names,
    )


def external_parameter_gradient(oracle: ca.Function) -> ca.Function:
    """(x, λ, p) → ∂(f + λᵀg)/∂p, a column."""
    symbols, inputs, multipliers = _symbols(oracle)
    gradient = derived(oracle, "nlp_grad")(*inputs, *multipliers)[-1]
    return ca.Function("gradient_p", symbols, [ca.densify(ca.vec(gradient))])


def _symbols(oracle: ca.Function) -> tuple[list[ca.MX], tuple[ca.MX, ...], tuple[ca.MX, ...]]:
    """Columns x, λ and p; x and p, and (1, λ), in the shapes of the oracle."""
    x, p = ca.MX.sym("x", oracle.numel_in("x")), ca.MX.sym("p", oracle.numel_in("p"))
    lam = ca.MX.sym("lam", oracle.numel_out("g"))
    inputs = ca.reshape(x, oracle.size_in("x")), ca.reshape(p, oracle.size_in("p"))
    return [x, lam, p], inputs, (ca.MX(1), ca.reshape(lam, oracle.size_out("g")))  # lam_f = 1


def derived(oracle: ca.Function, name: str) -> ca.Function:
    """Return a function of :data:`DERIVED`: the one of the library, or one made by CasADi."""
    try:
        return oracle.factory(name, *map(list, DERIVED[name]), {"gamma": ["f", "g"]})
    except RuntimeError:
        raise InputError(
            f"the function {oracle.name()!r} has no derivative {name!r}, and CasADi cannot "
            "generate it; solver.generate_dependencies writes C code with all derivatives, and a "
            "ca.Callback has differences with the option enable_fd"
        ) from None
