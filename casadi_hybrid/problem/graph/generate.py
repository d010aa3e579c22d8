"""From the graph of a problem to its functions: derivatives are generated, or what is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import casadi as ca

from casadi_hybrid.problem.graph.derivatives import EXACT, Derivatives, uses_differences
from casadi_hybrid.problem.graph.directions import few_directions
from casadi_hybrid.problem.graph.functions import Functions, OnDemand, first_of, functions_of

if TYPE_CHECKING:
    from casadi_hybrid.problem.elements.element import Elements, Find

LARGE = 1_200
"""Scalar operations of f and h from which on it pays to look for elements that are alike."""
LARGE_DERIVATIVES = 5_000
"""Instructions of the derivatives from which on elements make them faster than CasADi does."""
LARGE_PRODUCTS = 100_000
"""Multiplications in products of matrices, as neural networks have them, from which on MX is kept:
a product is one instruction there, fast as it is, and as many operations in scalar form."""
_finders: list[Find] = []


def find_by(finder: Find) -> None:
    """Have the elements of large problems found by this from now on.

    It needs C, so that it is a room further on which brings it.
    """
    _finders[:] = [finder]


def build_functions(
    graph: ca.Function, *, compiled: bool = False, derivatives: Derivatives | None = None,
    **names: Any,
) -> Functions:  # fmt: skip
    """Differentiate (x, p) → (f, h); ``names`` are further fields of :class:`Functions`.

    Raises:
        InputError: where a derivative that is needed does not exist.
    """
    source = derivatives or Derivatives()
    scalar = None if source.functions else _scalar_form(graph)
    exact = not source.functions and source.hessian in (None, EXACT)
    if exact and scalar is not None and not compiled:
        elements = _elements(scalar, graph)
        if elements is not None:
            made = _by_elements(scalar, elements, names)
            if made is not None:
                return made
    # On fresh symbols: a problem's x may be a vertcat of MX symbols, which has no derivative of
    # its own, and the graph is shared by every output. What is given may have no SX form.
    kind = ca.SX if graph.is_a("SXFunction") and not source.functions else ca.MX
    x, p = kind.sym("x", graph.size1_in(0)), kind.sym("p", graph.size1_in(1))
    f, h = graph.call([x, p], True, False)
    lam = kind.sym("lam", h.numel())
    gradient, jacobian = source.first(f, h, x, p, graph)
    first = first_of(x, p, f, gradient, h, jacobian)
    differenced = uses_differences(first)
    with few_directions(graph):
        hessian, origin, lacking = source.second(
            f, h, x, p, lam, lambda: gradient + jacobian.T @ lam, differenced=differenced
        )
    functions = functions_of(
        first, (x, lam, p), (f, gradient, h, jacobian), hessian, h,
        hessian=origin, lacking=lacking, differenced=differenced, **names,
    )  # fmt: skip
    if compiled:
        return functions.compiled()
    if scalar is None or kind is ca.SX:
        return functions
    return functions.expanded(int(scalar.n_instructions()))


def _elements(scalar: ca.Function, graph: ca.Function) -> Elements | None:
    """The elements, where they are looked for and enough of them are alike."""
    if not _finders or scalar.n_instructions() < LARGE:
        return None
    if not all(map(_derived_by_casadi, graph.find_functions())):
        return None
    return _finders[0](scalar)


def _derived_by_casadi(function: ca.Function) -> bool:
    """Whether a function that is called brings no derivatives of its own, nor differences."""
    if not function.is_a("SXFunction") and not function.is_a("MXFunction"):
        return True  # a map of one that is looked at itself
    if not all([*function.is_diff_in(), *function.is_diff_out()]):
        return False
    if f"jac_{function.name()}" in function.cache():
        return False
    try:
        return not uses_differences(function.forward(1), itself=True)
    except RuntimeError:
        return False


def _by_elements(
    scalar: ca.Function, elements: Elements, about: dict[str, Any]
) -> Functions | None:
    """The functions made of elements; None where CasADi's derivatives are as fast."""
    from casadi_hybrid.problem.elements import assembly  # noqa: PLC0415 - for large problems

    n, n_p, m = elements.n, elements.n_p, elements.m
    assemblies = assembly.first_assembly(elements), assembly.second_assembly(elements)
    if sum(one.operations[1] for one in assemblies) < LARGE_DERIVATIVES:
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

    seldom = OnDemand(residual), OnDemand(second)
    affine = OnDemand(lambda: not assemblies[1].depends_on(1))
    return Functions(first, curvature, *seldom, affine, assemblies=assemblies, **about)


def _scalar_form(graph: ca.Function) -> ca.Function | None:
    """A graph in scalar operations; None where it has no such form.

    An assertion has none: CasADi leaves it out without a word. Large products of matrices are
    better left what they are.
    """
    if graph.is_a("SXFunction"):
        return graph
    products = 0
    for one in (graph, *graph.find_functions()):
        if not one.is_a("MXFunction"):
            continue
        operations = [one.instruction_id(k) for k in range(one.n_instructions())]
        if ca.OP_ASSERTION in operations:
            return None
        places = [k for k, operation in enumerate(operations) if operation == ca.OP_MTIMES]
        products += sum(map(_multiplications, map(one.instruction_MX, places)))
    if products >= LARGE_PRODUCTS:
        return None
    try:
        return graph.expand()
    except RuntimeError:
        return None


def _multiplications(product: ca.MX) -> int:
    """Those of Z + X Y."""
    return int(product.dep(1).nnz() * product.dep(2).shape[1])
