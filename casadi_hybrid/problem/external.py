"""The functions of a problem whose f and g are foreign code, which knows its own derivatives."""

from __future__ import annotations

import casadi as ca

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.problem.functions import Functions, first_of, functions_of

_GAMMA = {"gamma": ["f", "g"]}


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
    of_f = _derivative(oracle, "nlp_grad_f", ["f", "grad:f:x"])
    of_g = _derivative(oracle, "nlp_jac_g", ["g", "jac:g:x"])
    of_l = _derivative(oracle, "nlp_hess_l", ["triu:hess:gamma:x:x"], multiplied=True)
    f, gradient = of_f(*given)
    g, jacobian = of_g(*given)
    hessian = ca.triu2symm(of_l(*given, *multipliers))
    outputs = f, ca.densify(ca.vec(gradient)), ca.densify(ca.vec(g)), jacobian
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
    outputs = ["f", "g", "grad:gamma:x", "grad:gamma:p"]
    slope = _derivative(oracle, "nlp_grad", outputs, multiplied=True)(
        ca.reshape(x, oracle.size_in("x")), ca.reshape(p, oracle.size_in("p")),
        1, ca.reshape(lam, oracle.size_out("g")),
    )[-1]  # fmt: skip
    return ca.Function("gradient_p", [x, lam, p], [ca.densify(ca.vec(slope))])


def _derivative(
    oracle: ca.Function, name: str, outputs: list[str], *, multiplied: bool = False
) -> ca.Function:
    """A derivative by the name and in the words of CasADi, so that a library's own is found."""
    inputs = ["x", "p", *(["lam:f", "lam:g"] if multiplied else [])]
    try:
        return oracle.factory(name, inputs, outputs, _GAMMA if multiplied else {})
    except RuntimeError:
        raise InputError(
            f"the function {oracle.name()!r} has no derivative {name!r}, and none can be made of "
            "it; solver.generate_dependencies writes C code with all that are needed, and a "
            "ca.Callback has differences with the option enable_fd"
        ) from None
