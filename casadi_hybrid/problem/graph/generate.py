"""Generation of a problem's functions from its graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import casadi as ca

from casadi_hybrid.problem.graph.derivatives import EXACT, Derivatives, uses_differences
from casadi_hybrid.problem.graph.directions import few_directions
from casadi_hybrid.problem.graph.functions import Functions, OnDemand, first_of, functions_of

if TYPE_CHECKING:
    from casadi_hybrid.problem.elements.element import Elements, Find

# Smallest number of scalar operations of f and h for a search of equal elements.
LARGE = 1_200
# Smallest number of derivative instructions for which elements are faster than CasADi.
LARGE_DERIVATIVES = 5_000
# Number of multiplications in matrix products from which on a graph remains in MX. A product, as in
# a neural network, is one fast instruction of MX.
LARGE_PRODUCTS = 100_000
# The finder needs the core in C, so a later package registers it.
_finders: list[Find] = []


def find_by(finder: Find) -> None:
    """Register the function that finds the elements of large problems."""
    _finders[:] = [finder]


def build_functions(
    graph: ca.Function,
    *,
    compiled: bool = False,
    derivatives: Derivatives | None = None,
    **fields: Any,
) -> Functions:
    """Differentiate (x, p) → (f, h); ``fields`` are further fields of :class:`Functions`."""
    source = derivatives or Derivatives()
    scalar = None if source.functions else _scalar_form(graph)
    exact = not source.functions and source.hessian in (None, EXACT)
    if exact and scalar is not None and not compiled:
        elements = _elements(scalar, graph)
        if elements is not None:
            functions = _by_elements(scalar, elements, fields)
            if functions is not None:
                return functions
    # Fresh symbols: a problem's x may be a vertcat of MX symbols, which cannot be differentiated
    # by. Functions of the user may have no SX form.
    kind = ca.SX if graph.is_a("SXFunction") and not source.functions else ca.MX
    x, p = kind.sym("x", graph.size1_in(0)), kind.sym("p", graph.size1_in(1))
    f, h = graph.call([x, p], True, False)
    lam = kind.sym("lam", h.numel())
    gradient, jacobian = source.first(f, h, x, p, graph)
    first = first_of(x, p, f, gradient, h, jacobian)
    differenced = uses_differences(first)
    # ∇L = ∇f + J_hᵀλ from the user's first derivatives, which f + λᵀh does not know.
    with few_directions(graph):
        hessian, origin, lacking = source.second(
            f, h, x, p, lam, lambda: gradient + jacobian.T @ lam, differenced=differenced
        )
    fields |= {"hessian": origin, "lacking": lacking, "differenced": differenced}
    outputs = f, gradient, h, jacobian
    functions = functions_of(first, (x, lam, p), outputs, hessian, h, **fields)
    if compiled:
        return functions.compiled()
    if scalar is None or kind is ca.SX:
        return functions
    return functions.expanded(int(scalar.n_instructions()))


def _elements(scalar: ca.Function, graph: ca.Function) -> Elements | None:
    """Elements of a large graph; None if it is small or has too few equal elements."""
    if not _finders or scalar.n_instructions() < LARGE:
        return None
    if not all(map(_derived_by_casadi, graph.find_functions())):
        return None
    return _finders[0](scalar)


def _derived_by_casadi(function: ca.Function) -> bool:
    """True if a called function has neither derivatives of its own nor finite differences."""
    if not function.is_a("SXFunction") and not function.is_a("MXFunction"):
        return True  # a map; the mapped function is tested itself
    if not all([*function.is_diff_in(), *function.is_diff_out()]):
        return False
    # A custom Jacobian stands in the cache under this name.
    if f"jac_{function.name()}" in function.cache():
        return False
    try:
        # The option enable_fd of a Function shows in its derivatives alone.
        return not uses_differences(function.forward(1), itself=True)
    except RuntimeError:
        return False


def _by_elements(
    scalar: ca.Function, elements: Elements, fields: dict[str, Any]
) -> Functions | None:
    """Functions assembled from elements; None if CasADi's derivatives are as fast."""
    from casadi_hybrid.problem.elements import assembly  # noqa: PLC0415 - for large problems

    n, n_p, m = elements.n, elements.n_p, elements.m
    assemblies = assembly.first_assembly(elements), assembly.second_assembly(elements)
    if sum(part.operations[1] for part in assemblies) < LARGE_DERIVATIVES:
        return None
    first = assembly.composed("first", assemblies[0], (n, n_p))
    curvature = assembly.composed("curvature", assemblies[1], (n, m, n_p))
    x, p, lam = ca.MX.sym("x", n), ca.MX.sym("p", n_p), ca.MX.sym("lam", m)
    names = ["x", "lam", "p"]

    def residual() -> ca.Function:
        return ca.Function("residual", [x, p], [scalar.call([x, p])[1]], ["x", "p"], ["h"])

    def second() -> ca.Function:
        outputs = [*first.call([x, p], False, True), curvature.call([x, lam, p], False, True)[0]]
        labels = [*first.name_out(), *curvature.name_out()]
        return ca.Function("second", [x, lam, p], outputs, names, labels)

    return Functions(
        first,
        curvature,
        OnDemand(residual),
        OnDemand(second),
        affine=OnDemand(lambda: not assemblies[1].depends_on(1)),
        assemblies=assemblies,
        **fields,
    )


def _scalar_form(graph: ca.Function) -> ca.Function | None:
    """Graph in scalar operations; None if it has no such form or large matrix products."""
    if graph.is_a("SXFunction"):
        return graph
    products = 0
    for function in (graph, *graph.find_functions()):
        if not function.is_a("MXFunction"):
            continue
        operations = [function.instruction_id(k) for k in range(function.n_instructions())]
        # The expansion drops an assertion silently.
        if ca.OP_ASSERTION in operations:
            return None
        for k, operation in enumerate(operations):
            if operation == ca.OP_MTIMES:  # Z + X Y
                product = function.instruction_MX(k)
                products += int(product.dep(1).nnz() * product.dep(2).shape[1])
    if products >= LARGE_PRODUCTS:
        return None
    try:
        return graph.expand()
    except RuntimeError:
        return None
